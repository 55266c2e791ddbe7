//! A recording that plays as an input.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use anyhow::ensure;
use ondes_engine::dsp::resample::StreamResampler;
use ondes_engine::media::Decoder;

/// The longest recording that is played so, seconds: it is kept in memory.
const LONGEST_S: u64 = 3600;
/// Endings of recordings.
pub(crate) const ENDINGS: [&str; 8] = ["wav", "aif", "aiff", "flac", "mp3", "ogg", "m4a", "caf"];
/// Places of an outline.
const OUTLINE: usize = 512;

/// A recording in memory, at the rate at which it is played, with where it stands.
pub struct Clip {
    path: PathBuf,
    /// `[channel][frame]`
    channels: [Vec<f32>; 2],
    outline: Arc<[f32]>,
    sample_rate: u32,
    place: AtomicU64,
    playing: AtomicBool,
    looped: AtomicBool,
}

impl Clip {
    /// Reads a recording and converts it to that rate in Hz. Of more than two channels the first two are played.
    ///
    /// # Errors
    /// When it cannot be read, or lasts longer than an hour.
    pub fn read(path: &Path, sample_rate: u32) -> anyhow::Result<Self> {
        let mut sounds = decode(path, sample_rate, 2)?.into_iter();
        let left = sounds.next().unwrap_or_default();
        let right = sounds.next().unwrap_or_else(|| left.clone());
        Ok(Self {
            path: path.into(),
            outline: outline(&left, &right),
            channels: [left, right],
            sample_rate,
            place: AtomicU64::new(0),
            playing: AtomicBool::new(true),
            looped: AtomicBool::new(false),
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The rate at which it is played, Hz.
    #[must_use]
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// Stands where the other one, of the same recording, stands.
    pub fn go_on_from(&self, other: &Self) {
        self.seek((other.place() as u64 * u64::from(self.sample_rate) / u64::from(other.sample_rate)) as usize);
        self.set_looped(other.is_looped());
        self.playing.store(other.is_playing(), Relaxed);
    }

    /// The largest samples along it, evenly spread, 0 … 1.
    #[must_use]
    pub fn outline(&self) -> &Arc<[f32]> {
        &self.outline
    }

    /// How many frames it has.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.channels[0].len()
    }

    /// The frame that is played next.
    #[must_use]
    pub fn place(&self) -> usize {
        self.place.load(Relaxed) as usize
    }

    /// Goes on from that frame.
    pub fn seek(&self, frame: usize) {
        self.place.store(frame.min(self.frames()) as u64, Relaxed);
    }

    /// Whether it plays; it stops by itself at its end.
    #[must_use]
    pub fn is_playing(&self) -> bool {
        self.playing.load(Relaxed)
    }

    /// Plays on, from the start where it has ended, or pauses.
    pub fn set_playing(&self, playing: bool) {
        if playing && self.place() >= self.frames() {
            self.seek(0);
        }
        self.playing.store(playing, Relaxed);
    }

    /// Whether it begins again at its end.
    #[must_use]
    pub fn is_looped(&self) -> bool {
        self.looped.load(Relaxed)
    }

    /// Lets it begin again at its end, or not.
    pub fn set_looped(&self, looped: bool) {
        self.looped.store(looped, Relaxed);
    }

    /// For the audio thread: the next frames into `out[channel][frame]`; silence where it does not play.
    pub fn play(&self, out: &mut [Vec<f32>; 2], frames: usize) {
        let [left, right] = out;
        let (left, right) = (&mut left[..frames], &mut right[..frames]);
        let start = self.place();
        let (mut place, mut done) = (start, 0);
        while done < frames && self.is_playing() {
            let count = (frames - done).min(self.frames().saturating_sub(place));
            left[done..done + count].copy_from_slice(&self.channels[0][place..place + count]);
            right[done..done + count].copy_from_slice(&self.channels[1][place..place + count]);
            (place, done) = (place + count, done + count);
            if place == self.frames() {
                match self.is_looped() {
                    true => place = 0,
                    false => self.playing.store(false, Relaxed),
                }
            }
        }
        left[done..].fill(0.0);
        right[done..].fill(0.0);
        // Somebody who has sought meanwhile has the last word.
        let _ = self.place.compare_exchange(start as u64, place as u64, Relaxed, Relaxed);
    }
}

fn outline(left: &[f32], right: &[f32]) -> Arc<[f32]> {
    let length = left.len().div_ceil(OUTLINE).max(1);
    let largest = |samples: &[f32]| samples.iter().fold(0.0_f32, |top, sample| top.max(sample.abs()));
    let parts = left.chunks(length).zip(right.chunks(length));
    parts.map(|(left, right)| largest(left).max(largest(right)).min(1.0)).collect()
}

/// A whole recording, `[channel][frame]`, converted to that rate in Hz: the first of its channels, at most `most`. All are equally
/// long, and there is one at least.
///
/// # Errors
/// When it cannot be read, or lasts longer than an hour.
pub fn decode(path: &Path, sample_rate: u32, most: usize) -> anyhow::Result<Vec<Vec<f32>>> {
    let mut decoder = Decoder::open(path)?;
    let rate = decoder.sample_rate();
    let name = path.display();
    let mut sides: Vec<(StreamResampler, usize, Vec<f32>)> = Vec::new();
    let mut decoded = Vec::new();
    let mut frames = 0;
    while decoder.next(&mut decoded)? {
        frames += decoded.first().map_or(0, Vec::len) as u64;
        ensure!(frames <= LONGEST_S * u64::from(rate), "{name}: it lasts longer than an hour");
        while sides.len() < decoded.len().min(most) {
            let resampler =
                StreamResampler::new(rate, sample_rate).map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
            let ahead = resampler.latency();
            sides.push((resampler, ahead, Vec::new()));
        }
        for (channel, (resampler, ahead, sound)) in decoded.iter().zip(&mut sides) {
            resampler.push(channel, |samples| keep(samples, ahead, sound));
        }
    }
    for (resampler, ahead, sound) in &mut sides {
        resampler.finish(|samples| keep(samples, ahead, sound));
    }
    let sounds: Vec<Vec<f32>> = sides.into_iter().map(|(.., sound)| sound).collect();
    ensure!(sounds.first().is_some_and(|sound| !sound.is_empty()), "{name}: there is no sound in it");
    Ok(sounds)
}

/// Keeps what comes after the samples that the conversion puts in front.
fn keep(samples: &[f32], ahead: &mut usize, sound: &mut Vec<f32>) {
    let skipped = (*ahead).min(samples.len());
    *ahead -= skipped;
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
    fn it_plays_once_or_again_and_again() {
        let (_folder, clip) = clip();
        assert_eq!(clip.frames(), 100);
        assert_eq!(play(&clip, 60)[59], 60.0);
        let end = play(&clip, 60);
        assert_eq!((end[39], end[40], clip.is_playing()), (100.0, 0.0, false));
        assert_eq!(play(&clip, 4), [0.0; 4]);
        clip.set_looped(true);
        clip.set_playing(true);
        let round = play(&clip, 250);
        assert_eq!((round[0], round[100], round[249], clip.place()), (1.0, 1.0, 50.0, 50));
        clip.seek(9);
        assert_eq!(play(&clip, 1), [10.0]);
        clip.set_playing(false);
        assert_eq!((play(&clip, 2), clip.place()), (vec![0.0; 2], 10));
    }

    #[test]
    fn it_has_the_rate_that_is_asked_for() {
        let (folder, _) = clip();
        let clip = Clip::read(&folder.path().join("ramp.wav"), 96_000).unwrap();
        assert!(clip.frames().abs_diff(200) <= 2, "{}", clip.frames());
        let other = Clip::read(&folder.path().join("ramp.wav"), 48_000).unwrap();
        other.seek(50);
        other.set_playing(false);
        clip.go_on_from(&other);
        assert_eq!((clip.place(), clip.is_playing()), (100, false));
        let missing = Clip::read(Path::new("/nowhere/at all.wav"), 48_000).err().unwrap().to_string();
        assert!(missing.starts_with("/nowhere/at all.wav: "), "{missing}");
    }
}
