//! Delayed, inverted and damaged pairs, and networks of other players.

use std::sync::Arc;

use ondes_engine::dsp::level::peak;
use ondes_engine::model::{Control, Curve, Model, import};
use ondes_engine::random::Lcg;
use serde_json::Value;
use tch::{Device, Tensor};

use super::align::align;
use super::architecture::{Architecture, names, packed_names};
use super::check::Severity;
use super::knobs::{weights_at, with_knobs};
use super::measure::{compare, esr, loudness_db, play, play_method};
use super::pair::Pair;
use super::rest::silent_at_rest;
use super::signal::{self, signal};
use super::task::{CaptureOptions, CaptureTask};
use super::windows::{TrainingPart, WindowBatch, WindowOrder, Windows};
use crate::data::Loader;
use crate::trainer::{Length, RunFiles, Trainer};
use ondes_physical_models::circuits::circuit;

const RATE: u32 = 48_000;

/// Returns a short signal with clicks, generated once.
fn dry() -> &'static [f32] {
    static SIGNAL: std::sync::OnceLock<Vec<f32>> = std::sync::OnceLock::new();
    SIGNAL.get_or_init(|| signal(30.0))
}

/// Simulates a device: a low-pass and a nonlinear curve.
fn device(dry: &[f32]) -> Vec<f32> {
    let mut state = 0.0;
    dry.iter()
        .map(|x| {
            state += 0.4 * (x - state);
            0.6 * (3.0 * state + 0.2).tanh() - 0.118
        })
        .collect()
}

fn late(sound: &[f32], samples: usize) -> Vec<f32> {
    [vec![0.0; samples], sound.to_vec()].concat()
}

fn stops(pair: &Pair) -> Vec<&str> {
    let stops = pair
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Stop);
    stops.map(|finding| finding.message.as_str()).collect()
}

fn notes(pair: &Pair) -> String {
    pair.findings
        .iter()
        .map(|finding| format!("{}\n", finding.message))
        .collect()
}

#[test]
fn delays_are_measured_with_and_without_clicks() {
    let wet = device(dry());
    for samples in [0, 7, 480, 12_345] {
        let found = align(dry(), &late(&wet, samples), 48_000.0);
        assert!(
            found.from_clicks && found.delay_samples.abs_diff(samples as i64) <= 1,
            "{samples}: {found:?}"
        );
        assert!(
            !found.inverted && found.drift_samples.abs() < 1.0,
            "{found:?}"
        );
        // Without its beginning, the signal has no clicks.
        let cut = 2 * RATE as usize;
        let found = align(&dry()[cut..], &late(&wet[cut..], samples), 48_000.0);
        assert!(
            !found.from_clicks && found.delay_samples.abs_diff(samples as i64) <= 3,
            "{samples}: {found:?}"
        );
    }
    let ahead = align(&dry()[96_000..], &wet[96_000 + 300..], 48_000.0);
    assert!(ahead.delay_samples.abs_diff(-300) <= 3, "{ahead:?}");
}

#[test]
fn inverted_recordings_are_noted() {
    let wet: Vec<f32> = device(dry()).iter().map(|x| -x).collect();
    let pair = Pair::new(dry().to_vec(), late(&wet, 100), RATE, "wet".into());
    assert!(
        pair.alignment.inverted && notes(&pair).contains("inverted polarity"),
        "{:?}",
        pair.alignment
    );
    assert!(stops(&pair).is_empty(), "{:?}", stops(&pair));
    assert_eq!(pair.dry.len(), pair.wet.len());
}

#[test]
fn clock_drift_stops_training() {
    // 50 ppm: every 20,000th sample is left out.
    let mut wet = device(dry());
    let mut count = 0;
    wet.retain(|_| {
        count += 1;
        count % 20_000 != 0
    });
    let pair = Pair::new(dry().to_vec(), wet, RATE, "wet".into());
    assert!(
        stops(&pair)
            .iter()
            .any(|message| message.contains("drift apart")),
        "{:?}",
        pair.findings
    );
    assert!(
        (-90.0..-55.0).contains(&pair.alignment.drift_samples),
        "{:?}",
        pair.alignment
    );
}

