//! MIDI files. Their answers are the notes that they play.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ondes_engine::instrument::{EventKind, MidiFile, MidiSelection};
use serde::Deserialize;
use serde_json::{Value, json};

/// Rate at which times are compared, Hz.
const RATE: f64 = 1e6;
/// Largest difference to the times of an answer, seconds: the answers are rounded to microseconds.
const MAX_DIFFERENCE_S: f64 = 2e-6;
/// The same for other programs, which play in blocks.
const MAX_DIFFERENCE_OF_OTHERS_S: f64 = 3e-3;

/// Right answer for a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Name of the file.
    pub file: String,
    /// Part of the table.
    pub group: String,
    /// Oddity.
    pub what: String,
    /// Reason why other programs read it otherwise.
    why: Option<String>,
    /// In order of their start, then of their channels and keys; `None` if the file is refused.
    notes: Option<Vec<Note>>,
    /// Part of the error.
    refused: Option<String>,
    /// Part of the warning; `None` if there must be none.
    warning: Option<String>,
    /// Names of all tracks, if they are checked.
    tracks: Option<Vec<String>>,
}

/// A note: start and end in seconds, channel from 1, key, velocity from 1 to 127. It ends where its
/// key is struck again; `None` if it never ends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Note(f64, Option<f64>, u8, u8, u8);

/// Content of a file as a program reads it.
pub struct Content {
    notes: Vec<Note>,
    warning: Option<String>,
    tracks: Vec<String>,
}

/// Reads a file with Ondes.
///
/// # Errors
/// Returns the message of the reader.
pub fn read(path: &Path) -> Result<Content, String> {
    let midi = MidiFile::read(path).map_err(|error| error.to_string())?;
    let tracks = midi.tracks.iter().map(|track| track.name.clone()).collect();
    Ok(Content {
        notes: notes(&midi),
        warning: midi.warning,
        tracks,
    })
}

fn notes(midi: &MidiFile) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    let mut sounding: HashMap<(u8, u8), usize> = HashMap::new();
    for event in midi.events_at(RATE, MidiSelection::All) {
        let at = event.at as f64 / RATE;
        let (EventKind::NoteOn { channel, key, .. } | EventKind::NoteOff { channel, key, .. }) =
            event.kind
        else {
            continue;
        };
        if let Some(index) = sounding.remove(&(channel, key)) {
            notes[index].1 = Some(at);
        }
        if let EventKind::NoteOn { velocity, .. } = event.kind {
            sounding.insert((channel, key), notes.len());
            notes.push(Note(
                at,
                None,
                channel + 1,
                key,
                (127.0 * velocity).round() as u8,
            ));
        }
    }
    notes.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.2, a.3).cmp(&(b.2, b.3))));
    notes
}

impl Answer {
    /// Checks what a reader made of the file.
    ///
    /// # Errors
    /// Says what differs.
    pub fn check(&self, found: Result<Content, String>) -> Result<(), String> {
        let content = match (found, &self.refused) {
            (Err(message), Some(reason)) if message.contains(reason.as_str()) => return Ok(()),
            (Err(message), _) => return Err(message),
            (Ok(_), Some(reason)) => return Err(format!("plays; expected: {reason}")),
            (Ok(content), None) => content,
        };
        let expected = self
            .notes
            .as_ref()
            .expect("an answer has notes or a refusal");
        let difference = difference(&content.notes, expected, MAX_DIFFERENCE_S);
        if difference != "exact" {
            return Err(format!(
                "{difference}: {:?}; expected {expected:?}",
                content.notes
            ));
        }
        match (&content.warning, &self.warning) {
            (None, None) => {}
            (Some(found), Some(expected)) if found.contains(expected.as_str()) => {}
            (found, expected) => return Err(format!("warning {found:?}, expected {expected:?}")),
        }
        match &self.tracks {
            Some(tracks) if *tracks != content.tracks => {
                Err(format!("{:?}, expected {tracks:?}", content.tracks))
            }
            _ => Ok(()),
        }
    }
}

/// Describes notes: `exact`, or what differs from the answer.
fn difference(found: &[Note], expected: &[Note], allowed_s: f64) -> String {
    let sounds = |notes: &[Note]| {
        notes
            .iter()
            .map(|note| (note.2, note.3, note.4))
            .collect::<Vec<_>>()
    };
    let (mut missing, mut more) = (sounds(expected), sounds(found));
    more.retain(
        |note| match missing.iter().position(|other| other == note) {
            Some(index) => {
                missing.remove(index);
                false
            }
            None => true,
        },
    );
    let plural = |count: usize| format!("{count} note{}", if count == 1 { "" } else { "s" });
    let mut words = Vec::new();
    if found.is_empty() {
        words.push("no notes".to_owned());
    } else if !missing.is_empty() {
        words.push(format!("{} missing", plural(missing.len())));
    }
    if !more.is_empty() {
        words.push(format!("{} more", plural(more.len())));
    }
    if missing.is_empty() && more.is_empty() {
        let differ = |a: f64, b: f64| (a - b).abs() > allowed_s;
        let mut pairs = found.iter().zip(expected);
        if pairs
            .clone()
            .any(|(found, expected)| differ(found.0, expected.0))
        {
            words.push("other times".to_owned());
        } else if pairs.clone().any(|(found, _)| found.1.is_none()) {
            words.push("a note without end".to_owned());
        } else if pairs
            .any(|(found, expected)| differ(found.1.unwrap_or(0.0), expected.1.unwrap_or(0.0)))
        {
            words.push("other ends".to_owned());
        }
    }
    if words.is_empty() {
        "exact".to_owned()
    } else {
        words.join(", ")
    }
}

/// Reads a file as Ondes and, from what other programs have made of it, as these do: from their
/// list of notes, or from the MIDI file that they have written. Returns a line of the table as
/// JSON: name, group, oddity, what each reader makes of it, and why they differ.
#[must_use]
pub fn compare(folder: &Path, answer: &Answer, others: &[PathBuf]) -> Value {
    let expected = answer.notes.as_deref();
    let describe = |notes: &[Note], allowed_s: f64| match expected {
        Some(expected) => difference(notes, expected, allowed_s),
        None if notes.is_empty() => "no notes".to_owned(),
        None => "plays".to_owned(),
    };
    let ours = match read(&folder.join(&answer.file)) {
        Err(message) => super::refusal(&message),
        Ok(content) => {
            let warned = if content.warning.is_some() {
                ", with a warning"
            } else {
                ""
            };
            format!("{}{warned}", describe(&content.notes, MAX_DIFFERENCE_S))
        }
    };
    let theirs = others.iter().map(|path| notes_of_other(path));
    let theirs = theirs.map(|notes| {
        notes.map_or_else(
            || "refuses".to_owned(),
            |notes| describe(&notes, MAX_DIFFERENCE_OF_OTHERS_S),
        )
    });
    let readers: Vec<String> = [ours].into_iter().chain(theirs).collect();
    json!({ "file": answer.file, "group": answer.group, "what": answer.what, "readers": readers, "why": answer.why })
}

/// Returns the notes that another program plays; `None` if it has refused the file.
fn notes_of_other(path: &Path) -> Option<Vec<Note>> {
    let bytes = std::fs::read(path).ok()?;
    if path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        return Some(serde_json::from_slice(&bytes).expect("a list of notes"));
    }
    Some(MidiFile::parse(&bytes).map_or_else(|_| Vec::new(), |midi| notes(&midi)))
}
