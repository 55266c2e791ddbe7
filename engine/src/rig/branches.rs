//! Two branches of a rig, between a split and the place where they are mixed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crossbeam_utils::atomic::AtomicCell;

use crate::dsp::delay_line::DelayLine;
use crate::dsp::level::db_to_amplitude;
use crate::dsp::ramp::Ramp;
use crate::effects::CHANGE_S;

/// Longest delay of a branch against the other, with that of their latencies, s.
pub const MAX_DELAY_S: f64 = 0.25;
/// Level at which two equal branches are as loud as one, dB.
pub const HALF_DB: f32 = -6.0206;

/// Samples of a branch that are kept, to compare the branches.
const HEARD: usize = 1 << 14;
/// Mean square of a branch that is loud enough for it, −60 dB.
const SOFTEST: f64 = 1e-6;
/// Least correlation of branches that are alike.
const LEAST_LIKENESS: f64 = 0.3;

/// Way of a block: in the sound as a whole, or in one of two branches. Neighbours that are in a
/// branch stand between the same split and mix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lane {
    /// No branch.
    #[default]
    Whole,
    /// The first branch.
    First,
    /// The second branch.
    Second,
}

/// Settings of a branch at the mix, which one thread changes while another one plays it.
#[derive(Debug)]
pub struct BranchSettings {
    level_db: AtomicCell<f32>,
    pan: AtomicCell<f32>,
    inverted: AtomicBool,
    delay_ms: AtomicCell<f32>,
    /// `[sample % HEARD]`: the newest samples of the branch, mono and delayed, as it comes to the
    /// mix.
    heard: Box<[AtomicCell<f32>]>,
    /// Number of the next sample.
    next: AtomicUsize,
}

impl Default for BranchSettings {
    fn default() -> Self {
        Self {
            level_db: AtomicCell::new(HALF_DB),
            pan: AtomicCell::new(0.0),
            inverted: AtomicBool::new(false),
            delay_ms: AtomicCell::new(0.0),
            heard: (0..HEARD).map(|_| AtomicCell::new(0.0)).collect(),
            next: AtomicUsize::new(0),
        }
    }
}

impl BranchSettings {
    /// Sets level, dB, place, −1 left to 1 right, polarity, and delay, ms up to [`MAX_DELAY_S`].
    pub fn set(&self, level_db: f32, pan: f32, inverted: bool, delay_ms: f32) {
        self.level_db.store(level_db);
        self.pan.store(pan.clamp(-1.0, 1.0));
        self.inverted.store(inverted, Relaxed);
        self.delay_ms.store(delay_ms.max(0.0));
    }

    fn record(&self, sample: f32) {
        let next = self.next.load(Relaxed);
        self.heard[next % HEARD].store(sample);
        self.next.store(next.wrapping_add(1), Relaxed);
    }

    /// Returns the newest samples of the branch before the one of a number, without their mean.
    fn heard(&self, end: usize) -> Vec<f32> {
        // All places, from the oldest sample on; numbers may wrap.
        let places = (0..HEARD).map(|place| end.wrapping_add(place) % HEARD);
        let mut heard: Vec<f32> = places.map(|place| self.heard[place].load()).collect();
        let mean = heard.iter().sum::<f32>() / HEARD as f32;
        heard.iter_mut().for_each(|sample| *sample -= mean);
        heard
    }

    /// Returns the gains of the left and the right side.
    fn gains(&self) -> [f32; 2] {
        let sign = if self.inverted.load(Relaxed) {
            -1.0
        } else {
            1.0
        };
        let gain = sign * db_to_amplitude(self.level_db.load());
        let pan = self.pan.load();
        [(1.0 - pan).min(1.0), (1.0 + pan).min(1.0)].map(|side| gain * side)
    }
}

/// Lag of the second branch behind the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Samples; negative if it is ahead.
    pub samples: isize,
    /// True if the branches are nearly opposite.
    pub opposite: bool,
}

/// Returns how far the second branch is behind the first, by the cross-correlation of what was heard
/// last, up to `most` samples; `None` if they are too soft or too different.
#[must_use]
pub fn lag(branches: &[BranchSettings; 2], most: usize) -> Option<Lag> {
    let most = most.min(HEARD / 4);
    let end = branches[0]
        .next
        .load(Relaxed)
        .min(branches[1].next.load(Relaxed));
    let [first, second] = branches.each_ref().map(|branch| branch.heard(end));
    let first = &first[most..HEARD - most];
    let energy = |sound: &[f32]| sound.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    let correlation = |shift: usize| {
        let pairs = first.iter().zip(&second[shift..]);
        pairs
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum::<f64>()
    };
    let shifts = (0..=2 * most).map(|shift| (shift, correlation(shift)));
    let (shift, found) = shifts.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let energies = [energy(first), energy(&second[shift..][..first.len()])];
    let is_loud = energies
        .iter()
        .all(|energy| *energy > SOFTEST * first.len() as f64);
    let is_alike = found.abs() > LEAST_LIKENESS * (energies[0] * energies[1]).sqrt();
    (is_loud && is_alike).then_some(Lag {
        samples: shift as isize - most as isize,
        opposite: found < 0.0,
    })
}

