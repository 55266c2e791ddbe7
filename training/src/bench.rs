//! Steps of synthetic networks on random data, to compare optimisers, batches, machines and other
//! programs.

use std::fmt::Write;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Context;
use ondes_engine::model::{
    Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor as ModelTensor,
    Weights,
};
use ondes_engine::ops::{Gru, Linear};
use ondes_engine::random::Lcg;
use ondes_torch::{TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use crate::loss::{Loss, LossWeights, WeightedLoss};
use crate::optimizer::OptimizerConfig;
use crate::schedule::{Constant, ScheduleConfig};
use crate::tasks::capture::architecture::Architecture;
use crate::tasks::capture::pair::Pair;
use crate::tasks::capture::task::{CaptureOptions, CaptureTask};
use crate::trainer::task::{TaskInfo, first_non_finite};
use crate::trainer::training_config::TrainingConfig;
use crate::trainer::{Length, RunFiles, Task, Trainer, TrainerOptions, Validation};

const SAMPLE_RATE: u32 = 48_000;
/// Square layers of the dense network.
const DENSE_LAYERS: usize = 4;
/// Steps before those that are timed, and the fewest that are timed.
const WARM_UP: u32 = 2;
const MIN_STEPS: usize = 3;
/// Sizes of the recurrent network.
const GRU: (usize, usize, usize, usize) = (64, 256, 65, 250);
/// Rows of the recurrent network.
const GRU_BATCH: usize = 8;
/// Sound of the captures, seconds.
const PAIR_S: usize = 20;

/// Network of a [`SyntheticTask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntheticNetwork {
    /// Four square linear layers with tanh, of about so many weights; a row is one frame.
    Dense {
        /// Number of weights.
        weights: usize,
    },
    /// GRU of 256 units from 64 inputs, with a linear layer to 65 outputs; a row has 250 frames.
    Gru,
}

/// Regression to random targets.
pub struct SyntheticTask {
    initial: Model,
    graph: TorchGraph,
    loss: WeightedLoss,
    inputs: Tensor,
    targets: Tensor,
}

impl SyntheticTask {
    /// Creates a network with random weights, inputs and targets, which are equal in every step.
    ///
    /// # Errors
    /// Returns an error if the network is too large for a model.
    pub fn new(network: SyntheticNetwork, rows: usize) -> anyhow::Result<Self> {
        let (inputs, outputs, frames, ops) = match network {
            SyntheticNetwork::Dense { weights } => {
                let width = ((weights / DENSE_LAYERS) as f64).sqrt() as usize;
                let layer = [
                    Op::Linear(Linear { outputs: width }),
                    Op::Activation(Activation::Tanh),
                ];
                (width, width, 1, vec![layer; DENSE_LAYERS].concat())
            }
            SyntheticNetwork::Gru => {
                let (inputs, hidden, outputs, frames) = GRU;
                let ops = vec![
                    Op::Gru(Gru {
                        hidden,
                        initial_state: false,
                    }),
                    Op::Linear(Linear { outputs }),
                ];
                (inputs, outputs, frames, ops)
            }
        };
        let initial = untrained(inputs, outputs, ops)?;
        let graph = TorchGraph::new(initial.method("forward")?, SAMPLE_RATE)?;
        let loss = WeightedLoss::new(
            LossWeights {
                mse: 1.0,
                ..LossWeights::default()
            },
            SAMPLE_RATE,
            &[],
            Device::Cpu,
        );
        let random = |channels: usize| {
            let mut random = Lcg::new(channels as u32);
            let values: Vec<f32> = (0..rows * channels * frames)
                .map(|_| random.next_signed() as f32)
                .collect();
            Tensor::from_slice(&values).view([rows as i64, channels as i64, frames as i64])
        };
        Ok(Self {
            initial,
            graph,
            loss,
            inputs: random(inputs),
            targets: random(outputs),
        })
    }
}

