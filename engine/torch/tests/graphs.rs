//! Graphs on libtorch, block by block through the library, sound as on the native executor.

use ondes_engine::dsp::level::max_difference;
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::executor::{Backend, Device};
use ondes_engine::model::{Kind, Op};
use ondes_engine::ops::{Gru, Linear, Lstm};
use ondes_engine::pipeline::{
    ControlSource, Pipeline, PipelineOptions, Playable, ProcessRequest, SessionStart,
    build_playable,
};
use ondes_tests::audio_models::{
    autoregressive_generator, method, model_with, sound, untrained_codec, untrained_effect,
};
use ondes_tests::{SAMPLE_RATE, node, port, random_splits, untrained_instrument};

fn options(backend: Backend, sessions: usize) -> PipelineOptions {
    let executor = ExecutorSelection {
        backend,
        device: Device::Cpu,
        ..ExecutorSelection::default()
    };
    PipelineOptions {
        executor,
        sessions,
        source: ControlSource::AudioInput,
        ..PipelineOptions::default()
    }
}

#[test]
fn effects_codecs_generators_and_recurrent_captures_match_the_native_executor() {
    let lstm = |initial_state| {
        let nodes = vec![
            node(
                "memory",
                &["in"],
                Op::Lstm(Lstm {
                    hidden: 12,
                    initial_state,
                }),
            ),
            node(
                "again",
                &["memory"],
                Op::Gru(Gru {
                    hidden: 7,
                    initial_state,
                }),
            ),
            node("out", &["again"], Op::Linear(Linear { outputs: 1 })),
        ];
        let mut method = method("forward", 1, vec![port("in", 1, 1)], nodes);
        method.warm_up = if initial_state { 100 } else { 0 };
        model_with(Kind::Effect, vec![method], &[], 5)
    };
    for (what, model) in [
        ("effect", untrained_effect(3)),
        ("codec", untrained_codec(4)),
        ("generator", autoregressive_generator(6)),
        ("recurrent", lstm(false)),
        ("recurrent, warmed up", lstm(true)),
    ] {
        let input = sound(8_192, SAMPLE_RATE);
        let render = |backend| {
            let mut pipeline = Pipeline::new(&model, &options(backend, 1)).expect("it plays");
            let mut output = vec![0.0; input.len()];
            let mut at = 0;
            for piece in random_splits(7, input.len(), 900) {
                pipeline.process(&input[at..at + piece], &mut output[at..at + piece]);
                at += piece;
            }
            (output, pipeline.executor())
        };
        let ((native, _), (torch, executor)) = (render(Backend::Native), render(Backend::Torch));
        let difference = max_difference(&native, &torch);
        assert_eq!(executor, "torch cpu");
        assert!(
            difference < 1e-5 && native.iter().any(|sample| sample.abs() > 1e-3),
            "{what}: {difference:e}"
        );
    }
}

#[test]
fn sessions_have_separate_states() {
    let model = untrained_effect(8);
    let input = sound(6_000, SAMPLE_RATE);
    let play = |playable: &mut dyn Playable, slot: usize, from: usize, to: usize| {
        let mut output = vec![0.0; to - from];
        playable.process(&mut [ProcessRequest::mono(slot, &input[from..to], &mut output)]);
        output
    };
    let mut alone = build_playable(&model, &options(Backend::Native, 1)).expect("it plays");
    let alone = play(&mut *alone, 0, 0, 6_000);
    let mut both = build_playable(&model, &options(Backend::Torch, 2)).expect("it plays");
    let mut first = play(&mut *both, 0, 0, 2_000);
    let second = play(&mut *both, 1, 0, 6_000);
    first.extend(play(&mut *both, 0, 2_000, 6_000));
    for output in [&first, &second] {
        assert!(max_difference(output, &alone) < 1e-5);
    }
    both.open(0, &SessionStart::default());
    assert!(max_difference(&play(&mut *both, 0, 0, 6_000), &alone) < 1e-5);
}

#[test]
fn instruments_always_run_natively() {
    let pipeline =
        Pipeline::new(&untrained_instrument(1), &options(Backend::Torch, 1)).expect("it plays");
    assert!(
        pipeline.executor().starts_with("native"),
        "{}",
        pipeline.executor()
    );
}
