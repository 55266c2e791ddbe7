//! Handle on the audio devices.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::callback_slot::StreamStats;
use super::midi::MidiInputs;
use super::midi_link::MidiLink;
use super::status::{AudioStatus, AudioStatusCell, CallbackFactory, Drift};
use super::supervisor::Supervisor;
use crate::io::AudioChoice;

/// Opened audio devices, until dropped. Devices that disappear are reopened when they are back.
pub struct Audio {
    choices: Option<Sender<AudioChoice>>,
    status_cell: Arc<AudioStatusCell>,
    stats: Arc<StreamStats>,
    thread: Option<JoinHandle<()>>,
}

impl Audio {
    /// Starts to open the chosen devices and returns at once; see [`settled`](Self::settled).
    pub fn open(choice: AudioChoice, factory: CallbackFactory) -> Self {
        Self::start(choice, None, factory)
    }

    /// Same as [`Audio::open`]; on JACK the client of the devices also receives MIDI.
    pub fn open_with_midi(
        choice: AudioChoice,
        midi: &MidiInputs,
        factory: CallbackFactory,
    ) -> Self {
        Self::start(choice, Some(midi.link().clone()), factory)
    }

    fn start(choice: AudioChoice, midi: Option<Arc<MidiLink>>, factory: CallbackFactory) -> Self {
        let status_cell = Arc::<AudioStatusCell>::default();
        let stats = Arc::new(StreamStats::default());
        let (choices, inbox) = mpsc::channel();
        let supervisor = Supervisor {
            inbox,
            status_cell: status_cell.clone(),
            stats: stats.clone(),
            midi,
            factory,
        };
        let thread = std::thread::Builder::new().name("ondes-audio".into());
        let thread = match thread.spawn(move || supervisor.run(choice)) {
            Ok(thread) => Some(thread),
            Err(error) => {
                status_cell.set(AudioStatus::Failed(format!(
                    "the audio thread cannot be started: {error}"
                )));
                None
            }
        };
        Self {
            choices: Some(choices),
            status_cell,
            stats,
            thread,
        }
    }

    /// Switches to other devices.
    pub fn choose(&self, choice: AudioChoice) {
        let Some(choices) = &self.choices else { return };
        self.status_cell
            .announce_choice(|| choices.send(choice).is_ok());
    }

    /// Returns the status.
    pub fn status(&self) -> AudioStatus {
        self.status_cell.get()
    }

    /// Waits while devices are being opened and returns the status; [`AudioStatus::Opening`] after
    /// `timeout`.
    pub fn settled(&self, timeout: Duration) -> AudioStatus {
        self.status_cell.wait_until_settled(timeout)
    }

    /// Returns the number of underruns that the system has reported.
    pub fn xruns(&self) -> u64 {
        self.stats.xruns()
    }

    /// Returns the drift between input and output device so far.
    pub fn drift(&self) -> Drift {
        self.stats.drift()
    }
}

impl Drop for Audio {
    fn drop(&mut self) {
        self.choices = None;
        self.stats.stop();
        if let Some(thread) = self.thread.take() {
            // The thread contains its panics.
            drop(thread.join());
        }
    }
}
