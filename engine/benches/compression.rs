//! Cost of models with weights of 32, 16 and 8 bits on one core: size of the file, memory, and
//! speed relative to real time in blocks of 64, 512 and 2048 samples.
//!
//! The bundled models come first, then networks of more than twenty million random weights, which
//! exceed the caches of a core. The precisions are measured in turns, and the fastest turn counts,
//! to exclude preemption.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::compression::{Scaling, WeightPrecision};
use ondes_engine::model::{
    Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights, file,
};
use ondes_engine::ops::{Conv1d, ConvTranspose1d, Gru, Linear};
use ondes_engine::pipeline::{ControlSource, Pipeline, PipelineOptions};
use ondes_engine::random::Lcg;

const RATE: u32 = 48_000;
const BLOCKS: [usize; 3] = [64, 512, 2048];
const PRECISIONS: [(&str, WeightPrecision); 4] = [
    ("f32", WeightPrecision::F32),
    ("f16", WeightPrecision::F16),
    ("int8, computed in f32", WeightPrecision::Stored8),
    ("int8", WeightPrecision::Computed8),
];

/// Samples per frame of the random networks.
const HOP: usize = 512;

/// Builder of a chain of layers between a convolution from samples to frames and three from frames
/// to samples.
struct CodecGraph {
    nodes: Vec<Node>,
    last: String,
}

impl CodecGraph {
    fn new(channels: usize) -> Self {
        let mut graph = Self {
            nodes: Vec::new(),
            last: "audio".into(),
        };
        graph.add(Op::Conv1d(Conv1d::new(channels, HOP).strided(HOP)));
        graph
    }

    fn add(&mut self, op: Op) {
        let name = format!("layer{}", self.nodes.len());
        self.nodes.push(Node {
            name: name.clone(),
            inputs: vec![std::mem::replace(&mut self.last, name)],
            op,
        });
    }

