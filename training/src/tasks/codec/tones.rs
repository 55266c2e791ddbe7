//! Tones of random timbre and known pitch, so that an encoder hears the pitch of sounds that are
//! not in its recordings.

use std::f64::consts::TAU;
use std::ops::Range;
use std::sync::Arc;

use ondes_engine::dsp::level::db_to_amplitude_f64;
use ondes_engine::dsp::noise::stream_seed;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use realfft::num_complex::Complex32;
use realfft::{ComplexToReal, RealFftPlanner};
use tch::Tensor;

use crate::data::TensorGroup;
use crate::data::rows::stack;

/// Samples of the table that holds one period.
const TABLE: usize = 2048;
/// Samples for which the frequency stays, since it changes slowly.
const STEADY: usize = 32;
/// Range of the pitch, semitones: from 41 Hz to 2.1 kHz.
const PITCH: Range<f64> = 28.0..96.0;
/// Largest distance of the pitch at the end from that at the start, semitones.
const GLIDE: f64 = 1.0;
/// Largest vibrato, semitones, and its frequency, Hz.
const VIBRATO: f64 = 0.4;
const VIBRATO_HZ: Range<f64> = 4.0..7.0;
/// Highest harmonic as a share of the sample rate.
const HIGHEST_SHARE: f64 = 0.45;
/// Slope of the spectrum, dB per octave.
const SLOPE_DB: Range<f64> = -15.0..0.0;
/// Resonances: how many, their frequencies, Hz, their width, octaves, and their gain, dB.
const RESONANCES: Range<usize> = 1..6;
const RESONANCE_HZ: Range<f64> = 150.0..6_000.0;
const RESONANCE_OCTAVES: Range<f64> = 0.15..0.8;
const RESONANCE_DB: Range<f64> = -10.0..35.0;
/// Largest random gain of each harmonic up or down, dB.
const ROUGHNESS_DB: f64 = 8.0;
/// Share of the tones whose even harmonics are weak, and of those whose fundamental is.
const HOLLOW_SHARE: f64 = 0.15;
const THIN_SHARE: f64 = 0.3;
/// Attenuation of weak harmonics, dB.
const WEAK_DB: Range<f64> = 10.0..40.0;
/// Level of a tone, dB of full scale (root mean square), and of the noise relative to it.
const LEVEL_DB: Range<f64> = -50.0..-10.0;
const NOISE_DB: Range<f64> = -70.0..-15.0;

/// Tones and their pitch.
pub struct Tones {
    /// Sound, `[batch, 1, samples]`.
    pub sound: Tensor,
    /// Pitch, semitones, `[batch, 1, frame]`.
    pub pitch: Tensor,
}

impl Tones {
    /// Stacks tones of equal length.
    #[must_use]
    pub fn new<'a>(tones: impl ExactSizeIterator<Item = &'a Tone> + Clone) -> Self {
        Self {
            sound: stack(tones.clone().map(|tone| tone.sound.as_slice())),
            pitch: stack(tones.map(|tone| tone.pitch.as_slice())),
        }
    }
}

impl TensorGroup for Tones {
    fn map(self, change: &mut dyn FnMut(Tensor) -> Tensor) -> Self {
        Self {
            sound: change(self.sound),
            pitch: change(self.pitch),
        }
    }
}

/// A tone and its pitch.
pub struct Tone {
    /// Sound.
    pub sound: Vec<f32>,
    /// Pitch of each frame, semitones.
    pub pitch: Vec<f32>,
}

/// Source of tones.
pub struct ToneSource {
    seed: u64,
    size: ToneSize,
    inverse: Arc<dyn ComplexToReal<f32>>,
}

impl ToneSource {
    /// Prepares tones of a size.
    #[must_use]
    pub fn new(seed: u64, size: ToneSize) -> Self {
        Self {
            seed,
            size,
            inverse: RealFftPlanner::<f32>::new().plan_fft_inverse(TABLE),
        }
    }

