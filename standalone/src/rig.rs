//! The running app without its window: a console, the devices that it plays on, and the recorder. `ondes play` and the window are
//! both made of it.
//!
//! What may take its time ([`Rig::add`], [`Rig::listen`], [`Rig::restore`]) is done by the [`loader`](crate::loader), in that
//! order.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ondes_engine::realtime::Setup;
use ondes_processor::preset::Product;

use crate::devices::audio::Factory;
use crate::devices::{Audio, AudioChoice, Callback, Midi, MidiChoice, MidiStatus, Opened, Status};
use crate::loader::{Loader, Loading, Order, Outcome};
use crate::rack::plan::Plan;
use crate::rack::saved::Input;
use crate::rack::{Console, SessionFile, TRACKS};
use crate::record::{self, Format, Recorder};

/// Seconds of the past that can be saved afterwards.
pub const PREROLL_S: f64 = 30.0;

/// Something for the console to do each time that devices were opened, such as to be told what to play at their rate.
pub type Begin = Box<dyn FnMut(&mut Console, &Opened) -> anyhow::Result<()> + Send>;

/// What is played, and where.
pub struct Rig {
    /// First, so that the audio thread is gone before what it plays.
    audio: Audio,
    midi: Arc<Midi>,
    console: Arc<Mutex<Console>>,
    recorder: Arc<Mutex<Recording>>,
    loader: Loader,
}

/// The recorder, which is made anew with the devices, and what was asked of it.
#[derive(Default)]
struct Recording {
    recorder: Option<Recorder>,
    /// What is recorded at the moment, to go on in another file when the devices are back.
    wanted: Option<Wanted>,
    problem: Option<String>,
}

#[derive(Clone)]
struct Wanted {
    master: PathBuf,
    /// Files for single tracks, by their places.
    tracks: Vec<(usize, PathBuf)>,
    format: Format,
}

impl Wanted {
    fn files(&self) -> Vec<(usize, PathBuf)> {
        let tracks = self.tracks.iter().map(|(place, path)| (place + 1, path.clone()));
        std::iter::once((0, self.master.clone())).chain(tracks).map(|(tap, path)| (tap, free(path))).collect()
    }
}

/// The path, or with a number before its ending where there is such a file already.
fn free(path: PathBuf) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    let numbered = (2..).map(|number: u32| path.with_file_name(format!("{stem} {number}{ending}")));
    std::iter::once(path.clone()).chain(numbered).find(|path| !path.exists()).unwrap_or(path)
}

/// Sixteen tracks and the master, all in stereo.
fn recorder(sample_rate: u32) -> Result<(Recorder, Vec<record::Tap>), record::RecordError> {
    let setup = record::Setup { sample_rate, channels: vec![2; TRACKS + 1], preroll_s: PREROLL_S, ring_s: 4.0 };
    Recorder::new(&setup)
}

impl Rig {
    /// Begins to play a console on devices; returns at once. `begin` is called whenever they were opened, before the sound begins.
    #[must_use]
    pub fn new(console: Console, audio: AudioChoice, midi: MidiChoice, begin: Begin) -> Self {
        Self::recorded(console, audio, midi, begin, None)
    }

    /// The same, with everything that is heard recorded in that file, from the very first sample on: it begins with the sound.
    /// Where the file cannot be made, [`Rig::recording`] tells why.
    #[must_use]
    pub fn recorded(
        console: Console,
        audio: AudioChoice,
        midi: MidiChoice,
        begin: Begin,
        file: Option<(&Path, Format)>,
    ) -> Self {
        let console = Arc::new(Mutex::new(console));
        let midi = Arc::new(Midi::open(midi));
        let wanted = file.map(|(path, format)| Wanted { master: path.into(), tracks: Vec::new(), format });
        let recorder = Arc::new(Mutex::new(Recording { wanted, ..Recording::default() }));
        let factory = factory(console.clone(), midi.clone(), recorder.clone(), begin);
        let loader = Loader::start(console.clone());
        Self { audio: Audio::open(audio, factory), midi, console, recorder, loader }
    }

    /// Adds a track, which plays by and by. Gives its place.
    ///
    /// # Errors
    /// When there is no place left.
    pub fn add(&self, product: Product) -> anyhow::Result<usize> {
        let place = self.console().place(product)?;
        self.loader.begin(Order::Renew(place));
        Ok(place)
    }

    /// Lets a track listen to something else by and by. Where the recording cannot be read everything stays as it is.
    pub fn listen(&self, place: usize, input: Input) {
        self.loader.begin(Order::Listen(place, input));
    }

    /// Lets a track hear those MIDI channels by and by, one bit each.
    pub fn set_midi_channels(&self, place: usize, channels: u16) {
        self.console().take_midi_channels(place, channels);
        self.loader.begin(Order::Renew(place));
    }

    /// Goes to a session by and by; [`Rig::outcome`] says when it is there.
    pub fn restore(&self, session: SessionFile) {
        self.loader.begin(Order::Restore(Box::new(session)));
    }

    /// What is being loaded for tracks and sessions, in order. Models that tracks load say so themselves.
    pub fn loading(&self) -> Vec<Loading> {
        self.loader.loading()
    }

    /// What was loaded since, if anything.
    pub fn outcome(&self) -> Option<Outcome> {
        self.loader.outcome()
    }

