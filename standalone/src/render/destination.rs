//! Where the sound goes.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::bail;
use ondes_engine::media::{MediaError, WavWriter};

use super::arguments::{Bits, RenderArguments};

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
    pub fn choose(arguments: &RenderArguments) -> anyhow::Result<Self> {
        let source = [&arguments.midi, &arguments.input].into_iter().flatten();
        let out = match &arguments.out {
            Some(out) if out.as_os_str() == STANDARD_OUTPUT => return Ok(Self::StandardOutput),
            Some(out) => out.clone(),
            None => default_name(source.clone().next(), &arguments.model),
        };
        let is_out = |path: &&PathBuf| match (path.canonicalize(), out.canonicalize()) {
            (Ok(path), Ok(out)) => path == out,
            _ => false,
        };
        if source.chain([&arguments.model]).find(is_out).is_some() {
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

/// `SOURCE-MODEL.wav`, each without folder and extension.
fn default_name(source: Option<&PathBuf>, model: &Path) -> PathBuf {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_os_string();
    let mut name = source.map_or_else(Default::default, |source| stem(source));
    name.push("-");
    name.push(stem(model));
    name.push(".wav");
    name.into()
}

/// A WAV in the making. Leaves out the samples that are only latency and watches the peak.
pub struct Destination {
    writer: WavWriter,
    to_standard_output: bool,
    /// Samples of latency still to come.
    ahead: usize,
    peak: f32,
}

impl Destination {
    /// Starts a mono WAV whose first `latency` samples are left out.
    ///
    /// # Errors
    /// When there is no writing there.
    pub fn create(place: &Place, sample_rate: u32, bits: Bits, latency: usize) -> anyhow::Result<Self> {
        let to_standard_output = *place == Place::StandardOutput;
        let writer = match place {
            Place::File(path) => WavWriter::create(path, sample_rate, 1, bits.wav()),
            Place::StandardOutput => {
                let stream = BufWriter::with_capacity(1 << 16, io::stdout());
                WavWriter::to_writer(stream, "standard output", sample_rate, 1, bits.wav(), None)
            }
        };
        let writer = writer.map_err(|error| closed_pipe_or(error, to_standard_output))?;
        Ok(Self { writer, to_standard_output, ahead: latency, peak: 0.0 })
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
        self.writer.write(&[sound]).map_err(|error| closed_pipe_or(error, self.to_standard_output))
    }

    /// Samples written.
    pub fn frames(&self) -> u64 {
        self.writer.frames()
    }

    /// The largest sample so far, either way.
    pub fn peak(&self) -> f32 {
        self.peak
    }

    /// Completes the WAV; only now there is a file of that name.
    ///
    /// # Errors
    /// When it cannot be completed; nothing is left of the file then.
    pub fn finish(self) -> anyhow::Result<()> {
        self.writer.finish().map_err(|error| closed_pipe_or(error, self.to_standard_output))
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
