//! Cost of each effect with its defaults, and of a rig of a model and several effects beside its parts
//! alone, in blocks of 64 samples at 48 kHz, both channels.

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ondes_engine::effects::{EFFECTS, Effect, EffectParameter, effect};
use ondes_engine::model::file;
use ondes_engine::pipeline::{InputChannels, PipelineOptions};
use ondes_engine::realtime::{Driver, LoadStatus, PlayableModel, SessionController, Setup};
use ondes_engine::rig::blocks::{Arrangement, Block, BlockSettings, Blocks, Side, Slot};
use ondes_engine::rig::branches::Lane;
use ondes_engine::rig::model_effect::ModelEffect;

const SAMPLE_RATE: u32 = 48_000;
const BLOCK: usize = 64;
/// Effects of the rig, behind *Crunch*.
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
    group.finish();
}

/// The same effects and a model: by hand, one after the other, and as blocks.
fn rig(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rig");
    group.throughput(Throughput::Elements(BLOCK as u64));
    let setup = Setup {
        sample_rate: SAMPLE_RATE,
        max_block: BLOCK,
    };
    let effects = || RIG.map(|id| effect(id).expect("an effect"));
    let crunch = || {
        let controller = SessionController::new();
        controller.set_driver(Driver::Inline);
        let read = || {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/models/crunch.ondes");
            let model = file::read(path.as_ref()).map_err(|error| error.to_string())?;
            let options = PipelineOptions {
                channels: InputChannels::Stereo,
                ..PipelineOptions::default()
            };
            Ok(Arc::new(PlayableModel::new(Arc::new(model), options)?) as _)
        };
        controller.load(Box::new(read), &[]);
        while controller.status() == LoadStatus::Loading {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let session = controller.activate(setup).expect("it plays");
        (session, controller)
    };

    let (mut session, _controller) = crunch();
    let mut parts = effects().map(|kind| ((kind.new)(SAMPLE_RATE), kind.defaults()));
    group.bench_function("parts", |bencher| {
        bencher.iter(|| {
            let (left, right) = (sound(0.05), sound(0.06));
            let (mut out_left, mut out_right) = ([0.0; BLOCK], [0.0; BLOCK]);
            let mut output: [&mut [f32]; 2] = [&mut out_left, &mut out_right];
            session.process(&[], &[&left, &right], &mut output);
            for (effect, values) in &mut parts {
                effect.set(values, 120.0);
                effect.process(&mut out_left, &mut out_right);
            }
            (out_left, out_right)
        });
    });

    let (session, _controller) = crunch();
    let model: Box<dyn Effect> = Box::new(ModelEffect::new(session, Vec::new(), setup));
    let gain = [EffectParameter::new(
        "gain",
        "Gain",
        " dB",
        [-24.0, 24.0],
        0.0,
    )];
    let effects = effects().map(|kind| {
        let effect = (kind.new)(SAMPLE_RATE);
        (effect, kind.mix, kind.parameters, kind.defaults())
    });
    let all = std::iter::once((model, 1.0, &gain[..], vec![0.0])).chain(effects);
    let slots = (1..)
        .zip(all)
        .map(|(number, (effect, mix, parameters, values))| {
            let settings = Arc::new(BlockSettings::new(mix, parameters, &values));
            Slot {
                number,
                lane: Lane::Whole,
                block: Some(Box::new(Block::new(effect, settings, SAMPLE_RATE))),
            }
        });
    let sides = [vec![], slots.collect()];
    let mut blocks = Blocks::new(Arrangement { sides }, Arc::default(), setup);
    group.bench_function("blocks", |bencher| {
        bencher.iter(|| {
            let (mut left, mut right) = (sound(0.05), sound(0.06));
            blocks.set(120.0);
            blocks.process(Side::After, &mut left, &mut right);
            (left, right)
        });
    });
    group.finish();
}

criterion_group!(benches, effects, rig);
criterion_main!(benches);
