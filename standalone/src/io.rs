//! Exchange of the mixer with devices and recorder. Independent of both: rendering needs no device.
//!
//! [`audio`]: the callback that plays a block, and the choice of devices. MIDI: a [`midi_message`], the choice of ports
//! ([`midi_choice`]), the queues from ports to the audio thread ([`midi_queues`]), the frames at
//! which messages are played ([`block_clock`]), and the tempo of an external [`midi_clock`].
//! [`tap`]: sound on its way to the recorder.

// Without devices and recorder their ends of the queues are unused.
#![cfg_attr(not(feature = "devices"), allow(dead_code))]

pub mod audio;
pub(crate) mod block_clock;
pub mod midi_choice;
pub mod midi_clock;
pub mod midi_message;
pub mod midi_queues;
pub mod tap;

pub use audio::{AudioChoice, Callback};
pub use midi_choice::{MidiChoice, MidiPorts};
pub use midi_clock::ClockFollower;
pub use midi_message::MidiMessage;
pub use midi_queues::MidiReceiver;
pub use tap::Tap;
