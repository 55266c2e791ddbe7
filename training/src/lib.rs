//! From recordings to an instrument: [`corpus`] makes recordings of physical models, [`dataset`] hears a folder of audio,
//! [`network`] is what learns, [`trainer`] teaches it by [`loss`] and [`optimiser`], [`checkpoint`] survives a kill, and
//! [`evaluate`] measures what was learnt on sound that training never heard.

#![deny(unsafe_code)]

pub mod checkpoint;
pub mod config;
pub mod corpus;
pub mod dataset;
pub mod evaluate;
pub mod loss;
pub mod network;
pub mod optimiser;
pub mod trainer;
