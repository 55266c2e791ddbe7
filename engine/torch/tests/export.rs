//! Models exported for nn~ sound in libtorch as in the native executor, in blocks of any number of
//! frames.

use ondes_engine::dsp::level::{max_difference, peak};
use ondes_engine::executor::{Device, ExecutorSelection};
use ondes_engine::model::export::nn_tilde;
use ondes_engine::model::{
    Activation, Distribution, Kind, Method, Model, Op, Port, Tensor, Weights, file,
};
use ondes_engine::ops::{
    Affine, Attention, CodeSum, Conv1d, ConvTranspose1d, Convolve, Delay, Gru, Interleave, Latency,
    Linear, Lstm, NearestCodes, Noise, Pitch, Prelu, ShapedNoise, Split,
};
use ondes_engine::pipeline::{Pipeline, PipelineOptions, build_playable};
use ondes_engine::torch;
use ondes_tests::audio_models::{method, sound, untrained_codec, untrained_effect, whole};
use ondes_tests::{
    SAMPLE_RATE, bundled_file, model, node, port, random_splits, seeded_rng, single_node_method,
    untrained_instrument,
};
use ondes_training::tasks::codec::config::CodecConfig;
use ondes_training::tasks::codec::network;
use rand::RngExt;

/// Largest difference of a program, relative to the peak or to the RMS of what the native executor
/// makes.
const TOLERANCE: f64 = 1e-5;

