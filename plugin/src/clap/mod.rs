//! The CLAP entry point, and the VST3 entry point that wraps it.
//!
//! The framework creates a plugin; a host gets a [`plugin_wrapper`] around it. The wrapper adds MIDI learn (its
//! parameter events come from [`midi_learn_events`]), the sleep status, preset loading and a workaround for hosts that
//! deadlock when parameters are rescanned during a state load ([`deferred_rescan`]). [`callbacks`] are the wrapper's
//! own CLAP functions, [`entry`] is the factory.

pub mod callbacks;
pub mod deferred_rescan;
pub mod entry;
pub mod midi_learn_events;
pub mod plugin_wrapper;

#[cfg(test)]
mod tests;

clap_wrapper::export_vst3!();
