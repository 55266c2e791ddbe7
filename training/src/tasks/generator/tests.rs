use std::f64::consts::{E, PI};
use std::path::Path;

use ondes_engine::executor::{Execute, ExecutorOptions, ExecutorSelection};
use ondes_engine::media::{WavBits, WavWriter};
use ondes_engine::model::{Curve, Header, Kind, Model, Op, file};
use ondes_engine::ops::{Affine, DrawMixture};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_torch::{TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use super::conditions::{Condition, PathInfo, Spread, bars, styles, tempo_in_path};
use super::inspect;
use super::latents::{BarMemory, CropSource, Crops, LatentStream, standardized};
use super::likelihood::{Mixture, linear_nats, memoryless_nats};
use super::names::{CALIBRATED_LOUDNESS, DRAWN, PRIOR};
use super::task::{NATS, generated};
use super::*;
use crate::data::FeatureRate;
use crate::evaluate::picture;
use crate::tasks::codec::{self, CodecConfig};
use crate::trainer::recipe::Recipe;
use crate::trainer::{Length, Precision, Task, Trainer, TrainerOptions};

/// Sample rate of the tests, Hz.
const RATE: usize = 16_000;

/// Makes `seconds` of tones of 330 Hz that begin at regular times and fade, then as many seconds
/// twice as dense.
fn pulses(seconds: usize, per_second: usize) -> Vec<f32> {
    let sound = |interval: usize| {
        (0..seconds * RATE).map(move |n| {
            let since = (n % interval) as f32 / RATE as f32;
            0.5 * (-since * 12.0).exp() * (std::f32::consts::TAU * 330.0 * since).sin()
        })
    };
    sound(RATE / per_second)
        .chain(sound(RATE / per_second / 2))
        .collect()
}

/// Normal noise, `[channel, frame]`.
fn normal(channels: i64, frames: i64) -> Tensor {
    let mut noise = vec![0.0; (channels * frames) as usize];
    ondes_engine::dsp::noise::fill_normal(ondes_engine::Kernels::detect(), 3, 0, &mut noise);
    Tensor::from_slice(&noise).view([channels, frames])
}

#[test]
fn likelihoods_are_those_of_the_densities() {
    // Two components in two channels at one frame.
    let tensor = |values: &[f32]| Tensor::from_slice(values).view([1, -1, 1]);
    let (means, scales, x) = (
        [0.0_f32, 1.0, -2.0, 0.5],
        [1.0_f32, 0.5, 2.0, 0.1],
        [0.3_f32, 0.7],
    );
    let mixture = Mixture {
        logits: tensor(&[0.25_f32.ln(), 0.75_f32.ln()]),
        means: tensor(&means),
        scales: tensor(&scales),
    };
    let density = |component: usize| -> f64 {
        let gaussian = |channel: usize| {
            let (mean, scale) = (
                f64::from(means[2 * component + channel]),
                f64::from(scales[2 * component + channel]),
            );
            let z = (f64::from(x[channel]) - mean) / scale;
            (-0.5 * z * z).exp() / (scale * (2.0 * PI).sqrt())
        };
        gaussian(0) * gaussian(1)
    };
    let expected = -(0.25 * density(0) + 0.75 * density(1)).ln();
    let nats = mixture.nats(&tensor(&x)).double_value(&[0, 0]);
    assert!(
        (nats - expected).abs() < 1e-5,
        "{nats}, expected {expected}"
    );
}

#[test]
fn compared_models_reach_the_entropy_of_what_they_describe() {
    // Two channels that forget a tenth in each frame.
    let (channels, frames, kept) = (2, 40_000, 0.9_f64);
    let noise = Vec::<f32>::try_from(normal(channels, frames).view(-1)).expect("numbers");
    let mut values = noise.clone();
    for channel in values.chunks_exact_mut(frames as usize) {
        for frame in 1..channel.len() {
            channel[frame] = kept as f32 * channel[frame - 1]
                + (1.0 - kept * kept).sqrt() as f32 * channel[frame];
        }
    }
    let values = Tensor::from_slice(&values).view([channels, frames]);
    let [learnt, measured] = [0, frames / 2].map(|start| values.narrow(1, start, frames / 2));
    let entropy = |variance: f64| 0.5 * channels as f64 * (2.0 * PI * E * variance).ln();
    let linear = linear_nats(&learnt, &measured);
    assert!(
        (linear - entropy(1.0 - kept * kept)).abs() < 0.05,
        "{linear}"
    );
    let memoryless = memoryless_nats(&learnt, &measured, 4);
    assert!((memoryless - entropy(1.0)).abs() < 0.15, "{memoryless}");
    // Two narrow clusters: a Gaussian is wide, a mixture knows where they are.
    let noise = normal(1, 8_000);
    let clusters = noise.narrow(1, 0, 4_000) * 0.1 + noise.narrow(1, 4_000, 4_000).sign() * 3.0;
    let one = memoryless_nats(&clusters, &clusters, 1);
    let two = memoryless_nats(&clusters, &clusters, 2);
    assert!(
        (two - (0.5 * (2.0 * PI * E * 0.01).ln() + 2.0_f64.ln())).abs() < 0.1 && one > two + 1.5,
        "{one}, {two}"
    );
}

/// Writes recordings, an untrained codec and a recipe, and returns the recipe.
fn recipe(folder: &Path, more: &str) -> PriorConfig {
    let sounds = folder.join("sounds");
    std::fs::create_dir_all(&sounds).expect("a folder");
    let mut writer =
        WavWriter::create(sounds.join("a.wav"), RATE as u32, 1, WavBits::Int16).expect("a file");
    writer.write(&[pulses(8, 3)]).expect("it is written");
    writer.finish().expect("it is written");
    let text = "name = \"a\"\ndata = \"sounds\"\nout = \"codec.ondes\"\nwork = \"work\"\n[network]\nsample_rate = 16000\n\
                bands = 4\nchannels = 4\nratios = [4, 8]\nlatents = 3\nnoise_bands = 3\n";
    std::fs::write(folder.join("codec.toml"), text).expect("it is written");
    let codec = CodecConfig::read(&folder.join("codec.toml")).expect("a recipe");
    let codec = codec::network::untrained(&codec).expect("a codec");
    file::write(&codec, &folder.join("codec.ondes")).expect("it is written");
    let text = format!(
        "name = \"b\"\ncodec = \"codec.ondes\"\ndata = \"sounds\"\nout = \"b.ondes\"\nwork = \"work\"\n[training]\n\
         batch = 4\nclip_seconds = 0.8\nthreads = 1\ndevice = \"cpu\"\nwarmup_steps = 5\nvalidate_every = 20\n\
         learning_rate = 0.01\n[schedule]\nname = \"constant\"\n[network]\nunits = 12\ncomponents = 3\n{more}"
    );
    std::fs::write(folder.join("b.toml"), text).expect("it is written");
    PriorConfig::read(&folder.join("b.toml")).expect("a recipe")
}

#[test]
fn names_tell_tempos() {
    for (name, tempo) in [
        ("groove 96bpm.wav", Some(96.0)),
        ("kit/Beat_128.5_BPM take 2.flac", Some(128.5)),
        ("120-bpm.wav", Some(120.0)),
        ("bpm.wav", None),
        ("5bpm.wav", None),
        ("groove.wav", None),
    ] {
        assert_eq!(tempo_in_path(name), tempo, "{name}");
    }
}

#[test]
fn folders_are_styles() {
    let names = ["rock/a 90bpm.wav", "jazz/b.wav", "rock/c.wav"];
    let found = styles(names.into_iter());
    assert_eq!(found, ["jazz", "rock"]);
    assert_eq!(
        PathInfo::new(names[0], &found),
        PathInfo {
            tempo: Some(90.0),
            style: Some(1)
        }
    );
    assert!(
        styles(["rock/a.wav", "rock/b.wav"].into_iter()).is_empty()
            && styles(["a.wav", "b/c.wav"].into_iter()).is_empty()
    );
}

#[test]
fn priors_play_the_style_that_is_set() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = recipe(folder.path(), "");
    let sounds = config.data.clone();
    for (style, per_second) in [("even", 3), ("quick", 8)] {
        std::fs::create_dir(sounds.join(style)).expect("a folder");
        let path = sounds.join(style).join("a.wav");
        let mut writer = WavWriter::create(path, RATE as u32, 1, WavBits::Int16).expect("a file");
        writer
            .write(&[pulses(6, per_second)])
            .expect("it is written");
        writer.finish().expect("it is written");
    }
    std::fs::remove_file(sounds.join("a.wav")).expect("it is there");
    let options = TrainerOptions {
        length: Length::Steps(40),
        ..config.trainer_options()
    };
    let mut trainer =
        Trainer::new(PriorTask::new(config.clone()).expect("a task"), options).expect("a trainer");
    trainer.run().expect("it trains");
    let model = trainer.model().expect("a model");
    let style = model
        .header()
        .controls
        .iter()
        .find(|control| control.name == "style")
        .expect("a control");
    assert_eq!((style.max, style.curve), (1.0, Curve::Steps));
    assert!(
        style.description.ends_with("0 even, 1 quick."),
        "{}",
        style.description
    );
    let at = |steer: f32, style: f32| render(&model, &[("steer", steer), ("style", style)], 7);
    assert!(at(1.0, 0.0) != at(1.0, 1.0) && at(0.0, 0.0) == at(0.0, 1.0));

    // Recordings of another number of styles cannot be compared with it,
    let rate = FeatureRate::from_encoder(&model).expect("a codec");
    let one = crate::data::open_folder(&sounds.join("even"), &folder.path().join("cache"), rate, 0)
        .expect("recordings");
    let error = evaluate::evaluate(&model, &one, None, 1)
        .expect_err("one folder")
        .to_string();
    assert_eq!(
        error,
        "the generator knows 2 styles; the recordings are in 0 folders"
    );

    // and are no start.
    let path = folder.path().join("b.ondes");
    file::write(&model, &path).expect("it is written");
    config.from = Some(path);
    assert!(PriorTask::new(config.clone()).is_ok());
    config.data = sounds.join("even");
    let error = format!("{:#}", PriorTask::new(config).err().expect("one folder"));
    assert!(
        error.contains("b.ondes") && error.contains("2 styles"),
        "{error}"
    );
}

