//! Pitch and loudness of a sound, frame by frame; they drive an instrument that follows it.

use std::collections::VecDeque;

use super::loudness::Loudness;
use super::pitch::{PitchFrame, PitchTracker};

/// Features of one frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnalysisFrame {
    /// Pitch with its confidence.
    pub pitch: PitchFrame,
    /// A-weighted level, dB.
    pub loudness: f32,
}

/// [`PitchTracker`] and [`Loudness`] in step; frame `i` describes the sound at sample `i · hop`.
///
/// # Examples
/// ```
/// use std::f32::consts::TAU;
///
/// use ondes_engine::dsp::analysis::analyse;
///
/// let sound: Vec<f32> = (0..24_000).map(|n| 0.5 * (TAU * 440.0 * n as f32 / 48_000.0).sin()).collect();
/// let frames = analyse(&sound, 48_000.0, 192);
/// assert!((frames[60].pitch.semitones - 69.0).abs() < 0.01 && frames[60].pitch.voiced);
/// ```
pub struct Analysis {
    pitch: PitchTracker,
    loudness: Loudness,
    /// Frames of one feature that wait for the other.
    pitches: VecDeque<PitchFrame>,
    levels: VecDeque<f32>,
}

/// Samples per step; keeps both features close together.
const CHUNK: usize = 256;

impl Analysis {
    /// Creates an analysis for a sample rate in Hz, with a frame every `hop` samples.
    ///
    /// # Panics
    /// If `hop` is 0 or the rate is not between 8 kHz and 768 kHz.
    #[must_use]
    pub fn new(sample_rate: f64, hop: usize) -> Self {
        Self::with(
            PitchTracker::new(sample_rate, hop),
            Loudness::new(sample_rate, hop),
        )
    }

    /// Creates an analysis that emits frames after 10.7 ms instead of 21.4 ms, to play along; see
    /// [`PitchTracker::low_latency`].
    ///
    /// # Panics
    /// If `hop` is 0 or the rate is not between 8 kHz and 768 kHz.
    #[must_use]
    pub fn low_latency(sample_rate: f64, hop: usize) -> Self {
        Self::with(
            PitchTracker::low_latency(sample_rate, hop),
            Loudness::new(sample_rate, hop),
        )
    }

    fn with(pitch: PitchTracker, loudness: Loudness) -> Self {
        let hop = pitch.hop();
        let waiting = (pitch.latency().abs_diff(loudness.latency()) + CHUNK) / hop + 2;
        Self {
            pitch,
            loudness,
            pitches: VecDeque::with_capacity(waiting),
            levels: VecDeque::with_capacity(waiting),
        }
    }

    /// Returns the latency in samples: frame `i` is emitted with sample `i · hop + latency − 1`.
    #[must_use]
    pub fn latency(&self) -> usize {
        self.pitch.latency().max(self.loudness.latency())
    }

    /// Processes any number of samples and emits the completed frames in order. Never allocates.
    pub fn push(&mut self, input: &[f32], mut emit: impl FnMut(AnalysisFrame)) {
        for chunk in input.chunks(CHUNK) {
            self.pitch
                .push(chunk, |frame| self.pitches.push_back(frame));
            self.loudness
                .push(chunk, |level| self.levels.push_back(level));
            while !self.pitches.is_empty() && !self.levels.is_empty() {
                if let (Some(pitch), Some(loudness)) =
                    (self.pitches.pop_front(), self.levels.pop_front())
                {
                    emit(AnalysisFrame { pitch, loudness });
                }
            }
        }
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        self.pitch.reset();
        self.loudness.reset();
        self.pitches.clear();
        self.levels.clear();
    }
}

/// Analyses a whole sound; returns `ceil(samples / hop)` frames.
#[must_use]
pub fn analyse(sound: &[f32], sample_rate: f64, hop: usize) -> Vec<AnalysisFrame> {
    let mut analysis = Analysis::new(sample_rate, hop);
    let count = sound.len().div_ceil(hop);
    let mut frames = Vec::with_capacity(count);
    analysis.push(sound, |frame| frames.push(frame));
    analysis.push(&vec![0.0; analysis.latency() + hop], |frame| {
        frames.push(frame)
    });
    frames.truncate(count);
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f32, samples: usize) -> Vec<f32> {
        (0..samples)
            .map(|n| 0.5 * (std::f32::consts::TAU * hz * n as f32 / 48_000.0).sin())
            .collect()
    }

    #[test]
    fn features_describe_the_same_instant() {
        // Silence, then 1 kHz: loudness and pitch must both arrive within a window of the onset.
        let mut sound = vec![0.0; 48_000];
        sound.extend(tone(1000.0, 48_000));
        let frames = analyse(&sound, 48_000.0, 192);
        assert_eq!(frames.len(), 500);
        assert!(frames[240].loudness < -80.0 && !frames[240].pitch.voiced);
        assert!(
            (frames[260].loudness + 9.03).abs() < 0.3,
            "{:?}",
            frames[260]
        );
        assert!(
            (frames[260].pitch.semitones - 83.213).abs() < 0.02,
            "{:?}",
            frames[260]
        );
    }

    #[test]
    fn frames_do_not_depend_on_block_length() {
        let sound = tone(220.0, 20_000);
        let whole = analyse(&sound, 48_000.0, 192);
        let mut analysis = Analysis::new(48_000.0, 192);
        let mut frames = Vec::new();
        let mut rest = sound.as_slice();
        for length in [1, 7, 5_000, 191, 193, 3].into_iter().cycle() {
            let (part, after) = rest.split_at(rest.len().min(length));
            analysis.push(part, |frame| frames.push(frame));
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        assert!(frames.len() > 90);
        assert_eq!(frames, whole[..frames.len()]);
    }
}