    /// Makes the tone of a row of a step. It depends on seed, step and row alone.
    #[must_use]
    pub fn tone(&self, step: u64, row: usize) -> Tone {
        let Self {
            seed,
            size,
            inverse,
        } = self;
        let seed = stream_seed(stream_seed(*seed, step), row as u64);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut sound, mut pitch) = (
            Vec::with_capacity(size.samples()),
            Vec::with_capacity(size.frames),
        );
        tone(&mut random, size, &**inverse, &mut sound, &mut pitch);
        Tone { sound, pitch }
    }

    /// Returns the size of a tone in memory, bytes.
    #[must_use]
    pub fn tone_bytes(&self) -> usize {
        (self.size.samples() + self.size.frames) * size_of::<f32>()
    }
}

/// Length of tones, and their rate.
#[derive(Clone, Copy, Debug)]
pub struct ToneSize {
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Length of a frame, samples.
    pub hop: usize,
    /// Frames of a tone.
    pub frames: usize,
}

impl ToneSize {
    fn samples(&self) -> usize {
        self.frames * self.hop
    }
}

/// Adds a tone that changes from one timbre to another, and its pitch.
fn tone(
    random: &mut Xoshiro256PlusPlus,
    size: &ToneSize,
    inverse: &dyn ComplexToReal<f32>,
    sound: &mut Vec<f32>,
    pitch: &mut Vec<f32>,
) {
    let rate = f64::from(size.sample_rate);
    let start = random.random_range(PITCH);
    let glide = random.random_range(-GLIDE..GLIDE);
    let vibrato = random.random_range(0.0..VIBRATO);
    let (vibrato_hz, vibrato_phase) = (
        random.random_range(VIBRATO_HZ),
        random.random_range(0.0..TAU),
    );
    let samples = size.samples();
    let semitones = |n: f64| {
        start
            + glide * n / samples as f64
            + vibrato * (TAU * vibrato_hz * n / rate + vibrato_phase).sin()
    };
    let lowest_hz = hertz(start);
    let highest =
        (HIGHEST_SHARE * rate / (lowest_hz * 2_f64.powf((GLIDE + VIBRATO) / 12.0))) as usize;
    let tables =
        [(); 2].map(|()| period(random, lowest_hz, highest.clamp(1, TABLE / 2 - 1), inverse));

    let level = db_to_amplitude_f64(random.random_range(LEVEL_DB));
    let noise = 3_f64.sqrt() * level * db_to_amplitude_f64(random.random_range(NOISE_DB));
    let loudness = [(); 2].map(|()| level * db_to_amplitude_f64(random.random_range(-12.0..0.0)));
    let (mut phase, mut step) = (random.random_range(0.0..1.0), 0.0);
    for n in 0..samples {
        if n.is_multiple_of(STEADY) {
            step = hertz(semitones(n as f64)) / rate;
        }
        let time = n as f64 / samples as f64;
        let between = |ends: [f64; 2]| ends[0] + time * (ends[1] - ends[0]);
        let place = phase * TABLE as f64;
        let index = place as usize % TABLE;
        let (share, next) = (place - index as f64, (index + 1) % TABLE);
        let ends = [0, 1].map(|end: usize| {
            let table = &tables[end];
            f64::from(table[index]) * (1.0 - share) + f64::from(table[next]) * share
        });
        let hiss = noise * random.random_range(-1.0..1.0);
        sound.push((between(ends) * between(loudness) + hiss) as f32);
        phase += step;
        if phase >= 1.0 {
            phase -= 1.0;
        }
    }
    // The pitch of a frame is that at its end, as in recordings.
    pitch.extend((1..=size.frames).map(|frame| semitones((frame * size.hop) as f64) as f32));
}