#[test]
fn priors_follow_bars_where_names_tell_the_tempo() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = recipe(folder.path(), "group = 4\nleast = 0.25\n");
    std::fs::rename(config.data.join("a.wav"), config.data.join("a 90bpm.wav"))
        .expect("it is renamed");
    let task = PriorTask::new(config).expect("a task");
    let model = task.initial();
    let tempo = model
        .header()
        .controls
        .iter()
        .find(|control| control.name == "tempo")
        .expect("a control");
    assert!(
        tempo.min < 90.0 && tempo.default == 90.0 && tempo.max > 90.0,
        "{tempo:?}"
    );
    let known = inspect::conditions(model).expect("a generator");
    assert_eq!(
        known,
        [Condition::Density, Condition::Loudness, Condition::Bars]
    );

    // The graph reads cosine and sine of the place in the bar.
    let mut prior = model.method(PRIOR).expect("a prior").clone();
    prior = crate::tasks::codec::network::showing(&prior, &["prior.bars", DRAWN]).expect("a node");
    assert!(
        prior
            .nodes
            .iter()
            .any(|node| matches!(node.op, Op::DrawMixture(DrawMixture { least: 0.25, .. })))
    );
    let port = |name: &str| {
        prior
            .inputs
            .iter()
            .position(|port| port.name == name)
            .expect("a port")
    };
    let (bars_port, steer_port) = (port("bars"), port("steer"));
    let mut header = model.header().clone();
    header
        .methods
        .iter_mut()
        .find(|method| method.name == PRIOR)
        .expect("a prior")
        .clone_from(&prior);
    let shown = Model::new(header, model.weights().clone()).expect("a model");
    let mut executor =
        ondes_engine::native::Executor::new(&shown, PRIOR, ondes_engine::Kernels::detect(), 1, 1);
    let executor = executor.as_mut().expect("it can be run");
    for place in [0.0_f32, 0.3, 1.75, 3.9] {
        executor.begin(&[0], 1);
        (0..prior.inputs.len()).for_each(|port| executor.input(port).fill(0.0));
        executor.input(bars_port).fill(place);
        executor.input(steer_port).fill(1.0);
        executor.run();
        // Four cycles a bar: beats.
        let angle = std::f32::consts::TAU * 4.0 * place;
        let [cosine, sine] = [executor.output(0)[10], executor.output(0)[11]];
        assert!(
            (cosine + angle.cos()).abs() < 1e-3 && (sine + angle.sin()).abs() < 1e-3,
            "{place}: {cosine} {sine}"
        );
    }

    // In training the place is that at the beginning of what is drawn, as in the player, by what
    // the encoder is late.
    let crops = task.validation_crops(0..1);
    // Bars are the last input, with and without what is heard.
    let graph = inspect::training_graph(model)
        .and_then(|prior| Ok(codec::network::showing(&prior, &["prior.bars"])?));
    let graph = TorchGraph::new(&graph.expect("a node"), RATE as u32).expect("a graph");
    let weights = TorchWeights::new(model.weights(), Device::Cpu);
    let waves = |precision: Precision| {
        precision
            .run(Device::Cpu, || graph.run(&weights, &crops.inputs, 0))
            .swap_remove(0)
    };
    let blur = (waves(Precision::Bf16) - waves(Precision::F32))
        .abs()
        .max()
        .double_value(&[]);
    assert!(blur < 0.01, "in bf16 the place is wrong by {blur}");

    let last = crops.inputs.last().expect("inputs");
    let heard = Vec::<f32>::try_from(last.view(-1)).expect("numbers");
    let block_s = prior.block as f64 / RATE as f64;
    let late_s =
        model.latency_samples(model.method("encode").expect("an encoder")) as f64 / RATE as f64;
    // The validation recording begins after nine tenths of 16 s.
    let first = 14.4 - late_s;
    for (group, place) in heard.iter().enumerate() {
        let expected = bars(first + group as f64 * block_s, 90.0);
        let error = (place - expected).abs();
        assert!(
            error.min(4.0 - error) < 1e-4,
            "group {group}: {place}, expected {expected}"
        );
    }
}

