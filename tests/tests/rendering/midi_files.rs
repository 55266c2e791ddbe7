//! Oddities of MIDI files: each file in `tests/conformance/midi` has a `.json` file of its name beside it, with the
//! notes that it plays.

use std::collections::HashMap;
use std::path::Path;

use ondes_engine::instrument::{EventKind, MidiFile, MidiSelection};
use serde::Deserialize;

/// Content of a `.json` file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    about: String,
    /// In order of their start, then of their channels and keys.
    notes: Vec<Note>,
    /// Part of the warning; `None` if there must be none.
    warning: Option<String>,
}

/// A note, with times in seconds, its channel from 1, and velocity 1 to 127. It ends where its key is struck again.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    on: f64,
    off: f64,
    channel: u8,
    key: u8,
    velocity: u8,
}

/// Rate at which times are compared, Hz.
const RATE: f64 = 1e6;

fn notes(midi: &MidiFile) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    let mut sounding: HashMap<(u8, u8), usize> = HashMap::new();
    for event in midi.events_at(RATE, MidiSelection::All) {
        let at = event.at as f64 / RATE;
        let mut end = |channel: u8, key: u8, next: Option<usize>, notes: &mut Vec<Note>| {
            if let Some(index) = sounding.remove(&(channel, key)) {
                notes[index].off = at;
            }
            if let Some(index) = next {
                sounding.insert((channel, key), index);
            }
        };
        match event.kind {
            EventKind::NoteOn { channel, key, velocity } => {
                let index = notes.len();
                end(channel, key, Some(index), &mut notes);
                let velocity = (127.0 * velocity).round() as u8;
                notes.push(Note { on: at, off: f64::NAN, channel: channel + 1, key, velocity });
            }
            EventKind::NoteOff { channel, key, .. } => end(channel, key, None, &mut notes),
            _ => {}
        }
    }
    notes.sort_by(|a, b| a.on.total_cmp(&b.on).then((a.channel, a.key).cmp(&(b.channel, b.key))));
    notes
}

#[test]
fn oddities_of_midi_files_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/midi");
    let mut count = 0;
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "mid") {
            continue;
        }
        count += 1;
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let expected = std::fs::read_to_string(path.with_extension("json")).unwrap();
        let expected: Expected = serde_json::from_str(&expected).unwrap();
        let midi = MidiFile::read(&path).unwrap();
        let found = notes(&midi);
        let is_equal = found.len() == expected.notes.len()
            && found.iter().zip(&expected.notes).all(|(found, expected)| {
                let near = |a: f64, b: f64| (a - b).abs() < 2e-6;
                near(found.on, expected.on)
                    && near(found.off, expected.off)
                    && (found.channel, found.key, found.velocity) == (expected.channel, expected.key, expected.velocity)
            });
        assert!(is_equal, "{name}: {}\nfound {found:#?}\nexpected {:#?}", expected.about, expected.notes);
        match (&midi.warning, &expected.warning) {
            (None, None) => {}
            (Some(found), Some(expected)) if found.contains(expected.as_str()) => {}
            (found, expected) => panic!("{name}: warning {found:?}, expected {expected:?}"),
        }
    }
    assert!(count >= 36, "{count} files");
}
