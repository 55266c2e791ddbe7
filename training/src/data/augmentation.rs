//! Augmentation of training crops, which makes pitches between and beside the recorded ones, softer
//! notes, chords, and the sound of other rooms and microphones.

use anyhow::ensure;
use ondes_engine::Kernels;
use ondes_engine::dsp::noise;
use ondes_engine::dsp::resample::resample;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::biquad::Biquad;
use super::crop::Crop;
use crate::check;

/// Denominator of the ratios that sound is resampled by. Small, so that a resampler works in short
/// blocks; a step is 13 cents.
const DENOMINATOR: u32 = 128;
/// Nominal sample rate for resampling, Hz.
const RATE: u32 = 100 * DENOMINATOR;

/// Ranges of the frequencies of the equaliser's low shelf, peak and high shelf, Hz.
const LOW_SHELF_HZ: (f64, f64) = (100.0, 500.0);
const PEAK_HZ: (f64, f64) = (500.0, 5_000.0);
const HIGH_SHELF_HZ: (f64, f64) = (3_000.0, 10_000.0);
/// Highest of these frequencies as a share of the sample rate.
const HIGHEST_SHARE: f64 = 0.4;
/// Largest attenuation of a crop that is added to another, dB.
const MIX_RANGE_DB: f32 = 12.0;
/// Range of the level of the noise below [`Augmentation::noise`], dB.
const NOISE_RANGE_DB: f64 = 30.0;
/// Level of uniform noise in [−1, 1), dB: that of 1/√3.
const UNIFORM_DB: f64 = -4.771_212_547_196_624;

/// Augmentation of training crops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Augmentation {
    /// Largest shift of the pitch up or down, by playing faster or slower, semitones. The
    /// A-weighted level of low notes changes by up to half a dB per semitone, which the loudness
    /// does not follow. If absent, 0; for instruments, 1 where the recordings are single notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pitch: Option<f64>,
    /// Largest attenuation, dB. For recordings of one dynamic only, whose soft notes can be no more
    /// than loud ones turned down: it teaches that the timbre does not depend on the loudness. If
    /// absent, 0; for instruments, 24 where the recordings have one dynamic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// Largest gain of each of three filters at random frequencies, a low shelf, a peak and a high
    /// shelf, dB. For codecs: the filtered sound is input and target. Pitch stays; the loudness
    /// changes by a part of it, and is not measured again.
    pub equalizer: f64,
    /// Highest level of white noise that is added, dB of full scale; crops have up to 30 dB less.
    /// For codecs: it is part of input and target, so that a codec learns to give the noise of a
    /// microphone back as noise, and not as tones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// Probability that a second crop, up to 12 dB softer, is added. For codecs without harmonics:
    /// the sum is input and target, and has no pitch of its own.
    pub mix: f64,
}

impl Augmentation {
    /// Returns the largest shift of the pitch, semitones.
    #[must_use]
    pub fn pitch(&self) -> f64 {
        self.pitch.unwrap_or(0.0)
    }

    /// Returns the largest attenuation, dB.
    #[must_use]
    pub fn gain(&self) -> f64 {
        self.gain.unwrap_or(0.0)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Returns an error that names the field.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(
            (0.0..=12.0).contains(&self.pitch()),
            "augmentation.pitch must be 0 to 12 semitones"
        );
        ensure!(
            (0.0..=60.0).contains(&self.gain()),
            "augmentation.gain must be 0 to 60 dB"
        );
        ensure!(
            (0.0..=24.0).contains(&self.equalizer),
            "augmentation.equalizer must be 0 to 24 dB"
        );
        let noise = self
            .noise
            .is_none_or(|level| (-120.0..=-20.0).contains(&level));
        ensure!(noise, "augmentation.noise must be -120 to -20 dB");
        check::in_range("augmentation.mix", self.mix, 0.0..=1.0)?;
        Ok(())
    }

    /// Checks that nothing changes the timbre, which an instrument learns as it was recorded.
    ///
    /// # Errors
    /// Returns an error that names the field.
    pub fn check_timbre(&self) -> anyhow::Result<()> {
        ensure!(
            self.equalizer == 0.0,
            "augmentation.equalizer is for codecs: an instrument learns the timbre as it is"
        );
        ensure!(
            self.noise.is_none(),
            "augmentation.noise is for codecs: an instrument learns the noise as it is"
        );
        ensure!(
            self.mix == 0.0,
            "augmentation.mix is for codecs: an instrument plays one note"
        );
        Ok(())
    }

