//! TorchScript programs, run through the library.

#[path = "programs/process.rs"]
mod process;

mod exporters;

use std::path::PathBuf;
use std::sync::Arc;

use ondes_engine::dsp::level::max_difference;
use ondes_engine::executor::Device;
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::media::{WavBits, WavWriter};
use ondes_engine::model::program::{ProgramOptions, Setting, SettingKind};
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{
    Action, ControlId, ControlSource, InputChannels, Pipeline, PipelineOptions, ProcessRequest,
    SessionStart, TimedCommand, build_playable,
};
use ondes_engine::realtime::{
    Driven, Driver, LoadStatus, ModelFactory, PlayableModel, SessionController, Setup,
};
use ondes_engine::torch;
use ondes_tests::torchscript::models::{
    attributes, codec, counter, listening_codec, neutone, ratios, streaming,
};
use ondes_tests::torchscript::{Class, Value};
use ondes_tests::{audio_models::sound, random_splits};

/// Sample rate in Hz of programs that state none.
const RATE: u32 = 44_100;

/// Writes a program to a temporary folder; dropping the folder removes it.
fn file(class: &Class) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.ts");
    std::fs::write(&path, class.bytes()).expect("it can be written");
    (folder, path)
}

fn open(class: &Class) -> Model {
    let (_folder, path) = file(class);
    torch::open(&path).expect("it runs").model
}

fn options(sessions: usize) -> PipelineOptions {
    PipelineOptions {
        sample_rate: RATE,
        source: ControlSource::AudioInput,
        sessions,
        executor: ExecutorSelection {
            device: Device::Cpu,
            ..ExecutorSelection::default()
        },
        ..PipelineOptions::default()
    }
}

/// Returns the output of a pipeline for input in these pieces, without the latency.
fn play(model: &Model, options: &PipelineOptions, input: &[f32], pieces: &[usize]) -> Vec<f32> {
    let mut pipeline = Pipeline::new(model, options).expect("it plays");
    let latency = pipeline.latency_samples();
    let mut output = vec![0.0; input.len()];
    let mut at = 0;
    for &piece in pieces {
        pipeline.process(&input[at..at + piece], &mut output[at..at + piece]);
        at += piece;
    }
    assert_eq!(pipeline.samples_missing(), 0);
    output.split_off(latency)
}

#[test]
fn methods_become_ports_and_attributes_become_controls() {
    let class = attributes();
    let (_folder, path) = file(&class);
    let opened = torch::open(&path).expect("it runs");
    let header = opened.model.header();
    assert_eq!(
        (header.kind, header.sample_rate, header.card.name.as_str()),
        (Kind::Effect, RATE, "program")
    );
    let controls: Vec<_> = header
        .controls
        .iter()
        .map(|control| (control.name.as_str(), control.default))
        .collect();
    assert_eq!(
        controls,
        [
            ("gain", 0.5),
            ("steps", 2.0),
            ("mute", 0.0),
            ("range.1", 0.0),
            ("range.2", 0.0)
        ]
    );
    assert_eq!((header.controls[2].min, header.controls[2].max), (0.0, 1.0));
    let call = &opened.model.program().expect("it is one").calls["forward"];
    assert_eq!(
        (&call.input_labels[..], &call.output_labels[..]),
        (&["dry".to_owned()][..], &["wet".to_owned()][..])
    );
    let notes = opened.notes.join("\n");
    for kind in [
        "\"table\" cannot be set: its type is tensor",
        "44100 Hz is assumed",
    ] {
        assert!(notes.contains(kind), "{kind} in {notes}");
    }
    let setting = |name: &str, kind, value: &str| Setting {
        name: name.into(),
        kind,
        value: value.into(),
    };
    assert_eq!(
        opened.model.program().expect("it is one").settings,
        [
            setting("name", SettingKind::Text(1), "plain"),
            setting("source", SettingKind::Sound("source#0".into()), "")
        ]
    );
    // The hash depends on the content only.
    assert_eq!(opened.model.content_hash(), open(&class).content_hash());

    let model = open(&codec(8, 512, false));
    let header = model.header();
    assert_eq!((header.kind, header.sample_rate), (Kind::Codec, 48_000));
    let encode = header.method("encode").expect("it is there");
    assert_eq!(
        (
            encode.block,
            encode.outputs[0].channels,
            encode.outputs[0].ratio
        ),
        (512, 8, 512)
    );
}

