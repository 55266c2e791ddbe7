//! Text of numbers, and searching in text.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ondes_engine::model::{Card, Kind};

/// Note names of an octave.
const KEYS: [&str; 12] = [
    "C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B",
];
/// Pitch of MIDI key 69.
const TUNING_HZ: f32 = 440.0;

/// Formats a MIDI key as a note; 60 is `C4`.
pub(crate) fn note(key: i32) -> String {
    format!(
        "{}{}",
        KEYS[key.rem_euclid(12) as usize],
        key.div_euclid(12) - 1
    )
}

/// Returns the nearest MIDI key of a pitch and the deviation from it in cents, -50 … 50. `None` if
/// the pitch is not audible.
pub(crate) fn note_of(pitch_hz: f32) -> Option<(i32, f32)> {
    if !(1.0..=100_000.0).contains(&pitch_hz) {
        return None;
    }
    let key = 69.0 + 12.0 * (pitch_hz / TUNING_HZ).log2();
    Some((key.round() as i32, 100.0 * (key - key.round())))
}

/// Returns the path that was typed into a field, absolute or below `~`; `None` if the text is not a
/// path.
pub(crate) fn parse_path(text: &str) -> Option<PathBuf> {
    let text = text.trim().trim_matches(['"', '\'']);
    if let Some(below) = text.strip_prefix("~/") {
        return std::env::home_dir().map(|home| home.join(below));
    }
    let path = Path::new(text);
    (path.is_absolute() && path.file_name().is_some()).then(|| path.into())
}

/// Formats a level in five characters, so that it stays in place.
pub(crate) fn decibels(db: f32) -> String {
    if db.is_nan() || db < -99.9 {
        "   -∞".into()
    } else {
        format!("{:5.1}", db.min(99.9))
    }
}

/// Formats a duration in µs, ms or s.
pub(crate) fn time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..1000.0 => format!("{micros:.0} µs"),
        ..1e6 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.1} s", micros / 1e6),
    }
}

/// Returns the label of a kind of model.
pub(crate) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Instrument => "Instrument",
        Kind::Effect => "Effect",
        Kind::Codec => "Codec",
        Kind::Generator => "Generator",
    }
}

/// Returns what a sound is, in a sentence: the first one of the card's description, or else the
/// captured device, or the author. Empty if the card says nothing.
pub(crate) fn subtitle(card: &Card) -> String {
    let description = card.description.trim();
    if let Some((first, _)) = description.split_once(". ") {
        return first.to_owned();
    }
    if !description.is_empty() {
        return description.trim_end_matches('.').to_owned();
    }
    let gear = card.gear.clone().unwrap_or_default();
    let gear = [
        gear.make,
        gear.model,
        gear.tone.replace('_', " "),
        gear.kind.replace('_', " "),
    ];
    let gear: Vec<String> = gear.into_iter().filter(|part| !part.is_empty()).collect();
    match (gear.is_empty(), card.author.as_str()) {
        (false, _) => gear.join(" "),
        (true, "") => String::new(),
        (true, author) => format!("By {author}"),
    }
}

/// Formats the first quality figure of a card, with its baseline. Empty if nothing was measured.
#[must_use]
pub fn quality_line(card: &Card) -> String {
    let Some(measure) = card.quality.first() else {
        return String::new();
    };
    let unit = if measure.unit.is_empty() {
        String::new()
    } else {
        format!(" {}", measure.unit)
    };
    let baseline = measure
        .baseline
        .map(|baseline| format!(" (baseline {})", short(baseline)))
        .unwrap_or_default();
    format!("{} {}{unit}{baseline}", measure.name, short(measure.value))
}

/// Formats three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Returns whether `word` occurs in `text`, ignoring case. Does not allocate, as it runs for all
/// models in each frame.
pub(crate) fn finds(text: &str, word: &str) -> bool {
    if word.is_empty() {
        return true;
    }
    text.char_indices().any(|(start, _)| {
        let mut letters = text[start..].chars().flat_map(char::to_lowercase);
        word.chars()
            .flat_map(char::to_lowercase)
            .all(|letter| letters.next() == Some(letter))
    })
}

#[cfg(test)]
mod tests {
    use ondes_engine::model::Measure;

    use super::*;

    #[test]
    fn pitches_have_notes() {
        assert_eq!(note(60), "C4");
        assert_eq!(note(0), "C-1");
        let (key, cents) = note_of(446.0).expect("audible");
        assert_eq!(note(key), "A4");
        assert!((cents - 23.4).abs() < 0.2, "{cents}");
        for silent in [f32::NAN, 0.0, -3.0, f32::INFINITY] {
            assert_eq!(note_of(silent), None);
        }
    }

    #[test]
    fn levels_keep_their_width() {
        for db in [f32::NAN, f32::NEG_INFINITY, -60.0, -6.02, 0.0, 400.0] {
            assert_eq!(decibels(db).chars().count(), 5, "{db}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time(Duration::from_micros(240)), "240 µs");
        assert_eq!(time(Duration::from_micros(2640)), "2.6 ms");
        assert_eq!(time(Duration::from_secs(3)), "3.0 s");
    }

    #[test]
    fn a_sound_is_described_in_a_sentence() {
        let mut card = Card::default();
        assert_eq!(subtitle(&card), "");
        card.author = "M. Rey".into();
        assert_eq!(subtitle(&card), "By M. Rey");
        let gear = ["Marshall", "JCM 800", "amp", "hi_gain"].map(str::to_owned);
        let [make, model, kind, tone] = gear;
        card.gear = Some(ondes_engine::model::card::Gear {
            make,
            model,
            kind,
            tone,
        });
        assert_eq!(subtitle(&card), "Marshall JCM 800 hi gain amp");
        card.description = "A bowed string. Trained on a physical model.".into();
        assert_eq!(subtitle(&card), "A bowed string");
        card.description = "A fuzz with two transistors, fuzz 8.5.".into();
        assert_eq!(subtitle(&card), "A fuzz with two transistors, fuzz 8.5");
    }

    #[test]
    fn quality_is_shown_with_its_baseline() {
        let mut card = Card::default();
        assert_eq!(quality_line(&card), "");
        card.quality.push(Measure {
            name: "error".into(),
            unit: "dB".into(),
            value: 1.234,
            baseline: Some(12.34),
        });
        assert_eq!(quality_line(&card), "error 1.23 dB (baseline 12.3)");
    }

    #[test]
    fn letters_are_found_whatever_their_size() {
        assert!(finds("Nylon Guitar", "guit"));
        assert!(finds("ÉTUDE", "étu"));
        assert!(finds("abc", ""));
        assert!(!finds("Nylon", "nylons"));
        assert!(!finds("", "a"));
    }
}