#[test]
fn damaged_pairs_stop_training() {
    let wet = device(dry());
    let stopped = |wet: Vec<f32>, message: &str| {
        let pair = Pair::new(dry().to_vec(), wet, RATE, "wet".into());
        assert!(
            stops(&pair).iter().any(|found| found.contains(message)),
            "{message}: {:?}",
            pair.findings
        );
        assert!(
            pair.report(false)
                .is_err_and(|error| error.to_string().contains(message))
        );
        assert!(pair.report(true).is_ok());
    };
    assert!(stops(&Pair::new(dry().to_vec(), wet.clone(), RATE, "wet".into())).is_empty());
    stopped(vec![0.0; wet.len()], "silent");
    stopped(wet[..RATE as usize].to_vec(), "too short");
    stopped(wet[..wet.len() / 2].to_vec(), "cut off");
    stopped(
        wet.iter().map(|x| (4.0 * x).clamp(-1.0, 1.0)).collect(),
        "clips at",
    );
    let mut holed = wet.clone();
    for place in [10, 20].map(|seconds| seconds * RATE as usize) {
        let loud = holed[place..]
            .iter()
            .position(|x| x.abs() > 0.05)
            .expect("it sounds")
            + place;
        let end = holed[loud + 301..]
            .iter()
            .position(|x| x.abs() > 0.05)
            .expect("it sounds")
            + loud
            + 301;
        holed[loud + 1..end].fill(0.0);
    }
    stopped(holed, "2 dropouts");
    let mut random = Lcg::new(1);
    let unrelated = (0..wet.len()).map(|_| random.next_u32() as f32 / u32::MAX as f32 - 0.5);
    stopped(unrelated.collect(), "is unrelated to");
}

#[test]
fn noise_and_short_pairs_are_noted() {
    let mut random = Lcg::new(1);
    let noisy = device(dry())
        .into_iter()
        .map(|x| x + 0.02 * (random.next_u32() as f32 / u32::MAX as f32 - 0.5));
    let pair = Pair::new(dry().to_vec(), noisy.collect(), RATE, "wet".into());
    assert!(
        notes(&pair).contains("is noisy") && notes(&pair).contains("is a short pair"),
        "{}",
        notes(&pair)
    );
    assert!(stops(&pair).is_empty(), "{:?}", stops(&pair));
}

#[test]
fn signals_have_clicks_levels_and_length() {
    let signal = dry();
    assert_eq!(signal.len(), 30 * RATE as usize);
    assert!(
        signal::starts_with_clicks(signal, 48_000.0)
            && !signal::starts_with_clicks(&signal[1_000..], 48_000.0)
    );
    assert!((0.8..0.98).contains(&peak(signal)), "{}", peak(signal));
    // Audible throughout after the clicks, including the held-out part.
    assert!(
        signal[96_000..]
            .chunks(4 * RATE as usize)
            .all(|part| peak(part) > 5e-3)
    );
    assert_eq!(super::signal::signal(30.0), signal, "the same each time");
}

#[test]
fn sizes_have_the_weights_of_other_players() {
    let count = |name: &str| {
        let architecture = Architecture::named(name).expect("a size");
        let trained: usize = architecture.slots().iter().map(|slot| slot.count).sum();
        trained + usize::from(architecture.head_scale().is_some())
    };
    assert_eq!(count("standard"), 13_802);
    assert_eq!(count("a2-full"), 12_146);
    assert!(count("lite") < count("standard") && count("nano") < count("feather"));
    assert!(Architecture::named("lstm-0").is_err() && Architecture::named("huge").is_err());
    for name in names().iter().chain(packed_names()) {
        let architecture = Architecture::named(name).expect("a size");
        let model = architecture
            .untrained(1, RATE)
            .expect("the importer takes it");
        assert_eq!(Architecture::recognize(&model).as_deref(), Some(*name));
        let graph: Vec<&str> = model.weights().iter().map(|(name, _)| name).collect();
        for slot in architecture.slots() {
            assert!(graph.contains(&slot.name.as_str()), "{name}: {}", slot.name);
        }
        let warm_up = model.method("forward").expect("a capture").warm_up;
        let expected = match *name {
            "standard" => 4_092,
            "lite" | "feather" | "nano" => 4_092,
            "a2-full" | "a2-lite" | "a2" => 6_346,
            _ => 24_000,
        };
        assert_eq!(warm_up, expected, "{name}");
    }
}

