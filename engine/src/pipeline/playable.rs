//! What drivers step: one model with a seat for each session that plays it.

use super::cue::{Cue, CueFull};

/// A model made playable for several sessions at once, which its executor steps as one batch.
///
/// All sessions have the same sample rate. Each sits in a seat of its own and hears nothing of the others: what a seat gives
/// depends only on what it was given since [`Playable::open`]. Only making one allocates.
pub trait Playable: Send {
    /// How many sessions there is room for.
    fn seats(&self) -> usize;

    /// Host samples from a cue or a sound at the input to what it makes at the output.
    fn latency_samples(&self) -> usize;

    /// Host samples that still sound after all that drives the sound has ended.
    fn tail_samples(&self) -> usize;

    /// Whether playing may take memory, or wait: then it has no place in an audio callback.
    fn may_allocate(&self) -> bool {
        false
    }

    /// Begins anew in a seat: nothing has been heard, all controls are at their defaults, and the next sample to be processed
    /// is number `start.at`.
    fn open(&mut self, seat: usize, start: &Start);

    /// Takes in a cue for a seat. Cues come in the order of their times; one that is late acts as soon as it can, but a note
    /// sounds as one that began at its time.
    ///
    /// # Errors
    /// [`CueFull`] when too many wait.
    fn handle(&mut self, seat: usize, cue: Cue) -> Result<(), CueFull>;

    /// Plays on in all seats that have their turn; no seat may have two.
    fn process(&mut self, turns: &mut [Turn<'_>]);

    /// What is followed in a seat now; none where the model is played by notes, or has heard nothing yet.
    fn followed(&self, _seat: usize) -> Option<Followed> {
        None
    }

    /// The latents that were decoded last in a seat, scaled, offset and held as its knobs stand; always as many, and none where
    /// the model is no codec.
    fn latents(&self, _seat: usize) -> &[f32] {
        &[]
    }
}

/// What a model that a sound plays hears in it, at the last instant that it has played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Followed {
    /// Pitch of the sound in semitones (MIDI note number, 69 is 440 Hz), before any transposition; none where it has none.
    pub pitch: Option<f32>,
    /// A-weighted level, dB, from −100.
    pub loudness_db: f32,
}

/// How a seat begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Start {
    /// Number of the first sample, at the host's rate.
    pub at: u64,
    /// Seed of noise and of what varies from note to note.
    pub seed: u64,
    /// Shift of all pitches, semitones.
    pub transpose: f32,
}

/// Samples for one seat to play.
pub struct Turn<'a> {
    /// Which.
    pub seat: usize,
    /// As long as the output, or empty for silence.
    pub input: &'a [f32],
    /// To be filled.
    pub output: &'a mut [f32],
    /// Time goes on and cues are taken in, but the network rests and nothing is heard: for catching up.
    pub mute: bool,
}
