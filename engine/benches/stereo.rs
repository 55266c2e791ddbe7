//! Cost of two channels relative to one: bundled captures, and codecs of convolutions with random
//! weights, in blocks of 64 samples at 48 kHz. Mono and stereo pipelines play in turn, so that both
//! see the same machine.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use ondes_engine::model::{
    Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights, file,
};
use ondes_engine::ops::{Conv1d, ConvTranspose1d};
use ondes_engine::pipeline::{InputChannels, Pipeline, PipelineOptions};
use ondes_engine::random::Lcg;
use ondes_kernels::FlushToZero;

const BLOCK: usize = 64;
/// Blocks that are measured, and blocks before them that are not.
const BLOCKS: usize = 4_000;
const WARM_UP: usize = 600;

fn bundled(name: &str) -> Model {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo");
    let path = PathBuf::from(package).join(format!("../assets/models/{name}.ondes"));
    file::read(&path).expect("the bundled model is valid")
}

/// Adds layers with a leaky ReLU between them, and returns their method.
fn layers(name: &str, block: usize, input: Port, ops: Vec<Op>) -> Method {
    let mut value = input.name.clone();
    let mut nodes: Vec<Node> = Vec::new();
    let mut add = |node: String, op: Op| {
        nodes.push(Node {
            name: node.clone(),
            inputs: vec![std::mem::replace(&mut value, node)],
            op,
        });
    };
    for (index, op) in ops.into_iter().enumerate() {
        if index > 0 {
            add(
                format!("{name}.{index}.act"),
                Op::Activation(Activation::LeakyRelu { slope: 0.2 }),
            );
        }
        add(format!("{name}.{index}"), op);
    }
    let mut method = Method {
        name: name.into(),
        block,
        warm_up: 0,
        inputs: vec![input],
        outputs: Vec::new(),
        nodes,
    };
    let shape = *method
        .infer()
        .expect("the nodes fit")
        .values
        .last()
        .expect("there are nodes");
    method.outputs.push(Port {
        name: value,
        channels: shape.channels,
        ratio: shape.ratio,
    });
    method
}

/// Returns a codec with 8 latents per 256 samples; its widest layers have `256 * scale` channels.
fn codec(scale: usize) -> Model {
    const RATIO: usize = 256;
    let down = |width| Op::Conv1d(Conv1d::new(width * scale, 8).strided(4));
    let same = |outputs, dilation| Op::Conv1d(Conv1d::new(outputs, 3).dilated(dilation));
    let wide = |width, dilation| same(width * scale, dilation);
    let up = |outputs| {
        Op::ConvTranspose1d(ConvTranspose1d {
            outputs,
            kernel: 8,
            stride: 4,
        })
    };
    let port = |name: &str, channels, ratio| Port {
        name: name.into(),
        channels,
        ratio,
    };
    let encoder = vec![
        down(32),
        down(64),
        wide(64, 3),
        down(128),
        wide(128, 3),
        down(256),
        same(8, 1),
    ];
    let decoder = vec![
        wide(256, 1),
        up(128 * scale),
        wide(128, 3),
        up(64 * scale),
        wide(64, 3),
        up(32 * scale),
        up(1),
    ];
    let methods = vec![
        layers("encode", RATIO, port("audio", 1, 1), encoder),
        layers("decode", RATIO, port("latents", 8, RATIO), decoder),
    ];
    let (mut weights, mut random) = (Weights::default(), Lcg::new(1));
    for method in &methods {
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
    }
    let header = Header {
        format: FORMAT,
        kind: Kind::Codec,
        sample_rate: 48_000,
        methods,
        controls: Vec::new(),
        performance: None,
        card: Card::default(),
        variants: Vec::new(),
        oversampling: 1,
    };
    Model::new(header, weights).expect("a valid model")
}

/// Returns the mean time of a block in nanoseconds without the slowest tenth.
fn typical(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.truncate(times.len() * 9 / 10);
    times.iter().sum::<f64>() / times.len() as f64
}

fn main() {
    let _flush = FlushToZero::on();
    println!(
        "{:>10} {:>9} {:>16} {:>16} {:>7}",
        "model", "weights", "mono, ns/sample", "stereo", "ratio"
    );
    let mut random = Lcg::new(2);
    let names = ["triode", "overdrive", "fuzz"];
    let models = names
        .map(|name| (name, bundled(name)))
        .into_iter()
        .chain([("codec", codec(1)), ("codec × 4", codec(4))]);
    for (name, model) in models {
        let pipeline = |channels| {
            let options = PipelineOptions {
                channels,
                ..PipelineOptions::default()
            };
            Pipeline::new(&model, &options).expect("a playable model")
        };
        let (mut mono, mut stereo) = (
            pipeline(InputChannels::Mono),
            pipeline(InputChannels::Stereo),
        );
        let mut times = [Vec::new(), Vec::new()];
        let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
        for block in 0..WARM_UP + BLOCKS {
            let input = [(); 2].map(|()| [(); BLOCK].map(|()| 0.3 * random.next_signed() as f32));
            let start = Instant::now();
            mono.process(&input[0], &mut left);
            let middle = Instant::now();
            stereo.process_stereo(
                input.each_ref().map(<[f32; BLOCK]>::as_slice),
                [&mut left, &mut right],
            );
            let end = Instant::now();
            black_box((left, right));
            if block >= WARM_UP {
                for (times, duration) in times.iter_mut().zip([middle - start, end - middle]) {
                    times.push(duration.as_nanos() as f64 / BLOCK as f64);
                }
            }
        }
        let [mono, stereo] = times.map(typical);
        println!(
            "{name:>10} {:>9} {mono:>16.1} {stereo:>16.1} {:>7.2}",
            model.parameters(),
            stereo / mono
        );
    }
}
