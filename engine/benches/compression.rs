//! What models take in 32, 16 and 8 bits on one core: size of the file, memory while it plays, and times real time in blocks of 64,
//! 512 and 2048 samples. The bundled models first, then networks of more than twenty million random weights, whose weights fit
//! into no cache of a core. Precisions take turns, and the least time of all turns counts, since a machine is never idle.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::compression::{Precision, Scaling};
use ondes_engine::model::{Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights, file};
use ondes_engine::pipeline::{Pipeline, PipelineOptions, ControlSource};
use ondes_engine::random::Lcg;

const RATE: u32 = 48_000;
const BLOCKS: [usize; 3] = [64, 512, 2048];
const PRECISIONS: [(&str, Precision); 4] = [
    ("f32", Precision::F32),
    ("f16", Precision::F16),
    ("int8, computed in f32", Precision::Stored8),
    ("int8", Precision::Computed8),
];

/// Samples per frame of the random networks.
const HOP: usize = 512;

/// A graph between a convolution that gathers samples into frames and three that spread them again.
struct Graph {
    nodes: Vec<Node>,
    last: String,
}

impl Graph {
    fn new(channels: usize) -> Self {
        let mut graph = Self { nodes: Vec::new(), last: "audio".into() };
        graph.add(Op::Conv1d { outputs: channels, kernel: HOP, stride: HOP, dilation: 1, groups: 1 });
        graph
    }

    fn add(&mut self, op: Op) {
        let name = format!("layer{}", self.nodes.len());
        self.nodes.push(Node { name: name.clone(), inputs: vec![std::mem::replace(&mut self.last, name)], op });
    }

    fn model(mut self) -> Model {
        for outputs in [64, 16, 1] {
            self.add(Op::ConvTranspose1d { outputs, kernel: 16, stride: 8 });
        }
        let port = |name: &str| Port { name: name.into(), channels: 1, ratio: 1 };
        let method = Method {
            name: "forward".into(),
            block: HOP,
            warm_up: 0,
            inputs: vec![port("audio")],
            outputs: vec![port(&self.last)],
            nodes: self.nodes,
        };
        let (mut weights, mut random) = (Weights::default(), Lcg::new(1));
        for (node, inputs) in method.nodes.iter().zip(method.infer().expect("it fits").node_inputs()) {
            for spec in node.op.weights(&inputs) {
                let count: usize = spec.shape.iter().product();
                let scale = (3.0 / (count as f32 / spec.shape[0] as f32)).sqrt();
                let data = (0..count).map(|_| random.next_signed() as f32 * scale);
                weights.insert(format!("{}.{}", node.name, spec.name), Tensor::new(&spec.shape, data.collect()));
            }
        }
        let header = Header {
            format: FORMAT,
            kind: Kind::Effect,
            sample_rate: RATE,
            methods: vec![method],
            controls: Vec::new(),
            performance: None,
            card: Card::default(),
            variants: Vec::new(),
        };
        Model::new(header, weights).expect("it is sound")
    }
}

/// Four GRUs of 1024 units and a linear layer.
fn recurrent() -> Model {
    let mut graph = Graph::new(1024);
    (0..4).for_each(|_| graph.add(Op::Gru { hidden: 1024, initial_state: false }));
    graph.add(Op::Linear { outputs: 1024 });
    graph.add(Op::Activation(Activation::Tanh));
    graph.model()
}

/// Twenty-eight convolutions of three taps and 512 channels.
fn convolutional() -> Model {
    let mut graph = Graph::new(512);
    for layer in 0..28 {
        graph.add(Op::Conv1d { outputs: 512, kernel: 3, stride: 1, dilation: 1 << (layer % 4), groups: 1 });
        graph.add(Op::Activation(Activation::LeakyRelu { slope: 0.2 }));
    }
    graph.model()
}

/// A model at work, in blocks of some length.
struct Player {
    pipeline: Pipeline,
    input: Vec<f32>,
    output: Vec<f32>,
    /// Samples that were played, where notes are played.
    played: Option<u64>,
}

