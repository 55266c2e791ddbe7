//! Parts become a piece: levels, places between left and right, and a file that does not clip.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use hound::{SampleFormat, WavReader, WavSpec, WavWriter};

/// Left and right.
pub type Frame = [f32; 2];

/// Highest sample of a mix, dB below full scale: leaves room for what converters make between samples.
const PEAK_DB: f32 = -1.5;
/// What a mix ends with, so that it ends in silence, seconds.
const FADE_OUT_S: f32 = 0.05;
/// Blocks in which a part's level is measured, seconds.
const LEVEL_BLOCK_S: f32 = 0.1;
/// Blocks so far below the loudest do not count for the level: there the part rests, dB.
const REST_DB: f32 = -30.0;

/// Sound of any length.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// Hz.
    pub rate: u32,
    /// In the order of time.
    pub frames: Vec<Frame>,
}

impl Sound {
    /// Length, seconds.
    pub fn seconds(&self) -> f64 {
        self.frames.len() as f64 / f64::from(self.rate)
    }

    /// Highest sample.
    pub fn peak(&self) -> f32 {
        self.frames.iter().flatten().fold(0.0, |peak, sample| sample.abs().max(peak))
    }
}

/// A part and how it is mixed.
#[derive(Clone, Debug)]
pub struct Stem {
    /// What it plays.
    pub sound: Sound,
    /// How loud it is while it plays; only differences between parts matter, dB.
    pub level_db: f32,
    /// −1 for left to 1 for right.
    pub pan: f32,
}

/// Gains of left and right whose squares sum to one, so that a part is as loud wherever it is.
fn pan_gains(pan: f32) -> Frame {
    let angle = (pan.clamp(-1.0, 1.0) + 1.0) * std::f32::consts::FRAC_PI_4;
    [angle.cos(), angle.sin()]
}

/// Ratio of a level in dB.
fn ratio(db: f32) -> f32 {
    10f32.powf(db / 20.0)
}

/// Level of a ratio in dB.
pub fn decibels(ratio: f32) -> f32 {
    20.0 * ratio.max(1e-9).log10()
}

/// RMS of a part while it plays; none where it is silent throughout.
fn playing_rms(sound: &Sound) -> Option<f32> {
    let block = ((LEVEL_BLOCK_S * sound.rate as f32) as usize).max(1);
    let power = |frames: &[Frame]| {
        frames.iter().flatten().map(|&sample| f64::from(sample).powi(2)).sum::<f64>() / (2 * frames.len()) as f64
    };
    let powers: Vec<f64> = sound.frames.chunks(block).map(power).collect();
    let loudest = powers.iter().copied().fold(0.0, f64::max);
    let counted: Vec<f64> =
        powers.into_iter().filter(|&power| power > loudest * f64::from(ratio(REST_DB)).powi(2)).collect();
    (loudest > 0.0).then(|| (counted.iter().sum::<f64>() / counted.len() as f64).sqrt() as f32)
}

/// Mixes parts, and brings the result to [`PEAK_DB`].
///
/// # Errors
/// A part is of another rate, is silent throughout, or has a sample that is no number.
pub fn mix(stems: &[Stem]) -> anyhow::Result<Sound> {
    let rate = stems.first().context("there is nothing to mix")?.sound.rate;
    let length = stems.iter().map(|stem| stem.sound.frames.len()).max().unwrap_or(0);
    let mut mixed = vec![[0.0; 2]; length];
    for (index, stem) in stems.iter().enumerate() {
        ensure!(stem.sound.rate == rate, "part {} is at {} Hz, the first at {rate} Hz", index + 1, stem.sound.rate);
        let strange = stem.sound.frames.iter().position(|frame| frame.iter().any(|sample| !sample.is_finite()));
        if let Some(frame) = strange {
            bail!("part {} has a sample that is not a number, at frame {frame}", index + 1);
        }
        let rms = playing_rms(&stem.sound).with_context(|| format!("part {} is silent", index + 1))?;
        let gains = pan_gains(stem.pan).map(|gain| gain * ratio(stem.level_db) / rms);
        for (sum, frame) in mixed.iter_mut().zip(&stem.sound.frames) {
            *sum = [sum[0] + gains[0] * frame[0], sum[1] + gains[1] * frame[1]];
        }
    }
    let mut sound = Sound { rate, frames: mixed };
    fade_out(&mut sound);
    let gain = ratio(PEAK_DB) / sound.peak();
    ensure!(gain.is_finite(), "the parts cancel each other");
    sound.frames.iter_mut().flatten().for_each(|sample| *sample *= gain);
    Ok(sound)
}

