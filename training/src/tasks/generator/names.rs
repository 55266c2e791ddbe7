//! Names of the ports, controls and nodes of a prior. They are part of model files.

/// Name of the method.
pub const PRIOR: &str = "prior";
/// Node that samples the mixture; its output is fed back.
pub const DRAWN: &str = "prior.drawn";
/// Control and port of the sampling temperature.
pub const TEMPERATURE: &str = "temperature";
/// Control and port of the strength of the conditioning, 0 to 1.
pub const CONDITIONING: &str = "steer";
/// Port for latents of the input, from the encoder.
pub(super) const INPUT_LATENTS: &str = "heard";
/// Control and port that cross-fades from the latents sampled before to those of the input.
pub(super) const INPUT_SHARE: &str = "listen";
/// Control and port of the strength of the memory of bars, 0 to 1.
pub(super) const MEMORY_SHARE: &str = "recall";
/// Node of the input's latents, standardised and grouped; its weights are not learnt.
pub(super) const STANDARDIZED_INPUT: &str = "prior.heard";
/// Node of the previous frame: sampled, or of the input.
pub(super) const PREVIOUS_FRAME: &str = "prior.before";
/// Node of everything that the layers read: previous frame, memory of bars and conditions.
pub(super) const LAYER_INPUT: &str = "prior.read";
/// Node that reverses the standardisation of the latents; its weights are not learnt.
pub(super) const OUTPUT_LATENTS: &str = "prior.latents";
/// Node of the loudness that the layers read: that of the knob in training, an affine function of
/// it once the knob is calibrated.
pub const CALIBRATED_LOUDNESS: &str = "prior.loudness.asked";
/// Nodes of the positional encoding of the bars; their weights are not learnt.
pub(super) const BAR_ANGLES: &str = "prior.bars.angles";
pub(super) const BAR_SNAKE: &str = "prior.bars.snake";
/// Nodes of the mixture of Gaussians: logits, means and standard deviations.
pub(super) const MIXTURE: [&str; 3] = ["prior.logits", "prior.means", "prior.scales"];
/// Layer that computes the mixture.
pub(super) const HEADS: &str = "prior.heads";
