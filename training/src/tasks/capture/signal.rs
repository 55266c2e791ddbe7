//! Signal to play through a device, about three minutes long.
//!
//! In order: two clicks in silence, which give delay and noise floor; sweeps and noise bursts,
//! which cover the edges of the spectrum; plucked strings at many levels, single notes and chords;
//! and a musical part that is held out of training. The strings are those of
//! [`ondes_physical_models::plucked`], without a room. Equal lengths give equal samples.

use std::f64::consts::TAU;

use ondes_engine::dsp::level::db_to_amplitude_f64;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

use ondes_physical_models::Instrument;
use ondes_physical_models::filter::OnePole;
use ondes_physical_models::performance::{Note, Score, ease};
use ondes_physical_models::plucked::Plucked;

/// Sample rate, Hz.
pub const RATE: u32 = 48_000;
/// Range of the length, seconds.
pub const SECONDS: std::ops::RangeInclusive<f64> = 30.0..=1_200.0;
/// Peak of a click, and its length, samples.
pub const CLICK_LEVEL: f32 = 0.9;
const CLICK_SAMPLES: usize = 4;
/// Positions of the clicks and end of the silence around them, seconds.
const CLICKS_S: [f64; 2] = [0.5, 1.0];
const SILENCE_S: f64 = 2.0;
/// Highest peak after the clicks, below the clipping level of converters.
const PEAK: f64 = 0.97;
/// Shares of the time after the clicks: sweeps, noise, single notes, chords. The rest is the
/// held-out part.
const SHARES: [f64; 4] = [0.07, 0.06, 0.37, 0.36];
/// Levels of sweeps and noise, dB of full scale.
const SWEEP_LEVELS_DB: [f64; 4] = [-40.0, -24.0, -10.0, -0.5];
const NOISE_LEVELS_DB: [f64; 6] = [-50.0, -36.0, -24.0, -14.0, -7.0, -1.0];
/// Levels of passages, dB; all are equally frequent.
const PASSAGE_LEVELS_DB: [f64; 8] = [-1.0, -20.0, -7.0, -30.0, -3.0, -13.0, -40.0, -5.0];
/// Length of a passage, seconds.
const PASSAGE_S: f64 = 6.0;
/// Open strings of a guitar, MIDI notes, and chord shapes as frets by string; −1 for a muted
/// string.
const STRINGS: [f64; 6] = [40.0, 45.0, 50.0, 55.0, 59.0, 64.0];
const SHAPES: [[i32; 6]; 8] = [
    [0, 2, 2, 1, 0, 0],
    [-1, 0, 2, 2, 2, 0],
    [-1, 3, 2, 0, 1, 0],
    [-1, -1, 0, 2, 3, 2],
    [3, 2, 0, 0, 0, 3],
    [0, 2, 2, -1, -1, -1],
    [1, 3, 3, 2, 1, 1],
    [-1, 0, 2, 2, 1, 0],
];

/// Returns the first samples of the clicks at a sample rate.
#[must_use]
pub fn click_positions(rate_hz: f64) -> [usize; 2] {
    CLICKS_S.map(|seconds| (seconds * rate_hz).round() as usize)
}

/// Tells whether a sound starts with the clicks, with silence around them.
#[must_use]
pub fn starts_with_clicks(sound: &[f32], rate_hz: f64) -> bool {
    let Some(beginning) = sound.get(..((SILENCE_S - 0.1) * rate_hz) as usize) else {
        return false;
    };
    // Resampling spreads a click over neighbouring samples.
    let near = (0.005 * rate_hz) as usize;
    let positions = click_positions(rate_hz);
    let has_clicks = positions.iter().all(|&position| {
        beginning[position.saturating_sub(near)..position + near]
            .iter()
            .any(|x| x.abs() > 0.5 * CLICK_LEVEL)
    });
    let mut elsewhere = beginning.iter().enumerate().filter(|(at, _)| {
        positions
            .iter()
            .all(|position| position.abs_diff(*at) > near)
    });
    has_clicks && elsewhere.all(|(_, x)| x.abs() < 1e-3)
}

/// Generates a signal of that many seconds.
#[must_use]
pub fn signal(seconds: f64) -> Vec<f32> {
    part(seconds, 0)
}

