//! Methods that receive their own output: an autoregressive prior steps alike in any blocks, for
//! any streams.

use ondes_engine::Kernels;
use ondes_engine::executor::{Execute, ExecutorOptions, ExecutorSelection, MethodExecutor};
use ondes_engine::model::bars::Recall;
use ondes_engine::model::graph::PREVIOUS;
use ondes_engine::model::{Kind, Method, Model, ModelError};
use ondes_engine::native;
use ondes_engine::pipeline::{BarMemory, Pipeline, PipelineOptions};
use ondes_tests::audio_models::{
    LATENTS, RATIO, autoregressive_generator, model_with, recalling_generator, sound,
};
use ondes_tests::{port, random_splits};

fn prepared(model: &Model, streams: usize, blocks: usize) -> MethodExecutor {
    let options = ExecutorOptions {
        selection: ExecutorSelection::default(),
        kernels: Kernels::detect(),
        allow_fallback: false,
    };
    options
        .prepare(
            model,
            model.method("prior").expect("it is there"),
            streams,
            blocks,
        )
        .expect("it can be run")
}

/// Runs `blocks` blocks of a stream at a temperature.
fn step(
    executor: &mut MethodExecutor,
    streams: &[usize],
    blocks: usize,
    temperature: f32,
) -> Vec<f32> {
    executor.begin(streams, blocks);
    executor.input(0).fill(f32::NAN);
    executor.input(1).fill(temperature);
    executor.run();
    executor.output(0).to_vec()
}

#[test]
fn outputs_are_fed_back_block_by_block() {
    const BLOCKS: usize = 60;
    let model = autoregressive_generator(7);
    let mut executor = prepared(&model, 1, BLOCKS);
    executor.seed(0, 3);
    let whole = step(&mut executor, &[0], BLOCKS, 1.0);
    assert!(whole.iter().all(|value| value.is_finite()));

    // The graph itself reads what came before as an input: given its own output, one block later,
    // it repeats it.
    let mut open = native::Executor::new(&model, "prior", Kernels::detect(), 1, BLOCKS)
        .expect("it can be run");
    open.seed(0, 3);
    open.begin(&[0], BLOCKS);
    open.input(0)[..LATENTS].fill(0.0);
    open.input(0)[LATENTS..].copy_from_slice(&whole[..(BLOCKS - 1) * LATENTS]);
    open.input(1).fill(1.0);
    open.run();
    assert_eq!(open.output(0), whole);

    // Without what came before it is something else.
    open.seed(0, 3);
    open.begin(&[0], BLOCKS);
    open.input(0).fill(0.0);
    open.input(1).fill(1.0);
    open.run();
    assert_eq!(open.output(0)[..LATENTS], whole[..LATENTS]);
    assert_ne!(
        open.output(0)[LATENTS..2 * LATENTS],
        whole[LATENTS..2 * LATENTS]
    );

    // In other blocks, and among other streams, it is the same.
    let mut among = prepared(&model, 3, BLOCKS);
    among.seed(1, 3);
    let mut at = 0;
    for (turn, count) in random_splits(7, BLOCKS, 20).into_iter().enumerate() {
        let streams: &[usize] = [&[1][..], &[0, 1], &[2, 1, 0]][turn % 3];
        let values = step(&mut among, streams, count, 1.0);
        let row = streams
            .iter()
            .position(|&stream| stream == 1)
            .expect("stream 1 is always there");
        let length = count * LATENTS;
        assert_eq!(
            values[row * length..][..length],
            whole[at * LATENTS..][..length],
            "block {at}"
        );
        at += count;
    }
    // A seed begins again.
    executor.seed(0, 3);
    assert_eq!(step(&mut executor, &[0], BLOCKS, 1.0), whole);
    executor.seed(0, 4);
    assert_ne!(step(&mut executor, &[0], BLOCKS, 1.0), whole);
}

/// Returns the model with a changed prior alone.
fn with(model: &Model, change: impl Fn(&mut Method)) -> Result<Model, ModelError> {
    let mut prior = model.method("prior").expect("it is there").clone();
    change(&mut prior);
    let mut header = model.header().clone();
    header
        .methods
        .iter_mut()
        .filter(|method| method.name == "prior")
        .for_each(|method| method.clone_from(&prior));
    Model::new(header, model.weights().clone())
}

