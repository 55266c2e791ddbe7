//! Handle on the recorder.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crossbeam_channel::Sender;

use super::disk_sync::DiskSync;
use super::error::RecordError;
use super::format::{RecordingFormat, SoundFile};
use super::history::SampleHistory;
use super::take::TakeTrack;
use super::tap_reader::TapReader;
use super::writer::{Writer, WriterCommand, WriterShared};
use crate::io::tap::{Tap, TapProgress};

const RATES_HZ: RangeInclusive<f64> = 1_000.0..=768_000.0;
const CHANNELS: RangeInclusive<f64> = 1.0..=64.0;
const PREROLL_S: RangeInclusive<f64> = 0.0..=600.0;
const RING_S: RangeInclusive<f64> = 0.01..=60.0;

/// Taps and memory of a recorder.
#[derive(Debug, Clone, PartialEq)]
pub struct RecorderSetup {
    /// Sample rate, 1 kHz to 768 kHz.
    pub sample_rate: u32,
    /// Channels of each tap, 1 to 64.
    pub channels: Vec<usize>,
    /// Length of the pre-roll, 0 to 600 seconds. A minute at 48 kHz takes 11.5 MB per channel.
    pub preroll_s: f64,
    /// Longest time that the disk may take for a write before sound is dropped, 0.01 to 60 seconds.
    /// A second takes twice the memory of a second of pre-roll.
    pub ring_s: f64,
}

impl Default for RecorderSetup {
    /// Stereo master at 48 kHz, 30 s of pre-roll, 4 s of tolerance for the disk.
    fn default() -> Self {
        Self {
            sample_rate: 48_000,
            channels: vec![2],
            preroll_s: 30.0,
            ring_s: 4.0,
        }
    }
}

/// Status of a recorder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordingStatus {
    /// Frames so far of the running recording; `None` if none runs.
    pub recording: Option<u64>,
    /// Stopped recordings and saved pre-rolls whose files are not complete yet.
    pub finishing: usize,
    /// Frames that all taps have dropped since the last recording started; they are silence in the
    /// files.
    pub dropped: u64,
    /// Last error since a recording started or a pre-roll was saved, in one line.
    pub error: Option<String>,
}

/// Starts and stops recordings.
///
/// When dropped, completes all files first.
pub struct Recorder {
    sample_rate: u32,
    channels: Vec<usize>,
    progress: Vec<Arc<TapProgress>>,
    shared: Arc<WriterShared>,
    /// `None` while dropped.
    commands: Option<Sender<WriterCommand>>,
    thread: Option<JoinHandle<()>>,
    /// Number of the last take.
    next: u64,
    /// Frames dropped before the last recording started.
    dropped_before: u64,
}

