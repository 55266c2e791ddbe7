//! An instrument played by MIDI as it was recorded: each recorded note by its key, at its velocity
//! and for as long, compared with the recording.
//!
//! Unlike [`evaluate`](super::evaluate), which gives the network the recorded pitch and loudness,
//! this measures what a keyboard player hears: levels, attacks, dynamics and life of the notes that
//! [`Performance`] makes.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::bail;
use ondes_engine::instrument::{Event, EventKind, NATURAL_VELOCITY, Performance};
use ondes_engine::model::card::Measure;
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use serde::Serialize;
use tch::{Device, Tensor};

use super::nearest::nearest;
use super::sawtooth::SawtoothBaseline;
use crate::data::playing::{LEAST_DRIFT_DB, MOST_DRIFT_DB, NoteMeasures, RANGE_OF_DRIFT};
use crate::data::{FeatureRate, Features, Recordings};
use crate::loss::{MelSpectrum, SpectralDistance, power_spectrum};
use crate::tasks::instrument::controls::NOISE;

/// Most notes that are played.
const MAX_NOTES: usize = 40;
/// Length of an attack, seconds.
const ATTACK_S: f64 = 0.08;
/// Sound before an onset that belongs to the attack, seconds.
const BEFORE_S: f64 = 0.01;
/// Frequency from which sound is treble, Hz.
const TREBLE_HZ: f64 = 5_000.0;
/// Highest frequency of the noise between partials, Hz.
const NOISE_HZ: f64 = 10_000.0;
/// Times that a model is adjusted: noise and treble depend on each other.
const ADJUSTMENTS: usize = 2;
/// Most by which the level of a model is changed at a time, dB.
const MAX_SHIFT_DB: f64 = 12.0;
/// Tilt for a factor e of the centroid for 10 dB, dB for each dB.
const TILT_OF_COLOUR: f32 = 2.5;
/// Most treble of an attack, dB.
const MAX_ATTACK_TILT_DB: f32 = 18.0;
/// Least and most by which its attack is changed at a time.
const TIME_FACTORS: (f32, f32) = (0.5, 2.0);
/// Least and most noise of a model.
const NOISE_FACTORS: (f32, f32) = (0.5, 2.0);
/// Sustained level to which sounds are brought before they are compared, dB.
const COMPARED_DB: f32 = -20.0;
/// Length of the transforms of sustained sound and of attacks, samples.
const SUSTAIN_FFT: i64 = 8192;
const ATTACK_FFT: i64 = 1024;
/// Velocities whose colour is compared.
const VELOCITIES: [f32; 3] = [40.0 / 127.0, 80.0 / 127.0, 120.0 / 127.0];
/// Range of recorded levels of a pitch from which they tell of dynamics, dB.
const DYNAMICS_DB: f32 = 4.0;
/// Length of the notes for it, seconds.
const COLOUR_S: f64 = 1.0;

/// A measure of the recordings and of the played notes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Of the recordings.
    pub recorded: f64,
    /// Of what the instrument plays.
    pub played: f64,
}

/// Distances from the recordings, of the instrument and of two simpler ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distances {
    /// Of what the instrument plays.
    pub played: f64,
    /// Of the nearest other recording at the same pitch; none if there is only one.
    pub nearest: Option<f64>,
    /// Of a sawtooth with the played pitch and loudness and the recorded mean spectrum.
    pub sawtooth: f64,
}

