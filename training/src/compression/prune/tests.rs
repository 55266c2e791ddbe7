//! Pruned models of every op are valid, and sound the same if only constant channels were removed.

use std::collections::BTreeSet;

use ondes_engine::Kernels;
use ondes_engine::executor::Execute;
use ondes_engine::model::{
    Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights,
};
use ondes_engine::native::Executor;
use ondes_engine::ops::{Conv1d, ConvTranspose1d, Gru, Linear, Lstm, Prelu, Split};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tch::Device;

use super::{Activity, ChannelClasses, Schedule, narrow, prune_channels, prune_weights};
use crate::tasks::capture::architecture::{Architecture, names};

fn port(name: &str, channels: usize) -> Port {
    Port {
        name: name.into(),
        channels,
        ratio: 1,
    }
}

/// Makes an effect with random weights; the last node is its output.
fn effect(nodes: &[(&str, &[&str], Op)], seed: u64) -> Model {
    let nodes: Vec<Node> = nodes
        .iter()
        .map(|(name, inputs, op)| Node {
            name: (*name).into(),
            inputs: inputs.iter().map(|&input| input.to_owned()).collect(),
            op: op.clone(),
        })
        .collect();
    let output = nodes.last().expect("a node").name.clone();
    let mut method = Method {
        name: "forward".into(),
        block: 1,
        warm_up: 0,
        inputs: vec![port("in", 1)],
        outputs: Vec::new(),
        nodes,
    };
    let shapes = method.infer().expect("a valid model");
    method.outputs.push(port(
        &output,
        shapes.values.last().expect("a value").channels,
    ));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut weights = Weights::default();
    for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
        for spec in node.op.weights(&inputs) {
            let data = (0..spec.shape.iter().product())
                .map(|_| random.random_range(-0.6_f32..0.6))
                .collect();
            weights.insert(
                format!("{}.{}", node.name, spec.name),
                Tensor::new(&spec.shape, data),
            );
        }
    }
    let header = Header {
        format: FORMAT,
        kind: Kind::Effect,
        sample_rate: 48_000,
        methods: vec![method],
        controls: Vec::new(),
        variants: Vec::new(),
        oversampling: 1,
        performance: None,
        card: Card::default(),
    };
    Model::new(header, weights).expect("a valid model")
}

/// Makes a model with every op that passes on, joins, pairs or splits channels.
fn all_ops() -> Model {
    let conv = |outputs, kernel, dilation, groups| {
        Op::Conv1d(
            Conv1d::new(outputs, kernel)
                .dilated(dilation)
                .grouped(groups),
        )
    };
    effect(
        &[
            ("first", &["in"], conv(8, 3, 1, 1)),
            ("bent", &["first"], Op::Snake),
            ("grouped", &["bent"], conv(16, 2, 3, 4)),
            ("gated", &["grouped"], Op::Gate),
            ("sum", &["gated", "first"], Op::Add),
            ("norm", &["sum"], Op::LayerNorm),
            ("slopes", &["norm"], Op::Prelu(Prelu { slopes: 8 })),
            ("condition", &["bent"], Op::Linear(Linear { outputs: 16 })),
            ("film", &["slopes", "condition"], Op::Film),
            (
                "gru",
                &["film"],
                Op::Gru(Gru {
                    hidden: 6,
                    initial_state: true,
                }),
            ),
            (
                "lstm",
                &["gru"],
                Op::Lstm(Lstm {
                    hidden: 6,
                    initial_state: true,
                }),
            ),
            ("both", &["gru", "lstm", "in"], Op::Concat),
            (
                "some",
                &["both"],
                Op::Split(Split {
                    start: 2,
                    channels: 7,
                }),
            ),
            ("product", &["gru", "lstm"], Op::Multiply),
            ("level", &["in"], Op::Linear(Linear { outputs: 1 })),
            ("scaled", &["product", "level"], Op::Multiply),
            (
                "up",
                &["some"],
                Op::ConvTranspose1d(ConvTranspose1d {
                    outputs: 5,
                    kernel: 1,
                    stride: 1,
                }),
            ),
            ("all", &["up", "scaled"], Op::Concat),
            ("out", &["all"], Op::Linear(Linear { outputs: 1 })),
        ],
        7,
    )
}

fn sound(samples: usize) -> Vec<f32> {
    (0..samples)
        .map(|sample| 0.5 * (0.03 * sample as f32).sin() + 0.2 * (0.31 * sample as f32).sin())
        .collect()
}

