//! Training of Ondes models.
//!
//! - [`tasks`]: what is trained: instruments, captures, codecs and generators.
//! - [`trainer`]: the loop that trains them all, with [`optimizer`]s, [`schedule`]s and [`loss`]
//!   terms; [`distributed`] spreads it over several processes.
//! - [`data`]: analysis of recordings, datasets and their loading. [`ondes_physical_models`]
//!   generates recordings.
//! - [`evaluate`]: quality on held-out recordings.
//! - [`mod@level`]: models of one loudness.
//! - [`compression`]: quantization, pruning and distillation.
//! - [`compare`]: models side by side; [`report`]: charts of training logs.
//! - [`recipe_kind`]: what a recipe trains; [`sweep`]: variations of a recipe.
//! - [`mod@bench`]: timed steps of synthetic networks.

#![deny(unsafe_code)]

pub mod bench;
pub mod byte_size;
mod check;
pub mod compare;
pub mod compression;
pub mod data;
pub mod distributed;
pub mod evaluate;
pub mod level;
pub mod loss;
pub mod optimizer;
pub mod recipe_kind;
pub mod report;
pub mod schedule;
pub mod sweep;
pub mod tasks;
pub mod trainer;
pub mod value_parser;