fn render(model: &Model, controls: &[(&str, f32)], seed: u64) -> Vec<f32> {
    let mut pipeline = Pipeline::new(
        model,
        &PipelineOptions {
            seed,
            sample_rate: RATE as u32,
            ..Default::default()
        },
    );
    let pipeline = pipeline.as_mut().expect("it plays");
    controls
        .iter()
        .for_each(|(name, value)| pipeline.set_control(name, *value).expect("a control"));
    let mut sound = vec![0.0; RATE];
    pipeline.process(&[], &mut sound);
    sound
}

#[test]
fn priors_learn_play_and_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = recipe(folder.path(), "");
    let run = |config: &PriorConfig, steps: u64, resumed: bool| {
        let options = TrainerOptions {
            length: Length::Steps(steps),
            ..config.trainer_options()
        };
        let mut trainer = Trainer::new(PriorTask::new(config.clone()).expect("a task"), options)
            .expect("a trainer");
        if resumed {
            trainer.resume().expect("a checkpoint");
        }
        trainer.run().expect("it trains");
        let model = trainer.model().expect("a model");
        trainer.task().finished(&model).expect("a generator")
    };
    let finished = run(&config, 80, false);
    let half = run(&config, 40, false);
    assert_ne!(half.weights(), finished.weights());
    assert_eq!(
        run(&config, 80, true).weights(),
        finished.weights(),
        "a run that goes on is the same"
    );

    // What is regular is foreseen better with a memory than without.
    let header = finished.header();
    let measured = &header.card.quality[0];
    let [linear, memoryless] = PriorTask::new(config.clone()).expect("a task").baselines();
    assert_eq!(
        (measured.name.as_str(), header.kind),
        (NATS, Kind::Generator)
    );
    assert!(
        measured.value < memoryless - 0.3,
        "{measured:?}, without memory {memoryless}, linear {linear}"
    );

    // It plays from its file, and does what its knobs say.
    let path = folder.path().join("b.ondes");
    file::write(&finished, &path).expect("it is written");
    let model = file::read(&path).expect("it is read");
    let sound = render(&model, &[], 7);
    assert!(
        sound.iter().any(|sample| sample.abs() > 1e-4)
            && sound.iter().all(|sample| sample.is_finite())
    );
    assert!(sound == render(&model, &[], 7) && sound != render(&model, &[], 8));
    let density = header
        .controls
        .iter()
        .find(|control| control.name == "density")
        .expect("a control");
    assert!(density.min < 4.0 && density.max > 5.0, "{density:?}");
    let at =
        |steer: f32, density: f32| render(&model, &[("steer", steer), ("density", density)], 7);
    assert!(at(1.0, density.min) != at(1.0, density.max));
    assert!(
        at(0.0, density.min) == at(0.0, density.max),
        "what is not followed changes nothing"
    );

    // Training goes on from knobs that are not calibrated.
    let asked = |model: &Model| {
        let nodes = &model.method(PRIOR).expect("a prior").nodes;
        nodes
            .iter()
            .find(|node| node.name == CALIBRATED_LOUDNESS)
            .expect("a knob for loudness")
            .op
            .clone()
    };
    let equal = Op::Affine(Affine {
        scale: 1.0,
        offset: 0.0,
    });
    let raw = calibration::uncalibrated(&model).expect("a generator");
    assert!(asked(&raw) == equal && asked(&model) != equal);
    assert_eq!(
        asked(&calibration::calibrated(&raw).expect("a generator")),
        asked(&model)
    );

    // A trained generator is a better start than none, also for other sizes in the recipe.
    let start = |config: PriorConfig| {
        let mut task = PriorTask::new(config).expect("a task");
        let weights = TorchWeights::new(task.initial().weights(), Device::Cpu);
        task.validate(&weights, Device::Cpu, usize::MAX)
            .expect("a loss")
            .loss
    };
    let untrained = start(config.clone());
    let further = start(PriorConfig {
        from: Some(path),
        ..config.clone()
    });
    assert!(
        (further - measured.value).abs() < 1e-3 && further < untrained - 0.3,
        "{further}, {untrained}"
    );
    let from_codec = PriorConfig {
        from: Some(config.codec.clone()),
        ..config
    };
    let error = format!(
        "{:#}",
        PriorTask::new(from_codec).err().expect("no generator")
    );
    assert!(
        error.contains("codec.ondes") && error.contains("prior"),
        "{error}"
    );
}

