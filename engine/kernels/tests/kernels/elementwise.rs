//! Activations and arithmetic.

use ondes_kernels::{Activation, Kernels};

use crate::common::{Noise, assert_close, assert_same_bits, check, sigmoid, softplus};

/// Reference of an activation, and the inputs for which its relative error is bounded.
struct Reference {
    activation: Activation,
    function: fn(f64) -> f64,
    range: (f32, f32),
    relative: f64,
}

/// All activations, with some parameters.
const ACTIVATIONS: [Activation; Activation::TAGS.len()] = [
    Activation::Tanh,
    Activation::Sigmoid,
    Activation::Relu,
    Activation::LeakyRelu { slope: 0.2 },
    Activation::HardTanh,
    Activation::LeakyHardTanh {
        min: -0.5,
        max: 2.0,
        min_slope: 0.25,
        max_slope: 0.125,
    },
    Activation::HardSwish,
    Activation::Softsign,
    Activation::Silu,
    Activation::FastTanh,
    Activation::Softplus,
    Activation::Exp,
    Activation::ExpSigmoid,
];

fn reference(activation: Activation) -> Reference {
    let (function, range, relative): (fn(f64) -> f64, _, _) = match activation {
        Activation::Tanh => (f64::tanh, (-12.0, 12.0), 3e-7),
        Activation::Sigmoid => (sigmoid, (-87.0, 90.0), 3e-7),
        Activation::Relu => (|x| x.max(0.0), (-9.0, 9.0), 0.0),
        Activation::LeakyRelu { .. } => (
            |x| if x < 0.0 { x * f64::from(0.2f32) } else { x },
            (-9.0, 9.0),
            1e-7,
        ),
        Activation::HardTanh => (|x| x.clamp(-1.0, 1.0), (-3.0, 3.0), 0.0),
        Activation::LeakyHardTanh { .. } => (
            |x| x.clamp(-0.5, 2.0) + 0.25 * (x + 0.5).min(0.0) + 0.125 * (x - 2.0).max(0.0),
            (-9.0, 9.0),
            2e-7,
        ),
        Activation::HardSwish => (
            |x| x.max(-3.0) * (x + 3.0).clamp(0.0, 6.0) / 6.0,
            (-5.0, 5.0),
            3e-7,
        ),
        Activation::Softsign => (
            |x| {
                if x.is_infinite() {
                    x.signum()
                } else {
                    x / (1.0 + x.abs())
                }
            },
            (-30.0, 30.0),
            2e-7,
        ),
        Activation::Silu => (
            |x| if x < -200.0 { 0.0 } else { x * sigmoid(x) },
            (-80.0, 90.0),
            4e-7,
        ),
        Activation::FastTanh => (
            |x| {
                let (sign, a) = (x.signum(), x.abs().min(1e8));
                let numerator = a
                    * (2.45550750702956 * (1.0 + a)
                        + (0.893229853513558 + 0.821226666969744 * a) * a * a);
                let stretched = a + 0.814642734961073 * a * a;
                sign * numerator / (2.44506634652299 + (2.44506634652299 + a * a) * stretched)
            },
            (-12.0, 12.0),
            5e-7,
        ),
        Activation::Softplus => (softplus, (-87.0, 90.0), 3e-7),
        Activation::Exp => (f64::exp, (-87.0, 88.7), 2e-7),
        Activation::ExpSigmoid => (
            |x| 2.0 * (-std::f64::consts::LN_10 * softplus(-x)).exp() + 1e-7,
            (-60.0, 60.0),
            4e-7,
        ),
    };
    Reference {
        activation,
        function,
        range,
        relative,
    }
}

fn references() -> impl Iterator<Item = Reference> {
    ACTIVATIONS.into_iter().map(reference)
}

impl Reference {
    fn apply(&self, kernels: Kernels, x: &mut [f32]) {
        kernels.activate(self.activation, x);
    }
}

const SPECIAL: [f32; 22] = [
    0.0,
    -0.0,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    1e-20,
    1.0,
    -1.0,
    20.0,
    -20.0,
    87.5,
    88.8,
    -87.5,
    -88.8,
    -104.5,
    1e9,
    -1e9,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
];