impl Player {
    fn new(model: &Model, block: usize) -> Self {
        let notes = model.header().kind == Kind::Instrument;
        let source = if notes { ControlSource::Notes } else { ControlSource::AudioInput };
        let sample_rate = model.header().sample_rate;
        let options = PipelineOptions { sample_rate, source, ..PipelineOptions::default() };
        let pipeline = Pipeline::new(model, &options).expect("it plays");
        // An instrument that plays notes hears no sound.
        let heard = if notes { 0 } else { block };
        let input = (0..heard).map(|n| 0.3 * (0.03 * n as f32).sin()).collect();
        Self { pipeline, input, output: vec![0.0; block], played: notes.then_some(0) }
    }

    /// Seconds for a sample, over about so many samples; a note is struck anew.
    fn time(&mut self, samples: usize) -> f64 {
        let steps = samples.div_ceil(self.output.len());
        if let Some(at) = &mut self.played {
            for kind in [
                EventKind::NoteOff { channel: 0, key: 57, velocity: 0.5 },
                EventKind::NoteOn { channel: 0, key: 57, velocity: 0.8 },
            ] {
                self.pipeline.handle(Event { at: *at, kind }).expect("there is room");
            }
            *at += (steps * self.output.len()) as u64;
        }
        let begun = Instant::now();
        for _ in 0..steps {
            self.pipeline.process(black_box(&self.input), &mut self.output);
        }
        black_box(&self.output);
        begun.elapsed().as_secs_f64() / (steps * self.output.len()) as f64
    }
}

/// One model in all precisions.
fn measure(name: &str, original: &Model) {
    let models = PRECISIONS
        .map(|(_, precision)| original.compressed(Scaling::default(), |_| precision).expect("its weights have scales"));
    let mut players = models.each_ref().map(|model| BLOCKS.map(|block| Player::new(model, block)));
    // Few samples of a heavy model, many of a light one: some milliseconds a turn.
    let heavy = original.parameters() > 1_000_000;
    let (turns, samples) = if heavy { (40, 8 * HOP) } else { (60, 16 * 2048) };
    let mut least = [[f64::INFINITY; BLOCKS.len()]; PRECISIONS.len()];
    for _ in 0..turns {
        for (players, least) in players.iter_mut().zip(&mut least) {
            for (player, least) in players.iter_mut().zip(least) {
                *least = least.min(player.time(samples));
            }
        }
    }
    let size = |model: &Model| file::serialize(model).expect("it can be laid out").len();
    let whole = size(&models[0]) as f64;
    for (index, model) in models.iter().enumerate() {
        let bytes = size(model);
        let speed = least[index].map(|seconds| 1.0 / (seconds * f64::from(model.header().sample_rate)));
        let speed: Vec<String> = speed.iter().map(|factor| format!("{factor:8.1}")).collect();
        println!(
            "{:14} {:22} {:>10} {:>6.3} {:>11} {}  {}",
            name,
            PRECISIONS[index].0,
            bytes,
            bytes as f64 / whole,
            players[index][1].pipeline.bytes(),
            speed.join(" "),
            players[index][0].pipeline.executor()
        );
    }
}

fn main() {
    println!(
        "{:14} {:22} {:>10} {:>6} {:>11} {:>8} {:>8} {:>8}  computed by",
        "model", "weights", "file", "ratio", "memory", "x at 64", "512", "2048"
    );
    // Names, or parts of them, pick models.
    let picked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let wanted = |name: &str| picked.is_empty() || picked.iter().any(|part| name.contains(part));
    for name in ["bowed", "wind", "plucked", "overdrive", "triode", "fuzz"] {
        if wanted(name) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../assets/models/{name}.ondes"));
            measure(name, &file::read(&path).expect("bundled models are whole"));
        }
    }
    for name in ["recurrent", "convolutional"] {
        if wanted(name) {
            let model = if name == "recurrent" { recurrent() } else { convolutional() };
            println!("{name}: {} weights", model.parameters());
            measure(name, &model);
        }
    }
}
