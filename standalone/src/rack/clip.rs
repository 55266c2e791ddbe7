//! Recordings that play as inputs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use anyhow::{anyhow, ensure};
use ondes_engine::dsp::level::peak;
use ondes_engine::dsp::resample::{ResampleError, StreamResampler};
pub use ondes_engine::media::FILE_EXTENSIONS as EXTENSIONS;

use crate::memory::Reservation;
use crate::standard_input;

/// Length of the longest recording, seconds; a recording is held in memory.
const MAX_LENGTH_S: u64 = 3600;
/// Points of a waveform overview.
const WAVEFORM_POINTS: usize = 512;

/// Recording in memory, at the sample rate of playback, with its play position.
pub struct Clip {
    path: PathBuf,
    sound: Sound,
    waveform: Arc<[f32]>,
    sample_rate: u32,
    position: AtomicU64,
    playing: AtomicBool,
    looped: AtomicBool,
}

impl Clip {
    /// Reads a recording and converts it to `sample_rate` Hz. Only the first two channels are
    /// played.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or lasts longer than an hour.
    pub fn read(path: &Path, sample_rate: u32) -> anyhow::Result<Self> {
        let sound = decode(path, sample_rate, 2)?;
        Ok(Self {
            path: path.into(),
            waveform: waveform(sound.left(), sound.right()),
            sound,
            sample_rate,
            position: AtomicU64::new(0),
            playing: AtomicBool::new(true),
            looped: AtomicBool::new(false),
        })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the recording has two channels; one is played on both sides.
    #[must_use]
    pub fn is_stereo(&self) -> bool {
        self.sound.channels.len() == 2
    }

    /// Returns the sample rate of playback, Hz.
    #[must_use]
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// Takes over position, looping and play state of another clip of the same recording.
    pub fn resume_from(&self, other: &Self) {
        self.seek(
            (other.position() as u64 * u64::from(self.sample_rate) / u64::from(other.sample_rate))
                as usize,
        );
        self.set_looped(other.is_looped());
        self.playing.store(other.is_playing(), Relaxed);
    }

    /// Returns the peaks of equal sections of the recording, 0 … 1.
    #[must_use]
    pub fn waveform(&self) -> &Arc<[f32]> {
        &self.waveform
    }

    /// Returns the length in frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.sound.frames()
    }

    /// Returns the next frame to play.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position.load(Relaxed) as usize
    }

    /// Moves to a frame.
    pub fn seek(&self, frame: usize) {
        self.position
            .store(frame.min(self.frames()) as u64, Relaxed);
    }

    /// Returns whether the clip plays; it stops by itself at its end unless it is looped.
    #[must_use]
    pub fn is_playing(&self) -> bool {
        self.playing.load(Relaxed)
    }

    /// Plays or pauses; at the end, playing starts over.
    pub fn set_playing(&self, playing: bool) {
        if playing && self.position() >= self.frames() {
            self.seek(0);
        }
        self.playing.store(playing, Relaxed);
    }

    /// Returns whether the clip is looped.
    #[must_use]
    pub fn is_looped(&self) -> bool {
        self.looped.load(Relaxed)
    }

    /// Loops the clip, or plays it once.
    pub fn set_looped(&self, looped: bool) {
        self.looped.store(looped, Relaxed);
    }

    /// Audio thread: writes the next frames to `out[channel][frame]`; silence while it is paused.
    pub fn play(&self, out: &mut [Vec<f32>; 2], frames: usize) {
        let [left, right] = out;
        let (left, right) = (&mut left[..frames], &mut right[..frames]);
        let start = self.position();
        let (mut position, mut done) = (start, 0);
        while done < frames && self.is_playing() {
            let count = (frames - done).min(self.frames().saturating_sub(position));
            left[done..done + count]
                .copy_from_slice(&self.sound.left()[position..position + count]);
            right[done..done + count]
                .copy_from_slice(&self.sound.right()[position..position + count]);
            (position, done) = (position + count, done + count);
            if position == self.frames() {
                match self.is_looped() {
                    true => position = 0,
                    false => self.playing.store(false, Relaxed),
                }
            }
        }
        left[done..].fill(0.0);
        right[done..].fill(0.0);
        // A seek in the meantime takes precedence.
        let _ = self
            .position
            .compare_exchange(start as u64, position as u64, Relaxed, Relaxed);
    }
}

