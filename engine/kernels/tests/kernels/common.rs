//! Helpers of the tests.

use ondes_kernels::Kernels;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Runs a test with a variant, if this CPU has it.
pub fn with(variant: &str, test: fn(Kernels)) {
    match Kernels::available()
        .into_iter()
        .find(|kernels| kernels.name() == variant)
    {
        Some(kernels) => test(kernels),
        None => eprintln!("this CPU has no {variant}"),
    }
}

/// Runs a test with a variant of products in eight bits, if this CPU has it.
pub fn with_int8(variant: &str, test: fn(Kernels)) {
    match Kernels::available_for_int8()
        .into_iter()
        .find(|kernels| kernels.int8_name() == variant)
    {
        Some(kernels) => test(kernels),
        None => eprintln!("this CPU has no {variant}"),
    }
}

/// Checks a property for random values of a strategy.
pub fn check<T: Strategy>(strategy: T, property: impl Fn(T::Value)) {
    let config = Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&strategy, |value| {
            property(value);
            Ok(())
        })
        .unwrap();
}

/// Deterministic random values.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15))
    }

    /// Uniform in −scale..scale.
    pub fn value(&mut self, scale: f32) -> f32 {
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        ((z >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * scale
    }

    pub fn vec(&mut self, len: usize, scale: f32) -> Vec<f32> {
        (0..len).map(|_| self.value(scale)).collect()
    }
}

/// Panics unless the values have the same bits; all NaN count as equal.
#[track_caller]
pub fn assert_same_bits(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
        assert!(
            same,
            "at {at}: {found:e} is not {expected:e} ({:x}, {:x})",
            found.to_bits(),
            expected.to_bits()
        );
    }
}

/// Panics unless each value is within `relative` of its expectation, or within `absolute`.
#[track_caller]
pub fn assert_close(found: &[f32], expected: &[f64], relative: f64, absolute: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - expected).abs();
        assert!(
            error <= relative * expected.abs() + absolute,
            "at {at}: {found:e} for {expected:e}, off by {error:e}"
        );
    }
}

pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}
