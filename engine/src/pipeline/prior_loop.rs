//! The last bars of what a prior has made, played again and again.
//!
//! A loop is the last bars before it began. Each of its beats may be replaced, with the probability
//! that the variation gives, by what the prior makes now; the loop keeps the new beat.

use crate::model::bars::{BAR_BEATS, SLOWEST_REMEMBERED};
use crate::random::SplitMix64;

/// Most bars of a loop.
pub(super) const MAX_BARS: usize = 8;

/// History of the latents, and the loop that plays from it.
pub(super) struct PriorLoop {
    /// Ring of frames, `[frame][latent]`.
    frames: Vec<f32>,
    latents: usize,
    frames_per_second: f64,
    /// Frames played since the start, without those of loops.
    played: usize,
    current: Option<Current>,
    random: SplitMix64,
}

/// Running loop.
struct Current {
    bars: usize,
    /// First frame, counted since the start.
    start: usize,
    /// Length in frames, not a whole number, so that it stays in time.
    length: f64,
    /// Frames since the loop began.
    elapsed: usize,
    /// Beat of the song, and whether it is replaced by what the prior makes.
    beat: i64,
    is_fresh: bool,
}

/// Controls of a loop, and the position in the song.
#[derive(Clone, Copy)]
pub(super) struct LoopSettings {
    /// Bars of the loop; 0 for none.
    pub bars: usize,
    /// Chance of each beat to be made anew, from 0 to 1.
    pub variation: f32,
    /// Beats a minute.
    pub tempo: f32,
    /// Beat of the song.
    pub beat: i64,
}

impl PriorLoop {
    /// Keeps frames of `latents` values.
    pub fn new(latents: usize, frames_per_second: f64) -> Self {
        let frames = (MAX_BARS as f64 * BAR_BEATS * 60.0 / SLOWEST_REMEMBERED * frames_per_second)
            .ceil() as usize;
        Self {
            frames: vec![0.0; frames * latents],
            latents,
            frames_per_second,
            played: 0,
            current: None,
            random: SplitMix64::new(0),
        }
    }

    /// Forgets everything.
    pub fn begin(&mut self, seed: u64) {
        self.played = 0;
        self.current = None;
        self.random = SplitMix64::new(seed);
    }

    /// Replaces the frame that the prior has made with that of the loop, if one runs.
    pub fn run(&mut self, frame: &mut [f32], settings: LoopSettings) {
        if self.current.as_ref().map_or(0, |current| current.bars) != settings.bars {
            self.current = self.start(settings);
        }
        let Some(current) = &mut self.current else {
            let frame_number = self.played;
            self.played += 1;
            self.at(frame_number).copy_from_slice(frame);
            return;
        };
        if settings.beat != current.beat {
            current.beat = settings.beat;
            let chance = (self.random.next_u64() >> 40) as f32 / (1 << 24) as f32;
            current.is_fresh = chance < settings.variation;
        }
        let (is_fresh, source) = (
            current.is_fresh,
            current.start + (current.elapsed as f64 % current.length) as usize,
        );
        current.elapsed += 1;
        let kept = self.at(source);
        if is_fresh {
            kept.copy_from_slice(frame);
        } else {
            frame.copy_from_slice(kept);
        }
    }

    /// Returns the loop of the bars before now; `None` without one, or while not enough has been
    /// played.
    fn start(&self, settings: LoopSettings) -> Option<Current> {
        let length = settings.bars as f64 * BAR_BEATS * 60.0
            / f64::from(settings.tempo).max(SLOWEST_REMEMBERED)
            * self.frames_per_second;
        let start = self.played.checked_sub(length.ceil() as usize)?;
        let fits = settings.bars > 0
            && length >= 1.0
            && length.ceil() as usize * self.latents <= self.frames.len();
        fits.then_some(Current {
            bars: settings.bars,
            start,
            length,
            elapsed: 0,
            beat: settings.beat,
            is_fresh: false,
        })
    }

    /// Returns the slot in the ring of a frame counted since the start.
    fn at(&mut self, frame: usize) -> &mut [f32] {
        let frames = self.frames.len() / self.latents;
        &mut self.frames[frame % frames * self.latents..][..self.latents]
    }

    /// Returns the bytes of the frames.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.frames[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays frames 0, 1, 2, … at ten frames a second and 120 beats a minute, five frames a beat;
    /// `bars` and variation may change.
    fn play(settings: impl Fn(usize) -> (usize, f32), frames: usize) -> Vec<f32> {
        let mut looped = PriorLoop::new(1, 10.0);
        looped.begin(1);
        let step = |n: usize| {
            let (bars, variation) = settings(n);
            let mut frame = [n as f32];
            looped.run(
                &mut frame,
                LoopSettings {
                    bars,
                    variation,
                    tempo: 120.0,
                    beat: n as i64 / 5,
                },
            );
            frame[0]
        };
        (0..frames).map(step).collect()
    }

    #[test]
    fn the_last_bars_are_repeated_until_the_loop_ends() {
        let bar = 20;
        let played = play(|n| (usize::from((50..100).contains(&n)), 0.0), 110);
        for (n, frame) in played.iter().enumerate() {
            let expected = if (50..100).contains(&n) {
                30 + (n - 50) % bar
            } else {
                n
            };
            assert_eq!(*frame, expected as f32, "{n}");
        }
        // Nothing is repeated before enough has been played.
        assert_eq!(
            play(|_| (2, 0.0), 45)[..40],
            *(0..40).map(|n| n as f32).collect::<Vec<_>>()
        );
    }

    #[test]
    fn beats_are_made_anew_as_often_as_the_variation_says() {
        let fresh = |variation: f32| {
            let played = play(|n| (usize::from(n >= 20), variation), 20 + 5 * 400);
            let anew = |n: &usize| played[*n] == *n as f32;
            (25..played.len()).filter(anew).count() as f32 / (played.len() - 25) as f32
        };
        assert_eq!(fresh(0.0), 0.0);
        assert_eq!(fresh(1.0), 1.0);
        let half = fresh(0.5);
        assert!((half - 0.5).abs() < 0.1, "{half}");
        // What was made anew stays in the loop.
        let played = play(
            |n| (usize::from(n >= 20), if n < 40 { 1.0 } else { 0.0 }),
            80,
        );
        assert_eq!(played[60], played[40]);
        assert!(played[45] >= 20.0, "{}", played[45]);
    }
}
