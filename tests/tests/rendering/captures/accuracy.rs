//! Random files of every format: native f32 is within 1e-5 relative RMS of f64, and equal to the
//! bit in steps of any length.

use ondes_engine::Kernels;
use ondes_engine::executor::Execute;
use ondes_engine::model::{Model, import};
use ondes_engine::native::Executor;
use ondes_tests::{random_splits, seeded_rng};
use rand::RngExt;
use serde_json::Value;

use super::generate::Generator;
use super::reference;

/// Returns a sweep, bursts of noise, and decaying guitar-like chords.
pub fn playing(length: usize) -> Vec<f32> {
    let mut random = seeded_rng(17);
    let third = length / 3;
    let sample = |n: usize| {
        let t = (n % third) as f32 / 48_000.0;
        let within = (n % third) as f32 / third as f32;
        match n / third {
            0 => 0.7 * (std::f32::consts::TAU * (30.0 + 40_000.0 * within * within) * t).sin(),
            1 => {
                let burst = if ((within * 8.0) as usize).is_multiple_of(2) {
                    0.8
                } else {
                    0.01
                };
                burst * random.random_range(-1.0..1.0)
            }
            _ => {
                let since = t % 0.04;
                let tone =
                    |hz: f32| (std::f32::consts::TAU * hz * since).sin() * (-since * 40.0).exp();
                0.4 * (tone(110.0) + tone(165.0) + 0.7 * tone(1_320.0))
            }
        }
    };
    (0..length).map(sample).collect()
}

/// Runs a method over its inputs, one signal per port, in steps of the given lengths.
pub fn play(model: &Model, method: &str, inputs: &[Vec<f32>], steps: &[usize]) -> Vec<f32> {
    let block = model.method(method).expect("it is there").block;
    let most = steps.iter().max().expect("a step") / block;
    let mut executor = Executor::new(model, method, Kernels::detect(), 2, most).expect("it fits");
    let mut output = Vec::new();
    let mut at = 0;
    for &length in steps {
        executor.begin(&[1], length / block);
        for (port, input) in inputs.iter().enumerate() {
            executor
                .input(port)
                .copy_from_slice(&input[at..at + length]);
        }
        executor.run();
        output.extend_from_slice(executor.output(0));
        at += length;
    }
    output
}

pub fn relative_rms(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let difference: f64 = found
        .iter()
        .zip(expected)
        .map(|(a, b)| (f64::from(*a) - b).powi(2))
        .sum();
    let power: f64 = expected.iter().map(|b| b * b).sum();
    (difference / power.max(1e-20)).sqrt()
}

/// Asserts that a file is read and matches its reference.
pub fn check(file: &Value, method: &str, expected: &Value, label: &str) {
    let model = import::parse(file.to_string().as_bytes())
        .unwrap_or_else(|fault| panic!("{label}: {fault}"))
        .model;
    let length = 3 * 2_048;
    let ports = model.method(method).expect("it is there").inputs.len();
    let mut inputs = vec![playing(length)];
    inputs.extend((1..ports).map(|knob| {
        (0..length)
            .map(|n| 0.5 + 0.4 * (n as f32 * 1e-3 * knob as f32).sin())
            .collect()
    }));
    let wide: Vec<Vec<f64>> = inputs
        .iter()
        .map(|input| input.iter().map(|x| f64::from(*x)).collect())
        .collect();
    let expected = reference::run(expected, &wide[0], &wide[1..]);
    let whole = play(&model, method, &inputs, &[length]);
    let error = relative_rms(&whole, &expected);
    assert!(error <= 1e-5, "{label}: {error:e}");
    let block = model.method(method).expect("it is there").block;
    for step in [32, 64, 512].into_iter().filter(|step| step % block == 0) {
        let steps = vec![step; length / step];
        assert!(
            whole == play(&model, method, &inputs, &steps),
            "{label} in steps of {step}"
        );
    }
    let steps: Vec<usize> = random_splits(3, length / block, 20)
        .iter()
        .map(|blocks| blocks * block)
        .collect();
    assert!(
        whole == play(&model, method, &inputs, &steps),
        "{label} in random steps"
    );
}

/// Number of files per format.
fn each(seeds: std::ops::Range<u64>, make: impl Fn(&mut Generator) -> Value) {
    for seed in seeds {
        let file = make(&mut Generator::new(seed));
        check(&file, "forward", &file, &format!("seed {seed}"));
    }
}

#[test]
fn wavenets() {
    each(0..60, |generator| generator.wavenet(1));
}

#[test]
fn lstms() {
    each(0..10, Generator::lstm);
}

#[test]
fn conv_nets() {
    each(0..12, Generator::convnet);
}

#[test]
fn impulse_responses() {
    each(0..4, |generator| generator.linear(300));
    each(4..6, |generator| generator.linear(3_000));
}

#[test]
fn aida_x_and_rtneural() {
    each(0..40, Generator::keras);
}

#[test]
fn proteus() {
    each(0..10, Generator::proteus);
}

#[test]
fn every_size_of_a_container() {
    let file = Generator::new(5).container(3);
    let submodel = |index: usize| &file["config"]["submodels"][index]["model"];
    check(&file, "forward", submodel(2), "the whole");
    check(&file, "forward.size1", submodel(0), "the smallest");
    check(&file, "forward.size2", submodel(1), "the middle");
    let file = Generator::new(6).container(2);
    check(
        &file,
        "forward.lite",
        &file["config"]["submodels"][0]["model"],
        "the lite one",
    );
}