#[test]
fn attention_foresees_what_is_regular() {
    for (layers, attention_layers) in [(0, 1), (1, 1)] {
        let folder = tempfile::tempdir().expect("a folder");
        let sizes = format!(
            "layers = {layers}\nattention_layers = {attention_layers}\nheads = 3\nwindow = 40\n"
        );
        let config = recipe(folder.path(), &sizes);
        let options = TrainerOptions {
            length: Length::Steps(80),
            ..config.trainer_options()
        };
        let mut trainer =
            Trainer::new(PriorTask::new(config).expect("a task"), options).expect("a trainer");
        trainer.run().expect("it trains");
        let model = trainer.model().expect("a model");
        let finished = trainer.task().finished(&model).expect("a generator");
        let (measured, [_, memoryless]) = (
            &finished.header().card.quality[0],
            trainer.task().baselines(),
        );
        assert!(
            measured.value < memoryless - 0.3,
            "{measured:?}, without memory {memoryless}"
        );
        let sound = render(&finished, &[], 7);
        assert!(
            sound.iter().any(|sample| sample.abs() > 1e-4)
                && sound.iter().all(|sample| sample.is_finite())
        );
        assert!(sound == render(&finished, &[], 7) && sound != render(&finished, &[], 8));
    }
}

#[test]
fn latents_are_those_of_the_codec_and_grouped_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = recipe(folder.path(), "group = 4\n");
    let data = config.data.clone();
    let task = PriorTask::new(config).expect("a task");
    let model = task.initial();
    let spreads = inspect::spreads(model).expect("a generator");
    assert_eq!(
        (
            spreads.len(),
            inspect::conditions(model).expect("a generator").len()
        ),
        (3, 2)
    );
    let prior = model.method(PRIOR).expect("a prior");
    assert_eq!(prior.inputs[0].channels, 12);
    // Of what is drawn, four frames of latents are made, in order.
    let mut executor =
        ondes_engine::native::Executor::new(model, PRIOR, ondes_engine::Kernels::detect(), 1, 1);
    let executor = executor.as_mut().expect("it can be run");
    executor.begin(&[0], 1);
    (0..prior.inputs.len()).for_each(|port| executor.input(port).fill(0.0));
    executor.run();
    assert_eq!(prior.outputs[1].name, DRAWN);
    for frame in 0..4 {
        for (latent, Spread { mean, deviation }) in spreads.iter().enumerate() {
            let (drawn, made) = (
                executor.output(1)[3 * frame + latent],
                executor.output(0)[3 * frame + latent],
            );
            assert!(
                (mean + deviation * drawn - made).abs() < 1e-5,
                "frame {frame}, latent {latent}"
            );
        }
    }
    // Recordings have deviation 1 after scaling, and generated latents are finite.
    let made = generated(model, 2.0, 3).expect("latents");
    assert_eq!(made.size(), [3, 252]);
    assert_eq!(made.isfinite().all().int64_value(&[]), 1);
    let crops = task.validation_crops(0..2);
    // Without what a generator hears.
    assert_eq!(crops.inputs.len(), prior.inputs.len() - 2);
    let (target, previous) = (&crops.target, &crops.inputs[0]);
    assert_eq!(target.size()[1..], [12, 25]);
    assert_eq!(previous.narrow(2, 1, 24), target.narrow(2, 0, 24));
    assert_eq!(previous.narrow(2, 0, 1).abs().max().double_value(&[]), 0.0);
    // The validation recording is the last tenth of 2,000 frames; a group has its frames one after
    // the other.
    let rate = FeatureRate::from_encoder(model).expect("a codec");
    let recordings = crate::data::open_folder(&data, &folder.path().join("cache"), rate, 30)
        .expect("recordings");
    let stream = LatentStream::new(model, &recordings, &[]).expect("latents");
    let expected = standardized(&stream.latents, &spreads).narrow(1, 1_800, 100);
    let frames = target
        .get(0)
        .view([4, 3, 25])
        .permute([1, 2, 0])
        .reshape([3, 100]);
    assert_eq!(frames, expected);
}