pub fn accuracy(kernels: Kernels) {
    for reference in references() {
        let (low, high) = reference.range;
        let mut x: Vec<f32> = (0..40_000)
            .map(|i| low + (high - low) * i as f32 / 39_999.0)
            .collect();
        // Small results count relatively too: magnitudes from 10⁻³⁰ up.
        x.extend(
            (0..6000).map(|i| {
                (if i % 2 == 0 { 1.0 } else { -1.0 }) * 10f32.powf(-30.0 + i as f32 / 200.0)
            }),
        );
        let expected: Vec<f64> = x
            .iter()
            .map(|&x| (reference.function)(f64::from(x)))
            .collect();
        let mut worst = 0.0f64;
        let mut y = x.clone();
        reference.apply(kernels, &mut y);
        for ((&x, &y), &expected) in x.iter().zip(&y).zip(&expected) {
            let error = ((f64::from(y) - expected) / expected).abs();
            if expected != 0.0 {
                worst = worst.max(error);
                assert!(
                    error <= reference.relative,
                    "{:?}({x:e}) = {y:e} for {expected:e}",
                    reference.activation
                );
            } else {
                assert_eq!(y, 0.0);
            }
        }
        eprintln!(
            "{:?}: relative error at most {worst:.2e}",
            reference.activation
        );
    }
}

pub fn special_values(kernels: Kernels) {
    for reference in references() {
        let mut y = SPECIAL;
        reference.apply(kernels, &mut y);
        for (&x, &y) in SPECIAL.iter().zip(&y) {
            let expected = (reference.function)(f64::from(x)) as f32;
            // A factor of x, as in silu, scales the last bit of a subnormal number.
            let tiny = 2e-45 * f64::from(x.abs().clamp(1.0, 128.0));
            let close = (f64::from(y) - f64::from(expected)).abs()
                <= 4e-7 * f64::from(expected).abs() + tiny;
            assert!(
                y == expected || close,
                "{:?}({x:e}) = {y:e}, not {expected:e}",
                reference.activation
            );
        }
        let mut nan = [f32::NAN, 1.0, -f32::NAN];
        reference.apply(kernels, &mut nan);
        assert!(
            nan[0].is_nan() && !nan[1].is_nan() && nan[2].is_nan(),
            "{:?} of NaN: {nan:?}",
            reference.activation
        );
    }
    let mut zeros = [0.0, -0.0];
    kernels.activate(Activation::Tanh, &mut zeros);
    assert_same_bits(&zeros, &[0.0, -0.0]);

    let mut x = SPECIAL;
    kernels.snake(&mut x, &[0.75]);
    for (&x, &y) in SPECIAL.iter().zip(&x) {
        assert!(
            x.is_infinite() || (y - x).abs() <= 1.34 + x.abs() * 1e-7,
            "snake({x:e}) = {y:e}"
        );
    }
}

pub fn any_cut_of_a_slice(kernels: Kernels) {
    let x = Noise::new(1).vec(75, 9.0);
    for reference in references() {
        let mut whole = x.clone();
        reference.apply(kernels, &mut whole);
        for cut in 0..=x.len() {
            let mut parts = x.clone();
            let (left, right) = parts.split_at_mut(cut);
            reference.apply(kernels, left);
            reference.apply(kernels, right);
            assert_same_bits(&parts, &whole);
        }
    }
}

pub fn same_bits(kernels: Kernels) {
    // All exponents and both signs, with NaN and infinities.
    let x: Vec<f32> = (0..=u32::MAX)
        .step_by(0x0000_9E37)
        .map(f32::from_bits)
        .chain(SPECIAL)
        .collect();
    for reference in references() {
        let (mut found, mut expected) = (x.clone(), x.clone());
        reference.apply(kernels, &mut found);
        reference.apply(Kernels::scalar(), &mut expected);
        assert_same_bits(&found, &expected);
    }
    let alpha: Vec<f32> = x.iter().rev().copied().collect();
    let (mut found, mut expected) = (x.clone(), x.clone());
    kernels.snake(&mut found, &alpha);
    Kernels::scalar().snake(&mut expected, &alpha);
    assert_same_bits(&found, &expected);
    let (mut found, mut expected) = (x.clone(), x.clone());
    kernels.prelu(&mut found, &alpha);
    Kernels::scalar().prelu(&mut expected, &alpha);
    assert_same_bits(&found, &expected);
}