#[test]
fn methods_texts_and_sounds_are_chosen() {
    let input = sound(4_000, RATE);
    let check = |model: &Model, expected: &dyn Fn(usize) -> f32| {
        let rate = PipelineOptions {
            sample_rate: model.header().sample_rate,
            ..options(1)
        };
        let output = play(model, &rate, &input, &[input.len()]);
        for (n, sample) in output.iter().enumerate() {
            assert!(
                (sample - expected(n)).abs() < 1e-6,
                "sample {n}: {sample} {}",
                expected(n)
            );
        }
    };
    let text = |name: &str, text: &str| ProgramOptions {
        texts: [(name.to_owned(), text.to_owned())].into(),
        ..ProgramOptions::default()
    };
    let model = open(&attributes());
    check(&model, &|n| input[n]);
    check(
        &torch::with_options(&model, &text("name", "silent")).expect("it has a name"),
        &|_| 0.0,
    );
    let loud = torch::with_options(&model, &text("name", "loud")).expect("it has a name");
    let refused = Pipeline::new(&loud, &options(1))
        .err()
        .expect("the program refuses it")
        .to_string();
    assert!(
        refused.contains("setting \"name\": the program refuses this value"),
        "{refused}"
    );

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("take.wav");
    let mut wav = WavWriter::create(&path, 22_050, 2, WavBits::Float32).expect("it can be written");
    wav.write(&[[0.5; 1_000], [0.25; 1_000]])
        .and_then(|()| wav.finish())
        .expect("it can be written");
    let sounds = [("source".to_owned(), path)].into();
    let options = ProgramOptions {
        sounds,
        ..ProgramOptions::default()
    };
    check(
        &torch::with_options(&model, &options).expect("it has a buffer"),
        &|n| input[n] + 0.375,
    );

    // The first two of four latents receive the last sample of each frame.
    let decode = ProgramOptions {
        method: Some("decode".into()),
        ..ProgramOptions::default()
    };
    let decode =
        torch::with_options(&open(&codec(4, 64, false)), &decode).expect("it has the method");
    check(&decode, &|n| 0.5 * input[n / 64 * 64 + 63]);
}

#[test]
fn attributes_are_set_per_session() {
    let model = open(&attributes());
    let mut playable = build_playable(&model, &options(3)).expect("it plays");
    let turn = |name: &str, value| TimedCommand {
        at: 0,
        action: Action::Control {
            id: ControlId::new(name),
            value,
        },
    };
    for (slot, name, value) in [
        (0, "gain", 2.0),
        (1, "steps", 5.0),
        (1, "range.2", 0.25),
        (2, "mute", 1.0),
    ] {
        playable
            .handle(slot, turn(name, value))
            .expect("there is room");
    }
    let input = sound(4_000, RATE);
    let mut outputs = vec![vec![0.0; input.len()]; 3];
    let latency = playable.latency_samples();
    let mut requests: Vec<ProcessRequest<'_>> = outputs
        .iter_mut()
        .enumerate()
        .map(|(slot, output)| ProcessRequest::mono(slot, &input, output))
        .collect();
    playable.process(&mut requests);
    let expected: [fn(f32) -> f32; 3] = [|x| 4.0 * x, |x| 2.5 * x + 0.25, |_| 0.0];
    for (output, expected) in outputs.iter().zip(expected) {
        let expected: Vec<f32> = input.iter().copied().map(expected).collect();
        let difference = max_difference(&output[latency..], &expected);
        assert!(difference < 1e-6, "{difference:e}");
    }
}

#[test]
fn every_ratio_is_converted() {
    for exponent in 0..=12 {
        for (ratio_in, ratio_out) in [
            (1, 1 << exponent),
            (1 << exponent, 1),
            (1 << exponent, 1 << exponent),
        ] {
            let (inputs, outputs) = (1 + exponent % 3, 1 + exponent % 2);
            let model = open(&ratios(inputs, ratio_in, outputs, ratio_out));
            let block = model.header().methods[0].block;
            assert_eq!(block, 256.max(ratio_in.max(ratio_out) as usize));
            let input = sound(3 * block, RATE);
            let output = play(&model, &options(1), &input, &[input.len()]);
            // Further inputs than two are silent.
            let level = inputs.min(2) as f32 / inputs as f32;
            // The last sample of each group is the input, and the output is repeated.
            let coarse = ratio_in.max(ratio_out) as usize;
            for (n, sample) in output.iter().enumerate() {
                let heard = input[n / coarse * coarse + coarse - 1];
                assert!(
                    (sample - level * heard).abs() < 1e-6,
                    "{ratio_in} to {ratio_out}, sample {n}"
                );
            }
        }
    }
}

