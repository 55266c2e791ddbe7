//! The audio thread neither allocates nor frees.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ondes_engine::Kernels;
use ondes_engine::chain::{Chain, ChainSettings, TonePosition};
use ondes_engine::dsp::cabinet::{Cabinet, Response};
use ondes_engine::effects::{EFFECTS, Effect, EffectKind, EffectParameter};
use ondes_engine::model::file;
use ondes_engine::pipeline::{ControlId, ControlSource, InputChannels, Pipeline, PipelineOptions};
use ondes_engine::realtime::{
    Driver, LoadStatus, ModelFactory, PlayableModel, SessionController, Setup,
};
use ondes_engine::rig::blocks::{
    Arrangement, Block, BlockSetting, BlockSettings, Blocks, MACROS, Side, Slot,
};
use ondes_engine::rig::branches::Lane;
use ondes_engine::rig::model_effect::ModelEffect;
use ondes_engine::rig::response_effect::ResponseEffect;
use ondes_tests::allocation::{CountingAllocator, allocations, counted};
use ondes_tests::audio_models::{
    autoregressive_generator, recalling_generator, sound, untrained_codec, untrained_effect,
};
use ondes_tests::random_performance::{
    MarkedModel, MisbehavingModel, Misbehaviour, RandomPlayer, swap,
};
use ondes_tests::{
    bundled_file, bundled_models, int8_model, random_events, random_splits, untrained_instrument,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn allocations_are_counted() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))) >= 2);
}

#[test]
fn playing_does_not_allocate() {
    let on_bytes = int8_model(&file::read(&bundled_models()[0]).expect("bundled models are whole"));
    let on_floats = untrained_instrument(1);
    for (model, source) in [
        (&on_floats, ControlSource::Notes),
        (&on_floats, ControlSource::AudioInput),
        (&on_bytes, ControlSource::Notes),
    ] {
        // At 44,099 Hz conversion blocks last two seconds.
        for sample_rate in [44_099, 44_100, 48_000, 96_000] {
            let options = PipelineOptions {
                sample_rate,
                source,
                ..PipelineOptions::default()
            };
            let mut pipeline = Pipeline::new(model, &options).expect("it plays");
            let length = 100_000;
            let events = random_events(4, length as u64);
            let input: Vec<f32> = (0..length).map(|n| 0.3 * (n as f32 * 0.03).sin()).collect();
            let mut output = vec![0.0; length];
            let blocks = random_splits(5, length, 8192);
            let count = allocations(|| {
                let mut start = 0;
                let mut events = events.iter().peekable();
                for &block in &blocks {
                    while let Some(event) =
                        events.next_if(|event| event.at < (start + block) as u64)
                    {
                        assert!(pipeline.handle(*event).is_ok());
                    }
                    assert!(pipeline.set_control("room", 0.5).is_ok());
                    pipeline.process(
                        &input[start..start + block],
                        &mut output[start..start + block],
                    );
                    start += block;
                }
            });
            assert_eq!(count, 0, "{source:?} at {sample_rate} Hz");
        }
    }
}

#[test]
fn effects_and_codecs_do_not_allocate() {
    let codec = || (untrained_codec(1), "latent2.hold");
    for (spread, (model, knob)) in [
        (false, (untrained_effect(1), "drive")),
        (false, codec()),
        (true, codec()),
    ] {
        // At 44,099 Hz conversion blocks last two seconds.
        for sample_rate in [44_099, 44_100, 48_000, 96_000, 384_000] {
            let length = if sample_rate == 44_099 {
                400_000
            } else {
                60_000
            };
            let options = PipelineOptions {
                sample_rate,
                spread,
                ..PipelineOptions::default()
            };
            let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
            let input = sound(length, sample_rate);
            let mut output = vec![0.0; length];
            let blocks = random_splits(5, length, 8192);
            let count = allocations(|| {
                let mut start = 0;
                for (index, &block) in blocks.iter().enumerate() {
                    assert!(pipeline.set_control(knob, (index % 2) as f32).is_ok());
                    pipeline.process(
                        &input[start..start + block],
                        &mut output[start..start + block],
                    );
                    start += block;
                }
            });
            assert_eq!(count, 0, "{knob} at {sample_rate} Hz");
            let options = PipelineOptions {
                channels: InputChannels::Stereo,
                ..options
            };
            let mut stereo = Pipeline::new(&model, &options).expect("it plays");
            let mut right = output.clone();
            let count = allocations(|| {
                let mut start = 0;
                for &block in &blocks {
                    let range = start..start + block;
                    let sides = [&mut output[range.clone()], &mut right[range.clone()]];
                    stereo.process_stereo([&input[range.clone()]; 2], sides);
                    start += block;
                }
            });
            assert_eq!(count, 0, "{knob} in stereo at {sample_rate} Hz");
            assert!(
                output.iter().any(|sample| sample.abs() > 1e-3),
                "{knob} at {sample_rate} Hz: nothing sounds"
            );
        }
    }
}

