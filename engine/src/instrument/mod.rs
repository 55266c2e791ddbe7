//! Control frames from MIDI and note expression.
//!
//! The network of an instrument is driven by frames of pitch and loudness, while a player provides notes, wheels and
//! pedals. This module converts between them. Suggested reading order:
//!
//! - [`event`](Event): performance events in samples at the model's rate;
//! - `zone`: MPE zones, which assign channels to a manager;
//! - [`midi`](MidiDecoder): decodes raw MIDI messages;
//! - [`midi_file`](MidiFile): reads Standard MIDI Files;
//! - [`performance`](Performance): performance settings of an instrument, such as attack, vibrato and loudness range;
//!   part of a model file;
//! - `curve`: curve shapes;
//! - `channel`: smoothed wheels, pedals and faders of a MIDI channel;
//! - `channels`: all 16 channels, with zone managers applied to their members;
//! - [`voice`](Voice): a note as continuous curves of time;
//! - [`voices`](Voices): polyphony;
//! - [`performance_state`](PerformanceState): held notes and controller positions, for an instrument that takes over
//!   while playing.
//!
//! Curves are functions of continuous time, evaluated at the times of frames. An onset between two frames is therefore
//! exact in the next one, and nothing depends on the host's block length.

mod channel;
mod channels;
mod curve;
mod event;
mod midi;
mod midi_file;
mod performance;
mod performance_state;
mod voice;
mod voices;
mod zone;

pub use channel::ChannelValues;
pub use event::{Event, EventKind, NoteExpression, controller};
pub use midi::{DEFAULT_BEND_RANGE_SEMITONES, MEMBER_BEND_RANGE_SEMITONES, MidiDecoder};
pub use midi_file::{MidiError, MidiFile, MidiFileError, MidiSelection, MidiTrack, TempoChange, TimedEvent};
pub use performance::{Performance, PerformanceError, PlayMode, Setting};
pub use performance_state::PerformanceState;
pub use voice::{ControlFrame, NoteStart, SILENCE_DB, TIMBRE_RANGE_DB, Voice};
pub use voices::{QueueFull, VoiceFrame, Voices};