/// Generates one of several signals of that many seconds, which differ in what is played and how loud:
/// the next begins where the one before ended. Shorter than 10 s is too little for its sections.
#[must_use]
pub fn part(seconds: f64, index: usize) -> Vec<f32> {
    let samples = |seconds: f64| (seconds * f64::from(RATE)).round() as usize;
    let total = samples(seconds);
    let mut signal = vec![0.0_f32; samples(SILENCE_S)];
    for position in click_positions(f64::from(RATE)) {
        signal[position..position + CLICK_SAMPLES].fill(CLICK_LEVEL);
    }
    let rest = seconds - SILENCE_S;
    let [sweeps_s, noise_s, notes_s, chords_s] = SHARES.map(|share| share * rest);
    signal.extend(sweeps(sweeps_s));
    signal.extend(bursts(noise_s));
    signal.extend(passages(
        notes_s,
        1,
        index,
        &PASSAGE_LEVELS_DB,
        single_notes,
    ));
    signal.extend(passages(chords_s, 2, index, &PASSAGE_LEVELS_DB, chords));
    let left = total.saturating_sub(signal.len()) as f64 / f64::from(RATE);
    signal.extend(passages(left, 3, index, &[-1.0, -8.0, -4.0, -18.0], music));
    signal.resize(total, 0.0);
    signal
}

/// Generates the signal that the loudness of a capture is measured with: four seconds of playing at
/// −18 dB RMS.
#[must_use]
pub fn standard() -> Vec<f32> {
    let mut playing = passages(4.0, 4, 0, &[-1.0], music);
    let gain = db_to_amplitude_f64(-18.0 - super::level::rms_db(&playing)) as f32;
    playing.iter_mut().for_each(|x| *x *= gain);
    playing
}

fn gain(level_db: f64) -> f64 {
    db_to_amplitude_f64(level_db)
}

/// Generates exponential sweeps from 20 Hz to 20 kHz, one per level, with fades.
fn sweeps(seconds: f64) -> Vec<f32> {
    let samples = (seconds / SWEEP_LEVELS_DB.len() as f64 * f64::from(RATE)) as usize;
    let octaves = 1_000.0_f64.ln();
    let length_s = samples as f64 / f64::from(RATE);
    let sweep = |level_db: f64| {
        (0..samples).map(move |n| {
            let share = n as f64 / samples as f64;
            let phase = TAU * 20.0 * length_s / octaves * ((share * octaves).exp() - 1.0);
            let fade = ease((share.min(1.0 - share) * length_s / 0.02).min(1.0));
            (gain(level_db) * PEAK * fade * phase.sin()) as f32
        })
    };
    SWEEP_LEVELS_DB.into_iter().flat_map(sweep).collect()
}

/// Generates noise bursts, white and low-passed in turn, one of each per level, with rests between.
fn bursts(seconds: f64) -> Vec<f32> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0x0b15_7001);
    let samples = (seconds / (2 * NOISE_LEVELS_DB.len()) as f64 * f64::from(RATE)) as usize;
    let mut sound = Vec::new();
    for level_db in NOISE_LEVELS_DB {
        for corner_hz in [16_000.0, 900.0] {
            // Two poles, since guitars have little treble.
            let mut low_pass = [OnePole::new(corner_hz, f64::from(RATE)); 2];
            let burst: Vec<f64> = (0..samples)
                .map(|n| {
                    let share = n as f64 / samples as f64;
                    let white = random.random_range(-1.0..1.0);
                    let sounding = if share < 0.75 {
                        ease((share * 50.0).min(1.0))
                    } else {
                        0.0
                    };
                    sounding * low_pass.iter_mut().fold(white, |x, filter| filter.low(x))
                })
                .collect();
            sound.extend(with_peak(&burst, level_db));
        }
    }
    sound
}

/// Scales a passage to a peak level, dB.
fn with_peak(passage: &[f64], level_db: f64) -> Vec<f32> {
    let peak = passage.iter().fold(1e-12_f64, |peak, x| peak.max(x.abs()));
    let scale = gain(level_db) * PEAK / peak;
    passage.iter().map(|x| (scale * x) as f32).collect()
}

/// Renders the passages of a part in series, cycling through the levels.
fn passages(
    seconds: f64,
    seed: u64,
    part: usize,
    levels_db: &[f64],
    play: fn(f64, &mut Xoshiro256PlusPlus) -> Vec<f64>,
) -> Vec<f32> {
    let count = (seconds / PASSAGE_S).ceil().max(1.0) as usize;
    let length_s = seconds / count as f64;
    let passage = |index: usize| {
        let index = part * count + index;
        let mut random = Xoshiro256PlusPlus::seed_from_u64((seed << 32) + index as u64);
        with_peak(
            &play(length_s, &mut random),
            levels_db[index % levels_db.len()],
        )
    };
    (0..count)
        .into_par_iter()
        .map(passage)
        .collect::<Vec<_>>()
        .concat()
}

