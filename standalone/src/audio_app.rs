//! The running app without its window: mixer, devices and recorder. Used by `ondes play` and by the
//! window.
//!
//! Slow work ([`AudioApp::add`], [`AudioApp::set_input`], [`AudioApp::restore`]) is done in the
//! background by the [`track_loader`](crate::track_loader), in order.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::anyhow;
use ondes_engine::panics::contain;
use ondes_engine::realtime::Setup;
use ondes_engine::sync::lock;
use ondes_player::product::Product;

use crate::devices::{Audio, AudioStatus, CallbackFactory, MidiInputs, MidiStatus, Opened};
use crate::io::{AudioChoice, Callback, MidiChoice, Tap};
use crate::rack::session_file::TrackInput;
use crate::rack::{Mixer, SessionFile, TRACKS};
use crate::record::{self, Recorder, RecordingFormat};
use crate::track_loader::{LoadOutcome, LoadRequest, PendingLoad, SessionSource, TrackLoader};

/// Length of the pre-roll that can be saved afterwards, seconds.
pub const PREROLL_S: f64 = 30.0;

/// Called each time devices were opened, before the sound starts; may schedule events at their
/// sample rate.
pub type OnOpened = Box<dyn FnMut(&mut Mixer, &Opened) -> anyhow::Result<()> + Send>;

/// Mixer, devices and recorder at work.
pub struct AudioApp {
    /// Dropped first, so that the audio thread ends before what it plays.
    audio: Audio,
    midi: Arc<MidiInputs>,
    mixer: Arc<Mutex<Mixer>>,
    recorder: Arc<Mutex<RecorderSlot>>,
    loader: TrackLoader,
}

/// The recorder, created anew with each opening of devices, and the recording requested of it.
#[derive(Default)]
struct RecorderSlot {
    scope: RecorderScope,
    recorder: Option<Recorder>,
    /// Recording under way; it continues in another file after devices were reopened.
    request: Option<RecordingRequest>,
    error: Option<String>,
}

#[derive(Clone)]
struct RecordingRequest {
    master: PathBuf,
    /// Files of single tracks, by slot.
    tracks: Vec<(usize, PathBuf)>,
    format: RecordingFormat,
}

impl RecordingRequest {
    fn files(&self) -> Vec<(usize, PathBuf)> {
        let tracks = self
            .tracks
            .iter()
            .map(|(slot, path)| (slot + 1, path.clone()));
        std::iter::once((0, self.master.clone()))
            .chain(tracks)
            .map(|(tap, path)| (tap, unused_path(path)))
            .collect()
    }
}

/// Returns `path`, or `path` with the first number before its extension that is not taken.
fn unused_path(path: PathBuf) -> PathBuf {
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let ending = path
        .extension()
        .map(|ending| format!(".{}", ending.to_string_lossy()))
        .unwrap_or_default();
    let numbered = (2..).map(|number: u32| path.with_file_name(format!("{stem} {number}{ending}")));
    std::iter::once(path.clone())
        .chain(numbered)
        .find(|path| !path.exists())
        .unwrap_or(path)
}

/// Signals that a recorder can record.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum RecorderScope {
    /// The master and sixteen tracks, and what was played before.
    #[default]
    Everything,
    /// The master, from the start of the recording on.
    Master,
}

impl RecorderScope {
    /// Creates a recorder; all its taps are stereo.
    fn recorder(self, sample_rate: u32) -> Result<(Recorder, Vec<Tap>), record::RecordError> {
        let (tracks, preroll_s) = match self {
            Self::Everything => (TRACKS, PREROLL_S),
            Self::Master => (0, 0.0),
        };
        let channels = vec![2; 1 + tracks];
        Recorder::new(&record::RecorderSetup {
            sample_rate,
            channels,
            preroll_s,
            ring_s: 4.0,
        })
    }
}

impl AudioApp {
    /// Starts to play a mixer on devices and returns at once. `on_opened` is called each time
    /// devices were opened, before the sound starts.
    #[must_use]
    pub fn new(mixer: Mixer, audio: AudioChoice, midi: MidiChoice, on_opened: OnOpened) -> Self {
        Self::start(mixer, audio, midi, on_opened, RecorderSlot::default())
    }

