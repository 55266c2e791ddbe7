//! Where the sound goes.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::bail;
use ondes_engine::media::{MediaError, WavWriter};

use super::arguments::RenderArguments;
use super::loudness::{Loudness, MOST_TRUE_PEAK_DB, Normalizer};
use super::report::amplitude_db;

/// What `--out` may be instead of a file.
const STANDARD_OUTPUT: &str = "-";

/// Mono or stereo.
const MOST_CHANNELS: usize = 2;

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
        let default = || default_name(source, &arguments.model);
        Self::choose_unlike(arguments, default, [source, &arguments.model])
    }

    /// The same with another default, where those files are read.
    ///
    /// # Errors
    /// When it is one of them.
    pub fn choose_unlike<'a>(
        arguments: &RenderArguments,
        default: impl FnOnce() -> PathBuf,
        read: impl IntoIterator<Item = &'a Path>,
    ) -> anyhow::Result<Self> {
        let out = match &arguments.out {
            Some(out) if out.as_os_str() == STANDARD_OUTPUT => return Ok(Self::StandardOutput),
            Some(out) => out.clone(),
            None => default(),
        };
        check_unlike(&out, read)?;
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

/// Sees to it that none of the files that are read is written to.
///
/// # Errors
/// When one is.
pub fn check_unlike<'a>(out: &Path, read: impl IntoIterator<Item = &'a Path>) -> anyhow::Result<()> {
    if read.into_iter().any(|path| is_same_file(path, out)) {
        bail!("{}: is what is read, the output needs another name", out.display());
    }
    Ok(())
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
    /// Frames of latency still to come.
    ahead: usize,
    frames: u64,
    peak: f32,
}

/// What a finished WAV holds.
pub struct Written {
    /// Frames.
    pub frames: u64,
    /// The largest sample, either way.
    pub peak: f32,
    /// How loud it is, where it was to have a certain loudness.
    pub loudness: Option<Loudness>,
}

impl Written {
    /// What a user should know of the sound in the file of that name.
    pub fn warnings(&self, out: &str, arguments: &RenderArguments) -> Vec<String> {
        let mut warnings = Vec::new();
        if let (Some(target), Some(loudness)) = (arguments.normalize, &self.loudness) {
            match loudness.lufs {
                None => warnings.push(format!(
                    "{out}: is too short or too soft to have a loudness; only its true peak was looked at"
                )),
                Some(lufs) if loudness.limited => warnings.push(format!(
                    "{out}: {lufs:.1} LUFS instead of {target}, as more would take the true peak beyond {MOST_TRUE_PEAK_DB} dBTP"
                )),
                Some(_) => {}
            }
        }
        if arguments.bits.clips() && self.peak > 1.0 {
            let over = amplitude_db(self.peak).unwrap_or_default();
            warnings.push(format!(
                "{out}: clipped, the sound is {over:.1} dB too loud for integers; --bits 32 keeps it whole"
            ));
        }
        warnings
    }
}

impl Destination {
    /// Starts a WAV of one channel or two whose first `latency` frames are left out.
    ///
    /// # Errors
    /// When there is no writing there, or loudness cannot be measured at that rate.
    pub fn create(
        place: &Place,
        sample_rate: u32,
        channels: usize,
        arguments: &RenderArguments,
        latency: usize,
    ) -> anyhow::Result<Self> {
        let to_standard_output = *place == Place::StandardOutput;
        let bits = arguments.bits.wav();
        let normalizer =
            arguments.normalize.map(|lufs| Normalizer::new(lufs, sample_rate, channels, place)).transpose()?;
        let writer = match place {
            Place::File(path) => WavWriter::create(path, sample_rate, channels, bits),
            Place::StandardOutput => {
                let stream = BufWriter::with_capacity(1 << 16, io::stdout());
                WavWriter::to_writer(stream, "standard output", sample_rate, channels, bits, None)
            }
        };
        let writer = writer.map_err(|error| closed_pipe_or(error, to_standard_output))?;
        Ok(Self { writer, to_standard_output, normalizer, ahead: latency, frames: 0, peak: 0.0 })
    }

    /// Takes the next frames, `[channel][frame]`.
    ///
    /// # Errors
    /// When they cannot be written; nothing is left of the file then.
    ///
    /// # Panics
    /// When there are more than two channels.
    pub fn take(&mut self, sound: &[&[f32]]) -> anyhow::Result<()> {
        let frames = sound.first().map_or(0, |channel| channel.len());
        let skipped = self.ahead.min(frames);
        self.ahead -= skipped;
        if skipped == frames {
            return Ok(());
        }
        let mut rest = [[].as_slice(); MOST_CHANNELS];
        rest.iter_mut().zip(sound).for_each(|(rest, channel)| *rest = &channel[skipped..]);
        let sound = &rest[..sound.len()];
        self.peak = sound.iter().copied().flatten().fold(self.peak, |peak, sample| peak.max(sample.abs()));
        self.frames += (frames - skipped) as u64;
        match &mut self.normalizer {
            Some(normalizer) => normalizer.take(sound),
            None => self.writer.write(sound).map_err(|error| closed_pipe_or(error, self.to_standard_output)),
        }
    }

    /// Frames of latency that will be left out of what comes.
    pub fn ahead(&self) -> usize {
        self.ahead
    }

    /// Frames taken so far, latency left out.
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
                let loudness = normalizer.finish(|sound| writer.write(sound).map_err(failed))?;
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
