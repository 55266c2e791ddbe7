//! Loudness normalization after EBU R 128.
//!
//! The loudness is known only at the end of the sound. Until then the sound is buffered in a
//! temporary file without a name, which disappears however the program ends.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{anyhow, bail};
use ebur128::{EbuR128, Mode};

use ondes_engine::dsp::level::db_to_amplitude_f64;

use super::output_target::OutputTarget;
use super::report::amplitude_db;
use crate::interrupt;

/// Maximum true peak after normalization, dBTP (EBU R 128, maximum permitted level).
pub const MAX_TRUE_PEAK_DB: f64 = -1.0;

/// Lowest sample rate, Hz: the filter of the measurement has its corner at 1.7 kHz.
const MIN_RATE_HZ: u32 = 8_000;

/// Tolerance of the normalization, LU; the standard reports tenths.
const TOLERANCE_LU: f64 = 0.01;

/// Maximum number of gain corrections; one is nearly always enough.
const MAX_CORRECTIONS: usize = 4;

/// Samples read at a time.
const CHUNK: usize = 8_192;

/// Zeros that flush the interpolator of the true peak: more than half of its 49 taps at four times
/// the rate.
const FLUSH_ZEROS: [f32; 16] = [0.0; 16];

/// Buffers a sound until its loudness is known.
pub struct Normalizer {
    target_lufs: f64,
    sample_rate: u32,
    channels: usize,
    meter: EbuR128,
    /// Interleaved 32-bit floats in native byte order.
    buffered: BufWriter<File>,
    frames: u64,
    name: String,
}

/// Loudness after normalization.
pub struct Loudness {
    /// Applied gain, dB.
    pub gain_db: f64,
    /// Integrated loudness, LUFS; `None` if no 400 ms are louder than −70 LUFS.
    pub lufs: Option<f64>,
    /// True peak, dBTP; `None` for silence.
    pub true_peak_db: Option<f64>,
    /// The true peak has kept the gain below what the target requires.
    pub limited: bool,
}

impl Normalizer {
    /// Creates a normalizer for mono or stereo sound at a rate in Hz that goes to `target`, to −70
    /// … 0 LUFS.
    ///
    /// # Errors
    /// Returns an error if the rate is too low or the temporary file cannot be created.
    pub fn new(
        target_lufs: f64,
        sample_rate: u32,
        channels: usize,
        target: &OutputTarget,
    ) -> anyhow::Result<Self> {
        let name = target.name();
        if sample_rate < MIN_RATE_HZ {
            bail!(
                "{name}: loudness needs a sample rate of at least {MIN_RATE_HZ} Hz, found {sample_rate} Hz"
            );
        }
        let meter = meter(sample_rate, channels, Mode::I | Mode::TRUE_PEAK)
            .map_err(|reason| anyhow!("{name}: {reason}"))?;
        let buffered = temporary_file_near(target).map_err(|error| unwritable(&name, &error))?;
        let buffered = BufWriter::with_capacity(1 << 16, buffered);
        Ok(Self {
            target_lufs,
            sample_rate,
            channels,
            meter,
            buffered,
            frames: 0,
            name,
        })
    }

    /// Buffers the next frames, `[channel][frame]`.
    ///
    /// # Errors
    /// Returns an error if the temporary file cannot be written.
    pub fn write(&mut self, sound: &[&[f32]]) -> anyhow::Result<()> {
        self.meter
            .add_frames_planar_f32(sound)
            .map_err(|error| anyhow!("{}: {error}", self.name))?;
        let frames = sound.first().map_or(0, |channel| channel.len());
        self.frames += frames as u64;
        let samples = (0..frames).flat_map(|frame| sound.iter().map(move |channel| channel[frame]));
        let mut bytes = samples.flat_map(f32::to_ne_bytes);
        let mut piece = [0; 4_096];
        loop {
            let length = piece
                .iter_mut()
                .zip(&mut bytes)
                .map(|(to, from)| *to = from)
                .count();
            if length == 0 {
                return Ok(());
            }
            self.buffered
                .write_all(&piece[..length])
                .map_err(|error| unwritable(&self.name, &error))?;
        }
    }

