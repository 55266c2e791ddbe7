//! Ondes in a DAW: two plugins in one shared object, as CLAP and, through a wrapper, as VST3.
//!
//! [`ondes_player`] plays and [`ondes_ui`] shows; this crate connects them to the plugin
//! framework and to hosts.
//!
//! In reading order: [`instrument`] and [`effect`] are the framework's plugins, each around a
//! [`plugin_core`]. [`parameters`] are what hosts automate, and [`note_events`] translates notes to
//! the engine's events. [`editor`] is the window, [`preset`] serves the host's preset browser, and
//! [`clap`] is the entry point.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "implements the CLAP ABI")]
pub mod clap;
pub mod editor;
pub mod effect;
pub mod instrument;
pub mod note_events;
#[allow(unsafe_code, reason = "`Params` is an unsafe trait")]
pub mod parameters;
pub mod plugin_core;
pub mod preset;

/// Vendor name in plugin descriptors.
const VENDOR: &str = "Ondes";