/// Returns a period of random timbre, of root mean square 1: [`TABLE`] samples.
fn period(
    random: &mut Xoshiro256PlusPlus,
    fundamental_hz: f64,
    highest: usize,
    inverse: &dyn ComplexToReal<f32>,
) -> Vec<f32> {
    let slope = random.random_range(SLOPE_DB);
    let resonances: Vec<[f64; 3]> = (0..random.random_range(RESONANCES))
        .map(|_| {
            let octave = random.random_range(RESONANCE_HZ.start.log2()..RESONANCE_HZ.end.log2());
            [
                octave,
                random.random_range(RESONANCE_OCTAVES),
                random.random_range(RESONANCE_DB),
            ]
        })
        .collect();
    let roughness = random.random_range(0.0..ROUGHNESS_DB);
    let weak = |random: &mut Xoshiro256PlusPlus, share| match random.random_bool(share) {
        true => random.random_range(WEAK_DB),
        false => 0.0,
    };
    let (hollow, thin) = (weak(random, HOLLOW_SHARE), weak(random, THIN_SHARE));
    // Harmonics in phase make pulses, as a voice does; random phases spread them over the period.
    let spread = random.random_range(0.0..TAU);

    let mut spectrum = inverse.make_input_vec();
    for (harmonic, value) in spectrum.iter_mut().enumerate().take(highest + 1).skip(1) {
        let octave = (fundamental_hz * harmonic as f64).log2();
        let resonant: f64 = resonances
            .iter()
            .map(|[centre, width, gain]| gain * (-((octave - centre) / width).powi(2)).exp())
            .sum();
        let even = if harmonic % 2 == 0 { hollow } else { 0.0 };
        let first = if harmonic == 1 { thin } else { 0.0 };
        let rough = roughness * random.random_range(-1.0..1.0);
        let level = slope * (harmonic as f64).log2() + resonant + rough - even - first;
        let phase = spread * random.random_range(-0.5..0.5);
        *value = Complex32::from_polar(db_to_amplitude_f64(level) as f32, phase as f32);
    }
    let mut table = inverse.make_output_vec();
    inverse
        .process(&mut spectrum, &mut table)
        .expect("the lengths fit, and first and last number are real");
    let power = table.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / TABLE as f64;
    let scale = 1.0 / power.sqrt() as f32;
    table.iter_mut().for_each(|sample| *sample *= scale);
    table
}

fn hertz(semitones: f64) -> f64 {
    440.0 * 2_f64.powf((semitones - 69.0) / 12.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(tensor: &Tensor) -> Vec<f32> {
        Vec::<f32>::try_from(tensor.contiguous().view(-1)).expect("numbers")
    }

    #[test]
    fn tones_have_their_pitch_and_depend_on_step_and_row_alone() {
        let size = ToneSize {
            sample_rate: 48_000,
            hop: 256,
            frames: 64,
        };
        let all = |seed: u64, step: u64, rows: Range<usize>| {
            let source = ToneSource::new(seed, size);
            let tones: Vec<Tone> = rows.map(|row| source.tone(step, row)).collect();
            Tones::new(tones.iter())
        };
        let tones = all(1, 2, 0..4);
        assert_eq!(
            (tones.sound.size(), tones.pitch.size()),
            (vec![4, 1, 64 * 256], vec![4, 1, 64])
        );
        assert_eq!(all(1, 2, 3..4).sound, tones.sound.narrow(0, 3, 1));
        assert_ne!(all(1, 3, 3..4).sound, tones.sound.narrow(0, 3, 1));
        assert_ne!(all(2, 2, 3..4).sound, tones.sound.narrow(0, 3, 1));
        for row in 0..4 {
            let sound = numbers(&tones.sound.get(row));
            let level =
                10.0 * (sound.iter().map(|x| x * x).sum::<f32>() / sound.len() as f32).log10();
            assert!((-65.0..-8.0).contains(&level), "{level} dB");
            // A period later the sound is much the same, half a period later it is not.
            let pitch = numbers(&tones.pitch.get(row));
            let middle = 32 * 256;
            let period = 48_000.0 / hertz(f64::from(pitch[32]));
            let likeness = |lag: usize| {
                let power: f32 = (0..1024)
                    .map(|n| sound[middle + n].powi(2) + sound[middle + n + lag].powi(2))
                    .sum();
                2.0 * (0..1024)
                    .map(|n| sound[middle + n] * sound[middle + n + lag])
                    .sum::<f32>()
                    / power
            };
            let (whole, half) = (
                likeness(period.round() as usize),
                likeness((period / 2.0).round() as usize),
            );
            assert!(whole > 0.8 && whole > half + 0.1, "{row}: {whole} {half}");
        }
    }
}
