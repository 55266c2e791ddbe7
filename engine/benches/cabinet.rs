//! Cost of a cabinet, compared with a direct convolution, and of the reverb, in blocks of 64
//! samples at 48 kHz.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ondes_engine::Kernels;
use ondes_engine::dsp::cabinet::{Cabinet, Response};
use ondes_engine::dsp::reverb::{DEFAULT_TIME_S, Reverb};
use ondes_engine::random::Lcg;

const SAMPLE_RATE: u32 = 48_000;
const BLOCK: usize = 64;

fn response(seconds: f64) -> Vec<f32> {
    let mut random = Lcg::new(1);
    (0..(seconds * f64::from(SAMPLE_RATE)) as usize)
        .map(|_| (0.5 * random.next_signed()) as f32)
        .collect()
}

fn cabinets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cabinet");
    group.throughput(Throughput::Elements(BLOCK as u64));
    let kernels = Kernels::detect();
    let sound: Vec<f32> = (0..BLOCK).map(|n| 0.3 * (n as f32 * 0.05).sin()).collect();
    for seconds in [0.1, 1.0, 10.0] {
        let taps = response(seconds);
        let whole = Response::new(vec![taps.clone()], SAMPLE_RATE).expect("a valid response");
        let mut cabinet =
            Cabinet::new(&whole, SAMPLE_RATE, kernels).expect("no conversion is needed");
        let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
        group.bench_function(
            BenchmarkId::new("partitioned", format!("{seconds} s")),
            |bencher| {
                // Fills the history first.
                (0..2 * taps.len() / BLOCK)
                    .for_each(|_| cabinet.process([&sound; 2], [&mut left, &mut right], false));
                bencher.iter(|| cabinet.process([&sound; 2], [&mut left, &mut right], false));
            },
        );
        let past = vec![0.1; taps.len() + BLOCK];
        group.bench_function(
            BenchmarkId::new("plain", format!("{seconds} s")),
            |bencher| {
                bencher.iter(|| {
                    left.fill(0.0);
                    for (delay, &tap) in taps.iter().enumerate() {
                        kernels.multiply_add(&mut left, &past[taps.len() - delay..][..BLOCK], tap);
                    }
                });
            },
        );
    }
    group.finish();
}

fn reverb(criterion: &mut Criterion) {
    let mut reverb = Reverb::new(SAMPLE_RATE);
    reverb.set(0.3, DEFAULT_TIME_S);
    let sound: Vec<f32> = (0..BLOCK).map(|n| 0.3 * (n as f32 * 0.05).sin()).collect();
    let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
    criterion.bench_function("reverb", |bencher| {
        bencher.iter(|| {
            left.copy_from_slice(&sound);
            right.copy_from_slice(&sound);
            reverb.process(&mut left, &mut right);
        });
    });
}

criterion_group!(benches, cabinets, reverb);
criterion_main!(benches);