#[test]
fn further_inputs_are_silent() {
    // The mean of three inputs, to both outputs.
    let model = open(&ratios(3, 1, 2, 1));
    let input = [sound(4_000, RATE), sound(8_000, RATE).split_off(4_000)];
    let stereo = PipelineOptions {
        channels: InputChannels::Stereo,
        ..options(1)
    };
    let mut pipeline = Pipeline::new(&model, &stereo).expect("it plays");
    let latency = pipeline.latency_samples();
    let mut output = [vec![0.0; 4_000], vec![0.0; 4_000]];
    let [left, right] = &mut output;
    pipeline.process_stereo([&input[0], &input[1]], [left, right]);
    let expected: Vec<f32> = input[0]
        .iter()
        .zip(&input[1])
        .map(|(left, right)| (left + right) / 3.0)
        .collect();
    for channel in output {
        assert!(max_difference(&channel[latency..], &expected) < 1e-6);
    }
}

#[test]
fn output_is_independent_of_block_sizes() {
    let class = streaming(8, 1);
    let model = open(&class);
    let input = sound(20_480, RATE);
    let module = tch::CModule::load_data(&mut class.bytes().as_slice()).expect("libtorch reads it");
    let whole = module
        .forward_ts(&[tch::Tensor::from_slice(&input).view([1, 1, -1])])
        .expect("it runs")
        .view(-1);
    let whole = Vec::<f32>::try_from(&whole).expect("a flat tensor");
    for seed in 0..3 {
        let output = play(
            &model,
            &options(1),
            &input,
            &random_splits(seed, input.len(), 3_000),
        );
        let difference = max_difference(&output, &whole);
        assert!(difference < 1e-5 && output.len() > 20_000, "{difference:e}");
    }
    for sample_rate in [22_050, 48_000, 96_000] {
        let options = PipelineOptions {
            sample_rate,
            ..options(1)
        };
        let at_once = play(&model, &options, &input, &[input.len()]);
        let in_pieces = play(
            &model,
            &options,
            &input,
            &random_splits(sample_rate.into(), input.len(), 2_000),
        );
        assert_eq!(at_once, in_pieces, "at {sample_rate} Hz");
        assert!(at_once.iter().any(|sample| sample.abs() > 1e-3));
    }
}

#[test]
fn batched_sessions_sound_as_single_ones() {
    let model = open(&streaming(8, 2));
    let input = |slot: usize| sound(12_000 + 37 * slot, RATE)[37 * slot..].to_vec();
    let alone = |slot: usize| play(&model, &options(1), &input(slot), &[12_000]);
    for sessions in [2, 8, 32] {
        let mut playable = build_playable(&model, &options(sessions)).expect("it plays");
        assert!(
            !playable.executor().contains("copy"),
            "{}",
            playable.executor()
        );
        let latency = playable.latency_samples();
        let inputs: Vec<Vec<f32>> = (0..sessions).map(input).collect();
        let mut outputs = vec![vec![0.0; 12_000]; sessions];
        // Only some sessions play at a time, so that their positions differ.
        for (index, &piece) in random_splits(sessions as u64, 12_000, 1_500)
            .iter()
            .enumerate()
        {
            for group in 0..2 {
                let begun: usize = random_splits(sessions as u64, 12_000, 1_500)[..index]
                    .iter()
                    .sum();
                let mut requests: Vec<ProcessRequest<'_>> = outputs
                    .iter_mut()
                    .enumerate()
                    .filter(|(slot, _)| (slot + index) % 3 % 2 == group)
                    .map(|(slot, output)| {
                        ProcessRequest::mono(
                            slot,
                            &inputs[slot][begun..begun + piece],
                            &mut output[begun..begun + piece],
                        )
                    })
                    .collect();
                playable.process(&mut requests);
            }
        }
        for (slot, output) in outputs.iter().enumerate().take(8) {
            let difference = max_difference(&output[latency..], &alone(slot));
            assert!(
                difference < 1e-5,
                "{sessions} seats, seat {slot}: {difference:e}"
            );
        }
        // A new session in a used slot starts from silence; the others continue.
        playable.open(1, &SessionStart::default());
        let mut anew = vec![0.0; 12_000];
        playable.process(&mut [ProcessRequest::mono(1, &inputs[1], &mut anew)]);
        let difference = max_difference(&anew[latency..], &alone(1));
        assert!(difference < 1e-5, "{sessions} seats, anew: {difference:e}");
    }
}

