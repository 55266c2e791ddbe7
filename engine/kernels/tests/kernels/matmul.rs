//! Matrix products.

use half::f16;
use ondes_kernels::{Columns, Kernels, PackedMatrix};
use proptest::prelude::*;

use crate::common::{Noise, assert_same_bits, check};

/// A product of random size: dense layers and convolutions, with gaps between taps, columns and
/// results.
#[derive(Clone, Copy, Debug)]
struct Shape {
    outputs: usize,
    taps: usize,
    inputs: usize,
    count: usize,
    stride: usize,
    tap_stride: usize,
    y_stride: usize,
    seed: u64,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let sizes = (1usize..150, 1usize..5, 1usize..40, 1usize..20);
    let gaps = (0usize..50, 0usize..3, 0usize..5, 0u64..1000);
    (sizes, gaps).prop_map(
        |((outputs, taps, inputs, count), (stride, tap_gap, y_gap, seed))| Shape {
            outputs,
            taps,
            inputs,
            count,
            stride,
            tap_stride: inputs + tap_gap,
            y_stride: outputs + y_gap,
            seed,
        },
    )
}

struct Product {
    shape: Shape,
    weights: Vec<f32>,
    bias: Vec<f32>,
    x: Vec<f32>,
}

impl Product {
    fn new(shape: Shape) -> Product {
        let mut noise = Noise::new(shape.seed);
        let Shape {
            outputs,
            taps,
            inputs,
            count,
            stride,
            tap_stride,
            ..
        } = shape;
        Product {
            shape,
            weights: noise.vec(outputs * taps * inputs, 1.0),
            bias: noise.vec(outputs, 1.0),
            x: noise.vec((count - 1) * stride + (taps - 1) * tap_stride + inputs, 1.0),
        }
    }

    fn weight(&self, output: usize, tap: usize, input: usize) -> f32 {
        self.weights[(output * self.shape.taps + tap) * self.shape.inputs + input]
    }

    fn packed(&self) -> PackedMatrix {
        let Shape {
            outputs,
            taps,
            inputs,
            ..
        } = self.shape;
        PackedMatrix::new(
            outputs,
            taps,
            inputs,
            |o, t, i| self.weight(o, t, i),
            Some(&self.bias),
        )
    }

    fn columns(&self) -> Columns<'_> {
        let Shape {
            count,
            stride,
            tap_stride,
            ..
        } = self.shape;
        Columns {
            data: &self.x,
            count,
            stride,
            tap_stride,
        }
    }

    fn run(&self, kernels: Kernels) -> Vec<f32> {
        let mut y = self.untouched();
        kernels.matmul(&self.packed(), self.columns(), &mut y, self.shape.y_stride);
        y
    }

    fn untouched(&self) -> Vec<f32> {
        vec![-7.0; (self.shape.count - 1) * self.shape.y_stride + self.shape.outputs]
    }

    /// Computes every output by `step(sum, weight, x)`, starting from its bias; `None` between the
    /// columns.
    fn fold<T: Copy + From<f32>>(&self, step: impl Fn(T, f32, f32) -> T) -> Vec<Option<T>> {
        let Shape {
            outputs,
            taps,
            inputs,
            count,
            stride,
            tap_stride,
            y_stride,
            ..
        } = self.shape;
        let mut y = vec![None; self.untouched().len()];
        for column in 0..count {
            for output in 0..outputs {
                let mut sum = T::from(self.bias[output]);
                for tap in 0..taps {
                    for input in 0..inputs {
                        let x = self.x[column * stride + tap * tap_stride + input];
                        sum = step(sum, self.weight(output, tap, input), x);
                    }
                }
                y[column * y_stride + output] = Some(sum);
            }
        }
        y
    }
}

pub fn against_reference(kernels: Kernels) {
    check(shapes(), |shape| {
        let product = Product::new(shape);
        let expected = product.fold(|sum: f64, w, x| sum + f64::from(w) * f64::from(x));
        for (found, expected) in product.run(kernels).iter().zip(expected) {
            match expected {
                Some(expected) => assert!(
                    (f64::from(*found) - expected).abs() < 2e-5,
                    "{found:e} for {expected:e}"
                ),
                None => assert_eq!(*found, -7.0, "written between the columns"),
            }
        }
    });
}