#[test]
fn nam_files_load_with_equal_weights_and_sound() {
    for name in names().iter().chain(packed_names()) {
        let architecture = Architecture::named(name).expect("a size");
        let model = architecture.untrained(3, 44_100).expect("a model");
        let file = architecture
            .nam_file(model.weights(), 44_100, &Value::Null)
            .to_string();
        let again = import::parse(file.as_bytes()).expect("it loads").model;
        assert_eq!(again.weights(), model.weights(), "{name}");
        let sound = &dry()[400_000..420_000];
        let bits = |model| {
            play(model, sound)
                .expect("it plays")
                .iter()
                .map(|x| x.to_bits())
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(&again), bits(&model), "{name}");
    }
}

/// Returns four seconds of playing and its recording through the overdrive.
fn overdriven() -> Pair {
    let dry = signal::standard();
    let wet = circuit("overdrive")
        .and_then(|circuit| circuit.play(circuit.defaults(), &dry, f64::from(RATE)))
        .expect("it can be solved");
    Pair::new(dry, wet, RATE, "overdrive".into())
}

/// Returns `nano` without its long dilations, so that windows are short and steps many.
fn short_nano() -> Architecture {
    let Ok(Architecture::WaveNet { mut arrays }) = Architecture::named("nano") else {
        panic!("a WaveNet")
    };
    arrays
        .iter_mut()
        .for_each(|array| array.layers.retain(|layer| layer.1 <= 64));
    Architecture::WaveNet { arrays }
}

fn quick(architecture: Architecture, epochs: u64, folder: &std::path::Path) -> CaptureOptions {
    let files = RunFiles {
        checkpoint: folder.join("checkpoint"),
        metrics: folder.join("metrics.jsonl"),
    };
    let mut options = CaptureOptions {
        batch: 8,
        window: 1_024,
        ..CaptureOptions::new(architecture, files)
    };
    options.trainer.length = Length::Epochs(epochs);
    options.trainer.training.learning_rate = 1e-2;
    options.trainer.training.threads = 1;
    options
}

fn trainer<'a>(
    options: CaptureOptions,
    pair: &'a Pair,
    base: Option<&Model>,
) -> anyhow::Result<Trainer<CaptureTask<'a>>> {
    trainer_of(options, std::slice::from_ref(pair), base)
}

fn trainer_of<'a>(
    options: CaptureOptions,
    pairs: &'a [Pair],
    base: Option<&Model>,
) -> anyhow::Result<Trainer<CaptureTask<'a>>> {
    let trainer_options = options.trainer.clone();
    Trainer::new(CaptureTask::new(options, pairs, base)?, trainer_options)
}

#[test]
fn a_small_network_learns_the_overdrive_from_four_seconds() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = overdriven();
    assert!(stops(&pair).is_empty(), "{:?}", stops(&pair));
    let mut run =
        trainer(quick(short_nano(), 20, folder.path()), &pair, None).expect("it can be trained");
    run.run().expect("it trains");
    let model = run.model().expect("finite weights");
    let found = compare(&model, &pair).expect("a capture");
    assert!(
        found.held_out.value < 0.1 && found.all.value < 0.1,
        "{found:?}"
    );
    assert!(
        found
            .held_out
            .baseline
            .is_some_and(|baseline| baseline > 0.2),
        "{found:?}"
    );
    assert!((-40.0..0.0).contains(&loudness_db(&model).expect("it plays")));
    let training = model
        .header()
        .card
        .training
        .as_ref()
        .expect("its provenance");
    assert!(
        training.steps > 0 && training.validation_loss < 0.1 && training.corpus_seconds > 2.0,
        "{training:?}"
    );

    // Further training from its weights does no harm; another shape is refused.
    let mut options = quick(short_nano(), 1, folder.path());
    options.trainer.training.learning_rate = 1e-3;
    let mut further = trainer(options, &pair, Some(&model)).expect("the same shape");
    further.run().expect("it trains");
    let further = compare(&further.model().expect("finite weights"), &pair).expect("a capture");
    assert!(
        further.all.value < 1.5 * found.all.value,
        "{further:?} after {found:?}"
    );
    let other = Architecture::named("feather").expect("a size");
    let other = trainer(quick(other, 1, folder.path()), &pair, Some(&model));
    assert!(
        other
            .err()
            .is_some_and(|error| error.to_string().contains("another shape"))
    );
}