/// Result of an audition: medians over notes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audition {
    /// Number of notes.
    pub notes: usize,
    /// Level of what is played above the recorded one, without the model's
    /// [gain](Performance::gain_db), dB(A).
    pub level_db: f64,
    /// Time from the onset to 1 dB below the sustained level, ms.
    pub attack_ms: Compared,
    /// Level above 5 kHz in the first 80 ms, relative to the sustained part's, dB.
    pub attack_treble_db: Compared,
    /// Difference of mel spectra in the first 80 ms, at the same sustained level, dB.
    pub attack_distance_db: Distances,
    /// Multi-scale spectral distance of whole notes, at the same sustained level.
    pub distance: Distances,
    /// Range of the level within a note, dB; none if the recordings are short.
    pub range_db: Option<Compared>,
    /// Depth of vibrato, ± cents.
    pub vibrato_cents: Option<Compared>,
    /// Noise between the partials relative to the sound, dB.
    pub noise_db: Compared,
    /// Time in which a released note falls by 60 dB, ms; none if recordings end before.
    pub release_ms: Option<Compared>,
    /// Factor of the spectral centroid for 10 dB of level; none of the recordings if all of a pitch
    /// are equally loud.
    pub colour_per_10_db: (Option<f64>, f64),
    /// Spectral centroids at velocities 40, 80 and 120, Hz.
    pub centroids_hz: [f64; 3],
}

/// A sound with what was measured of it.
struct Note {
    features: Features,
    measures: NoteMeasures,
}

impl Note {
    fn new(features: Features) -> Option<Self> {
        let measures = NoteMeasures::new(&features)?;
        Some(Self { features, measures })
    }

    /// Returns the sound from an onset on, at the compared level.
    fn levelled(&self, before_s: f64) -> Vec<f32> {
        let rate = self.features.rate;
        let onset = self.measures.held.0 * rate.hop;
        let before = (before_s * f64::from(rate.sample_rate)) as usize;
        let gain = 10_f32.powf((COMPARED_DB - self.measures.level_db) / 20.0);
        let from = onset.saturating_sub(before);
        let silence = std::iter::repeat_n(0.0, before - (onset - from));
        let sound = self.features.audio()[from..].iter();
        silence.chain(sound.map(|sample| gain * sample)).collect()
    }

    /// Returns the sound while the note is held and has settled.
    fn sustained(&self) -> &[f32] {
        let rate = self.features.rate;
        let (onset, end) = self.measures.held;
        let from = (onset + rate.frames(0.3)).min(onset + (end - onset) / 2);
        &self.features.audio()[from * rate.hop..(end + 1) * rate.hop]
    }
}

/// Spectra of notes at one sample rate.
struct Analyser {
    rate: FeatureRate,
    mel: MelSpectrum,
    spectral: SpectralDistance,
    windows: [Tensor; 2],
}

impl Analyser {
    fn new(rate: FeatureRate) -> Self {
        let window = |length| Tensor::hann_window(length, (tch::Kind::Float, Device::Cpu));
        Self {
            rate,
            mel: MelSpectrum::new(f64::from(rate.sample_rate), Device::Cpu),
            spectral: SpectralDistance::new(Device::Cpu),
            windows: [window(SUSTAIN_FFT), window(ATTACK_FFT)],
        }
    }

    fn samples(&self, seconds: f64) -> usize {
        (seconds * f64::from(self.rate.sample_rate)) as usize
    }

    /// Returns the mean power of a sound by bin.
    fn spectrum(&self, sound: &[f32], window: &Tensor) -> Vec<f64> {
        let length = window.size()[0];
        let row = Tensor::from_slice(sound).view([1, -1]);
        let power = power_spectrum(&row, length, length / 4, window);
        let mean = power.mean_dim([-1_i64].as_slice(), false, tch::Kind::Double);
        Vec::try_from(mean.view(-1)).expect("a vector of numbers")
    }

    fn hz(&self, bin: usize, bins: usize) -> f64 {
        bin as f64 * f64::from(self.rate.sample_rate) / (2 * (bins - 1)) as f64
    }

    /// Returns the power above the bound of treble.
    fn treble(&self, sound: &[f32]) -> f64 {
        let spectrum = self.spectrum(sound, &self.windows[1]);
        let bins = spectrum.len();
        let treble = spectrum.iter().enumerate();
        treble
            .filter(|(bin, _)| self.hz(*bin, bins) >= TREBLE_HZ)
            .map(|(_, power)| power)
            .sum::<f64>()
            .max(1e-12)
    }

