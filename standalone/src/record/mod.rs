//! Records what is played while it is played: the master, single tracks, or all of them in step.
//!
//! An audio callback pushes its sound into [`Tap`]s. One thread ([`writer`]) takes it from there, keeps the last seconds of every
//! tap in memory ([`history`]) and lets the files of a recording ([`take`]) follow behind. So a recording can begin in the past:
//! with a pre-roll, or as "that was good, save it" without any recording at all.
//!
//! - All taps count the same sample clock, and the files of one recording begin and end at the same sample. Sound that is
//!   missing, because the disk was too slow for longer than the rings last or because a tap was not pushed, is silence of the
//!   same length; what was dropped is counted in [`Status::dropped`].
//! - Every file ([`Format`]) is whole at every moment: a process that is killed loses less than a second, and a disk that is
//!   full or a folder that is removed ends the recording there, with one line in [`Status::error`]. Playing goes on, and
//!   another recording can begin.
//! - No file is ever overwritten; [`take_name`] and [`take_names`] find names.
//!
//! ```no_run
//! use ondes::record::{Format, Recorder, Setup, take_name};
//!
//! let setup = Setup { sample_rate: 48_000, channels: vec![2], ..Setup::default() };
//! let (mut recorder, mut taps) = Recorder::new(&setup)?;
//! // In the audio callback, every time: the number of the first frame, and the channels.
//! let mut master = taps.remove(0);
//! master.push(0, &[&[0.0; 64], &[0.0; 64]]);
//! // Anywhere else.
//! let path = take_name("Music".as_ref(), "Ondes", Format::Flac);
//! recorder.start([(0, path)], Format::Flac, true)?;
//! recorder.stop();
//! assert_eq!(recorder.wait().error, None);
//! # Ok::<(), ondes::record::RecordError>(())
//! ```

mod disk;
mod flac;
mod format;
mod history;
mod lane;
mod name;
mod take;
mod tap;
mod writer;

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crossbeam_channel::Sender;
use ondes_engine::media::MediaError;

use self::disk::Disk;
use self::format::SoundFile;
use self::history::History;
use self::lane::Lane;
use self::take::Track;
use self::tap::Wire;
use self::writer::{Command, Shared, Writer};

pub use format::Format;
pub use name::{take_name, take_names};
pub use tap::Tap;

const RATES_HZ: RangeInclusive<f64> = 1_000.0..=768_000.0;
const CHANNELS: RangeInclusive<f64> = 1.0..=64.0;
const PREROLL_S: RangeInclusive<f64> = 0.0..=600.0;
const RING_S: RangeInclusive<f64> = 0.01..=60.0;

/// What is to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Frames per second, 1 kHz to 768 kHz.
    pub sample_rate: u32,
    /// Channels of every tap, 1 to 64 each.
    pub channels: Vec<usize>,
    /// Seconds of the past that are kept in memory, 0 to 600. A channel takes 11.5 MB for a minute at 48 kHz.
    pub preroll_s: f64,
    /// Seconds that the disk may take for a write before sound is dropped, 0.01 to 60. The memory is that of the pre-roll
    /// twice over.
    pub ring_s: f64,
}

impl Default for Setup {
    /// A stereo master at 48 kHz, 30 s of the past and 4 s of patience with the disk.
    fn default() -> Self {
        Self { sample_rate: 48_000, channels: vec![2], preroll_s: 30.0, ring_s: 4.0 }
    }
}

/// Why there is no recorder or no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A number of the [`Setup`] is beyond what is supported.
    #[error("{what} is {found}, supported is {supported}")]
    Limit {
        /// The quantity, with its unit.
        what: &'static str,
        /// What was asked for.
        found: f64,
        /// The range it may be in.
        supported: String,
    },
    /// The past does not fit in memory.
    #[error("there is not enough memory for the sound that is kept for recordings")]
    Memory,
    /// The system does not start another thread.
    #[error("the recorder cannot be started: {0}")]
    Thread(io::Error),
    /// There was no file to record to.
    #[error("nothing is to be recorded")]
    NoFile,
    /// There is no tap of that number.
    #[error("there is no tap {0}")]
    NoTap(usize),
    /// A recording is running.
    #[error("a recording is running")]
    Running,
    /// Nothing was played yet.
    #[error("there is no sound to be saved yet")]
    NoSound,
    /// A file cannot be made.
    #[error(transparent)]
    File(#[from] MediaError),
}

/// How the recording is going.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Frames so far of the recording that runs, if one does.
    pub recording: Option<u64>,
    /// Recordings that were stopped, and pre-rolls that are saved, and whose files are not complete yet.
    pub finishing: usize,
    /// Frames that all taps together dropped since the last recording began: there is silence in their place.
    pub dropped: u64,
    /// What went wrong last since a recording began or a pre-roll was saved, in one line.
    pub error: Option<String>,
}

/// Decides what is recorded.
///
/// Dropped, it completes all files, and waits for that.
pub struct Recorder {
    sample_rate: u32,
    channels: Vec<usize>,
    wires: Vec<Arc<Wire>>,
    shared: Arc<Shared>,
    /// Nothing when dropped.
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
    /// Number of the next take.
    next: u64,
    /// Frames dropped before the last recording began.
    dropped_before: u64,
}