fn load(model: &Model) -> tch::CModule {
    let program = nn_tilde::export(model).unwrap_or_else(|error| panic!("{error}"));
    tch::CModule::load_data(&mut program.as_slice()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a method on `[frame][channel]`, which all rows of a batch get, in pieces of these numbers
/// of frames; returns the first row and the largest difference of the others.
fn run(
    program: &tch::CModule,
    method: &str,
    channels: usize,
    input: &[f32],
    batch: i64,
    pieces: &[usize],
) -> (Vec<f32>, f64) {
    let input = tch::Tensor::from_slice(input)
        .view([1, -1, channels as i64])
        .transpose(1, 2);
    let input = input.expand([batch, -1, -1], false);
    let mut outputs = Vec::new();
    let mut at = 0;
    for &piece in pieces {
        let part = input.narrow(2, at, piece as i64);
        outputs.push(
            program
                .method_ts(method, &[part])
                .unwrap_or_else(|error| panic!("{method}: {error}")),
        );
        at += piece as i64;
    }
    let output = tch::Tensor::cat(&outputs, 2);
    let first = output.narrow(0, 0, 1);
    let difference = (&output - &first).abs().max().double_value(&[]);
    (
        Vec::<f32>::try_from(first.transpose(1, 2).contiguous().view(-1)).expect("a flat tensor"),
        difference,
    )
}

/// Compares a node with the native executor.
fn check(op: Op, inputs: &[Port], block: usize, range: std::ops::Range<f32>) {
    check_method(single_node_method(op, inputs, block), &range);
}

fn check_method(method: Method, range: &std::ops::Range<f32>) {
    let label = format!("{:?}, warm-up {}", method.nodes[0].op, method.warm_up);
    let (inputs, block) = (method.inputs.clone(), method.block);
    let model = model(Kind::Effect, vec![method], 1);
    let ratio = inputs[0].ratio;
    let (blocks, per_block) = (40, block / ratio);
    let frames = blocks * per_block;
    let mut random = seeded_rng(2);
    let ports: Vec<Vec<f32>> = inputs
        .iter()
        .map(|port| {
            (0..frames * port.channels)
                .map(|_| random.random_range(range.clone()))
                .collect()
        })
        .collect();
    let expected = whole(&model, "forward", &slices(&ports));
    let channels = inputs.iter().map(|port| port.channels).sum();
    let mut all = Vec::new();
    for frame in 0..frames {
        for (values, port) in ports.iter().zip(&inputs) {
            all.extend(&values[frame * port.channels..][..port.channels]);
        }
    }
    let program = load(&model);
    let pieces: Vec<usize> = random_splits(3, blocks, 9)
        .iter()
        .map(|&piece| piece * per_block)
        .collect();
    let (output, difference) = run(&program, "forward", channels, &all, 3, &pieces);
    let error = relative_rms(&output, &expected);
    assert!(
        error <= TOLERANCE && difference <= 1e-5,
        "{label}: {error:e}, rows differ by {difference:e}"
    );
}

fn slices(ports: &[Vec<f32>]) -> Vec<&[f32]> {
    ports.iter().map(Vec::as_slice).collect()
}

/// Returns the RMS of the difference, relative to that of the reference.
fn relative_rms(values: &[f32], reference: &[f32]) -> f64 {
    assert_eq!(values.len(), reference.len());
    let differences: Vec<f32> = values
        .iter()
        .zip(reference)
        .map(|(value, reference)| value - reference)
        .collect();
    f64::from(rms(&differences) / rms(reference))
}

fn rms(samples: &[f32]) -> f32 {
    (samples.iter().map(|sample| sample * sample).sum::<f32>() / samples.len() as f32).sqrt()
}

fn x(channels: usize) -> Vec<Port> {
    vec![port("x", channels, 1)]
}

#[test]
fn convolutions_continue() {
    check(Op::Linear(Linear { outputs: 7 }), &x(5), 4, -1.0..1.0);
    for (kernel, stride, dilation, groups) in [
        (1, 1, 1, 1),
        (3, 1, 1, 1),
        (3, 1, 7, 1),
        (4, 2, 1, 1),
        (9, 4, 1, 2),
        (5, 1, 2, 3),
        (4, 4, 1, 1),
    ] {
        check(
            Op::Conv1d(
                Conv1d::new(6, kernel)
                    .strided(stride)
                    .dilated(dilation)
                    .grouped(groups),
            ),
            &x(12),
            8,
            -1.0..1.0,
        );
    }
    for (kernel, stride) in [(2, 2), (8, 4), (3, 1), (16, 8), (24, 8)] {
        check(
            Op::ConvTranspose1d(ConvTranspose1d {
                outputs: 5,
                kernel,
                stride,
            }),
            &[port("x", 6, 8)],
            8,
            -1.0..1.0,
        );
    }
    check(Op::Convolve(Convolve { taps: 1000 }), &x(1), 128, -1.0..1.0);
    check(Op::Convolve(Convolve { taps: 1 }), &x(1), 128, -1.0..1.0);
    for frames in [0, 7, 100] {
        check(Op::Delay(Delay { frames }), &x(3), 4, -1.0..1.0);
    }
}

#[test]
fn recurrent_layers_continue() {
    for initial_state in [false, true] {
        check(
            Op::Gru(Gru {
                hidden: 15,
                initial_state,
            }),
            &x(9),
            4,
            -1.0..1.0,
        );
        check(
            Op::Lstm(Lstm {
                hidden: 13,
                initial_state,
            }),
            &x(9),
            4,
            -1.0..1.0,
        );
    }
}

#[test]
fn streams_start_from_the_state_after_the_warm_up() {
    for op in [
        Op::Lstm(Lstm {
            hidden: 9,
            initial_state: true,
        }),
        Op::Gru(Gru {
            hidden: 9,
            initial_state: false,
        }),
        Op::Conv1d(Conv1d::new(6, 3).dilated(7)),
    ] {
        check_method(
            Method {
                warm_up: 18,
                ..single_node_method(op, &x(9), 4)
            },
            &(-1.0..1.0),
        );
    }
}

#[test]
fn ops_of_single_frames_agree() {
    for op in [
        Op::Activation(Activation::Tanh),
        Op::Activation(Activation::Sigmoid),
        Op::Activation(Activation::Relu),
        Op::Activation(Activation::LeakyRelu { slope: 0.01 }),
        Op::Activation(Activation::HardTanh),
        Op::Activation(Activation::LeakyHardTanh {
            min: -1.5,
            max: 2.0,
            min_slope: 0.1,
            max_slope: -0.2,
        }),
        Op::Activation(Activation::HardSwish),
        Op::Activation(Activation::Softsign),
        Op::Activation(Activation::Silu),
        Op::Activation(Activation::FastTanh),
        Op::Activation(Activation::Softplus),
        Op::Activation(Activation::Exp),
        Op::Activation(Activation::ExpSigmoid),
        Op::Prelu(Prelu { slopes: 22 }),
        Op::Prelu(Prelu { slopes: 1 }),
        Op::Snake,
        Op::LayerNorm,
        Op::Softmax,
        Op::Gate,
        Op::Affine(Affine {
            scale: 0.7,
            offset: -0.2,
        }),
        Op::Split(Split {
            start: 2,
            channels: 5,
        }),
        Op::Latency(Latency { samples: 5 }),
    ] {
        check(op, &x(22), 4, -8.0..8.0);
    }
    let ports = |channels: &[usize]| -> Vec<Port> {
        channels
            .iter()
            .enumerate()
            .map(|(index, &channels)| port(&format!("x{index}"), channels, 1))
            .collect()
    };
    check(Op::Film, &ports(&[4, 8]), 4, -1.0..1.0);
    check(Op::Add, &ports(&[9, 9, 9]), 4, -1.0..1.0);
    check(Op::Multiply, &ports(&[9, 9]), 4, -1.0..1.0);
    check(Op::Multiply, &ports(&[9, 1]), 4, -1.0..1.0);
    check(Op::Concat, &ports(&[3, 5, 1]), 4, -1.0..1.0);
    check(
        Op::Interleave(Interleave { factor: 4 }),
        &[port("x", 12, 4)],
        8,
        -1.0..1.0,
    );
    check(
        Op::NearestCodes(NearestCodes {
            codebooks: 3,
            codes: 17,
        }),
        &[port("x", 6, 8)],
        8,
        -1.0..1.0,
    );
    check(
        Op::CodeSum(CodeSum {
            codes: 5,
            channels: 7,
        }),
        &[port("x", 3, 8)],
        8,
        -2.0..8.0,
    );
    let attended = ["query", "key", "value"].map(|name| port(name, 12, 4));
    for window in [1, 9] {
        check(
            Op::Attention(Attention { heads: 3, window }),
            &attended,
            8,
            -2.0..2.0,
        );
    }
    for (channels, bands, hop) in [(3, 5, 64), (16, 5, 8), (1, 2, 2), (2, 32, 8)] {
        let ports = [
            port("magnitudes", channels * bands, hop),
            port("white", channels * hop, hop),
        ];
        check(
            Op::ShapedNoise(ShapedNoise { bands, hop }),
            &ports,
            hop,
            -1.0..1.0,
        );
    }
}

#[test]
fn oscillators_continue() {
    for hop in [64, 256] {
        let bank = [
            port("pitch", 1, hop),
            port("amplitude", 1, hop),
            port("distribution", 30, hop),
        ];
        check(Op::Harmonic, &bank, hop, 0.01..1.0);
    }
    // A glide in which harmonics pass half the sample rate.
    let (hop, frames, harmonics) = (64, 200, 20);
    let bank = [
        port("pitch", 1, hop),
        port("amplitude", 1, hop),
        port("distribution", harmonics, hop),
    ];
    let model = model(
        Kind::Effect,
        vec![single_node_method(Op::Harmonic, &bank, hop)],
        1,
    );
    let pitch: Vec<f32> = (0..frames).map(|frame| 60.0 + 0.3 * frame as f32).collect();
    let ones = vec![1.0; frames];
    let distribution: Vec<f32> = (0..frames * harmonics)
        .map(|index| 1.0 / (1 + index % harmonics) as f32)
        .collect();
    let inputs = [pitch, ones, distribution];
    let expected = whole(&model, "forward", &slices(&inputs));
    let mut all = Vec::new();
    for frame in 0..frames {
        all.extend([inputs[0][frame], inputs[1][frame]]);
        all.extend(&inputs[2][frame * harmonics..][..harmonics]);
    }
    let (output, _) = run(
        &load(&model),
        "forward",
        2 + harmonics,
        &all,
        1,
        &random_splits(4, frames, 30),
    );
    let error = relative_rms(&output, &expected);
    assert!(error <= TOLERANCE, "{error:e}");
}

/// Steady tones, one of them with a strong fifth partial, and silence, in which the last pitch stays.
#[test]
fn pitches_are_near() {
    let (hop, rate) = (256, SAMPLE_RATE as f32);
    let heard = single_node_method(Op::Pitch(Pitch { hop }), &x(1), hop);
    let heard = model(Kind::Effect, vec![heard], 1);
    for (hertz, levels) in [
        (60.0, [1.0, 0.8, 0.6, 0.5, 0.4]),
        (104.0, [0.2, 0.2, 0.2, 0.2, 1.0]),
        (440.0, [1.0, 0.5, 0.0, 0.2, 0.0]),
        (1_730.0, [1.0, 0.0, 0.0, 0.0, 0.0]),
    ] {
        let sample = |n: usize| -> f32 {
            let partial = |(index, level): (usize, f32)| {
                let cycles = (index + 1) as f32 * hertz * n as f32 / rate;
                0.2 * level * (std::f32::consts::TAU * cycles.fract()).sin()
            };
            levels.into_iter().enumerate().map(partial).sum()
        };
        let sound: Vec<f32> = (0..64 * hop)
            .map(|n| if n < 48 * hop { sample(n) } else { 0.0 })
            .collect();
        let expected = whole(&heard, "forward", &[&sound]);
        let pieces: Vec<usize> = random_splits(5, 64, 9)
            .iter()
            .map(|&blocks| blocks * hop)
            .collect();
        let (output, difference) = run(&load(&heard), "forward", 1, &sound, 3, &pieces);
        let truth = 69.0 + 12.0 * (hertz / 440.0).log2();
        for frames in [&expected[12..], &output[12..]] {
            for (at, pitch) in frames[..36].iter().enumerate() {
                assert!(
                    (pitch - truth).abs() < 0.1,
                    "{hertz} Hz, {at}: {pitch} of {truth}"
                );
            }
            let silent = &frames[46..];
            assert!(
                silent.iter().all(|pitch| *pitch == silent[0]),
                "{hertz} Hz: {silent:?}"
            );
        }
        let steady = max_difference(&output[12..46], &expected[12..46]);
        assert!(
            steady < 0.05 && difference < 1e-4,
            "{hertz} Hz: {steady} semitones"
        );
    }
}

#[test]
fn noise_has_the_same_spectrum() {
    let (hop, bands, frames) = (64, 9, 4_000);
    let filtered = single_node_method(Op::FilteredNoise, &[port("magnitudes", bands, hop)], hop);
    let filtered = model(Kind::Effect, vec![filtered], 1);
    let program = load(&filtered);
    for band in 0..bands {
        let input: Vec<f32> = (0..frames * bands)
            .map(|index| f32::from(u8::from(index % bands == band)))
            .collect();
        let expected = whole(&filtered, "forward", &[&input]);
        tch::manual_seed(5);
        let (output, _) = run(&program, "forward", bands, &input, 1, &[frames]);
        let ratio = rms(&output) / rms(&expected);
        assert!((ratio - 1.0).abs() < 0.03, "band {band}: {ratio}");
        // The same noise in pieces, by another program, which starts from silence.
        tch::manual_seed(5);
        let (pieces, _) = run(
            &load(&filtered),
            "forward",
            bands,
            &input,
            1,
            &random_splits(6, frames, 500),
        );
        if band == 0 {
            assert!(max_difference(&output, &pieces) < 1e-5);
        }
    }
    for (distribution, level) in [
        (Distribution::Uniform, 1.0 / 3.0_f32.sqrt()),
        (Distribution::Normal, 1.0),
    ] {
        let noise = single_node_method(
            Op::Noise(Noise {
                channels: 5,
                distribution,
                number: 0,
            }),
            &x(2),
            4,
        );
        let (output, rows) = run(
            &load(&model(Kind::Effect, vec![noise], 1)),
            "forward",
            2,
            &vec![0.0; 16_000],
            2,
            &[8_000],
        );
        assert!(
            (rms(&output) / level - 1.0).abs() < 0.02 && rows > 0.1,
            "{distribution:?}"
        );
    }
}

/// Returns a codec as it is trained, with random weights: loud, and with noise 140 dB below full
/// scale.
fn small_codec() -> Model {
    let config = serde_json::json!({ "name": "Small", "data": "", "out": "", "work": "", "network": { "channels": 8 } });
    let config: CodecConfig =
        serde_json::from_value(config).expect("all other fields have defaults");
    let model = network::untrained(&config).expect("the sizes fit");
    let mut weights = Weights::default();
    for (name, tensor) in model.weights().iter() {
        let values = match name {
            "decoder.noise.shape.bias" => vec![-100.0; tensor.shape()[0]],
            "decoder.wave.weight" => tensor.floats().iter().map(|value| 8.0 * value).collect(),
            _ => tensor.floats().into_owned(),
        };
        weights.insert(name, Tensor::new(tensor.shape(), values));
    }
    Model::new(model.header().clone(), weights).expect("only values have changed")
}

/// Compares all methods of a codec, and the program of it, which the library plays, with the model.
fn check_codec(model: &Model) {
    let method = |name| model.method(name).expect("it is there");
    let (encode, decode) = (method("encode"), method("decode"));
    let (latents, ratio) = (encode.outputs[0].channels, encode.outputs[0].ratio);
    let blocks = 24 * decode.block / ratio;
    let frames = encode.block / ratio * blocks;
    let input = sound(frames * ratio, model.header().sample_rate);
    let z = whole(model, "encode", &[&input]);
    let y = whole(model, "decode", &[&z]);
    for longest in [1, 2, 7, 24] {
        let pieces: Vec<usize> = random_splits(8, frames, longest);
        let samples: Vec<usize> = pieces.iter().map(|&frames| frames * ratio).collect();
        let program = load(model);
        let (ours, rows) = run(&program, "encode", 1, &input, 4, &samples);
        let error = relative_rms(&ours, &z);
        assert!(
            error <= TOLERANCE && rows < 1e-5,
            "encode, up to {longest} frames: {error:e}, rows {rows:e}"
        );
        let (ours, rows) = run(&program, "decode", latents, &z, 4, &pieces);
        let error = relative_rms(&ours, &y);
        assert!(
            error <= TOLERANCE && rows < 1e-5,
            "decode, up to {longest} frames: {error:e}, rows {rows:e}"
        );
    }
    if model.header().method("forward").is_some() {
        let samples: Vec<usize> = random_splits(9, frames, 5)
            .iter()
            .map(|&frames| frames * ratio)
            .collect();
        let (ours, _) = run(&load(model), "forward", 1, &input, 1, &samples);
        let error = relative_rms(&ours, &y);
        assert!(error <= TOLERANCE, "forward: {error:e}");
    }

    let opened = open(model);
    assert_eq!(opened.header().kind, Kind::Codec);
    assert_eq!(opened.header().sample_rate, model.header().sample_rate);
    let silent = [encode, decode]
        .map(|method| model.latency_samples(method))
        .iter()
        .sum();
    let expected = play(model, &input, &[], 0);
    let error = |ours: &[f32]| {
        let length = ours.len().min(expected.len());
        max_difference(&ours[..length], &expected[..length]) / peak(&expected)
    };
    let played = error(&play(&opened, &input, &[], silent));
    assert!(f64::from(played) < 10.0 * TOLERANCE, "played: {played:e}");
}

/// Exports a model and opens the program as plugin and app do.
fn open(model: &Model) -> Model {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("exported.ts");
    std::fs::write(&path, nn_tilde::export(model).expect("it can be exported"))
        .expect("it can be written");
    torch::open(&path)
        .unwrap_or_else(|error| panic!("{error}"))
        .model
}

/// Returns the output of a model at its own rate, without its latency and `silent` further samples.
fn play(model: &Model, input: &[f32], controls: &[(&str, f32)], silent: usize) -> Vec<f32> {
    let mut pipeline = Pipeline::new(model, &options(model, 1)).expect("it plays");
    for &(name, value) in controls {
        pipeline
            .set_control(name, value)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let latency = pipeline.latency_samples() + silent;
    let input = [input, &vec![0.0; latency]].concat();
    let mut output = vec![0.0; input.len()];
    let mut at = 0;
    for piece in random_splits(11, input.len(), 2_000) {
        pipeline.process(&input[at..at + piece], &mut output[at..at + piece]);
        at += piece;
    }
    output.split_off(latency)
}

fn options(model: &Model, sessions: usize) -> PipelineOptions {
    PipelineOptions {
        sample_rate: model.header().sample_rate,
        sessions,
        executor: ExecutorSelection {
            device: Device::Cpu,
            ..ExecutorSelection::default()
        },
        ..PipelineOptions::default()
    }
}

#[test]
fn codecs_sound_the_same() {
    check_codec(&small_codec());
    check_codec(&untrained_codec(3));
}

#[test]
fn streams_of_a_codec_are_a_batch() {
    let playable =
        build_playable(&open(&small_codec()), &options(&small_codec(), 8)).expect("it plays");
    assert!(
        !playable.executor().contains("copy"),
        "{}",
        playable.executor()
    );
}

#[test]
fn effects_sound_the_same_with_their_controls() {
    let model = untrained_effect(4);
    let input = sound(20_000, model.header().sample_rate);
    let opened = open(&model);
    for drive in [1.0, 2.5] {
        let expected = play(&model, &input, &[("drive", drive)], 0);
        let ours = play(&opened, &input, &[("drive", drive)], 0);
        // The native pipeline moves a control within a few blocks; an attribute of a program jumps.
        let error = max_difference(&ours[10_000..], &expected[10_000..]) / peak(&expected);
        assert!(f64::from(error) < TOLERANCE, "drive {drive}: {error:e}");
    }
}

#[test]
fn captures_sound_the_same() {
    let model = file::read(&bundled_file("fuzz")).expect("it is bundled");
    let input = sound(20_000, model.header().sample_rate);
    let (expected, ours) = (
        play(&model, &input, &[], 0),
        play(&open(&model), &input, &[], 0),
    );
    let error = max_difference(&ours, &expected) / peak(&expected);
    assert!(f64::from(error) < 10.0 * TOLERANCE, "{error:e}");
}

#[test]
fn refusals_name_the_method() {
    let instrument = nn_tilde::export(&untrained_instrument(1))
        .expect_err("its hop is 192")
        .to_string();
    assert_eq!(
        instrument,
        "method \"synth\" has a ratio of 192 samples; nn~ needs powers of two"
    );
    let nodes = vec![
        node("down", &["x"], Op::Conv1d(Conv1d::new(3, 8).strided(8))),
        node(
            "up",
            &["down"],
            Op::ConvTranspose1d(ConvTranspose1d {
                outputs: 1,
                kernel: 8,
                stride: 8,
            }),
        ),
    ];
    let hidden = model(Kind::Effect, vec![method("forward", 8, x(1), nodes)], 1);
    let error = nn_tilde::export(&hidden)
        .expect_err("nn~ does not know the ratio")
        .to_string();
    assert!(
        error.starts_with("method \"forward\" needs blocks of 8 samples"),
        "{error}"
    );
    let program = open(&untrained_codec(1));
    let error = nn_tilde::export(&program)
        .expect_err("it is a program")
        .to_string();
    assert!(error.contains("TorchScript program already"), "{error}");
}
