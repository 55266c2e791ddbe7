//! MIDI files as sources of a render.

use std::path::Path;

use anyhow::bail;
use ondes_engine::instrument::{
    Event, EventKind, MidiFile, MidiSelection, MidiSettings, Performance, TempoChange,
};

use crate::standard_input;
use crate::terminal::sanitize;

/// MIDI file with the selected track or channel.
pub struct MidiScore {
    file: MidiFile,
    selection: MidiSelection,
    settings: MidiSettings,
    name: String,
}

impl MidiScore {
    /// Reads a MIDI file, decoded with these settings, and selects a track or channel.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or the selection does not exist or has no
    /// notes.
    pub fn read(
        path: &Path,
        track: Option<&str>,
        channel: Option<u8>,
        settings: &MidiSettings,
    ) -> anyhow::Result<Self> {
        let file = standard_input::read_midi(path, settings)?;
        let name = path.display().to_string();
        let selection = match (track, channel) {
            (Some(track), _) => match find_track(&file, track) {
                Some(index) => MidiSelection::Track(index),
                None => bail!(
                    "{name}: no track {track:?}; available: {}",
                    list_tracks(&file)
                ),
            },
            (None, Some(channel)) => MidiSelection::Channel(channel - 1),
            (None, None) => MidiSelection::All,
        };
        if file.notes(selection) == 0 {
            match (selection, channel) {
                (MidiSelection::Channel(_), Some(channel)) => {
                    bail!(
                        "{name}: channel {channel} has no notes; channels with notes: {}",
                        list_channels(&file)
                    )
                }
                _ => bail!(
                    "{name}: the track has no notes; tracks with notes: {}",
                    list_tracks(&file)
                ),
            }
        }
        Ok(Self {
            file,
            selection,
            settings: *settings,
            name,
        })
    }

    /// Returns the events of a whole file for a track with these settings, with their samples at a
    /// rate in Hz.
    ///
    /// # Errors
    /// Returns an error if the file has to be read again and cannot be.
    pub fn track_events(
        &self,
        settings: &MidiSettings,
        sample_rate: u32,
    ) -> anyhow::Result<Vec<(u64, EventKind)>> {
        let as_pairs = |score: &Self| {
            score
                .events(sample_rate)
                .map(|event| (event.at, event.kind))
                .collect()
        };
        if *settings == self.settings {
            return Ok(as_pairs(self));
        }
        Ok(as_pairs(&Self::read(
            Path::new(&self.name),
            None,
            None,
            settings,
        )?))
    }

    /// Returns the warning about damage of the file, if any.
    pub fn damage(&self) -> Option<String> {
        self.file
            .warning
            .as_ref()
            .map(|warning| format!("{}: {warning}", self.name))
    }

    /// Returns the events with their samples at a rate in Hz.
    pub fn events(&self, sample_rate: u32) -> impl Iterator<Item = Event> + '_ {
        self.file.events_at(f64::from(sample_rate), self.selection)
    }

    /// Returns the changes of the tempo.
    pub fn tempos(&self) -> &[TempoChange] {
        &self.file.tempos
    }

    /// Returns the sample of the last event at a rate in Hz.
    pub fn end(&self, sample_rate: u32) -> u64 {
        self.events(sample_rate).last().map_or(0, |event| event.at)
    }

    /// Returns the number of notes.
    pub fn notes(&self) -> usize {
        self.file.notes(self.selection)
    }

    /// Returns the number of notes outside the instrument's range after transposition; 0 for a
    /// model without `performance`.
    pub fn notes_outside(&self, performance: Option<&Performance>, transpose: f32) -> usize {
        let Some(performance) = performance else {
            return 0;
        };
        let events = self
            .file
            .events
            .iter()
            .filter(|event| self.selection.contains(event));
        let outside = |kind: &EventKind| match *kind {
            EventKind::NoteOn { key, .. } => !performance.has_learnt(f32::from(key) + transpose),
            _ => false,
        };
        events.filter(|event| outside(&event.kind)).count()
    }

    /// Returns warnings to print before rendering.
    pub fn warnings(&self, performance: Option<&Performance>, transpose: f32) -> Vec<String> {
        let name = &self.name;
        let mut warnings: Vec<String> = self.damage().into_iter().collect();
        let outside = self.notes_outside(performance, transpose);
        if let Some(performance) = performance.filter(|_| outside > 0) {
            let (low, high) = (
                note_name(performance.pitch_low),
                note_name(performance.pitch_high),
            );
            let all = self.notes();
            warnings.push(format!(
                "{name}: {outside} of {all} notes are outside the model's range, {low} to {high}"
            ));
        }
        warnings
    }
}

/// Finds a track by name, exactly, then ignoring case, or by its number from 1.
fn find_track(file: &MidiFile, track: &str) -> Option<usize> {
    let similar = |name: &str| name.to_lowercase() == track.to_lowercase();
    let numbered = || {
        track
            .parse()
            .ok()
            .and_then(|number: usize| number.checked_sub(1))
    };
    file.track_named(track)
        .or_else(|| file.tracks.iter().position(|track| similar(&track.name)))
        .or_else(|| numbered().filter(|&index| index < file.tracks.len()))
}

/// Largest number of tracks in an error; a file may have thousands.
const MAX_LISTED: usize = 24;

fn list_tracks(file: &MidiFile) -> String {
    let with_notes = file
        .tracks
        .iter()
        .enumerate()
        .filter(|(_, track)| track.notes > 0);
    let count = with_notes.clone().count();
    let shown = with_notes.take(MAX_LISTED).map(|(index, track)| {
        let number = index + 1;
        match track.name.as_str() {
            "" => format!("{number} ({} notes)", track.notes),
            name => format!("{number} {:?} ({} notes)", sanitize(name), track.notes),
        }
    });
    let mut list = shown.collect::<Vec<_>>().join(", ");
    if count > MAX_LISTED {
        list.push_str(", …");
    }
    list
}

fn list_channels(file: &MidiFile) -> String {
    let used = file
        .tracks
        .iter()
        .fold(0, |used, track| used | track.channels);
    let numbers = (0..16).filter(|channel| used >> channel & 1 == 1);
    numbers
        .map(|channel: u16| (channel + 1).to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the name of a pitch; 60 is C4.
pub fn note_name(pitch: f32) -> String {
    const NAMES: [&str; 12] = [
        "C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B",
    ];
    let key = pitch.round() as i32;
    format!(
        "{}{}",
        NAMES[key.rem_euclid(12) as usize],
        key.div_euclid(12) - 1
    )
}

#[cfg(test)]
mod tests {
    use super::note_name;

    #[test]
    fn pitches_have_note_names() {
        for (pitch, name) in [
            (60.0, "C4"),
            (69.0, "A4"),
            (21.0, "A0"),
            (54.9, "G3"),
            (0.0, "C-1"),
            (127.0, "G9"),
        ] {
            assert_eq!(note_name(pitch), name);
        }
    }
}
