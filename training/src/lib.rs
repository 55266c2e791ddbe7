//! Training of Ondes models.
//!
//! - [`trainer`]: one loop for everything that learns, with [`optimizer`]s, [`schedule`]s and
//!   [`loss`] terms; [`report`] draws its logs. Its tasks:
//! - Instruments: [`ondes_physical_models`] generates recordings, [`data`] analyses folders of audio,
//!   [`network`] builds the graph, [`instrument`] trains it, and [`evaluate`] measures quality on
//!   held-out recordings.
//! - Codecs: [`codec`], and generators, whose latents a [`prior`] makes.
//! - Captures of amplifiers and pedals: [`capture`], with simulated
//!   [circuits](ondes_physical_models::circuits) to try it on.
//! - Compression: [`quantize`], [`prune`] and [`distill`], with further training by [`fine_tune`],
//!   [`fake_quantization`], [`feature_matching`] and [`instrument_teacher`]; [`compare`] measures
//!   models side by side, and [`variants`] puts several sizes into one file.
//! - [`distributed`]: training by several processes.
//! - [`sweep`]: settings to try, and which of them fall behind; [`recipe_kind`] tells what a recipe
//!   trains.
//! - [`mod@bench`]: steps of synthetic networks, timed.

#![deny(unsafe_code)]

mod axis;
pub mod bench;
pub mod capture;
pub mod codec;
pub mod compare;
pub mod config;
pub mod data;
pub mod distill;
pub mod distributed;
pub mod evaluate;
pub mod fake_quantization;
pub mod feature_matching;
pub mod fine_tune;
pub mod instrument;
pub mod instrument_teacher;
pub mod loss;
pub mod network;
pub mod optimizer;
pub mod prior;
pub mod prune;
pub mod quantize;
mod random_signs;
pub mod recipe_kind;
pub mod report;
pub mod schedule;
pub mod sweep;
pub mod trainer;
pub mod training_config;
pub mod variants;
