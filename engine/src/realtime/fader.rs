//! What is heard of one channel where its sound comes late.
//!
//! What was heard last goes on mirrored in time, so that there is no step, and falls to silence; sound that comes back
//! fades in. A fall that has begun is played to its end even where sound is back earlier: the mirror image and the sound
//! are out of phase, and fading from one to the other in the same time could be twice as steep.

use std::f64::consts::PI;

/// How long a fall to silence and a rise from it take, in seconds. Short enough to be no more than a dip, long enough not
/// to click.
const FADE_S: f64 = 0.005;

/// One channel of samples. Every step from one sample to the next is at most the largest of the sound's own plus
/// its peak × π/2 / (samples of a fade), and no sample is above that peak, whatever comes late.
#[derive(Clone, Debug)]
pub(super) struct Fader {
    /// A raised cosine from 0 to 1, both included: one more than the samples of a fade.
    gains: Box<[f32]>,
    /// The last sound as it came, before any fading: a ring as long as a fade.
    recent: Box<[f32]>,
    /// Where in `recent` the next sample goes.
    next: usize,
    /// Which of `gains` the last sample had. There are always at least as many samples of unbroken sound in `recent`.
    level: usize,
    /// While falling: where in `recent` the next sample comes from. It walks back in time.
    mirror: Option<usize>,
}

impl Fader {
    /// Silent. `sample_rate` is in Hz.
    pub(super) fn new(sample_rate: u32) -> Self {
        let fade = ((f64::from(sample_rate) * FADE_S).round() as usize).max(1);
        let gain = |level: usize| (0.5 - 0.5 * (PI * level as f64 / fade as f64).cos()) as f32;
        Self { gains: (0..=fade).map(gain).collect(), recent: vec![0.0; fade].into(), next: 0, level: 0, mirror: None }
    }

    /// `out` holds the sound, in time. It stays as it is unless something was late within the last 10 ms.
    pub(super) fn play(&mut self, out: &mut [f32]) {
        let falling = if self.mirror.is_some() { self.level } else { 0 };
        let (fall, sound) = out.split_at_mut(falling.min(out.len()));
        self.fall(fall);
        self.remember(sound);
        let rise = self.gains[self.level + 1..].len().min(sound.len());
        for (sample, gain) in sound[..rise].iter_mut().zip(&self.gains[self.level + 1..]) {
            *sample *= gain;
        }
        self.level += rise;
    }

    /// The sound for `out` is not there: fills it with what is heard instead.
    pub(super) fn late(&mut self, out: &mut [f32]) {
        let (fall, silence) = out.split_at_mut(self.level.min(out.len()));
        self.fall(fall);
        silence.fill(0.0);
    }

    /// Is heard in full from the next sample on: for sound that begins by itself.
    pub(super) fn open(&mut self) {
        self.level = self.gains.len() - 1;
        self.mirror = None;
    }

    /// Is silent, and fades in with the next sample: for sound that begins in the middle.
    pub(super) fn shut(&mut self) {
        self.level = 0;
        self.mirror = None;
    }

    /// Whether the last sample was silent whatever the sound.
    #[cfg(test)]
    pub(super) fn is_silent(&self) -> bool {
        self.level == 0
    }

    /// Begins the fall or goes on with it, for at most `level` samples.
    fn fall(&mut self, out: &mut [f32]) {
        if out.is_empty() {
            return;
        }
        let before = |at: usize| if at == 0 { self.recent.len() - 1 } else { at - 1 };
        let mut mirror = self.mirror.unwrap_or(before(self.next));
        for sample in out {
            self.level -= 1;
            *sample = self.recent[mirror] * self.gains[self.level];
            mirror = before(mirror);
        }
        self.mirror = (self.level > 0).then_some(mirror);
    }