    /// The console, for as long as this is held. The sound does not wait for it.
    pub fn console(&self) -> MutexGuard<'_, Console> {
        lock(&self.console)
    }

    /// How the sound stands, once devices are no longer being opened, or after that time.
    pub fn settled(&self, patience: Duration) -> Status {
        self.audio.settled(patience)
    }

    /// How the sound stands.
    pub fn status(&self) -> Status {
        self.audio.status()
    }

    /// How often sound came too late so far, as far as the system tells.
    pub fn xruns(&self) -> u64 {
        self.audio.xruns()
    }

    /// How often sound came too late so far, by the system's count and by those of the tracks.
    pub fn misses(&self) -> u64 {
        let console = self.console();
        let misses = console.tracks().filter_map(|(_, track)| Some(track.shared.remote.health()?.misses));
        misses.sum::<u64>() + self.xruns()
    }

    /// Plays on other devices.
    pub fn choose_audio(&self, choice: AudioChoice) {
        self.audio.choose(choice);
    }

    /// Hears other ports.
    pub fn choose_midi(&self, choice: MidiChoice) {
        self.midi.choose(choice);
    }

    /// How MIDI ports stand.
    pub fn midi(&self) -> MidiStatus {
        self.midi.status()
    }

    /// Records what is heard, and single tracks by their places, until [`Rig::stop`]. Files that exist stay: others are numbered.
    ///
    /// # Errors
    /// When a file cannot be made, or nothing is played yet.
    pub fn record(
        &self,
        master: &Path,
        tracks: Vec<(usize, PathBuf)>,
        format: Format,
        preroll: bool,
    ) -> anyhow::Result<()> {
        let mut recording = lock(&self.recorder);
        let wanted = Wanted { master: master.into(), tracks, format };
        if let Some(recorder) = &mut recording.recorder {
            recorder.start(wanted.files(), format, preroll)?;
        }
        (recording.wanted, recording.problem) = (Some(wanted), None);
        Ok(())
    }

    /// Ends the recording, and waits until its file is complete.
    pub fn stop(&self) -> record::Status {
        let mut recording = lock(&self.recorder);
        recording.wanted = None;
        match &mut recording.recorder {
            Some(recorder) => {
                recorder.stop();
                recorder.wait()
            }
            None => record::Status::default(),
        }
    }

    /// Ends the recording; its files become complete by and by.
    pub fn end(&self) {
        let mut recording = lock(&self.recorder);
        recording.wanted = None;
        if let Some(recorder) = &mut recording.recorder {
            recorder.stop();
        }
    }

    /// Writes what was heard in the last 30 s, by and by, and of single tracks by their places.
    ///
    /// # Errors
    /// When nothing was heard yet, or a file cannot be made.
    pub fn save_past(&self, master: &Path, tracks: Vec<(usize, PathBuf)>, format: Format) -> anyhow::Result<()> {
        let wanted = Wanted { master: master.into(), tracks, format };
        match &mut lock(&self.recorder).recorder {
            Some(recorder) => Ok(recorder.save_preroll(wanted.files(), format)?),
            None => Err(record::RecordError::NoSound.into()),
        }
    }

    /// How the recording is going.
    #[must_use]
    pub fn recording(&self) -> record::Status {
        let recording = lock(&self.recorder);
        let status = recording.recorder.as_ref().map(Recorder::status).unwrap_or_default();
        record::Status { error: recording.problem.clone().or(status.error), ..status }
    }
}

/// What makes the audio thread's half, whenever devices were opened.
fn factory(
    console: Arc<Mutex<Console>>,
    midi: Arc<Midi>,
    recording: Arc<Mutex<Recording>>,
    mut begin: Begin,
) -> Factory {
    Box::new(move |opened: &Opened| {
        // Completes what the last devices have left, while nobody has to wait for it.
        let last = lock(&recording).recorder.take();
        drop(last);
        let (mut recorder, taps) = recorder(opened.sample_rate).map_err(|error| error.to_string())?;
        let setup = Setup { sample_rate: opened.sample_rate, max_block: opened.max_block };
        let receiver = midi.receiver(opened.sample_rate, opened.max_block);
        let (mut rack, plans) = {
            let mut console = lock(&console);
            begin(&mut console, opened).map_err(|error| format!("{error:#}"))?;
            console.begin(setup, receiver, taps)
        };
        // Without the console: models and recordings take their time.
        let made: anyhow::Result<Vec<_>> = plans.into_iter().map(Plan::make).collect();
        let made = made.map_err(|error| format!("{error:#}"))?;
        {
            let mut console = lock(&console);
            made.into_iter().flatten().for_each(|finished| console.seat(&mut rack, finished));
        }
        // Not before: where nothing can be played no file is made.
        let mut recording = lock(&recording);
        if let Some(wanted) = recording.wanted.clone() {
            let started = recorder.start(wanted.files(), wanted.format, false);
            recording.problem = started.err().map(|error| error.to_string());
        }
        recording.recorder = Some(recorder);
        Ok(Box::new(rack) as Box<dyn Callback>)
    })
}

/// Nothing that is kept here is half done when a thread panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_exist_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("take.wav");
        assert_eq!(free(path.clone()), path);
        std::fs::write(&path, "x").unwrap();
        std::fs::write(folder.path().join("take 2.wav"), "x").unwrap();
        assert_eq!(free(path), folder.path().join("take 3.wav"));
    }
}