fn fade_out(sound: &mut Sound) {
    let length = ((FADE_OUT_S * sound.rate as f32) as usize).min(sound.frames.len());
    for (index, frame) in sound.frames.iter_mut().rev().take(length).enumerate() {
        let x = index as f32 / length as f32;
        // A raised cosine: no corner where it begins.
        let gain = 0.5 - 0.5 * (std::f32::consts::PI * x).cos();
        *frame = frame.map(|sample| sample * gain);
    }
}

/// Reads a WAV file of one or two channels; one is heard from both sides.
pub fn read(path: &Path) -> anyhow::Result<Sound> {
    read_wav(path).with_context(|| format!("{}: cannot be read", path.display()))
}

fn read_wav(path: &Path) -> anyhow::Result<Sound> {
    let reader = WavReader::open(path)?;
    let WavSpec { channels, sample_rate, bits_per_sample, sample_format } = reader.spec();
    let samples: Vec<f32> = match sample_format {
        SampleFormat::Float => reader.into_samples::<f32>().collect::<Result<_, _>>()?,
        SampleFormat::Int => {
            let full_scale = (1_i64 << (bits_per_sample - 1)) as f32;
            let samples = reader.into_samples::<i32>().map(|sample| Ok(sample? as f32 / full_scale));
            samples.collect::<Result<_, hound::Error>>()?
        }
    };
    let frames = match channels {
        1 => samples.iter().map(|&sample| [sample; 2]).collect(),
        2 => samples.chunks_exact(2).map(|frame| [frame[0], frame[1]]).collect(),
        other => bail!("it has {other} channels"),
    };
    Ok(Sound { rate: sample_rate, frames })
}

/// Largest value of a 24-bit sample.
const FULL_SCALE_24: f32 = 8_388_607.0;

/// Writes a WAV file of 24 bits in stereo.
pub fn write(sound: &Sound, path: &Path) -> anyhow::Result<()> {
    let spec = WavSpec { channels: 2, sample_rate: sound.rate, bits_per_sample: 24, sample_format: SampleFormat::Int };
    let written = WavWriter::create(path, spec).and_then(|mut writer| {
        for sample in sound.frames.iter().flatten() {
            writer.write_sample((sample.clamp(-1.0, 1.0) * FULL_SCALE_24).round() as i32)?;
        }
        writer.finalize()
    });
    written.with_context(|| format!("{}: cannot be written", path.display()))
}