#[test]
fn conditions_are_measured_around_a_frame() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = recipe(folder.path(), "");
    let rate = crate::data::FeatureRate {
        sample_rate: RATE as u32,
        hop: 128,
    };
    let recordings = crate::data::open_folder(&config.data, &folder.path().join("cache"), rate, 0)
        .expect("recordings");
    let recording = recordings
        .features()
        .next()
        .expect("one")
        .expect("it is read");
    let density = Condition::Density.measure(&recording, PathInfo::default(), 0);
    assert_eq!(density.len(), recording.frames());
    let at = |seconds: usize| density[seconds * RATE / 128];
    assert!(
        (at(4) - 3.0).abs() < 0.6 && (at(12) - 6.0).abs() < 0.6,
        "{} and {}",
        at(4),
        at(12)
    );
}

#[test]
fn a_prior_reads_what_it_hears_like_what_it_has_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = recipe(folder.path(), "group = 4\n");
    let data = config.data.clone();
    let task = PriorTask::new(config).expect("a task");
    let model = task.initial();
    let rate = FeatureRate::from_encoder(model).expect("a codec");
    let recordings =
        crate::data::open_folder(&data, &folder.path().join("cache"), rate, 0).expect("recordings");
    let stream = LatentStream::new(model, &recordings, &[]).expect("latents");
    // 20 groups of four frames of three latents.
    let blocks = 20;
    let frames = |values: &Tensor| {
        let frame_by_frame = values
            .narrow(1, 400, 4 * blocks as i64)
            .transpose(0, 1)
            .contiguous()
            .view(-1);
        Vec::<f32>::try_from(frame_by_frame).expect("numbers")
    };
    let heard = frames(&stream.latents);
    let drawn = frames(&standardized(
        &stream.latents,
        &inspect::spreads(model).expect("a generator"),
    ));
    let run = |listen: f32| {
        let prior = model.method(PRIOR).expect("a prior");
        let mut executor = ondes_engine::native::Executor::new(
            model,
            PRIOR,
            ondes_engine::Kernels::detect(),
            1,
            1,
        );
        let executor = executor.as_mut().expect("it can be run");
        executor.seed(0, 1);
        let mut made = Vec::new();
        for (heard, drawn) in heard.chunks_exact(12).zip(drawn.chunks_exact(12)) {
            executor.begin(&[0], 1);
            for (index, port) in prior.inputs.iter().enumerate() {
                let input = executor.input(index);
                match port.name.as_str() {
                    "heard" if listen > 0.0 => input.copy_from_slice(heard),
                    "listen" => input.fill(listen),
                    name if name.starts_with(DRAWN) && listen == 0.0 => {
                        input.copy_from_slice(drawn)
                    }
                    _ => input.fill(0.3),
                }
            }
            executor.run();
            made.extend_from_slice(executor.output(0));
        }
        made
    };
    let largest = run(1.0)
        .iter()
        .zip(run(0.0))
        .map(|(heard, drawn)| (heard - drawn).abs())
        .fold(0.0, f32::max);
    assert!(largest < 1e-3, "{largest}");
}