#[test]
fn programs_without_batch_buffers_are_copied_per_session() {
    let model = open(&counter());
    let mut playable = build_playable(&model, &options(2)).expect("it plays");
    assert_eq!(playable.executor(), "torch cpu, a copy for each session");
    let mut outputs = [vec![0.0; 1_024], vec![0.0; 512]];
    for (slot, output) in outputs.iter_mut().enumerate() {
        playable.process(&mut [ProcessRequest::mono(slot, &[], output)]);
    }
    assert_eq!((outputs[0][1_023], outputs[1][511]), (4.0, 2.0));
    playable.open(0, &SessionStart::default());
    playable.process(&mut [ProcessRequest::mono(0, &[], &mut outputs[0])]);
    assert_eq!(outputs[0][1_023], 4.0);
}

#[test]
fn latent_controls_work_as_for_graphs() {
    let model = open(&codec(4, 64, false));
    let options = PipelineOptions {
        sample_rate: 48_000,
        ..options(1)
    };
    let input = vec![0.5; 4_096];
    let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
    for latent in 1..=4 {
        pipeline
            .set_control(&format!("latent{latent}.scale"), 2.0)
            .expect("there is one");
    }
    let mut output = vec![0.0; input.len()];
    pipeline.process(&input, &mut output);
    assert!(
        (output[4_000] - 1.0).abs() < 1e-6
            && pipeline
                .latents()
                .iter()
                .all(|latent| (latent - 1.0).abs() < 1e-6)
    );
}

#[test]
fn priors_play_without_input() {
    let both = codec(4, 64, true);
    let model = open(&both);
    let header = model.header();
    assert_eq!(header.kind, Kind::Codec);
    let listed: Vec<String> = ondes_engine::pipeline::controls(header)
        .into_iter()
        .map(|control| control.name)
        .collect();
    for name in ["temperature", "latent1.offset", "prior", "prior.tempo"] {
        assert!(
            listed.iter().any(|known| known == name),
            "{name} in {listed:?}"
        );
    }
    let options = PipelineOptions {
        sample_rate: 48_000,
        ..options(1)
    };
    let input = vec![0.25; 4_096];
    let play = |turned: &[(&str, f32)]| {
        let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
        turned
            .iter()
            .for_each(|(name, value)| pipeline.set_control(name, *value).expect("there is one"));
        let mut output = vec![0.0; input.len()];
        pipeline.process(&input, &mut output);
        output.split_off(pipeline.latency_samples())
    };
    // The prior makes a sine; its phase advances by a tenth of the temperature per frame, or four
    // times that per step.
    let prior = |temperature: f32, n: usize| (0.1 * temperature * (n / 64 + 1) as f32).sin();
    let check = |output: &[f32], expected: &dyn Fn(usize) -> f32| {
        for (n, sample) in output.iter().enumerate() {
            assert!(
                (sample - expected(n)).abs() < 1e-4,
                "sample {n}: {sample} is not {}",
                expected(n)
            );
        }
    };
    check(&play(&[]), &|_| 0.25);
    check(&play(&[("prior", 1.0)]), &|n| prior(1.0, n));
    check(&play(&[("prior", 1.0), ("temperature", 2.0)]), &|n| {
        prior(2.0, n)
    });
    check(&play(&[("prior", 0.5)]), &|n| 0.5 * (0.25 + prior(1.0, n)));
    // At half tempo every second frame is interpolated; at double tempo every second frame is
    // skipped.
    let slow = |n: usize| 0.5 * (prior(1.0, n / 128 * 64) + prior(1.0, (n / 64).div_ceil(2) * 64));
    check(&play(&[("prior", 1.0), ("prior.tempo", 0.5)]), &slow);
    check(&play(&[("prior", 1.0), ("prior.tempo", 2.0)]), &|n| {
        prior(1.0, n / 64 * 128)
    });
    // Without an encoder, the prior is the only source.
    let alone = open(&prior_only());
    assert_eq!(alone.header().kind, Kind::Generator);
    let mut pipeline = Pipeline::new(&alone, &options).expect("it plays");
    let mut output = vec![0.0; 4_096];
    pipeline.process(&[], &mut output);
    check(&output[pipeline.latency_samples()..], &|n| prior(1.0, n));
}