impl Recorder {
    /// A recorder, and a tap for each entry of [`Setup::channels`].
    ///
    /// # Errors
    /// When a number is beyond its range, or the system gives no memory or thread.
    pub fn new(setup: &Setup) -> Result<(Self, Vec<Tap>), RecordError> {
        check("the sample rate in Hz", f64::from(setup.sample_rate), RATES_HZ)?;
        check("the pre-roll in seconds", setup.preroll_s, PREROLL_S)?;
        check("the length of the rings in seconds", setup.ring_s, RING_S)?;
        let frames = |seconds: f64| (seconds * f64::from(setup.sample_rate)).ceil() as usize;
        let (preroll, ring) = (frames(setup.preroll_s), frames(setup.ring_s));
        let (mut taps, mut lanes, mut wires) = (Vec::new(), Vec::new(), Vec::new());
        for &channels in &setup.channels {
            check("the number of channels", channels as f64, CHANNELS)?;
            let (tap, outlet) = Tap::new(channels, ring);
            taps.push(tap);
            wires.push(Arc::clone(&outlet.wire));
            // The pre-roll stays whole while as much as a ring holds comes after it.
            lanes.push(Lane::new(outlet, History::new(channels, preroll + ring)?, setup.sample_rate));
        }
        let (commands, orders) = crossbeam_channel::unbounded();
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            lanes,
            sample_rate: setup.sample_rate,
            preroll: preroll as u64,
            commands: orders,
            shared: Arc::clone(&shared),
            disk: Disk::start().map_err(RecordError::Thread)?,
            takes: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("ondes-recorder".into()).spawn(move || writer.run());
        let recorder = Self {
            sample_rate: setup.sample_rate,
            channels: setup.channels.clone(),
            wires,
            shared,
            commands: Some(commands),
            thread: Some(thread.map_err(RecordError::Thread)?),
            next: 0,
            dropped_before: 0,
        };
        Ok((recorder, taps))
    }

    /// Starts recording: each file gets the sound of the tap of that number, all from the same sample on, which is the latest
    /// one pushed, or the first of what is kept of the past where the pre-roll belongs to it.
    ///
    /// # Errors
    /// When a recording is running, or a file is there already or cannot be made. No file is left then.
    pub fn start(
        &mut self,
        files: impl IntoIterator<Item = (usize, PathBuf)>,
        format: Format,
        preroll: bool,
    ) -> Result<(), RecordError> {
        if self.shared.lock().current.is_some() {
            return Err(RecordError::Running);
        }
        // The moment that was meant, however long the files take.
        let now = self.now();
        let tracks = self.create(files, format)?;
        let id = self.number();
        self.dropped_before = self.dropped();
        let mut state = self.shared.lock();
        (state.current, state.frames, state.error) = (Some(id), 0, None);
        self.send(Command::Begin { id, tracks, now, preroll });
        Ok(())
    }

    /// Ends the recording at the latest sample pushed, if one is running. The files become complete in their own time: see
    /// [`Status::finishing`] and [`wait`](Self::wait).
    pub fn stop(&mut self) {
        let mut state = self.shared.lock();
        if let Some(id) = state.current.take() {
            state.finishing += 1;
            self.send(Command::End { id, now: self.now() });
        }
    }

    /// Writes what is kept of the past up to now, whether a recording is running or not.
    ///
    /// # Errors
    /// When there was no sound yet, or a file is there already or cannot be made. No file is left then.
    pub fn save_preroll(
        &mut self,
        files: impl IntoIterator<Item = (usize, PathBuf)>,
        format: Format,
    ) -> Result<(), RecordError> {
        let now = self.now().ok_or(RecordError::NoSound)?;
        let tracks = self.create(files, format)?;
        let id = self.number();
        let mut state = self.shared.lock();
        state.finishing += 1;
        state.error = None;
        self.send(Command::Save { id, tracks, now });
        Ok(())
    }

    /// How it is going.
    #[must_use]
    pub fn status(&self) -> Status {
        let state = self.shared.lock();
        Status {
            recording: state.current.map(|_| state.frames),
            finishing: state.finishing,
            dropped: self.dropped() - self.dropped_before,
            error: state.error.clone(),
        }
    }

    /// Waits until nothing is recorded or finishing any more; a recording must have been stopped before, or fail.
    pub fn wait(&self) -> Status {
        self.shared.wait();
        self.status()
    }

    /// Makes the files, all or none.
    fn create(
        &self,
        files: impl IntoIterator<Item = (usize, PathBuf)>,
        format: Format,
    ) -> Result<Vec<Track>, RecordError> {
        let mut tracks = Vec::new();
        let create = |(tap, path): (usize, PathBuf)| {
            let &channels = self.channels.get(tap).ok_or(RecordError::NoTap(tap))?;
            let file = SoundFile::create(&path, format, self.sample_rate, channels)?;
            Ok(Track::new(tap, path, file))
        };
        for file in files {
            match create(file) {
                Ok(track) => tracks.push(track),
                Err(error) => {
                    for Track { path, file, .. } in tracks {
                        drop(file);
                        // One that cannot be removed is an empty sound file.
                        drop(std::fs::remove_file(path));
                    }
                    return Err(error);
                }
            }
        }
        if tracks.is_empty() { Err(RecordError::NoFile) } else { Ok(tracks) }
    }

    /// Number of the frame up to which there was sound.
    fn now(&self) -> Option<u64> {
        self.wires.iter().filter_map(|wire| wire.end()).max()
    }

    fn dropped(&self) -> u64 {
        self.wires.iter().map(|wire| wire.dropped.load(Ordering::Relaxed)).sum()
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Gives a command. An end is given under the lock of what is shared, so that the thread cannot have written beyond it.
    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // The thread listens for as long as there is somebody to send.
            drop(commands.send(command));
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            // Should it have panicked, there is nothing more to be done for the files.
            drop(thread.join());
        }
    }
}

fn check(what: &'static str, found: f64, range: RangeInclusive<f64>) -> Result<(), RecordError> {
    if range.contains(&found) {
        return Ok(());
    }
    Err(RecordError::Limit { what, found, supported: format!("{} to {}", range.start(), range.end()) })
}
