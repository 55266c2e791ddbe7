//! Statistics of a model's channels while it plays.

use std::collections::BTreeMap;

use ondes_engine::model::{Model, ModelError, Port};
use ondes_torch::{TorchGraph, TorchWeights};
use tch::{Device, Kind, Tensor};

use super::readers::read_nodes;

/// Mean and variance of a channel over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Mean.
    pub mean: f64,
    /// Variance.
    pub variance: f64,
}

/// Moments of all values that weight matrices read.
pub struct Activity {
    observed: Vec<ObservedMethod>,
    weights: TorchWeights,
    /// `[channel]` by method and value.
    moments: BTreeMap<(usize, usize), Vec<Moments>>,
}

/// Method whose outputs are the observed values.
struct ObservedMethod {
    graph: TorchGraph,
    /// Observed values with their sums.
    values: Vec<(usize, MomentSums)>,
}

/// Sums over all frames, `[channel]`, and the number of frames.
#[derive(Default)]
struct MomentSums {
    values: Vec<f64>,
    squares: Vec<f64>,
    frames: f64,
}

impl Activity {
    /// Prepares to observe a model from its first frame, without the warm-up of its methods.
    ///
    /// # Errors
    /// Returns [`ModelError`] if a method is invalid.
    pub fn new(model: &Model, device: Device) -> Result<Self, ModelError> {
        let header = model.header();
        let observed = header.methods.iter().map(|method| {
            let shapes = method.infer()?;
            let nodes = read_nodes(method, &shapes);
            let mut with_outputs = method.clone();
            with_outputs.warm_up = 0;
            with_outputs.outputs = nodes
                .iter()
                .map(|&node| {
                    let shape = shapes.values[method.inputs.len() + node];
                    Port {
                        name: method.nodes[node].name.clone(),
                        channels: shape.channels,
                        ratio: shape.ratio,
                    }
                })
                .collect();
            let graph = TorchGraph::new(&with_outputs, header.sample_rate)?;
            let values = nodes
                .iter()
                .map(|node| (method.inputs.len() + node, MomentSums::default()))
                .collect();
            Ok(ObservedMethod { graph, values })
        });
        Ok(Self {
            observed: observed.collect::<Result<_, ModelError>>()?,
            weights: TorchWeights::new(model.weights(), device),
            moments: BTreeMap::new(),
        })
    }

    /// Runs a method on its ports, `[batch, channels, frames]`, and adds its values to the moments;
    /// the share `warm_up` of the frames is left out.
    pub fn observe(&mut self, method: usize, inputs: &[Tensor], warm_up: f64) {
        let ObservedMethod { graph, values } = &mut self.observed[method];
        let outputs = tch::no_grad(|| graph.run(&self.weights, inputs, 0));
        for ((value, sums), output) in values.iter_mut().zip(outputs) {
            let frames = output.size()[2];
            let skipped = (warm_up * frames as f64) as i64;
            let settled = output
                .narrow(2, skipped, frames - skipped)
                .to_kind(Kind::Double);
            let sum = |of: Tensor| -> Vec<f64> {
                let sums = of.sum_dim_intlist([0_i64, 2].as_slice(), false, Kind::Double);
                Vec::try_from(sums.to_device(Device::Cpu)).expect("one number for each channel")
            };
            let add = |sums: &mut Vec<f64>, new: Vec<f64>| {
                sums.resize(new.len(), 0.0);
                sums.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
            };
            add(&mut sums.values, sum(settled.shallow_clone()));
            add(&mut sums.squares, sum(settled.square()));
            sums.frames += (settled.size()[0] * settled.size()[2]) as f64;
            let channels = sums.values.iter().zip(&sums.squares);
            let moments = channels.map(|(value, square)| {
                let mean = value / sums.frames;
                Moments {
                    mean,
                    variance: (square / sums.frames - mean * mean).max(0.0),
                }
            });
            self.moments.insert((method, *value), moments.collect());
        }
    }

    /// Returns the moments of a value, `[channel]`; `None` if it was not observed.
    #[must_use]
    pub fn moments(&self, method: usize, value: usize) -> Option<&[Moments]> {
        self.moments.get(&(method, value)).map(Vec::as_slice)
    }
}