    /// Passes the normalized sound to `write`.
    ///
    /// # Errors
    /// Returns the error of `write`, or an error if the temporary file cannot be read or the work
    /// is interrupted.
    pub fn finish(
        self,
        mut write: impl FnMut(&[Vec<f32>]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Loudness> {
        let Self {
            target_lufs,
            sample_rate,
            channels,
            mut meter,
            buffered,
            frames,
            name,
        } = self;
        let failed = |error: ebur128::Error| anyhow!("{name}: {error}");
        let measured = integrated(&meter);
        meter
            .add_frames_planar_f32(&vec![FLUSH_ZEROS.as_slice(); channels])
            .map_err(failed)?;
        let mut peaks = (0..channels as u32).map(|channel| meter.true_peak(channel));
        let true_peak = peaks
            .try_fold(0.0, |most: f64, peak| Ok(most.max(peak?)))
            .map_err(failed)?;
        let true_peak_db = amplitude_db(true_peak as f32);
        let most_gain_db = true_peak_db.map_or(f64::INFINITY, |peak| MAX_TRUE_PEAK_DB - peak);
        let file = buffered
            .into_inner()
            .map_err(|error| unwritable(&name, error.error()))?;
        let mut buffered = BufferedAudio {
            file,
            frames,
            channels,
            name: &name,
        };

        let (mut gain_db, mut lufs) = (0.0, measured);
        for _ in 0..MAX_CORRECTIONS {
            let Some(now) = lufs.filter(|lufs| (lufs - target_lufs).abs() > TOLERANCE_LU) else {
                break;
            };
            gain_db += target_lufs - now;
            lufs = buffered.loudness(gain_db, sample_rate)?;
        }
        let limited = gain_db > most_gain_db;
        if limited {
            gain_db = most_gain_db;
            lufs = buffered.loudness(gain_db, sample_rate)?;
        }
        buffered.for_each_block(gain_db, &mut write)?;
        Ok(Loudness {
            gain_db,
            lufs,
            true_peak_db: true_peak_db.map(|peak| peak + gain_db),
            limited,
        })
    }
}

/// Sound in the temporary file.
struct BufferedAudio<'a> {
    file: File,
    frames: u64,
    channels: usize,
    /// Name of the output, for errors.
    name: &'a str,
}

impl BufferedAudio<'_> {
    /// Measures the loudness with a gain. It is not simply the sum: sound below −70 LUFS does not
    /// count, and the gain moves sound across that gate.
    fn loudness(&mut self, gain_db: f64, sample_rate: u32) -> anyhow::Result<Option<f64>> {
        let name = self.name;
        let mut meter = meter(sample_rate, self.channels, Mode::I)
            .map_err(|reason| anyhow!("{name}: {reason}"))?;
        self.for_each_block(gain_db, &mut |sound| {
            let sound: Vec<&[f32]> = sound.iter().map(Vec::as_slice).collect();
            meter
                .add_frames_planar_f32(&sound)
                .map_err(|error| anyhow!("{name}: {error}"))
        })?;
        Ok(integrated(&meter))
    }