/// Creates a chain of nodes with random weights.
fn untrained(inputs: usize, outputs: usize, ops: Vec<Op>) -> anyhow::Result<Model> {
    let port = |name: &str, channels| Port {
        name: name.into(),
        channels,
        ratio: 1,
    };
    let mut nodes: Vec<Node> = Vec::new();
    for op in ops {
        let input = nodes
            .last()
            .map_or_else(|| "x".to_owned(), |node| node.name.clone());
        nodes.push(Node {
            name: format!("node{}", nodes.len()),
            inputs: vec![input],
            op,
        });
    }
    if let Some(last) = nodes.last_mut() {
        last.name = "y".into();
    }
    let (inputs, outputs) = (vec![port("x", inputs)], vec![port("y", outputs)]);
    let method = Method {
        name: "forward".into(),
        block: 1,
        warm_up: 0,
        inputs,
        outputs,
        nodes,
    };
    let (mut random, mut weights) = (Lcg::new(1), Weights::default());
    for (node, shapes) in method.nodes.iter().zip(method.infer()?.node_inputs()) {
        for spec in node.op.weights(&shapes) {
            let bound = 1.0 / (*spec.shape.last().unwrap_or(&1) as f32).sqrt();
            let values = (0..spec.shape.iter().product())
                .map(|_| bound * random.next_signed() as f32)
                .collect();
            weights.insert(
                format!("{}.{}", node.name, spec.name),
                ModelTensor::new(&spec.shape, values),
            );
        }
    }
    let header = Header {
        format: FORMAT,
        kind: Kind::Effect,
        sample_rate: SAMPLE_RATE,
        methods: vec![method],
        controls: Vec::new(),
        variants: Vec::new(),
        oversampling: 1,
        performance: None,
        card: Card::default(),
    };
    Ok(Model::new(header, weights)?)
}

impl Task for SyntheticTask {
    type Batch = [Tensor; 2];

    fn initial(&self) -> &Model {
        &self.initial
    }

    fn trained(&self) -> Vec<String> {
        self.initial
            .weights()
            .iter()
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    fn info(&self) -> TaskInfo {
        TaskInfo {
            name: "random numbers".into(),
            corpus: String::new(),
            seconds: 0.0,
            seed: 1,
        }
    }

    fn rows(&self, _step: u64) -> usize {
        self.inputs.size()[0] as usize
    }

    fn batch(
        &mut self,
        _step: u64,
        rows: Range<usize>,
        device: Device,
    ) -> anyhow::Result<[Tensor; 2]> {
        let part = |all: &Tensor| {
            all.narrow(0, rows.start as i64, rows.len() as i64)
                .to_device(device)
        };
        Ok([part(&self.inputs), part(&self.targets)])
    }

    fn loss(&mut self, weights: &TorchWeights, [input, target]: &[Tensor; 2]) -> Loss {
        let output = self
            .graph
            .run(weights, std::slice::from_ref(input), 0)
            .remove(0);
        self.loss
            .between(&output.flatten(1, 2), &target.flatten(1, 2))
    }

    fn validate(
        &mut self,
        weights: &TorchWeights,
        device: Device,
        _rows: usize,
    ) -> anyhow::Result<Validation> {
        let rows = self.rows(0);
        let batch = self.batch(0, 0..rows, device)?;
        let loss = self.loss(weights, &batch).total.double_value(&[]);
        Ok(Validation {
            loss,
            measure: "validation",
            sounds: None,
            note: None,
        })
    }

    fn first_non_finite(&self, weights: &TorchWeights, [input, _]: &[Tensor; 2]) -> Option<String> {
        let method = self.initial.method("forward").ok()?;
        first_non_finite(method, SAMPLE_RATE, weights, std::slice::from_ref(input))
    }

    fn identity(&self) -> Vec<(String, String)> {
        vec![("training.batch".into(), self.rows(0).to_string())]
    }
}

/// Returns settings of a run that writes nothing as long as only [`Trainer::advance`] is called.
fn options(optimizer: OptimizerConfig, threads: i32) -> TrainerOptions {
    let training = TrainingConfig {
        threads,
        device: "cpu".into(),
        ..TrainingConfig::plain(1e-4)
    };
    TrainerOptions {
        optimizer,
        schedule: ScheduleConfig::Constant(Constant::default()),
        ..TrainerOptions::new(Length::Steps(1_000_000), training, RunFiles::default())
    }
}

/// Returns a trainer of a synthetic network.
///
/// # Errors
/// Returns an error if there is no optimiser of that name, or the network is too large.
pub fn trainer(
    network: SyntheticNetwork,
    rows: usize,
    optimizer: &str,
    threads: i32,
) -> anyhow::Result<Trainer<SyntheticTask>> {
    Trainer::new(
        SyntheticTask::new(network, rows)?,
        options(OptimizerConfig::named(optimizer)?, threads),
    )
}

/// Returns noise, and the same through a curve, to capture.
#[must_use]
pub fn pair() -> Pair {
    let mut random = Lcg::new(7);
    let dry: Vec<f32> = (0..PAIR_S * SAMPLE_RATE as usize)
        .map(|_| 0.5 * random.next_signed() as f32)
        .collect();
    let wet = dry.iter().map(|x| (2.0 * x).tanh()).collect();
    Pair::new(dry, wet, SAMPLE_RATE, "curve".into())
}

/// Returns a trainer of a capture with AdamW; 0 threads are as many as that size gets by default.
///
/// # Errors
/// Returns an error if there is no such size.
pub fn capture_trainer<'a>(
    size: &str,
    threads: i32,
    pair: &'a Pair,
) -> anyhow::Result<Trainer<CaptureTask<'a>>> {
    let mut capture = CaptureOptions::new(Architecture::named(size)?, RunFiles::default());
    let threads = if threads > 0 {
        threads
    } else {
        capture.trainer.training.threads
    };
    let gradient_norm = capture.trainer.training.gradient_norm;
    capture.trainer = options(OptimizerConfig::default(), threads);
    capture.trainer.training.gradient_norm = gradient_norm;
    Trainer::new(
        CaptureTask::new(capture.clone(), std::slice::from_ref(pair), None)?,
        capture.trainer,
    )
}

