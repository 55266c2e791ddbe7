//! Sources of a render: notes, a recording, or none.

use std::path::Path;

use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{ControlSource, InputChannels};

use super::arguments::RenderArguments;
use super::midi_score::MidiScore;
use super::prime::Prime;
use super::recording_reader::RecordingReader;

/// Open source of a render.
pub enum RenderSource {
    Midi(MidiScore),
    Recording(Box<RecordingReader>),
    /// Length in seconds that the model generates, and the recording that it goes on from.
    Generated(f64, Option<Prime>),
}

impl RenderSource {
    /// Opens the source that the command line asks for.
    ///
    /// # Errors
    /// Returns an error if the file is of another kind or cannot be read.
    pub fn open(path: &Path, arguments: &RenderArguments, model: &Model) -> anyhow::Result<Self> {
        if let Some(seconds) = arguments.generated_seconds() {
            let rate = arguments.sample_rate.unwrap_or(model.header().sample_rate);
            let prime = arguments.prime.as_ref().map(|path| Prime::open(path, rate));
            return Ok(Self::Generated(seconds, prime.transpose()?));
        }
        Ok(match arguments.source() {
            ControlSource::Notes => {
                let settings = arguments.midi_settings();
                Self::Midi(MidiScore::read(
                    path,
                    arguments.track.as_deref(),
                    arguments.channel,
                    &settings,
                )?)
            }
            ControlSource::AudioInput => {
                let channels = match arguments.channels() {
                    // An instrument follows one sound, and a generator goes on from one.
                    InputChannels::Stereo
                        if matches!(model.header().kind, Kind::Instrument | Kind::Generator) =>
                    {
                        InputChannels::Mono
                    }
                    channels => channels,
                };
                Self::Recording(Box::new(RecordingReader::open(
                    path,
                    arguments.sample_rate,
                    channels,
                )?))
            }
        })
    }

    /// Returns the channels that the model is to process; `Mono` if the source has one channel.
    pub fn channels(&self, arguments: &RenderArguments) -> InputChannels {
        match self {
            Self::Recording(recording) if recording.channels() == 2 => InputChannels::Stereo,
            Self::Recording(_) | Self::Midi(_) => InputChannels::Mono,
            Self::Generated(..) => arguments.channels(),
        }
    }

    /// Returns the default output rate, Hz.
    pub fn natural_rate(&self, model: &Model) -> u32 {
        match self {
            Self::Midi(_) | Self::Generated(..) => model.header().sample_rate,
            Self::Recording(recording) => recording.sample_rate(),
        }
    }

    /// Returns the approximate length in samples at a rate in Hz, without latency and tail.
    pub fn length(&self, sample_rate: u32) -> Option<u64> {
        match self {
            Self::Midi(score) => Some(score.end(sample_rate)),
            Self::Generated(seconds, _) => Some((seconds * f64::from(sample_rate)).ceil() as u64),
            Self::Recording(recording) => {
                let scale = f64::from(sample_rate) / f64::from(recording.sample_rate());
                recording
                    .frames()
                    .map(|frames| (frames as f64 * scale) as u64)
            }
        }
    }
}
