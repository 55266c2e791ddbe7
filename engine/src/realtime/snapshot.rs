//! What a session is doing at one moment, for a model that takes over: filled on the audio thread, read by the loader.

use super::session::RECENT_CUES;
use crate::instrument::Memory;
use crate::pipeline::{ControlId, Cue, Transport};

/// Controls that a session remembers having been turned: those of more latents than codecs usually have.
pub(super) const TURNED: usize = 512;

/// A moment of a session.
pub(super) struct Snapshot {
    /// Number of the next sample.
    pub now: u64,
    /// Notes and wheels at that moment.
    pub memory: Memory,
    /// Controls that were turned on the present model, or on the one that is about to take over, and where to.
    pub turned: Vec<(ControlId, f32)>,
    /// The model that they were turned on.
    pub tag: Option<u64>,
    /// Where the song was, and when.
    pub transport: Option<(u64, Transport)>,
    /// The last cues in their order.
    pub recent: Vec<Cue>,
    /// Count of all cues so far.
    pub cues: u64,
}

impl Snapshot {
    /// An empty one with room for all.
    pub fn new() -> Self {
        Self {
            now: 0,
            memory: Memory::new(),
            turned: Vec::with_capacity(TURNED),
            tag: None,
            transport: None,
            recent: Vec::with_capacity(RECENT_CUES),
            cues: 0,
        }
    }

    /// The cues from number `from` on, as far as they are remembered.
    pub fn cues_from(&self, from: u64) -> &[Cue] {
        let new = self.cues.saturating_sub(from).min(self.recent.len() as u64) as usize;
        &self.recent[self.recent.len() - new..]
    }
}
