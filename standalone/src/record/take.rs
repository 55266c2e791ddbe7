//! A recording: files written in sync, from one frame to another.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ondes_engine::media::{MediaError, display_name};

use super::disk_sync::DiskSync;
use super::format::SoundFile;
use super::tap_reader::TapReader;

/// Most writes per second, besides the last one. What is not written yet is lost if the process is
/// killed.
const BLOCKS_PER_S: u64 = 4;
/// Longest wait for frames before the end that a callback may be about to push.
const LAST_FRAMES_TIMEOUT: Duration = Duration::from_millis(250);
/// Interval of syncs to the disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(3);

/// A recording.
pub(super) struct Take {
    pub id: u64,
    tracks: Vec<TakeTrack>,
    /// Sample rate, Hz.
    sample_rate: u64,
    /// Number of the first frame; `None` while there is no sound at all.
    start: Option<u64>,
    end: Option<TakeEnd>,
    error: Option<String>,
}

/// End of a take.
struct TakeEnd {
    /// Number of the frame after the last.
    at: u64,
    /// Time at which missing frames are given up.
    give_up_at: Instant,
}

/// File and the tap that it records.
pub(super) struct TakeTrack {
    pub reader: usize,
    pub path: PathBuf,
    pub file: SoundFile,
    /// Number of the next frame to write, from the start of the take.
    at: u64,
    last_sync: Instant,
}

impl TakeTrack {
    pub fn new(reader: usize, path: PathBuf, file: SoundFile) -> Self {
        Self {
            reader,
            path,
            file,
            at: 0,
            last_sync: Instant::now(),
        }
    }

    /// Writes the frames up to `until`, and silence for those that the history does not hold.
    fn write(&mut self, until: u64, reader: &TapReader) -> Result<(), MediaError> {
        let frames = self.at..until;
        let held = reader.history.held().unwrap_or(until..until);
        let available = clamp(held.start, &frames)..clamp(held.end, &frames);
        let file = &mut self.file;
        let silence =
            |file: &mut SoundFile, frames: Range<u64>| match (frames.end - frames.start) as usize {
                0 => Ok(()),
                frames => file.append(&vec![0.0; frames * reader.history.channels()]),
            };
        silence(file, frames.start..available.start)?;
        reader
            .history
            .read(available.clone(), |slice| file.append(slice))?;
        silence(file, available.end..frames.end)?;
        self.at = until;
        check_still_linked(&self.path, self.file.file()).map_err(|source| MediaError::Unwritable {
            file: display_name(&self.path),
            source,
        })
    }
}

fn clamp(frame: u64, range: &Range<u64>) -> u64 {
    frame.clamp(range.start, range.end)
}

impl Take {
    /// Creates a take from frame `start`, or from the first frame that arrives.
    pub fn new(id: u64, tracks: Vec<TakeTrack>, sample_rate: u32, start: Option<u64>) -> Self {
        let mut take = Self {
            id,
            tracks,
            sample_rate: u64::from(sample_rate),
            start: None,
            end: None,
            error: None,
        };
        take.set_start(start);
        take
    }

    fn set_start(&mut self, start: Option<u64>) {
        self.start = start;
        self.tracks
            .iter_mut()
            .for_each(|track| track.at = start.unwrap_or(0));
    }

    /// Ends the take before frame `at`, unless it ends earlier already. A reason makes it an error.
    pub fn end_at(&mut self, at: u64, reason: Option<&str>) {
        if self.end.as_ref().is_none_or(|end| end.at > at) {
            self.end = Some(TakeEnd {
                at,
                give_up_at: Instant::now() + LAST_FRAMES_TIMEOUT,
            });
            if let (Some(reason), Some(track)) = (reason, self.tracks.first()) {
                self.error = Some(format!("{}: {reason}", display_name(&track.path)));
            }
        }
    }