    /// Returns the treble of a note's first 80 ms relative to its sustained part, dB.
    fn attack_treble_db(&self, note: &Note) -> f64 {
        let mut attack = note.levelled(0.0);
        attack.truncate(self.samples(ATTACK_S));
        let gain = 10_f64.powf(f64::from(COMPARED_DB - note.measures.level_db) / 10.0);
        10.0 * (self.treble(&attack) / (gain * self.treble(note.sustained()))).log10()
    }

    /// Returns the difference of the mel spectra of two attacks, dB.
    fn attack_distance_db(&self, one: &Note, other: &Note) -> f64 {
        let [one, other] = [one, other].map(|note| {
            let mut attack = note.levelled(BEFORE_S);
            attack.truncate(self.samples(BEFORE_S + ATTACK_S));
            self.mel
                .logarithm(&Tensor::from_slice(&attack).view([1, -1]))
        });
        let frames = one.size()[2].min(other.size()[2]);
        let difference = one.narrow(2, 0, frames) - other.narrow(2, 0, frames);
        let nepers = difference.abs().mean(tch::Kind::Double).double_value(&[]);
        20.0 * std::f64::consts::LOG10_E * nepers
    }

    /// Returns the spectral distance of two notes.
    fn distance(&self, one: &Note, other: &Note) -> f64 {
        let [one, other] = [one, other].map(|note| note.levelled(BEFORE_S));
        let samples = one.len().min(other.len()) as i64;
        let row = |sound: Vec<f32>| {
            Tensor::from_slice(&sound)
                .view([1, -1])
                .narrow(1, 0, samples)
        };
        tch::no_grad(|| {
            self.spectral
                .between(&row(one), &row(other))
                .double_value(&[])
        })
    }

    /// Returns the spectral centroid of the sustained part, Hz.
    fn centroid_hz(&self, note: &Note) -> f64 {
        let spectrum = self.spectrum(note.sustained(), &self.windows[0]);
        let bins = spectrum.len();
        let weighted = spectrum.iter().enumerate();
        let weighted: f64 = weighted
            .map(|(bin, power)| self.hz(bin, bins) * power)
            .sum();
        weighted / spectrum.iter().sum::<f64>().max(1e-20)
    }

    /// Returns the power between the partials relative to all, dB.
    fn noise_db(&self, note: &Note) -> f64 {
        let spectrum = self.spectrum(note.sustained(), &self.windows[0]);
        let bins = spectrum.len();
        let pitch_hz = 440.0 * ((f64::from(note.measures.pitch) - 69.0) / 12.0).exp2();
        let is_between = |bin: usize| {
            let partial = self.hz(bin, bins) / pitch_hz;
            (0.3..0.7).contains(&partial.fract()) && partial > 1.0
        };
        let below = (0..bins).filter(|bin| self.hz(*bin, bins) <= NOISE_HZ);
        let between: f64 = below
            .filter(|bin| is_between(*bin))
            .map(|bin| spectrum[bin])
            .sum();
        10.0 * (between.max(1e-12) / 0.4 / spectrum.iter().sum::<f64>().max(1e-12)).log10()
    }
}

/// Plays notes of an instrument.
struct Player<'a> {
    model: &'a Model,
    performance: Performance,
    rate: FeatureRate,
    /// The recordings have several dynamics.
    has_dynamics: bool,
}