fn play(model: &Model, sound: &[f32]) -> Vec<f32> {
    let mut executor = Executor::new(model, "forward", Kernels::detect(), 1, sound.len())
        .expect("it can be played");
    executor.begin(&[0], sound.len());
    executor.input(0).copy_from_slice(sound);
    executor.run();
    executor.output(0).to_vec()
}

fn observed(model: &Model) -> Activity {
    let mut activity = Activity::new(model, Device::Cpu).expect("a valid model");
    activity.observe(
        0,
        &[tch::Tensor::from_slice(&sound(4_000)).view([1, 1, -1])],
        0.1,
    );
    activity
}

#[test]
fn classes_follow_the_graph() {
    let model = all_ops();
    let channels = ChannelClasses::new(model.header()).expect("a valid model");
    let method = &model.header().methods[0];
    let value = |name: &str| {
        let node = method
            .nodes
            .iter()
            .position(|node| node.name == name)
            .expect("a node");
        channels.value(0, method.inputs.len() + node)
    };
    let class = |name: &str, channel: usize| channels.class(value(name).start + channel);
    // A group of the grouped convolution has two input and four output channels; the gate pairs
    // these with another group's.
    assert_eq!(class("bent", 0), class("grouped", 3));
    assert_eq!(class("grouped", 1), class("grouped", 9));
    assert_eq!(class("gated", 5), class("slopes", 5));
    assert_eq!(class("film", 5), class("condition", 13));
    assert_eq!(class("gru", 2), class("lstm", 2));
    assert_eq!(class("both", 8), class("gru", 2));
    assert_eq!(class("some", 0), class("gru", 2));
    assert_ne!(class("up", 0), class("up", 1));
    let pinned =
        |name: &str| value(name).all(|channel| channels.is_pinned(channels.class(channel)));
    assert!(pinned("out") && pinned("level") && !pinned("gru"));
    // Channels joined with an input are pinned.
    assert!(channels.is_pinned(class("both", 12)));
}

#[test]
fn every_op_can_be_narrowed() {
    let original = all_ops();
    let activity = observed(&original);
    let units = |model: &Model| {
        let units = model.header().methods[0]
            .nodes
            .iter()
            .find_map(|node| match node.op {
                Op::Gru(Gru { hidden, .. }) => Some(hidden),
                _ => None,
            });
        units.expect("a recurrent layer")
    };
    let mut weights = original.parameters();
    for (ratio, left) in [(0.2, 5), (0.4, 4), (0.6, 3), (0.8, 2), (0.99, 2)] {
        let thinner =
            prune_channels(&original, &original, ratio, &activity).expect("a valid model");
        assert!(
            thinner.parameters() <= weights,
            "{ratio}: {} of {weights}",
            thinner.parameters()
        );
        weights = thinner.parameters();
        assert_eq!(units(&thinner), left, "{ratio}");
        let played = play(&thinner, &sound(500));
        assert!(played.iter().all(|sample| sample.is_finite()), "{ratio}");
    }
    assert!(
        weights * 2 < original.parameters(),
        "{weights} of {}",
        original.parameters()
    );
    // Two rounds give the sizes of one: ratios refer to the original's channels.
    let half = prune_channels(&original, &original, 0.3, &activity).expect("a valid model");
    let again = prune_channels(&half, &original, 0.6, &observed(&half)).expect("a valid model");
    let at_once = prune_channels(&original, &original, 0.6, &activity).expect("a valid model");
    assert_eq!(again.header().methods, at_once.header().methods);
}

