//! Held-out quality: the instrument replays recordings that training never heard, and so does a trivial baseline.
//!
//! Both are given the pitch and loudness of each recording. The baseline is a sawtooth of that pitch, brought to the mean
//! spectrum of the recordings and to their loudness at each frame: the best that no learning can do.

pub mod sawtooth;

use anyhow::bail;
use ondes_engine::Kernels;
use ondes_engine::dsp::analysis::{AnalysisFrame, analyse};
use ondes_engine::model::{Measure, Model};
use ondes_engine::native::Executor;
use serde::Serialize;
use tch::{Device, Tensor};

use crate::dataset::{FeatureRate, Features};
use crate::loss::SpectralDistance;

/// The name of the first measure in cards.
pub const SPECTRAL_DISTANCE: &str = "multi-scale spectral distance";

/// Frames quieter than this are silence, whose pitch and loudness nobody hears, dB.
const AUDIBLE_DB: f32 = -60.0;
/// What a pitch may be off without being heard as out of tune, cents.
const IN_TUNE_CENTS: f32 = 10.0;

/// How well one way of replaying does.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Figures {
    /// Multi-scale spectral distance, mean over files weighted by length.
    pub spectral_distance: f64,
    /// Share of voiced frames within 10 cents, percent; a frame that is replayed without pitch is not within.
    pub pitch_within_10_cents_percent: f64,
    /// Median pitch error of voiced frames, cents.
    pub pitch_median_cents: f64,
    /// Mean loudness error of audible frames, dB.
    pub loudness_error_db: f64,
}

/// The instrument beside the baseline.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Evaluation {
    /// Sound that was replayed, seconds.
    pub seconds: f64,
    /// The instrument.
    pub model: Figures,
    /// The sawtooth.
    pub baseline: Figures,
}

impl Evaluation {
    /// The figures as a card shows them.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        let measure = |name: &str, unit: &str, figure: fn(&Figures) -> f64| Measure {
            name: name.into(),
            unit: unit.into(),
            value: round(figure(&self.model)),
            baseline: Some(round(figure(&self.baseline))),
        };
        vec![
            measure(SPECTRAL_DISTANCE, "", |figures| figures.spectral_distance),
            measure("voiced frames within 10 cents", "%", |figures| figures.pitch_within_10_cents_percent),
            measure("median pitch error", "cents", |figures| figures.pitch_median_cents),
            measure("mean loudness error", "dB", |figures| figures.loudness_error_db),
        ]
    }
}

/// Four digits after the point: more is noise.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// How often a model's methods want to be stepped, and at what rate it heard its sound.
///
/// # Errors
/// When the model is no instrument.
pub fn feature_rate(model: &Model) -> anyhow::Result<FeatureRate> {
    let Some(synth) = model.header().method("synth") else {
        bail!("only instruments can be evaluated; this model has no method \"synth\"");
    };
    Ok(FeatureRate { sample_rate: model.header().sample_rate, hop: synth.block })
}

/// Replays files that were heard at the [`feature_rate`] of the model.
///
/// # Errors
/// When the model is no instrument.
pub fn evaluate(model: &Model, files: &[Features]) -> anyhow::Result<Evaluation> {
    let baseline = sawtooth::Baseline::new(files, feature_rate(model)?);
    let distance = SpectralDistance::new(Device::Cpu);
    let (mut ours, mut theirs) = (Tally::default(), Tally::default());
    for file in files {
        ours.add(file, &replay(model, file)?, &distance);
        theirs.add(file, &baseline.replay(file), &distance);
    }
    let seconds = files.iter().map(Features::seconds).sum();
    Ok(Evaluation { seconds, model: ours.figures(), baseline: theirs.figures() })
}

/// What the instrument plays, given the pitch and loudness of a file; aligned with it and as long.
///
/// # Errors
/// When the model has not the methods of an instrument.
pub fn replay(model: &Model, file: &Features) -> anyhow::Result<Vec<f32>> {
    let kernels = Kernels::detect();
    let mut synth = Executor::new(model, "synth", kernels, 1, 1)?;
    let mut room = Executor::new(model, "room", kernels, 1, 1)?;
    let port = |name: &str| model.method("synth").map(|method| method.input(name));
    let ports = [port("pitch")?, port("loudness")?, port("noise")?];
    let mut sound = Vec::with_capacity(file.audio().len());
    for (&pitch, &loudness) in file.pitch().iter().zip(file.loudness()) {
        synth.begin(&[0], 1);
        for (port, value) in ports.iter().zip([pitch, loudness, 1.0]) {
            if let Some(port) = *port {
                synth.input(port).fill(value);
            }
        }
        synth.run();
        room.begin(&[0], 1);
        room.input(0).copy_from_slice(synth.output(0));
        room.run();
        sound.extend(synth.output(0).iter().zip(room.output(0)).map(|(dry, wet)| dry + wet));
    }
    // The sound of a frame leads up to the instant that the frame describes.
    sound.drain(..file.rate.hop.min(sound.len()));
    sound.resize(file.audio().len(), 0.0);
    Ok(sound)
}

/// Sums over files.
#[derive(Default)]
struct Tally {
    samples: f64,
    distance: f64,
    cents: Vec<f32>,
    voiced: usize,
    loudness_db: f64,
    audible: usize,
}

impl Tally {
    fn add(&mut self, file: &Features, sound: &[f32], distance: &SpectralDistance) {
        let row = |samples: &[f32]| Tensor::from_slice(samples).view([1, -1]);
        let between = tch::no_grad(|| distance.between(&row(sound), &row(file.audio())).double_value(&[]));
        self.samples += sound.len() as f64;
        self.distance += between * sound.len() as f64;
        let frames = analyse(sound, f64::from(file.rate.sample_rate), file.rate.hop);
        let heard = file.pitch().iter().zip(file.loudness()).zip(file.voiced());
        for (frame, ((&pitch, &loudness), &voiced)) in frames.iter().zip(heard) {
            if loudness < AUDIBLE_DB {
                continue;
            }
            self.audible += 1;
            self.loudness_db += f64::from((frame.loudness - loudness).abs());
            if voiced > 0.5 {
                self.voiced += 1;
                self.cents.push(cents_between(frame, pitch));
            }
        }
    }

    fn figures(mut self) -> Figures {
        self.cents.sort_by(f32::total_cmp);
        let in_tune = self.cents.partition_point(|&cents| cents <= IN_TUNE_CENTS);
        Figures {
            spectral_distance: self.distance / self.samples.max(1.0),
            pitch_within_10_cents_percent: 100.0 * in_tune as f64 / self.voiced.max(1) as f64,
            pitch_median_cents: self.cents.get(self.cents.len() / 2).map_or(0.0, |&cents| f64::from(cents)),
            loudness_error_db: self.loudness_db / self.audible.max(1) as f64,
        }
    }
}

/// Pitch error, cents, up to an octave; a whole one where no pitch is heard.
fn cents_between(frame: &AnalysisFrame, pitch: f32) -> f32 {
    const OCTAVE: f32 = 1200.0;
    if frame.pitch.voiced { (100.0 * (frame.pitch.semitones - pitch).abs()).min(OCTAVE) } else { OCTAVE }
}