    /// Filters the sound of a crop, and adds noise.
    pub(super) fn colour(
        &self,
        sound: &mut [f32],
        sample_rate: u32,
        random: &mut Xoshiro256PlusPlus,
    ) {
        if self.equalizer > 0.0 {
            let highest = HIGHEST_SHARE * f64::from(sample_rate);
            let mut draw = |(low, high): (f64, f64)| {
                let octaves = random.random_range(0.0..=(high / low).log2());
                (
                    (low * octaves.exp2()).min(highest),
                    random.random_range(-self.equalizer..=self.equalizer),
                )
            };
            let [low, peak, high] = [LOW_SHELF_HZ, PEAK_HZ, HIGH_SHELF_HZ].map(&mut draw);
            Biquad::shelf(low.0, low.1, false, sample_rate).process(sound);
            Biquad::peak(peak.0, peak.1, sample_rate).process(sound);
            Biquad::shelf(high.0, high.1, true, sample_rate).process(sound);
        }
        if let Some(highest) = self.noise {
            let level = highest - UNIFORM_DB - random.random_range(0.0..NOISE_RANGE_DB);
            let gain = 10_f64.powf(level / 20.0) as f32;
            let mut noise = vec![0.0; sound.len()];
            noise::fill(Kernels::detect(), random.random(), 0, &mut noise);
            sound
                .iter_mut()
                .zip(noise)
                .for_each(|(sample, noise)| *sample += gain * noise);
        }
    }

    /// Draws whether another crop is added, and with which gain, dB. Draws nothing without mixing,
    /// so that crops are those of a run without it.
    pub(super) fn draw_mix(&self, random: &mut Xoshiro256PlusPlus) -> Option<f32> {
        let is_mixed = self.mix > 0.0 && random.random_bool(self.mix);
        is_mixed.then(|| -random.random_range(0.0..MIX_RANGE_DB))
    }

    /// Draws a gain, dB.
    pub(super) fn draw_gain(&self, random: &mut Xoshiro256PlusPlus) -> f32 {
        if self.gain() == 0.0 {
            0.0
        } else {
            -random.random_range(0.0..self.gain()) as f32
        }
    }

    /// Draws a shift: `DENOMINATOR + shift` samples of the source become `DENOMINATOR`.
    pub(super) fn draw(&self, random: &mut Xoshiro256PlusPlus) -> i32 {
        let pitch = self.pitch();
        if pitch == 0.0 {
            return 0;
        }
        let semitones = random.random_range(-pitch..=pitch);
        (f64::from(DENOMINATOR) * ((semitones / 12.0).exp2() - 1.0)).round() as i32
    }

    /// Returns the number of frames of the source that a crop needs.
    pub(super) fn source_frames(&self, frames: usize, shift: i32) -> usize {
        if shift == 0 {
            frames
        } else {
            (frames as f64 * speed(shift)).ceil() as usize + 1
        }
    }

    /// Resamples a crop of the source to `frames`.
    ///
    /// # Errors
    /// Returns an error if the resampler refuses the ratio.
    pub(super) fn apply(
        &self,
        source: Crop,
        frames: usize,
        hop: usize,
        shift: i32,
    ) -> anyhow::Result<Crop> {
        if shift == 0 {
            return Ok(source);
        }
        let mut audio = resample(&source.audio, RATE.saturating_add_signed(100 * shift), RATE)?;
        audio.resize(frames * hop, 0.0);
        let semitones = (12.0 * speed(shift).log2()) as f32;
        // Frame `i` of the result describes the instant `i + 1` from its start.
        let at = |values: &[f32], index: usize| {
            let position = (index + 1) as f64 * speed(shift) - 1.0;
            let position = position.clamp(0.0, (values.len() - 1) as f64);
            let (before, share) = (position as usize, position.fract() as f32);
            let after = (before + 1).min(values.len() - 1);
            values[before] + share * (values[after] - values[before])
        };
        let resampled = |values: &[f32]| {
            (0..frames)
                .map(|index| at(values, index))
                .collect::<Vec<f32>>()
        };
        let pitch = resampled(&source.pitch)
            .iter()
            .map(|pitch| pitch + semitones)
            .collect();
        Ok(Crop {
            pitch,
            loudness: resampled(&source.loudness),
            audio,
            knobs: source.knobs,
        })
    }
}

