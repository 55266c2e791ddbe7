//! Conversion of ticks to seconds.

/// Unit of ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Division {
    /// Ticks per quarter note, whose length depends on the tempo.
    PerQuarter(u16),
    /// Ticks per second, independent of the tempo.
    PerSecond(f64),
}

impl Division {
    /// Reads the time division, the last two bytes of a file's header; `None` if ticks have no
    /// length.
    pub(super) fn read(high: u8, low: u8) -> Option<Self> {
        if high & 0x80 == 0 {
            let ticks = u16::from_be_bytes([high, low]);
            return (ticks > 0).then_some(Self::PerQuarter(ticks));
        }
        // SMPTE: negated frame rate, then ticks per frame.
        let frames_per_s = match high.wrapping_neg() {
            29 => 30_000.0 / 1_001.0,
            rate => f64::from(rate),
        };
        (low > 0).then_some(Self::PerSecond(frames_per_s * f64::from(low)))
    }
}

/// Times of ticks.
#[derive(Debug)]
pub(super) struct TempoMap {
    division: Division,
    /// Tempo segments, sorted by tick; the first starts at 0.
    segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    tick: u64,
    /// Time at `tick`, in microseconds times ticks per quarter; integers avoid rounding.
    elapsed: u128,
    us_per_quarter: u32,
}

/// 120 quarter notes per minute.
pub(super) const DEFAULT_US_PER_QUARTER: u32 = 500_000;

impl TempoMap {
    /// Creates a map from tempo changes, pairs of tick and microseconds per quarter note, in any
    /// order.
    pub(super) fn new(division: Division, mut tempos: Vec<(u64, u32)>) -> Self {
        tempos.sort_by_key(|&(tick, _)| tick);
        let mut segments = vec![Segment {
            tick: 0,
            elapsed: 0,
            us_per_quarter: DEFAULT_US_PER_QUARTER,
        }];
        // A tempo of 0 would stop time, so it is ignored.
        for (tick, us_per_quarter) in tempos
            .into_iter()
            .filter(|&(_, us_per_quarter)| us_per_quarter > 0)
        {
            let elapsed = segments.last().map_or(0, |last| last.elapsed_at(tick));
            segments.push(Segment {
                tick,
                elapsed,
                us_per_quarter,
            });
        }
        Self { division, segments }
    }

    /// Returns the changes in order of time; none where ticks have a fixed length.
    pub(super) fn changes(&self) -> Vec<TempoChange> {
        let Division::PerQuarter(ticks) = self.division else {
            return Vec::new();
        };
        // The first segment has the tempo of files that state none.
        let stated = self.segments[1..].iter().map(|segment| TempoChange {
            at_s: self.seconds(segment.tick),
            beats: segment.tick as f64 / f64::from(ticks),
            tempo: (60e6 / f64::from(segment.us_per_quarter)) as f32,
        });
        stated.collect()
    }

    /// Returns the time of a tick in seconds.
    pub(super) fn seconds(&self, tick: u64) -> f64 {
        match self.division {
            Division::PerSecond(ticks) => tick as f64 / ticks,
            Division::PerQuarter(ticks) => {
                let segment = self
                    .segments
                    .partition_point(|segment| segment.tick <= tick)
                    .saturating_sub(1);
                self.segments[segment].elapsed_at(tick) as f64 / (f64::from(ticks) * 1e6)
            }
        }
    }
}

/// Change of the tempo of a song.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TempoChange {
    /// Time in seconds.
    pub at_s: f64,
    /// Quarter notes since the start of the song.
    pub beats: f64,
    /// Tempo from then on, quarter notes a minute.
    pub tempo: f32,
}

impl Segment {
    fn elapsed_at(&self, tick: u64) -> u128 {
        self.elapsed + u128::from(tick - self.tick) * u128::from(self.us_per_quarter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tempo_changes_add_up_exactly() {
        let map = TempoMap::new(
            Division::PerQuarter(480),
            vec![(1_920, 250_000), (0, 600_000), (960, 1_000_000)],
        );
        // Two quarters of 0.6 s, two of 1 s, then 0.25 s each.
        assert_eq!(map.seconds(0), 0.0);
        assert_eq!(map.seconds(480), 0.6);
        assert_eq!(map.seconds(960), 1.2);
        assert_eq!(map.seconds(1_440), 2.2);
        assert_eq!(map.seconds(1_920), 3.2);
        assert_eq!(map.seconds(2_400), 3.45);
        let changes = map.changes();
        assert_eq!(
            changes
                .iter()
                .map(|change| change.tempo)
                .collect::<Vec<_>>(),
            [100.0, 60.0, 240.0]
        );
        assert_eq!(
            changes[2],
            TempoChange {
                at_s: 3.2,
                beats: 4.0,
                tempo: 240.0
            }
        );
    }

    #[test]
    fn without_tempo_a_quarter_is_half_a_second() {
        assert_eq!(
            TempoMap::new(Division::PerQuarter(96), vec![]).seconds(96),
            0.5
        );
        assert_eq!(
            TempoMap::new(Division::PerQuarter(96), vec![(0, 0)]).seconds(96),
            0.5
        );
        assert!(
            TempoMap::new(Division::PerQuarter(96), vec![])
                .changes()
                .is_empty()
        );
    }

    #[test]
    fn divisions() {
        assert_eq!(Division::read(0x01, 0xE0), Some(Division::PerQuarter(480)));
        assert_eq!(Division::read(0xE7, 40), Some(Division::PerSecond(1_000.0)));
        // Other frame rates are not in the standard, but clear.
        assert_eq!(Division::read(0xC4, 10), Some(Division::PerSecond(600.0)));
        assert_eq!(
            Division::read(0xE3, 100),
            Some(Division::PerSecond(30_000.0 / 1_001.0 * 100.0))
        );
        for (high, low) in [(0, 0), (0xE7, 0)] {
            assert_eq!(Division::read(high, low), None);
        }
        let map = TempoMap::new(Division::PerSecond(1_000.0), vec![(0, 1)]);
        assert_eq!(map.seconds(1_500), 1.5);
        assert!(map.changes().is_empty());
    }
}