pub fn one_chain_to_the_bit(kernels: Kernels) {
    check(shapes(), |shape| is_one_chain(kernels, shape));
    // Every number of panels with a block of its own, by every such number of columns.
    for outputs in (1..300).step_by(9) {
        for count in 1..=17 {
            let (stride, tap_stride, y_stride) = (5, 5, outputs);
            is_one_chain(
                kernels,
                Shape {
                    outputs,
                    taps: 1,
                    inputs: 5,
                    count,
                    stride,
                    tap_stride,
                    y_stride,
                    seed: 3,
                },
            );
        }
    }
}

fn is_one_chain(kernels: Kernels, shape: Shape) {
    let product = Product::new(shape);
    let chain = product.fold(|sum: f32, w, x| w.mul_add(x, sum));
    let expected: Vec<f32> = chain.into_iter().map(|sum| sum.unwrap_or(-7.0)).collect();
    assert_same_bits(&product.run(kernels), &expected);
}

/// Weights in half precision give the bits of the same weights in `f32`, also with the smallest and
/// largest values.
pub fn half_precision_to_the_bit(kernels: Kernels) {
    let is_same = |shape: Shape| {
        let mut product = Product::new(shape);
        let extremes = [
            f16::from_bits(1),
            f16::from_bits(0x83ff),
            f16::MIN_POSITIVE,
            f16::MAX,
            f16::NEG_ZERO,
        ];
        let halves: Vec<f16> = product
            .weights
            .iter()
            .map(|weight| f16::from_f32(*weight))
            .collect();
        let halves: Vec<f16> = extremes
            .into_iter()
            .chain(halves)
            .take(product.weights.len())
            .collect();
        product.weights = halves.iter().map(|half| half.to_f32()).collect();
        let Shape {
            outputs,
            taps,
            inputs,
            ..
        } = shape;
        let half = |o: usize, t: usize, i: usize| halves[(o * taps + t) * inputs + i];
        let packed = PackedMatrix::new_f16(outputs, taps, inputs, half, Some(&product.bias));
        let mut y = product.untouched();
        kernels.matmul(&packed, product.columns(), &mut y, shape.y_stride);
        assert_same_bits(&y, &product.run(kernels));
        assert_eq!(
            2 * packed.bytes(),
            product.packed().bytes() + outputs.div_ceil(16) * 64
        );
    };
    check(shapes(), is_same);
    for outputs in (1..300).step_by(9) {
        for count in [1, 2, 5, 8, 17] {
            let (stride, tap_stride, y_stride) = (5, 5, outputs);
            is_same(Shape {
                outputs,
                taps: 1,
                inputs: 5,
                count,
                stride,
                tap_stride,
                y_stride,
                seed: 3,
            });
        }
    }
}

pub fn columns_are_independent(kernels: Kernels) {
    check((shapes(), 1usize..9), |(shape, step)| {
        let product = Product::new(shape);
        let (w, x) = (product.packed(), product.columns());
        let mut parts = product.untouched();
        for first in (0..x.count).step_by(step) {
            let count = step.min(x.count - first);
            let part = Columns {
                data: &x.data[first * x.stride..],
                count,
                ..x
            };
            kernels.matmul(
                &w,
                part,
                &mut parts[first * shape.y_stride..],
                shape.y_stride,
            );
        }
        assert_same_bits(&parts, &product.run(kernels));
    });
}

pub fn empty_products(kernels: Kernels) {
    let x = Columns {
        data: &[],
        count: 0,
        stride: 3,
        tap_stride: 3,
    };
    let dense = PackedMatrix::new(5, 1, 3, |_, _, _| 1.0, None);
    kernels.matmul(&dense, x, &mut [], 5);
    kernels.matmul(
        &PackedMatrix::new(0, 1, 3, |_, _, _| 1.0, None),
        Columns { count: 4, ..x },
        &mut [],
        0,
    );

    // Without inputs, the result is the bias.
    let mut y = [f32::NAN; 6];
    let bias = [1.0, 2.0, 3.0];
    kernels.matmul(
        &PackedMatrix::new(3, 2, 0, |_, _, _| 1.0, Some(&bias)),
        Columns { count: 2, ..x },
        &mut y,
        3,
    );
    assert_same_bits(&y, &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    assert_eq!(dense.bytes(), 3 * 64 + 64);
}