/// What is wrong with how a sound will be heard, if anything.
pub fn fault(sound: &Sound) -> Option<String> {
    let strange = sound.frames.iter().flatten().filter(|sample| !sample.is_finite()).count();
    let clipped = sound.frames.iter().flatten().filter(|sample| sample.abs() >= 1.0).count();
    match (strange, clipped) {
        (0, 0) => None,
        (0, clipped) => Some(format!("{clipped} samples clip")),
        (strange, _) => Some(format!("{strange} samples are not numbers")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sine(rate: u32, seconds: f32, hz: f32, amplitude: f32) -> Sound {
        let sample = |n: usize| amplitude * (std::f32::consts::TAU * hz * n as f32 / rate as f32).sin();
        Sound { rate, frames: (0..(seconds * rate as f32) as usize).map(|n| [sample(n); 2]).collect() }
    }

    fn stem(sound: Sound, level_db: f32, pan: f32) -> Stem {
        Stem { sound, level_db, pan }
    }

    #[test]
    fn panning_keeps_power() {
        for pan in [-1.0, -0.4, 0.0, 0.7, 1.0] {
            let [left, right] = pan_gains(pan);
            assert!((left * left + right * right - 1.0).abs() < 1e-6);
            assert_eq!(left > right, pan < 0.0);
        }
        assert!(pan_gains(-1.0)[1].abs() < 1e-6 && pan_gains(1.0)[0].abs() < 1e-6);
    }

    #[test]
    fn level_does_not_depend_on_rests_or_gain() {
        let short = sine(8000, 1.0, 100.0, 0.5);
        let mut with_rest = short.clone();
        with_rest.frames.extend(vec![[0.0; 2]; 24_000]);
        let rms = playing_rms(&short).unwrap();
        assert!((rms - 0.5 / 2f32.sqrt()).abs() < 1e-4);
        assert!((playing_rms(&with_rest).unwrap() - rms).abs() < 1e-6);
        // The quieter recording of the same part mixes to the same.
        let loud =
            mix(&[stem(sine(8000, 1.0, 100.0, 0.5), 0.0, -0.3), stem(sine(8000, 1.0, 150.0, 0.5), -6.0, 0.5)]).unwrap();
        let quiet = mix(&[stem(sine(8000, 1.0, 100.0, 0.01), 0.0, -0.3), stem(sine(8000, 1.0, 150.0, 0.5), -6.0, 0.5)])
            .unwrap();
        for (a, b) in loud.frames.iter().flatten().zip(quiet.frames.iter().flatten()) {
            assert!((a - b).abs() < 1e-4);
        }
    }

    #[test]
    fn peak_is_as_promised_and_the_end_is_silent() {
        let mixed =
            mix(&[stem(sine(8000, 1.0, 100.0, 3.0), 0.0, -0.5), stem(sine(8000, 2.0, 777.0, 0.1), 3.0, 0.5)]).unwrap();
        assert_eq!(mixed.frames.len(), 16_000);
        assert!((decibels(mixed.peak()) - PEAK_DB).abs() < 1e-3);
        assert_eq!(fault(&mixed), None);
        assert!(mixed.frames.last().unwrap().iter().all(|sample| sample.abs() < 1e-6));
    }

    #[test]
    fn what_cannot_be_mixed_is_refused() {
        let good = || stem(sine(8000, 0.5, 100.0, 0.5), 0.0, 0.0);
        let mut strange = good();
        strange.sound.frames[7][1] = f32::NAN;
        assert!(
            mix(&[good(), strange])
                .unwrap_err()
                .to_string()
                .contains("part 2 has a sample that is not a number, at frame 7")
        );
        assert!(
            mix(&[good(), stem(sine(8000, 0.5, 100.0, 0.0), 0.0, 0.0)]).unwrap_err().to_string().contains("silent")
        );
        assert!(
            mix(&[good(), stem(sine(4000, 0.5, 100.0, 0.5), 0.0, 0.0)]).unwrap_err().to_string().contains("4000 Hz")
        );
        assert!(mix(&[]).is_err());
    }

    #[test]
    fn files_keep_24_bits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wav");
        let sound = sine(8000, 0.1, 440.0, 0.8);
        write(&sound, &path).unwrap();
        let again = read(&path).unwrap();
        assert_eq!(again.rate, 8000);
        for (a, b) in sound.frames.iter().flatten().zip(again.frames.iter().flatten()) {
            assert!((a - b).abs() < 2.0 / FULL_SCALE_24);
        }
        assert_eq!(fault(&Sound { rate: 1, frames: vec![[1.0, 0.0], [0.2, -1.5]] }).unwrap(), "2 samples clip");
    }
}