impl Player<'_> {
    /// Plays the key of a pitch in semitones for a number of frames, and then for some more, with
    /// knobs at positions.
    fn play(
        &self,
        knobs: &BTreeMap<String, f32>,
        pitch: f32,
        velocity: f32,
        held: usize,
        after: usize,
    ) -> anyhow::Result<Vec<f32>> {
        let key = key(pitch);
        let options = PipelineOptions {
            sample_rate: self.rate.sample_rate,
            seed: u64::from(key),
            transpose: pitch - f32::from(key),
            ..Default::default()
        };
        let mut pipeline = Pipeline::new(self.model, &options)?;
        for (name, position) in knobs {
            pipeline.set_control(name, *position)?;
        }
        let mut play = |at: usize, kind| {
            pipeline.handle(Event {
                at: at as u64,
                kind,
            })
        };
        let (channel, end) = (0, held * self.rate.hop);
        play(
            0,
            EventKind::NoteOn {
                channel,
                key,
                velocity,
            },
        )?;
        play(
            end,
            EventKind::NoteOff {
                channel,
                key,
                velocity,
            },
        )?;
        let latency = pipeline.latency_samples();
        let mut sound = vec![0.0; latency + (held + after) * self.rate.hop];
        pipeline.process(&[], &mut sound);
        sound.drain(..latency);
        Ok(sound)
    }

    /// Plays a recorded note: at the velocity of its level, or the natural one if all are alike.
    fn replay(&self, recorded: &Note) -> anyhow::Result<Option<Note>> {
        let Note {
            features,
            measures: note,
        } = recorded;
        let (onset, end) = note.held;
        let velocity = if self.has_dynamics {
            self.velocity(note.level_db)
        } else {
            NATURAL_VELOCITY
        };
        let held = end - onset;
        let sound = self.play(
            &features.knobs,
            note.pitch,
            velocity,
            held,
            features.frames() - end,
        )?;
        Ok(Note::new(Features::analyse(sound, self.rate)))
    }

    /// Returns the velocity whose notes are sustained at a level, dB.
    fn velocity(&self, level_db: f32) -> f32 {
        let Performance { sustain_db, .. } = self.performance;
        let nearest = (1..=127_u8).map(|velocity| f32::from(velocity) / 127.0);
        let error = |velocity: f32| {
            (self.performance.peak_db(velocity) + sustain_db * velocity - level_db).abs()
        };
        let best = nearest.min_by(|a, b| error(*a).total_cmp(&error(*b)));
        best.unwrap_or(NATURAL_VELOCITY)
    }
}

fn key(pitch: f32) -> u8 {
    pitch.round().clamp(0.0, 127.0) as u8
}

/// Measures of one note.
struct Row {
    level_db: f64,
    attack_ms: Compared,
    attack_treble_db: Compared,
    attack_distance_db: Distances,
    distance: Distances,
    range_db: Option<Compared>,
    vibrato_cents: Option<Compared>,
    noise_db: Compared,
    release_ms: Option<Compared>,
}

