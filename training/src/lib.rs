//! From recordings to an instrument: [`ondes_corpus`] makes recordings of physical models, [`dataset`] hears a folder of audio,
//! [`network`] is what learns, [`trainer`] teaches it by [`loss`] and [`optimiser`], [`checkpoint`] survives a kill, and
//! [`evaluate`] measures what was learnt on sound that training never heard. From an amplifier or a pedal to an effect:
//! [`capture`], with [circuits](ondes_corpus::circuits) of our own to try it on. From a model to a smaller
//! one: [`quantise`], [`prune`] and [`distill`], which [`tune`] what they make; [`compare`] holds models side by side, and
//! [`variants`] puts several sizes into one file.

#![deny(unsafe_code)]

pub mod capture;
pub mod checkpoint;
pub mod compare;
pub mod config;
pub mod dataset;
pub mod distill;
pub mod evaluate;
pub mod loss;
pub mod network;
pub mod optimiser;
pub mod prune;
pub mod quantise;
pub mod trainer;
pub mod tune;
pub mod variants;
