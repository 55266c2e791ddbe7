//! Moves a tap's frames from its ring to its history, with gaps filled.

use ringbuf::traits::Consumer;

use super::history::SampleHistory;
use crate::io::tap::TapConsumer;

/// Longest gap of the clock that is filled with silence, seconds. A longer or negative one is a
/// reset of the clock.
const MAX_GAP_S: u64 = 600;

/// A tap as the writer sees it.
pub(super) struct TapReader {
    pub consumer: TapConsumer,
    pub history: SampleHistory,
    sample_rate: u32,
    /// Frames taken out of the ring so far.
    frames_read: u64,
    /// Frames of silence before the ring's next frame.
    gap: u64,
    /// Clock after a reset that has been reached.
    jump: Option<u64>,
}

impl TapReader {
    pub fn new(consumer: TapConsumer, history: SampleHistory, sample_rate: u32) -> Self {
        Self {
            consumer,
            history,
            sample_rate,
            frames_read: 0,
            gap: 0,
            jump: None,
        }
    }

    /// Returns the number of the frame after the last one held.
    pub fn end(&self) -> Option<u64> {
        self.history.held().map(|held| held.end)
    }

    /// Returns whether a reset of the clock was reached; nothing more is read before
    /// [`pass_jump`](Self::pass_jump).
    pub fn at_jump(&self) -> bool {
        self.jump.is_some()
    }

    /// Returns whether the clock was set back here.
    pub fn jumps_back(&self) -> bool {
        self.jump
            .zip(self.end())
            .is_some_and(|(jump, end)| jump < end)
    }

    /// Clears the history and continues after the reset.
    ///
    /// If the clock was set `back`, a reader that has not reached the reset drops all frames before
    /// it, which now lie in the future.
    pub fn pass_jump(&mut self, back: bool) {
        if let Some(clock) = self.jump.take() {
            self.history.restart(clock);
        } else if back {
            self.history.forget();
            self.gap = 0;
        }
    }

    /// Moves frames from the ring to the history, at most `room`.
    pub fn drain(&mut self, mut room: u64) {
        let mut waiting = self.consumer.waiting();
        while self.jump.is_none() {
            let silence = self.gap.min(room);
            self.history.push(silence, |slice| slice.fill(0.0));
            self.gap -= silence;
            room -= silence;
            if waiting == 0 || room == 0 {
                return;
            }
            let mut run = waiting.min(room);
            if let Some(&next) = self.consumer.jumps.try_peek() {
                if next.at == self.frames_read {
                    self.consumer.jumps.skip(1);
                    self.check_clock(next.clock);
                    continue;
                }
                run = run.min(next.at - self.frames_read);
            }
            if self.end().is_some() {
                self.history.push(run, |slice| self.consumer.take(slice));
            } else {
                self.consumer.skip(run);
            }
            self.frames_read += run;
            waiting -= run;
            room -= run;
        }
    }

    /// Compares the clock with the frames held: restarts, fills a gap, or stops at a reset.
    fn check_clock(&mut self, clock: u64) {
        match self.end().map(|end| clock.checked_sub(end)) {
            None => self.history.restart(clock),
            Some(Some(gap)) if gap <= MAX_GAP_S * u64::from(self.sample_rate) => self.gap = gap,
            Some(_) => self.jump = Some(clock),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Tap;

    fn reader() -> (Tap, TapReader) {
        let (tap, consumer) = Tap::new(1, 100);
        (
            tap,
            TapReader::new(consumer, SampleHistory::new(1, 1_000).unwrap(), 1_000),
        )
    }

    fn all(reader: &TapReader) -> Vec<f32> {
        let mut all = Vec::new();
        let copy = |slice: &[f32]| -> Result<(), ()> {
            all.extend_from_slice(slice);
            Ok(())
        };
        reader
            .history
            .read(reader.history.held().unwrap(), copy)
            .unwrap();
        all
    }

    #[test]
    fn gaps_are_silence() {
        let (mut tap, mut reader) = reader();
        reader.drain(1_000);
        assert_eq!(reader.end(), None);
        tap.push(50, &[&[1.0, 2.0]]);
        tap.push(52, &[&[3.0]]);
        tap.push(56, &[&[4.0]]);
        // With any amount of room at a time.
        for room in [1, 0, 1, 2, 1, 1, 1, 1] {
            reader.drain(room);
        }
        assert_eq!(reader.history.held(), Some(50..57));
        assert_eq!(all(&reader), [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 4.0]);
    }

    #[test]
    fn a_clock_reset_restarts_the_history() {
        let (mut tap, mut reader) = reader();
        for (clock, held) in [
            (7, 7..8),
            (3, 3..4),
            (700_000, 700_000..700_001),
            (699_999, 699_999..700_000),
        ] {
            tap.push(clock, &[&[clock as f32]]);
            reader.drain(1_000);
            let back = reader.jumps_back();
            reader.pass_jump(back);
            reader.drain(1_000);
            assert_eq!(
                (reader.history.held(), all(&reader)),
                (Some(held), vec![clock as f32])
            );
        }
    }

    #[test]
    fn frames_before_a_clock_set_back_are_dropped() {
        let (mut tap, mut reader) = reader();
        tap.push(500, &[&[1.0; 10]]);
        reader.drain(1_000);
        // Another reader was set back.
        reader.pass_jump(true);
        assert_eq!(reader.end(), None);
        tap.push(510, &[&[2.0; 10]]);
        tap.push(20, &[&[3.0; 2]]);
        reader.drain(1_000);
        assert_eq!(
            (reader.history.held(), all(&reader)),
            (Some(20..22), vec![3.0; 2])
        );
    }

    #[test]
    fn dropped_frames_are_counted() {
        let (mut tap, mut reader) = reader();
        let ones = [1.0; 150];
        tap.push(0, &[&ones]);
        tap.push(150, &[&ones[..10]]);
        assert_eq!(
            reader
                .consumer
                .progress
                .dropped
                .load(std::sync::atomic::Ordering::Relaxed),
            60
        );
        assert_eq!(reader.consumer.progress.end(), Some(160));
        reader.drain(1_000);
        tap.push(160, &[&ones[..20]]);
        reader.drain(1_000);
        let sound = all(&reader);
        assert_eq!(sound.len(), 180);
        assert!(
            sound
                .iter()
                .enumerate()
                .all(|(n, &sample)| sample == f32::from(!(100..160).contains(&n)))
        );
    }

    #[test]
    fn missing_channels_and_frames_are_silence() {
        let (mut tap, consumer) = Tap::new(3, 100);
        let mut reader = TapReader::new(consumer, SampleHistory::new(3, 100).unwrap(), 1_000);
        tap.push(0, &[&[1.0, 2.0], &[3.0]]);
        tap.push(2, &[]);
        tap.push(2, &[&[4.0], &[5.0], &[6.0], &[7.0]]);
        reader.drain(100);
        assert_eq!(all(&reader), [1.0, 3.0, 0.0, 2.0, 0.0, 0.0, 4.0, 5.0, 6.0]);
    }
}