/// Returns the median duration of steps over about `time`, seconds.
///
/// # Errors
/// Returns an error if a step fails.
pub fn seconds_per_step<T: Task>(trainer: &mut Trainer<T>, time: Duration) -> anyhow::Result<f64> {
    for _ in 0..WARM_UP {
        trainer.advance()?;
    }
    let (started, mut seconds) = (Instant::now(), Vec::new());
    while seconds.len() < MIN_STEPS || started.elapsed() < time {
        let step = Instant::now();
        trainer.advance()?;
        seconds.push(step.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}

/// Networks of [`network_seconds`].
pub const NETWORKS: [&str; 4] = ["gru", "wavenet", "lstm-16", "nano"];

/// Returns the duration of a step of one of [`NETWORKS`], seconds.
///
/// # Errors
/// Returns an error if a step fails.
pub fn network_seconds(name: &str, threads: i32, time: Duration) -> anyhow::Result<f64> {
    if name == "gru" {
        return seconds_per_step(
            &mut trainer(SyntheticNetwork::Gru, GRU_BATCH, "adamw", threads)?,
            time,
        );
    }
    let size = if name == "wavenet" { "standard" } else { name };
    seconds_per_step(&mut capture_trainer(size, threads, &pair())?, time)
}

/// Returns a Markdown table of steps and rows a second of dense networks, for each optimiser.
///
/// # Errors
/// Returns an error if a step fails.
pub fn optimizer_table(
    (weights, batches): (&[usize], &[usize]),
    optimizers: &[String],
    threads: i32,
    time: Duration,
) -> anyhow::Result<String> {
    let mut text = "| weights | batch |".to_owned();
    optimizers
        .iter()
        .for_each(|name| text += &format!(" {name} |"));
    let _ = write!(text, "\n|---|---|{}\n", "---|".repeat(optimizers.len()));
    for &weights in weights {
        for &batch in batches {
            let _ = write!(text, "| {} M | {batch} |", weights as f64 / 1e6);
            for name in optimizers {
                let mut trainer =
                    trainer(SyntheticNetwork::Dense { weights }, batch, name, threads)
                        .with_context(|| format!("{weights} weights"))?;
                let rate = 1.0 / seconds_per_step(&mut trainer, time)?;
                let _ = write!(text, " {} ({rate:.1}) |", thousands(rate * batch as f64));
            }
            text.push('\n');
        }
    }
    Ok(text)
}

/// Formats a whole number with groups of three digits.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| String::from_utf8_lossy(group).into_owned());
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_optimizer_learns_the_random_targets() {
        for network in [
            SyntheticNetwork::Dense {
                weights: 4 * 32 * 32,
            },
            SyntheticNetwork::Gru,
        ] {
            let mut trainer = trainer(network, 4, "adamw", 1).expect("a trainer");
            let first = trainer.advance().expect("a step");
            let last = (0..20)
                .map(|_| trainer.advance().expect("a step"))
                .last()
                .expect("there are steps");
            assert!(last < first, "{network:?}: {first}, then {last}");
        }
        let optimizers = OptimizerConfig::NAMES.map(str::to_owned);
        let table =
            optimizer_table((&[4_096], &[2, 3]), &optimizers, 1, Duration::ZERO).expect("a table");
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(
            lines.iter().all(|line| line.matches('|').count() == 9),
            "{table}"
        );
        assert!(lines[2].starts_with("| 0.004096 M | 2 |"), "{table}");
    }

    #[test]
    fn every_network_can_be_timed() {
        for name in ["gru", "lstm-16", "nano"] {
            assert!(network_seconds(name, 1, Duration::ZERO).expect("it trains") > 0.0);
        }
        assert!(NETWORKS.contains(&"gru") && trainer(SyntheticNetwork::Gru, 1, "none", 1).is_err());
        assert_eq!(
            [1.0, 999.6, 12_345.0].map(thousands),
            ["1", "1,000", "12,345"]
        );
    }
}
