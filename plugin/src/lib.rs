//! Ondes in a DAW: two plugins in one shared object, as CLAP and, through a wrapper, as VST3.
//!
//! In reading order: [`instrument`] and [`effect`] are what a host sees; both are a [`rig`] around one [`player`], which holds
//! the engine's session. [`parameters`] is what can be automated, [`macros`] how eight of them turn whatever a model has, and
//! [`notes`] how a host's events become the engine's. [`shared`] is what a window, a state and the player have in common:
//! [`editor`] is that window, [`controllers`] what MIDI turns, [`state`] is what is saved with a project, [`preset`] what is kept
//! of a sound, and [`library`] finds models again. [`clap`] is the door through which hosts come in.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "CLAP is made of pointers; each block says why it may follow them")]
pub mod clap;
pub mod controllers;
pub mod editor;
pub mod effect;
#[allow(unsafe_code, reason = "deriving `Params` implements an unsafe trait; all fields live as long as their struct")]
pub mod instrument;
pub mod library;
pub mod macros;
pub mod notes;
#[allow(unsafe_code, reason = "deriving `Params` implements an unsafe trait; all fields live as long as their struct")]
pub mod parameters;
pub mod player;
pub mod preset;
pub mod rig;
pub mod shared;
pub mod state;

/// Who makes this.
const VENDOR: &str = "Ondes";