#[test]
fn a_generator_does_not_allocate() {
    // The second one recalls what it has drawn after two seconds of its last piece.
    for (model, length) in [
        (autoregressive_generator(1), 60_000),
        (recalling_generator(1), 300_000),
    ] {
        let mut pipeline = Pipeline::new(&model, &PipelineOptions::default()).expect("it plays");
        let mut output = vec![0.0; length];
        let blocks = random_splits(5, output.len(), 8192);
        let count = allocations(|| {
            let mut rest = &mut output[..];
            for (index, &block) in blocks.iter().enumerate() {
                assert!(
                    pipeline
                        .set_control("temperature", (index % 2) as f32)
                        .is_ok()
                );
                assert!(
                    pipeline
                        .set_control("prior.seed", (index / 2).min(6) as f32)
                        .is_ok()
                );
                let (played, later) = std::mem::take(&mut rest).split_at_mut(block);
                pipeline.process(&[], played);
                rest = later;
            }
        });
        assert_eq!(count, 0);
        assert!(
            output.iter().any(|sample| sample.abs() > 1e-3),
            "nothing sounds"
        );
    }
}

#[test]
fn the_chain_around_an_oversampled_model_does_not_allocate() {
    const RATE: u32 = 48_000;
    let cabinet = |frames: usize| {
        let taps =
            (0..frames).map(|n| (-6.0 * n as f32 / frames as f32).exp() * (n as f32 * 0.7).cos());
        let response = Response::new(vec![taps.collect()], RATE).expect("a response");
        Box::new(Cabinet::new(&response, RATE, Kernels::detect()).expect("its own rate"))
    };
    let options = PipelineOptions {
        oversampling: Some(8),
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(&untrained_effect(1), &options).expect("it plays");
    let mut chain = Chain::new(RATE, 8192);
    let input = sound(120_000, RATE);
    let (mut left, mut right) = (input.clone(), input.clone());
    let mut heard = vec![0.0; 8192];
    let mut next = vec![cabinet(90_000), cabinet(300), Box::default()];
    let mut left_behind = Vec::with_capacity(next.len());
    let blocks = random_splits(5, input.len(), 8192);
    let count = allocations(|| {
        let mut start = 0;
        for (index, &block) in blocks.iter().enumerate() {
            let on = index / 8 % 2 == 0;
            let tone_position = if on {
                TonePosition::Before
            } else {
                TonePosition::After
            };
            let tone = if on { [6.0, -3.0, 12.0] } else { [0.0; 3] };
            let gains_db = if on { [6.0, -6.0] } else { [0.0; 2] };
            let gate_db = on.then_some(-50.0);
            let reverb = if on { [0.5, 2.0] } else { [0.0, 1.0] };
            chain.set(&ChainSettings {
                gate_db,
                tone,
                tone_position,
                block_dc: on,
                cabinet: 0.9,
                reverb,
                gains_db,
            });
            let place = chain.cabinet_slot();
            left_behind.extend(place.take_retired());
            if place.is_ready()
                && let Some(cabinet) = next.pop()
            {
                assert!(place.replace(cabinet).is_ok());
            }
            let (left, right) = (
                &mut left[start..start + block],
                &mut right[start..start + block],
            );
            chain.process_input(&mut [left, right]);
            pipeline.process(left, &mut heard[..block]);
            left.copy_from_slice(&heard[..block]);
            // Between mono and stereo.
            right.copy_from_slice(left);
            chain.process_output(left, right, index / 5 % 2 == 0);
            start += block;
        }
    });
    assert_eq!((count, next.len()), (0, 0));
    assert!(
        left.iter().all(|sample| sample.is_finite())
            && left.iter().any(|sample| sample.abs() > 1e-3)
    );
}

#[test]
fn blocks_do_not_allocate_while_they_play_come_and_go() {
    const RATE: u32 = 48_000;
    let new = |number: u64, kind: &EffectKind| {
        let settings = Arc::new(BlockSettings::new(
            kind.mix,
            kind.parameters,
            &kind.defaults(),
        ));
        let block = Some(Box::new(Block::new((kind.new)(RATE), settings, RATE)));
        let lane = Lane::Whole;
        Slot {
            number,
            lane,
            block,
        }
    };
    let mut all: Vec<Slot> = (1..)
        .zip(EFFECTS)
        .map(|(number, kind)| new(number, kind))
        .collect();
    // A model and an impulse response.
    let controller = SessionController::new();
    controller.set_driver(Driver::Inline);
    let read = || {
        let model = file::read(&bundled_file("crunch")).expect("bundled models are whole");
        Ok(Arc::new(PlayableModel::new(
            Arc::new(model),
            PipelineOptions::default(),
        )?) as _)
    };
    controller.load(Box::new(read), &[]);
    while controller.status() == LoadStatus::Loading {
        std::thread::sleep(Duration::from_millis(1));
    }
    let setup = Setup {
        sample_rate: RATE,
        max_block: 480,
    };
    let session = controller.activate(setup).expect("it plays");
    let gain = ControlId::new("Gain");
    let response = Response::new(vec![vec![1.0, 0.5, 0.25]], RATE).expect("a response");
    let cabinet = Cabinet::new(&response, RATE, Kernels::detect()).expect("it plays");
    let parameters = ["gain", "Gain"].map(|id| EffectParameter::new(id, id, "", [0.0, 10.0], 0.0));
    let settings = Arc::new(BlockSettings::new(1.0, &parameters, &[0.0, 5.0]));
    let files: [Box<dyn Effect>; 2] = [
        Box::new(ModelEffect::new(session, vec![gain], setup)),
        Box::new(ResponseEffect::new(cabinet, 480)),
    ];
    for effect in files {
        let block = Some(Box::new(Block::new(effect, settings.clone(), RATE)));
        all.push(Slot {
            number: all.len() as u64 + 1,
            lane: Lane::Whole,
            block,
        });
    }
    let count = all.len() as u64;
    let sides = [vec![], all];
    let mut blocks = Blocks::new(Arrangement { sides }, Arc::default(), setup);
    // All of them the other way round, half of them before the model, and some in branches.
    let known = |number| Slot {
        number,
        lane: match number {
            5 => Lane::First,
            6 | 7 => Lane::Second,
            _ => Lane::Whole,
        },
        block: None,
    };
    let sides = [
        (1..=count / 2).rev().map(known).collect(),
        (count / 2 + 1..=count).rev().map(known).collect(),
    ];
    let mut next = Some(Box::new(Arrangement { sides }));
    let mut sound = vec![0.0; 480 * 200];
    for (n, sample) in sound.iter_mut().enumerate() {
        *sample = 0.2 * (n as f32 * 0.03).sin();
    }
    let mut right = sound.clone();
    let mut last = None;
    let count = allocations(|| {
        for (index, (left, right)) in sound.chunks_mut(480).zip(right.chunks_mut(480)).enumerate() {
            if index == 50
                && let Some(next) = next.take()
            {
                blocks.arrange(next);
            }
            // Its gain, and that of the model.
            settings.set(BlockSetting::Value(0), (index % 7) as f32);
            settings.set(BlockSetting::Value(1), (index % 9) as f32);
            settings.turn_by(BlockSetting::Value(1), Some(index % 9));
            blocks.turn([(index % 5) as f32 / 4.0; MACROS]);
            blocks.set(90.0 + index as f32);
            blocks.process(Side::Before, left, right);
            blocks.process(Side::After, left, right);
            if last.is_none() {
                last = blocks.take_last();
            }
        }
    });
    assert_eq!(count, 0);
    assert!(last.is_some() && !blocks.is_empty(Side::Before));
    assert!(sound.iter().all(|sample| sample.is_finite()));
    assert!(sound[90_000..].iter().any(|sample| sample.abs() > 1e-3));
}

#[test]
fn sleeping_and_waking_do_not_allocate() {
    let wind = bundled_models().swap_remove(1);
    let model = file::read(&wind).expect("bundled models are whole");
    let options = PipelineOptions {
        source: ControlSource::AudioInput,
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
    let input: Vec<f32> = (0..9_600).map(|n| 0.3 * (n as f32 * 0.03).sin()).collect();
    let mut output = [0.0; 480];
    let mut sounding = [0; 3];
    let count = allocations(|| {
        for (part, sounding) in sounding.iter_mut().enumerate() {
            for block in 0..300 {
                let from = block * 480 % 9_600;
                let input: &[f32] = if part == 1 {
                    &[]
                } else {
                    &input[from..from + 480]
                };
                pipeline.process(input, &mut output);
            }
            *sounding = pipeline.sounding();
        }
    });
    assert_eq!((count, sounding), (0, [1, 0, 1]));
}

/// Stops the player when dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Plays a session on a thread of its own at twice real time while `meanwhile` runs. Returns the
/// number of allocations and deallocations in its callbacks.
fn allocations_while(
    controller: &SessionController,
    setup: Setup,
    meanwhile: impl FnOnce(),
) -> usize {
    let session = controller.activate(setup).expect("a sound setup");
    let enough = AtomicBool::new(false);
    let speed = 2.0 * f64::from(setup.sample_rate);
    std::thread::scope(|scope| {
        let audio = scope.spawn(|| {
            // Some blocks exceed the maximum and are split.
            let mut player = RandomPlayer::new(session, 7, 3 * setup.max_block);
            let begun = Instant::now();
            let mut heard = false;
            while !enough.load(Ordering::Relaxed) {
                heard |= player.play();
                let due = Duration::from_secs_f64(player.position() as f64 / speed);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
            }
            (counted(), heard)
        });
        // The player also ends if this panics.
        let stop = Stop(&enough);
        meanwhile();
        drop(stop);
        let (broken, heard) = audio.join().expect("the player plays to its end");
        assert!(heard, "a silent session shows nothing");
        broken
    })
}

#[test]
fn sessions_do_not_allocate_while_models_change() {
    let bundled = bundled_models()
        .into_iter()
        .map(|path| file::read(&path).expect("bundled models are whole"));
    let models: Vec<_> = [
        untrained_instrument(1),
        untrained_effect(2),
        untrained_codec(3),
    ]
    .into_iter()
    .chain(bundled)
    .map(Arc::new)
    .collect();
    for (sample_rate, source, channels, max_block) in [
        (48_000, ControlSource::Notes, InputChannels::Stereo, 256),
        (44_100, ControlSource::AudioInput, InputChannels::Mono, 64),
        (96_000, ControlSource::Notes, InputChannels::Left, 1024),
        (
            22_050,
            ControlSource::AudioInput,
            InputChannels::Stereo,
            500,
        ),
    ] {
        let options = PipelineOptions {
            source,
            channels,
            voices: Some(4),
            ..Default::default()
        };
        let factories = models
            .iter()
            .map(|model| PlayableModel::new(model.clone(), options).expect("it plays"));
        let factories: Vec<Arc<dyn ModelFactory>> = factories
            .map(|playable_model| Arc::new(MarkedModel(playable_model)) as Arc<dyn ModelFactory>)
            .collect();
        let controller = SessionController::new();
        let broken = allocations_while(
            &controller,
            Setup {
                sample_rate,
                max_block,
            },
            || {
                swap(&controller, &factories, 0..6);
                // A non-real-time host, and a session without a model.
                controller.set_non_realtime(true);
                swap(&controller, &factories, 6..7);
                controller.unload();
                std::thread::sleep(Duration::from_millis(300));
            },
        );
        assert_eq!(broken, 0, "{source:?} at {sample_rate} Hz");
    }
}

/// Returns allocations and deallocations in a second of callbacks of a misbehaving model, and its
/// invalid blocks.
fn allocations_of(misbehaviour: Misbehaviour, driver: Driver) -> (usize, u64) {
    let controller = SessionController::new();
    controller.set_driver(driver);
    let broken = allocations_while(
        &controller,
        Setup {
            sample_rate: 48_000,
            max_block: 256,
        },
        || {
            controller.load(
                Box::new(move || Ok(Arc::new(MisbehavingModel(misbehaviour)))),
                &[],
            );
            std::thread::sleep(Duration::from_secs(1));
        },
    );
    let health = controller.health().expect("a model plays");
    assert!(health.inference_time.count > 20, "{health:?}");
    (broken, health.invalid_blocks)
}

#[test]
fn a_model_that_allocates_in_a_callback_is_detected() {
    let allocates: Misbehaviour = |turn| drop(std::hint::black_box(vec![0_u8; turn.samples()]));
    assert!(allocations_of(allocates, Driver::Inline).0 >= 40);
    // On the worker it is allowed.
    assert_eq!(
        allocations_of(allocates, Driver::Worker { latency: None }),
        (0, 0)
    );
}

#[test]
fn invalid_output_is_handled_without_allocation() {
    let raves: Misbehaviour = |turn| {
        turn.output[0][0] = if turn.samples().is_multiple_of(31) {
            f32::NAN
        } else {
            0.2
        }
    };
    for driver in [Driver::Inline, Driver::Worker { latency: None }] {
        let (broken, faults) = allocations_of(raves, driver);
        assert!(
            broken == 0 && faults > 0,
            "{driver:?}: {broken} allocations, {faults} faults"
        );
    }
}
