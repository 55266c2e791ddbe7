//! Fades one channel out when its output is late, and in when it is back.
//!
//! A fade-out plays the last output backwards, so that there is no step. It always completes, even
//! if the output is back earlier: mirrored and new output are out of phase, so a cross-fade between
//! them could be twice as steep.

use std::f64::consts::PI;

/// Duration of a fade in seconds: short enough to be only a dip, long enough not to click.
const FADE_S: f64 = 0.005;

/// Fader of one channel. Whatever is late, the step from one sample to the next is at most the
/// largest step of the sound itself plus its peak × π/2 / (samples of a fade), and no sample
/// exceeds that peak.
#[derive(Clone, Debug)]
pub(super) struct DropoutFader {
    /// Raised cosine from 0 to 1, both included: one more value than a fade has samples.
    gains: Box<[f32]>,
    /// Ring buffer of the last output before fading, as long as a fade.
    recent: Box<[f32]>,
    /// Write position in `recent`.
    next: usize,
    /// Index of the last sample's gain; `recent` always holds at least as many consecutive samples.
    level: usize,
    /// Read position in `recent` during a fade-out; moves backwards.
    mirror: Option<usize>,
}

impl DropoutFader {
    /// Creates a silent fader; `sample_rate` is in Hz.
    pub(super) fn new(sample_rate: u32) -> Self {
        let fade = ((f64::from(sample_rate) * FADE_S).round() as usize).max(1);
        let gain = |level: usize| (0.5 - 0.5 * (PI * level as f64 / fade as f64).cos()) as f32;
        Self {
            gains: (0..=fade).map(gain).collect(),
            recent: vec![0.0; fade].into(),
            next: 0,
            level: 0,
            mirror: None,
        }
    }

    /// Processes output that is in time; leaves it unchanged unless some was late within the last
    /// 10 ms.
    pub(super) fn play(&mut self, out: &mut [f32]) {
        let fade_out_samples = if self.mirror.is_some() { self.level } else { 0 };
        let (fade_out, sound) = out.split_at_mut(fade_out_samples.min(out.len()));
        self.fade_out(fade_out);
        self.store(sound);
        let fade_in_samples = self.gains[self.level + 1..].len().min(sound.len());
        for (sample, gain) in sound[..fade_in_samples]
            .iter_mut()
            .zip(&self.gains[self.level + 1..])
        {
            *sample *= gain;
        }
        self.level += fade_in_samples;
    }

    /// Fills `out`, for which the output is late.
    pub(super) fn fill_missing(&mut self, out: &mut [f32]) {
        let (fade_out, silence) = out.split_at_mut(self.level.min(out.len()));
        self.fade_out(fade_out);
        silence.fill(0.0);
    }

    /// Starts without a fade-in, for sound that begins from silence.
    pub(super) fn open(&mut self) {
        self.level = self.gains.len() - 1;
        self.mirror = None;
    }

    /// Starts with a fade-in, for sound that begins in the middle.
    pub(super) fn shut(&mut self) {
        self.level = 0;
        self.mirror = None;
    }

    /// Returns true if the last gain was 0.
    #[cfg(test)]
    pub(super) fn is_silent(&self) -> bool {
        self.level == 0
    }

    /// Starts or continues a fade-out, for at most `level` samples.
    fn fade_out(&mut self, out: &mut [f32]) {
        if out.is_empty() {
            return;
        }
        let before = |at: usize| {
            if at == 0 {
                self.recent.len() - 1
            } else {
                at - 1
            }
        };
        let mut mirror = self.mirror.unwrap_or(before(self.next));
        for sample in out {
            self.level -= 1;
            *sample = self.recent[mirror] * self.gains[self.level];
            mirror = before(mirror);
        }
        self.mirror = (self.level > 0).then_some(mirror);
    }

