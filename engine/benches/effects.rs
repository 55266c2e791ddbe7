//! Cost of each effect with its defaults, and of a rig of several, in blocks of 64 samples at 48 kHz,
//! both channels.

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ondes_engine::effects::{EFFECTS, effect};
use ondes_engine::realtime::Setup;
use ondes_engine::rig::blocks::{Arrangement, Block, BlockSettings, Blocks, Side, Slot};
use ondes_engine::rig::branches::Lane;

const SAMPLE_RATE: u32 = 48_000;
const BLOCK: usize = 64;
/// Effects of the rig.
const RIG: [&str; 5] = ["compressor", "equalizer", "chorus", "delay", "limiter"];

/// A tone that no effect takes for silence, for one side.
fn sound(step: f32) -> [f32; BLOCK] {
    std::array::from_fn(|n| 0.3 * (n as f32 * step).sin())
}

fn effects(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("effects");
    group.throughput(Throughput::Elements(BLOCK as u64));
    for kind in EFFECTS {
        let mut effect = (kind.new)(SAMPLE_RATE);
        let mut values = kind.defaults();
        // A flat equaliser would cost nothing.
        if kind.id == "equalizer" {
            let gains = kind.parameters.iter().zip(&mut values);
            gains
                .filter(|(parameter, _)| parameter.id.starts_with("gain"))
                .for_each(|(_, gain)| *gain = 3.0);
        }
        group.bench_function(BenchmarkId::from_parameter(kind.id), |bencher| {
            bencher.iter(|| {
                let (mut left, mut right) = (sound(0.05), sound(0.06));
                effect.set(&values, 120.0);
                effect.process(&mut left, &mut right);
                (left, right)
            });
        });
    }
    let slots = (1..).zip(RIG).map(|(number, id)| {
        let kind = effect(id).expect("an effect");
        let settings = Arc::new(BlockSettings::new(kind.mix, kind.defaults()));
        let block = Some(Box::new(Block::new(
            (kind.new)(SAMPLE_RATE),
            settings,
            SAMPLE_RATE,
        )));
        let lane = Lane::Whole;
        Slot {
            number,
            lane,
            block,
        }
    });
    let setup = Setup {
        sample_rate: SAMPLE_RATE,
        max_block: BLOCK,
    };
    let sides = [vec![], slots.collect()];
    let mut blocks = Blocks::new(Arrangement { sides }, Arc::default(), setup);
    group.bench_function("rig", |bencher| {
        bencher.iter(|| {
            let (mut left, mut right) = (sound(0.05), sound(0.06));
            blocks.set(120.0);
            blocks.process(Side::After, &mut left, &mut right);
            (left, right)
        });
    });
    group.finish();
}

criterion_group!(benches, effects);
criterion_main!(benches);
