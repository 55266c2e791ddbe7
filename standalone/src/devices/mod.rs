//! Devices: sound cards, sound servers and MIDI ports, held for as long as they are there.
//!
//! Sound, in reading order:
//!
//! - [`audio`]: what is asked for, what is got, and [`Audio`], the handle on it;
//! - [`catalogue`]: the hosts and devices that there are;
//! - `supervisor`: the thread that opens, watches and reopens;
//! - `stage`: what happens on the audio thread;
//! - `system` (the sound systems that cpal knows, with `samples` and `bridge`) and `jack`: where the sound goes.
//!
//! MIDI:
//!
//! - [`midi`]: ports that come and go, merged into one stream that an audio callback reads;
//! - `sequencer` (the ports of the system) and `jack_midi`: where messages come from;
//! - `timing`: when a message came, as a frame of a block;
//! - [`clock`]: the tempo and position that another machine's MIDI clock tells.
//!
//! [`command`] prints all that there is: `ondes devices`.

pub mod audio;
mod bridge;
pub mod catalogue;
pub mod clock;
pub mod command;
#[cfg(target_os = "linux")]
mod jack;
#[cfg(target_os = "linux")]
mod jack_midi;
pub mod midi;
mod quiet;
mod samples;
mod sequencer;
mod stage;
mod supervisor;
mod system;
mod timing;

pub use audio::{Audio, AudioChoice, Callback, Drift, Opened, Status};
pub use clock::ClockFollower;
pub use midi::{Midi, MidiChoice, MidiMessage, MidiPorts, MidiReceiver, MidiStatus};
