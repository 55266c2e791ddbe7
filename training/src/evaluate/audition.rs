//! An instrument played by MIDI as it was recorded: each recorded note by its key, at its velocity
//! and for as long, compared with the recording.
//!
//! Unlike [`evaluate`](super::evaluate), which gives the network the recorded pitch and loudness,
//! this measures what a keyboard player hears: levels, attacks, dynamics and life of the notes that
//! [`Performance`] makes.

mod adjust;
mod attacks;
mod keyboard;
mod note;
mod text;

use std::collections::BTreeMap;

use anyhow::bail;
use ondes_engine::instrument::Performance;
use ondes_engine::model::{Kind, Model};
use serde::Serialize;

pub use adjust::adjusted;

use super::nearest::nearest;
use super::sawtooth::SawtoothBaseline;
use crate::data::playing::{NOTE_S, NoteMeasures};
use crate::data::{Features, Recordings};
use attacks::{with_attacks, without_attack};
use keyboard::{Keyboard, key};
use note::{Analyser, Note};

/// Most notes that are played.
const MAX_NOTES: usize = 40;
/// Velocities whose colour is compared.
const VELOCITIES: [f32; 3] = [40.0 / 127.0, 80.0 / 127.0, 120.0 / 127.0];
/// Range of recorded levels of a pitch from which they tell of dynamics, dB.
const DYNAMICS_DB: f32 = 4.0;
/// Length of the notes for it, seconds.
const COLOUR_S: f64 = 1.0;

/// A measure of the recordings and of the played notes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Figure of the recordings.
    pub recorded: f64,
    /// Figure of what the instrument plays.
    pub played: f64,
}

/// Distances from the recordings, of the instrument and of two simpler ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distances {
    /// Figure of what the instrument plays.
    pub played: f64,
    /// Figure of the nearest other recording at the same pitch; none if there is only one.
    pub nearest: Option<f64>,
    /// Figure of a sawtooth with the played pitch and loudness and the recorded mean spectrum.
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

/// Plays up to forty single notes of a collection and compares them, each without its own
/// [recorded attack](ondes_engine::model::Attack): as a note that was not recorded. `others` are
/// the recordings that a sampler would have, if they are not the rest of the collection. `hear`
/// gets each sound with the name of its recording.
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
    let notes = single_notes(recordings)?;
    let dynamics = recorded_colour(&analyser, &notes);
    let keyboard = Keyboard::new(model, rate, dynamics.is_some());
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
        let model = without_attack(model, note)?;
        let keyboard = Keyboard {
            model: &model,
            ..keyboard
        };
        let Some(played) = keyboard.replay(note)? else {
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
            keyboard.performance.gain_db,
            note,
            &played,
            sampled.as_ref(),
            plain.as_ref(),
        ));
    }
    if rows.is_empty() {
        bail!("the model is silent");
    }
    let (centroids_hz, colour) = played_colour(&analyser, &keyboard)?;
    Ok(Audition::new(&rows, (dynamics, colour), centroids_hz))
}

/// Returns the model with the attacks of a collection, if it has notes as long as these; its
/// performance must be that of the recordings.
///
/// # Errors
/// Returns an error if the model cannot be played or a recording cannot be read.
fn with_recorded_attacks(model: &Model, recordings: &Recordings) -> anyhow::Result<Model> {
    let rate = super::feature_rate(model)?;
    let notes = single_notes(recordings)?;
    let has_dynamics = recorded_colour(&Analyser::new(rate), &notes).is_some();
    with_attacks(model, &Keyboard::new(model, rate, has_dynamics), &notes)
}

/// Reads the single notes of a collection, with their indices.
fn single_notes(recordings: &Recordings) -> anyhow::Result<Vec<(usize, Note)>> {
    let mut notes = Vec::new();
    for (&index, features) in recordings.indices.iter().zip(recordings.features()) {
        let features = features?;
        if features.seconds() <= NOTE_S
            && let Some(note) = Note::new(features)
        {
            notes.push((index, note));
        }
    }
    Ok(notes)
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
fn played_colour(analyser: &Analyser, keyboard: &Keyboard<'_>) -> anyhow::Result<([f64; 3], f64)> {
    let Performance {
        pitch_low,
        pitch_high,
        ..
    } = keyboard.performance;
    let held = keyboard.rate.frames(COLOUR_S);
    let (mut centroids, mut factors) = ([const { Vec::new() }; 3], Vec::new());
    for share in [0.2, 0.4, 0.6, 0.8] {
        let pitch = (pitch_low + share * (pitch_high - pitch_low)).round();
        let play = |velocity| -> anyhow::Result<Option<Note>> {
            let sound = keyboard.play(&BTreeMap::new(), pitch, velocity, held, held / 4)?;
            Ok(Note::new(Features::analyse(sound, keyboard.rate)))
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
}