/// Returns the speed at which the source is played.
fn speed(shift: i32) -> f64 {
    1.0 + f64::from(shift) / f64::from(DENOMINATOR)
}

#[cfg(test)]
mod tests {
    use ondes_engine::dsp::analysis::analyse;
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn pitch_and_loudness_follow_the_sound() {
        const SAMPLE_RATE: f64 = 16_000.0;
        const HOP: usize = 160;
        let augmentation = Augmentation {
            pitch: Some(2.0),
            ..Augmentation::default()
        };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        for _ in 0..5 {
            let shift = augmentation.draw(&mut random);
            let frames = augmentation.source_frames(100, shift);
            // A tone that swells, where ears hear all frequencies alike.
            let tone = |n: usize| {
                let level = 0.05 + 0.4 * n as f64 / (frames * HOP) as f64;
                (level * (std::f64::consts::TAU * 1_000.0 * n as f64 / SAMPLE_RATE).sin()) as f32
            };
            let audio: Vec<f32> = (0..frames * HOP).map(tone).collect();
            let analysed = analyse(&audio, SAMPLE_RATE, HOP);
            let source = Crop {
                pitch: analysed[1..]
                    .iter()
                    .map(|frame| frame.pitch.semitones)
                    .chain([83.2])
                    .collect(),
                loudness: analysed[1..]
                    .iter()
                    .map(|frame| frame.loudness)
                    .chain([-9.0])
                    .collect(),
                audio,
                ..Crop::default()
            };
            let crop = augmentation
                .apply(source, 100, HOP, shift)
                .expect("a ratio in range");
            assert_eq!(
                (crop.audio.len(), crop.pitch.len(), crop.loudness.len()),
                (16_000, 100, 100)
            );
            let heard = analyse(&crop.audio, SAMPLE_RATE, HOP);
            for frame in 40..90 {
                let heard = &heard[frame + 1];
                let errors = [
                    heard.pitch.semitones - crop.pitch[frame],
                    heard.loudness - crop.loudness[frame],
                ];
                assert!(
                    errors[0].abs() < 0.05 && errors[1].abs() < 0.6,
                    "shift {shift}, frame {frame}: {errors:?}"
                );
            }
        }
    }

    #[test]
    fn the_equalizer_keeps_its_range_and_the_noise_its_level() {
        const RATE: u32 = 48_000;
        let level = |sound: &[f32]| {
            let power = sound
                .iter()
                .map(|sample| f64::from(sample * sample))
                .sum::<f64>()
                / sound.len() as f64;
            10.0 * power.log10()
        };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
        let equalizer = Augmentation {
            equalizer: 3.0,
            ..Augmentation::default()
        };
        let tone = |frequency: f64| -> Vec<f32> {
            let sample = |n: usize| {
                (std::f64::consts::TAU * frequency * n as f64 / f64::from(RATE)).sin() as f32
            };
            (0..RATE as usize).map(sample).collect()
        };
        for frequency in [50.0, 1_500.0, 15_000.0] {
            let gains: Vec<f64> = (0..40)
                .map(|_| {
                    let mut sound = tone(frequency);
                    equalizer.colour(&mut sound, RATE, &mut random);
                    level(&sound) - level(&tone(frequency))
                })
                .collect();
            let [low, high] = [f64::min, f64::max]
                .map(|pick| gains.iter().copied().reduce(pick).expect("there are some"));
            // One filter acts at each of these, and a part of the others.
            assert!(
                low > -6.0 && high < 6.0 && high - low > 3.0,
                "{frequency} Hz: {low} to {high} dB"
            );
        }
        let noise = Augmentation {
            noise: Some(-50.0),
            ..Augmentation::default()
        };
        let levels: Vec<f64> = (0..40)
            .map(|_| {
                let mut sound = vec![0.0; 48_000];
                noise.colour(&mut sound, RATE, &mut random);
                level(&sound)
            })
            .collect();
        assert!(
            levels.iter().all(|level| (-80.1..=-49.9).contains(level)),
            "{levels:?}"
        );
        assert!(
            levels.iter().any(|&level| level > -55.0) && levels.iter().any(|&level| level < -75.0),
            "{levels:?}"
        );
        let mut sound = tone(440.0);
        Augmentation::default().colour(&mut sound, RATE, &mut random);
        assert_eq!(sound, tone(440.0));
    }
}
