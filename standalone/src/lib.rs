//! Ondes as a program: what its commands do, and what they share.
//!
//! Read it in this order: [`render`] (MIDI files, recordings or sessions become WAVs, one or many), [`info`] (a model's card),
//! [`mod@bench`] (what it takes), [`import`] (captures of other programs become models), [`devices`] (sound cards and MIDI ports, as
//! they come and go), [`record`] (what is played becomes a file), [`rack`] (tracks and their mixer), [`loader`] (what changes
//! them without anybody waiting), [`rig`] (all of these at work), [`play`] (that without a window), [`window`] (that with one),
//! [`shell`] (completions and man pages), [`setup_torch`] (libtorch, for who wants it), then what they use: [`opening`],
//! [`running`], [`terminal`], [`progress`], [`interrupt`] and [`memory`].

#![deny(unsafe_code)]
// Whoever reads this works on it, with `cargo doc --document-private-items`.
#![allow(rustdoc::private_intra_doc_links)]

pub mod bench;
pub mod devices;
pub mod import;
pub mod info;
pub mod interrupt;
pub mod loader;
mod memory;
mod opening;
pub mod play;
mod progress;
pub mod rack;
pub mod record;
pub mod render;
pub mod rig;
mod running;
pub mod setup_torch;
pub mod shell;
pub mod terminal;
pub mod window;
