//! Stereo audio read from a WAV file.

use std::path::Path;

use anyhow::{Context, bail};
use hound::{SampleFormat, WavReader, WavSpec};

/// Left and right sample.
pub type Frame = [f32; 2];

/// Stereo audio of any length; full scale is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct StereoSound {
    /// Hz.
    pub sample_rate: u32,
    /// In the order of time.
    pub frames: Vec<Frame>,
}

impl StereoSound {
    /// Reads a WAV file of one or two channels; a single channel becomes both.
    ///
    /// # Errors
    /// The file cannot be read, or has more than two channels.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        Self::decode(path).with_context(|| format!("{}: cannot be read", path.display()))
    }

    fn decode(path: &Path) -> anyhow::Result<Self> {
        let reader = WavReader::open(path)?;
        let WavSpec {
            channels,
            sample_rate,
            bits_per_sample,
            sample_format,
        } = reader.spec();
        let samples: Vec<f32> = match sample_format {
            SampleFormat::Float => reader.into_samples::<f32>().collect::<Result<_, _>>()?,
            SampleFormat::Int => {
                let full_scale = (1_i64 << (bits_per_sample - 1)) as f32;
                let samples = reader
                    .into_samples::<i32>()
                    .map(|sample| Ok(sample? as f32 / full_scale));
                samples.collect::<Result<_, hound::Error>>()?
            }
        };
        let frames = match channels {
            1 => samples.iter().map(|&sample| [sample; 2]).collect(),
            2 => samples.as_chunks::<2>().0.to_vec(),
            count => bail!("the file has {count} channels; one or two are supported"),
        };
        Ok(Self {
            sample_rate,
            frames,
        })
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.frames.len() as f64 / f64::from(self.sample_rate)
    }

    /// Describes why the audio is not fit to be heard; `None` if it is.
    pub fn defect(&self) -> Option<String> {
        let count = |is_bad: fn(&f32) -> bool| {
            self.frames
                .as_flattened()
                .iter()
                .filter(|sample| is_bad(sample))
                .count()
        };
        let not_finite = count(|sample| !sample.is_finite());
        let clipped = count(|sample| sample.abs() >= 1.0);
        match (not_finite, clipped) {
            (0, 0) => None,
            (0, clipped) => Some(format!("{clipped} samples clip")),
            (not_finite, _) => Some(format!("{not_finite} samples are not finite")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_integers_and_floats_of_one_or_two_channels() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wav");
        let spec = |channels, bits_per_sample, sample_format| WavSpec {
            channels,
            sample_rate: 8000,
            bits_per_sample,
            sample_format,
        };
        let mut writer = hound::WavWriter::create(&path, spec(1, 24, SampleFormat::Int)).unwrap();
        [0, 1 << 22, -(1 << 23)]
            .into_iter()
            .for_each(|sample| writer.write_sample(sample).unwrap());
        writer.finalize().unwrap();
        let mono = StereoSound::read(&path).unwrap();
        assert_eq!(
            mono,
            StereoSound {
                sample_rate: 8000,
                frames: vec![[0.0; 2], [0.5; 2], [-1.0; 2]]
            }
        );
        assert_eq!(mono.defect().unwrap(), "2 samples clip");

        let mut writer = hound::WavWriter::create(&path, spec(2, 32, SampleFormat::Float)).unwrap();
        [0.25_f32, -0.5]
            .into_iter()
            .for_each(|sample| writer.write_sample(sample).unwrap());
        writer.finalize().unwrap();
        let stereo = StereoSound::read(&path).unwrap();
        assert_eq!(
            (stereo.frames[0], stereo.seconds(), stereo.defect()),
            ([0.25, -0.5], 1.0 / 8000.0, None)
        );

        let writer = hound::WavWriter::create(&path, spec(3, 16, SampleFormat::Int)).unwrap();
        writer.finalize().unwrap();
        let error = format!("{:#}", StereoSound::read(&path).unwrap_err());
        assert!(
            error.contains("a.wav: cannot be read: the file has 3 channels"),
            "{error}"
        );
        assert_eq!(
            StereoSound {
                sample_rate: 1,
                frames: vec![[f32::NAN, 0.0]]
            }
            .defect()
            .unwrap(),
            "1 samples are not finite"
        );
    }
}
