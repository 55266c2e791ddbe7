//! The interface between a driver and a model: sessions, timed commands and requests for samples.

use crate::instrument::EventKind;

/// Tail of a model that plays by itself.
pub const ENDLESS: usize = usize::MAX;

/// A model made playable for several sessions at once, which its executor steps as one batch.
///
/// All sessions have the same sample rate. Each has a slot of its own: its output depends only on
/// the input and the commands since [`Playable::open`], never on the other slots. Nothing after
/// construction allocates, unless [`Playable::may_allocate`] says so.
pub trait Playable: Send {
    /// Returns the number of slots.
    fn capacity(&self) -> usize;

    /// Returns the output channels of a session, 1 or 2.
    fn channels(&self) -> usize {
        1
    }

    /// Returns the input channels of a session, 1 or 2.
    fn input_channels(&self) -> usize {
        self.channels()
    }

    /// Returns the delay from a command or an input sample to its effect at the output, in host
    /// samples.
    fn latency_samples(&self) -> usize;

    /// Returns how long the output continues after all input has ended, in host samples;
    /// [`ENDLESS`] if the model plays by itself.
    fn tail_samples(&self) -> usize;

    /// Returns true if processing may allocate or wait, which an audio callback must not.
    fn may_allocate(&self) -> bool {
        false
    }

    /// Resets a slot: no input so far, all controls at their defaults, and `start.at` as the number
    /// of the next sample.
    fn open(&mut self, slot: usize, start: &SessionStart);

    /// Queues a command for a slot. Commands come in the order of their times; a late one acts as
    /// soon as possible, but a late note sounds as if it had begun at its time.
    ///
    /// # Errors
    /// Returns [`CommandQueueFull`] if too many commands are waiting.
    fn handle(&mut self, slot: usize, command: TimedCommand) -> Result<(), CommandQueueFull>;

    /// Processes all requests as one batch; a slot may have at most one request.
    fn process(&mut self, requests: &mut [ProcessRequest<'_>]);

    /// Returns the pitch and loudness that a slot tracks in its input; `None` for other models, or
    /// before the first frame.
    fn input_analysis(&self, _slot: usize) -> Option<InputAnalysis> {
        None
    }

    /// Returns the latents that a slot decoded last, after scale, offset and hold; empty for models
    /// without latents.
    fn latents(&self, _slot: usize) -> &[f32] {
        &[]
    }

    /// Returns the name of the executor, such as `native avx2`.
    fn executor(&self) -> String {
        String::new()
    }

    /// Returns the bytes of the executors' weights, states and buffers.
    fn bytes(&self) -> usize {
        0
    }

    /// Returns the position and the counters of a slot.
    fn stats(&self, _slot: usize) -> SlotStats {
        SlotStats::default()
    }
}

/// Position and counters of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotStats {
    /// Number of the next sample, at the host's rate.
    pub now: u64,
    /// Samples that were due before the model had made them; not 0 only if the stated latency is
    /// wrong.
    pub samples_missing: u64,
    /// Voices that sounded in the last hop.
    pub voices: usize,
    /// Notes that got no voice, not even by stealing.
    pub notes_dropped: u64,
}

/// Start of a session in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionStart {
    /// Number of the first sample, at the host's rate.
    pub at: u64,
    /// Seed of the noise and of variations from note to note.
    pub seed: u64,
    /// Shift of all pitches, in semitones.
    pub transpose: f32,
}

/// Samples that a slot has to make.
pub struct ProcessRequest<'a> {
    /// Slot of the session.
    pub slot: usize,
    /// `[channel][frame]`: input of the output's length, or empty for silence. The second channel
    /// is unused unless the session has two [input channels](Playable::input_channels).
    pub input: [&'a [f32]; 2],
    /// `[channel][frame]`: output, to be filled. The second one is left as it is unless the session
    /// has two [channels](Playable::channels).
    pub output: [&'a mut [f32]; 2],
    /// Skips the network: time and commands advance and the output is silent. Used for catching up.
    pub mute: bool,
}

impl<'a> ProcessRequest<'a> {
    /// Creates a request for one channel; input and output are equally long, or the input is empty
    /// for silence.
    #[must_use]
    pub fn mono(slot: usize, input: &'a [f32], output: &'a mut [f32]) -> Self {
        Self {
            slot,
            input: [input, &[]],
            output: [output, &mut []],
            mute: false,
        }
    }

    /// Returns the number of samples per channel.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.output[0].len()
    }
}

/// Pitch and loudness of the input at the last processed instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputAnalysis {
    /// Pitch in semitones (MIDI note number, 69 is 440 Hz) before transposition; `None` for
    /// unvoiced input.
    pub pitch: Option<f32>,
    /// A-weighted level in dB, from −100.
    pub loudness_db: f32,
}

/// An action and the sample at which it happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedCommand {
    /// Time in samples at the host's rate since the session began.
    pub at: u64,
    /// Note, control change or transport change.
    pub action: Action,
}

/// Note, control change or transport change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// A MIDI or note-expression event.
    Play(EventKind),
    /// A control change; ignored by models without that control.
    Control {
        /// Control to change.
        id: ControlId,
        /// New value in the control's unit, clamped to its range.
        value: f32,
    },
    /// Tempo and position of the host's song from this sample on.
    Transport(Transport),
}

/// Tempo and position of the host's song. Models with input ports named `tempo` (beats per minute),
/// `position` (beats) and `bars` (position in four bars of four beats, 0 to 4) receive them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// Beats per minute.
    pub tempo: f32,
    /// Beats since the start of the song; may be negative, and may jump.
    pub position: f64,
    /// True while the position advances.
    pub playing: bool,
}

/// Hash of a control's name: fits into a queue, and the audio thread can compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ControlId(u64);

impl ControlId {
    /// Hashes a name (64-bit FNV-1a).
    ///
    /// ```
    /// use ondes_engine::pipeline::{ControlId, TRANSPOSE};
    ///
    /// assert_eq!(ControlId::new("transpose"), TRANSPOSE);
    /// ```
    #[must_use]
    pub const fn new(name: &str) -> Self {
        let (bytes, mut hash, mut index) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
        while index < bytes.len() {
            hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0100_0000_01b3);
            index += 1;
        }
        Self(hash)
    }
}

/// Error for a command that found no room; process some samples first.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("the command queue is full; process some samples first")]
pub struct CommandQueueFull(pub TimedCommand);