/// Plays up to forty single notes of a collection and compares them. `others` are the recordings
/// that a sampler would have, if they are not the rest of the collection. `hear` gets each sound
/// with the name of its recording.
///
/// # Errors
/// Returns an error if the model is no instrument, there are no single notes, or a recording cannot
/// be read, or that of `hear`.
pub fn audition(
    model: &Model,
    recordings: &Recordings,
    others: Option<&Recordings>,
    mut hear: impl FnMut(&str, &[f32]) -> anyhow::Result<()>,
) -> anyhow::Result<Audition> {
    if model.header().kind != Kind::Instrument {
        bail!("only instruments can be auditioned");
    }
    let rate = super::feature_rate(model)?;
    let analyser = Analyser::new(rate);
    let mut notes = Vec::new();
    for (&index, features) in recordings.indices.iter().zip(recordings.features()) {
        let features = features?;
        if features.seconds() <= crate::data::playing::NOTE_S
            && let Some(note) = Note::new(features)
        {
            notes.push((index, note));
        }
    }
    let dynamics = recorded_colour(&analyser, &notes);
    let player = Player {
        model,
        performance: model.header().performance.unwrap_or_default(),
        rate,
        has_dynamics: dynamics.is_some(),
    };
    let every = notes.len().div_ceil(MAX_NOTES).max(1);
    let notes: Vec<(usize, Note)> = notes.into_iter().step_by(every).collect();
    if notes.is_empty() {
        bail!("there are no single notes of up to 15 s with a pitch");
    }
    let files: Vec<Features> = recordings
        .subset(notes.iter().map(|(index, _)| *index).collect())
        .features()
        .collect::<anyhow::Result<_>>()?;
    let sawtooth = SawtoothBaseline::new(&files, rate);
    let mut rows = Vec::new();
    for (index, note) in &notes {
        let Some(played) = player.replay(note)? else {
            continue;
        };
        let name = &recordings.store.recordings()[*index].source.name;
        hear(name, played.features.audio())?;
        let rest = || {
            let indices = recordings.indices.iter().copied();
            recordings.subset(indices.filter(|other| other != index).collect())
        };
        let others = others.cloned().unwrap_or_else(rest);
        let sampled = nearest(&note.features, Some(note.measures.pitch), &others)?;
        let sampled = sampled.and_then(|sound| Note::new(Features::analyse(sound, rate)));
        let plain = Note::new(Features::analyse(sawtooth.replay(&played.features), rate));
        rows.extend(row(
            &analyser,
            player.performance.gain_db,
            note,
            &played,
            sampled.as_ref(),
            plain.as_ref(),
        ));
    }
    if rows.is_empty() {
        bail!("the model is silent");
    }
    let (centroids_hz, colour) = played_colour(&analyser, &player)?;
    Ok(Audition::new(&rows, (dynamics, colour), centroids_hz))
}

/// Auditions a model, makes it as loud, quick, bright, lively and noisy as the recordings, and auditions
/// that.
///
/// # Errors
/// As [`audition`].
pub fn adjusted(
    model: &Model,
    recordings: &Recordings,
    others: Option<&Recordings>,
) -> anyhow::Result<(Model, Audition)> {
    let mut model = model.clone();
    for _ in 0..ADJUSTMENTS {
        let heard = audition(&model, recordings, others, |_, _| Ok(()))?;
        model = adjust(&model, &heard)?;
    }
    let heard = audition(&model, recordings, others, |_, _| Ok(()))?;
    Ok((model, heard))
}

/// Changes the attack, or the swell after it, and the drift of the level by what was heard.
fn adjust_times(performance: &mut Performance, heard: &Audition) {
    let Compared { recorded, played } = heard.attack_ms;
    let (least, most) = TIME_FACTORS;
    let factor = ((recorded / played.max(1.0)) as f32).clamp(least, most);
    let time = if performance.sustain_db > 0.0 {
        &mut performance.decay_ms
    } else {
        &mut performance.attack_ms
    };
    *time = (*time * factor).clamp(2.0, 5e3);
    let is_held = performance.decay_db_per_s == 0.0;
    if let Some(Compared { recorded, played }) = heard.range_db.filter(|_| is_held) {
        let drift = performance.humanize_db + (recorded - played) as f32 / RANGE_OF_DRIFT;
        performance.humanize_db = drift.clamp(LEAST_DRIFT_DB, MOST_DRIFT_DB);
    }
}

