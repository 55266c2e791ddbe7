//! Trained weights in one flat buffer, so that an optimiser needs a fixed number of operations
//! however many weights there are.

use std::rc::Rc;

use anyhow::Context;
use ondes_torch::TorchWeights;
use tch::{Device, Kind, Tensor};

use crate::distributed::{BUCKET_ELEMENTS, Buckets, Group, GroupError};

/// Alignment of each weight in the buffer, elements: 64 bytes of f32.
const ALIGNMENT: i64 = 16;
/// Length of the tail, elements: loss, its terms, and a flag.
const TAIL: i64 = 32;
/// Learning rate of impulse responses, relative to that of other weights. Adam moves every tap by
/// about the learning rate in each step, whatever its gradient; over ten thousand taps that is
/// audible noise.
const IMPULSE_SHARE: f64 = 0.05;

/// A weight's place in the buffer.
struct Slot {
    name: String,
    shape: Vec<i64>,
    start: i64,
    /// Elements, without the padding up to the next slot.
    length: i64,
    /// Elements with the padding.
    padded: i64,
}

/// Limits of a gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clip {
    /// Largest Euclidean norm over all weights; longer gradients are scaled. 0 for no limit.
    pub norm: f64,
    /// Largest magnitude of an element. 0 for no limit.
    pub value: f64,
}

/// Weights that one optimiser moves.
pub struct Parameters {
    slots: Vec<Slot>,
    /// Weights by slot: leaves of the autograd graph that share the memory of `values`.
    leaves: Vec<Tensor>,
    /// Slots whose gradient lies in `gradients`.
    bound: Vec<bool>,
    values: Tensor,
    gradients: Tensor,
    /// Numbers behind the gradients, which are summed over the group with them.
    tail: Tensor,
    /// Gradients and tail.
    summed: Tensor,
    /// Learning rate of each element, relative to that of the step.
    rates: Tensor,
    /// 1 for elements that weight decay applies to: those of matrices.
    decayed: Tensor,
    /// 0 for elements that stay zero, otherwise 1.
    mask: Option<Tensor>,
    /// Elements per slot with padding, for reductions by weight.
    lengths: Tensor,
    group: Option<Rc<Group>>,
    /// Sums over the group that begin during the backward pass.
    buckets: Option<Buckets>,
    /// The sums of this pass have begun.
    summing: bool,
}

