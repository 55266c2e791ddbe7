//! AdamW with warm-up, cosine decay and gradient clipping.
//!
//! libtorch's optimiser does not expose its state, which checkpoints must hold.

use std::collections::BTreeMap;

use ondes_torch::TorchWeights;
use tch::{Kind, Tensor};

use crate::config::TrainingConfig;

/// Decay rates of the moments, and the term in the denominator (Loshchilov & Hutter, ICLR 2019).
const BETAS: (f64, f64) = (0.9, 0.99);
const EPSILON: f64 = 1e-8;
/// Learning rate of impulse responses, relative to that of other weights. AdamW moves every tap by about the learning
/// rate in each step, whatever its gradient; over ten thousand taps that is audible noise.
const IMPULSE_SHARE: f64 = 0.05;
/// Final learning rate, relative to the highest.
const LAST_SHARE: f64 = 0.01;

/// AdamW optimiser.
pub struct AdamW {
    /// First and second moment by weight name.
    pub moments: BTreeMap<String, (Tensor, Tensor)>,
    config: TrainingConfig,
    /// Ones and zeros by weight name; weights at zeros stay zero.
    masks: BTreeMap<String, Tensor>,
}

impl AdamW {
    /// Creates an optimiser with moments of zero.
    #[must_use]
    pub fn new(weights: &TorchWeights, config: &TrainingConfig) -> Self {
        let zeros = |weight: &Tensor| tch::no_grad(|| (weight.zeros_like(), weight.zeros_like()));
        let moments = weights.0.iter().map(|(name, weight)| (name.clone(), zeros(weight))).collect();
        Self { moments, config: config.clone(), masks: BTreeMap::new() }
    }

    /// Changes the configuration and keeps the moments.
    pub fn set_config(&mut self, config: &TrainingConfig) {
        self.config = config.clone();
    }

    /// Keeps weights of matrices that are zero now at zero.
    pub fn keep_zeros(&mut self, weights: &TorchWeights) {
        let mask = |weight: &Tensor| tch::no_grad(|| weight.not_equal(0.0).to_kind(Kind::Float));
        let matrices = weights.0.iter().filter(|(_, weight)| weight.dim() > 1);
        self.masks = matrices.map(|(name, weight)| (name.clone(), mask(weight))).collect();
    }

    /// Returns the learning rate of a step, counted from 0.
    #[must_use]
    pub fn learning_rate(&self, step: u64) -> f64 {
        let TrainingConfig { steps, warmup_steps, learning_rate, .. } = self.config;
        if step < warmup_steps {
            return learning_rate * (step + 1) as f64 / warmup_steps as f64;
        }
        let progress = (step - warmup_steps) as f64 / (steps.saturating_sub(warmup_steps)).max(1) as f64;
        let cosine = 0.5 + 0.5 * (std::f64::consts::PI * progress.min(1.0)).cos();
        learning_rate * (LAST_SHARE + (1.0 - LAST_SHARE) * cosine)
    }

    /// Clips the gradients, updates the weights and clears the gradients; returns the gradient norm before clipping. A
    /// non-finite gradient changes nothing.
    pub fn step(&mut self, weights: &mut TorchWeights, step: u64) -> f64 {
        tch::no_grad(|| {
            let gradients = weights.0.values().map(Tensor::grad).filter(Tensor::defined);
            let squares = gradients.map(|gradient| gradient.square().sum(Kind::Float));
            let norm = squares.reduce(|sum, square| sum + square).map_or(0.0, |sum| sum.sqrt().double_value(&[]));
            if norm.is_finite() {
                let clip = (self.config.gradient_norm / (norm + 1e-12)).min(1.0);
                self.move_weights(weights, step, clip);
            }
            weights.0.values_mut().filter(|weight| weight.grad().defined()).for_each(Tensor::zero_grad);
            norm
        })
    }

    fn move_weights(&mut self, weights: &mut TorchWeights, step: u64, clip: f64) {
        let full_rate = self.learning_rate(step);
        let power = i32::try_from(step + 1).unwrap_or(i32::MAX);
        let correction = (1.0 - BETAS.0.powi(power), 1.0 - BETAS.1.powi(power));
        for (name, weight) in &mut weights.0 {
            // Not trained, or not used in this step.
            if !weight.grad().defined() {
                continue;
            }
            let (first, second) = self.moments.get_mut(name).expect("each weight has its moments");
            let rate = if name.ends_with(".impulse") { IMPULSE_SHARE * full_rate } else { full_rate };
            let gradient = weight.grad() * clip;
            let _ = first.g_mul_scalar_(BETAS.0).g_add_(&(&gradient * (1.0 - BETAS.0)));
            let _ = second.g_mul_scalar_(BETAS.1).g_add_(&(gradient.square() * (1.0 - BETAS.1)));
            if weight.dim() > 1 {
                let _ = weight.g_mul_scalar_(1.0 - rate * self.config.weight_decay);
            }
            let denominator = (&*second / correction.1).sqrt() + EPSILON;
            let _ = weight.g_sub_(&(&*first * (rate / correction.0) / denominator));
            if let Some(mask) = self.masks.get(name) {
                let _ = weight.g_mul_(mask);
            }
        }
    }
}
