//! Products in eight bits, and the quantization of frames.

use ondes_kernels::{Int8Columns, Int8Matrix, Kernels, int8_frame_width};
use proptest::prelude::*;

use crate::common::{Noise, assert_same_bits, check};

/// A product of random size: dense layers and convolutions, with groups of channels and gaps
/// between results.
#[derive(Clone, Copy, Debug)]
struct Shape {
    outputs: usize,
    taps: usize,
    inputs: usize,
    first: usize,
    more: usize,
    count: usize,
    stride: usize,
    tap_stride: usize,
    y_stride: usize,
    seed: u64,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let sizes = (1usize..150, 1usize..5, 1usize..40, 1usize..20);
    let places = (
        0usize..3,
        0usize..9,
        0usize..4,
        0usize..4,
        0usize..5,
        0u64..1000,
    );
    (sizes, places).prop_map(
        |((outputs, taps, inputs, count), (first, more, stride, tap_stride, y_gap, seed))| Shape {
            outputs,
            taps,
            inputs,
            first: 4 * first,
            more,
            count,
            stride,
            tap_stride,
            y_stride: outputs + y_gap,
            seed,
        },
    )
}

struct Product {
    shape: Shape,
    weights: Vec<i8>,
    weight_scales: Vec<f32>,
    bias: Vec<f32>,
    width: usize,
    codes: Vec<u8>,
    scales: Vec<f32>,
}

/// Value between the results.
const UNTOUCHED: f32 = -7.0;

impl Product {
    fn new(shape: Shape) -> Product {
        let mut noise = Noise::new(shape.seed);
        let Shape {
            outputs,
            taps,
            inputs,
            first,
            more,
            count,
            stride,
            tap_stride,
            ..
        } = shape;
        let width = int8_frame_width(first + inputs.next_multiple_of(4) + more);
        let frames = (count - 1) * stride + (taps - 1) * tap_stride + 1;
        let mut byte = |lowest: f32| {
            noise
                .value(1.0)
                .mul_add(128.0, 0.0)
                .floor()
                .clamp(lowest, 127.0)
        };
        Product {
            shape,
            // The extremes often, since sums of pairs would overflow there.
            weights: (0..outputs * taps * inputs)
                .map(|at| if at % 3 == 0 { 127 } else { byte(-127.0) as i8 })
                .collect(),
            codes: (0..frames * width)
                .map(|at| {
                    if at % 5 == 0 {
                        1
                    } else {
                        (byte(-127.0) + 128.0) as u8
                    }
                })
                .collect(),
            weight_scales: noise
                .vec(outputs, 0.01)
                .iter()
                .map(|scale| scale.abs() + 1e-4)
                .collect(),
            bias: noise.vec(outputs, 1.0),
            width,
            scales: noise
                .vec(frames, 0.01)
                .iter()
                .map(|scale| scale.abs())
                .collect(),
        }
    }

    fn weight(&self, output: usize, tap: usize, input: usize) -> i8 {
        self.weights[(output * self.shape.taps + tap) * self.shape.inputs + input]
    }

    fn packed(&self) -> Int8Matrix {
        let Shape {
            outputs,
            taps,
            inputs,
            ..
        } = self.shape;
        Int8Matrix::new(
            outputs,
            taps,
            inputs,
            |o, t, i| self.weight(o, t, i),
            &self.weight_scales,
            &self.bias,
        )
    }

    fn columns(&self) -> Int8Columns<'_> {
        let Shape {
            first,
            count,
            stride,
            tap_stride,
            ..
        } = self.shape;
        Int8Columns {
            codes: &self.codes,
            scales: &self.scales,
            width: self.width,
            first,
            count,
            stride,
            tap_stride,
        }
    }

    fn untouched(&self) -> Vec<f32> {
        vec![UNTOUCHED; (self.shape.count - 1) * self.shape.y_stride + self.shape.outputs]
    }

    fn run(&self, kernels: Kernels) -> Vec<f32> {
        let mut y = self.untouched();
        kernels.int8_matmul(&self.packed(), self.columns(), &mut y, self.shape.y_stride);
        y
    }

    /// The documented result, operation by operation.
    fn expected(&self) -> Vec<f32> {
        let Shape {
            outputs,
            taps,
            inputs,
            first,
            count,
            stride,
            tap_stride,
            y_stride,
            ..
        } = self.shape;
        let mut y = self.untouched();
        for column in 0..count {
            for output in 0..outputs {
                let mut total = 0.0_f32;
                for tap in 0..taps {
                    let frame = column * stride + tap * tap_stride;
                    let values = &self.codes[frame * self.width + first..][..inputs];
                    let products = values.iter().enumerate().map(|(input, &value)| {
                        i64::from(self.weight(output, tap, input)) * (i64::from(value) - 128)
                    });
                    total = (products.sum::<i64>() as f32).mul_add(self.scales[frame], total);
                }
                y[column * y_stride + output] =
                    total.mul_add(self.weight_scales[output], self.bias[output]);
            }
        }
        y
    }
}

pub fn product_to_the_bit(kernels: Kernels) {
    check(shapes(), |shape| {
        let product = Product::new(shape);
        assert_same_bits(&product.run(kernels), &product.expected());
    });
    // Every number of panels with a block of its own, by every such number of columns.
    for outputs in (1..300).step_by(9) {
        for count in 1..=17 {
            let shape = Shape {
                outputs,
                taps: 1,
                inputs: 9,
                first: 0,
                more: 0,
                count,
                stride: 1,
                tap_stride: 1,
                y_stride: outputs,
                seed: 3,
            };
            let product = Product::new(shape);
            assert_same_bits(&product.run(kernels), &product.expected());
        }
    }
}