/// Delay of both sides of a branch; a new one is cross-faded.
struct BranchDelay {
    lines: [DelayLine; 2],
    now: usize,
    next: usize,
    fade: Ramp,
}

impl BranchDelay {
    fn new(sample_rate: u32) -> Self {
        let longest = (MAX_DELAY_S * f64::from(sample_rate)) as usize;
        let line = DelayLine::new(longest);
        Self {
            lines: [line.clone(), line],
            now: 0,
            next: 0,
            fade: Ramp::new(1.0, CHANGE_S, sample_rate),
        }
    }

    fn set(&mut self, samples: usize) {
        if samples != self.next && self.fade.settled() == Some(1.0) {
            (self.now, self.next) = (self.next, samples);
            self.fade.jump(0.0);
            self.fade.set_target(1.0);
        }
    }

    fn is_at(&self, samples: usize) -> bool {
        self.next == samples && self.fade.settled() == Some(1.0)
    }

    fn finish(&mut self) {
        self.fade.finish();
        self.lines.iter_mut().for_each(DelayLine::reset);
    }

    /// Returns the delayed sound of both sides.
    fn delay(&mut self, sound: [f32; 2]) -> [f32; 2] {
        let fade = self.fade.advance();
        let (now, next) = (self.now, self.next);
        std::array::from_fn(|side| {
            let line = &mut self.lines[side];
            line.push(sound[side]);
            let (now, next) = (line.at(now), line.at(next));
            now + fade * (next - now)
        })
    }
}

/// Mixes two branches. While it leaves it becomes the first branch alone, without delay.
pub(super) struct BranchMixer {
    delays: [BranchDelay; 2],
    /// `[branch][side]`
    gains: [[Ramp; 2]; 2],
    sample_rate: u32,
}

impl BranchMixer {
    pub(super) fn new(sample_rate: u32) -> Self {
        let gains = |gain| [Ramp::new(gain, CHANGE_S, sample_rate); 2];
        Self {
            delays: [BranchDelay::new(sample_rate), BranchDelay::new(sample_rate)],
            gains: [gains(1.0), gains(0.0)],
            sample_rate,
        }
    }

    /// Takes the settings over, with the latency of each branch in samples; `None` if there is only
    /// the first branch, or will be.
    pub(super) fn set(&mut self, branches: Option<(&[BranchSettings; 2], [usize; 2])>) {
        let Some((settings, latencies)) = branches else {
            self.delays.iter_mut().for_each(|delay| delay.set(0));
            for (gains, gain) in self.gains.iter_mut().zip([1.0, 0.0]) {
                gains.iter_mut().for_each(|side| side.set_target(gain));
            }
            return;
        };
        let longest = latencies[0].max(latencies[1]);
        let limit = (MAX_DELAY_S * f64::from(self.sample_rate)) as usize;
        for branch in 0..2 {
            let delay = settings[branch].delay_ms.load() / 1e3 * self.sample_rate as f32;
            let delay = (delay.round() as usize).saturating_add(longest - latencies[branch]);
            self.delays[branch].set(delay.min(limit));
            for (ramp, gain) in self.gains[branch].iter_mut().zip(settings[branch].gains()) {
                ramp.set_target(gain);
            }
        }
    }

    /// Returns whether only the first branch is heard, as it is.
    pub(super) fn is_through(&self) -> bool {
        let gains = [(0, 1.0), (1, 0.0)].map(|(branch, gain)| {
            let gains: &[Ramp; 2] = &self.gains[branch];
            gains.iter().all(|side| side.settled() == Some(gain))
        });
        gains == [true, true] && self.delays.iter().all(|delay| delay.is_at(0))
    }

    /// Completes all changes, and forgets all sound.
    pub(super) fn reset(&mut self) {
        self.gains.iter_mut().flatten().for_each(Ramp::finish);
        self.delays.iter_mut().for_each(BranchDelay::finish);
    }