/// Changes level, attack, life and noise of a model by what was heard.
fn adjust(model: &Model, heard: &Audition) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    if let Some(performance) = &mut header.performance {
        let shift = -heard.level_db.clamp(-MAX_SHIFT_DB, MAX_SHIFT_DB) as f32;
        let max = (performance.loudness_max_db + shift).clamp(-85.0, 0.0);
        performance.loudness_min_db = (performance.loudness_min_db + shift).clamp(-90.0, max - 1.0);
        performance.loudness_max_db = max;
        adjust_times(performance, heard);
        let Compared { recorded, played } = heard.attack_treble_db;
        if let (Some(recorded), played) = heard.colour_per_10_db {
            let tilt = performance.dynamic_tilt + TILT_OF_COLOUR * (recorded / played).ln() as f32;
            performance.dynamic_tilt = tilt.clamp(0.0, 3.0);
        }
        let tilt = performance.attack_tilt_db + (recorded - played) as f32;
        performance.attack_tilt_db = tilt.clamp(-MAX_ATTACK_TILT_DB, MAX_ATTACK_TILT_DB);
    }
    let Compared { recorded, played } = heard.noise_db;
    let noise = header
        .controls
        .iter_mut()
        .find(|control| control.name == NOISE);
    if let Some(noise) = noise.filter(|_| (recorded - played).is_finite()) {
        let (quietest, loudest) = NOISE_FACTORS;
        let factor = 10_f64.powf((recorded - played) / 20.0) as f32;
        noise.default = (noise.default * factor)
            .clamp(quietest, loudest)
            .clamp(noise.min, noise.max);
    }
    Ok(Model::new(header, model.weights().clone())?)
}

fn row(
    analyser: &Analyser,
    gain_db: f32,
    note: &Note,
    played: &Note,
    sampled: Option<&Note>,
    plain: Option<&Note>,
) -> Option<Row> {
    let both = |measure: &dyn Fn(&Note) -> f64| Compared {
        recorded: measure(note),
        played: measure(played),
    };
    let optional = |measure: fn(&NoteMeasures) -> Option<f32>| {
        Some(Compared {
            recorded: f64::from(measure(&note.measures)?),
            played: f64::from(measure(&played.measures)?),
        })
    };
    let distances = |distance: &dyn Fn(&Note) -> f64| {
        Some(Distances {
            played: distance(played),
            nearest: sampled.map(distance),
            sawtooth: plain.map(distance)?,
        })
    };
    Some(Row {
        level_db: f64::from(played.measures.level_db - gain_db - note.measures.level_db),
        attack_ms: both(&|note| f64::from(note.measures.attack_ms)),
        attack_treble_db: both(&|note| analyser.attack_treble_db(note)),
        attack_distance_db: distances(&|other| analyser.attack_distance_db(note, other))?,
        distance: distances(&|other| analyser.distance(other, note))?,
        range_db: optional(|note| note.range_db),
        vibrato_cents: optional(|note| Some(note.vibrato?.1)),
        noise_db: both(&|note| analyser.noise_db(note)),
        release_ms: optional(|note| note.release_ms),
    })
}

/// Returns the factor of the centroid for 10 dB between the softest and the loudest recordings of a
/// pitch, in the median of the pitches with several dynamics.
fn recorded_colour(analyser: &Analyser, notes: &[(usize, Note)]) -> Option<f64> {
    // Other positions of knobs are other sounds.
    let mut by_key: BTreeMap<(u8, String), Vec<&Note>> = Default::default();
    for (_, note) in notes {
        let knobs = format!("{:?}", note.features.knobs);
        let kind = (key(note.measures.pitch), knobs);
        by_key.entry(kind).or_default().push(note);
    }
    let level = |note: &&&Note| note.measures.level_db;
    let factor = |notes: &Vec<&Note>| {
        let softest = notes.iter().min_by(|a, b| level(a).total_cmp(&level(b)))?;
        let loudest = notes.iter().max_by(|a, b| level(a).total_cmp(&level(b)))?;
        let range = loudest.measures.level_db - softest.measures.level_db;
        let ratio = analyser.centroid_hz(loudest) / analyser.centroid_hz(softest);
        (range >= DYNAMICS_DB).then(|| ratio.powf(10.0 / f64::from(range)))
    };
    let factors: Vec<f64> = by_key.values().filter_map(factor).collect();
    (3 * factors.len() >= by_key.len().max(1)).then(|| median(factors))
}

