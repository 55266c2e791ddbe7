//! What goes on inside a teacher, as something for a student to aim at.
//!
//! Layers of the same name at the same rate are compared where both have an activation or a memory. A student that has fewer
//! channels is not asked to have the teacher's, only to know what they do: a matrix that is learnt with it, and forgotten
//! afterwards, leads from its channels to theirs (Romero et al., "FitNets: hints for thin deep nets", ICLR 2015).

use std::collections::BTreeSet;

use anyhow::Context;
use ondes_engine::model::{Activation, Method, Model, Op, Port};
use ondes_torch::{Memory, TorchGraph, TorchWeights};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tch::{Device, Kind, Tensor};

/// What the names of matrices that only training needs begin with; no node's does.
const PREFIX: &str = "distill:";
/// Features that move less than this, as a mean square, say nothing.
const STILL: f64 = 1e-8;

/// A teacher, as its student sees it.
pub struct Guide {
    graph: TorchGraph,
    weights: TorchWeights,
    memory: Memory,
    features: Vec<Feature>,
    /// Weight of the features in the loss.
    share: f64,
}

/// A layer that both have.
struct Feature {
    name: String,
    /// Channels of the student and of the teacher.
    channels: (usize, usize),
    ratio: usize,
}

impl Guide {
    /// Looks for what a method of two models has in common; none where that is nothing.
    ///
    /// # Errors
    /// When one of them has no such method.
    pub fn new(
        teacher: &Model,
        student: &Model,
        method: &str,
        share: f64,
        device: Device,
    ) -> anyhow::Result<Option<Self>> {
        let of_teacher = teacher.method(method).context("the teacher")?;
        let features = common(of_teacher, student.method(method).context("the student")?)?;
        if features.is_empty() || share <= 0.0 {
            return Ok(None);
        }
        let ports = features.iter().map(|feature| feature.port(feature.channels.1)).collect();
        let showing = Method { outputs: ports, ..of_teacher.clone() };
        Ok(Some(Self {
            graph: TorchGraph::new(&needed(&Method { warm_up: 0, ..showing }), teacher.header().sample_rate)?,
            weights: TorchWeights::new(teacher.weights(), device),
            memory: Memory::default(),
            features,
            share,
        }))
    }

    /// The student's method, with the features after its own outputs.
    #[must_use]
    pub fn showing(&self, student: &Method) -> Method {
        let mut showing = student.clone();
        showing.outputs.extend(self.features.iter().map(|feature| feature.port(feature.channels.0)));
        showing
    }

    /// The matrices to be learnt, `[teacher's channels][student's channels]`; features of one width need none.
    #[must_use]
    pub fn matrices(&self, seed: u64, device: Device) -> Vec<(String, Tensor)> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let uneven = self.features.iter().filter(|feature| feature.channels.0 != feature.channels.1);
        uneven
            .map(|feature| {
                let (inputs, outputs) = feature.channels;
                let bound = 1.0 / (inputs as f32).sqrt();
                let values: Vec<f32> = (0..inputs * outputs).map(|_| random.random_range(-bound..bound)).collect();
                let matrix = Tensor::from_slice(&values).view([outputs as i64, inputs as i64]).to_device(device);
                (feature.matrix(), matrix)
            })
            .collect()
    }

    /// A sequence begins that has nothing to do with the one before.
    pub fn forget(&mut self) {
        self.memory = Memory::default();
    }

    /// How far the student's features are from what the teacher's are, given the same inputs, as a share of how much those move.
    pub fn loss(&mut self, weights: &TorchWeights, inputs: &[Tensor], student: &[Tensor]) -> Tensor {
        let Self { graph, weights: own, memory, .. } = self;
        let teacher = tch::no_grad(|| graph.go_on(own, inputs, 0, memory));
        let centred = |feature: &Tensor| feature - feature.mean_dim([0_i64, 2].as_slice(), true, Kind::Float);
        let terms = self.features.iter().zip(student.iter().zip(&teacher)).map(|(feature, (student, teacher))| {
            let (student, teacher) = (centred(student), centred(teacher));
            let led = weights.0.get(&feature.matrix()).map_or_else(|| student.shallow_clone(), |m| m.matmul(&student));
            let moves = teacher.square().mean(Kind::Float).clamp_min(STILL);
            (led - teacher).square().mean(Kind::Float) / moves
        });
        let sum = terms.reduce(|sum, term| sum + term).expect("there are features");
        sum * (self.share / self.features.len() as f64)
    }

    /// Names of the layers that are compared.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.features.iter().map(|feature| feature.name.as_str())
    }
}

impl Feature {
    fn matrix(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    fn port(&self, channels: usize) -> Port {
        Port { name: self.name.clone(), channels, ratio: self.ratio }
    }
}

fn common(teacher: &Method, student: &Method) -> anyhow::Result<Vec<Feature>> {
    let (of_teacher, of_student) = (teacher.infer()?, student.infer()?);
    let mut features = Vec::new();
    for (index, node) in student.nodes.iter().enumerate().filter(|(_, node)| is_feature(&node.op)) {
        let twin = teacher.nodes.iter().position(|other| other.name == node.name && is_feature(&other.op));
        let Some(twin) = twin else { continue };
        let here = of_student.values[student.inputs.len() + index];
        let there = of_teacher.values[teacher.inputs.len() + twin];
        if here.ratio == there.ratio {
            let channels = (here.channels, there.channels);
            features.push(Feature { name: node.name.clone(), channels, ratio: here.ratio });
        }
    }
    Ok(features)
}

/// Whether what an op makes is worth comparing: what a layer ends with.
fn is_feature(op: &Op) -> bool {
    match op {
        Op::Gru { .. } | Op::Lstm { .. } | Op::Gate => true,
        // What a snake or an exponential makes goes on in the same layer.
        Op::Snake | Op::Activation(Activation::Exp) => false,
        op => op.is_activation(),
    }
}

/// The method without the nodes that its outputs do not need.
fn needed(method: &Method) -> Method {
    let mut names: BTreeSet<&str> = method.outputs.iter().map(|port| port.name.as_str()).collect();
    for node in method.nodes.iter().rev() {
        if names.contains(node.name.as_str()) {
            names.extend(node.inputs.iter().map(String::as_str));
        }
    }
    let nodes = method.nodes.iter().filter(|node| names.contains(node.name.as_str())).cloned().collect();
    Method { nodes, ..method.clone() }
}
