//! The CLAP entry point, and the VST3 entry point around it.
//!
//! The framework creates a plugin; a host gets a `plugin_wrapper` around it. The wrapper adds
//! MIDI learn, parameters in their units (`params_extension`), `note_extensions`, `host_notices` of
//! changes, the sleep status, preset loading and a workaround for hosts that deadlock when
//! parameters are rescanned during a state load (`deferred_rescan`), and a timer for hosts that do
//! not call back (`main_thread_timer`). `callbacks` are the wrapper's own CLAP functions,
//! [`entry`] is the factory, and `vst3` exports the VST3 that wraps all of it. The framework knows no
//! parameters: `parameter_changes` take them from the host's events, and `waiting_changes` by the
//! window are told to hosts that do not ask for them.
//!
//! Arguments of a host are checked here, once for both formats: the `c_interface` is the border to
//! C, with `host` and [`framework`] on its two sides. `audio_port_extensions` announce any mixture
//! of mono and stereo, `block_buffers` take whatever channels come in a `host_block`,
//! and `block_events` put the events in order.

mod audio_port_extensions;
mod block_buffers;
mod block_events;
pub(crate) mod c_interface;
pub(crate) mod c_text;
mod callbacks;
mod deferred_rescan;
pub mod entry;
mod event;
pub mod framework;
mod host;
mod host_block;
mod host_notices;
mod main_thread_timer;
mod note_extensions;
mod parameter_changes;
mod parameter_list;
mod params_extension;
pub(crate) mod plugin_wrapper;
mod port_layout;
mod vst3;
mod waiting_changes;

#[cfg(test)]
mod tests;
