//! The way of one tap's sound from its ring into its history, in which time has no holes.

use ringbuf::traits::Consumer;

use super::history::History;
use super::tap::Outlet;

/// The longest time without sound, in seconds, that is taken for silence. Beyond it, or backwards, the clock was set anew.
const LONGEST_GAP_S: u64 = 600;

/// One tap, as the writer sees it.
pub(super) struct Lane {
    pub outlet: Outlet,
    pub history: History,
    sample_rate: u32,
    /// Frames ever taken out of the ring.
    taken: u64,
    /// Frames of silence before the next one of the ring.
    gap: u64,
    /// Where the clock goes on after it was set anew.
    jump: Option<u64>,
}

impl Lane {
    pub fn new(outlet: Outlet, history: History, sample_rate: u32) -> Self {
        Self { outlet, history, sample_rate, taken: 0, gap: 0, jump: None }
    }

    /// Number of the frame up to which there is sound.
    pub fn end(&self) -> Option<u64> {
        self.history.held().map(|held| held.end)
    }

    /// Whether the clock was set anew here; nothing more comes before [`cross`](Self::cross).
    pub fn at_jump(&self) -> bool {
        self.jump.is_some()
    }

    /// Whether the clock goes on with an earlier frame here.
    pub fn jumps_back(&self) -> bool {
        self.jump.zip(self.end()).is_some_and(|(jump, end)| jump < end)
    }

    /// Forgets what was before the clock was set anew.
    ///
    /// Where it was set `back`, a lane that did not come to that place yet drops all up to it: its frames are in the future now.
    pub fn cross(&mut self, back: bool) {
        if let Some(clock) = self.jump.take() {
            self.history.restart(clock);
        } else if back {
            self.history.forget();
            self.gap = 0;
        }
    }

    /// Takes what is in the ring now, at most `room` frames.
    pub fn drain(&mut self, mut room: u64) {
        let mut waiting = self.outlet.waiting();
        while self.jump.is_none() {
            let silence = self.gap.min(room);
            self.history.push(silence, |slice| slice.fill(0.0));
            self.gap -= silence;
            room -= silence;
            if waiting == 0 || room == 0 {
                return;
            }
            let mut run = waiting.min(room);
            if let Some(&next) = self.outlet.breaks.try_peek() {
                if next.at == self.taken {
                    self.outlet.breaks.skip(1);
                    self.meet(next.clock);
                    continue;
                }
                run = run.min(next.at - self.taken);
            }
            if self.end().is_some() {
                self.history.push(run, |slice| self.outlet.take(slice));
            } else {
                self.outlet.skip(run);
            }
            self.taken += run;
            waiting -= run;
            room -= run;
        }
    }

    /// Compares the clock with the frames that there are.
    fn meet(&mut self, clock: u64) {
        match self.end().map(|end| clock.checked_sub(end)) {
            None => self.history.restart(clock),
            Some(Some(gap)) if gap <= LONGEST_GAP_S * u64::from(self.sample_rate) => self.gap = gap,
            Some(_) => self.jump = Some(clock),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tap::Tap;
    use super::*;

    fn lane() -> (Tap, Lane) {
        let (tap, outlet) = Tap::new(1, 100);
        (tap, Lane::new(outlet, History::new(1, 1_000).unwrap(), 1_000))
    }

    fn all(lane: &Lane) -> Vec<f32> {
        let mut all = Vec::new();
        let copy = |slice: &[f32]| -> Result<(), ()> {
            all.extend_from_slice(slice);
            Ok(())
        };
        lane.history.read(lane.history.held().unwrap(), copy).unwrap();
        all
    }

    #[test]
    fn gaps_are_silence() {
        let (mut tap, mut lane) = lane();
        lane.drain(1_000);
        assert_eq!(lane.end(), None);
        tap.push(50, &[&[1.0, 2.0]]);
        tap.push(52, &[&[3.0]]);
        tap.push(56, &[&[4.0]]);
        // However little room there is at a time.
        for room in [1, 0, 1, 2, 1, 1, 1, 1] {
            lane.drain(room);
        }
        assert_eq!(lane.history.held(), Some(50..57));
        assert_eq!(all(&lane), [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 4.0]);
    }

    #[test]
    fn a_clock_set_anew_starts_over() {
        let (mut tap, mut lane) = lane();
        for (clock, held) in [(7, 7..8), (3, 3..4), (700_000, 700_000..700_001), (699_999, 699_999..700_000)] {
            tap.push(clock, &[&[clock as f32]]);
            lane.drain(1_000);
            let back = lane.jumps_back();
            lane.cross(back);
            lane.drain(1_000);
            assert_eq!((lane.history.held(), all(&lane)), (Some(held), vec![clock as f32]));
        }
    }

    #[test]
    fn what_is_before_a_clock_set_back_is_dropped() {
        let (mut tap, mut lane) = lane();
        tap.push(500, &[&[1.0; 10]]);
        lane.drain(1_000);
        // Another lane was set back.
        lane.cross(true);
        assert_eq!(lane.end(), None);
        tap.push(510, &[&[2.0; 10]]);
        tap.push(20, &[&[3.0; 2]]);
        lane.drain(1_000);
        assert_eq!((lane.history.held(), all(&lane)), (Some(20..22), vec![3.0; 2]));
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let (mut tap, mut lane) = lane();
        let ones = [1.0; 150];
        tap.push(0, &[&ones]);
        tap.push(150, &[&ones[..10]]);
        assert_eq!(lane.outlet.wire.dropped.load(std::sync::atomic::Ordering::Relaxed), 60);
        assert_eq!(lane.outlet.wire.end(), Some(160));
        lane.drain(1_000);
        tap.push(160, &[&ones[..20]]);
        lane.drain(1_000);
        let sound = all(&lane);
        assert_eq!(sound.len(), 180);
        assert!(sound.iter().enumerate().all(|(n, &sample)| sample == f32::from(!(100..160).contains(&n))));
    }

    #[test]
    fn what_a_block_lacks_is_silence() {
        let (mut tap, outlet) = Tap::new(3, 100);
        let mut lane = Lane::new(outlet, History::new(3, 100).unwrap(), 1_000);
        tap.push(0, &[&[1.0, 2.0], &[3.0]]);
        tap.push(2, &[]);
        tap.push(2, &[&[4.0], &[5.0], &[6.0], &[7.0]]);
        lane.drain(100);
        assert_eq!(all(&lane), [1.0, 3.0, 0.0, 2.0, 0.0, 0.0, 4.0, 5.0, 6.0]);
    }
}
