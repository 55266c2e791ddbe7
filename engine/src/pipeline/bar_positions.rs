//! Positions of blocks in the bars of a song, and the block that lies some bars before the newest
//! one.

use std::collections::VecDeque;

/// Largest step back that counts as none, bars: rounding, or a song that stands still.
const BACKWARDS: f64 = 0.1;

/// Positions of the newest blocks, in bars.
#[derive(Clone, Debug)]
pub struct BarPositions {
    /// Bars since the first block; they never fall.
    positions: VecDeque<f64>,
    capacity: usize,
}

/// Moment in a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Number of blocks that have begun after that block.
    pub blocks_ago: usize,
    /// Share of the block that lies before the moment, from 0 to 1.
    pub share: f32,
}

impl BarPositions {
    /// Remembers `blocks` blocks.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        Self {
            positions: VecDeque::with_capacity(blocks),
            capacity: blocks,
        }
    }

    /// Forgets all blocks.
    pub fn clear(&mut self) {
        self.positions.clear();
    }

    /// Adds a block that begins at a place in the song, in bars. Whole bars do not count: where a
    /// song jumps by some, it goes on.
    pub fn push(&mut self, bars: f32) {
        let bars = f64::from(bars);
        let position = self.positions.back().map_or(bars, |last| {
            let step = bars - last;
            last + (step - (step + BACKWARDS).floor()).max(0.0)
        });
        if self.positions.len() == self.capacity {
            self.positions.pop_front();
        }
        self.positions.push_back(position);
    }

    /// Returns the moment some bars before the newest block begins; `None` if no block of that time
    /// is remembered, or the two blocks after that one have not ended.
    #[must_use]
    pub fn before(&self, bars: f64) -> Option<Moment> {
        let moment = self.positions.back()? - bars;
        let after = self
            .positions
            .partition_point(|position| *position <= moment);
        let (from, to) = (
            self.positions.get(after.checked_sub(1)?)?,
            self.positions.get(after)?,
        );
        let blocks_ago = self.positions.len() - after;
        (blocks_ago > 2).then(|| Moment {
            blocks_ago,
            share: ((moment - from) / (to - from)) as f32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_a_bar_ago_is_found() {
        let mut positions = BarPositions::new(16);
        for block in 0..8 {
            positions.push((block as f32 * 0.25) % 4.0);
            let expected = (block >= 4).then_some(Moment {
                blocks_ago: 4,
                share: 0.0,
            });
            assert_eq!(positions.before(1.0), expected, "{block}");
        }
        positions.push(2.125);
        assert_eq!(
            positions.before(1.0),
            Some(Moment {
                blocks_ago: 4,
                share: 0.5
            })
        );
        assert_eq!(positions.before(3.0), None);
        assert_eq!(positions.before(0.5), None);
        positions.clear();
        assert_eq!(positions.before(0.5), None);
    }

    #[test]
    fn bars_begin_again_jump_and_stand_still() {
        let mut positions = BarPositions::new(100);
        // Four bars, the first again, a jump by two bars, and a song that stands still.
        for block in 0..40 {
            positions.push((block % 32) as f32 / 8.0);
        }
        assert_eq!(
            positions.before(1.0).map(|moment| moment.blocks_ago),
            Some(8)
        );
        positions.push(3.0);
        assert_eq!(
            positions.before(1.0).map(|moment| moment.blocks_ago),
            Some(8)
        );
        for _ in 0..5 {
            positions.push(3.0 - 1e-6);
        }
        assert_eq!(
            positions.before(1.0).map(|moment| moment.blocks_ago),
            Some(13)
        );
    }

    #[test]
    fn the_oldest_blocks_are_forgotten() {
        let mut positions = BarPositions::new(6);
        (0..20).for_each(|block| positions.push(block as f32 * 0.25));
        assert_eq!(
            positions.before(1.0),
            Some(Moment {
                blocks_ago: 4,
                share: 0.0
            })
        );
        assert_eq!(positions.before(2.0), None);
    }
}
