//! A pipeline's reported latency is exact at every sample rate.

use ondes_engine::dsp::resample::{Resampling, resample};
use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::{Activation, Kind, Method, Model, Op, Tensor, file};
use ondes_engine::ops::{Affine, Conv1d, ConvTranspose1d};
use ondes_engine::pipeline::{ControlSource, Pipeline, PipelineOptions};
use ondes_tests::audio_models::method;
use ondes_tests::{
    HOP, SAMPLE_RATE, bundled_models, header, model, node, port, random_weights,
    untrained_instrument,
};

/// Returns an instrument that plays a sine at the input's level, so that the delay shows in the
/// envelope.
fn envelope_follower() -> Model {
    let synth = Method {
        name: "synth".into(),
        block: HOP,
        warm_up: 0,
        inputs: vec![port("pitch", 1, HOP), port("loudness", 1, HOP)],
        outputs: vec![port("audio", 1, 1)],
        nodes: vec![
            node(
                "scaled",
                &["loudness"],
                Op::Affine(Affine {
                    scale: 0.1,
                    offset: 1.5,
                }),
            ),
            node(
                "amplitude",
                &["scaled"],
                Op::Activation(Activation::ExpSigmoid),
            ),
            node("audio", &["pitch", "amplitude", "amplitude"], Op::Harmonic),
        ],
    };
    model(Kind::Instrument, vec![synth], 1)
}

/// Plays a little over a second, removes the latency, and converts the output to the model's rate.
fn aligned(model: &Model, sample_rate: u32, source: ControlSource) -> Vec<f32> {
    let mut pipeline = Pipeline::new(
        model,
        &PipelineOptions {
            sample_rate,
            source,
            ..PipelineOptions::default()
        },
    )
    .expect("it plays");
    let latency = pipeline.latency_samples();
    let length = sample_rate as usize + latency;
    let mut sound = vec![0.0; length];
    match source {
        ControlSource::Notes => {
            // An integer number of samples at every rate.
            let at = u64::from(sample_rate) / 5;
            let kind = EventKind::NoteOn {
                channel: 0,
                key: 57,
                velocity: 0.8,
            };
            pipeline.handle(Event { at, kind }).expect("there is room");
            pipeline.process(&[], &mut sound);
        }
        ControlSource::AudioInput => {
            let step = std::f64::consts::TAU * 220.0 / f64::from(sample_rate);
            let swell = |n: usize| {
                let t = n as f64 / f64::from(sample_rate);
                ((40.0 * t).sin() * (17.0 * t).sin()).max(0.0)
            };
            let input: Vec<f32> = (0..length)
                .map(|n| (0.4 * swell(n) * (step * n as f64).sin()) as f32)
                .collect();
            pipeline.process(&input, &mut sound);
        }
    }
    resample(&sound[latency..], sample_rate, SAMPLE_RATE).expect("rates that can be bridged")
}

/// Returns the level around each sample. Phases may differ between sample rates, levels may not.
fn envelope(sound: &[f32]) -> Vec<f64> {
    // Two periods of the tone, which leaves no ripple.
    const REACH: usize = 436;
    let sums = sound.iter().scan(0.0, |sum, sample| {
        *sum += f64::from(sample.abs());
        Some(*sum)
    });
    let sums: Vec<f64> = sums.collect();
    sums[REACH..]
        .iter()
        .zip(&sums)
        .map(|(end, start)| end - start)
        .collect()
}

/// Returns the shift of `sound` against `reference` with the least difference, in samples.
fn shift(sound: &[f64], reference: &[f64]) -> isize {
    let unlike = |shift: isize| -> f64 {
        (2000..40_000)
            .map(|n: isize| (sound[(n + shift) as usize] - reference[n as usize]).powi(2))
            .sum()
    };
    (-300..=300)
        .min_by(|&a, &b| unlike(a).total_cmp(&unlike(b)))
        .expect("there are shifts")
}