#[test]
fn priors_listen_and_go_on() {
    let model = open(&listening_codec(4, 64));
    let options = PipelineOptions {
        sample_rate: 48_000,
        ..options(1)
    };
    let input = sound(8_192, 48_000);
    for tempo in [1.0, 2.0] {
        let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
        assert_eq!(pipeline.latents().len(), 4);
        pipeline.set_control("prior", 1.0).expect("there is one");
        pipeline
            .set_control("prior.tempo", tempo)
            .expect("there is one");
        let (mut output, latency) = (vec![0.0; input.len()], pipeline.latency_samples());
        let half = input.len() / 2;
        pipeline.process(&input[..half], &mut output[..half]);
        pipeline.set_control("listen", 0.0).expect("there is one");
        pipeline.process(&input[half..], &mut output[half..]);
        let heard = |n: usize| input[n / 64 * 64..][..64].iter().sum::<f32>() / 64.0;
        let played = &output[latency..];
        if tempo == 1.0 {
            assert!(
                (0..half).all(|n| (played[n] - heard(n)).abs() < 1e-6),
                "it repeats what it hears"
            );
        }
        // The control glides for some blocks of the program.
        let held = played[played.len() - 1];
        assert!(
            played[half + 2_048..]
                .iter()
                .all(|sample| (sample - held).abs() < 1e-6),
            "tempo {tempo}"
        );
        let mut lasts = (half..half + 2_048).step_by(256).map(|end| heard(end - 64));
        assert!(
            lasts.any(|last| (last - held).abs() < 1e-6),
            "tempo {tempo}: {held}"
        );
    }
}

/// Program with a prior and a decoder, without an encoder.
fn prior_only() -> Class {
    codec(4, 64, true).without("encode")
}

#[test]
fn neutone_models_run_in_their_own_blocks() {
    for old in [false, true] {
        let model = open(&neutone(old));
        let header = model.header();
        assert_eq!(
            (header.kind, header.sample_rate, header.card.author.as_str()),
            (Kind::Effect, 32_000, "A, B")
        );
        let controls: Vec<_> = header
            .controls
            .iter()
            .map(|control| (control.name.as_str(), control.default))
            .collect();
        assert_eq!(
            (header.card.name.as_str(), &controls[..]),
            ("Late", &[("Drive", 0.5), ("Bias", 0.0)][..])
        );
        assert_eq!(
            (
                header.methods[0].block,
                model.latency_samples(&header.methods[0])
            ),
            (128, 1)
        );
        let options = PipelineOptions {
            sample_rate: 32_000,
            ..options(2)
        };
        let mut playable = build_playable(&model, &options).expect("it plays");
        let turn = |name: &str, value| TimedCommand {
            at: 0,
            action: Action::Control {
                id: ControlId::new(name),
                value,
            },
        };
        playable
            .handle(1, turn("Drive", 1.0))
            .expect("there is room");
        playable
            .handle(1, turn("Bias", 0.25))
            .expect("there is room");
        let input = sound(4_000, 32_000);
        let mut outputs = vec![vec![0.0; input.len()]; 2];
        let mut requests: Vec<ProcessRequest<'_>> = outputs
            .iter_mut()
            .enumerate()
            .map(|(slot, output)| ProcessRequest::mono(slot, &input, output))
            .collect();
        playable.process(&mut requests);
        // A block, and the stated delay of one sample.
        assert_eq!(playable.latency_samples(), 128);
        let expected: [fn(f32) -> f32; 2] = [|x| 0.5 * x, |x| x + 0.25];
        for (output, expected) in outputs.iter().zip(expected) {
            let expected: Vec<f32> = input.iter().copied().map(expected).collect();
            let difference = max_difference(&output[128..], &expected);
            assert!(difference < 1e-6, "{difference:e}");
        }
    }
}

