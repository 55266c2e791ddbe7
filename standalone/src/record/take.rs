//! One recording: files that follow their lanes from one frame on to another, in step.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ondes_engine::media::{MediaError, display_name};

use super::disk::Disk;
use super::format::SoundFile;
use super::lane::Lane;

/// Blocks written in a second at most, besides the last one. What is not written yet is lost where the process is killed.
const BLOCKS_PER_S: u64 = 4;
/// How long frames before the end are waited for, which a callback may just be about to push.
const PATIENCE: Duration = Duration::from_millis(250);
/// How often what was written is brought to the disk.
const DISK_EVERY: Duration = Duration::from_secs(3);

/// One recording.
pub(super) struct Take {
    pub id: u64,
    tracks: Vec<Track>,
    /// Frames per second.
    sample_rate: u64,
    /// Number of the first frame; nothing while there is no sound at all.
    start: Option<u64>,
    end: Option<End>,
    error: Option<String>,
}

/// Where a take ends.
struct End {
    /// Number of the frame after the last.
    at: u64,
    /// When frames that are not there are given up.
    patience: Instant,
}

/// A file and the lane that it follows.
pub(super) struct Track {
    pub lane: usize,
    pub path: PathBuf,
    pub file: SoundFile,
    /// Number of the frame that is written next, from the start of the take on.
    at: u64,
    asked_disk: Instant,
}

impl Track {
    pub fn new(lane: usize, path: PathBuf, file: SoundFile) -> Self {
        Self { lane, path, file, at: 0, asked_disk: Instant::now() }
    }

    /// Writes the frames up to `until`, and silence for those that the lane does not have.
    fn write(&mut self, until: u64, lane: &Lane) -> Result<(), MediaError> {
        let frames = self.at..until;
        let held = lane.history.held().unwrap_or(until..until);
        let there = clamp(held.start, &frames)..clamp(held.end, &frames);
        let file = &mut self.file;
        let silence = |file: &mut SoundFile, frames: Range<u64>| match (frames.end - frames.start) as usize {
            0 => Ok(()),
            frames => file.append(&vec![0.0; frames * lane.history.channels()]),
        };
        silence(file, frames.start..there.start)?;
        lane.history.read(there.clone(), |slice| file.append(slice))?;
        silence(file, there.end..frames.end)?;
        self.at = until;
        still_named(&self.path, self.file.file())
            .map_err(|source| MediaError::Unwritable { file: display_name(&self.path), source })
    }
}

fn clamp(frame: u64, range: &Range<u64>) -> u64 {
    frame.clamp(range.start, range.end)
}

impl Take {
    /// From the frame `start` on, or from the first one there will be.
    pub fn new(id: u64, tracks: Vec<Track>, sample_rate: u32, start: Option<u64>) -> Self {
        let mut take = Self { id, tracks, sample_rate: u64::from(sample_rate), start: None, end: None, error: None };
        take.set_start(start);
        take
    }

    fn set_start(&mut self, start: Option<u64>) {
        self.start = start;
        self.tracks.iter_mut().for_each(|track| track.at = start.unwrap_or(0));
    }

    /// Makes it end before the frame `at`, or earlier if that was said already; the reason is an error.
    pub fn end_at(&mut self, at: u64, reason: Option<&str>) {
        if self.end.as_ref().is_none_or(|end| end.at > at) {
            self.end = Some(End { at, patience: Instant::now() + PATIENCE });
            if let (Some(reason), Some(track)) = (reason, self.tracks.first()) {
                self.error = Some(format!("{}: {reason}", display_name(&track.path)));
            }
        }
    }

    /// Frames so far, whether written or not.
    pub fn frames(&self, lanes: &[Lane]) -> u64 {
        let end = self.tracks.iter().filter_map(|track| lanes[track.lane].end()).max();
        self.start.zip(end).map_or(0, |(start, end)| end.saturating_sub(start))
    }

    /// How many more frames a lane can take before those that are still to be written are overwritten.
    pub fn room(&self, index: usize, lane: &Lane) -> u64 {
        let capacity = lane.history.capacity();
        let (Some(held), Some(_)) = (lane.history.held(), self.start) else { return capacity };
        let tracks = self.tracks.iter().filter(|track| track.lane == index);
        let unfinished = tracks.filter(|track| self.end.as_ref().is_none_or(|end| track.at < end.at));
        let kept = unfinished.map(|track| held.end.saturating_sub(track.at.max(held.start)));
        capacity - kept.max().unwrap_or(0).min(capacity)
    }

    /// Writes what there is to write, a second at most. Gives whether there is more.
    ///
    /// # Errors
    /// When a file cannot go on; then none does.
    pub fn write(&mut self, lanes: &[Lane], disk: &Disk) -> Result<bool, MediaError> {
        if self.start.is_none() {
            let held = self.tracks.iter().filter_map(|track| lanes[track.lane].history.held());
            self.set_start(held.map(|held| held.start).min());
        }
        if self.start.is_none() {
            return Ok(false);
        }
        let mut more = false;
        for track in &mut self.tracks {
            let lane = &lanes[track.lane];
            let mut there = lane.end().unwrap_or(0);
            let mut is_last = false;
            if let Some(end) = &self.end {
                let nothing_comes = lane.outlet.waiting() == 0 || lane.at_jump();
                if there >= end.at || (nothing_comes && Instant::now() >= end.patience) {
                    (there, is_last) = (end.at, true);
                }
            }
            let frames = there.saturating_sub(track.at);
            // A short history must not fill up before there is a block.
            let block = (self.sample_rate / BLOCKS_PER_S).min(lane.history.capacity().div_ceil(2));
            if frames >= block || (is_last && frames > 0) {
                track.write(track.at + frames.min(self.sample_rate), lane)?;
                more |= frames > self.sample_rate;
            }
            if track.asked_disk.elapsed() >= DISK_EVERY && disk.bring(track.file.file(), &track.path) {
                track.asked_disk = Instant::now();
            }
        }
        Ok(more)
    }

    /// Whether all that was to be recorded is.
    pub fn is_over(&self) -> bool {
        let Some(end) = &self.end else { return false };
        // One that ends before there was any sound has nothing to wait for.
        self.start.map_or(Instant::now() >= end.patience, |_| self.tracks.iter().all(|track| track.at >= end.at))
    }

    /// Completes the files and gives the first thing that went wrong.
    pub fn finish(mut self, failure: Option<MediaError>, disk: &Disk) -> Option<String> {
        let mut error = self.error.take().or_else(|| failure.map(|failure| failure.to_string()));
        for track in &mut self.tracks {
            if let Err(failure) = track.file.finish() {
                error.get_or_insert_with(|| failure.to_string());
            }
            // Should there be no place to wait, the system does it in its own time.
            disk.bring(track.file.file(), &track.path);
        }
        error
    }
}

/// Whether what is written still has its name: a file that was removed takes whatever it is given, for nobody.
fn still_named(path: &Path, file: &File) -> io::Result<()> {
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
    // Elsewhere an open file cannot be removed.
    #[cfg(not(unix))]
    let _ = (named, file);
    Ok(())
}
