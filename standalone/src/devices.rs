//! Audio devices and MIDI ports, reopened when they come back.
//!
//! Audio, in reading order:
//!
//! - [`status`]: what was opened, and the state of the devices;
//! - [`audio`]: [`Audio`], the handle;
//! - [`catalogue`] and [`device_info`]: available sound systems and devices;
//! - `supervisor`: the thread that opens, watches and reopens devices;
//! - `callback_slot`: the audio thread;
//! - `alsa_library`: ALSA, opened at run time;
//! - `system` (the sound systems of cpal, with `sample_format` and `bridge`) and `jack` (with
//!   `jack_client`): the [`opened_stream`]s.
//!
//! MIDI:
//!
//! - [`midi`]: ports that are connected when they appear;
//! - `system_midi` (the system's ports, with `timestamps`) and `jack_midi`: the sources of
//!   messages;
//! - `midi_link`: which client of JACK receives MIDI.
//!
//! [`command`] is `ondes devices`.

#[cfg(target_os = "linux")]
mod alsa_library;
pub mod audio;
mod bridge;
mod callback_slot;
pub mod catalogue;
pub mod command;
pub mod device_info;
#[cfg(target_os = "linux")]
mod jack;
#[cfg(target_os = "linux")]
mod jack_client;
#[cfg(target_os = "linux")]
mod jack_midi;
#[cfg(target_os = "linux")]
mod jack_midi_input;
pub mod midi;
mod midi_link;
mod opened_stream;
mod sample_format;
pub mod status;
mod supervisor;
mod system;
mod system_midi;
mod timestamps;

pub use audio::Audio;
pub use midi::{MidiInputs, MidiStatus};
pub use status::{AudioStatus, CallbackFactory, Drift, Opened};

/// Prepares a thread to use the system's sound and MIDI.
fn prepare_thread() {
    #[cfg(target_os = "linux")]
    alsa_library::prepare();
}
