//! Post-training quantisation: a trained model in eight or sixteen bits, as far as that is not heard.
//!
//! In reading order: [`yardstick`] measures what is lost, on sound; [`search`] finds out how each layer can be stored within a
//! bound of that, or [`aware`] has the model trained so that less is lost; [`report`] tells it layer by layer.

pub mod aware;
pub mod report;
pub mod search;
pub mod yardstick;
