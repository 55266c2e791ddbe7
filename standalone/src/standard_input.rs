//! Sources that the command line names: a file, or `-` for standard input.

use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{anyhow, ensure};
use ondes_engine::instrument::{MidiFile, MidiSettings};
use ondes_engine::media::Decoder;

use crate::memory;

/// Name of standard input on the command line.
const STANDARD_INPUT: &str = "-";
/// Its name in messages.
const NAME: &str = "standard input";

/// Returns whether a path of the command line means standard input.
pub fn is_meant(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

/// Opens a recording. Standard input is read to its end first and held in memory, at most half of
/// the machine's.
///
/// # Errors
/// Returns an error that names the source and what is wrong with it.
pub fn open_recording(path: &Path) -> anyhow::Result<Decoder> {
    if is_meant(path) {
        Ok(Decoder::from_bytes(NAME, read()?)?)
    } else {
        Ok(Decoder::open(path)?)
    }
}

/// Reads a MIDI file.
///
/// # Errors
/// Returns an error that names the source and what is wrong with it.
pub fn read_midi(path: &Path, settings: &MidiSettings) -> anyhow::Result<MidiFile> {
    if is_meant(path) {
        return MidiFile::parse_with(&read()?, settings)
            .map_err(|error| anyhow!("{NAME}: {error}"));
    }
    MidiFile::read_with(path, settings).map_err(|error| anyhow!("{error}"))
}

fn read() -> anyhow::Result<Vec<u8>> {
    let most = memory::usual_limit();
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| anyhow!("{NAME}: cannot be read: {error}"))?;
    ensure!(
        bytes.len() as u64 <= most,
        "{NAME}: more than {} MB; give a file instead",
        most >> 20
    );
    Ok(bytes)
}
