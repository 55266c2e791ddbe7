//! Past frames of a stream, as far as a layer reads them.

use ondes_kernels::{Kernels, int8_frame_width};

use super::product::Frames;

/// The past frames of one stream, followed by those of the current step.
pub(crate) enum History {
    F32(FrameHistory<f32>),
    Int8 {
        channels: usize,
        codes: FrameHistory<u8>,
        scales: FrameHistory<f32>,
    },
}

/// Code of a zero, as [`Kernels::quantize`] gives it.
const ZERO_CODE: u8 = 128;

impl History {
    /// Holds frames of `channels` channels: `reach` before the newest, and up to `step` new ones at
    /// a time.
    pub fn new(channels: usize, reach: usize, step: usize, int8: bool) -> Self {
        if int8 {
            let codes = FrameHistory::new(int8_frame_width(channels), reach, step, ZERO_CODE);
            Self::Int8 {
                channels,
                codes,
                scales: FrameHistory::new(1, reach, step, 0.0),
            }
        } else {
            Self::F32(FrameHistory::new(channels, reach, step, 0.0))
        }
    }

    /// Appends frames, and returns the past frames followed by them.
    pub fn push(&mut self, kernels: Kernels, frames: &[f32]) -> Frames<'_> {
        match self {
            Self::F32(history) => {
                let count = frames.len() / history.width;
                history.append(count).copy_from_slice(frames);
                Frames::F32(history.latest(count))
            }
            Self::Int8 {
                channels,
                codes,
                scales,
            } => {
                let count = frames.len() / *channels;
                kernels.quantize(frames, *channels, codes.append(count), scales.append(count));
                Frames::Int8 {
                    codes: codes.latest(count),
                    scales: scales.latest(count),
                }
            }
        }
    }

    /// Returns to the initial past.
    pub fn reset(&mut self) {
        match self {
            Self::F32(history) => history.reset(),
            Self::Int8 { codes, scales, .. } => {
                codes.reset();
                scales.reset();
            }
        }
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::F32(history) => history.bytes(),
            Self::Int8 { codes, scales, .. } => codes.bytes() + scales.bytes(),
        }
    }
}

/// Makes the past of the first history the initial one of all, and resets them to it.
pub(crate) fn capture_initial_state(histories: &mut [History]) {
    match &histories[0] {
        History::F32(history) => {
            let past = history.latest(0).to_vec();
            for history in histories {
                if let History::F32(history) = history {
                    history.set_initial(&past);
                }
            }
        }
        History::Int8 { codes, scales, .. } => {
            let (past, past_scales) = (codes.latest(0).to_vec(), scales.latest(0).to_vec());
            for history in histories {
                if let History::Int8 { codes, scales, .. } = history {
                    codes.set_initial(&past);
                    scales.set_initial(&past_scales);
                }
            }
        }
    }
}

/// Past and new frames of one type, `[frame][width]`.
pub(crate) struct FrameHistory<T> {
    width: usize,
    /// Frames before the newest that are still needed.
    reach: usize,
    frames: Vec<T>,
    /// The past that a stream begins with; empty for silence.
    initial: Vec<T>,
    silence: T,
    /// Index of the next frame; the `reach` frames before it are the past.
    end: usize,
}

impl<T: Copy> FrameHistory<T> {
    /// Holds frames of `width` values: `reach` before the newest, and up to `step` new ones at a
    /// time.
    pub fn new(width: usize, reach: usize, step: usize, silence: T) -> Self {
        // Twice the reach, so that the past is moved to the front once in `reach` frames and not at
        // each step.
        let capacity = 2 * reach + step;
        Self {
            width,
            reach,
            frames: vec![silence; capacity * width],
            initial: Vec::new(),
            silence,
            end: reach,
        }
    }

    /// Appends `count` frames and returns them to be filled.
    pub fn append(&mut self, count: usize) -> &mut [T] {
        let width = self.width;
        if (self.end + count) * width > self.frames.len() {
            self.frames
                .copy_within((self.end - self.reach) * width..self.end * width, 0);
            self.end = self.reach;
        }
        self.end += count;
        &mut self.frames[(self.end - count) * width..self.end * width]
    }

    /// Returns the newest `count` frames with the past before them.
    pub fn latest(&self, count: usize) -> &[T] {
        &self.frames[(self.end - count - self.reach) * self.width..self.end * self.width]
    }

    /// Returns to the initial past.
    pub fn reset(&mut self) {
        let past = &mut self.frames[..self.reach * self.width];
        if self.initial.is_empty() {
            past.fill(self.silence);
        } else {
            past.copy_from_slice(&self.initial);
        }
        self.end = self.reach;
    }

    /// Sets the initial past, and resets to it.
    pub fn set_initial(&mut self, past: &[T]) {
        self.initial.clear();
        self.initial.extend_from_slice(past);
        self.reset();
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.frames.as_slice()) + size_of_val(self.initial.as_slice())
    }
}