#[test]
fn a_prior_is_told_the_same_of_bars_before_in_training_and_by_the_player() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = recipe(folder.path(), "group = 2\n");
    std::fs::rename(config.data.join("a.wav"), config.data.join("a 290bpm.wav"))
        .expect("it is renamed");
    let task = PriorTask::new(config).expect("a task");
    let model = task.initial();
    // A second recording begins in group 150, of two frames, and 151 is the first one without the
    // first recording.
    let (groups, second) = (300, 151);
    let bar = 4.0 * 60.0 / 290.0 * RATE as f64 / 256.0;
    let latents = normal(3, 2 * groups);
    let place = |frame: i64| bars((frame * 128) as f64 / RATE as f64, 290.0);
    let places =
        Tensor::from_slice(&(0..2 * groups).map(place).collect::<Vec<f32>>()).view([1, -1]);
    let stream = LatentStream {
        latents: latents.shallow_clone(),
        conditions: Tensor::cat(
            &[
                Tensor::zeros_like(&places),
                Tensor::zeros_like(&places),
                places,
            ],
            0,
        ),
        starts: vec![0, 2 * second - 1],
        tempos: vec![290.0; 2],
        styles: Vec::new(),
    };
    let recall = BarMemory {
        bars: vec![1, 2],
        condition: 2,
    };
    let spreads = inspect::spreads(model).expect("a generator");
    let source =
        CropSource::new(&stream, &spreads, &recall, [2, groups as usize], 1).expect("crops");
    let crops = source.validation(0..1);
    assert_eq!(
        crops.inputs.len(),
        model.method(PRIOR).expect("a prior").inputs.len() - 2
    );

    // The player hears each group one block later, and shows what it recalls.
    let method = model.method(PRIOR).expect("a prior");
    let shown = codec::network::showing(
        method,
        &[
            "prior.recalled.1",
            "prior.recalled.2",
            DRAWN,
            "prior.before",
        ],
    )
    .expect("nodes");
    let mut header = model.header().clone();
    header
        .methods
        .iter_mut()
        .find(|method| method.name == PRIOR)
        .expect("a prior")
        .clone_from(&shown);
    let shown_model = Model::new(header, model.weights().clone()).expect("a model");
    let options = ExecutorOptions {
        selection: ExecutorSelection::default(),
        kernels: ondes_engine::Kernels::detect(),
        allow_fallback: false,
    };
    let mut executor = options
        .prepare(&shown_model, &shown, 1, 1)
        .expect("it can be run");
    let mut memory =
        ondes_engine::pipeline::BarMemory::new(&shown, RATE as u32, 1).expect("it is small");
    executor.seed(0, 1);
    let heard = latents
        .constant_pad_nd([2, 0])
        .narrow(1, 0, 2 * groups)
        .transpose(0, 1)
        .contiguous()
        .view(-1);
    let heard = Vec::<f32>::try_from(heard).expect("numbers");
    let mut recalled = [Vec::new(), Vec::new()];
    for (group, heard) in heard
        .chunks_exact(heard.len() / groups as usize)
        .enumerate()
    {
        executor.begin(&[0], 1);
        for (index, port) in shown.inputs.iter().enumerate() {
            let input = executor.input(index);
            match port.name.as_str() {
                "heard" => input.copy_from_slice(heard),
                "bars" => input.fill(place(2 * group as i64)),
                // A prior begins after nothing.
                "listen" if group == 0 => input.fill(0.0),
                _ => input.fill(1.0),
            }
        }
        memory.begin_block(&mut *executor, &[0]);
        executor.run();
        memory.end_block(&*executor, &[0]);
        for (output, recalled) in recalled.iter_mut().enumerate() {
            recalled.extend_from_slice(executor.output(output));
        }
    }
    for (output, bars) in [(0, 1), (1, 2)] {
        let player = Tensor::from_slice(&recalled[output])
            .view([groups, -1])
            .transpose(0, 1);
        let told = crops.inputs[2 + output].get(0);
        let known = |group: i64| told.double_value(&[13, group]) == 1.0;
        for group in 0..groups {
            let first = if group < second { 0 } else { second };
            let is_known = (group - first) as f64 >= f64::from(bars) * bar;
            assert_eq!(known(group), is_known, "{bars} bars before group {group}");
            if is_known {
                let [player, told] = [&player, &told].map(|values| values.narrow(1, group, 1));
                let error = (&player - &told).abs().max().double_value(&[]);
                assert!(error < 1e-4, "{bars} bars before group {group}: {error}");
            }
        }
    }
}

