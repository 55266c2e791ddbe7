//! What is played of a MIDI file.

use std::path::Path;

use anyhow::bail;
use ondes_engine::instrument::{Event, EventKind, MidiFile, MidiSelection, Performance};

use crate::terminal::plain;

/// A MIDI file and the part of it to play.
pub struct Score {
    file: MidiFile,
    part: MidiSelection,
    name: String,
}

impl Score {
    /// Reads a MIDI file and finds the part.
    ///
    /// # Errors
    /// When the file cannot be read, or there is no such part, or no note in it.
    pub fn read(path: &Path, track: Option<&str>, channel: Option<u8>) -> anyhow::Result<Self> {
        let file = MidiFile::read(path).map_err(|error| anyhow::anyhow!("{error}"))?;
        let name = path.display().to_string();
        let part = match (track, channel) {
            (Some(track), _) => match find_track(&file, track) {
                Some(index) => MidiSelection::Track(index),
                None => bail!("{name}: there is no track {track:?}; there are {}", list_tracks(&file)),
            },
            (None, Some(channel)) => MidiSelection::Channel(channel - 1),
            (None, None) => MidiSelection::All,
        };
        if file.notes(part) == 0 {
            match (part, channel) {
                (MidiSelection::Channel(_), Some(channel)) => {
                    bail!("{name}: channel {channel} holds no notes; those that do are {}", list_channels(&file))
                }
                _ => bail!("{name}: that track holds no notes; there are {}", list_tracks(&file)),
            }
        }
        Ok(Self { file, part, name })
    }

    /// What to play, in samples at that rate in Hz.
    pub fn events(&self, sample_rate: u32) -> impl Iterator<Item = Event> + '_ {
        self.file.events_at(f64::from(sample_rate), self.part)
    }

    /// When the last of it happens, in samples at that rate in Hz.
    pub fn end(&self, sample_rate: u32) -> u64 {
        self.events(sample_rate).last().map_or(0, |event| event.at)
    }

    /// How many notes it has.
    pub fn notes(&self) -> usize {
        self.file.notes(self.part)
    }

    /// How many notes lie, transposed, outside what an instrument has learnt.
    pub fn notes_outside(&self, performance: &Performance, transpose: f32) -> usize {
        let events = self.file.events.iter().filter(|event| self.part.contains(event));
        let outside = |kind: &EventKind| match *kind {
            EventKind::NoteOn { key, .. } => !performance.has_learnt(f32::from(key) + transpose),
            _ => false,
        };
        events.filter(|event| outside(&event.kind)).count()
    }

    /// What a user should know before it is played.
    pub fn warnings(&self, performance: &Performance, transpose: f32) -> Vec<String> {
        let Self { file, name, .. } = self;
        let played = |index: usize| match self.part {
            MidiSelection::Track(track) => track == index,
            _ => true,
        };
        let tracks = file.tracks.iter().enumerate();
        let damaged: Vec<String> = tracks
            .filter(|(index, track)| played(*index) && !track.complete)
            .map(|(index, _)| (index + 1).to_string())
            .collect();
        let mut warnings = Vec::new();
        if !damaged.is_empty() {
            let tracks = damaged.join(", ");
            warnings.push(format!("{name}: damaged in track {tracks}; what came before was played"));
        }
        let outside = self.notes_outside(performance, transpose);
        if outside > 0 {
            let (low, high) = (note_name(performance.pitch_low), note_name(performance.pitch_high));
            let all = self.notes();
            warnings.push(format!(
                "{name}: {outside} of {all} notes lie outside {low} to {high}, which is all that the model has learnt"
            ));
        }
        warnings
    }
}

/// By its name, exactly or but for upper and lower case, or else by its number, counted from 1.
fn find_track(file: &MidiFile, track: &str) -> Option<usize> {
    let similar = |name: &str| name.to_lowercase() == track.to_lowercase();
    let numbered = || track.parse().ok().and_then(|number: usize| number.checked_sub(1));
    file.track_named(track)
        .or_else(|| file.tracks.iter().position(|track| similar(&track.name)))
        .or_else(|| numbered().filter(|&index| index < file.tracks.len()))
}

/// Tracks that a message shows; a file may have thousands.
const MOST_SHOWN: usize = 24;

fn list_tracks(file: &MidiFile) -> String {
    let with_notes = file.tracks.iter().enumerate().filter(|(_, track)| track.notes > 0);
    let count = with_notes.clone().count();
    let shown = with_notes.take(MOST_SHOWN).map(|(index, track)| {
        let number = index + 1;
        match track.name.as_str() {
            "" => format!("{number} ({} notes)", track.notes),
            name => format!("{number} {:?} ({} notes)", plain(name), track.notes),
        }
    });
    let mut list = shown.collect::<Vec<_>>().join(", ");
    if count > MOST_SHOWN {
        list.push_str(", …");
    }
    list
}

fn list_channels(file: &MidiFile) -> String {
    let used = file.tracks.iter().fold(0, |used, track| used | track.channels);
    let numbers = (0..16).filter(|channel| used >> channel & 1 == 1);
    numbers.map(|channel: u16| (channel + 1).to_string()).collect::<Vec<_>>().join(", ")
}

/// A pitch as a musician calls it; 60 is C4.
pub fn note_name(pitch: f32) -> String {
    const NAMES: [&str; 12] = ["C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B"];
    let key = pitch.round() as i32;
    format!("{}{}", NAMES[key.rem_euclid(12) as usize], key.div_euclid(12) - 1)
}

#[cfg(test)]
mod tests {
    use super::note_name;

    #[test]
    fn notes_have_their_names() {
        for (pitch, name) in [(60.0, "C4"), (69.0, "A4"), (21.0, "A0"), (54.9, "G3"), (0.0, "C-1"), (127.0, "G9")] {
            assert_eq!(note_name(pitch), name);
        }
    }
}
