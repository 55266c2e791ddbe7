//! Last frames of a tap, by frame number.

use std::ops::Range;

use bytemuck::allocation::try_zeroed_slice_box;

use super::error::RecordError;

/// Ring buffer of interleaved frames; frame `n` is at index `n` modulo the capacity.
pub(super) struct SampleHistory {
    samples: Box<[f32]>,
    channels: usize,
    /// Capacity, frames.
    capacity: u64,
    held: Option<Range<u64>>,
}

impl SampleHistory {
    pub fn new(channels: usize, frames: usize) -> Result<Self, RecordError> {
        let length = frames.checked_mul(channels).ok_or(RecordError::Memory)?;
        // Zeroed by the system: a track that plays nothing takes no memory.
        let samples = try_zeroed_slice_box(length).map_err(|()| RecordError::Memory)?;
        Ok(Self {
            samples,
            channels,
            capacity: frames as u64,
            held: None,
        })
    }

    pub fn channels(&self) -> usize {
        self.channels
    }

    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the numbers of the frames held; `None` before the first.
    pub fn held(&self) -> Option<Range<u64>> {
        self.held.clone()
    }

    /// Clears the history; the next frame has the number `clock`.
    pub fn restart(&mut self, clock: u64) {
        self.held = Some(clock..clock);
    }

    /// Clears the history; frames pushed before the next [`restart`](Self::restart) are lost.
    pub fn forget(&mut self) {
        self.held = None;
    }

    /// Adds frames, which `fill` writes to the given slices; the oldest are overwritten.
    pub fn push(&mut self, frames: u64, mut fill: impl FnMut(&mut [f32])) {
        let Some(mut held) = self.held.take() else {
            return;
        };
        let end = held.end.saturating_add(frames);
        while held.end < end {
            let place = self.place(held.end..end);
            held.end += (place.len() / self.channels) as u64;
            fill(&mut self.samples[place]);
        }
        held.start = held.start.max(held.end.saturating_sub(self.capacity));
        self.held = Some(held);
    }

    /// Passes frames to `sink`, in slices. They must be held.
    pub fn read<E>(
        &self,
        mut frames: Range<u64>,
        mut sink: impl FnMut(&[f32]) -> Result<(), E>,
    ) -> Result<(), E> {
        while !frames.is_empty() {
            let place = self.place(frames.clone());
            frames.start += (place.len() / self.channels) as u64;
            sink(&self.samples[place])?;
        }
        Ok(())
    }

    /// Returns the indices of the first frames that are contiguous in the ring.
    fn place(&self, frames: Range<u64>) -> Range<usize> {
        let slot = frames.start % self.capacity;
        let run = (frames.end - frames.start).min(self.capacity - slot);
        let index = |slot: u64| slot as usize * self.channels;
        index(slot)..index(slot + run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(history: &SampleHistory) -> Vec<f32> {
        let mut all = Vec::new();
        let held = history.held().unwrap();
        let copy = |slice: &[f32]| -> Result<(), ()> {
            all.extend_from_slice(slice);
            Ok(())
        };
        history.read(held, copy).unwrap();
        all
    }

    #[test]
    fn the_history_holds_the_last_frames_by_number() {
        let mut history = SampleHistory::new(2, 10).unwrap();
        assert!(history.held().is_none());
        history.restart(1_003);
        let mut next = 0_u64;
        for frames in [3, 0, 4, 9, 10, 23, 1] {
            let mut sample = 2 * next;
            history.push(frames, |slice| {
                for place in slice {
                    *place = sample as f32;
                    sample += 1;
                }
            });
            next += frames;
            let first = next.saturating_sub(10);
            assert_eq!(history.held(), Some(1_003 + first..1_003 + next));
            let expected: Vec<f32> = (2 * first..2 * next).map(|sample| sample as f32).collect();
            assert_eq!(read(&history), expected);
        }
    }
}