    /// Stores the end of `sound`.
    fn store(&mut self, sound: &[f32]) {
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
    use crate::dsp::level::max_step;
    use crate::dsp::level::peak;

    const RATE: u32 = 48_000;
    const FADE: usize = 240;

    /// Runs of samples as `(in time, samples)`.
    type Runs = Vec<(bool, usize)>;

    /// Returns a sample of a sine, a triangle, or a constant, whose bound is the tightest;
    /// `frequency` is per sample.
    fn sound(kind: u8, frequency: f64, at: usize) -> f32 {
        let phase = frequency * at as f64;
        match kind {
            0 => (2.0 * PI * phase).sin() as f32,
            1 => (2.0 * phase.rem_euclid(1.0) - 1.0).abs() as f32 * 2.0 - 1.0,
            _ => 1.0,
        }
    }

    /// Plays `sound` in blocks of these lengths, in turn.
    fn played(sound: &[f32], runs: &Runs, blocks: &[usize]) -> Vec<f32> {
        let mut fader = DropoutFader::new(RATE);
        let mut out = sound.to_vec();
        let mut rest = &mut out[..];
        let mut blocks = blocks.iter().cycle();
        for &(in_time, samples) in runs {
            let mut run = rest.split_off_mut(..samples).unwrap();
            while !run.is_empty() {
                let block = run
                    .split_off_mut(..run.len().min(*blocks.next().unwrap()))
                    .unwrap();
                if in_time {
                    fader.play(block);
                } else {
                    block.fill(f32::NAN);
                    fader.fill_missing(block);
                }
            }
        }
        out
    }

    fn any_runs() -> impl Strategy<Value = Runs> {
        prop::collection::vec(
            (
                any::<bool>(),
                prop_oneof![1usize..8, 1usize..FADE, 1usize..1_000],
            ),
            1..40,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn steps_are_bounded_whatever_is_late(
            runs in any_runs(), kind in 0u8..3, frequency_log2 in -14f64..-2.0, start in 0usize..10_000,
        ) {
            let samples = runs.iter().map(|run| run.1).sum();
            let sound: Vec<f32> = (start..).take(samples).map(|at| sound(kind, frequency_log2.exp2(), at)).collect();
            let out = played(&sound, &runs, &[64]);
            let bound = max_step(&sound) + peak(&sound) * std::f32::consts::FRAC_PI_2 / FADE as f32 + 1e-6;
            prop_assert!(out.iter().all(|sample| sample.is_finite()));
            prop_assert!(max_step(&out) <= bound, "{} > {bound}", max_step(&out));
            prop_assert!(out[0].abs() <= bound);
            prop_assert!(peak(&out) <= peak(&sound));
        }

        #[test]
        fn output_is_independent_of_block_sizes(
            runs in any_runs(), frequency in 1e-4f64..0.2, blocks in prop::collection::vec(1usize..600, 1..20),
        ) {
            let samples = runs.iter().map(|run| run.1).sum();
            let sound: Vec<f32> = (0..samples).map(|at| sound(0, frequency, at)).collect();
            prop_assert_eq!(played(&sound, &runs, &blocks), played(&sound, &runs, &[usize::MAX]));
        }
    }

    #[test]
    fn output_fades_in_and_is_then_unchanged() {
        let sound: Vec<f32> = (0..1_000).map(|at| sound(0, 0.01, at)).collect();
        let out = played(&sound, &vec![(true, 1_000)], &[64]);
        assert_eq!(out[FADE - 1..], sound[FADE - 1..]);
        assert!((out[FADE / 2 - 1] - 0.5 * sound[FADE / 2 - 1]).abs() < 1e-6);
    }

    #[test]
    fn a_fade_out_plays_the_last_output_backwards() {
        let mut fader = DropoutFader::new(RATE);
        assert!(fader.is_silent());
        let mut sound: Vec<f32> = (0..1_000).map(|at| sound(0, 0.013, at)).collect();
        fader.play(&mut sound);
        assert!(!fader.is_silent());
        let mut late = vec![f32::NAN; FADE + 100];
        fader.fill_missing(&mut late);
        assert!(fader.is_silent());
        for (k, sample) in late[..FADE].iter().enumerate() {
            let gain = 0.5 + 0.5 * (PI * (k + 1) as f64 / FADE as f64).cos();
            assert!(
                (f64::from(*sample) - gain * f64::from(sound[999 - k])).abs() < 1e-6,
                "sample {k}"
            );
        }
        assert!(late[FADE - 1..].iter().all(|sample| *sample == 0.0));
    }
}
