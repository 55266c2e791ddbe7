//! The CLAP entry point, and the VST3 entry point around it.
//!
//! The framework creates a plugin; a host gets a [`plugin_wrapper`] around it. The wrapper adds
//! MIDI learn (its parameter events come from [`midi_learn_events`]), parameters in their units
//! ([`params_extension`]), [`note_extensions`], [`host_notices`] of changes, the sleep status,
//! preset loading and a workaround for hosts that deadlock when parameters are rescanned during a
//! state load ([`deferred_rescan`]), and a timer for hosts that do not call back
//! ([`main_thread_timer`]). [`callbacks`] are the wrapper's own CLAP functions,
//! [`inactive_changes`] keeps the window working without audio, [`entry`] is the factory, and
//! [`vst3`] exports the VST3 that wraps all of it.
//!
//! What a host passes to `process` is checked here, once for both formats: [`audio_ports`]
//! announces any mixture of mono and stereo, [`block_buffers`] takes whatever channels come, and
//! [`block_events`] puts the events in order.

pub mod audio_ports;
pub mod block_buffers;
pub mod block_events;
pub mod callbacks;
pub mod converted_events;
pub mod deferred_rescan;
pub mod entry;
pub mod host_notices;
pub mod inactive_changes;
pub mod main_thread_timer;
pub mod midi_learn_events;
pub mod note_extensions;
pub mod parameter_list;
pub mod params_extension;
pub mod plugin_wrapper;
pub mod vst3;

#[cfg(test)]
mod tests;