#[test]
fn instruments_have_the_reported_latency() {
    let wave = |sound: &[f32]| -> Vec<f64> { sound.iter().copied().map(f64::from).collect() };
    // Notes give the same wave at every rate. The analysis of audio differs slightly, so that
    // phases drift.
    type View<'a> = &'a dyn Fn(&[f32]) -> Vec<f64>;
    let bundled = bundled_models()
        .into_iter()
        .map(|path| file::read(&path).expect("bundled models are valid"));
    let played = bundled
        .chain([untrained_instrument(1)])
        .map(|model| (model, ControlSource::Notes));
    for (model, source) in played.chain([(envelope_follower(), ControlSource::AudioInput)]) {
        let name = &model.header().card.name;
        let (view, tolerance): (View<'_>, isize) = match source {
            ControlSource::Notes => (&wave, 1),
            ControlSource::AudioInput => (&envelope, 12),
        };
        let reference = view(&aligned(&model, SAMPLE_RATE, source));
        assert!(
            reference.iter().any(|sample| sample.abs() > 1e-3),
            "{name}: silent"
        );
        for rate in [22_050, 32_000, 44_100, 88_200, 96_000, 192_000] {
            let found = shift(&view(&aligned(&model, rate, source)), &reference);
            assert!(
                found.abs() <= tolerance,
                "{name} at {rate} Hz is {found} samples off"
            );
        }
    }
}

/// Returns an effect that smooths its input slightly.
fn smoothing_effect() -> Model {
    let nodes = vec![node("out", &["in"], Op::Conv1d(Conv1d::new(1, 5)))];
    let methods = vec![method("forward", 48, vec![port("in", 1, 1)], nodes)];
    with_weights(
        Kind::Effect,
        methods,
        &[("out", &[1, 1, 5], vec![0.1, 0.2, 0.4, 0.2, 0.1])],
    )
}

/// Returns a codec whose latent is the mean of 64 samples, interpolated linearly.
fn averaging_codec() -> Model {
    let down = vec![node(
        "mean",
        &["in"],
        Op::Conv1d(Conv1d::new(1, 64).strided(64)),
    )];
    let up = vec![node(
        "lines",
        &["z"],
        Op::ConvTranspose1d(ConvTranspose1d {
            outputs: 1,
            kernel: 128,
            stride: 64,
        }),
    )];
    let methods = vec![
        method("encode", 64, vec![port("in", 1, 1)], down),
        method("decode", 64, vec![port("z", 1, 64)], up),
    ];
    let lines = (0..128_usize)
        .map(|tap| 1.0 - (tap as f32 + 0.5 - 64.0).abs() / 64.0)
        .collect();
    let mean = vec![1.0 / 64.0; 64];
    with_weights(
        Kind::Codec,
        methods,
        &[("mean", &[1, 1, 64], mean), ("lines", &[1, 1, 128], lines)],
    )
}

/// Creates a model with the given weights and zero biases.
fn with_weights(kind: Kind, methods: Vec<Method>, values: &[(&str, &[usize], Vec<f32>)]) -> Model {
    let mut weights = random_weights(&methods, 1);
    for (name, shape, values) in values {
        weights.insert(format!("{name}.weight"), Tensor::new(shape, values.clone()));
        weights.insert(format!("{name}.bias"), Tensor::new(&[1], vec![0.0]));
    }
    Model::new(header(kind, methods), weights).expect("it fits")
}