pub fn arithmetic(kernels: Kernels) {
    check((0usize..70, 0u64..1000), |(len, seed)| {
        let mut noise = Noise::new(seed);
        let (x, y) = (noise.vec(len, 3.0), noise.vec(len, 3.0));
        let (gain, offset) = (noise.value(2.0), noise.value(2.0));

        let expect = |apply: &dyn Fn(&mut [f32]), reference: &dyn Fn(f32, f32) -> f32| {
            let mut found = y.clone();
            apply(&mut found);
            let expected: Vec<f32> = y.iter().zip(&x).map(|(&y, &x)| reference(y, x)).collect();
            assert_same_bits(&found, &expected);
        };
        expect(&|y| kernels.add(y, &x), &|y, x| y + x);
        expect(&|y| kernels.multiply(y, &x), &|y, x| y * x);
        expect(&|y| kernels.multiply_add(y, &x, gain), &|y, x| {
            x.mul_add(gain, y)
        });
        expect(&|y| kernels.scale_offset(y, gain, offset), &|y, _| {
            y.mul_add(gain, offset)
        });
        expect(
            &|y| kernels.activate(Activation::LeakyRelu { slope: 0.1 }, y),
            &|y, _| {
                if y < 0.0 { y * 0.1 } else { y }
            },
        );
    });
}

pub fn snake_with_any_channels(kernels: Kernels) {
    check(
        (1usize..40, 0usize..5, 0u64..1000),
        |(channels, frames, seed)| {
            let mut noise = Noise::new(seed);
            let x = noise.vec(channels * frames, 10.0);
            let mut alpha = noise.vec(channels, 4.0);
            alpha[channels / 2] = 0.0;
            let expected: Vec<f64> = x
                .iter()
                .zip(alpha.iter().cycle())
                .map(|(&x, &alpha)| {
                    let (x, argument, alpha) =
                        (f64::from(x), f64::from(alpha * x), f64::from(alpha));
                    if alpha == 0.0 {
                        x
                    } else {
                        x + argument.sin().powi(2) / alpha
                    }
                })
                .collect();

            let mut whole = x.clone();
            kernels.snake(&mut whole, &alpha);
            for ((found, expected), alpha) in whole.iter().zip(&expected).zip(alpha.iter().cycle())
            {
                // A small α magnifies the rounding of sin².
                let tolerance =
                    2e-7 * (expected.abs() + 1.0 / f64::from(alpha.abs()).max(0.1) + 10.0);
                assert_close(&[*found], &[*expected], 0.0, tolerance);
            }

            let mut by_frame = x.clone();
            for frame in by_frame.chunks_mut(channels) {
                kernels.snake(frame, &alpha);
            }
            assert_same_bits(&by_frame, &whole);

            let mut scalar = x;
            Kernels::scalar().snake(&mut scalar, &alpha);
            assert_same_bits(&whole, &scalar);
        },
    );
}

pub fn prelu_with_any_channels(kernels: Kernels) {
    check(
        (1usize..40, 0usize..5, 0u64..1000),
        |(channels, frames, seed)| {
            let mut noise = Noise::new(seed);
            let x = noise.vec(channels * frames, 10.0);
            let slopes = noise.vec(channels, 1.0);
            let expected: Vec<f32> = x
                .iter()
                .zip(slopes.iter().cycle())
                .map(|(&x, &slope)| if x < 0.0 { x * slope } else { x })
                .collect();
            let mut found = x.clone();
            kernels.prelu(&mut found, &slopes);
            assert_same_bits(&found, &expected);
        },
    );
}
