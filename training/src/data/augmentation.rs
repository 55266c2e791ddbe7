//! Augmentation of training crops, which makes pitches between and beside the recorded ones, and softer notes.

use anyhow::ensure;
use ondes_engine::dsp::resample::resample;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::crops::Crop;

/// Denominator of the ratios that sound is resampled by. Small, so that a resampler works in short blocks; a step is
/// 13 cents.
const DENOMINATOR: u32 = 128;
/// Rate that stands for an unchanged sound, Hz.
const RATE: u32 = 100 * DENOMINATOR;

/// Augmentation of training crops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Augmentation {
    /// Largest shift of the pitch up or down, by playing faster or slower, semitones. The A-weighted level of low notes
    /// changes by up to half a dB per semitone, which the loudness does not follow.
    pub pitch: f64,
    /// Largest attenuation, dB. For recordings of one dynamic only, whose soft notes can be no more than loud ones turned
    /// down: it teaches that the timbre does not depend on the loudness.
    pub gain: f64,
}

impl Augmentation {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Returns an error that names the field.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!((0.0..=12.0).contains(&self.pitch), "augmentation.pitch must be 0 to 12 semitones");
        ensure!((0.0..=60.0).contains(&self.gain), "augmentation.gain must be 0 to 60 dB");
        Ok(())
    }

    /// Draws a gain, dB.
    pub(super) fn draw_gain(&self, random: &mut Xoshiro256PlusPlus) -> f32 {
        if self.gain == 0.0 { 0.0 } else { -random.random_range(0.0..self.gain) as f32 }
    }

    /// Draws a shift: `DENOMINATOR + shift` samples of the source become `DENOMINATOR`.
    pub(super) fn draw(&self, random: &mut Xoshiro256PlusPlus) -> i32 {
        if self.pitch == 0.0 {
            return 0;
        }
        let semitones = random.random_range(-self.pitch..=self.pitch);
        (f64::from(DENOMINATOR) * ((semitones / 12.0).exp2() - 1.0)).round() as i32
    }

    /// Returns the number of frames of the source that a crop needs.
    pub(super) fn source_frames(&self, frames: usize, shift: i32) -> usize {
        if shift == 0 { frames } else { (frames as f64 * speed(shift)).ceil() as usize + 1 }
    }

    /// Resamples a crop of the source to `frames`.
    ///
    /// # Errors
    /// Returns an error if the resampler refuses the ratio.
    pub(super) fn apply(&self, source: Crop, frames: usize, hop: usize, shift: i32) -> anyhow::Result<Crop> {
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
        let resampled = |values: &[f32]| (0..frames).map(|index| at(values, index)).collect::<Vec<f32>>();
        let pitch = resampled(&source.pitch).iter().map(|pitch| pitch + semitones).collect();
        Ok(Crop { pitch, loudness: resampled(&source.loudness), audio, knobs: source.knobs })
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
        let augmentation = Augmentation { pitch: 2.0, gain: 0.0 };
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
                pitch: analysed[1..].iter().map(|frame| frame.pitch.semitones).chain([83.2]).collect(),
                loudness: analysed[1..].iter().map(|frame| frame.loudness).chain([-9.0]).collect(),
                audio,
                ..Crop::default()
            };
            let crop = augmentation.apply(source, 100, HOP, shift).expect("a ratio in range");
            assert_eq!((crop.audio.len(), crop.pitch.len(), crop.loudness.len()), (16_000, 100, 100));
            let heard = analyse(&crop.audio, SAMPLE_RATE, HOP);
            for frame in 40..90 {
                let heard = &heard[frame + 1];
                let errors = [heard.pitch.semitones - crop.pitch[frame], heard.loudness - crop.loudness[frame]];
                assert!(errors[0].abs() < 0.05 && errors[1].abs() < 0.6, "shift {shift}, frame {frame}: {errors:?}");
            }
        }
    }
}