    /// Same as [`AudioApp::new`], but records the master in `file`, if there is one, from the first
    /// sample on, and nothing else. If the file cannot be created, [`AudioApp::recording`] returns
    /// the error.
    #[must_use]
    pub fn with_recording(
        mixer: Mixer,
        audio: AudioChoice,
        midi: MidiChoice,
        on_opened: OnOpened,
        file: Option<(&Path, RecordingFormat)>,
    ) -> Self {
        let request = file.map(|(path, format)| RecordingRequest {
            master: path.into(),
            tracks: Vec::new(),
            format,
        });
        let recorder = RecorderSlot {
            scope: RecorderScope::Master,
            request,
            ..RecorderSlot::default()
        };
        Self::start(mixer, audio, midi, on_opened, recorder)
    }

    fn start(
        mixer: Mixer,
        audio: AudioChoice,
        midi: MidiChoice,
        on_opened: OnOpened,
        recorder: RecorderSlot,
    ) -> Self {
        let mixer = Arc::new(Mutex::new(mixer));
        let midi = Arc::new(MidiInputs::open(midi));
        let recorder = Arc::new(Mutex::new(recorder));
        let callback_factory =
            callback_factory(mixer.clone(), midi.clone(), recorder.clone(), on_opened);
        let loader = TrackLoader::start(mixer.clone());
        let audio = Audio::open_with_midi(audio, &midi, callback_factory);
        Self {
            audio,
            midi,
            mixer,
            recorder,
            loader,
        }
    }

    /// Adds a track and builds it in the background. Returns its slot.
    ///
    /// # Errors
    /// Returns an error if all slots are taken.
    pub fn add(&self, product: Product) -> anyhow::Result<usize> {
        let slot = self.mixer().add_silent(product)?;
        self.loader.request(LoadRequest::Renew(slot));
        Ok(slot)
    }

    /// Changes the input of a track in the background. If its recording cannot be read, the input
    /// stays as it is.
    pub fn set_input(&self, slot: usize, input: TrackInput) {
        self.loader.request(LoadRequest::SetInput(slot, input));
    }

    /// Sets the MIDI channels of a track in the background, one bit per channel.
    pub fn set_midi_channels(&self, slot: usize, channels: u16) {
        self.mixer().store_midi_channels(slot, channels);
        self.loader.request(LoadRequest::Renew(slot));
    }

    /// Restores a session in the background; [`AudioApp::outcome`] reports the end.
    pub fn restore(&self, session: SessionFile) {
        self.loader
            .request(LoadRequest::Restore(SessionSource::Session(Box::new(
                session,
            ))));
    }

    /// Reads and restores a session in the background; [`AudioApp::outcome`] reports the end.
    pub fn restore_file(&self, path: PathBuf) {
        self.loader
            .request(LoadRequest::Restore(SessionSource::File(path)));
    }

    /// Returns what is being loaded for tracks and sessions, in order; models are reported by their
    /// tracks.
    pub fn loading(&self) -> Vec<PendingLoad> {
        self.loader.loading()
    }

    /// Returns the next finished background request, if any.
    pub fn outcome(&self) -> Option<LoadOutcome> {
        self.loader.outcome()
    }

