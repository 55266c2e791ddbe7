//! Control frames from MIDI and note expression.
//!
//! The network of an instrument is driven by frames of pitch and loudness, while a player provides
//! notes, wheels and pedals. This module converts between them. Suggested reading order:
//!
//! - [`event`](Event): performance events in samples at the model's rate;
//! - `zone`: MPE zones, which assign channels to a manager;
//! - [`midi`](MidiDecoder): decodes raw MIDI messages;
//! - [`scale`](KeyTuning): tunings of the keys, from files of Scala;
//! - [`midi_file`](MidiFile): reads Standard MIDI Files;
//! - [`performance`](Performance): performance settings of an instrument, such as attack, vibrato
//!   and loudness range; part of a model file;
//! - `curve`: curve shapes;
//! - `portamento`, `held_keys`: glides between notes, and the held keys of a channel;
//! - `channel`: smoothed wheels, pedals and faders of a MIDI channel;
//! - `channels`: all 16 channels, with zone managers applied to their members;
//! - [`voice`](Voice): a note as continuous curves of time;
//! - [`voices`](Voices): polyphony;
//! - [`performance_state`](PerformanceState): held notes and controller positions, for an
//!   instrument that takes over while playing;
//! - [`note_counts`](NoteCounts): counts of held notes.
//!
//! Curves are functions of continuous time, evaluated at the times of frames. An onset between two
//! frames is therefore exact in the next one, and nothing depends on the host's block length.

mod channel;
mod channels;
mod curve;
mod event;
mod held_keys;
mod midi;
mod midi_file;
mod note_counts;
mod performance;
mod performance_state;
mod portamento;
mod scale;
mod voice;
mod voices;
mod zone;

pub use channel::ChannelValues;
pub use event::{Event, EventKind, NoteChange, NoteExpression, controller};
pub use midi::{
    DEFAULT_BEND_RANGE_SEMITONES, MEMBER_BEND_RANGE_SEMITONES, MidiDecoder, MidiSettings, MpeZone,
};
pub use midi_file::{
    MidiError, MidiFile, MidiFileError, MidiSelection, MidiTrack, TempoChange, TimedEvent,
};
pub use note_counts::NoteCounts;
pub use performance::{NATURAL_VELOCITY, Performance, PerformanceError, PlayMode, Setting};
pub use performance_state::PerformanceState;
pub use scale::{KeyTuning, ScaleError, ScaleFileError};
pub use voice::{ControlFrame, NoteStart, SILENCE_DB, Stroke, TIMBRE_RANGE_DB, Voice};
pub use voices::{QueueFull, VoiceFrame, Voices};