pub fn int8_columns_are_independent(kernels: Kernels) {
    check((shapes(), 1usize..9), |(shape, step)| {
        let product = Product::new(shape);
        let (w, x) = (product.packed(), product.columns());
        let mut parts = product.untouched();
        for first in (0..x.count).step_by(step) {
            let (count, frame) = (step.min(x.count - first), first * x.stride);
            let (codes, scales) = (&x.codes[frame * x.width..], &x.scales[frame..]);
            let part = Int8Columns {
                codes,
                scales,
                count,
                ..x
            };
            kernels.int8_matmul(
                &w,
                part,
                &mut parts[first * shape.y_stride..],
                shape.y_stride,
            );
        }
        assert_same_bits(&parts, &product.run(kernels));
    });
}

/// The longest sums, of the largest products of one sign.
pub fn longest_sums(kernels: Kernels) {
    let inputs = 66_000;
    for (weight, byte) in [(127, 255_u8), (-127, 255), (127, 1), (-127, 1)] {
        let w = Int8Matrix::new(17, 1, inputs, |_, _, _| weight, &[1.0; 17], &[0.5; 17]);
        let codes = vec![byte; inputs];
        let x = Int8Columns {
            codes: &codes,
            scales: &[1.0],
            width: inputs,
            first: 0,
            count: 1,
            stride: 1,
            tap_stride: 1,
        };
        let mut y = [0.0; 17];
        kernels.int8_matmul(&w, x, &mut y, 17);
        let sum = inputs as i64 * i64::from(weight) * (i64::from(byte) - 128);
        assert_same_bits(&y, &[sum as f32 + 0.5; 17]);
    }
}

pub fn empty_int8_products(kernels: Kernels) {
    let x = Int8Columns {
        codes: &[],
        scales: &[],
        width: 4,
        first: 0,
        count: 0,
        stride: 1,
        tap_stride: 1,
    };
    kernels.int8_matmul(
        &Int8Matrix::new(3, 1, 3, |_, _, _| 1, &[1.0; 3], &[0.0; 3]),
        x,
        &mut [],
        3,
    );
    // Without inputs, the result is the bias.
    let empty = Int8Matrix::new(3, 1, 0, |_, _, _| 1, &[1.0; 3], &[1.0, 2.0, 3.0]);
    let x = Int8Columns {
        codes: &[128; 8],
        scales: &[1.0; 2],
        count: 2,
        ..x
    };
    let mut y = [f32::NAN; 6];
    kernels.int8_matmul(&empty, x, &mut y, 3);
    assert_same_bits(&y, &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    // One cache line each of weights, sums, scales and biases.
    assert_eq!(
        Int8Matrix::new(20, 2, 5, |_, _, _| 1, &[1.0; 20], &[0.0; 20]).bytes(),
        2 * (2 * 2 + 2 + 1 + 1) * 64
    );
}

/// Quantizes one frame; returns its codes and its scale.
fn quantized(kernels: Kernels, x: &[f32]) -> (Vec<u8>, f32) {
    let (mut codes, mut scale) = (vec![0; int8_frame_width(x.len())], [0.0]);
    kernels.quantize(x, x.len(), &mut codes, &mut scale);
    (codes, scale[0])
}

pub fn frames_are_quantized(kernels: Kernels) {
    check(
        (1usize..70, 1usize..5, 0u64..1000),
        |(channels, frames, seed)| {
            let x = Noise::new(seed).vec(channels * frames, 3.0);
            let width = int8_frame_width(channels);
            let (mut codes, mut scales) = (vec![0; frames * width], vec![0.0; frames]);
            kernels.quantize(&x, channels, &mut codes, &mut scales);
            for ((x, codes), &scale) in x
                .chunks_exact(channels)
                .zip(codes.chunks_exact(width))
                .zip(&scales)
            {
                let peak = x.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
                assert_same_bits(&[scale], &[peak / 127.0]);
                let codes_per_unit = 127.0 / peak;
                for (x, &code) in x.iter().zip(codes) {
                    let expected =
                        (x * codes_per_unit).round_ties_even().clamp(-127.0, 127.0) + 128.0;
                    assert_eq!(f32::from(code), expected, "{x} at a scale of {scale}");
                }
                assert!(
                    codes[channels..].iter().all(|&code| code == 128),
                    "the padding is zero"
                );
            }
        },
    );
    // Halves round to even.
    let (codes, scale) = quantized(kernels, &[127.0, 0.5, 1.5, -0.5, -2.5, 126.5]);
    assert_eq!(
        (codes.as_slice(), scale),
        (&[255, 128, 130, 128, 126, 254, 128, 128][..], 1.0)
    );
}

pub fn silent_and_broken_frames(kernels: Kernels) {
    // Silence and nearly silent frames, whose products must be zero.
    for quiet in [0.0, -0.0, 1e-45, 1e-38, 1e-36] {
        let (codes, scale) = quantized(kernels, &[quiet; 21]);
        assert_eq!((codes, scale.to_bits()), (vec![128; 24], 0), "{quiet:e}");
    }
    for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in [0, 15, 16, 20] {
            let mut x = [1.0; 21];
            x[at] = broken;
            let scalar = quantized(Kernels::scalar(), &x);
            let (codes, scale) = quantized(kernels, &x);
            assert!(scale.is_nan(), "{broken} at {at}");
            assert_eq!(codes, scalar.0, "{broken} at {at}");
        }
    }
    let (codes, scale) = quantized(kernels, &[f32::MAX, -f32::MAX, 0.0, f32::MAX / 2.0]);
    assert_eq!(
        (codes.as_slice(), scale),
        (&[255, 1, 128, 192][..], f32::MAX / 127.0)
    );
}