impl Parameters {
    /// Moves the named weights into one buffer. `weights` then holds views of it that require
    /// gradients.
    ///
    /// # Errors
    /// Returns an error if there is no weight of a name.
    pub fn new(weights: &mut TorchWeights, names: &[String]) -> anyhow::Result<Self> {
        let mut slots = Vec::new();
        let mut start = 0;
        let mut kind_and_device = (Kind::Float, Device::Cpu);
        for name in names {
            let weight = weights
                .0
                .get(name)
                .with_context(|| format!("the network has no weight {name:?}"))?;
            kind_and_device = (weight.kind(), weight.device());
            let length = i64::try_from(weight.numel()).context("too many weights")?;
            let padded = (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            slots.push(Slot {
                name: name.clone(),
                shape: weight.size(),
                start,
                length,
                padded,
            });
            start += padded;
        }
        let zeros = || Tensor::zeros([start], kind_and_device);
        let summed = Tensor::zeros([start + TAIL], kind_and_device);
        let (mut values, rates, decayed) = (zeros(), zeros(), zeros());
        let mut leaves = Vec::new();
        tch::no_grad(|| {
            for slot in &slots {
                let weight = weights.0.get_mut(&slot.name).expect("a checked name");
                let mut view = slot.view(&values);
                view.copy_(weight);
                let rate = if slot.name.ends_with(".impulse") {
                    IMPULSE_SHARE
                } else {
                    1.0
                };
                let _ = slot.view(&rates).fill_(rate);
                let _ = slot
                    .view(&decayed)
                    .fill_(f64::from(u8::from(slot.shape.len() > 1)));
                *weight = view.detach().set_requires_grad(true);
                leaves.push(weight.shallow_clone());
            }
        });
        values = values.detach();
        let padded: Vec<i64> = slots.iter().map(|slot| slot.padded).collect();
        Ok(Self {
            bound: vec![false; slots.len()],
            gradients: summed.narrow(0, 0, start),
            tail: summed.narrow(0, start, TAIL),
            summed,
            lengths: Tensor::from_slice(&padded).to_device(kind_and_device.1),
            slots,
            leaves,
            values,
            rates,
            decayed,
            mask: None,
            group: None,
            buckets: None,
            summing: false,
        })
    }

    /// Sums gradients over these processes from now on.
    pub fn set_group(&mut self, group: Rc<Group>) {
        self.group = Some(group);
    }

    /// Lets the next backward pass, the last before [`Parameters::sum_gradients`], begin with the
    /// sums. That needs the place of every gradient, which the first pass finds.
    pub fn begin_sums(&mut self) {
        let Some(group) = &self.group else { return };
        if !group.sums_on(self.values.device()) || !self.bound.iter().all(|bound| *bound) {
            return;
        }
        if self.buckets.is_none() {
            let mut ends: Vec<i64> = self
                .slots
                .iter()
                .map(|slot| slot.start + slot.padded)
                .collect();
            ends.iter_mut()
                .last()
                .into_iter()
                .for_each(|end| *end += TAIL);
            self.buckets = Buckets::new(
                group.clone(),
                &self.summed,
                &self.leaves,
                &ends,
                BUCKET_ELEMENTS,
            );
        }
        self.buckets.iter().for_each(Buckets::arm);
        self.summing = self.buckets.is_some();
    }

    /// Sets the numbers that are summed over the group with the gradients.
    ///
    /// # Panics
    /// Panics if there are more than the tail holds.
    pub fn set_tail(&mut self, numbers: &[f64]) {
        assert!(numbers.len() <= TAIL as usize, "too many numbers");
        let mut tail = self.tail.narrow(0, 0, numbers.len() as i64);
        tch::no_grad(|| tail.copy_(&Tensor::from_slice(numbers)));
    }

    /// Returns so many numbers of the tail.
    #[must_use]
    pub fn tail(&self, count: usize) -> Vec<f64> {
        let tail = self
            .tail
            .narrow(0, 0, count as i64)
            .to_device(Device::Cpu)
            .to_kind(Kind::Double);
        Vec::try_from(&tail).unwrap_or_default()
    }

    /// Collects the gradients of the last backward pass, and replaces them by their sum over the
    /// processes.
    ///
    /// # Errors
    /// Returns an error if a process has gone.
    pub fn sum_gradients(&mut self) -> Result<(), GroupError> {
        self.collect_gradients();
        match (
            &self.group,
            std::mem::take(&mut self.summing),
            &self.buckets,
        ) {
            (Some(_), true, Some(buckets)) => buckets.finish(),
            (Some(group), ..) => group.sum(&mut self.summed),
            (None, ..) => Ok(()),
        }
    }

    /// Returns the flat values. Changing them changes the weights.
    pub fn values(&mut self) -> &mut Tensor {
        &mut self.values
    }

    /// Returns the flat gradient.
    pub fn gradients(&mut self) -> &mut Tensor {
        &mut self.gradients
    }

    /// Returns the number of weights, without padding.
    #[must_use]
    pub fn count(&self) -> i64 {
        self.slots.iter().map(|slot| slot.length).sum()
    }

    /// Returns the names of the weights, in the order of [`Parameters::norms`].
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|slot| slot.name.as_str())
    }

    /// Keeps elements of matrices that are zero now at zero.
    pub fn keep_zeros(&mut self) {
        self.mask = Some(tch::no_grad(|| {
            (self
                .values
                .not_equal(0.0)
                .logical_or(&self.decayed.less(0.5)))
            .to_kind(self.values.kind())
        }));
    }

    /// Collects the gradients of a backward pass in the flat buffer. A weight that no loss depends
    /// on does not move.
    pub fn collect_gradients(&mut self) {
        tch::no_grad(|| {
            for ((slot, leaf), bound) in self.slots.iter().zip(&self.leaves).zip(&mut self.bound) {
                if *bound {
                    continue;
                }
                let mut gradient = leaf.grad();
                if gradient.defined() {
                    let mut view = slot.view(&self.gradients);
                    view.copy_(&gradient);
                    // Later passes add to the buffer.
                    gradient.set_data(&view);
                    *bound = true;
                }
            }
        });
    }

    /// Sets the gradient to zero.
    pub fn clear_gradients(&mut self) {
        self.collect_gradients();
        let _ = tch::no_grad(|| self.gradients.zero_());
    }

    /// Returns the Euclidean norm of the gradient.
    #[must_use]
    pub fn gradient_norm(&self) -> f64 {
        tch::no_grad(|| self.gradients.norm().double_value(&[]))
    }

    /// Limits the gradient whose norm is `norm`.
    pub fn clip(&mut self, clip: Clip, norm: f64) {
        tch::no_grad(|| {
            if clip.norm > 0.0 && norm > clip.norm {
                let _ = self.gradients.g_mul_scalar_(clip.norm / (norm + 1e-12));
            }
            if clip.value > 0.0 {
                let _ = self.gradients.clamp_(-clip.value, clip.value);
            }
        });
    }

    /// Returns the Euclidean norm of each weight's part of a flat tensor, in f64.
    pub fn norms(&self, flat: &Tensor) -> Tensor {
        tch::no_grad(|| {
            let squares = flat.to_kind(Kind::Double).square();
            let none = None::<&Tensor>;
            Tensor::segment_reduce(
                &squares,
                "sum",
                Some(&self.lengths),
                none,
                none,
                0,
                true,
                0.0,
            )
            .sqrt()
        })
    }

    /// Expands a value per weight to all of its elements.
    pub fn expanded(&self, per_weight: &Tensor) -> Tensor {
        tch::no_grad(|| {
            per_weight
                .to_kind(self.values.kind())
                .repeat_interleave_self_tensor(&self.lengths, 0, self.values.size()[0])
        })
    }

    /// Returns the norm of each weight's gradient with its name.
    #[must_use]
    pub fn gradient_norms(&self) -> Vec<(&str, f64)> {
        let norms = Vec::<f64>::try_from(self.norms(&self.gradients).to_device(Device::Cpu))
            .unwrap_or_default();
        self.names().zip(norms).collect()
    }

    /// Multiplies matrices by `1 − rate · decay`, so that they shrink without passing through the
    /// optimiser's moments (Loshchilov & Hutter, "Decoupled weight decay regularization", ICLR
    /// 2019).
    pub fn decay(&mut self, rate: f64, decay: f64) {
        if decay > 0.0 {
            tch::no_grad(|| {
                let factor = 1.0 - &self.decayed * self.rates() * (rate * decay);
                let _ = self.values.g_mul_(&factor);
            });
        }
    }

    /// Returns the flat tensor `decay · weight` for matrices and 0 for others: the gradient of an
    /// L2 penalty.
    pub fn penalty_gradient(&self, decay: f64) -> Tensor {
        tch::no_grad(|| &self.values * &self.decayed * decay)
    }

    /// Subtracts `rate · update` from the weights.
    pub fn subtract(&mut self, update: &Tensor, rate: f64) {
        tch::no_grad(|| {
            let step = update * self.rates() * rate;
            let _ = self.values.g_sub_(&step);
            if let Some(mask) = &self.mask {
                let _ = self.values.g_mul_(mask);
            }
        });
    }

    /// Returns the relative learning rates; 0 for weights that no loss depends on.
    fn rates(&self) -> Tensor {
        if self.bound.iter().all(|bound| *bound) {
            return self.rates.shallow_clone();
        }
        let rates = self.rates.copy();
        for (slot, _) in self
            .slots
            .iter()
            .zip(&self.bound)
            .filter(|(_, bound)| !**bound)
        {
            let _ = slot.view(&rates).zero_();
        }
        rates
    }

    /// Returns the parts of a flat tensor by weight, as copies.
    pub fn split(&self, flat: &Tensor) -> Vec<(String, Tensor)> {
        self.slots
            .iter()
            .map(|slot| (slot.name.clone(), slot.view(flat).detach().copy()))
            .collect()
    }

    /// Returns name, values and gradient of each weight.
    pub fn parts(&self) -> impl Iterator<Item = (&str, Tensor, Tensor)> {
        self.slots.iter().map(|slot| {
            (
                slot.name.as_str(),
                slot.view(&self.values),
                slot.view(&self.gradients),
            )
        })
    }

    /// Copies values by weight into a flat tensor.
    ///
    /// # Errors
    /// Returns an error if a weight is missing or has another shape.
    pub fn fill(
        &self,
        flat: &Tensor,
        find: impl Fn(&str) -> anyhow::Result<Tensor>,
    ) -> anyhow::Result<()> {
        for slot in &self.slots {
            let values = find(&slot.name)?;
            anyhow::ensure!(
                values.size() == slot.shape,
                "{:?} has another shape",
                slot.name
            );
            tch::no_grad(|| slot.view(flat).copy_(&values));
        }
        Ok(())
    }

    /// Returns a flat tensor of zeros.
    pub fn zeros(&self) -> Tensor {
        tch::no_grad(|| self.values.zeros_like())
    }
}

