//! Connected MIDI ports, merged into one stream for the audio callback.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ondes_engine::sync::lock;
use serde::Serialize;

#[cfg(target_os = "linux")]
use super::jack_midi_input::JackMidiInput;
use super::midi_link::MidiLink;
use super::system_midi::SystemMidi;
use crate::io::midi_choice::has;
use crate::io::midi_queues::PortQueues;
use crate::io::{MidiChoice, MidiPorts, MidiReceiver};
use ondes_engine::panics;

/// Interval at which ports are listed.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of the checks for a lost server.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Status of the MIDI ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MidiStatus {
    /// Names of the connected ports.
    pub connected: Vec<String>,
    /// Requested names that no port has.
    pub missing: Vec<String>,
    /// Errors of the MIDI systems, one line each.
    pub errors: Vec<String>,
}

/// MIDI inputs, open until dropped.
pub struct MidiInputs {
    orders: Option<Sender<MidiChoice>>,
    link: Arc<MidiLink>,
    status: Arc<Mutex<MidiStatus>>,
    thread: Option<JoinHandle<()>>,
}

impl MidiInputs {
    /// Starts to connect ports. If the system allows it, creates an input port "Ondes" for other
    /// programs. Ports of JACK are connected once
    /// [`Audio::open_with_midi`](super::Audio::open_with_midi) has opened the audio devices.
    pub fn open(choice: MidiChoice) -> Self {
        let (orders, inbox) = mpsc::channel();
        let link = Arc::new(MidiLink::new(PortQueues::new()));
        let status = Arc::<Mutex<MidiStatus>>::default();
        let watcher = PortWatcher {
            inbox,
            link: link.clone(),
            status: status.clone(),
        };
        let thread = match std::thread::Builder::new()
            .name("ondes-midi".into())
            .spawn(move || watcher.run(choice))
        {
            Ok(thread) => Some(thread),
            Err(error) => {
                lock(&status).errors = vec![format!("the MIDI thread cannot be started: {error}")];
                None
            }
        };
        Self {
            orders: Some(orders),
            link,
            status,
            thread,
        }
    }

    /// Switches to other ports or channels.
    pub fn choose(&self, choice: MidiChoice) {
        // Without the thread the status reports the error.
        self.orders.as_ref().map(|orders| orders.send(choice).ok());
    }

    /// Returns the audio thread's end, for blocks of at most `max_block` frames at `sample_rate`
    /// Hz; `None` while another one is in use. Must not be dropped on the audio thread. Messages
    /// from before are dropped.
    pub fn receiver(&self, sample_rate: u32, max_block: usize) -> Option<MidiReceiver> {
        self.link.queues.receiver(sample_rate, max_block)
    }

    /// Returns the link to the audio devices.
    pub(super) fn link(&self) -> &Arc<MidiLink> {
        &self.link
    }

    /// Returns the status of the ports.
    pub fn status(&self) -> MidiStatus {
        lock(&self.status).clone()
    }

    /// Returns the number of messages dropped because the audio thread was too slow.
    pub fn dropped_messages(&self) -> u64 {
        self.link.queues.dropped_messages()
    }
}

impl Drop for MidiInputs {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported by its thread.
            drop(thread.join());
        }
    }
}

/// MIDI port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MidiPort {
    /// MIDI system: "ALSA", "JACK" …
    pub system: String,
    /// Name of the port.
    pub name: String,
}

/// Returns all ports, and one line for each MIDI system with an error.
pub fn ports() -> (Vec<MidiPort>, Vec<String>) {
    super::prepare_thread();
    let systems = [
        (super::system_midi::SYSTEM, super::system_midi::ports()),
        #[cfg(target_os = "linux")]
        (super::jack::HOST, super::jack_midi::ports()),
    ];
    let (mut ports, mut errors) = (Vec::new(), Vec::new());
    for (system, found) in systems {
        match found {
            Ok(names) => ports.extend(names.into_iter().map(|name| MidiPort {
                system: system.into(),
                name,
            })),
            Err(error) => errors.push(error),
        }
    }
    (ports, errors)
}

/// Thread that connects ports.
struct PortWatcher {
    inbox: Receiver<MidiChoice>,
    link: Arc<MidiLink>,
    status: Arc<Mutex<MidiStatus>>,
}

/// The handle was dropped.
struct OwnerDropped;

impl PortWatcher {
    fn run(self, mut choice: MidiChoice) {
        super::prepare_thread();
        loop {
            let Err(panic) = panics::contain(|| self.watch(&mut choice)) else {
                return;
            };
            let errors = vec![format!("MIDI failed and is opened again: {panic}")];
            *lock(&self.status) = MidiStatus {
                errors,
                ..MidiStatus::default()
            };
            match self.inbox.recv_timeout(SCAN_INTERVAL) {
                Ok(other) => choice = other,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Connects ports until the handle is dropped.
    fn watch(&self, choice: &mut MidiChoice) {
        let mut sequencer = SystemMidi::default();
        #[cfg(target_os = "linux")]
        let mut jack = JackMidiInput::default();
        self.link.queues.select_channels(choice.channels);
        loop {
            let of_system = sequencer.update_connections(choice, &self.link.queues);
            #[cfg(target_os = "linux")]
            let of_jack = jack.update_connections(choice, &self.link, of_system.is_ok());
            #[cfg(not(target_os = "linux"))]
            let of_jack = Ok(Vec::new());
            self.report(choice, [of_system, of_jack]);
            let check = || {
                #[cfg(target_os = "linux")]
                jack.close_if_gone();
            };
            match self.wait(check) {
                Ok(None) => {}
                Ok(Some(other)) => {
                    *choice = other;
                    sequencer = SystemMidi::default();
                    #[cfg(target_os = "linux")]
                    jack.disconnect(&self.link);
                    self.link.queues.select_channels(choice.channels);
                }
                Err(OwnerDropped) => return,
            }
        }
    }

    /// Publishes the connected ports of all systems.
    fn report<const SYSTEMS: usize>(
        &self,
        choice: &MidiChoice,
        systems: [Result<Vec<String>, String>; SYSTEMS],
    ) {
        let (mut connected, mut errors) = (Vec::new(), Vec::new());
        for found in systems {
            match found {
                Ok(names) => connected.extend(names),
                Err(error) => errors.push(error),
            }
        }
        let missing = match &choice.ports {
            MidiPorts::All => Vec::new(),
            MidiPorts::Names(names) => {
                let there = |wanted: &String| connected.iter().any(|name| has(name, wanted));
                names
                    .iter()
                    .filter(|wanted| !there(wanted))
                    .cloned()
                    .collect()
            }
        };
        *lock(&self.status) = MidiStatus {
            connected,
            missing,
            errors,
        };
    }

    /// Waits until ports are to be listed again, and returns another choice if there is one. Calls
    /// `check` meanwhile.
    fn wait(&self, mut check: impl FnMut()) -> Result<Option<MidiChoice>, OwnerDropped> {
        let since = Instant::now();
        while since.elapsed() < SCAN_INTERVAL && !self.link.take_changed() {
            match self.inbox.recv_timeout(CHECK_INTERVAL) {
                Ok(choice) => return Ok(Some(self.inbox.try_iter().last().unwrap_or(choice))),
                Err(RecvTimeoutError::Timeout) => check(),
                Err(RecvTimeoutError::Disconnected) => return Err(OwnerDropped),
            }
        }
        Ok(None)
    }
}