fn waveform(left: &[f32], right: &[f32]) -> Arc<[f32]> {
    let length = left.len().div_ceil(WAVEFORM_POINTS).max(1);
    let parts = left.chunks(length).zip(right.chunks(length));
    parts
        .map(|(left, right)| peak(left).max(peak(right)).min(1.0))
        .collect()
}

/// Decoded recording.
#[derive(Debug)]
pub struct Sound {
    /// `[channel][frame]`, at least one channel, all of the same length.
    pub channels: Vec<Vec<f32>>,
    _memory: Reservation,
}

impl Sound {
    fn left(&self) -> &[f32] {
        &self.channels[0]
    }

    /// Returns the second channel, or the only one.
    fn right(&self) -> &[f32] {
        self.channels.get(1).unwrap_or(&self.channels[0])
    }

    /// Returns the length in frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.channels[0].len()
    }
}

/// Decodes a whole recording at `sample_rate` Hz: its first channels, at most `max_channels`.
///
/// # Errors
/// Returns an error if the file cannot be read, lasts longer than an hour or does not fit into the
/// memory for sound.
pub fn decode(path: &Path, sample_rate: u32, max_channels: usize) -> anyhow::Result<Sound> {
    let name = path.display();
    let mut decoder = standard_input::open_recording(path)?;
    let rate = decoder.sample_rate();
    let too_long = || anyhow!("{name}: longer than an hour, the limit for recordings in memory");
    let max_frames = MAX_LENGTH_S * u64::from(rate);
    let declared = decoder.frames().unwrap_or(0);
    ensure!(declared <= max_frames, too_long());
    let mut sound = GrowingSound::new(rate, sample_rate, decoder.channels().min(max_channels))
        .map_err(|error| anyhow!("{name}: {error}"))?;
    let at = |error| anyhow!("{name}: {error}");
    // Refuses what is too large before it is decoded. What a file only claims is given back at the
    // end.
    sound.make_room(declared).map_err(at)?;
    let mut decoded = Vec::new();
    let mut frames = 0;
    while decoder.next(&mut decoded)? {
        frames += decoded[0].len() as u64;
        ensure!(frames <= max_frames, too_long());
        sound.make_room(frames).map_err(at)?;
        sound.push(&decoded);
    }
    sound.finish()
}

/// Recording while it is decoded.
struct GrowingSound {
    /// Sample rates of the file and of the sound, Hz.
    rates: [u32; 2],
    channels: Vec<GrowingChannel>,
    /// Converted frames that there is room for.
    capacity: usize,
    memory: Reservation,
}

struct GrowingChannel {
    resampler: StreamResampler,
    /// Remaining latency of the resampler, to be skipped.
    latency_left: usize,
    sound: Vec<f32>,
}

impl GrowingSound {
    fn new(rate: u32, sample_rate: u32, channels: usize) -> Result<Self, ResampleError> {
        let channel = |_| {
            let resampler = StreamResampler::new(rate, sample_rate)?;
            Ok(GrowingChannel {
                latency_left: resampler.latency(),
                resampler,
                sound: Vec::new(),
            })
        };
        let channels = (0..channels).map(channel).collect::<Result<_, _>>()?;
        Ok(Self {
            rates: [rate, sample_rate],
            channels,
            capacity: 0,
            memory: Reservation::default(),
        })
    }

    /// Makes room for `frames` of the file in total.
    fn make_room(&mut self, frames: u64) -> anyhow::Result<()> {
        let [from, to] = self.rates.map(u64::from);
        let frames = (frames * to).div_ceil(from) as usize;
        if frames <= self.capacity {
            return Ok(());
        }
        let capacity = frames.max(self.capacity + self.capacity / 2);
        self.memory
            .resize((capacity * self.channels.len() * size_of::<f32>()) as u64)?;
        for channel in &mut self.channels {
            channel
                .sound
                .try_reserve_exact(capacity - channel.sound.len())?;
        }
        self.capacity = capacity;
        Ok(())
    }