#[test]
fn a_recurrent_network_learns_by_streams() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = overdriven();
    let lstm = Architecture::named("lstm-8").expect("a size");
    let options = CaptureOptions {
        window: 512,
        batch: 16,
        ..quick(lstm, 20, folder.path())
    };
    let mut run = trainer(options, &pair, None).expect("it can be trained");
    run.run().expect("it trains");
    let found = compare(&run.model().expect("finite weights"), &pair).expect("a capture");
    assert!(
        found.all.value < 0.25 && found.held_out.value < 0.25,
        "{found:?}"
    );
}

#[test]
fn checkpoints_belong_to_one_pair_and_its_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut pair = overdriven();
    let options = quick(short_nano(), 1, folder.path());
    let refused = |options: &CaptureOptions, pair: &Pair| {
        let mut run = trainer(options.clone(), pair, None).expect("it can be trained");
        run.resume().err().map(|error| format!("{error:#}"))
    };
    assert!(refused(&options, &pair).is_some_and(|error| error.contains("no checkpoint")));
    trainer(options.clone(), &pair, None)
        .and_then(|mut run| run.run())
        .expect("it trains");
    assert_eq!(refused(&options, &pair), None);
    let other = CaptureOptions {
        seed: 1,
        ..options.clone()
    };
    assert!(
        refused(&other, &pair)
            .is_some_and(|error| error.contains("seed is 0 in the checkpoint and 1 now"))
    );
    pair.flip();
    assert!(refused(&options, &pair).is_some_and(|error| error.contains("sound has changed")));
}

fn knob(name: &str, min: f32, max: f32) -> Control {
    let default = f32::midpoint(min, max);
    let (unit, description) = (String::new(), String::new());
    Control {
        name: name.into(),
        unit,
        min,
        max,
        default,
        curve: Curve::Linear,
        description,
    }
}

#[test]
fn fixed_knobs_are_a_bias_of_the_network_without_them() {
    let knobs = [knob("gain", 0.0, 10.0), knob("tone", -1.0, 1.0)];
    let sound = &dry()[400_000..408_000];
    for name in ["nano", "lstm-3", "a2"] {
        let architecture = Architecture::named(name).expect("a size");
        let plain = architecture.untrained(3, RATE).expect("a model");
        let model = with_knobs(&plain, &knobs, 3).expect("a model");
        assert_eq!(model.header().controls, knobs);
        let all = || {
            model
                .header()
                .methods
                .iter()
                .map(|method| method.name.as_str())
        };
        let methods: Vec<&str> = all().collect();
        for method in methods {
            let at =
                |settings: &[f32]| play_method(&model, method, settings, sound).expect("it plays");
            for settings in [[5.0, 0.0], [9.0, -0.5]] {
                let fixed = Model::new(plain.header().clone(), weights_at(&model, &settings))
                    .expect("a model");
                let expected = play_method(&fixed, method, &[], sound).expect("it plays");
                // The warm-up of the model with knobs is at their defaults.
                let error = esr(&expected[7_000..], &at(&settings)[7_000..]);
                assert!(error < 1e-8, "{name}, {method}, {settings:?}: {error}");
            }
            assert_ne!(
                at(&[0.0, 0.0])[7_000..],
                at(&[10.0, 0.0])[7_000..],
                "{name}"
            );
        }
        // The file of another program is that at the given settings.
        let file = architecture.nam_file(&weights_at(&model, &[2.0, 1.0]), RATE, &Value::Null);
        let again = import::parse(file.to_string().as_bytes())
            .expect("it loads")
            .model;
        assert_eq!(again.header().methods, plain.header().methods);
        assert!(
            esr(
                &play(&again, sound).expect("it plays")[7_000..],
                &play_method(&model, "forward", &[2.0, 1.0], sound).expect("it plays")[7_000..]
            ) < 1e-8
        );
    }
    let nano = Architecture::named("nano")
        .and_then(|size| size.untrained(0, RATE))
        .expect("a model");
    for wrong in [
        [knob("in", 0.0, 1.0), knob("b", 0.0, 1.0)],
        [knob("a", 0.0, 1.0), knob("a", 0.0, 1.0)],
    ] {
        assert!(with_knobs(&nano, &wrong, 0).is_err());
    }
}

