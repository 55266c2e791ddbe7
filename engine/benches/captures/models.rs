//! Captures of common sizes with random weights.

use ondes_engine::model::{
    Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights,
};
use ondes_engine::ops::{Conv1d, Linear, Lstm};
use ondes_engine::random::Lcg;

/// Name and constructor of a model.
pub type NamedModel = (&'static str, fn() -> Model);

/// All models.
pub const MODELS: [NamedModel; 9] = [
    ("standard", standard),
    ("lite", || short(12, 6)),
    ("feather", || short(8, 4)),
    ("nano", || short(4, 2)),
    ("a2 full", || a2(8)),
    ("a2 lite", || a2(3)),
    ("lstm 1x16", || lstm(16)),
    ("lstm 1x40", || lstm(40)),
    ("conv stack", stack),
];

/// Builder of a graph.
#[derive(Default)]
struct CaptureGraph {
    nodes: Vec<Node>,
}

impl CaptureGraph {
    fn add(&mut self, name: impl Into<String>, op: Op, inputs: &[&str]) -> String {
        let name = name.into();
        self.nodes.push(Node {
            name: name.clone(),
            inputs: inputs.iter().map(|&i| i.to_owned()).collect(),
            op,
        });
        name
    }

    fn conv(
        &mut self,
        name: impl Into<String>,
        input: &str,
        outputs: usize,
        kernel: usize,
        dilation: usize,
    ) -> String {
        self.add(
            name,
            Op::Conv1d(Conv1d::new(outputs, kernel).dilated(dilation)),
            &[input],
        )
    }

    /// Adds a layer array of a WaveNet; returns its output and its head.
    fn array(
        &mut self,
        name: &str,
        input: &str,
        head: Option<String>,
        channels: usize,
        layers: &[(usize, usize)],
        activation: Activation,
    ) -> (String, String) {
        let mut x = self.conv(format!("{name}.rechannel"), input, channels, 1, 1);
        let mut head = head;
        for (index, &(kernel, dilation)) in layers.iter().enumerate() {
            let layer = format!("{name}.{index}");
            let conv = self.conv(format!("{layer}.conv"), &x, channels, kernel, dilation);
            let mixin = self.conv(format!("{layer}.mixin"), "audio", channels, 1, 1);
            let sum = self.add(format!("{layer}.sum"), Op::Add, &[&conv, &mixin]);
            let z = self.add(format!("{layer}.act"), activation.into(), &[&sum]);
            head = Some(match head {
                Some(head) => self.add(format!("{layer}.head"), Op::Add, &[&head, &z]),
                None => z.clone(),
            });
            let out = self.conv(format!("{layer}.out"), &z, channels, 1, 1);
            x = self.add(format!("{layer}.residual"), Op::Add, &[&x, &out]);
        }
        (x, head.expect("at least one layer"))
    }

    fn model(self, output: &str) -> Model {
        let port = |name: &str| Port {
            name: name.into(),
            channels: 1,
            ratio: 1,
        };
        let method = Method {
            name: "forward".into(),
            block: 1,
            warm_up: 0,
            inputs: vec![port("audio")],
            outputs: vec![port(output)],
            nodes: self.nodes,
        };
        let mut weights = Weights::default();
        let mut random = Lcg::new(1);
        let shapes = method.infer().expect("it fits");
        for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
            for spec in node.op.weights(&inputs) {
                let count: usize = spec.shape.iter().product();
                let scale = 1.0 / (count as f32 / spec.shape[0] as f32).sqrt();
                let data = (0..count).map(|_| random.next_signed() as f32 * scale);
                weights.insert(
                    format!("{}.{}", node.name, spec.name),
                    Tensor::new(&spec.shape, data.collect()),
                );
            }
        }
        let header = Header {
            format: FORMAT,
            kind: Kind::Effect,
            sample_rate: 48_000,
            methods: vec![method],
            controls: Vec::new(),
            performance: None,
            card: Card::default(),
            variants: Vec::new(),
            oversampling: 1,
        };
        Model::new(header, weights).expect("a valid model")
    }
}

const LONG: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

fn layers(dilations: &[usize]) -> Vec<(usize, usize)> {
    dilations.iter().map(|&dilation| (3, dilation)).collect()
}

fn classic(first: usize, second: usize, dilations: [&[usize]; 2]) -> Model {
    let mut graph = CaptureGraph::default();
    let (x, head) = graph.array(
        "array0",
        "audio",
        None,
        first,
        &layers(dilations[0]),
        Activation::Tanh,
    );
    let head = graph.conv("array0.rechannel_head", &head, second, 1, 1);
    let (_, head) = graph.array(
        "array1",
        &x,
        Some(head),
        second,
        &layers(dilations[1]),
        Activation::Tanh,
    );
    let y = graph.conv("array1.rechannel_head", &head, 1, 1, 1);
    graph.model(&y)
}

fn standard() -> Model {
    classic(16, 8, [&LONG, &LONG])
}

fn short(first: usize, second: usize) -> Model {
    classic(
        first,
        second,
        [
            &LONG[..7],
            &[128, 256, 512, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
        ],
    )
}

fn a2(channels: usize) -> Model {
    let seven = [1, 3, 7, 17, 41, 101, 239];
    let dilations: Vec<usize> = [&seven[..], &seven, &[1, 13], &seven].concat();
    let kernel = |index: usize| if index == 14 || index == 15 { 15 } else { 6 };
    let layers: Vec<_> = dilations
        .iter()
        .enumerate()
        .map(|(index, &dilation)| (kernel(index), dilation))
        .collect();
    let mut graph = CaptureGraph::default();
    let (_, head) = graph.array(
        "array0",
        "audio",
        None,
        channels,
        &layers,
        Activation::LeakyRelu { slope: 0.01 },
    );
    let y = graph.conv("array0.head", &head, 1, 16, 1);
    graph.model(&y)
}

fn stack() -> Model {
    let mut graph = CaptureGraph::default();
    let mut x = "audio".to_owned();
    for (index, dilation) in LONG.into_iter().enumerate() {
        let conv = graph.conv(format!("{index}.conv"), &x, 16, 3, dilation);
        x = graph.add(
            format!("{index}.act"),
            Op::Activation(Activation::Tanh),
            &[&conv],
        );
    }
    let y = graph.conv("head", &x, 1, 1, 1);
    graph.model(&y)
}

fn lstm(hidden: usize) -> Model {
    let mut graph = CaptureGraph::default();
    let x = graph.add(
        "lstm",
        Op::Lstm(Lstm {
            hidden,
            initial_state: false,
        }),
        &["audio"],
    );
    let y = graph.add("head", Op::Linear(Linear { outputs: 1 }), &[&x]);
    graph.model(&y)
}
