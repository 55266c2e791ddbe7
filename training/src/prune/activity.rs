//! What the channels of a model do while it plays: their means and how far they move around them.

use std::collections::BTreeMap;

use ondes_engine::model::{ModelError, Model, Port};
use ondes_torch::{TorchGraph, TorchWeights};
use tch::{Device, Kind, Tensor};

use super::readers::read_nodes;

/// Of one channel, over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Mean.
    pub mean: f64,
    /// Mean square distance from the mean.
    pub variance: f64,
}

/// Moments of all values that are read by weights.
pub struct Activity {
    watched: Vec<Watched>,
    weights: TorchWeights,
    /// By method and value: `[channel]`.
    moments: BTreeMap<(usize, usize), Vec<Moments>>,
}

/// A method that shows what is read in it.
struct Watched {
    graph: TorchGraph,
    /// For each thing shown, its value and how many sums there are yet: `[channel]` of values and of squares, and frames.
    values: Vec<(usize, Sums)>,
}

#[derive(Default)]
struct Sums {
    values: Vec<f64>,
    squares: Vec<f64>,
    frames: f64,
}

impl Activity {
    /// Gets ready to watch a model; what is watched starts from its first frame, without the warm-up of its methods.
    ///
    /// # Errors
    /// [`ModelError`] where a method does not fit.
    pub fn new(model: &Model, device: Device) -> Result<Self, ModelError> {
        let header = model.header();
        let watched = header.methods.iter().map(|method| {
            let shapes = method.infer()?;
            let nodes = read_nodes(method, &shapes);
            let mut showing = method.clone();
            showing.warm_up = 0;
            showing.outputs = nodes
                .iter()
                .map(|&node| {
                    let shape = shapes.values[method.inputs.len() + node];
                    Port { name: method.nodes[node].name.clone(), channels: shape.channels, ratio: shape.ratio }
                })
                .collect();
            let graph = TorchGraph::new(&showing, header.sample_rate)?;
            let values = nodes.iter().map(|node| (method.inputs.len() + node, Sums::default())).collect();
            Ok(Watched { graph, values })
        });
        Ok(Self {
            watched: watched.collect::<Result<_, ModelError>>()?,
            weights: TorchWeights::new(model.weights(), device),
            moments: BTreeMap::new(),
        })
    }

    /// Lets a method play; `inputs` are its ports', `[batch, channels, frames]`, of which the first `lead` share only warms up.
    pub fn hear(&mut self, method: usize, inputs: &[Tensor], lead: f64) {
        let Watched { graph, values } = &mut self.watched[method];
        let shown = tch::no_grad(|| graph.run(&self.weights, inputs, 0));
        for ((value, sums), shown) in values.iter_mut().zip(shown) {
            let frames = shown.size()[2];
            let skipped = (lead * frames as f64) as i64;
            let heard = shown.narrow(2, skipped, frames - skipped).to_kind(Kind::Double);
            let sum = |of: Tensor| -> Vec<f64> {
                let sums = of.sum_dim_intlist([0_i64, 2].as_slice(), false, Kind::Double);
                Vec::try_from(sums.to_device(Device::Cpu)).expect("one number for each channel")
            };
            let add = |sums: &mut Vec<f64>, new: Vec<f64>| {
                sums.resize(new.len(), 0.0);
                sums.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
            };
            add(&mut sums.values, sum(heard.shallow_clone()));
            add(&mut sums.squares, sum(heard.square()));
            sums.frames += (heard.size()[0] * heard.size()[2]) as f64;
            let channels = sums.values.iter().zip(&sums.squares);
            let moments = channels.map(|(value, square)| {
                let mean = value / sums.frames;
                Moments { mean, variance: (square / sums.frames - mean * mean).max(0.0) }
            });
            self.moments.insert((method, *value), moments.collect());
        }
    }

    /// `[channel]` of a value; none of what was not heard, or is read by no weights.
    #[must_use]
    pub fn of(&self, method: usize, value: usize) -> Option<&[Moments]> {
        self.moments.get(&(method, value)).map(Vec::as_slice)
    }
}
