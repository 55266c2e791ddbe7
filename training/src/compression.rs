//! Smaller models: [`quantize`], [`prune`] and [`distill`].
//!
//! [`fine_tune`] trains the compressed model on, with [`fake_quantization`] for quantized weights;
//! [`variants`] combines several sizes in one file.

pub mod distill;
pub mod fake_quantization;
pub mod fine_tune;
pub mod prune;
pub mod quantize;
pub mod variants;