    fn push(&mut self, decoded: &[Vec<f32>]) {
        for (
            GrowingChannel {
                resampler,
                latency_left,
                sound,
            },
            decoded,
        ) in self.channels.iter_mut().zip(decoded)
        {
            resampler.push(decoded, |samples| {
                append_after_latency(samples, latency_left, sound)
            });
        }
    }

    fn finish(mut self) -> anyhow::Result<Sound> {
        let finish = |GrowingChannel {
                          mut resampler,
                          mut latency_left,
                          mut sound,
                      }: GrowingChannel| {
            resampler
                .finish(|samples| append_after_latency(samples, &mut latency_left, &mut sound));
            sound.shrink_to_fit();
            sound
        };
        let channels: Vec<Vec<f32>> = self.channels.into_iter().map(finish).collect();
        self.memory.resize(
            channels
                .iter()
                .map(|channel| size_of_val(channel.as_slice()) as u64)
                .sum(),
        )?;
        Ok(Sound {
            channels,
            _memory: self.memory,
        })
    }
}

/// Appends samples without the latency at the start of the conversion.
fn append_after_latency(samples: &[f32], latency_left: &mut usize, sound: &mut Vec<f32>) {
    let skipped = (*latency_left).min(samples.len());
    *latency_left -= skipped;
    sound.extend_from_slice(&samples[skipped..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clip() -> (tempfile::TempDir, Clip) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ramp.wav");
        let spec = hound::WavSpec {
            channels: 1,
            sample_rate: 48_000,
            bits_per_sample: 32,
            sample_format: hound::SampleFormat::Float,
        };
        let mut writer = hound::WavWriter::create(&path, spec).unwrap();
        (1..=100).for_each(|n| writer.write_sample(n as f32).unwrap());
        writer.finalize().unwrap();
        let clip = Clip::read(&path, 48_000).unwrap();
        (folder, clip)
    }

    fn play(clip: &Clip, frames: usize) -> Vec<f32> {
        let mut out = [vec![f32::NAN; 256], vec![f32::NAN; 256]];
        clip.play(&mut out, frames);
        assert_eq!(out[0][..frames], out[1][..frames]);
        out[0][..frames].to_vec()
    }

    #[test]
    fn a_clip_plays_once_or_looped() {
        let (_folder, clip) = clip();
        assert_eq!(clip.frames(), 100);
        assert_eq!(play(&clip, 60)[59], 60.0);
        let end = play(&clip, 60);
        assert_eq!((end[39], end[40], clip.is_playing()), (100.0, 0.0, false));
        assert_eq!(play(&clip, 4), [0.0; 4]);
        clip.set_looped(true);
        clip.set_playing(true);
        let round = play(&clip, 250);
        assert_eq!(
            (round[0], round[100], round[249], clip.position()),
            (1.0, 1.0, 50.0, 50)
        );
        clip.seek(9);
        assert_eq!(play(&clip, 1), [10.0]);
        clip.set_playing(false);
        assert_eq!((play(&clip, 2), clip.position()), (vec![0.0; 2], 10));
    }

    #[test]
    fn a_clip_is_converted_to_the_requested_rate() {
        let (folder, _) = clip();
        let clip = Clip::read(&folder.path().join("ramp.wav"), 96_000).unwrap();
        assert!(clip.frames().abs_diff(200) <= 2, "{}", clip.frames());
        let other = Clip::read(&folder.path().join("ramp.wav"), 48_000).unwrap();
        other.seek(50);
        other.set_playing(false);
        clip.resume_from(&other);
        assert_eq!((clip.position(), clip.is_playing()), (100, false));
        let missing = Clip::read(Path::new("/nowhere/at all.wav"), 48_000)
            .err()
            .unwrap()
            .to_string();
        assert!(missing.starts_with("/nowhere/at all.wav: "), "{missing}");
    }
}
