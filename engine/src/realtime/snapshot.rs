//! State of a session at one moment, for an instance that takes over: filled on the audio thread,
//! read by the loader.

use crate::instrument::PerformanceState;
use crate::pipeline::{ControlId, TimedCommand, Transport};

/// Control changes that a session remembers: enough for all latents of a usual codec.
pub(super) const MAX_CHANGED_CONTROLS: usize = 512;
/// Commands that a session remembers for an instance that takes over.
pub(super) const RECENT_COMMANDS: usize = 512;

/// State of a session at one moment.
pub(super) struct SessionSnapshot {
    /// Number of the next sample.
    pub now: u64,
    /// Held notes and controller positions.
    pub performance: PerformanceState,
    /// Controls that were changed on the current model, or on the one that is taking over, with
    /// their values.
    pub changed_controls: Vec<(ControlId, f32)>,
    /// Model that they were changed on.
    pub model: Option<u64>,
    /// Last transport and its time.
    pub transport: Option<(u64, Transport)>,
    /// The last commands, in their order.
    pub recent: Vec<TimedCommand>,
    /// Number of commands so far.
    pub commands: u64,
}

impl SessionSnapshot {
    /// Creates an empty snapshot with its full capacity.
    pub fn new() -> Self {
        Self {
            now: 0,
            performance: PerformanceState::new(),
            changed_controls: Vec::with_capacity(MAX_CHANGED_CONTROLS),
            model: None,
            transport: None,
            recent: Vec::with_capacity(RECENT_COMMANDS),
            commands: 0,
        }
    }

    /// Returns the commands from number `from` on, as far as they are remembered.
    pub fn commands_from(&self, from: u64) -> &[TimedCommand] {
        let new = self
            .commands
            .saturating_sub(from)
            .min(self.recent.len() as u64) as usize;
        &self.recent[self.recent.len() - new..]
    }
}
