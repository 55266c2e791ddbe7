//! Forward and backward pass of each loss term on eight seconds of sound at 48 kHz, one thread.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ondes_training::loss::{LossWeights, WeightedLoss};
use tch::{Device, Kind, Tensor};

const ROWS: i64 = 8;
const SAMPLES: i64 = 48_000;
const TERMS: [&str; 12] = [
    "esr",
    "mse",
    "l1",
    "pre_emphasis",
    "a_weighting",
    "stft",
    "band_stft",
    "mel",
    "loudness",
    "dc",
    "spectral",
    "spectral_pre_emphasis",
];

fn terms(criterion: &mut Criterion) {
    tch::set_num_threads(1);
    let noise = || Tensor::randn([ROWS, SAMPLES], (Kind::Float, Device::Cpu)) * 0.1;
    let (mut sound, target) = (noise().set_requires_grad(true), noise());
    let mut group = criterion.benchmark_group("loss");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Elements((ROWS * SAMPLES) as u64));
    for term in TERMS {
        let weights: LossWeights =
            serde_json::from_value(serde_json::json!({ term: 1.0 })).expect("a term");
        let loss = WeightedLoss::new(weights, 48_000, &[], Device::Cpu);
        group.bench_function(term, |bencher| {
            bencher.iter(|| {
                sound.zero_grad();
                loss.between(&sound, &target).total.backward();
            });
        });
    }
}

criterion_group!(benches, terms);
criterion_main!(benches);
