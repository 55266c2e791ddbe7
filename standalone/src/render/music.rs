//! What drives the model: notes, a recording, or nothing.

use std::path::Path;

use ondes_engine::model::Model;
use ondes_engine::pipeline::Source;

use super::arguments::RenderArguments;
use super::recording::Recording;
use super::score::Score;

/// A file that is open and can be played, or none.
pub enum Music {
    Score(Score),
    Recording(Box<Recording>),
    /// So many seconds of the model's own.
    Alone(f64),
}

impl Music {
    /// Opens a file of the kind that the command line asks for.
    ///
    /// # Errors
    /// When it is not of that kind or cannot be read.
    pub fn open(path: &Path, arguments: &RenderArguments) -> anyhow::Result<Self> {
        if let Some(seconds) = arguments.alone() {
            return Ok(Self::Alone(seconds));
        }
        Ok(match arguments.source() {
            Source::Notes => Self::Score(Score::read(path, arguments.track.as_deref(), arguments.channel)?),
            Source::Sound => Self::Recording(Box::new(Recording::open(path, arguments.sample_rate)?)),
        })
    }

    /// The rate of the output when none is asked for, Hz.
    pub fn natural_rate(&self, model: &Model) -> u32 {
        match self {
            Self::Score(_) | Self::Alone(_) => model.header().sample_rate,
            Self::Recording(recording) => recording.sample_rate(),
        }
    }

    /// About how many samples there will be at that rate in Hz, latency and tail left out.
    pub fn length(&self, sample_rate: u32) -> Option<u64> {
        match self {
            Self::Score(score) => Some(score.end(sample_rate)),
            Self::Alone(seconds) => Some((seconds * f64::from(sample_rate)).ceil() as u64),
            Self::Recording(recording) => {
                let scale = f64::from(sample_rate) / f64::from(recording.sample_rate());
                recording.frames().map(|frames| (frames as f64 * scale) as u64)
            }
        }
    }
}