    /// Returns the frames so far, written or not.
    pub fn frames(&self, readers: &[TapReader]) -> u64 {
        let end = self
            .tracks
            .iter()
            .filter_map(|track| readers[track.reader].end())
            .max();
        self.start
            .zip(end)
            .map_or(0, |(start, end)| end.saturating_sub(start))
    }

    /// Returns the frames that a tap can take in before unwritten ones would be overwritten.
    pub fn room(&self, index: usize, reader: &TapReader) -> u64 {
        let capacity = reader.history.capacity();
        let (Some(held), Some(_)) = (reader.history.held(), self.start) else {
            return capacity;
        };
        let tracks = self.tracks.iter().filter(|track| track.reader == index);
        let unfinished =
            tracks.filter(|track| self.end.as_ref().is_none_or(|end| track.at < end.at));
        let kept = unfinished.map(|track| held.end.saturating_sub(track.at.max(held.start)));
        capacity - kept.max().unwrap_or(0).min(capacity)
    }

    /// Writes up to a second of each track. Returns whether more is waiting.
    ///
    /// # Errors
    /// Returns an error if a file cannot be continued; the whole take ends then.
    pub fn write(&mut self, readers: &[TapReader], disk: &DiskSync) -> Result<bool, MediaError> {
        if self.start.is_none() {
            let held = self
                .tracks
                .iter()
                .filter_map(|track| readers[track.reader].history.held());
            self.set_start(held.map(|held| held.start).min());
        }
        if self.start.is_none() {
            return Ok(false);
        }
        let mut more = false;
        for track in &mut self.tracks {
            let reader = &readers[track.reader];
            let mut available = reader.end().unwrap_or(0);
            let mut is_last = false;
            if let Some(end) = &self.end {
                let nothing_comes = reader.consumer.waiting() == 0 || reader.at_jump();
                if available >= end.at || (nothing_comes && Instant::now() >= end.give_up_at) {
                    (available, is_last) = (end.at, true);
                }
            }
            let frames = available.saturating_sub(track.at);
            // A short history must not be full before a block is due.
            let block =
                (self.sample_rate / BLOCKS_PER_S).min(reader.history.capacity().div_ceil(2));
            if frames >= block || (is_last && frames > 0) {
                track.write(track.at + frames.min(self.sample_rate), reader)?;
                more |= frames > self.sample_rate;
            }
            if track.last_sync.elapsed() >= SYNC_INTERVAL
                && disk.request_sync(track.file.file(), &track.path)
            {
                track.last_sync = Instant::now();
            }
        }
        Ok(more)
    }

    /// Returns whether everything up to the end was written.
    pub fn is_complete(&self) -> bool {
        let Some(end) = &self.end else { return false };
        // A take that ends before any sound has nothing to wait for.
        self.start.map_or(Instant::now() >= end.give_up_at, |_| {
            self.tracks.iter().all(|track| track.at >= end.at)
        })
    }

    /// Completes the files and returns the first error.
    pub fn finish(mut self, failure: Option<MediaError>, disk: &DiskSync) -> Option<String> {
        let mut error = self
            .error
            .take()
            .or_else(|| failure.map(|failure| failure.to_string()));
        for track in &mut self.tracks {
            if let Err(failure) = track.file.finish() {
                error.get_or_insert_with(|| failure.to_string());
            }
            // If the queue is full, the system syncs the file in its own time.
            disk.request_sync(track.file.file(), &track.path);
        }
        error
    }
}

/// Checks that the open file still has its name: data written to a removed file would be lost.
fn check_still_linked(path: &Path, file: &File) -> io::Result<()> {
    let gone = || io::Error::new(io::ErrorKind::NotFound, "the file was removed or renamed");
    let named = fs::metadata(path).map_err(|_| gone())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let written = file.metadata()?;
        if (named.dev(), named.ino()) != (written.dev(), written.ino()) {
            return Err(gone());
        }
    }
    // Other systems do not allow open files to be removed.
    #[cfg(not(unix))]
    let _ = (named, file);
    Ok(())
}
