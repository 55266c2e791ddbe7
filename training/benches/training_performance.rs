//! Whole steps of dense networks, for each optimiser:
//! `cargo bench -p ondes-training --bench training_performance`. 100 million weights need about 6
//! GB; `-- "100 M"` selects a size.

use std::time::Duration;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use ondes_training::bench::{SyntheticNetwork, trainer};
use ondes_training::optimizer::OptimizerConfig;

fn steps(criterion: &mut Criterion) {
    for (name, weights) in [
        ("1 M", 1_000_000),
        ("10 M", 10_000_000),
        ("100 M", 100_000_000),
    ] {
        for rows in [32, 128] {
            let mut group = criterion.benchmark_group(format!("{name}, batch {rows}"));
            group.sampling_mode(SamplingMode::Flat).sample_size(10);
            group
                .warm_up_time(Duration::from_millis(200))
                .measurement_time(Duration::from_secs(1));
            group.throughput(Throughput::Elements(rows));
            for optimizer in OptimizerConfig::NAMES {
                group.bench_function(BenchmarkId::from_parameter(optimizer), |bencher| {
                    let network = SyntheticNetwork::Dense { weights };
                    let mut trainer =
                        trainer(network, rows as usize, optimizer, 0).expect("a trainer");
                    bencher.iter(|| trainer.advance().expect("a step"));
                });
            }
        }
    }
}

criterion_group!(benches, steps);
criterion_main!(benches);
