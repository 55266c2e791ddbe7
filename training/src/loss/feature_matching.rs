//! Distillation loss on a teacher's hidden features.
//!
//! Activations and recurrent states of layers with equal name and rate are compared. If the student
//! has fewer channels, a linear projection to the teacher's channels is trained with it and
//! discarded afterwards (Romero et al., "FitNets: hints for thin deep nets", ICLR 2015).

use std::collections::BTreeSet;

use anyhow::Context;
use ondes_engine::model::{Activation, Method, Model, Op, Port};
use ondes_torch::{RecurrentState, TorchGraph, TorchWeights};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tch::{Device, Kind, Tensor};

/// Prefix of the names of projections, which no node has.
const PREFIX: &str = "distill:";
/// Least variance of a teacher's feature in the denominator of the loss.
const MIN_VARIANCE: f64 = 1e-8;

/// Teacher and the features that a student shares with it.
pub struct FeatureMatching {
    graph: TorchGraph,
    weights: TorchWeights,
    features: Vec<Feature>,
    /// Weight of the loss.
    share: f64,
}

/// Layer that both models have.
struct Feature {
    name: String,
    /// Channels of the student and of the teacher.
    channels: (usize, usize),
    ratio: usize,
}

impl FeatureMatching {
    /// Finds the features that a method of both models shares; `None` if there are none or `share`
    /// is 0.
    ///
    /// # Errors
    /// Returns an error if one of the models has no such method.
    pub fn new(
        teacher: &Model,
        student: &Model,
        method: &str,
        share: f64,
        device: Device,
    ) -> anyhow::Result<Option<Self>> {
        let theirs = teacher.method(method).context("the teacher")?;
        Self::between(
            teacher,
            theirs,
            student.method(method).context("the student")?,
            share,
            device,
        )
    }

    /// Finds the features that a method of a teacher and one of a student share; `None` if there
    /// are none or `share` is 0.
    ///
    /// # Errors
    /// Returns an error if one of the methods is invalid.
    pub fn between(
        teacher: &Model,
        teacher_method: &Method,
        student: &Method,
        share: f64,
        device: Device,
    ) -> anyhow::Result<Option<Self>> {
        let features = shared_features(teacher_method, student)?;
        if features.is_empty() || share <= 0.0 {
            return Ok(None);
        }
        let ports = features
            .iter()
            .map(|feature| feature.port(feature.channels.1))
            .collect();
        let observed = Method {
            outputs: ports,
            ..teacher_method.clone()
        };
        Ok(Some(Self {
            graph: TorchGraph::new(
                &without_unused_nodes(&Method {
                    warm_up: 0,
                    ..observed
                }),
                teacher.header().sample_rate,
            )?,
            weights: TorchWeights::new(teacher.weights(), device),
            features,
            share,
        }))
    }

    /// Returns the student's method with the features added to its outputs.
    #[must_use]
    pub fn with_feature_outputs(&self, student: &Method) -> Method {
        let mut observed = student.clone();
        observed.outputs.extend(
            self.features
                .iter()
                .map(|feature| feature.port(feature.channels.0)),
        );
        observed
    }

    /// Returns the untrained projections by weight name, `[teacher channels][student channels]`;
    /// features of equal width need none.
    #[must_use]
    pub fn projections(&self, seed: u64, device: Device) -> Vec<(String, Tensor)> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let projected = self
            .features
            .iter()
            .filter(|feature| feature.channels.0 != feature.channels.1);
        projected
            .map(|feature| {
                let (inputs, outputs) = feature.channels;
                let bound = 1.0 / (inputs as f32).sqrt();
                let values: Vec<f32> = (0..inputs * outputs)
                    .map(|_| random.random_range(-bound..bound))
                    .collect();
                let matrix = Tensor::from_slice(&values)
                    .view([outputs as i64, inputs as i64])
                    .to_device(device);
                (feature.projection(), matrix)
            })
            .collect()
    }

    /// Returns the mean squared difference between the student's and the teacher's features,
    /// relative to the variance of the teacher's. `memory` is the teacher's state before and after
    /// the inputs.
    pub fn loss(
        &self,
        weights: &TorchWeights,
        inputs: &[Tensor],
        student: &[Tensor],
        memory: &mut RecurrentState,
    ) -> Tensor {
        let teacher = tch::no_grad(|| self.graph.run_with_state(&self.weights, inputs, 0, memory));
        let centred =
            |feature: &Tensor| feature - feature.mean_dim([0_i64, 2].as_slice(), true, Kind::Float);
        let terms = self.features.iter().zip(student.iter().zip(&teacher)).map(
            |(feature, (student, teacher))| {
                let (student, teacher) = (centred(student), centred(teacher));
                let projected = weights
                    .0
                    .get(&feature.projection())
                    .map_or_else(|| student.shallow_clone(), |m| m.matmul(&student));
                let variance = teacher.square().mean(Kind::Float).clamp_min(MIN_VARIANCE);
                (projected - teacher).square().mean(Kind::Float) / variance
            },
        );
        let sum = terms
            .reduce(|sum, term| sum + term)
            .expect("there are features");
        sum * (self.share / self.features.len() as f64)
    }

    /// Returns the names of the compared layers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.features.iter().map(|feature| feature.name.as_str())
    }
}

impl Feature {
    fn projection(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    fn port(&self, channels: usize) -> Port {
        Port {
            name: self.name.clone(),
            channels,
            ratio: self.ratio,
        }
    }
}

fn shared_features(teacher: &Method, student: &Method) -> anyhow::Result<Vec<Feature>> {
    let (teacher_shapes, student_shapes) = (teacher.infer()?, student.infer()?);
    let mut features = Vec::new();
    for (index, node) in student
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| is_feature(&node.op))
    {
        let twin = teacher
            .nodes
            .iter()
            .position(|other| other.name == node.name && is_feature(&other.op));
        let Some(twin) = twin else { continue };
        let ours = student_shapes.values[student.inputs.len() + index];
        let theirs = teacher_shapes.values[teacher.inputs.len() + twin];
        if ours.ratio == theirs.ratio {
            let channels = (ours.channels, theirs.channels);
            features.push(Feature {
                name: node.name.clone(),
                channels,
                ratio: ours.ratio,
            });
        }
    }
    Ok(features)
}

/// Tells whether an op ends a layer, so that its output is compared.
fn is_feature(op: &Op) -> bool {
    match op {
        Op::Gru(_) | Op::Lstm(_) | Op::Attention(_) | Op::Gate | Op::Prelu(_) => true,
        // Other ops follow an exponential within a layer, as they follow `Op::Snake`.
        Op::Activation(activation) => *activation != Activation::Exp,
        _ => false,
    }
}

/// Removes the nodes that no output depends on.
fn without_unused_nodes(method: &Method) -> Method {
    let mut names: BTreeSet<&str> = method
        .outputs
        .iter()
        .map(|port| port.name.as_str())
        .collect();
    for node in method.nodes.iter().rev() {
        if names.contains(node.name.as_str()) {
            names.extend(node.inputs.iter().map(String::as_str));
        }
    }
    let nodes = method
        .nodes
        .iter()
        .filter(|node| names.contains(node.name.as_str()))
        .cloned()
        .collect();
    Method {
        nodes,
        ..method.clone()
    }
}