/// Returns the centroids of three velocities, Hz, and the factor for 10 dB.
fn played_colour(analyser: &Analyser, player: &Player<'_>) -> anyhow::Result<([f64; 3], f64)> {
    let Performance {
        pitch_low,
        pitch_high,
        ..
    } = player.performance;
    let held = player.rate.frames(COLOUR_S);
    let (mut centroids, mut factors) = ([const { Vec::new() }; 3], Vec::new());
    for share in [0.2, 0.4, 0.6, 0.8] {
        let pitch = (pitch_low + share * (pitch_high - pitch_low)).round();
        let play = |velocity| -> anyhow::Result<Option<Note>> {
            let sound = player.play(&BTreeMap::new(), pitch, velocity, held, held / 4)?;
            Ok(Note::new(Features::analyse(sound, player.rate)))
        };
        let mut notes = Vec::new();
        for velocity in VELOCITIES {
            notes.extend(play(velocity)?);
        }
        let [soft, _, loud] = notes.as_slice() else {
            continue;
        };
        let range = f64::from(loud.measures.level_db - soft.measures.level_db);
        let ratio = analyser.centroid_hz(loud) / analyser.centroid_hz(soft);
        if range > 1.0 {
            factors.push(ratio.powf(10.0 / range));
        }
        for (centroids, note) in centroids.iter_mut().zip(&notes) {
            centroids.push(analyser.centroid_hz(note));
        }
    }
    Ok((centroids.map(median), median(factors)))
}