#[test]
fn a_network_learns_what_a_knob_does_from_several_pairs() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = overdriven();
    let at = |volume: f32, setting: f32| {
        let wet = whole.wet.iter().map(|sample| volume * sample).collect();
        Pair {
            settings: vec![setting],
            ..Pair::new(whole.dry.clone(), wet, RATE, format!("volume {setting}"))
        }
    };
    let pairs = [at(0.4, 0.0), at(1.0, 10.0)];
    for (size, window) in [
        (short_nano(), 1_024),
        (Architecture::named("lstm-8").expect("a size"), 512),
    ] {
        let mut options = CaptureOptions {
            window,
            batch: 16,
            ..quick(size, 20, folder.path())
        };
        options.knobs = vec![knob("volume", 0.0, 10.0)];
        let mut run = trainer_of(options.clone(), &pairs, None).expect("it can be trained");
        run.run().expect("it trains");
        let model = run.model().expect("finite weights");
        for pair in &pairs {
            let error = |settings: &[f32]| {
                let own = Pair {
                    settings: settings.to_vec(),
                    ..pair.clone()
                };
                compare(&model, &own).expect("a capture").all.value
            };
            let (right, wrong) = (error(&pair.settings), error(&[10.0 - pair.settings[0]]));
            assert!(
                right < 0.4 && right < 0.7 * wrong,
                "{}: {right}, at the other setting {wrong}",
                pair.name
            );
        }
        let other = [
            pairs[0].clone(),
            Pair {
                settings: vec![5.0],
                ..pairs[1].clone()
            },
        ];
        let error = trainer_of(options, &other, None)
            .expect("it can be trained")
            .resume()
            .expect_err("another setting");
        assert!(
            format!("{error:#}").contains("sound has changed"),
            "{error:#}"
        );
    }
}

#[test]
fn all_sizes_are_trained_in_one_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = overdriven();
    let Architecture::WaveNet { mut arrays } = short_nano() else {
        panic!("a WaveNet")
    };
    arrays.truncate(1);
    arrays[0].heads = 1;
    let mut wide = arrays.clone();
    wide[0].channels = 6;
    let sizes = [arrays, wide].map(|arrays| Architecture::WaveNet { arrays });
    let packed = Architecture::Packed(sizes.into());
    let mut run =
        trainer(quick(packed.clone(), 12, folder.path()), &pair, None).expect("it can be trained");
    run.run().expect("it trains");
    let model = run.model().expect("finite weights");
    assert_eq!(model.header().variants.len(), 1);
    for method in ["forward", "forward.lite"] {
        let error = esr(
            &pair.wet,
            &play_method(&model, method, &[], &pair.dry).expect("it plays"),
        );
        assert!(error < 0.2, "{method}: {error}");
    }
    let file = packed
        .nam_file(model.weights(), RATE, &Value::Null)
        .to_string();
    let again = import::parse(file.as_bytes()).expect("it loads").model;
    assert_eq!(
        (again.weights(), &again.header().methods),
        (model.weights(), &model.header().methods)
    );
    // Silence stays silent in each size, and nothing else changes.
    let silent = silent_at_rest(&model).expect("an effect");
    for method in ["forward", "forward.lite"] {
        let last = |model| {
            *play_method(model, method, &[], &[0.0; 4_000])
                .expect("it plays")
                .last()
                .expect("sound")
        };
        assert!(
            last(&model).abs() > 1e-4 && last(&silent).abs() < 1e-7,
            "{method}: {}",
            last(&silent)
        );
    }
    let pairs = model.weights().iter().zip(silent.weights().iter());
    assert_eq!(pairs.filter(|(before, after)| before != after).count(), 2);
}

