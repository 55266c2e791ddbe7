//! MIDI and note expression become control frames.
//!
//! An instrument's network is driven by frames of pitch and loudness; what a player gives are notes, wheels and pedals.
//! This folder turns the one into the other. Read it in this order:
//!
//! - [`event`](Event): what a player does, in samples at the model's rate;
//! - `zone`: which MIDI channel speaks for which others (MPE);
//! - [`midi`](MidiDecoder): raw MIDI messages become events;
//! - [`midi_file`](MidiFile): a Standard MIDI File becomes events in seconds;
//! - [`performance`](Performance): how an instrument is played: its attack, vibrato, range of loudness; part of a model
//!   file;
//! - `curve`: the shapes that the rest is made of;
//! - `channel`: wheels, pedals and faders of one MIDI channel, smoothed;
//! - `channels`: all 16, with what a zone's manager adds to its members;
//! - [`voice`](Voice): one note as continuous curves of time;
//! - [`voices`](Voices): polyphony;
//! - [`performance_state`](PerformanceState): what is held and set now, for an instrument that takes over in the middle of playing.
//!
//! Curves are functions of continuous time, evaluated at frame instants: an onset between two frames shows in the value at
//! the next one, and nothing depends on how a host cuts time into blocks.

mod channel;
mod channels;
mod curve;
mod event;
mod performance_state;
mod midi;
mod midi_file;
mod performance;
mod voice;
mod voices;
mod zone;

pub use channel::ChannelValues;
pub use event::{Event, EventKind, NoteExpression, controller};
pub use performance_state::PerformanceState;
pub use midi::{DEFAULT_BEND_RANGE_SEMITONES, MEMBER_BEND_RANGE_SEMITONES, MidiDecoder};
pub use midi_file::{MidiError, MidiFile, MidiFileError, MidiSelection, MidiTrack, TimedEvent};
pub use performance::{Performance, PerformanceError, PlayMode, Setting};
pub use voice::{ControlFrame, NoteStart, SILENCE_DB, TIMBRE_RANGE_DB, Voice};
pub use voices::{QueueFull, VoiceFrame, Voices};