#[test]
fn a_generator_that_is_trained_on_is_told_of_bars_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = |more: &str| {
        let config = recipe(folder.path(), more);
        std::fs::rename(config.data.join("a.wav"), config.data.join("a 290bpm.wav"))
            .expect("it is renamed");
        config
    };
    let new = PriorTask::new(config("recall = 2\n")).expect("a task");
    let forgetful = PriorTask::new(config("recall = 0\n")).expect("a task");
    let path = folder.path().join("forgetful.ondes");
    file::write(forgetful.initial(), &path).expect("it is written");
    let continued = PriorTask::new(PriorConfig {
        from: Some(path),
        ..config("recall = 2\n")
    })
    .expect("a task");
    let [new, before, after] = [&new, &forgetful, &continued].map(PriorTask::initial);
    assert_eq!(
        new.method(PRIOR).expect("a prior"),
        after.method(PRIOR).expect("a prior")
    );
    assert_eq!(new.header().controls, after.header().controls);
    // Until it is trained on, it plays as before.
    assert_eq!(render(after, &[], 3), render(before, &[], 3));
    let from = Some(folder.path().join("forgetful.ondes"));
    let safer = PriorTask::new(PriorConfig {
        from,
        ..config("least = 0.5\n")
    })
    .expect("a task");
    let nodes = &safer.initial().method(PRIOR).expect("a prior").nodes;
    assert!(
        nodes
            .iter()
            .any(|node| matches!(node.op, Op::DrawMixture(DrawMixture { least: 0.5, .. }))),
        "the recipe's share"
    );
}

