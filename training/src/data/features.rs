//! Sound, pitch and loudness of a whole recording.

use std::collections::BTreeMap;

use anyhow::Context;
use ondes_engine::dsp::analysis::analyse;
use ondes_engine::model::Model;
use serde::{Deserialize, Serialize};

/// Sample rate and frame rate of the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FeatureRate {
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Samples per frame.
    pub hop: usize,
}

impl FeatureRate {
    /// Returns the rates of a codec's latents.
    ///
    /// # Errors
    /// Returns an error if the model has no encoder.
    pub fn from_encoder(codec: &Model) -> anyhow::Result<Self> {
        let latents = codec
            .method("encode")?
            .outputs
            .first()
            .context("its encoder has no output")?;
        Ok(Self {
            sample_rate: codec.header().sample_rate,
            hop: latents.ratio,
        })
    }

    /// Returns the duration of a number of frames, seconds.
    #[must_use]
    pub fn seconds(self, frames: usize) -> f64 {
        (frames * self.hop) as f64 / f64::from(self.sample_rate)
    }

    /// Returns the smallest number of frames that lasts `seconds` or longer.
    #[must_use]
    pub fn frames(self, seconds: f64) -> usize {
        (seconds * f64::from(self.sample_rate) / self.hop as f64).ceil() as usize
    }
}

/// Part of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Sound, `frames · hop` samples.
    pub sound: Vec<f32>,
    /// Pitch, semitones (69 = 440 Hz); unvoiced frames hold the last value.
    pub pitch: Vec<f32>,
    /// A-weighted level, dB.
    pub loudness: Vec<f32>,
    /// 1 for frames with a pitch, else 0.
    pub voiced: Vec<f32>,
}

/// Analysed recording. Frame `i` describes sample `i · hop`.
pub struct Features {
    /// Rates of the analysis.
    pub rate: FeatureRate,
    /// Positions of the instrument's knobs in the recording.
    pub knobs: BTreeMap<String, f32>,
    pub(super) values: Row,
}

impl Features {
    /// Analyses a sound, which is cut to whole frames.
    #[must_use]
    pub fn analyse(mut sound: Vec<f32>, rate: FeatureRate) -> Self {
        sound.truncate(sound.len() / rate.hop * rate.hop);
        let frames = analyse(&sound, f64::from(rate.sample_rate), rate.hop);
        let values = Row {
            pitch: frames.iter().map(|frame| frame.pitch.semitones).collect(),
            loudness: frames.iter().map(|frame| frame.loudness).collect(),
            voiced: frames
                .iter()
                .map(|frame| f32::from(u8::from(frame.pitch.voiced)))
                .collect(),
            sound,
        };
        Self {
            rate,
            knobs: BTreeMap::new(),
            values,
        }
    }

    /// Returns the number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.values.pitch.len()
    }

    /// Returns the length, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.rate.seconds(self.frames())
    }

    /// Returns the sound, `frames · hop` samples.
    #[must_use]
    pub fn audio(&self) -> &[f32] {
        &self.values.sound
    }

    /// Returns the pitch, semitones (69 = 440 Hz); unvoiced frames hold the last value.
    #[must_use]
    pub fn pitch(&self) -> &[f32] {
        &self.values.pitch
    }

    /// Returns the A-weighted level, dB.
    #[must_use]
    pub fn loudness(&self) -> &[f32] {
        &self.values.loudness
    }

    /// Returns 1 for frames with a pitch, else 0.
    #[must_use]
    pub fn voiced(&self) -> &[f32] {
        &self.values.voiced
    }
}