impl Slot {
    /// Returns this weight's part of a flat tensor, in its shape.
    fn view(&self, flat: &Tensor) -> Tensor {
        flat.narrow(0, self.start, self.length)
            .view(self.shape.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights() -> TorchWeights {
        let matrix = Tensor::from_slice(&[1.0_f64, -2.0, 3.0, 0.0, 5.0, -6.0]).view([2, 3]);
        let bias = Tensor::from_slice(&[0.5_f64, 0.0]);
        let unused = Tensor::from_slice(&[[9.0_f64]; 1].concat()).view([1, 1]);
        TorchWeights(
            [
                ("a".into(), matrix),
                ("b".into(), bias),
                ("c".into(), unused),
            ]
            .into(),
        )
    }

    #[test]
    fn gradients_gather_in_one_buffer_and_add_up() {
        let mut weights = weights();
        let names = ["a", "b", "c"].map(String::from);
        let mut parameters = Parameters::new(&mut weights, &names).expect("there are such weights");
        assert_eq!(parameters.count(), 9);
        for passes in 1..=3 {
            (weights.0["a"].square().sum(Kind::Double) + weights.0["b"].sum(Kind::Double))
                .backward();
            parameters.collect_gradients();
            let norms = parameters.gradient_norms();
            let expected = f64::from(passes) * 2.0 * 75.0_f64.sqrt();
            assert!(
                (norms[0].1 - expected).abs() < 1e-9 && norms[2].1 == 0.0,
                "{norms:?}"
            );
            assert!(
                (norms[1].1 - f64::from(passes) * 2.0_f64.sqrt()).abs() < 1e-9,
                "{norms:?}"
            );
        }
        let norm = parameters.gradient_norm();
        parameters.clip(
            Clip {
                norm: 1.0,
                value: 0.0,
            },
            norm,
        );
        assert!((parameters.gradient_norm() - 1.0).abs() < 1e-9);
        parameters.clip(
            Clip {
                norm: 0.0,
                value: 0.1,
            },
            1.0,
        );
        assert!(parameters.gradients().abs().max().double_value(&[]) <= 0.1);
        parameters.clear_gradients();
        assert_eq!(parameters.gradient_norm(), 0.0);

        // What no loss depends on neither moves nor decays; zeros are kept.
        parameters.keep_zeros();
        parameters.decay(1.0, 0.5);
        let update = parameters.zeros() + 1.0;
        parameters.subtract(&update, 0.25);
        let values =
            |name: &str| Vec::<f64>::try_from(weights.0[name].detach().view(-1)).expect("numbers");
        assert_eq!(values("a"), [0.25, -1.25, 1.25, 0.0, 2.25, -3.25]);
        assert_eq!(values("b"), [0.25, -0.25], "biases may leave zero");
        assert_eq!(values("c"), [9.0]);
        assert!(Parameters::new(&mut weights, &["d".into()]).is_err());
    }
}
