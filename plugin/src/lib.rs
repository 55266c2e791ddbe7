//! Ondes in a DAW: two plugins in one shared object, as CLAP and, through a wrapper, as VST3.
//!
//! What is played, and what a window shows of it, is [`ondes_processor`]; here it meets the framework and the hosts.
//!
//! In reading order: [`instrument`] and [`effect`] are what a host sees; both are a [`rig`] around one player.
//! [`parameters`] is what can be automated, [`places`] the same by number, and [`notes`] how a host's events become the
//! engine's. [`editor`] is the window in the host's, [`preset`] what hosts are told of presets. [`clap`] is the door
//! through which hosts come in.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "CLAP is made of pointers; each block says why it may follow them")]
pub mod clap;
pub mod editor;
pub mod effect;
#[allow(unsafe_code, reason = "deriving `Params` implements an unsafe trait; all fields live as long as their struct")]
pub mod instrument;
pub mod notes;
#[allow(unsafe_code, reason = "deriving `Params` implements an unsafe trait; all fields live as long as their struct")]
pub mod parameters;
pub mod places;
pub mod preset;
pub mod rig;

/// Who makes this.
const VENDOR: &str = "Ondes";