#[test]
fn effects_and_codecs_have_the_reported_latency() {
    // Slow enough for the codec's 750 frames per second.
    let swell = |n: usize, rate: u32| {
        let t = n as f64 / f64::from(rate);
        (0.3 * (40.0 * t).sin() + 0.2 * (110.0 * t).sin() + 0.1 * (290.0 * t).cos()) as f32
    };
    for (model, tolerance) in [(smoothing_effect(), 0), (averaging_codec(), 1)] {
        let aligned = |rate: u32| -> Vec<f64> {
            let options = PipelineOptions {
                sample_rate: rate,
                ..PipelineOptions::default()
            };
            let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
            let latency = pipeline.latency_samples();
            let input: Vec<f32> = (0..rate as usize + latency)
                .map(|n| swell(n, rate))
                .collect();
            let mut output = vec![0.0; input.len()];
            pipeline.process(&input, &mut output);
            let output =
                resample(&output[latency..], rate, SAMPLE_RATE).expect("rates that can be bridged");
            output.into_iter().map(f64::from).collect()
        };
        let reference = aligned(SAMPLE_RATE);
        for rate in [22_050, 32_000, 44_100, 88_200, 96_000, 192_000] {
            let found = shift(&aligned(rate), &reference);
            assert!(
                found.abs() <= tolerance,
                "{:?} at {rate} Hz is {found} samples off",
                model.header().kind
            );
        }
    }
}

#[test]
fn notes_start_at_the_reported_latency() {
    let sound = aligned(&untrained_instrument(1), SAMPLE_RATE, ControlSource::Notes);
    let onset = sound
        .iter()
        .position(|sample| sample.abs() > 1e-5)
        .expect("the note sounds");
    // The note is at 9 600. Its frame is interpolated over one hop, and it fades in over another.
    assert!((9_408..10_200).contains(&onset), "onset at {onset}");
}

#[test]
fn without_conversion_notes_wait_for_one_hop_only() {
    let pipeline =
        Pipeline::new(&untrained_instrument(1), &PipelineOptions::default()).expect("it plays");
    assert_eq!(pipeline.latency_samples(), HOP);
}

/// Latency in milliseconds of a model in a callback.
fn latency_ms(model: &Model, sample_rate: u32, source: ControlSource) -> f64 {
    let options = PipelineOptions {
        sample_rate,
        source,
        ..PipelineOptions::default()
    };
    let pipeline = Pipeline::new(model, &options).expect("it plays");
    1e3 * pipeline.latency_samples() as f64 / f64::from(sample_rate)
}

#[test]
fn latency_is_low_at_usual_rates() {
    let wire = with_weights(
        Kind::Effect,
        vec![method(
            "forward",
            1,
            vec![port("in", 1, 1)],
            vec![node(
                "out",
                &["in"],
                Op::Affine(Affine {
                    scale: 1.0,
                    offset: 0.0,
                }),
            )],
        )],
        &[],
    );
    for (rate, conversion_ms) in [
        (44_100, 1.0),
        (48_000, 0.0),
        (88_200, 0.6),
        (96_000, 0.6),
        (192_000, 0.6),
    ] {
        let converted = latency_ms(&wire, rate, ControlSource::AudioInput);
        assert!(
            converted <= conversion_ms,
            "conversion at {rate} Hz: {converted:.2} ms"
        );
        for model in bundled_models()
            .into_iter()
            .map(|path| file::read(&path).expect("bundled models are valid"))
        {
            if model.header().kind == Kind::Instrument {
                let (notes, followed) = (
                    latency_ms(&model, rate, ControlSource::Notes),
                    latency_ms(&model, rate, ControlSource::AudioInput),
                );
                let name = &model.header().card.name;
                assert!(notes <= 6.0, "{name} at {rate} Hz, by notes: {notes:.2} ms");
                assert!(
                    followed <= 15.0 + conversion_ms,
                    "{name} at {rate} Hz, following: {followed:.2} ms"
                );
            }
        }
    }
}