    fn model(mut self) -> Model {
        for outputs in [64, 16, 1] {
            self.add(Op::ConvTranspose1d(ConvTranspose1d {
                outputs,
                kernel: 16,
                stride: 8,
            }));
        }
        let port = |name: &str| Port {
            name: name.into(),
            channels: 1,
            ratio: 1,
        };
        let method = Method {
            name: "forward".into(),
            block: HOP,
            warm_up: 0,
            inputs: vec![port("audio")],
            outputs: vec![port(&self.last)],
            nodes: self.nodes,
        };
        let (mut weights, mut random) = (Weights::default(), Lcg::new(1));
        for (node, inputs) in method
            .nodes
            .iter()
            .zip(method.infer().expect("it fits").node_inputs())
        {
            for spec in node.op.weights(&inputs) {
                let count: usize = spec.shape.iter().product();
                let scale = (3.0 / (count as f32 / spec.shape[0] as f32)).sqrt();
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
            sample_rate: RATE,
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

/// Four GRUs of 1024 units and a linear layer.
fn recurrent() -> Model {
    let mut graph = CodecGraph::new(1024);
    (0..4).for_each(|_| {
        graph.add(Op::Gru(Gru {
            hidden: 1024,
            initial_state: false,
        }))
    });
    graph.add(Op::Linear(Linear { outputs: 1024 }));
    graph.add(Op::Activation(Activation::Tanh));
    graph.model()
}

/// Twenty-eight convolutions of three taps and 512 channels.
fn convolutional() -> Model {
    let mut graph = CodecGraph::new(512);
    for layer in 0..28 {
        graph.add(Op::Conv1d(Conv1d::new(512, 3).dilated(1 << (layer % 4))));
        graph.add(Op::Activation(Activation::LeakyRelu { slope: 0.2 }));
    }
    graph.model()
}

/// A model that is played in blocks of one length.
struct TimedPipeline {
    pipeline: Pipeline,
    input: Vec<f32>,
    output: Vec<f32>,
    /// Samples played so far, if the model plays notes.
    played: Option<u64>,
}

impl TimedPipeline {
    fn new(model: &Model, block: usize) -> Self {
        let notes = model.header().kind == Kind::Instrument;
        let source = if notes {
            ControlSource::Notes
        } else {
            ControlSource::AudioInput
        };
        let sample_rate = model.header().sample_rate;
        let options = PipelineOptions {
            sample_rate,
            source,
            ..PipelineOptions::default()
        };
        let pipeline = Pipeline::new(model, &options).expect("a playable model");
        // An instrument that plays notes has no audio input.
        let inputs = if notes { 0 } else { block };
        let input = (0..inputs).map(|n| 0.3 * (0.03 * n as f32).sin()).collect();
        Self {
            pipeline,
            input,
            output: vec![0.0; block],
            played: notes.then_some(0),
        }
    }

    /// Returns the seconds per sample over at least `samples` samples, from a new note on.
    fn time(&mut self, samples: usize) -> f64 {
        let steps = samples.div_ceil(self.output.len());
        if let Some(at) = &mut self.played {
            for kind in [
                EventKind::NoteOff {
                    channel: 0,
                    key: 57,
                    velocity: 0.5,
                },
                EventKind::NoteOn {
                    channel: 0,
                    key: 57,
                    velocity: 0.8,
                },
            ] {
                self.pipeline
                    .handle(Event { at: *at, kind })
                    .expect("room in the queue");
            }
            *at += (steps * self.output.len()) as u64;
        }
        let start = Instant::now();
        for _ in 0..steps {
            self.pipeline
                .process(black_box(&self.input), &mut self.output);
        }
        black_box(&self.output);
        start.elapsed().as_secs_f64() / (steps * self.output.len()) as f64
    }
}

/// Prints the costs of a model in all precisions.
fn measure(name: &str, original: &Model) {
    let models = PRECISIONS.map(|(_, precision)| {
        original
            .compressed(Scaling::default(), |_| precision)
            .expect("its weights have scales")
    });
    let mut players = models
        .each_ref()
        .map(|model| BLOCKS.map(|block| TimedPipeline::new(model, block)));
    // Turns of some milliseconds for light and heavy models.
    let heavy = original.parameters() > 1_000_000;
    let (turns, samples) = if heavy {
        (40, 8 * HOP)
    } else {
        (60, 16 * 2048)
    };
    let mut least = [[f64::INFINITY; BLOCKS.len()]; PRECISIONS.len()];
    for _ in 0..turns {
        for (players, least) in players.iter_mut().zip(&mut least) {
            for (player, least) in players.iter_mut().zip(least) {
                *least = least.min(player.time(samples));
            }
        }
    }
    let size = |model: &Model| file::serialize(model).expect("a serialisable model").len();
    let f32_size = size(&models[0]) as f64;
    for (index, model) in models.iter().enumerate() {
        let bytes = size(model);
        let speed =
            least[index].map(|seconds| 1.0 / (seconds * f64::from(model.header().sample_rate)));
        let speed: Vec<String> = speed.iter().map(|factor| format!("{factor:8.1}")).collect();
        println!(
            "{:14} {:22} {:>10} {:>6.3} {:>11} {}  {}",
            name,
            PRECISIONS[index].0,
            bytes,
            bytes as f64 / f32_size,
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
    // Arguments select models whose names contain them.
    let picked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_selected =
        |name: &str| picked.is_empty() || picked.iter().any(|part| name.contains(part));
    for name in [
        "bowed",
        "wind",
        "plucked",
        "saxophone",
        "violin",
        "overdrive",
        "triode",
        "fuzz",
    ] {
        if is_selected(name) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(format!("../assets/models/{name}.ondes"));
            measure(name, &file::read(&path).expect("bundled models are valid"));
        }
    }
    for name in ["recurrent", "convolutional"] {
        if is_selected(name) {
            let model = if name == "recurrent" {
                recurrent()
            } else {
                convolutional()
            };
            println!("{name}: {} weights", model.parameters());
            measure(name, &model);
        }
    }
}
