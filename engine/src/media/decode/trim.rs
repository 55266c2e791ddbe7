//! Removal of what a codec adds before and after the sound.

use std::collections::VecDeque;
use std::ops::Range;

/// Most frames that are removed at the end, and held for that; a packet has fewer.
const MAX_END: u64 = 1 << 16;

/// Cuts decoded blocks down to what a file declares as its sound.
#[derive(Default)]
pub(super) struct Trim {
    /// Frames that remain, as positions in what is decoded, ascending; `None` for all.
    parts: Option<VecDeque<Range<u64>>>,
    /// Frames at the very end to remove.
    end: usize,
    position: u64,
    /// The last frames so far, of which `end` may be the very end.
    held: Vec<Vec<f32>>,
}

impl Trim {
    /// Keeps some parts, which ascend and do not overlap.
    pub fn to_parts(parts: impl IntoIterator<Item = Range<u64>>) -> Self {
        Self {
            parts: Some(parts.into_iter().collect()),
            ..Self::default()
        }
    }

    /// Removes frames at the start, and at the end, where more than a packet is not believed.
    pub fn ends(start: u64, end: u64) -> Self {
        let end = if end <= MAX_END { end as usize } else { 0 };
        Self {
            end,
            ..Self::to_parts(std::iter::once(start..u64::MAX))
        }
    }

    /// Returns the number of frames that remain of `decoded`, if that is known.
    pub fn remaining(&self, decoded: Option<u64>) -> Option<u64> {
        let Some(parts) = &self.parts else {
            return decoded;
        };
        let end = decoded.unwrap_or(u64::MAX);
        let length = |part: &Range<u64>| part.end.min(end).saturating_sub(part.start);
        let total = parts.iter().map(length).fold(0, u64::saturating_add);
        (decoded.is_some() || parts.back().is_none_or(|part| part.end != u64::MAX))
            .then(|| total.saturating_sub(self.end as u64))
    }

    /// Returns whether nothing remains of what follows.
    pub fn is_over(&self) -> bool {
        self.parts.as_ref().is_some_and(VecDeque::is_empty)
    }

    /// Cuts the next block.
    pub fn apply(&mut self, block: &mut [Vec<f32>]) {
        let Some(parts) = &mut self.parts else { return };
        let frames = block.first().map_or(0, Vec::len);
        let (start, end) = (self.position, self.position + frames as u64);
        self.position = end;
        let mut kept = 0;
        while let Some(part) = parts.front() {
            let span = part.start.clamp(start, end)..part.end.clamp(start, end);
            let span = (span.start - start) as usize..(span.end - start) as usize;
            for channel in block.iter_mut() {
                channel.copy_within(span.clone(), kept);
            }
            kept += span.len();
            if part.end > end {
                break;
            }
            parts.pop_front();
        }
        block.iter_mut().for_each(|channel| channel.truncate(kept));
        if self.end > 0 {
            self.hold(block);
        }
    }

    /// Replaces a block by what is certain not to be the end.
    fn hold(&mut self, block: &mut [Vec<f32>]) {
        self.held.resize(block.len(), Vec::new());
        for (held, channel) in self.held.iter_mut().zip(block) {
            held.append(channel);
            let ready = held.len().saturating_sub(self.end);
            channel.extend(held.drain(..ready));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts 0, 1, 2 … 99 in blocks of a length.
    fn cut(mut trim: Trim, length: usize) -> Vec<f32> {
        let all: Vec<f32> = (0..100).map(|n| n as f32).collect();
        let mut kept = Vec::new();
        for block in all.chunks(length) {
            let mut block = vec![block.to_vec(), block.to_vec()];
            trim.apply(&mut block);
            assert_eq!(block[0], block[1]);
            kept.extend_from_slice(&block[0]);
        }
        kept
    }

    #[test]
    fn blocks_of_any_length_are_cut_alike() {
        let expected: Vec<f32> = [3..9, 20..21, 50..90]
            .into_iter()
            .flatten()
            .map(|n| n as f32)
            .collect();
        for length in [1, 2, 7, 30, 100] {
            assert_eq!(
                cut(Trim::to_parts([3..9, 20..21, 50..90]), length),
                expected
            );
            assert_eq!(
                cut(Trim::ends(10, 15), length),
                (10..85).map(|n| n as f32).collect::<Vec<_>>()
            );
            assert_eq!(cut(Trim::default(), length).len(), 100);
            assert!(cut(Trim::ends(90, 15), length).is_empty());
        }
    }

    #[test]
    fn what_remains_is_known_beforehand() {
        assert_eq!(Trim::to_parts([3..9, 50..90]).remaining(Some(60)), Some(16));
        assert_eq!(Trim::to_parts([3..9, 50..90]).remaining(None), Some(46));
        assert_eq!(Trim::ends(10, 15).remaining(Some(100)), Some(75));
        assert_eq!(Trim::ends(10, 15).remaining(None), None);
        assert_eq!(Trim::ends(10, u64::MAX).remaining(Some(100)), Some(90));
        assert_eq!(Trim::default().remaining(Some(5)), Some(5));
    }
}
