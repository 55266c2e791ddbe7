//! A filter that makes a second sound of the same colour, for width.

use ondes_kernels::Kernels;

use super::level::db_to_amplitude;
use super::noise;

/// Taps of the filter, and the time over which they lie, seconds.
const TAPS: usize = 30;
const LENGTH_S: f32 = 0.03;
/// Level of the last tap, dB.
const LAST_DB: f32 = -24.0;
/// Frequency below which nothing passes, Hz: bass stays in the middle.
const LOW_CUT_HZ: f32 = 180.0;
/// Level of the lowpass from which it counts as silent.
const INAUDIBLE: f32 = 1e-12;
/// Seed of the taps.
const SEED: u64 = 3;

/// Returns how long the filter sounds after its input, in samples at a rate in Hz.
#[must_use]
pub fn tail_samples(sample_rate: f32) -> usize {
    (LENGTH_S * sample_rate).ceil() as usize
}

/// Filters a sound so that the result is as loud and about as bright, but not correlated with it:
/// taps at random times and of random signs, which become weaker, like the first reflections of a
/// room (Alary, Politis & Välimäki, "Velvet-noise decorrelator", DAFx-17). Allocates only on
/// construction.
#[derive(Clone, Debug)]
pub struct Decorrelator {
    /// Delay in samples and gain of each tap.
    taps: [(usize, f32); TAPS],
    /// The last samples, and a hop.
    line: Vec<f32>,
    /// Lowpass that is taken from the sound, and its share of a sample.
    bass: f32,
    low_cut: f32,
    kernels: Kernels,
}

impl Decorrelator {
    /// Creates a filter for hops of a length, at a sample rate in Hz.
    #[must_use]
    pub fn new(kernels: Kernels, sample_rate: f32, hop: usize) -> Self {
        let mut random = [0.0; 2 * TAPS];
        noise::fill(kernels, SEED, 0, &mut random);
        let mut taps = std::array::from_fn(|tap| {
            let place = (tap as f32 + 0.5 * (1.0 + random[2 * tap])) / TAPS as f32;
            let gain = db_to_amplitude(LAST_DB * place).copysign(random[2 * tap + 1]);
            ((place * LENGTH_S * sample_rate) as usize, gain)
        });
        let power: f32 = taps.iter().map(|(_, gain)| gain * gain).sum();
        for (_, gain) in &mut taps {
            *gain /= power.sqrt();
        }
        Self {
            taps,
            line: vec![0.0; tail_samples(sample_rate) + hop],
            bass: 0.0,
            low_cut: 1.0 - (-std::f32::consts::TAU * LOW_CUT_HZ / sample_rate).exp(),
            kernels,
        }
    }

    /// Forgets the sound before.
    pub fn reset(&mut self) {
        self.line.fill(0.0);
        self.bass = 0.0;
    }

    /// Adds the filtered sound to `out`, a hop of each.
    ///
    /// # Panics
    /// Panics if the hops have another length.
    pub fn add(&mut self, sound: &[f32], out: &mut [f32]) {
        let hop = out.len();
        let memory = self.line.len() - hop;
        self.line.copy_within(hop.., 0);
        for (line, sample) in self.line[memory..].iter_mut().zip(sound) {
            self.bass += self.low_cut * (sample - self.bass);
            *line = sample - self.bass;
        }
        // Silence stays silence, the same with and without denormal numbers.
        if self.bass.abs() < INAUDIBLE {
            self.bass = 0.0;
        }
        for (delay, gain) in self.taps {
            let delayed = &self.line[memory - delay..][..hop];
            self.kernels.multiply_add(out, delayed, gain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f32 = 48_000.0;

    fn filtered(sound: &[f32], hop: usize) -> Vec<f32> {
        let mut decorrelator = Decorrelator::new(Kernels::detect(), RATE, hop);
        let mut filtered = vec![0.0; sound.len()];
        for (sound, out) in sound.chunks(hop).zip(filtered.chunks_mut(hop)) {
            decorrelator.add(sound, out);
        }
        filtered
    }

    fn product(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>() / a.len() as f32
    }

    #[test]
    fn noise_is_as_loud_and_not_correlated() {
        let mut sound = vec![0.0; 48_000];
        noise::fill(Kernels::detect(), 1, 0, &mut sound);
        let other = filtered(&sound, 128);
        let [before, after] = [&sound, &other].map(|sound| product(sound, sound).sqrt());
        assert!((0.9..1.1).contains(&(after / before)), "{before} {after}");
        let correlation = product(&sound, &other) / (before * after);
        assert!(correlation.abs() < 0.2, "{correlation}");
        // Blocks of another length make the same sound.
        let blocks = filtered(&sound, 64);
        assert!(other.iter().zip(&blocks).all(|(a, b)| (a - b).abs() < 1e-5));
    }

    #[test]
    fn bass_stays_away_and_the_sound_ends() {
        let bass: Vec<f32> = (0..48_000)
            .map(|n| (std::f32::consts::TAU * 40.0 * n as f32 / RATE).sin())
            .collect();
        let other = filtered(&bass, 96)[4_800..].to_vec();
        assert!(product(&other, &other).sqrt() < 0.4);
        let mut click = vec![0.0; 9_600];
        click[0] = 1.0;
        let other = filtered(&click, 96);
        let tail = tail_samples(RATE);
        assert!(other[..tail].iter().any(|sample| sample.abs() > 0.1));
        assert!(other[4 * tail..].iter().all(|sample| sample.abs() < 1e-4));
    }
}