#[test]
fn programs_always_run_on_the_worker() {
    let model = Arc::new(open(&streaming(4, 3)));
    let playable_model: Arc<dyn ModelFactory> =
        Arc::new(PlayableModel::new(model.clone(), options(1)).expect("it plays"));
    let input = sound(20_480, RATE);
    let expected = play(&model, &options(1), &input, &[input.len()]);
    for driver in [
        Driver::Auto,
        Driver::Inline,
        Driver::Worker {
            latency: Some(2_048),
        },
    ] {
        let (controller, playable_model) = (SessionController::new(), playable_model.clone());
        controller.set_driver(driver);
        // Timing does not matter here, only the output.
        controller.set_non_realtime(true);
        controller.load(Box::new(move || Ok(playable_model)), &[]);
        while controller.status() == LoadStatus::Loading {
            std::thread::yield_now();
        }
        let mut session = controller
            .activate(Setup {
                sample_rate: RATE,
                max_block: 512,
            })
            .expect("a sound setup");
        let mut output = vec![0.0; input.len()];
        for (input, output) in input.chunks(512).zip(output.chunks_mut(512)) {
            session.process(&[], &[input], &mut [output]);
        }
        assert_eq!(controller.status(), LoadStatus::Ready);
        assert_eq!(
            controller.health().expect("a model plays").driven,
            Driven::Worker,
            "{driver:?}"
        );
        if let Driver::Worker { .. } = driver {
            let difference = max_difference(&output[session.latency_samples()..], &expected);
            assert!(difference < 1e-5, "{difference:e}");
        }
    }
}

#[test]
fn errors_are_one_line() {
    let good = streaming(2, 1).bytes();
    let one = Value::Buffer(vec![1], vec![1.0]);
    let wrong: [(&str, Vec<u8>, &str); 8] = [
        (
            "cut off",
            good[..good.len() / 2].to_vec(),
            "damaged or cut off",
        ),
        (
            "no program",
            b"PK\x03\x04 is all there is".to_vec(),
            "damaged or cut off",
        ),
        (
            "no method",
            Class::default()
                .method("other(x: Tensor) -> Tensor", &["return x"])
                .bytes(),
            "not a model for nn~",
        ),
        (
            "ratio of 0",
            Class::default()
                .nn("forward", [1, 0, 1, 1], &["return x"])
                .bytes(),
            "\"forward_params\"",
        ),
        (
            "a method too many",
            Class::default()
                .method(
                    "get_methods() -> List[str]",
                    &["return [\"forward\", \"backward\"]"],
                )
                .nn("forward", [1, 1, 1, 1], &["return x"])
                .bytes(),
            "\"backward\"",
        ),
        (
            "other channels",
            Class::default()
                .nn("forward", [1, 1, 2, 1], &["return x"])
                .bytes(),
            "makes a tensor [1, 1, 256] of 256 frames; expected [1, 2, 256]",
        ),
        (
            "breaks down",
            Class::default()
                .with("one", one)
                .nn("forward", [2, 1, 1, 1], &["return torch.view(x, [7])"])
                .bytes(),
            "fails: RuntimeError",
        ),
        (
            "no tensor",
            Class::default()
                .nn("forward", [1, 1, 1, 1], &["y = (x, x)", "return y[0][0]"])
                .bytes(),
            "expected",
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (what, bytes, words) in wrong {
        let path = folder.path().join("wrong.ts");
        std::fs::write(&path, bytes).expect("it can be written");
        let error = torch::open(&path).expect_err(what).to_string();
        assert!(
            error.contains(words) && error.contains("wrong.ts: ") && error.lines().count() == 1,
            "{what}: {error}"
        );
    }
}

#[test]
fn only_open_runs_programs() {
    let (_folder, path) = file(&streaming(2, 1));
    let refused = ondes_engine::model::file::read(&path)
        .expect_err("it is a program")
        .to_string();
    assert!(refused.contains("TorchScript program"), "{refused}");
    let hash = open(&streaming(2, 1)).content_hash().to_owned();
    assert!(torch::open_if(&path, |found| found == hash).is_ok());
    assert!(torch::open_if(&path, |_| false).is_err());
}

#[test]
fn noise_follows_the_seed() {
    for drawn in ["torch.randn_like(x)", "torch.normal_(torch.zeros_like(x))"] {
        let returned = format!("return {drawn}");
        let model = open(&Class::default().nn("forward", [1, 1, 1, 1], &[&returned]));
        let noise = |seed| {
            play(
                &model,
                &PipelineOptions { seed, ..options(1) },
                &[0.0; 2_048],
                &[256; 8],
            )
        };
        let first = noise(1);
        assert!(max_difference(&first, &noise(2)) > 0.1, "{drawn}");
        // libtorch's generator belongs to the process, which plays other programs meanwhile.
        std::thread::scope(|scope| {
            let (noise, first) = (&noise, &first);
            for seed in [1, 2, 1, 2] {
                scope.spawn(move || {
                    (0..8).for_each(|_| assert_eq!(noise(seed) == *first, seed == 1, "{drawn}"))
                });
            }
        });
    }
}
