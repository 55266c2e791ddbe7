//! Post-training quantization: stores a trained model in eight or sixteen bits, within a bound on
//! the audible loss.
//!
//! In reading order: [`mod@reference`] renders the original, [`compression_loss`] measures the loss
//! on sound; [`search`] finds the precision of each layer within a bound; [`report`] lists the
//! result by layer. [`crate::compression::fake_quantization`] trains a model for it beforehand.

pub mod compression_loss;
pub mod reference;
pub mod report;
pub mod search;