#[test]
fn outputs_of_bars_before_are_recalled() {
    const BLOCKS: usize = 300;
    // 32 blocks a bar. At block 100 the song stands still for four blocks, and at 200 it skips two
    // bars.
    let place = |block: usize| match block {
        0..100 => block as f32 / 32.0,
        100..104 => 100.0 / 32.0,
        104..200 => (block - 4) as f32 / 32.0,
        _ => 2.0 + (block - 4) as f32 / 32.0,
    };
    let model = recalling_generator(7);
    let method = model.method("prior").expect("it is there");
    let prepared = |streams| {
        let memory = BarMemory::new(method, model.header().sample_rate, streams);
        (prepared(&model, streams, 1), memory.expect("it is small"))
    };
    // Returns what the last of the streams draws and recalls.
    let run = |(executor, memory): &mut (MethodExecutor, BarMemory),
               streams: &[usize],
               blocks: std::ops::Range<usize>| {
        let mut shown = [Vec::new(), Vec::new()];
        for block in blocks {
            executor.begin(streams, 1);
            executor.input(1).fill(1.0);
            executor.input(2).fill(f32::NAN);
            executor.input(3).fill(place(block) % 4.0);
            memory.begin_block(&mut **executor, streams);
            executor.run();
            memory.end_block(&**executor, streams);
            for (port, shown) in shown.iter_mut().enumerate() {
                let output = executor.output(port);
                shown.extend_from_slice(
                    &output[output.len() / streams.len() * (streams.len() - 1)..],
                );
            }
        }
        shown
    };
    let mut alone = prepared(1);
    alone.0.seed(0, 3);
    let [drawn, recalled] = run(&mut alone, &[0], 0..BLOCKS);
    let channels = Recall::channels(LATENTS);
    for (block, told) in recalled.chunks_exact(channels).enumerate() {
        // Those of a bar, and those for which the song stood still.
        let ago = 32
            + if (100..136).contains(&block) {
                (block - 100).min(4)
            } else {
                0
            };
        let Some(from) = block.checked_sub(ago) else {
            assert_eq!(told, [0.0; Recall::channels(LATENTS)], "{block}");
            continue;
        };
        let expected = &drawn[(from + 1) * LATENTS..][..2 * LATENTS];
        assert_eq!(
            (&told[..2 * LATENTS], told[channels - 1]),
            (expected, 1.0),
            "{block}"
        );
    }
    // Among other streams it is the same; what is cleared is forgotten.
    let mut among = prepared(3);
    among.0.seed(1, 3);
    for block in 0..BLOCKS {
        let streams: &[usize] = [&[1][..], &[0, 1], &[2, 0, 1]][block / 7 % 3];
        let [_, values] = run(&mut among, streams, block..block + 1);
        assert_eq!(
            values,
            recalled[block * channels..][..channels],
            "block {block}"
        );
    }
    alone.0.seed(0, 3);
    alone.1.clear(0);
    assert_eq!(run(&mut alone, &[0], 0..BLOCKS), [drawn, recalled]);
}

#[test]
fn ports_that_are_fed_back_must_fit() {
    let model = autoregressive_generator(7);
    let with = |change: &dyn Fn(&mut Method)| with(&model, change);
    let error =
        |result: Result<Model, ModelError>| result.expect_err("it does not fit").to_string();
    let text = error(with(&|prior| prior.warm_up = 64));
    assert!(text.contains("warm-up"), "{text}");
    let text = error(with(&|prior| prior.block *= 0));
    assert!(text.contains("block"), "{text}");
    // The first output is the node's; a second of another shape is named like the port.
    let text = error(with(&|prior| {
        prior
            .inputs
            .push(port(&format!("hidden{PREVIOUS}"), 2, RATIO));
        prior.outputs.push(port("hidden", 9, RATIO));
    }));
    assert!(text.contains("hidden.previous"), "{text}");

    let model = recalling_generator(7);
    let recall = |change: &dyn Fn(&mut Method)| error(self::with(&model, change));
    let text = recall(&|prior| prior.inputs[2].channels -= 1);
    assert!(
        text.contains("drawn.bars_before.1") && text.contains("twice as many and two more"),
        "{text}"
    );
    let text = recall(&|prior| prior.inputs[3].name = "beats".into());
    assert!(text.contains("needs an input \"bars\""), "{text}");
    let text = recall(&|prior| prior.name = "other".into());
    assert!(text.contains("only the method \"prior\""), "{text}");
    let text = recall(&|prior| prior.inputs[2].name = "drawn.bars_before.99".into());
    assert!(text.contains("recalls 99 bars"), "{text}");
    let text = recall(&|prior| {
        // Without nodes a program runs it.
        prior.nodes.clear();
        prior.inputs[2].channels -= 1;
    });
    assert!(text.contains("twice as many and two more"), "{text}");
}

fn render(model: &Model, controls: &[(&str, f32)], seed: u64, pieces: &[usize]) -> Vec<f32> {
    let options = PipelineOptions {
        seed,
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(model, &options).expect("it plays");
    controls
        .iter()
        .for_each(|(name, value)| pipeline.set_control(name, *value).expect("a control"));
    let mut heard = vec![0.0; pieces.iter().sum()];
    let mut rest = &mut heard[..];
    for &piece in pieces {
        let (output, later) = rest.split_at_mut(piece);
        pipeline.process(&[], output);
        rest = later;
    }
    heard
}

#[test]
fn a_generator_plays_the_same_for_the_same_seed() {
    let model = autoregressive_generator(7);
    let length = 200 * RATIO;
    let whole = render(&model, &[], 7, &[length]);
    assert!(whole.iter().any(|sample| sample.abs() > 1e-3));
    for split in 0..3 {
        assert!(
            whole == render(&model, &[], 7, &random_splits(split, length, 900)),
            "split {split}"
        );
    }
    assert!(whole != render(&model, &[], 8, &[length]));
    // The knob adds to the seed.
    assert!(whole == render(&model, &[("prior.seed", 3.0)], 4, &[length]));
    // At temperature 0 there is no chance.
    let certain = |seed| render(&model, &[("temperature", 0.0)], seed, &[length]);
    assert!(certain(7) == certain(8) && certain(7) != whole);
}

/// An encoder beside the prior is not played, and gives no control that does nothing.
#[test]
fn a_generator_with_an_encoder_plays_without_it() {
    let generator = autoregressive_generator(7);
    let encode = ondes_tests::audio_models::codec_methods().remove(0);
    let methods: Vec<Method> = std::iter::once(encode)
        .chain(generator.header().methods.iter().cloned())
        .collect();
    let model = model_with(Kind::Generator, methods, &["temperature"], 7);
    let length = 100 * RATIO;
    let mut pipeline = Pipeline::new(&model, &PipelineOptions::default()).expect("it plays");
    let mut heard = vec![0.0; length];
    pipeline.process(&sound(length, 48_000), &mut heard);
    assert!(
        heard == render(&model, &[], 0, &[length]) && heard.iter().any(|sample| *sample != 0.0)
    );
    assert!(pipeline.set_control("prior", 1.0).is_err());
}