    /// Keeps the last of `sound`.
    fn remember(&mut self, sound: &[f32]) {
        let fade = self.recent.len();
        let sound = &sound[sound.len().saturating_sub(fade)..];
        let (end, start) = sound.split_at(sound.len().min(fade - self.next));
        self.recent[self.next..][..end.len()].copy_from_slice(end);
        self.recent[..start.len()].copy_from_slice(start);
        self.next = (self.next + sound.len()) % fade;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE: u32 = 48_000;
    const FADE: usize = 240;

    /// Runs of samples that are in time (`true`) or late: `(in time, samples)`.
    type Runs = Vec<(bool, usize)>;

    /// A sound that goes on at every position, with peaks of up to 1: a sine, a triangle, or a constant, whose bound is
    /// the tightest. `frequency` is per sample.
    fn sound(kind: u8, frequency: f64, at: usize) -> f32 {
        let phase = frequency * at as f64;
        match kind {
            0 => (2.0 * PI * phase).sin() as f32,
            1 => (2.0 * phase.rem_euclid(1.0) - 1.0).abs() as f32 * 2.0 - 1.0,
            _ => 1.0,
        }
    }

    /// What is heard of `sound`, in blocks whose lengths are taken from `blocks` in turn.
    fn heard(sound: &[f32], runs: &Runs, blocks: &[usize]) -> Vec<f32> {
        let mut fader = Fader::new(RATE);
        let mut out = sound.to_vec();
        let mut rest = &mut out[..];
        let mut blocks = blocks.iter().cycle();
        for &(in_time, samples) in runs {
            let mut run = rest.split_off_mut(..samples).unwrap();
            while !run.is_empty() {
                let block = run.split_off_mut(..run.len().min(*blocks.next().unwrap())).unwrap();
                if in_time {
                    fader.play(block);
                } else {
                    block.fill(f32::NAN);
                    fader.late(block);
                }
            }
        }
        out
    }

    fn peak(samples: &[f32]) -> f32 {
        samples.iter().fold(0.0, |most, sample| most.max(sample.abs()))
    }

    fn steepest(samples: &[f32]) -> f32 {
        samples.windows(2).fold(0.0, |most, pair| most.max((pair[1] - pair[0]).abs()))
    }

    fn any_runs() -> impl Strategy<Value = Runs> {
        prop::collection::vec((any::<bool>(), prop_oneof![1usize..8, 1usize..FADE, 1usize..1_000]), 1..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn there_is_no_step_whatever_comes_late(
            runs in any_runs(), kind in 0u8..3, frequency_log2 in -14f64..-2.0, start in 0usize..10_000,
        ) {
            let samples = runs.iter().map(|run| run.1).sum();
            let sound: Vec<f32> = (start..).take(samples).map(|at| sound(kind, frequency_log2.exp2(), at)).collect();
            let out = heard(&sound, &runs, &[64]);
            let bound = steepest(&sound) + peak(&sound) * std::f32::consts::FRAC_PI_2 / FADE as f32 + 1e-6;
            prop_assert!(out.iter().all(|sample| sample.is_finite()));
            prop_assert!(steepest(&out) <= bound, "{} > {bound}", steepest(&out));
            prop_assert!(out[0].abs() <= bound);
            prop_assert!(peak(&out) <= peak(&sound));
        }

        #[test]
        fn blocks_do_not_matter(
            runs in any_runs(), frequency in 1e-4f64..0.2, blocks in prop::collection::vec(1usize..600, 1..20),
        ) {
            let samples = runs.iter().map(|run| run.1).sum();
            let sound: Vec<f32> = (0..samples).map(|at| sound(0, frequency, at)).collect();
            prop_assert_eq!(heard(&sound, &runs, &blocks), heard(&sound, &runs, &[usize::MAX]));
        }
    }

    #[test]
    fn sound_in_time_fades_in_and_is_then_untouched() {
        let sound: Vec<f32> = (0..1_000).map(|at| sound(0, 0.01, at)).collect();
        let out = heard(&sound, &vec![(true, 1_000)], &[64]);
        assert_eq!(out[FADE - 1..], sound[FADE - 1..]);
        assert!((out[FADE / 2 - 1] - 0.5 * sound[FADE / 2 - 1]).abs() < 1e-6);
    }

    #[test]
    fn late_sound_goes_on_mirrored_and_falls_silent() {
        let mut fader = Fader::new(RATE);
        assert!(fader.is_silent());
        let mut sound: Vec<f32> = (0..1_000).map(|at| sound(0, 0.013, at)).collect();
        fader.play(&mut sound);
        assert!(!fader.is_silent());
        let mut late = vec![f32::NAN; FADE + 100];
        fader.late(&mut late);
        assert!(fader.is_silent());
        for (k, sample) in late[..FADE].iter().enumerate() {
            let gain = 0.5 + 0.5 * (PI * (k + 1) as f64 / FADE as f64).cos();
            assert!((f64::from(*sample) - gain * f64::from(sound[999 - k])).abs() < 1e-6, "sample {k}");
        }
        assert!(late[FADE - 1..].iter().all(|sample| *sample == 0.0));
    }
}
