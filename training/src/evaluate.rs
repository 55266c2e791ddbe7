//! Quality of an instrument or a codec on held-out recordings, compared with a trivial baseline.
//!
//! An instrument resynthesises each recording from its pitch and loudness. Its baseline is a
//! sawtooth of that pitch, filtered to the mean spectrum of the recordings and levelled to their
//! loudness in each frame: the best result without learning. With the training recordings there is
//! a second one: the [`nearest`] of them, resampled. A codec encodes and decodes the recordings,
//! beside noise with their levels in bands; the output of other codecs can be measured as well.
//! A [`picture`] shows where the model differs.

pub mod audition;
pub mod measured;
pub mod nearest;
pub mod picture;
pub mod sawtooth;
pub mod timbre;

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use ondes_engine::Kernels;
use ondes_engine::dsp::analysis::{AnalysisFrame, analyse};
use ondes_engine::executor::Execute;
use ondes_engine::model::{Kind, Measure, Model, Port};
use ondes_engine::native::Executor;
use serde::Serialize;
use tch::{Device, Tensor};

use timbre::Timbres;

use crate::data::store::Recording;
use crate::data::{FeatureRate, Features, Recordings};
use crate::loss::SpectralDistance;
use crate::tasks::codec;

/// Name of the first measure on cards.
pub const SPECTRAL_DISTANCE: &str = "multi-scale spectral distance";

/// Name of the measure against the nearest trained recordings.
const NEAREST_RATIO: &str = "distance / nearest recording's";
/// Loudness below which pitch and loudness are not compared, dB.
const AUDIBLE_DB: f32 = -60.0;
/// Largest inaudible pitch error, cents.
const IN_TUNE_CENTS: f32 = 10.0;

/// Rate for the evaluation of sounds that another system has made.
pub const COMMON_RATE: FeatureRate = FeatureRate {
    sample_rate: 48_000,
    hop: 256,
};

/// Length of the recordings that are measured, seconds; of longer datasets every n-th recording is
/// measured.
const MEASURED_S: f64 = 1800.0;

/// Quality of one resynthesis.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Scores {
    /// Multi-scale spectral distance, mean over files weighted by length.
    pub spectral_distance: f64,
    /// Share of voiced frames within 10 cents, percent; frames that lose their pitch do not count
    /// as within.
    pub pitch_within_10_cents_percent: f64,
    /// Median pitch error of voiced frames, cents.
    pub pitch_median_cents: f64,
    /// Mean loudness error of audible frames, dB.
    pub loudness_error_db: f64,
    /// Distance of the [timbres](timbre) of all sounds; `None` if they last less than a second.
    pub timbre_distance: Option<f64>,
}

/// Quality of an instrument and of the baseline.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Evaluation {
    /// Length of the recordings, seconds.
    pub seconds: f64,
    /// Scores of the instrument.
    pub model: Scores,
    /// Scores of the baseline.
    pub baseline: Scores,
    /// Name of the baseline in tables.
    pub baseline_name: &'static str,
    /// Spectral distance of the nearest trained recordings, resampled.
    pub nearest_distance: Option<f64>,
    /// Distances of the timbres from those of the training recordings.
    pub from_training: Option<FromTraining>,
}

/// Distances of [timbres](timbre) from the training recordings: how far a codec moves other sounds
/// towards them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FromTraining {
    /// Distance of the model's sounds.
    pub model: f64,
    /// Distance of the recordings that were resynthesised.
    pub recordings: f64,
}

