//! Where the sound goes.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::bail;
use ondes_engine::media::{MediaError, WavWriter};

use super::arguments::RenderArguments;
use super::loudness::{Loudness, Normalizer};

/// What `--out` may be instead of a file.
const STANDARD_OUTPUT: &str = "-";

/// The place that the command line names.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, or a device.
    File(PathBuf),
    /// Standard output.
    StandardOutput,
}

impl Place {
    /// Follows the command line: `--out`, or a name made of those of the source and of the model.
    ///
    /// # Errors
    /// When it is one of the files that are read.
    pub fn choose(arguments: &RenderArguments, source: &Path) -> anyhow::Result<Self> {
        let out = match &arguments.out {
            Some(out) if out.as_os_str() == STANDARD_OUTPUT => return Ok(Self::StandardOutput),
            Some(out) => out.clone(),
            None => default_name(source, &arguments.model),
        };
        if [source, &arguments.model].into_iter().any(|path| is_same_file(path, &out)) {
            bail!("{}: is what is read, the output needs another name", out.display());
        }
        Ok(Self::File(out))
    }

    /// Its name, as on the command line.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::StandardOutput => STANDARD_OUTPUT.to_owned(),
        }
    }
}

/// Whether both are there and the same, under whatever name.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// `SOURCE-MODEL.wav`, each without folder and extension.
fn default_name(source: &Path, model: &Path) -> PathBuf {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_os_string();
    let mut name = stem(source);
    name.push("-");
    name.push(stem(model));
    name.push(".wav");
    name.into()
}

/// A WAV in the making. Leaves out the samples that are only latency, watches the peak and sees to the loudness.
pub struct Destination {
    writer: WavWriter,
    to_standard_output: bool,
    /// Keeps the sound back until all of it is known.
    normalizer: Option<Normalizer>,
    /// Samples of latency still to come.
    ahead: usize,
    frames: u64,
    peak: f32,
}

/// What a finished WAV holds.
pub struct Written {
    /// Samples.
    pub frames: u64,
    /// The largest of them, either way.
    pub peak: f32,
    /// How loud it is, where it was to have a certain loudness.
    pub loudness: Option<Loudness>,
}

impl Destination {
    /// Starts a mono WAV whose first `latency` samples are left out.
    ///
    /// # Errors
    /// When there is no writing there, or loudness cannot be measured at that rate.
    pub fn create(
        place: &Place,
        sample_rate: u32,
        arguments: &RenderArguments,
        latency: usize,
    ) -> anyhow::Result<Self> {
        let to_standard_output = *place == Place::StandardOutput;
        let bits = arguments.bits.wav();
        let normalizer = arguments.normalize.map(|lufs| Normalizer::new(lufs, sample_rate, place)).transpose()?;
        let writer = match place {
            Place::File(path) => WavWriter::create(path, sample_rate, 1, bits),
            Place::StandardOutput => {
                let stream = BufWriter::with_capacity(1 << 16, io::stdout());
                WavWriter::to_writer(stream, "standard output", sample_rate, 1, bits, None)
            }
        };
        let writer = writer.map_err(|error| closed_pipe_or(error, to_standard_output))?;
        Ok(Self { writer, to_standard_output, normalizer, ahead: latency, frames: 0, peak: 0.0 })
    }

    /// Takes the next samples.
    ///
    /// # Errors
    /// When they cannot be written; nothing is left of the file then.
    pub fn take(&mut self, sound: &[f32]) -> anyhow::Result<()> {
        let skipped = self.ahead.min(sound.len());
        self.ahead -= skipped;
        let sound = &sound[skipped..];
        if sound.is_empty() {
            return Ok(());
        }
        self.peak = sound.iter().fold(self.peak, |peak, sample| peak.max(sample.abs()));
        self.frames += sound.len() as u64;
        match &mut self.normalizer {
            Some(normalizer) => normalizer.take(sound),
            None => self.writer.write(&[sound]).map_err(|error| closed_pipe_or(error, self.to_standard_output)),
        }
    }

    /// Samples taken so far, latency left out.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Completes the WAV; only now there is a file of that name.
    ///
    /// # Errors
    /// When it cannot be completed, or somebody interrupts; nothing is left of the file then.
    pub fn finish(self) -> anyhow::Result<Written> {
        let Self { mut writer, to_standard_output, normalizer, frames, mut peak, .. } = self;
        let failed = |error| closed_pipe_or(error, to_standard_output);
        let loudness = match normalizer {
            None => None,
            Some(normalizer) => {
                let loudness = normalizer.finish(|sound| writer.write(&[sound]).map_err(failed))?;
                peak *= 10_f64.powf(loudness.gain_db / 20.0) as f32;
                Some(loudness)
            }
        };
        writer.finish().map_err(failed)?;
        Ok(Written { frames, peak, loudness })
    }
}

/// A pipe on standard output that was closed at its other end is not worth a message: such an error becomes the system's, as
/// [`crate::terminal::is_closed_pipe`] expects it.
fn closed_pipe_or(error: MediaError, to_standard_output: bool) -> anyhow::Error {
    match error {
        MediaError::Unwritable { source, .. } if to_standard_output && source.kind() == io::ErrorKind::BrokenPipe => {
            source.into()
        }
        error => error.into(),
    }
}
