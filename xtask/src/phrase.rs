//! A phrase that might have been sung, for showing timbre transfer: a glottal sound through the formants of vowels, with
//! glides, vibrato and breath between notes.

use std::f64::consts::{PI, TAU};
use std::io::Cursor;

use hound::{SampleFormat, WavSpec, WavWriter};

const RATE: u32 = 48_000;
/// Length, seconds.
const SECONDS: f64 = 6.0;
const PEAK: f64 = 0.5;
/// Highest partial, Hz.
const HIGHEST_HZ: f64 = 9000.0;

/// When, to which MIDI pitch, how loud (0 … 1), and the vowel that is reached: 0 for "oo", 1 for "ah".
struct Note {
    start: f64,
    end: f64,
    pitch: f64,
    loudness: f64,
    vowel: f64,
}

/// D minor, as in the piece: two short rises and a long fall home.
const NOTES: [Note; 8] = [
    Note { start: 0.15, end: 0.75, pitch: 57.0, loudness: 0.45, vowel: 0.2 },
    Note { start: 0.75, end: 1.20, pitch: 60.0, loudness: 0.60, vowel: 0.6 },
    Note { start: 1.20, end: 2.15, pitch: 62.0, loudness: 0.75, vowel: 1.0 },
    Note { start: 2.40, end: 2.80, pitch: 65.0, loudness: 0.85, vowel: 0.7 },
    Note { start: 2.80, end: 3.85, pitch: 69.0, loudness: 1.00, vowel: 1.0 },
    Note { start: 3.85, end: 4.20, pitch: 67.0, loudness: 0.75, vowel: 0.5 },
    Note { start: 4.20, end: 4.55, pitch: 64.0, loudness: 0.60, vowel: 0.3 },
    Note { start: 4.55, end: 5.75, pitch: 62.0, loudness: 0.55, vowel: 0.1 },
];

/// Centre and width of three formants, Hz, for "oo" and "ah" (after Peterson and Barney, 1952, rounded).
const FORMANTS: [[[f64; 2]; 3]; 2] =
    [[[320.0, 80.0], [870.0, 100.0], [2240.0, 160.0]], [[730.0, 90.0], [1090.0, 110.0], [2440.0, 170.0]]];

/// How long pitch, vowel and loudness take from one note to the next, seconds.
const GLIDE_S: f64 = 0.11;
/// Rise and fall beside a breath.
const EDGE_S: f64 = 0.07;
const VIBRATO_HZ: f64 = 5.4;
const VIBRATO_SEMITONES: f64 = 0.28;
/// Vibrato comes in so long after a note's beginning.
const VIBRATO_DELAY_S: f64 = 0.35;

/// The phrase as a WAV file: 16 bits, mono.
pub fn wav() -> Vec<u8> {
    let samples = sing();
    let peak = samples.iter().fold(0.0_f64, |peak, sample| sample.abs().max(peak));
    let spec = WavSpec { channels: 1, sample_rate: RATE, bits_per_sample: 16, sample_format: SampleFormat::Int };
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut bytes, spec).expect("memory takes a header");
    for sample in samples {
        writer.write_sample((sample / peak * PEAK * 32_767.0).round() as i16).expect("memory takes a sample");
    }
    writer.finalize().expect("memory takes a file");
    bytes.into_inner()
}

fn sing() -> Vec<f64> {
    let mut phase = 0.0;
    let mut noise = 0x2545_f491_4f6c_dd1d_u64;
    let mut breath = 0.0;
    let sample = |n: u32| {
        let t = f64::from(n) / f64::from(RATE);
        let hz = 440.0 * ((pitch(t) - 69.0) / 12.0).exp2();
        phase = (phase + hz / f64::from(RATE)) % 1.0;
        let loudness = loudness(t);
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        let white = noise as i64 as f64 / i64::MAX as f64;
        // One pole keeps the breath from hissing.
        breath += 0.25 * (white - breath);
        loudness * (voice(phase, hz, along(t, |note| note.vowel), loudness) + 0.012 * breath)
    };
    (0..(SECONDS * f64::from(RATE)) as u32).map(sample).collect()
}