    /// Passes all sound to `sink` in blocks, with a gain.
    fn for_each_block(
        &mut self,
        gain_db: f64,
        sink: &mut impl FnMut(&[Vec<f32>]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Self {
            file,
            frames,
            channels,
            name,
        } = self;
        let unreadable = |error| anyhow!("{name}: its temporary file cannot be read: {error}");
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let gain = db_to_amplitude_f64(gain_db);
        let mut bytes = vec![0; 4 * *channels * CHUNK];
        let mut sound = vec![Vec::with_capacity(CHUNK); *channels];
        let mut left = *frames;
        while left > 0 {
            interrupt::check()?;
            let count = left.min(CHUNK as u64);
            let bytes = &mut bytes[..4 * *channels * count as usize];
            file.read_exact(bytes).map_err(unreadable)?;
            let (floats, _) = bytes.as_chunks();
            for (channel, sound) in sound.iter_mut().enumerate() {
                let floats = floats.iter().skip(channel).step_by(*channels);
                sound.clear();
                sound.extend(
                    floats.map(|&float| (f64::from(f32::from_ne_bytes(float)) * gain) as f32),
                );
            }
            sink(&sound)?;
            left -= count;
        }
        Ok(())
    }
}

fn meter(sample_rate: u32, channels: usize, mode: Mode) -> Result<EbuR128, String> {
    EbuR128::new(channels as u32, sample_rate, mode)
        .map_err(|_| format!("loudness cannot be measured at {sample_rate} Hz"))
}

/// Returns the integrated loudness in LUFS, if there is one.
fn integrated(meter: &EbuR128) -> Option<f64> {
    meter.loudness_global().ok().filter(|lufs| lufs.is_finite())
}

/// Creates an unnamed temporary file beside the output, which has room for it, or in the system's
/// folder.
fn temporary_file_near(target: &OutputTarget) -> std::io::Result<File> {
    match target {
        OutputTarget::File(path) if path.metadata().map_or(true, |metadata| metadata.is_file()) => {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            tempfile::tempfile_in(folder.unwrap_or(Path::new(".")))
        }
        _ => tempfile::tempfile(),
    }
}

fn unwritable(name: &str, error: &std::io::Error) -> anyhow::Error {
    anyhow!("{name}: cannot be written: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ondes_engine::dsp::level::{db_to_amplitude_f64, peak};

    const RATE: u32 = 48_000;

    /// Sine of 997 Hz, whose mono loudness in LUFS is 3.01 below its level in dB.
    fn tone(lufs: f64, seconds: u32) -> Vec<f32> {
        let amplitude = db_to_amplitude_f64(lufs + 3.01);
        let sample = |n: u32| {
            (amplitude * (std::f64::consts::TAU * 997.0 * f64::from(n) / f64::from(RATE)).sin())
                as f32
        };
        (0..seconds * RATE).map(sample).collect()
    }

    fn normalize(target_lufs: f64, pieces: &[Vec<f32>]) -> (Loudness, Vec<f32>) {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let target = OutputTarget::File(folder.path().join("x.wav"));
        let mut normalizer =
            Normalizer::new(target_lufs, RATE, 1, &target).expect("it can be measured");
        assert_eq!(
            std::fs::read_dir(folder.path())
                .expect("it can be read")
                .count(),
            0,
            "the file has a name"
        );
        for sound in pieces.iter().flat_map(|piece| piece.chunks(1_000)) {
            normalizer.write(&[sound]).expect("there is room");
        }
        let mut sound = Vec::new();
        let loudness = normalizer.finish(|piece| {
            sound.extend_from_slice(&piece[0]);
            Ok(())
        });
        (loudness.expect("it is written"), sound)
    }

    fn loudness(sound: &[f32]) -> f64 {
        let mut meter = meter(RATE, 1, Mode::I).expect("it can be measured");
        meter.add_frames_f32(sound).expect("it is measured");
        integrated(&meter).expect("it is loud enough")
    }

    #[test]
    fn the_gain_is_the_loudness_difference() {
        let (found, sound) = normalize(-23.0, &[tone(-40.0, 3)]);
        assert!((found.gain_db - 17.0).abs() < 0.05, "{} dB", found.gain_db);
        assert!((loudness(&sound) + 23.0).abs() < 0.02);
        assert!(!found.limited);
    }

    /// Without gain only the loud second counts; with gain the soft minute passes the gate and
    /// lowers the loudness.
    #[test]
    fn sound_that_passes_the_gate_with_gain_counts() {
        let (found, sound) = normalize(-35.0, &[tone(-50.0, 1), tone(-72.0, 60)]);
        assert!(
            (loudness(&sound) + 35.0).abs() < 0.02,
            "{} LUFS",
            loudness(&sound)
        );
        assert!(found.gain_db > 25.0, "{} dB", found.gain_db);
        assert!(found.lufs.is_some_and(|lufs| (lufs + 35.0).abs() < 0.02));
    }

    #[test]
    fn the_true_peak_limits_the_gain() {
        let (found, sound) = normalize(-3.0, &[tone(-20.0, 3)]);
        let peak = peak(&sound);
        assert!(
            found.limited
                && found
                    .true_peak_db
                    .is_some_and(|peak| (peak - MAX_TRUE_PEAK_DB).abs() < 1e-9)
        );
        assert!((20.0 * f64::from(peak).log10() - MAX_TRUE_PEAK_DB).abs() < 0.05);
        assert!(
            found
                .lufs
                .is_some_and(|lufs| (lufs - loudness(&sound)).abs() < 0.02)
        );
    }

    #[test]
    fn sound_without_a_loudness_is_only_peak_limited() {
        let click = vec![2.0; 100];
        let (found, sound) = normalize(-20.0, std::slice::from_ref(&click));
        assert!(found.lufs.is_none() && found.limited);
        assert!(sound.iter().all(|sample| sample.abs() < 0.9));
        let soft: Vec<f32> = click.iter().map(|sample| 0.1 * sample).collect();
        let (found, sound) = normalize(-20.0, std::slice::from_ref(&soft));
        assert!(found.lufs.is_none() && !found.limited && sound == soft);
    }
}