#[test]
fn a_generator_is_compared_with_recordings() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = recipe(folder.path(), "");
    let sounds = config.data.clone();
    std::fs::copy(sounds.join("a.wav"), sounds.join("b 90 bpm.wav")).expect("a copy");
    let task = PriorTask::new(config).expect("a task");
    let model = task.initial();
    let rate = FeatureRate::from_encoder(model).expect("a codec");
    let recordings = crate::data::open_folder(&sounds, &folder.path().join("cache"), rate, 0)
        .expect("recordings");
    let evaluation = evaluate::evaluate(model, &recordings, None, 2).expect("it can be compared");
    assert!(
        (evaluation.seconds - 16.0).abs() < 0.1,
        "{}",
        evaluation.seconds
    );
    let named = |name: &str| {
        evaluation
            .comparisons
            .iter()
            .find(|row| row.name == name)
            .expect("a row")
    };
    let (same, generator, noise) = (named("recordings"), named("generator"), named("noise"));
    // The recordings are equal; the generator is untrained.
    for (same, other) in [
        (same.frechet, generator.frechet),
        (same.loudness_db, generator.loudness_db),
        (same.centroid_semitones, noise.centroid_semitones),
        (same.intervals_ms, named("shuffled recordings").intervals_ms),
        (same.nearest, generator.nearest),
    ] {
        assert!(
            same < 0.05 && other > 10.0 * same.max(1e-3),
            "{same} and {other}: {evaluation:?}"
        );
    }
    assert!((same.onsets - 4.5).abs() < 0.2, "{}", same.onsets);
    // The recordings repeat themselves.
    let [repeats, never] =
        [same, noise].map(|row| row.novelty.expect("recordings of more than ten seconds"));
    assert!(repeats < 0.5 * never, "{repeats} and {never}");
    assert_eq!(
        evaluation.responses.len(),
        inspect::conditions(model).expect("a generator").len()
    );
    assert_eq!(evaluation.endurance.pieces, 2);
    assert!(evaluation.timing.is_none() && evaluation.endurance.tempo_error_percent.is_none());
    assert!(evaluation.text().contains("generator"));
    // What is drawn is what the generator plays, not what its codec makes of the recordings.
    let drawn = |model: &Model| {
        let path = folder.path().join("picture.png");
        picture::draw(model, &recordings)
            .expect("it can be drawn")
            .write_png(&path)
            .expect("a picture");
        std::fs::read(path).expect("a picture")
    };
    let codec = file::read(&folder.path().join("codec.ondes")).expect("a codec");
    let named_alike = Header {
        card: model.header().card.clone(),
        ..codec.header().clone()
    };
    let codec = Model::new(named_alike, codec.weights().clone()).expect("a codec");
    assert!(drawn(model) == drawn(model) && drawn(model) != drawn(&codec));
}

#[test]
fn loaders_cut_the_crops_of_each_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let batches = |workers: usize, steps: std::ops::Range<u64>| -> Vec<Vec<Tensor>> {
        let config = recipe(
            folder.path(),
            &format!("group = 2\nrecall = 2\n[loader]\nworkers = {workers}\n"),
        );
        std::fs::rename(config.data.join("a.wav"), config.data.join("a 290bpm.wav"))
            .expect("it is renamed");
        let mut task = PriorTask::new(config).expect("a task");
        let mut tensors = |step| {
            let parts = [0..1, 1..4].map(|rows| {
                let Crops { target, mut inputs } =
                    task.batch(step, rows, Device::Cpu).expect("a batch");
                inputs.push(target);
                inputs
            });
            let [first, second] = &parts;
            first
                .iter()
                .zip(second)
                .map(|(first, second)| Tensor::cat(&[first, second], 0))
                .collect()
        };
        steps.map(&mut tensors).collect()
    };
    let all = batches(1, 0..30);
    assert!(
        all == batches(0, 0..30) && all == batches(3, 0..30) && all[11..] == batches(3, 11..30)
    );
    for step in &all {
        // Beyond the first group, what was before is the target with noise of each crop's own
        // deviation.
        let [previous, target] = [&step[0], &step[step.len() - 1]];
        let groups = target.size()[2];
        let noise = previous.narrow(2, 1, groups - 1) - target.narrow(2, 0, groups - 1);
        let deviations = Vec::<f32>::try_from(noise.std_dim([1_i64, 2].as_slice(), true, false))
            .expect("numbers");
        assert!(
            deviations
                .iter()
                .all(|deviation| (0.0..0.5).contains(deviation))
                && deviations[0] != deviations[1]
        );
        assert_eq!(previous.narrow(2, 0, 1).abs().max().double_value(&[]), 0.0);
    }
    assert_ne!(all[0], all[1]);
}