    /// Mixes the second branch into the first, and notes what is heard of both.
    pub(super) fn mix(
        &mut self,
        settings: &[BranchSettings; 2],
        first: [&mut [f32]; 2],
        second: [&[f32]; 2],
    ) {
        let [left, right] = first;
        let sides = left.iter_mut().zip(right);
        let others = second[0].iter().zip(second[1]);
        for ((left, right), (other_left, other_right)) in sides.zip(others) {
            let first = self.delays[0].delay([*left, *right]);
            let second = self.delays[1].delay([*other_left, *other_right]);
            for (branch, [left, right]) in settings.iter().zip([first, second]) {
                branch.record(0.5 * (left + right));
            }
            let [of_first, of_second] = &mut self.gains;
            for (side, sample) in [left, right].into_iter().enumerate() {
                *sample = of_first[side].advance() * first[side]
                    + of_second[side].advance() * second[side];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsp::level::max_step;
    use crate::effects::tests::sine;

    const RATE: u32 = 48_000;

    /// Mixes a sound with itself; returns the left and the right side.
    fn mix(mixer: &mut BranchMixer, sound: &[f32]) -> [Vec<f32>; 2] {
        let mut sides = [sound.to_vec(), sound.to_vec()];
        let [left, right] = &mut sides;
        mixer.mix(&Default::default(), [left, right], [sound, sound]);
        sides
    }

    #[test]
    fn levels_places_and_polarity_of_the_branches() {
        let settings = [BranchSettings::default(), BranchSettings::default()];
        let mut mixer = BranchMixer::new(RATE);
        let sound = sine(220.0, -10.0, 0.1);
        assert_eq!(mix(&mut mixer, &sound), [sound.clone(), sound.clone()]);
        mixer.set(Some((&settings, [0, 0])));
        assert!(!mixer.is_through());
        let both = mix(&mut mixer, &sound);
        // Two equal branches change nothing but by rounding, on the way there neither.
        let far = both[0].iter().zip(&sound).map(|(a, b)| (a - b).abs());
        assert!(far.fold(0.0, f32::max) < 1e-4);
        settings[0].set(0.0, -1.0, false, 0.0);
        settings[1].set(-6.0206, 1.0, true, 0.0);
        mixer.set(Some((&settings, [0, 0])));
        mixer.reset();
        let [left, right] = mix(&mut mixer, &sound);
        assert_eq!(left, sound);
        let far = right.iter().zip(&sound).map(|(a, b)| (a + 0.5 * b).abs());
        assert!(far.fold(0.0, f32::max) < 1e-4);
        mixer.set(None);
        mix(&mut mixer, &sound);
        assert!(mixer.is_through());
        assert_eq!(mix(&mut mixer, &sound)[1], sound);
    }

    #[test]
    fn branches_are_aligned_and_delays_change_without_a_click() {
        let settings = [BranchSettings::default(), BranchSettings::default()];
        settings[0].set(0.0, 0.0, false, 0.0);
        settings[1].set(-200.0, 0.0, false, 0.0);
        let mut mixer = BranchMixer::new(RATE);
        mixer.set(Some((&settings, [0, 72])));
        mixer.reset();
        let mut impulse = vec![0.0; 300];
        impulse[0] = 1.0;
        let heard = mix(&mut mixer, &impulse)[0].clone();
        assert_eq!(heard.iter().position(|sample| *sample > 0.5), Some(72));
        let sound = sine(220.0, -10.0, 0.2);
        mix(&mut mixer, &sound);
        settings[0].set(0.0, 0.0, false, 3.0);
        mixer.set(Some((&settings, [0, 72])));
        let step = max_step(&mix(&mut mixer, &sound)[0][144..]);
        assert!(step < 0.012, "a step of {step}");
        let heard = mix(&mut mixer, &impulse)[0].clone();
        assert_eq!(heard[216], 1.0, "3 ms and the latency of the other");
        // Nothing is longer than the limit.
        settings[0].set(0.0, 0.0, false, 1e9);
        mixer.set(Some((&settings, [0, usize::MAX])));
        mix(&mut mixer, &sound);
    }

    #[test]
    fn the_lag_of_a_branch_is_found() {
        let mut random = crate::random::SplitMix64::new(3);
        let noise: Vec<f32> = (0..20_000)
            .map(|_| 0.1 * ((random.next_u64() >> 40) as f32 / (1 << 23) as f32 - 1.0))
            .collect();
        let found = |lag_samples: isize, sign: f32, level: f32| {
            let settings = [BranchSettings::default(), BranchSettings::default()];
            let mut mixer = BranchMixer::new(RATE);
            let shifted = |n: usize| {
                let place = n as isize - lag_samples;
                let sample = usize::try_from(place)
                    .ok()
                    .and_then(|place| noise.get(place));
                sign * sample.copied().unwrap_or_default()
            };
            let mut first: Vec<f32> = noise.iter().map(|sample| level * sample).collect();
            let second: Vec<f32> = (0..noise.len()).map(|n| level * shifted(n)).collect();
            let mut right = first.clone();
            mixer.mix(&settings, [&mut first, &mut right], [&second, &second]);
            lag(&settings, 960)
        };
        let expected = |samples, opposite| Some(Lag { samples, opposite });
        assert_eq!(found(0, 1.0, 1.0), expected(0, false));
        assert_eq!(found(31, -1.0, 1.0), expected(31, true));
        assert_eq!(found(-500, 1.0, 1.0), expected(-500, false));
        assert_eq!(found(5_000, 1.0, 1.0), None, "beyond the range");
        assert_eq!(found(0, 1.0, 1e-3), None, "too soft");
    }
}