/// Partials that fall with their number, less so when loud, as vowels let them through.
fn voice(phase: f64, hz: f64, vowel: f64, loudness: f64) -> f64 {
    let slope = 1.9 - 0.6 * loudness;
    let partials = (HIGHEST_HZ / hz) as u32;
    let partial = |number: u32| {
        let number = f64::from(number);
        number.powf(-slope) * formants(number * hz, vowel) * (TAU * phase * number).sin()
    };
    (1..=partials).map(partial).sum()
}

/// How much of a frequency a vowel lets through.
fn formants(hz: f64, vowel: f64) -> f64 {
    let [closed, open] = FORMANTS;
    let resonance = |(closed, open): ([f64; 2], [f64; 2])| {
        let [centre, width] = [0, 1].map(|i| closed[i] + (open[i] - closed[i]) * vowel);
        1.0 / (1.0 + ((hz - centre) / width).powi(2)).sqrt()
    };
    closed.into_iter().zip(open).map(resonance).sum::<f64>() + 0.05
}

/// A property of the notes as it moves from one to the next.
fn along(t: f64, property: fn(&Note) -> f64) -> f64 {
    let mut value = property(&NOTES[0]);
    for pair in NOTES.windows(2) {
        // The voice is underway to a note when the note begins.
        let way = ((t - pair[1].start) / GLIDE_S + 0.5).clamp(0.0, 1.0);
        value += (property(&pair[1]) - property(&pair[0])) * ease(way);
    }
    value
}

fn pitch(t: f64) -> f64 {
    let sounding = NOTES.iter().rfind(|note| note.start <= t);
    let into = sounding.map_or(0.0, |note| t - note.start - VIBRATO_DELAY_S);
    let depth = VIBRATO_SEMITONES * ease((into / 0.3).clamp(0.0, 1.0));
    along(t, |note| note.pitch) + depth * (TAU * VIBRATO_HZ * t).sin()
}

/// The notes' loudness between breaths.
fn loudness(t: f64) -> f64 {
    let mut gate: f64 = 0.0;
    for (index, note) in NOTES.iter().enumerate() {
        let tied_before = index > 0 && NOTES[index - 1].end == note.start;
        let tied_after = NOTES.get(index + 1).is_some_and(|next| next.start == note.end);
        let rise = if tied_before { f64::from(u8::from(t >= note.start)) } else { (t - note.start) / EDGE_S };
        let fall = if tied_after { f64::from(u8::from(t < note.end)) } else { (note.end - t) / (3.0 * EDGE_S) };
        gate = gate.max(ease(rise.clamp(0.0, 1.0)) * ease(fall.clamp(0.0, 1.0)));
    }
    gate * along(t, |note| note.loudness)
}

/// From 0 to 1 without corners.
fn ease(x: f64) -> f64 {
    0.5 - 0.5 * (PI * x).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hound::WavReader;

    #[test]
    fn is_six_seconds_that_begin_and_end_in_silence() {
        let bytes = wav();
        assert!(bytes.len() <= 600_000);
        let samples: Vec<i16> =
            WavReader::new(Cursor::new(bytes)).unwrap().into_samples().collect::<Result<_, _>>().unwrap();
        assert_eq!(samples.len(), 288_000);
        let peak = samples.iter().map(|sample| sample.unsigned_abs()).max().unwrap();
        assert!((16_370..=16_390).contains(&peak), "{peak}");
        let quiet = |part: &[i16]| part.iter().all(|sample| sample.unsigned_abs() < 4);
        assert!(quiet(&samples[..4800]) && quiet(&samples[samples.len() - 4800..]));
        // No clicks: nothing in it moves faster than a partial at full level could.
        let steepest = samples.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap();
        assert!(steepest < 8000, "{steepest}");
    }

    #[test]
    fn pitch_passes_through_each_note() {
        for note in &NOTES {
            let middle = (note.start + note.end) / 2.0;
            assert!((pitch(middle) - note.pitch).abs() <= VIBRATO_SEMITONES + 1e-9);
        }
        assert!(loudness(2.27) < 0.01 && loudness(3.3) > 0.99);
    }
}