/// Renders notes on one string, in the order of their starts.
fn string(mut notes: Vec<Note>, length_s: f64, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    notes.sort_by(|a, b| a.onset_s.total_cmp(&b.onset_s));
    let sound = Plucked.render(
        &Score {
            duration_s: length_s,
            notes,
        },
        random,
    );
    sound.into_iter().map(f64::from).collect()
}

/// Plays single notes of random length, pitch and strength.
fn single_notes(length_s: f64, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let mut notes = Vec::new();
    let mut at_s = 0.05;
    while at_s < length_s - 0.2 {
        let note_s =
            [0.12, 0.25, 0.5, 1.1][random.random_range(0..4)] * random.random_range(0.8..1.2);
        let sounding = if random.random_bool(0.3) { 0.5 } else { 0.97 };
        let midi = random.random_range(40.0_f64..84.0).round();
        let mut note = Note::plain(
            at_s,
            at_s + sounding * note_s,
            midi,
            random.random_range(0.1..1.0),
        );
        if note_s > 0.4 && random.random_bool(0.5) {
            note.vibrato_cents = random.random_range(5.0..60.0);
        }
        notes.push(note);
        at_s += note_s;
    }
    string(notes, length_s, random)
}

/// Strums chord shapes: each string by itself, from low to high or back.
fn strums(onsets: &[(f64, f64, f64)], length_s: f64, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let mut strings: [Vec<Note>; 6] = Default::default();
    for &(onset_s, release_s, strength) in onsets {
        let shape = SHAPES[random.random_range(0..SHAPES.len())];
        let barre = random.random_range(0..8);
        let spread_s = random.random_range(0.004..0.03);
        let down = random.random_bool(0.7);
        for (index, fret) in shape.into_iter().enumerate().filter(|(_, fret)| *fret >= 0) {
            let order = if down { index } else { 5 - index };
            let midi = STRINGS[index] + f64::from(fret + barre);
            let strength = (strength * random.random_range(0.85..1.15_f64)).clamp(0.05, 1.0);
            strings[index].push(Note::plain(
                onset_s + order as f64 * spread_s,
                release_s,
                midi,
                strength,
            ));
        }
    }
    let mut sum = Vec::new();
    for notes in strings.into_iter().filter(|notes| !notes.is_empty()) {
        let sound = string(notes, length_s, random);
        sum.resize(sound.len(), 0.0);
        sum.iter_mut().zip(sound).for_each(|(sum, x)| *sum += x);
    }
    sum.resize((length_s * f64::from(RATE)) as usize, 0.0);
    sum
}

fn chords(length_s: f64, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let mut onsets = Vec::new();
    let mut at_s = 0.05;
    while at_s < length_s - 0.3 {
        let chord_s = [0.3, 0.6, 1.2, 2.4][random.random_range(0..4)];
        let sounding = if random.random_bool(0.35) { 0.35 } else { 0.95 };
        onsets.push((
            at_s,
            at_s + sounding * chord_s,
            random.random_range(0.15..1.0),
        ));
        at_s += chord_s;
    }
    strums(&onsets, length_s, random)
}

/// Plays a riff: chords on the beat and a line between them.
fn music(length_s: f64, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let beat_s = 60.0 / random.random_range(84.0..132.0);
    let beats = (length_s / beat_s) as usize;
    let chord = |beat: usize| {
        let at_s = 0.02 + beat as f64 * beat_s;
        (
            at_s,
            at_s + 0.9 * beat_s,
            if beat.is_multiple_of(4) { 0.9 } else { 0.6 },
        )
    };
    let strummed: Vec<_> = (0..beats).filter(|beat| beat % 4 != 3).map(chord).collect();
    let mut sound = strums(&strummed, length_s, random);
    let mut line = Vec::new();
    for beat in (0..beats).filter(|beat| beat % 4 == 3) {
        for half in 0..2 {
            let at_s = 0.02 + (beat as f64 + 0.5 * f64::from(half)) * beat_s;
            let midi = random.random_range(57.0_f64..77.0).round();
            line.push(Note::plain(
                at_s,
                at_s + 0.48 * beat_s,
                midi,
                random.random_range(0.4..1.0),
            ));
        }
    }
    if !line.is_empty() {
        let solo = string(line, length_s, random);
        sound.iter_mut().zip(solo).for_each(|(sum, x)| *sum += x);
    }
    sound
}