/// Returns the median; NaN of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Audition {
    fn new(rows: &[Row], colour_per_10_db: (Option<f64>, f64), centroids_hz: [f64; 3]) -> Self {
        let of = |measure: &dyn Fn(&Row) -> f64| median(rows.iter().map(measure).collect());
        let both = |measure: fn(&Row) -> Compared| Compared {
            recorded: of(&|row| measure(row).recorded),
            played: of(&|row| measure(row).played),
        };
        let optional = |measure: fn(&Row) -> Option<Compared>| {
            let all: Vec<Compared> = rows.iter().filter_map(measure).collect();
            (2 * all.len() > rows.len()).then(|| Compared {
                recorded: median(all.iter().map(|both| both.recorded).collect()),
                played: median(all.iter().map(|both| both.played).collect()),
            })
        };
        let distances = |measure: fn(&Row) -> Distances| {
            let nearest: Vec<f64> = rows.iter().filter_map(|row| measure(row).nearest).collect();
            Distances {
                played: of(&|row| measure(row).played),
                nearest: (!nearest.is_empty()).then(|| median(nearest)),
                sawtooth: of(&|row| measure(row).sawtooth),
            }
        };
        Self {
            notes: rows.len(),
            level_db: of(&|row| row.level_db),
            attack_ms: both(|row| row.attack_ms),
            attack_treble_db: both(|row| row.attack_treble_db),
            attack_distance_db: distances(|row| row.attack_distance_db),
            distance: distances(|row| row.distance),
            range_db: optional(|row| row.range_db),
            vibrato_cents: optional(|row| row.vibrato_cents),
            noise_db: both(|row| row.noise_db),
            release_ms: optional(|row| row.release_ms),
            colour_per_10_db,
            centroids_hz,
        }
    }

    /// Returns the figures in words, a line each, and what to do where an instrument is worse than
    /// simpler ones.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} notes played by MIDI, against the recordings:",
            self.notes
        );
        let mut line = |words: String| {
            let _ = write!(text, "\n  {words}");
        };
        line(match self.level_db {
            level if level.abs() < 2.0 => "as loud as your recordings".into(),
            level if level > 0.0 => format!("{level:.0} dB louder than your recordings"),
            level => format!("{:.0} dB softer than your recordings", -level),
        });
        line(times("attacks", self.attack_ms, "faster", "slower"));
        let Compared { recorded, played } = self.attack_treble_db;
        line(format!(
            "treble of the first 80 ms {played:.1} dB against the sustained sound, recorded {recorded:.1} dB"
        ));
        let (recorded, played) = self.colour_per_10_db;
        let how = match played {
            factor if factor < 1.05 => "soft notes as bright as loud ones".to_owned(),
            factor => format!("10 dB more are {:.0} % brighter", 100.0 * (factor - 1.0)),
        };
        line(match recorded {
            Some(factor) => format!("{how}, recorded {:.0} %", 100.0 * (factor - 1.0)),
            None => how,
        });
        if let Some(Compared { recorded, played }) = self.range_db {
            line(format!(
                "the level of a held note moves by {played:.1} dB, recorded {recorded:.1} dB"
            ));
        }
        if let Some(Compared { recorded, played }) = self.vibrato_cents {
            line(format!(
                "vibrato of {played:.0} cents, recorded {recorded:.0} cents"
            ));
        }
        let Compared { recorded, played } = self.noise_db;
        line(format!(
            "noise between partials {played:.0} dB, recorded {recorded:.0} dB"
        ));
        if let Some(release) = self.release_ms {
            line(times("releases", release, "shorter", "longer"));
        }
        for (what, unit, distances) in [
            ("first 80 ms", " dB", self.attack_distance_db),
            ("whole notes", "", self.distance),
        ] {
            let Distances {
                played,
                nearest,
                sawtooth,
            } = distances;
            let nearest = nearest.map_or_else(String::new, |nearest| {
                format!(", the nearest recording {nearest:.2}{unit}")
            });
            line(format!(
                "{what} are {played:.2}{unit} from the recordings{nearest}, a sawtooth {sawtooth:.2}{unit}"
            ));
        }
        text + &self.advice()
    }

    /// Returns what to do where an instrument is worse than simpler ones, a line each.
    fn advice(&self) -> String {
        let Distances {
            played,
            nearest,
            sawtooth,
        } = self.distance;
        let mut advice = String::new();
        if played > sawtooth {
            advice += "\nworse than a sawtooth: train for more steps, or look whether the pitches \
                       that `ondes-train data report` tells are right";
        } else if nearest.is_some_and(|nearest| played > 1.1 * nearest) {
            advice += "\nworse than the nearest recording: train for more steps, or with more notes \
                       between the recorded pitches";
        }
        advice
    }

    /// Returns the figures as measures for the card; the baseline is that of the recordings, or of
    /// the nearest one.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        let measure = |name: &str, unit: &str, value: f64, baseline: Option<f64>| Measure {
            name: name.into(),
            unit: unit.into(),
            value: super::round(value),
            baseline: baseline.map(super::round),
        };
        let both =
            |name, unit, Compared { recorded, played }| measure(name, unit, played, Some(recorded));
        let attack = self.attack_distance_db;
        let mut measures = vec![
            measure("level above the recordings", "dB", self.level_db, None),
            both("time to 1 dB below the sustain", "ms", self.attack_ms),
            measure(
                "difference of the first 80 ms",
                "dB",
                attack.played,
                attack.nearest,
            ),
        ];
        measures.extend(
            self.range_db
                .map(|range| both("range of level within a note", "dB", range)),
        );
        measures.push(measure(
            "brightness for 10 dB",
            "×",
            self.colour_per_10_db.1,
            self.colour_per_10_db.0,
        ));
        measures.retain(|measure| measure.value.is_finite());
        measures
    }
}

/// Returns how two times compare, in words.
fn times(what: &str, Compared { recorded, played }: Compared, less: &str, more: &str) -> String {
    let how = match played / recorded {
        ratio if (0.77..1.3).contains(&ratio) => "as recorded".to_owned(),
        ratio if ratio < 1.0 => format!("{:.0} ms {less} than recorded", recorded - played),
        _ => format!("{:.0} ms {more} than recorded", played - recorded),
    };
    format!("{what} {how} ({played:.0} ms, recorded {recorded:.0} ms)")
}
