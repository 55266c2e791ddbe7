//! What a stream's layer still sees of the past.

use ondes_kernels::{Kernels, int8_frame_width};

use super::product::Frames;

/// A stream's past, followed by the frames of this step.
pub(super) enum History {
    Floats(Past<f32>),
    Bytes { channels: usize, bytes: Past<u8>, scales: Past<f32> },
}

/// A zero of [`Kernels::quantize`].
const SILENT: u8 = 128;

impl History {
    /// For frames of so many channels, of which `reach` before the newest are still needed, and up to `step` come at a time.
    pub fn new(channels: usize, reach: usize, step: usize, in_bytes: bool) -> Self {
        if in_bytes {
            let bytes = Past::new(int8_frame_width(channels), reach, step, SILENT);
            Self::Bytes { channels, bytes, scales: Past::new(1, reach, step, 0.0) }
        } else {
            Self::Floats(Past::new(channels, reach, step, 0.0))
        }
    }

    /// Appends frames; gives the past followed by them.
    pub fn push(&mut self, kernels: Kernels, frames: &[f32]) -> Frames<'_> {
        match self {
            Self::Floats(past) => {
                let count = frames.len() / past.width;
                past.room(count).copy_from_slice(frames);
                Frames::Floats(past.seen(count))
            }
            Self::Bytes { channels, bytes, scales } => {
                let count = frames.len() / *channels;
                kernels.quantize(frames, *channels, bytes.room(count), scales.room(count));
                Frames::Bytes { bytes: bytes.seen(count), scales: scales.seen(count) }
            }
        }
    }

    pub fn reset(&mut self) {
        match self {
            Self::Floats(past) => past.reset(),
            Self::Bytes { bytes, scales, .. } => {
                bytes.reset();
                scales.reset();
            }
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Self::Floats(past) => past.bytes(),
            Self::Bytes { bytes, scales, .. } => bytes.bytes() + scales.bytes(),
        }
    }

    /// Begins, from now on, as another one of the same shape stands.
    fn settle(&mut self, other: &Settled) {
        match (self, other) {
            (Self::Floats(past), Settled::Floats(settled)) => past.settle(settled),
            (Self::Bytes { bytes, scales, .. }, Settled::Bytes(settled, settled_scales)) => {
                bytes.settle(settled);
                scales.settle(settled_scales);
            }
            _ => unreachable!("histories of one layer are of one kind"),
        }
    }
}

enum Settled {
    Floats(Vec<f32>),
    Bytes(Vec<u8>, Vec<f32>),
}

/// From now on all begin as the first one stands.
pub(super) fn settle(histories: &mut [History]) {
    let settled = match &histories[0] {
        History::Floats(past) => Settled::Floats(past.seen(0).to_vec()),
        History::Bytes { bytes, scales, .. } => Settled::Bytes(bytes.seen(0).to_vec(), scales.seen(0).to_vec()),
    };
    histories.iter_mut().for_each(|history| history.settle(&settled));
}

/// Frames of one kind, `[frame][width]`.
pub(super) struct Past<T> {
    width: usize,
    /// Frames before the newest that are still needed.
    reach: usize,
    frames: Vec<T>,
    /// The past of a stream that begins; empty for silence.
    settled: Vec<T>,
    silence: T,
    /// Where the next frame goes; the `reach` frames before it are the past.
    end: usize,
}

impl<T: Copy> Past<T> {
    /// For frames of so many values, of which `reach` before the newest are still needed, and up to `step` come at a time.
    pub fn new(width: usize, reach: usize, step: usize, silence: T) -> Self {
        // Twice the reach, so that the past is moved to the front once in `reach` frames and not at each step.
        let capacity = 2 * reach + step;
        Self { width, reach, frames: vec![silence; capacity * width], settled: Vec::new(), silence, end: reach }
    }

    /// Where the next frames go, which are now part of it.
    pub fn room(&mut self, count: usize) -> &mut [T] {
        let width = self.width;
        if (self.end + count) * width > self.frames.len() {
            self.frames.copy_within((self.end - self.reach) * width..self.end * width, 0);
            self.end = self.reach;
        }
        self.end += count;
        &mut self.frames[(self.end - count) * width..self.end * width]
    }

    /// What the newest `count` frames can see, and themselves.
    pub fn seen(&self, count: usize) -> &[T] {
        &self.frames[(self.end - count - self.reach) * self.width..self.end * self.width]
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        let past = &mut self.frames[..self.reach * self.width];
        if self.settled.is_empty() {
            past.fill(self.silence);
        } else {
            past.copy_from_slice(&self.settled);
        }
        self.end = self.reach;
    }

    /// Begins, from now on, with that past.
    pub fn settle(&mut self, past: &[T]) {
        self.settled.clear();
        self.settled.extend_from_slice(past);
        self.reset();
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.frames.as_slice()) + size_of_val(self.settled.as_slice())
    }
}
