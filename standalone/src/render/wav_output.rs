//! Output of a render.

use std::io::{self, BufWriter};

use ondes_engine::dsp::level::db_to_amplitude_f64;
use ondes_engine::media::{MediaError, WavWriter};

use super::arguments::RenderArguments;
use super::loudness::{Loudness, MAX_TRUE_PEAK_DB, Normalizer};
use super::output_target::OutputTarget;
use super::report::amplitude_db;
use super::sound_format::SoundFormat;
use crate::flac::FlacWriter;

/// Longest time by which an output exceeds its expected length, seconds: voices may ring for a
/// minute.
const MARGIN_S: u64 = 120;
/// Mono or stereo.
const MAX_CHANNELS: usize = 2;

enum SoundWriter {
    Wav(Box<WavWriter>),
    Flac(Box<FlacWriter>),
}

impl SoundWriter {
    fn write<C: AsRef<[f32]>>(&mut self, sound: &[C]) -> Result<(), MediaError> {
        match self {
            Self::Wav(wav) => wav.write(sound),
            Self::Flac(flac) => flac.write(sound),
        }
    }

    fn finish(self) -> Result<(), MediaError> {
        match self {
            Self::Wav(wav) => wav.finish(),
            Self::Flac(flac) => flac.finish(),
        }
    }
}

/// WAV or FLAC file that is being written. Skips the latency, measures the peak and normalizes the
/// loudness.
pub struct WavOutput {
    writer: SoundWriter,
    /// Clips samples beyond −1 … 1.
    clips: bool,
    channels: usize,
    to_standard_output: bool,
    /// Buffers the sound until its loudness is known.
    normalizer: Option<Normalizer>,
    /// Frames of latency still to be skipped.
    latency_left: usize,
    frames: u64,
    peak: f32,
}

/// Properties of a finished WAV.
pub struct WrittenWav {
    /// Length, frames.
    pub frames: u64,
    /// Largest absolute sample.
    pub peak: f32,
    /// Loudness, if it was normalized.
    pub loudness: Option<Loudness>,
    /// Samples beyond −1 … 1 were clipped.
    clips: bool,
}

impl WrittenWav {
    /// Returns warnings about the finished file `out`.
    pub fn warnings(&self, out: &str, arguments: &RenderArguments) -> Vec<String> {
        let mut warnings = Vec::new();
        if let (Some(target), Some(loudness)) = (arguments.normalize, &self.loudness) {
            match loudness.lufs {
                None => warnings.push(format!(
                    "{out}: too short or soft for a loudness measurement; only the true peak was limited"
                )),
                Some(lufs) if loudness.limited => warnings.push(format!(
                    "{out}: {lufs:.1} LUFS instead of {target}: limited by the true peak of {MAX_TRUE_PEAK_DB} dBTP"
                )),
                Some(_) => {}
            }
        }
        if self.clips && self.peak > 1.0 {
            let over = amplitude_db(self.peak).unwrap_or_default();
            warnings.push(format!(
                "{out}: clipped, {over:.1} dB above full scale; WAV with --bits 32 avoids clipping"
            ));
        }
        warnings
    }
}