impl Evaluation {
    /// Returns the scores as measures for the card.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        let measure = |name: &str, unit: &str, figure: fn(&Scores) -> Option<f64>| {
            let (value, baseline) = (figure(&self.model)?, figure(&self.baseline).map(round));
            Some(Measure {
                name: name.into(),
                unit: unit.into(),
                value: round(value),
                baseline,
            })
        };
        let relative = self.nearest_distance.map(|nearest| Measure {
            name: NEAREST_RATIO.into(),
            unit: String::new(),
            value: round(self.model.spectral_distance / nearest),
            baseline: Some(round(self.baseline.spectral_distance / nearest)),
        });
        let measures = [
            measure(SPECTRAL_DISTANCE, "", |scores| {
                Some(scores.spectral_distance)
            }),
            measure("voiced frames within 10 cents", "%", |scores| {
                Some(scores.pitch_within_10_cents_percent)
            }),
            measure("median pitch error", "cents", |scores| {
                Some(scores.pitch_median_cents)
            }),
            measure("mean loudness error", "dB", |scores| {
                Some(scores.loudness_error_db)
            }),
            measure("distance of timbres", "", |scores| scores.timbre_distance),
        ];
        measures.into_iter().flatten().chain(relative).collect()
    }
}

/// Rounds to four decimals; further digits are noise.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Returns the sample rate and hop that recordings must be analysed at for a model.
///
/// # Errors
/// Returns an error if the model is neither an instrument nor a codec.
pub fn feature_rate(model: &Model) -> anyhow::Result<FeatureRate> {
    let header = model.header();
    let Some(method) = header.method("synth").or(header.method("decode")) else {
        bail!(
            "only instruments and codecs can be evaluated; this model has no method \"synth\" or \"decode\""
        );
    };
    Ok(FeatureRate {
        sample_rate: header.sample_rate,
        hop: method.block,
    })
}

/// Evaluates a model on up to half an hour of files analysed at its [`feature_rate`], also against
/// the recordings that it was trained on.
///
/// # Errors
/// Returns an error if the model is neither an instrument nor a codec, or a recording cannot be
/// read.
pub fn evaluate(
    model: &Model,
    files: &Recordings,
    training: Option<&Recordings>,
) -> anyhow::Result<Evaluation> {
    if model.header().kind == Kind::Codec {
        return evaluate_codec(files, training, |_, file| {
            codec::evaluate::decoded(model, file)
        });
    }
    let thinned = files
        .thinned(MEASURED_S)
        .features()
        .collect::<Result<Vec<_>, _>>()?;
    let baseline = sawtooth::SawtoothBaseline::new(&thinned, feature_rate(model)?);
    let distance = SpectralDistance::new(Device::Cpu);
    let (mut nearest_sum, mut nearest_samples) = (0.0, 0.0);
    for file in &thinned {
        let nearest = training
            .map(|training| nearest::nearest(file, median_pitch(file), training))
            .transpose()?;
        if let Some(nearest) = nearest.flatten() {
            let samples = nearest.len() as f64;
            nearest_sum += samples * distance_between(&distance, &nearest, file);
            nearest_samples += samples;
        }
    }
    drop(thinned);
    let nearest_distance = (nearest_samples > 0.0).then(|| nearest_sum / nearest_samples);
    let sawtooth = ("sawtooth", |file: &Features| Ok(baseline.replay(file)));
    let measured = measure(files, training, |_, file| replay(model, file), sawtooth)?;
    Ok(Evaluation {
        nearest_distance,
        ..measured
    })
}

/// Evaluates resynthesised recordings from another system as [`evaluate`] does those of a codec.
/// The files are aligned with the recordings and have their names; the format may differ.
///
/// # Errors
/// Returns an error if a recording has no such sound, or one cannot be read.
pub fn evaluate_sounds(
    sounds: &Recordings,
    files: &Recordings,
    training: Option<&Recordings>,
) -> anyhow::Result<Evaluation> {
    let stem = |recording: &Recording| {
        let name = &recording.source.name;
        name.rsplit_once('.')
            .map_or(name.clone(), |(stem, _)| stem.to_owned())
    };
    let by_name: BTreeMap<String, usize> = sounds
        .iter()
        .map(stem)
        .zip(sounds.indices.iter().copied())
        .collect();
    evaluate_codec(files, training, |recording, file| {
        let index = by_name
            .get(&stem(recording))
            .with_context(|| format!("{}: has no sound", recording.source.name))?;
        let mut sound = sounds.store.features(*index)?.audio().to_vec();
        sound.resize(file.audio().len(), 0.0);
        Ok(sound)
    })
}

