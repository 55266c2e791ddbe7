//! Recording that a generator goes on from.

use std::path::Path;

use ondes_engine::dsp::loudness::mean_db;
use ondes_engine::dsp::onsets::onsets;
use ondes_engine::model::Control;
use ondes_engine::pipeline::InputChannels;

use super::recording_reader::RecordingReader;

/// Control of a generator: how far it goes on from what it hears.
pub const LISTEN: &str = "listen";
/// Controls of a generator that have the unit of what can be measured in a recording: onsets a
/// second, and dB.
const DENSITY: &str = "density";
const LOUDNESS: &str = "loudness";
/// Shortest recording in which they are measured, and length of the end of a long one, seconds.
const MEASURED_S: [usize; 2] = [1, 60];
/// Lowest sample rate at which they are measured, Hz.
const MEASURED_HZ: u32 = 8_000;
/// Samples that are read at once.
const BLOCK: usize = 4_096;

/// Recording that a generator hears before it plays, and what is measured in its last minute.
pub struct Prime {
    /// The recording, from its start.
    pub recording: Box<RecordingReader>,
    /// Onsets a second and mean level in dB, unless the recording is too short.
    measured: Option<[f32; 2]>,
}

impl Prime {
    /// Opens a recording and measures it at `sample_rate` Hz.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is damaged or has a rate that cannot be
    /// converted.
    pub fn open(path: &Path, sample_rate: u32) -> anyhow::Result<Self> {
        let open = || RecordingReader::open(path, Some(sample_rate), InputChannels::Mono);
        // It is read twice: what is measured must be known before the model hears it, and a long
        // one is not kept.
        let measured = measure(&mut open()?, sample_rate)?;
        Ok(Self {
            recording: Box::new(open()?),
            measured,
        })
    }

    /// Returns the value for a control, within its range, if it is one that is measured.
    pub fn measured(&self, control: &Control) -> Option<f32> {
        let [density, loudness] = self.measured?;
        match control.name.as_str() {
            DENSITY => Some(control.clamp(density)),
            LOUDNESS => Some(control.clamp(loudness)),
            _ => None,
        }
    }
}

fn measure(recording: &mut RecordingReader, sample_rate: u32) -> anyhow::Result<Option<[f32; 2]>> {
    let [least, most] = MEASURED_S.map(|seconds| seconds * sample_rate as usize);
    let (mut block, mut end) = ([(); 2].map(|()| vec![0.0; BLOCK]), Vec::new());
    loop {
        let length = recording.fill(&mut block)?;
        end.extend_from_slice(&block[0][..length]);
        // Only now and then, since it moves all that is left.
        if end.len() > 2 * most || length < BLOCK {
            end.drain(..end.len().saturating_sub(most));
        }
        if length < BLOCK {
            break;
        }
    }
    let rate = f64::from(sample_rate);
    let density =
        |sound: &[f32]| (onsets(sound, rate).len() as f64 * rate / sound.len() as f64) as f32;
    let is_enough = end.len() > least && sample_rate >= MEASURED_HZ;
    Ok(is_enough.then(|| [density(&end), mean_db(&end, rate)]))
}