impl Recorder {
    /// Creates a recorder, and a tap for each entry of [`RecorderSetup::channels`].
    ///
    /// # Errors
    /// Returns [`RecordError`] if a value is out of range, or memory or a thread cannot be had.
    pub fn new(setup: &RecorderSetup) -> Result<(Self, Vec<Tap>), RecordError> {
        check(
            "the sample rate in Hz",
            f64::from(setup.sample_rate),
            RATES_HZ,
        )?;
        check("the pre-roll in seconds", setup.preroll_s, PREROLL_S)?;
        check("the length of the rings in seconds", setup.ring_s, RING_S)?;
        let frames = |seconds: f64| (seconds * f64::from(setup.sample_rate)).ceil() as usize;
        let (preroll, ring) = (frames(setup.preroll_s), frames(setup.ring_s));
        let (mut taps, mut readers, mut progress) = (Vec::new(), Vec::new(), Vec::new());
        for &channels in &setup.channels {
            check("the number of channels", channels as f64, CHANNELS)?;
            let (tap, consumer) = Tap::new(channels, ring);
            taps.push(tap);
            progress.push(Arc::clone(&consumer.progress));
            // The pre-roll stays complete while up to a ring of new frames follows it.
            readers.push(TapReader::new(
                consumer,
                SampleHistory::new(channels, preroll + ring)?,
                setup.sample_rate,
            ));
        }
        let (commands, pending) = crossbeam_channel::unbounded();
        let shared = Arc::new(WriterShared::default());
        let writer = Writer {
            readers,
            sample_rate: setup.sample_rate,
            preroll: preroll as u64,
            commands: pending,
            shared: Arc::clone(&shared),
            disk: DiskSync::start().map_err(RecordError::Thread)?,
            takes: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("ondes-recorder".into())
            .spawn(move || writer.run());
        let recorder = Self {
            sample_rate: setup.sample_rate,
            channels: setup.channels.clone(),
            progress,
            shared,
            commands: Some(commands),
            thread: Some(thread.map_err(RecordError::Thread)?),
            next: 0,
            dropped_before: 0,
        };
        Ok((recorder, taps))
    }

    /// Starts a recording: each file receives the tap of its number, all from the same sample on:
    /// the latest one pushed, or the first one of the pre-roll.
    ///
    /// # Errors
    /// Returns [`RecordError`] if a recording is running, or a file exists or cannot be created; no
    /// file is left then.
    pub fn start(
        &mut self,
        files: impl IntoIterator<Item = (usize, PathBuf)>,
        format: RecordingFormat,
        preroll: bool,
    ) -> Result<(), RecordError> {
        if self.shared.lock().current.is_some() {
            return Err(RecordError::Running);
        }
        // Taken first: creating the files may take time.
        let now = self.now();
        let tracks = self.create(files, format)?;
        let id = self.number();
        self.dropped_before = self.dropped();
        let mut state = self.shared.lock();
        self.send(WriterCommand::Begin {
            id,
            tracks,
            now,
            preroll,
        })?;
        (state.current, state.frames, state.error) = (Some(id), 0, None);
        Ok(())
    }

    /// Stops the recording at the latest sample pushed. Its files are completed in the background;
    /// see [`RecordingStatus::finishing`] and [`wait`](Self::wait).
    pub fn stop(&mut self) {
        let mut state = self.shared.lock();
        if let Some(id) = state.current.take()
            && self
                .send(WriterCommand::End {
                    id,
                    now: self.now(),
                })
                .is_ok()
        {
            state.finishing += 1;
        }
    }

    /// Saves the pre-roll, whether a recording is running or not.
    ///
    /// # Errors
    /// Returns [`RecordError`] if nothing was played yet, or a file exists or cannot be created; no
    /// file is left then.
    pub fn save_preroll(
        &mut self,
        files: impl IntoIterator<Item = (usize, PathBuf)>,
        format: RecordingFormat,
    ) -> Result<(), RecordError> {
        let now = self.now().ok_or(RecordError::NoSound)?;
        let tracks = self.create(files, format)?;
        let id = self.number();
        let mut state = self.shared.lock();
        self.send(WriterCommand::Save { id, tracks, now })?;
        state.finishing += 1;
        state.error = None;
        Ok(())
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> RecordingStatus {
        let state = self.shared.lock();
        RecordingStatus {
            recording: state.current.map(|_| state.frames),
            finishing: state.finishing,
            dropped: self.dropped() - self.dropped_before,
            error: state.error.clone(),
        }
    }

    /// Waits until no recording is running or finishing; a running one must have been stopped.
    pub fn wait(&self) -> RecordingStatus {
        self.shared.wait();
        self.status()
    }

    /// Creates all files or none.
    fn create(
        &self,
        files: impl IntoIterator<Item = (usize, PathBuf)>,
        format: RecordingFormat,
    ) -> Result<Vec<TakeTrack>, RecordError> {
        let mut tracks = Vec::new();
        let create = |(tap, path): (usize, PathBuf)| {
            let &channels = self.channels.get(tap).ok_or(RecordError::NoTap(tap))?;
            let file = SoundFile::create(&path, format, self.sample_rate, channels)?;
            Ok(TakeTrack::new(tap, path, file))
        };
        for file in files {
            match create(file) {
                Ok(track) => tracks.push(track),
                Err(error) => {
                    for TakeTrack { path, file, .. } in tracks {
                        drop(file);
                        // If it cannot be removed, an empty sound file is left.
                        drop(std::fs::remove_file(path));
                    }
                    return Err(error);
                }
            }
        }
        if tracks.is_empty() {
            Err(RecordError::NoFile)
        } else {
            Ok(tracks)
        }
    }

    /// Returns the number of the frame after the last one pushed.
    fn now(&self) -> Option<u64> {
        self.progress
            .iter()
            .filter_map(|progress| progress.end())
            .max()
    }

    fn dropped(&self) -> u64 {
        self.progress
            .iter()
            .map(|progress| progress.dropped.load(Ordering::Relaxed))
            .sum()
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Sends a command, under the lock of the shared state, so that the thread cannot write beyond
    /// an end. Fails only if the thread has failed.
    fn send(&self, command: WriterCommand) -> Result<(), RecordError> {
        let sent = self
            .commands
            .as_ref()
            .is_some_and(|commands| commands.send(command).is_ok());
        if sent {
            Ok(())
        } else {
            Err(RecordError::Failed)
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            // The thread contains its panics.
            drop(thread.join());
        }
    }
}

fn check(what: &'static str, found: f64, range: RangeInclusive<f64>) -> Result<(), RecordError> {
    if range.contains(&found) {
        return Ok(());
    }
    Err(RecordError::Limit {
        what,
        found,
        supported: format!("{} to {}", range.start(), range.end()),
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_panic_ends_the_recording_with_its_files_and_the_next_one_starts() {
        let folder = tempfile::tempdir().unwrap();
        let setup = RecorderSetup {
            channels: vec![1],
            preroll_s: 0.0,
            ..RecorderSetup::default()
        };
        let (mut recorder, mut taps) = Recorder::new(&setup).unwrap();
        taps[0].push(0, &[&[0.5; 100]]);
        let start = |recorder: &mut Recorder, name: &str| {
            recorder.start(
                [(0, folder.path().join(name))],
                RecordingFormat::Float32,
                false,
            )
        };
        start(&mut recorder, "first.wav").unwrap();
        // Its tap does not exist, which is a bug.
        let path = folder.path().join("bug.wav");
        let file = SoundFile::create(&path, RecordingFormat::Float32, 48_000, 1).unwrap();
        let tracks = vec![TakeTrack::new(7, path, file)];
        recorder
            .send(WriterCommand::Save {
                id: 99,
                tracks,
                now: 100,
            })
            .unwrap();
        let since = Instant::now();
        while recorder.status().error.is_none() {
            assert!(since.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(2));
        }
        let status = recorder.wait();
        let error = status.error.unwrap();
        assert!(
            error.starts_with("the recording failed: index out of bounds"),
            "{error}"
        );
        assert_eq!((status.recording, status.finishing), (None, 0));
        assert!(hound::WavReader::open(folder.path().join("first.wav")).is_ok());
        start(&mut recorder, "second.wav").unwrap();
        taps[0].push(100, &[&[0.25; 100]]);
        recorder.stop();
        assert_eq!(recorder.wait().error, None);
        assert!(
            hound::WavReader::open(folder.path().join("second.wav"))
                .unwrap()
                .duration()
                > 0
        );
    }
}
