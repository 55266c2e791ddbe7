//! The program `ondes`: its commands, and the app with its window.
//!
//! In reading order: [`render`] (MIDI files, recordings or sessions to WAV files), [`info`] (a
//! model's card and cost), [`mod@bench`] (the load of a model in an audio callback), [`import`]
//! (models of other programs to model files), [`export`] (and back), [`rack`] (tracks and their
//! mixer), [`io`] (what the mixer exchanges with devices), [`trust`] (programs that may run),
//! [`shell`] (completions and man pages); then what these share: [`argument_parsers`],
//! [`executor_arguments`], [`program_arguments`], [`help`], [`open_model`], [`standard_input`],
//! [`flac`], [`terminal`], [`error_report`], [`progress`], [`interrupt`] and [`memory`].
//!
//! With the feature `devices`: [`devices`] (sound cards and MIDI ports), [`record`] (the recorder),
//! [`track_loader`] (loading in the background), [`audio_app`] (mixer, devices and recorder
//! together) and [`play`]. With `app`: [`window`]. With `download`: [`setup_torch`]. Without any of
//! them the program renders, and needs neither a display nor a sound card to be built or run.

#![deny(unsafe_code)]
// The documentation is for people who work on this crate: `cargo doc --document-private-items`.
#![allow(rustdoc::private_intra_doc_links)]

mod argument_parsers;
#[cfg(feature = "devices")]
pub mod audio_app;
pub mod bench;
#[cfg(feature = "devices")]
pub mod devices;
pub mod error_report;
mod executor_arguments;
pub mod export;
mod flac;
mod help;
pub mod import;
pub mod info;
pub mod interrupt;
pub mod io;
mod memory;
mod open_model;
#[cfg(feature = "devices")]
pub mod play;
mod program_arguments;
mod progress;
pub mod rack;
#[cfg(feature = "devices")]
pub mod record;
pub mod render;
#[cfg(feature = "download")]
pub mod setup_torch;
pub mod shell;
mod standard_input;
pub mod terminal;
#[cfg(feature = "devices")]
pub mod track_loader;
pub mod trust;
mod tuning_arguments;
#[cfg(feature = "app")]
pub mod window;