    /// Locks the mixer. The audio thread does not wait for this lock.
    pub fn mixer(&self) -> MutexGuard<'_, Mixer> {
        lock(&self.mixer)
    }

    /// Waits while devices are being opened, at most `timeout`, and returns the audio status.
    pub fn settled(&self, timeout: Duration) -> AudioStatus {
        self.audio.settled(timeout)
    }

    /// Returns the audio status.
    pub fn status(&self) -> AudioStatus {
        self.audio.status()
    }

    /// Returns the number of underruns that the sound system has reported.
    pub fn xruns(&self) -> u64 {
        self.audio.xruns()
    }

    /// Returns the number of dropouts: underruns of the sound system and missed blocks of all
    /// tracks.
    pub fn dropouts(&self) -> u64 {
        let mixer = self.mixer();
        let dropouts = mixer
            .tracks()
            .filter_map(|(_, track)| Some(track.instance.session.health()?.dropouts));
        dropouts.sum::<u64>() + self.xruns()
    }

    /// Switches to other audio devices.
    pub fn choose_audio(&self, choice: AudioChoice) {
        self.audio.choose(choice);
    }

    /// Switches to other MIDI ports.
    pub fn choose_midi(&self, choice: MidiChoice) {
        self.midi.choose(choice);
    }

    /// Returns the status of the MIDI ports.
    pub fn midi(&self) -> MidiStatus {
        self.midi.status()
    }

    /// Records the master, and single tracks by slot, until [`AudioApp::stop`]. Existing files are
    /// kept; a number is added to the name.
    ///
    /// # Errors
    /// Returns an error if a file cannot be created or a recording is running.
    pub fn record(
        &self,
        master: &Path,
        tracks: Vec<(usize, PathBuf)>,
        format: RecordingFormat,
        preroll: bool,
    ) -> anyhow::Result<()> {
        let mut recording = lock(&self.recorder);
        let request = RecordingRequest {
            master: master.into(),
            tracks,
            format,
        };
        if let Some(recorder) = &mut recording.recorder {
            recorder.start(request.files(), format, preroll)?;
        }
        (recording.request, recording.error) = (Some(request), None);
        Ok(())
    }

    /// Stops the recording and waits until its files are complete.
    pub fn stop(&self) -> record::RecordingStatus {
        let mut recording = lock(&self.recorder);
        recording.request = None;
        match &mut recording.recorder {
            Some(recorder) => {
                recorder.stop();
                recorder.wait()
            }
            None => record::RecordingStatus::default(),
        }
    }

    /// Stops the recording; its files are completed in the background.
    pub fn stop_in_background(&self) {
        let mut recording = lock(&self.recorder);
        recording.request = None;
        if let Some(recorder) = &mut recording.recorder {
            recorder.stop();
        }
    }

    /// Saves the last 30 s of the master, and of single tracks by slot, in the background.
    ///
    /// # Errors
    /// Returns an error if nothing was played yet or a file cannot be created.
    pub fn save_preroll(
        &self,
        master: &Path,
        tracks: Vec<(usize, PathBuf)>,
        format: RecordingFormat,
    ) -> anyhow::Result<()> {
        let request = RecordingRequest {
            master: master.into(),
            tracks,
            format,
        };
        match &mut lock(&self.recorder).recorder {
            Some(recorder) => Ok(recorder.save_preroll(request.files(), format)?),
            None => Err(record::RecordError::NoSound.into()),
        }
    }

    /// Returns the status of the recording.
    #[must_use]
    pub fn recording(&self) -> record::RecordingStatus {
        let recording = lock(&self.recorder);
        let status = recording
            .recorder
            .as_ref()
            .map(Recorder::status)
            .unwrap_or_default();
        record::RecordingStatus {
            error: recording.error.clone().or(status.error),
            ..status
        }
    }
}

/// Creates the audio thread's half each time devices were opened.
fn callback_factory(
    mixer: Arc<Mutex<Mixer>>,
    midi: Arc<MidiInputs>,
    recording: Arc<Mutex<RecorderSlot>>,
    mut on_opened: OnOpened,
) -> CallbackFactory {
    Box::new(move |opened: &Opened| {
        // Completes the files of the previous recorder before the mixer is locked.
        let (last, scope) = {
            let mut recording = lock(&recording);
            (recording.recorder.take(), recording.scope)
        };
        drop(last);
        let (mut recorder, taps) = scope
            .recorder(opened.sample_rate)
            .map_err(|error| error.to_string())?;
        let setup = Setup {
            sample_rate: opened.sample_rate,
            max_block: opened.max_block,
        };
        let receiver = midi.receiver(opened.sample_rate, opened.max_block);
        let (mut rack, plans) = {
            let mut mixer = lock(&mixer);
            on_opened(&mut mixer, opened).map_err(|error| format!("{error:#}"))?;
            mixer.open_empty(setup, receiver, taps)
        };
        for plan in plans {
            let slot = plan.slot();
            // Built without the lock on the mixer, since models and recordings take time to load. A
            // track that fails is silent; the others play.
            let built = contain(|| plan.build())
                .unwrap_or_else(|panic| Err(anyhow!("loading failed: {panic}")));
            let mut mixer = lock(&mixer);
            match built {
                Ok(finished) => finished
                    .into_iter()
                    .for_each(|finished| mixer.insert(&mut rack, finished)),
                Err(error) => mixer.fail(slot, format!("{error:#}")),
            }
        }
        // Started last, so that no file is created if nothing can be played.
        let mut recording = lock(&recording);
        if let Some(request) = recording.request.clone() {
            let started = recorder.start(request.files(), request.format, false);
            recording.error = started.err().map(|error| error.to_string());
        }
        recording.recorder = Some(recorder);
        Ok(Box::new(rack) as Box<dyn Callback>)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_are_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("take.wav");
        assert_eq!(unused_path(path.clone()), path);
        std::fs::write(&path, "x").unwrap();
        std::fs::write(folder.path().join("take 2.wav"), "x").unwrap();
        assert_eq!(unused_path(path), folder.path().join("take 3.wav"));
    }
}