/// Evaluates the resynthesis of recordings by a codec.
fn evaluate_codec(
    files: &Recordings,
    training: Option<&Recordings>,
    make: impl Fn(&Recording, &Features) -> anyhow::Result<Vec<f32>>,
) -> anyhow::Result<Evaluation> {
    measure(
        files,
        training,
        make,
        ("noise", |file: &Features| {
            codec::evaluate::band_noise(file.audio())
        }),
    )
}

/// Measures the resynthesis of up to half an hour of files, and a named baseline.
fn measure(
    files: &Recordings,
    training: Option<&Recordings>,
    make: impl Fn(&Recording, &Features) -> anyhow::Result<Vec<f32>>,
    (baseline_name, make_baseline): (&'static str, impl Fn(&Features) -> anyhow::Result<Vec<f32>>),
) -> anyhow::Result<Evaluation> {
    let files = files.thinned(MEASURED_S);
    let sample_rate = f64::from(files.store.format().rate.sample_rate);
    let mut recorded = Timbres::new(sample_rate);
    let [mut model, mut baseline] = [(); 2].map(|()| ScoreSums::new(sample_rate));
    let mut seconds = 0.0;
    files.store.without_cache(|| -> anyhow::Result<()> {
        for (recording, file) in files.iter().zip(files.features()) {
            let file = file?;
            seconds += file.seconds();
            recorded.add(file.audio());
            model.add(&file, &make(recording, &file)?);
            baseline.add(&file, &make_baseline(&file)?);
        }
        Ok(())
    })?;
    let mut from_training = None;
    if let Some(training) = training {
        let mut learnt = Timbres::new(sample_rate);
        for file in training.thinned(MEASURED_S).features() {
            learnt.add(file?.audio());
        }
        let distances = model
            .timbres
            .distance(&learnt)
            .zip(recorded.distance(&learnt));
        from_training = distances.map(|(model, recordings)| FromTraining { model, recordings });
    }
    let [model, baseline] = [model, baseline].map(|sums| sums.scores(&recorded));
    Ok(Evaluation {
        seconds,
        model,
        baseline,
        baseline_name,
        nearest_distance: None,
        from_training,
    })
}

/// Returns the median pitch of the voiced frames, semitones; `None` if there are none.
fn median_pitch(file: &Features) -> Option<f32> {
    let voiced = file
        .pitch()
        .iter()
        .zip(file.voiced())
        .filter(|(_, voiced)| **voiced > 0.5);
    let mut pitches: Vec<f32> = voiced.map(|(pitch, _)| *pitch).collect();
    pitches.sort_by(f32::total_cmp);
    pitches.get(pitches.len() / 2).copied()
}

/// Returns the spectral distance of a sound from a recording.
fn distance_between(distance: &SpectralDistance, sound: &[f32], file: &Features) -> f64 {
    let row = |samples: &[f32]| Tensor::from_slice(samples).view([1, -1]);
    tch::no_grad(|| {
        distance
            .between(&row(sound), &row(file.audio()))
            .double_value(&[])
    })
}

/// Resynthesises a file with an instrument or a codec; the result is aligned with it and has its
/// length.
///
/// # Errors
/// Returns an error if the model lacks a method.
fn resynthesis(model: &Model, file: &Features) -> anyhow::Result<Vec<f32>> {
    match model.header().kind {
        Kind::Codec => codec::evaluate::decoded(model, file),
        _ => replay(model, file),
    }
}

/// Resynthesises a file from its pitch and loudness; the result is aligned with it and has its
/// length.
///
/// # Errors
/// Returns an error if the model lacks a method of an instrument.
pub fn replay(model: &Model, file: &Features) -> anyhow::Result<Vec<f32>> {
    let kernels = Kernels::detect();
    let mut synth = Executor::new(model, "synth", kernels, 1, 1)?;
    let mut room = Executor::new(model, "room", kernels, 1, 1)?;
    let at_default = |name: &str| {
        let control = model
            .header()
            .controls
            .iter()
            .find(|control| control.name == name);
        control.map_or(0.0, |control| control.default)
    };
    let position = |port: &Port| {
        file.knobs
            .get(&port.name)
            .copied()
            .unwrap_or_else(|| at_default(&port.name))
    };
    let method = model.method("synth")?;
    let positions: Vec<f32> = method.inputs.iter().map(position).collect();
    let (pitch_port, loudness_port) = (method.input("pitch"), method.input("loudness"));
    let mut sound = Vec::with_capacity(file.audio().len());
    for (&pitch, &loudness) in file.pitch().iter().zip(file.loudness()) {
        synth.begin(&[0], 1);
        for (port, &position) in positions.iter().enumerate() {
            let value = match Some(port) {
                port if port == pitch_port => pitch,
                port if port == loudness_port => loudness,
                _ => position,
            };
            synth.input(port).fill(value);
        }
        synth.run();
        room.begin(&[0], 1);
        room.input(0).copy_from_slice(synth.output(0));
        room.run();
        sound.extend(
            synth
                .output(0)
                .iter()
                .zip(room.output(0))
                .map(|(dry, wet)| dry + wet),
        );
    }
    // The sound of a frame ends at the instant that the frame describes.
    sound.drain(..file.rate.hop.min(sound.len()));
    sound.resize(file.audio().len(), 0.0);
    Ok(sound)
}

/// Sums over files.
struct ScoreSums {
    spectral_distance: SpectralDistance,
    timbres: Timbres,
    samples: f64,
    distance: f64,
    cents: Vec<f32>,
    voiced: usize,
    loudness_db: f64,
    audible: usize,
}

impl ScoreSums {
    fn new(sample_rate: f64) -> Self {
        Self {
            spectral_distance: SpectralDistance::new(Device::Cpu),
            timbres: Timbres::new(sample_rate),
            samples: 0.0,
            distance: 0.0,
            cents: Vec::new(),
            voiced: 0,
            loudness_db: 0.0,
            audible: 0,
        }
    }

    /// Adds the resynthesis of a file.
    fn add(&mut self, file: &Features, sound: &[f32]) {
        self.samples += sound.len() as f64;
        self.distance +=
            distance_between(&self.spectral_distance, sound, file) * sound.len() as f64;
        self.timbres.add(sound);
        let frames = analyse(sound, f64::from(file.rate.sample_rate), file.rate.hop);
        let targets = file.pitch().iter().zip(file.loudness()).zip(file.voiced());
        for (frame, ((&pitch, &loudness), &voiced)) in frames.iter().zip(targets) {
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

    /// Returns the scores, with the distance from the timbres of all recordings.
    fn scores(mut self, recorded: &Timbres) -> Scores {
        self.cents.sort_by(f32::total_cmp);
        let in_tune = self.cents.partition_point(|&cents| cents <= IN_TUNE_CENTS);
        Scores {
            spectral_distance: self.distance / self.samples.max(1.0),
            pitch_within_10_cents_percent: 100.0 * in_tune as f64 / self.voiced.max(1) as f64,
            pitch_median_cents: self
                .cents
                .get(self.cents.len() / 2)
                .map_or(0.0, |&cents| f64::from(cents)),
            loudness_error_db: self.loudness_db / self.audible.max(1) as f64,
            timbre_distance: self.timbres.distance(recorded),
        }
    }
}

/// Returns the pitch error, cents, limited to an octave; an octave if no pitch is found.
fn cents_between(frame: &AnalysisFrame, pitch: f32) -> f32 {
    const OCTAVE: f32 = 1200.0;
    if frame.pitch.voiced {
        (100.0 * (frame.pitch.semitones - pitch).abs()).min(OCTAVE)
    } else {
        OCTAVE
    }
}