/// Returns pairs that are short, at two positions of a knob.
fn short_pairs() -> Vec<Pair> {
    let pair = |seconds: f64, setting: f32| {
        let dry = dry()[100_000..100_000 + (seconds * f64::from(RATE)) as usize].to_vec();
        let wet = dry.iter().map(|x| (2.0 + setting) * x).collect();
        Pair {
            settings: vec![setting],
            ..Pair::new(dry, wet, RATE, format!("at {setting}"))
        }
    };
    vec![pair(0.21, 1.0), pair(0.13, 7.0)]
}

/// Compares the windows of a step with the sound of the pairs: each is a stretch of one, after what
/// precedes it.
#[test]
fn loaders_cut_the_windows_of_each_step() {
    let pairs = short_pairs();
    let (length, lead, batch) = (700, 90, 5);
    let part = |pair: &'static Pair| TrainingPart {
        dry: &pair.dry,
        wet: &pair.wet,
        settings: pair.settings.clone(),
    };
    let parts: Vec<TrainingPart<'_>> = Vec::leak(pairs).iter().map(part).collect();
    for order in [WindowOrder::Random(lead), WindowOrder::Streams] {
        let windows = Arc::new(Windows::new(&parts, order, length, batch, 3));
        let steps = windows.steps();
        let taken = |workers: usize, steps: &mut dyn Iterator<Item = u64>| -> Vec<Vec<Tensor>> {
            let rows = windows.rows();
            let mut loader = Loader::new(windows.clone(), rows, workers, u64::MAX);
            let mut take = |step: u64| {
                let own = rows.own(step);
                let parts = [own.start..own.start + 1, own.start + 1..own.end];
                let mut batches = parts.map(|part| {
                    loader
                        .take(step, part, Device::Cpu)
                        .expect("a batch")
                        .expanded()
                });
                let join = |get: &dyn Fn(&WindowBatch) -> Tensor| {
                    Tensor::cat(&batches.each_ref().map(get), 0)
                };
                let joined = vec![
                    join(&|batch| batch.inputs[0].copy()),
                    join(&|batch| batch.inputs[1].copy()),
                    join(&|batch| batch.wet.copy()),
                ];
                batches.iter_mut().for_each(|batch| batch.inputs.clear());
                joined
            };
            steps.map(&mut take).collect()
        };
        let all = taken(1, &mut (0..3 * steps));
        assert!(
            steps >= 3
                && all == taken(3, &mut (0..3 * steps))
                && all == taken(0, &mut (0..3 * steps))
        );
        // A run that goes on within an epoch.
        assert_eq!(
            taken(3, &mut (steps + 1..3 * steps)),
            all[steps as usize + 1..]
        );
        let rows: usize = all[..steps as usize]
            .iter()
            .map(|step| step[2].size()[0] as usize)
            .sum();
        match order {
            WindowOrder::Random(_) => {
                assert_eq!(rows as u64, (10_080 - 700) / 700 + (6_240 - 700) / 700)
            }
            WindowOrder::Streams => assert_eq!(rows as u64, steps * batch as u64),
        }
        for (dry, knob, wet) in all.iter().map(|step| (&step[0], &step[1], &step[2])) {
            let lead = dry.size()[2] - length as i64;
            let own = dry.narrow(2, lead, length as i64).squeeze_dim(1);
            let factor = knob.narrow(2, lead, length as i64).squeeze_dim(1) + 2.0;
            assert_eq!(own * factor, *wet);
        }
        let first_epoch = |step: usize| all[step] == all[step + steps as usize];
        assert!(!(0..steps as usize).all(first_epoch), "epochs differ");
    }
}
