//! The plugins as a host finds them: the CLAP entry, and through it the VST3 one.
//!
//! The framework makes a plugin; what a host gets is a [`shell`] around it, which adds what the framework does not know:
//! parameters turned by MIDI controllers, with [`turns`] as the events that this makes, and when the instance may sleep.
//! [`reticence`] is for hosts that must not be told everything at once.
//! [`entry`] is what a host asks first. Only here foreign pointers are followed.

pub mod entry;
pub mod reticence;
pub mod shell;
pub mod turns;

#[cfg(test)]
mod tests;

clap_wrapper::export_vst3!();
