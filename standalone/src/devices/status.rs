//! Opened devices and their status.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ondes_engine::sync::{lock, recover};
use serde::Serialize;

use crate::io::Callback;

/// Creates the callback for opened devices; called again each time they were reopened.
pub type CallbackFactory = Box<dyn FnMut(&Opened) -> Result<Box<dyn Callback>, String> + Send>;

/// Opened devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opened {
    /// Sound system.
    pub host: String,
    /// Name of the output device.
    pub output: String,
    /// Name of the input device.
    pub input: Option<String>,
    /// Sample rate of both, Hz.
    pub sample_rate: u32,
    /// Largest block, frames.
    pub max_block: usize,
    /// Number of input channels.
    pub inputs: usize,
    /// Number of output channels.
    pub outputs: usize,
    /// Latency from the callback to the converter in frames, as far as the system reports it.
    pub output_latency_frames: usize,
    /// Latency from the converter to the callback in frames, as far as the system reports it,
    /// `bridge_frames` included.
    pub input_latency_frames: usize,
    /// Latency of the bridge between two devices in frames; 0 if both run in one cycle.
    pub bridge_frames: usize,
}

/// Status of the audio devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AudioStatus {
    /// The chosen devices are being opened.
    Opening,
    /// The devices are running.
    Playing(Opened),
    /// A running device has disappeared or its callback failed; it is tried again every second.
    Lost {
        /// Name of the device.
        device: String,
        /// Reason, in one line.
        reason: String,
        /// Time of the loss.
        since: Instant,
    },
    /// The chosen devices cannot be used, for this one-line reason. They are tried again every
    /// second, unless the callback could not be created or has failed three times in a row.
    Failed(String),
}

/// Frames dropped or inserted between an input and an output device with different clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// Input frames that were dropped.
    pub dropped_frames: u64,
    /// Frames of silence that were inserted.
    pub inserted_frames: u64,
}

/// Cell in which the supervisor publishes the status.
pub(super) struct AudioStatusCell {
    state: Mutex<CellState>,
    changed: Condvar,
}

struct CellState {
    status: AudioStatus,
    /// Choices that the supervisor has not received yet; until then its reports are outdated.
    unseen: usize,
}

impl Default for AudioStatusCell {
    fn default() -> Self {
        let state = CellState {
            status: AudioStatus::Opening,
            unseen: 0,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }
}

impl AudioStatusCell {
    /// Returns the latest status.
    pub fn get(&self) -> AudioStatus {
        self.lock().status.clone()
    }

    /// Sends a choice to the supervisor; if that succeeds, the status is [`AudioStatus::Opening`]
    /// until the choice was received.
    pub fn announce_choice(&self, send: impl FnOnce() -> bool) {
        let mut state = self.lock();
        if send() {
            state.status = AudioStatus::Opening;
            state.unseen += 1;
        }
    }

    /// Waits while devices are being opened, at most `timeout`, and returns the status.
    pub fn wait_until_settled(&self, timeout: Duration) -> AudioStatus {
        let opening = |state: &mut CellState| state.status == AudioStatus::Opening;
        let (state, _) = recover(
            self.changed
                .wait_timeout_while(self.lock(), timeout, opening),
        );
        state.status.clone()
    }

    pub fn set(&self, status: AudioStatus) {
        let mut state = self.lock();
        if state.unseen == 0 {
            state.status = status;
            self.changed.notify_all();
        }
    }

    /// Counts received choices.
    pub fn seen(&self, choices: usize) {
        let mut state = self.lock();
        state.unseen = state.unseen.saturating_sub(choices);
    }

    fn lock(&self) -> MutexGuard<'_, CellState> {
        lock(&self.state)
    }
}
