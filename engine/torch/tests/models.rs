//! Native f32 and libtorch agree within 1e-5 relative RMS on random input, for every bundled model.

mod common;

use common::{native, relative_rms, torch};
use ondes_engine::Kernels;
use ondes_engine::model::compression::{Scaling, WeightPrecision};
use ondes_engine::model::{Model, file};
use ondes_tests::{bundled_models, seeded_rng};
use rand::RngExt;

/// Returns random values for one input port within the range of a control frame.
fn control(name: &str, frames: usize, seed: u64) -> Vec<f32> {
    let mut random = seeded_rng(seed);
    let (low, high) = match name {
        "pitch" => (40.0, 90.0),
        "loudness" => (-80.0, -10.0),
        _ => (0.0, 2.0),
    };
    let mut value: f32 = random.random_range(low..high);
    let step = (high - low) / 20.0;
    let wander = (0..frames).map(|_| {
        value = (value + random.random_range(-step..step)).clamp(low, high);
        value
    });
    wander.collect()
}

fn check(model: &Model, method: &str, label: &str, bound: f64) {
    let (streams, blocks) = (2, 250);
    let plan = model.method(method).expect("it is there");
    let inputs: Vec<Vec<f32>> = plan
        .inputs
        .iter()
        .enumerate()
        .map(|(index, port)| {
            let count = streams * blocks * plan.block / port.ratio * port.channels;
            if port.ratio > 1 {
                control(&port.name, count, index as u64)
            } else {
                audio(count)
            }
        })
        .collect();
    let reference = torch(model, method, streams, &inputs);
    for kernels in Kernels::available() {
        let error = relative_rms(
            &native(model, method, kernels, streams, blocks, &inputs),
            &reference,
        );
        println!("{label} {method} with {}: {error:e}", kernels.name());
        assert!(
            error <= bound,
            "{label} {method} with {}: {error:e}",
            kernels.name()
        );
    }
}

fn audio(count: usize) -> Vec<f32> {
    let mut random = seeded_rng(9);
    (0..count).map(|_| random.random_range(-1.0..1.0)).collect()
}

#[test]
fn every_bundled_model_agrees() {
    for path in bundled_models() {
        let label = path.display().to_string();
        let model = file::read(&path).expect("bundled models are whole");
        assert!(
            std::fs::metadata(&path).expect("it was read").len() <= 4_000_000,
            "{label} is larger than 4 MB"
        );
        for method in &model.header().methods {
            check(&model, &method.name, &label, 1e-5);
        }
    }
}

/// Both executors use the same 8-bit weights, but libtorch computes no products on bytes.
#[test]
fn every_bundled_model_with_8_bit_weights_agrees() {
    for path in bundled_models() {
        let label = path.display().to_string();
        let model = file::read(&path).expect("bundled models are whole");
        for (precision, bound) in [
            (WeightPrecision::Stored8, 1e-5),
            (WeightPrecision::Computed8, 2e-2),
        ] {
            let model = model
                .compressed(Scaling::default(), |_| precision)
                .expect("there are scales");
            for method in &model.header().methods {
                check(
                    &model,
                    &method.name,
                    &format!("{label} {precision:?}"),
                    bound,
                );
            }
        }
    }
}