/// A note that comes in a block of 64 samples is heard soon after it, wherever it falls between two
/// hops.
#[test]
fn notes_are_heard_within_six_milliseconds() {
    const BLOCK: usize = 64;
    let model = bundled_models()
        .into_iter()
        .find(|path| path.ends_with("plucked.ondes"))
        .expect("it is bundled");
    let model = file::read(&model).expect("bundled models are valid");
    for rate in [44_100, 48_000, 88_200, 96_000_u32] {
        for at in [4_000, 4_050, 4_100, 4_150, 4_199] {
            let options = PipelineOptions {
                sample_rate: rate,
                ..PipelineOptions::default()
            };
            let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
            let mut sound = vec![0.0; rate as usize / 4];
            for (index, block) in sound.chunks_mut(BLOCK).enumerate() {
                if index == at / BLOCK {
                    let kind = EventKind::NoteOn {
                        channel: 0,
                        key: 57,
                        velocity: 0.8,
                    };
                    pipeline
                        .handle(Event {
                            at: at as u64,
                            kind,
                        })
                        .expect("there is room");
                }
                pipeline.process(&[], block);
            }
            let peak = sound
                .iter()
                .fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
            // 60 dB below the peak.
            let heard = sound
                .iter()
                .position(|sample| sample.abs() > 1e-3 * peak)
                .expect("it sounds");
            let ms = 1e3 * (heard - at) as f64 / f64::from(rate);
            assert!(
                (0.0..=6.0).contains(&ms),
                "{rate} Hz, note at {at}: heard after {ms:.2} ms"
            );
        }
    }
}

/// Every output sample is there when it is due, at any rate and any block length, and the sound
/// does not depend on it.
#[test]
fn no_sample_is_late_at_any_rate() {
    let models = [
        (smoothing_effect(), ControlSource::AudioInput),
        (averaging_codec(), ControlSource::AudioInput),
        (envelope_follower(), ControlSource::AudioInput),
        (envelope_follower(), ControlSource::Notes),
    ];
    for rate in [
        1_000, 1_235, 8_000, 22_050, 44_099, 47_999, 48_001, 96_000, 768_000, 1_000_000,
    ] {
        for (model, source) in &models {
            let options = PipelineOptions {
                sample_rate: rate,
                source: *source,
                ..PipelineOptions::default()
            };
            let play = |blocks: &[usize]| {
                let mut pipeline = Pipeline::new(model, &options).expect("it plays");
                let note = EventKind::NoteOn {
                    channel: 0,
                    key: 57,
                    velocity: 0.8,
                };
                pipeline
                    .handle(Event {
                        at: 100,
                        kind: note,
                    })
                    .expect("there is room");
                let mut sound = Vec::new();
                for &length in blocks.iter().cycle() {
                    let length = length.min(20_000 - sound.len());
                    let swell = |n: usize| (0.05 * n as f32).sin() * (0.0007 * n as f32).cos();
                    let input: Vec<f32> = (sound.len()..sound.len() + length).map(swell).collect();
                    let mut block = vec![0.0; length];
                    pipeline.process(&input, &mut block);
                    assert_eq!(
                        pipeline.samples_missing(),
                        0,
                        "{:?} at {rate} Hz",
                        model.header().kind
                    );
                    sound.extend(block);
                    if sound.len() == 20_000 {
                        return sound;
                    }
                }
                sound
            };
            assert!(
                play(&[1, 64, 7, 480, 1_500]) == play(&[20_000]),
                "{:?} at {rate} Hz",
                model.header().kind
            );
        }
    }
}

/// Linear phase, the other method, has the reported latency, too.
#[test]
fn linear_phase_has_the_reported_latency() {
    let model = smoothing_effect();
    let swell = |n: usize, rate: u32| (0.3 * (40.0 * n as f64 / f64::from(rate)).sin()) as f32;
    let aligned = |sample_rate: u32, resampling: Resampling| -> Vec<f64> {
        let options = PipelineOptions {
            sample_rate,
            resampling,
            ..PipelineOptions::default()
        };
        let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
        let latency = pipeline.latency_samples();
        let input: Vec<f32> = (0..sample_rate as usize + latency)
            .map(|n| swell(n, sample_rate))
            .collect();
        let mut output = vec![0.0; input.len()];
        pipeline.process(&input, &mut output);
        assert_eq!(pipeline.samples_missing(), 0);
        output[latency..].iter().copied().map(f64::from).collect()
    };
    for rate in [44_100, 88_200, 96_000] {
        let (low, linear) = (
            aligned(rate, Resampling::LowLatency),
            aligned(rate, Resampling::LinearPhase),
        );
        assert_eq!(shift(&linear, &low), 0, "at {rate} Hz");
    }
}
