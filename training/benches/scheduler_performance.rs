//! Learning rates of the schedules over a run of 10,000 steps.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ondes_training::schedule::{PlateauState, ScheduleConfig};

const STEPS: u64 = 10_000;

fn schedules(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schedule");
    group.throughput(Throughput::Elements(STEPS));
    for name in ScheduleConfig::NAMES {
        let schedule = ScheduleConfig::named(name).expect("a schedule");
        let mut plateau = PlateauState::default();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut sum = 0.0;
                for step in 0..STEPS {
                    if let (ScheduleConfig::Plateau(config), true) =
                        (&schedule, step.is_multiple_of(100))
                    {
                        plateau.validated(config, 1.0 / (step + 1) as f64);
                    }
                    sum += schedule.share(black_box(step), STEPS, 100, &plateau);
                }
                sum
            });
        });
    }
}

criterion_group!(benches, schedules);
criterion_main!(benches);