impl WavOutput {
    /// Creates a mono or stereo WAV of about `frames` frames, if that is known, whose first
    /// `latency` frames are skipped.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created or the loudness cannot be measured at that
    /// rate.
    pub fn create(
        target: &OutputTarget,
        sample_rate: u32,
        channels: usize,
        arguments: &RenderArguments,
        latency: usize,
        frames: Option<u64>,
    ) -> anyhow::Result<Self> {
        let to_standard_output = *target == OutputTarget::StandardOutput;
        let bit_depth = arguments.bits_of(target);
        let bits = bit_depth.wav();
        let normalizer = arguments
            .normalize
            .map(|lufs| Normalizer::new(lufs, sample_rate, channels, target))
            .transpose()?;
        let frames = frames.map(|frames| frames + MARGIN_S * u64::from(sample_rate));
        let flac = |path| FlacWriter::create(path, sample_rate, channels, bit_depth.count());
        let wav =
            |writer: Result<WavWriter, MediaError>| writer.map(|wav| SoundWriter::Wav(wav.into()));
        let writer = match target {
            OutputTarget::File(path) if target.format() == SoundFormat::Flac => {
                flac(path).map(|flac| SoundWriter::Flac(Box::new(flac)))
            }
            OutputTarget::File(path)
                if frames.is_none_or(|frames| WavWriter::is_long(frames, channels, bits)) =>
            {
                wav(WavWriter::create_long(path, sample_rate, channels, bits))
            }
            OutputTarget::File(path) => wav(WavWriter::create(path, sample_rate, channels, bits)),
            OutputTarget::StandardOutput => {
                let stream = BufWriter::with_capacity(1 << 16, io::stdout());
                wav(WavWriter::to_writer(
                    stream,
                    "standard output",
                    sample_rate,
                    channels,
                    bits,
                    None,
                ))
            }
        };
        let writer = writer.map_err(|error| closed_pipe_or(error, to_standard_output))?;
        Ok(Self {
            writer,
            clips: bit_depth.clips(),
            channels,
            to_standard_output,
            normalizer,
            latency_left: latency,
            frames: 0,
            peak: 0.0,
        })
    }

    /// Writes the next frames, `[channel][frame]`; a mono file has the first channel.
    ///
    /// # Errors
    /// Returns an error if they cannot be written; no file is left then.
    ///
    /// # Panics
    /// Panics if there are more than two channels.
    pub fn write(&mut self, sound: &[&[f32]]) -> anyhow::Result<()> {
        let frames = sound.first().map_or(0, |channel| channel.len());
        let skipped = self.latency_left.min(frames);
        self.latency_left -= skipped;
        if skipped == frames {
            return Ok(());
        }
        let mut rest = [[].as_slice(); MAX_CHANNELS];
        rest.iter_mut()
            .zip(sound)
            .for_each(|(rest, channel)| *rest = &channel[skipped..]);
        let sound = &rest[..self.channels];
        self.peak = sound
            .iter()
            .copied()
            .flatten()
            .fold(self.peak, |peak, sample| peak.max(sample.abs()));
        self.frames += (frames - skipped) as u64;
        match &mut self.normalizer {
            Some(normalizer) => normalizer.write(sound),
            None => self
                .writer
                .write(sound)
                .map_err(|error| closed_pipe_or(error, self.to_standard_output)),
        }
    }

    /// Returns the frames of latency still to be skipped.
    pub fn latency_left(&self) -> usize {
        self.latency_left
    }

    /// Returns the frames written so far, without the latency.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Completes the WAV, which gets its name only now.
    ///
    /// # Errors
    /// Returns an error if it cannot be completed or the work is interrupted; no file is left then.
    pub fn finish(self) -> anyhow::Result<WrittenWav> {
        let Self {
            mut writer,
            clips,
            to_standard_output,
            normalizer,
            frames,
            mut peak,
            ..
        } = self;
        let failed = |error| closed_pipe_or(error, to_standard_output);
        let loudness = match normalizer {
            None => None,
            Some(normalizer) => {
                let loudness = normalizer.finish(|sound| writer.write(sound).map_err(failed))?;
                peak *= db_to_amplitude_f64(loudness.gain_db) as f32;
                Some(loudness)
            }
        };
        writer.finish().map_err(failed)?;
        Ok(WrittenWav {
            frames,
            peak,
            loudness,
            clips,
        })
    }
}

/// Turns an error of a closed pipe into the system's error that [`crate::terminal::is_closed_pipe`]
/// expects.
fn closed_pipe_or(error: MediaError, to_standard_output: bool) -> anyhow::Error {
    match error {
        MediaError::Unwritable { source, .. }
            if to_standard_output && source.kind() == io::ErrorKind::BrokenPipe =>
        {
            source.into()
        }
        error => error.into(),
    }
}
