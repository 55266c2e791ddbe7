//! Skips the network of an instrument that follows audio input while there is nothing to play.
//!
//! The network sleeps when the input is silent, none of its control inputs changes, and its output,
//! with the room's tail, has been inaudible for a while. All of this is known per control frame, so
//! it depends neither on the driver nor on host blocks. A network that makes sound without input
//! never sleeps.
//!
//! A network that wakes continues from its last state. As nothing had changed, that state had
//! settled: the output is that of a network that never slept, except for the phases of oscillators
//! and noise. A reset network would sound different for the first tenths of a second.

/// Time without activity before the network sleeps, in seconds.
const IDLE_TIME_S: f64 = 0.5;
/// Amplitude below which output is inaudible: −80 dB of full scale.
const INAUDIBLE: f32 = 1e-4;

/// Decides frame by frame whether the network runs.
#[derive(Clone, Debug)]
pub(super) struct SilenceDetector {
    /// Idle frames in a row.
    idle_frames: u32,
    /// Idle frames after which the network sleeps.
    frames_to_sleep: u32,
    /// True if this frame is silent and unchanged.
    is_still: bool,
    is_asleep: bool,
}

/// State of the network in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NetworkActivity {
    /// Runs.
    Active,
    /// Runs for a last hop that fades out.
    FadingOut,
    /// Does not run.
    Asleep,
}

impl SilenceDetector {
    /// Creates a detector for a running network; `sample_rate` is in Hz, and frames are `hop`
    /// samples apart.
    pub fn new(sample_rate: f64, hop: usize) -> Self {
        let frames_to_sleep = (IDLE_TIME_S * sample_rate / hop as f64).ceil().max(1.0) as u32;
        Self {
            idle_frames: 0,
            frames_to_sleep,
            is_still: false,
            is_asleep: false,
        }
    }

    /// Resets to a running network.
    pub fn reset(&mut self) {
        *self = Self {
            idle_frames: 0,
            is_still: false,
            is_asleep: false,
            ..*self
        };
    }

    /// Processes the next frame; `is_still` says that the input is silent and no control input has
    /// changed since the last frame.
    pub fn step(&mut self, is_still: bool) -> NetworkActivity {
        self.is_still = is_still;
        let sleeps = is_still && self.idle_frames >= self.frames_to_sleep;
        match (sleeps, std::mem::replace(&mut self.is_asleep, sleeps)) {
            (false, _) => NetworkActivity::Active,
            (true, false) => NetworkActivity::FadingOut,
            (true, true) => NetworkActivity::Asleep,
        }
    }

    /// Records the sound of the frame's hop; `None` if the network was skipped to catch up.
    pub fn record(&mut self, sound: Option<&[f32]>) {
        let is_silent = |sound: &[f32]| sound.iter().all(|sample| sample.abs() < INAUDIBLE);
        let is_idle = self.is_still && (self.is_asleep || sound.is_some_and(is_silent));
        self.idle_frames = if is_idle {
            self.idle_frames.saturating_add(1)
        } else {
            0
        };
    }

    /// Keeps the network running, as a reference for tests.
    #[cfg(test)]
    pub fn forbid(&mut self) {
        self.frames_to_sleep = u32::MAX;
    }
}

#[cfg(test)]
mod tests;