/// Constant channels are removed first, and the output stays the same, since biases replace them.
#[test]
fn constant_channels_are_removed_first_and_compensated() {
    for seed in 0..4 {
        let recurrent = if seed % 2 == 0 {
            Op::Gru(Gru {
                hidden: 12,
                initial_state: false,
            })
        } else {
            Op::Lstm(Lstm {
                hidden: 12,
                initial_state: false,
            })
        };
        let model = effect(
            &[
                ("wide", &["in"], Op::Conv1d(Conv1d::new(10, 3).dilated(2))),
                ("bent", &["wide"], Op::Activation(Activation::Tanh)),
                ("memory", &["bent"], recurrent),
                ("decoded", &["memory"], Op::Linear(Linear { outputs: 8 })),
                (
                    "bent_again",
                    &["decoded"],
                    Op::Activation(Activation::LeakyRelu { slope: 0.1 }),
                ),
                ("out", &["bent_again"], Op::Linear(Linear { outputs: 1 })),
            ],
            seed,
        );
        // Half of each layer ignores its input and is constant.
        let mut weights = model.weights().clone();
        for (name, rows) in [("wide.weight", 10), ("decoded.weight", 8)] {
            let (_, tensor) = weights
                .iter()
                .find(|(other, _)| *other == name)
                .expect("a weight");
            let (shape, mut values) = (tensor.shape().to_vec(), tensor.floats().into_owned());
            let length = values.len() / rows;
            (0..rows)
                .step_by(2)
                .for_each(|row| values[row * length..(row + 1) * length].fill(0.0));
            weights.insert(name, Tensor::new(&shape, values));
        }
        let model = Model::new(model.header().clone(), weights).expect("a valid model");
        let channels = ChannelClasses::new(model.header()).expect("a valid model");
        let activity = observed(&model);
        let importance = super::importance::importance(&model, &channels, &activity);
        let mut removed = BTreeSet::new();
        for family in channels.families() {
            let still: Vec<usize> = family
                .classes
                .iter()
                .copied()
                .filter(|&class| importance[class] < 1e-12)
                .collect();
            assert!(
                [0, family.classes.len() / 2].contains(&still.len()),
                "{still:?}"
            );
            removed.extend(still);
        }
        assert_eq!(removed.len(), 9, "five of ten and four of eight");
        let made_up = super::importance::compensate_biases(&model, &channels, &activity, &removed);
        let made_up = Model::new(model.header().clone(), made_up).expect("a valid model");
        let narrow = narrow(&made_up, &channels, &removed).expect("a valid model");
        assert!(narrow.parameters() < model.parameters());
        let sound = sound(2_000);
        let (wide, narrow) = (play(&model, &sound), play(&narrow, &sound));
        // Convolutions start from silence, where a removed channel was zero rather than its
        // constant.
        let pairs = wide.iter().zip(&narrow).skip(1_000);
        let most = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most < 2e-6, "seed {seed}: {most}");
    }
}

#[test]
fn captures_of_all_sizes_become_narrower() {
    for name in names() {
        let original = Architecture::named(name)
            .and_then(|size| size.untrained(1, 48_000))
            .expect("a model");
        let mut activity = Activity::new(&original, Device::Cpu).expect("a valid model");
        activity.observe(
            0,
            &[tch::Tensor::from_slice(&sound(8_000)).view([1, 1, -1])],
            0.5,
        );
        let half = prune_channels(&original, &original, 0.5, &activity).expect("a valid model");
        let cost = |model: &Model| {
            model
                .method("forward")
                .expect("a method")
                .multiply_adds_per_second(48_000)
        };
        assert!(
            cost(&half) < 0.5 * cost(&original),
            "{name}: {} of {}",
            cost(&half),
            cost(&original)
        );
        if let Some(units) = name.strip_prefix("lstm-") {
            let units: usize = units.parse().expect("a number");
            assert_eq!(
                Architecture::recognize(&half),
                Some(format!("lstm-{}", units / 2))
            );
        }
    }
}

#[test]
fn the_smallest_weights_become_zero() {
    let original = all_ops();
    let sparse = prune_weights(&original, 0.75).expect("it has matrices");
    assert_eq!(original.header(), sparse.header());
    for ((name, before), (_, after)) in original.weights().iter().zip(sparse.weights().iter()) {
        if before.shape().len() < 2 {
            assert_eq!(before, after, "{name}");
            continue;
        }
        let (before, after) = (before.floats(), after.floats());
        let zeros = after.iter().filter(|value| **value == 0.0).count();
        let expected = (0.75 * before.len() as f64).round() as usize;
        assert_eq!(zeros, expected.min(before.len() - 1), "{name}");
        let kept = after
            .iter()
            .filter(|value| **value != 0.0)
            .fold(f32::MAX, |least, x| least.min(x.abs()));
        let removed = before
            .iter()
            .zip(&*after)
            .filter(|(_, after)| **after == 0.0);
        assert!(
            removed.fold(0.0_f32, |most, (before, _)| most.max(before.abs())) <= kept,
            "{name}"
        );
    }
}

#[test]
fn schedules_grow_to_the_ratio() {
    for name in Schedule::NAMES {
        let schedule = Schedule::named(name).expect("it is known");
        let ratios = schedule.ratios(0.6, 4);
        assert!(
            ratios.windows(2).all(|pair| pair[0] < pair[1]),
            "{ratios:?}"
        );
        assert!((ratios.last().expect("a round") - 0.6).abs() < 1e-12);
    }
    assert_eq!(Schedule::Once.ratios(0.5, 7).len(), 1);
    assert!(Schedule::Cubic.ratios(0.5, 3)[0] > Schedule::Linear.ratios(0.5, 3)[0]);
    assert_eq!(Schedule::named("sometimes"), None);
}
