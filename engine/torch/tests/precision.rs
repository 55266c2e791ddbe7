//! Programs and graphs in bf16 and f16 are close to f32, and not equal.

use ondes_engine::executor::ExecutorSelection;
use ondes_engine::executor::{Backend, Device, Precision};
use ondes_engine::model::{Activation, Kind, Model, Op, file};
use ondes_engine::ops::{Gru, Linear, Lstm};
use ondes_engine::pipeline::{
    ControlSource, Pipeline, PipelineOptions, ProcessRequest, build_playable,
};
use ondes_engine::torch;
use ondes_tests::audio_models::{method, model_with, sound, untrained_codec, untrained_effect};
use ondes_tests::torchscript::models::{codec, neutone, streaming};
use ondes_tests::torchscript::{Class, Value};
use ondes_tests::{SAMPLE_RATE, bundled_file, node, port};

/// Bounds of the relative RMS difference from f32, for several roundings to 8 and to 11 bits.
const BOUNDS: [(Precision, f64); 2] = [(Precision::Bf16, 1e-2), (Precision::F16, 2e-3)];

fn open(class: &Class) -> Model {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.ts");
    std::fs::write(&path, class.bytes()).expect("it can be written");
    torch::open(&path).expect("it runs").model
}

fn options(model: &Model, precision: Precision, sessions: usize) -> PipelineOptions {
    PipelineOptions {
        sample_rate: model.header().sample_rate,
        executor: ExecutorSelection {
            backend: Backend::Torch,
            device: Device::Cpu,
            precision,
        },
        sessions,
        source: ControlSource::AudioInput,
        ..PipelineOptions::default()
    }
}

fn play(model: &Model, precision: Precision, samples: usize) -> (Vec<f32>, String) {
    let mut pipeline = Pipeline::new(model, &options(model, precision, 1)).expect("it plays");
    let input = sound(samples, SAMPLE_RATE);
    let mut output = vec![0.0; input.len()];
    pipeline.process(&input, &mut output);
    (output, pipeline.executor())
}

fn relative_rms(values: &[f32], reference: &[f32]) -> f64 {
    let square = |x: f32| f64::from(x) * f64::from(x);
    let difference: f64 = values
        .iter()
        .zip(reference)
        .map(|(&a, &b)| square(a - b))
        .sum();
    (difference / reference.iter().map(|&b| square(b)).sum::<f64>()).sqrt()
}

/// Program that convolves a ramp which it creates in f32, whatever the precision of its weights.
fn with_own_input() -> Class {
    let weight = Value::Weight(vec![1, 1, 3], vec![0.3, 0.5, -0.2]);
    let body = [
        "ramp = torch.cumsum(torch.mul(torch.ones([1, 1, torch.size(x, 2)]), 0.001), 2)",
        "return torch.add(torch.mul(torch.conv1d(ramp, self.weight, None, [1], [1]), 0.1), x)",
    ];
    Class::default()
        .with("weight", weight)
        .nn("forward", [1, 1, 1, 1], &body)
}

/// Capture with recurrent layers and a warm-up.
fn recurrent() -> Model {
    let nodes = vec![
        node(
            "memory",
            &["in"],
            Op::Lstm(Lstm {
                hidden: 12,
                initial_state: true,
            }),
        ),
        node(
            "again",
            &["memory"],
            Op::Gru(Gru {
                hidden: 7,
                initial_state: true,
            }),
        ),
        node("fast", &["again"], Op::Activation(Activation::FastTanh)),
        node("out", &["fast"], Op::Linear(Linear { outputs: 1 })),
    ];
    let mut method = method("forward", 1, vec![port("in", 1, 1)], nodes);
    method.warm_up = 100;
    model_with(Kind::Effect, vec![method], &[], 5)
}

#[test]
fn what_is_played_is_near_to_f32() {
    for (what, model) in [
        ("convolutions", open(&streaming(8, 1))),
        ("codec", open(&codec(8, 512, false))),
        ("for Neutone", open(&neutone(false))),
        ("with tensors of its own", open(&with_own_input())),
        ("graph: effect", untrained_effect(3)),
        ("graph: codec", untrained_codec(4)),
        ("graph: recurrent", recurrent()),
    ] {
        let (reference, executor) = play(&model, Precision::F32, 8_192);
        assert_eq!(executor, "torch cpu");
        for (precision, bound) in BOUNDS {
            let (output, executor) = play(&model, precision, 8_192);
            assert_eq!(executor, format!("torch cpu {precision}"), "{what}");
            let difference = relative_rms(&output, &reference);
            println!("{what}, {precision}: {difference:.1e}");
            assert!(difference < bound, "{what}, {precision}: {difference:e}");
            assert!(
                difference > 0.02 * bound,
                "{what}: {difference:e} is no {precision}"
            );
        }
    }
}

/// Its prior is computed in f32: in bf16 it would not know where in the bar it is, and soon play
/// something else.
#[test]
fn generators_play_the_same_in_all_precisions() {
    let model = file::read(&bundled_file("drums")).expect("it is whole");
    let (reference, _) = play(&model, Precision::F32, 4 * 48_000);
    for (precision, bound) in BOUNDS {
        let difference = relative_rms(&play(&model, precision, reference.len()).0, &reference);
        assert!(difference < 2.0 * bound, "{precision}: {difference:e}");
    }
}

#[test]
fn half_precision_halves_the_states_of_a_batch() {
    let model = open(&streaming(8, 2));
    let input = sound(6_000, SAMPLE_RATE);
    let playable =
        |precision| build_playable(&model, &options(&model, precision, 3)).expect("it plays");
    let wide = playable(Precision::F32).bytes();
    for (precision, _) in BOUNDS {
        let mut playable = playable(precision);
        assert_eq!(
            playable.executor(),
            format!("torch cpu {precision}"),
            "one batch"
        );
        // Audio stays in f32.
        assert!(
            playable.bytes() < wide - wide / 4,
            "{} of {wide}",
            playable.bytes()
        );
        let mut outputs = vec![vec![0.0; input.len()]; 3];
        let mut requests: Vec<ProcessRequest<'_>> = outputs
            .iter_mut()
            .enumerate()
            .map(|(slot, output)| ProcessRequest::mono(slot, &input, output))
            .collect();
        playable.process(&mut requests);
        let mut alone = Pipeline::new(&model, &options(&model, precision, 1)).expect("it plays");
        let mut expected = vec![0.0; input.len()];
        alone.process(&input, &mut expected);
        for (slot, output) in outputs.iter().enumerate() {
            let difference = relative_rms(output, &expected);
            assert!(
                difference < 1e-3,
                "{precision}, seat {slot}: {difference:e}"
            );
        }
    }
}

#[test]
fn programs_that_do_not_support_a_precision_are_refused() {
    // Complex numbers exist for f32, not for bf16.
    let model = open(&Class::default().nn(
        "forward",
        [1, 1, 1, 1],
        &["return torch.real(torch.complex(x, x))"],
    ));
    assert!(Pipeline::new(&model, &options(&model, Precision::F32, 1)).is_ok());
    let refused = Pipeline::new(&model, &options(&model, Precision::Bf16, 1))
        .err()
        .expect("it cannot be run");
    let refused = refused.to_string();
    assert!(
        refused.starts_with("in bf16: ") && refused.lines().count() == 1,
        "{refused}"
    );
}
