//! TorchScript models that tests play.

pub mod models;

pub use ondes_engine::model::export::torchscript::{Class, Value};
