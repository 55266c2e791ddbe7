//! Link between the MIDI inputs and the audio devices: on JACK one client plays the sound and
//! receives MIDI, since each client of an overloaded server adds dropouts.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use ondes_engine::sync::lock;

#[cfg(target_os = "linux")]
use super::jack_midi::MidiClient;
use crate::io::midi_queues::PortQueues;

/// Link between the supervisor of the audio devices and the thread that connects MIDI ports.
pub(super) struct MidiLink {
    /// Queues to the audio callback.
    pub queues: Arc<PortQueues>,
    jack: Mutex<JackMidi>,
    changed: AtomicBool,
}

/// Client that receives MIDI from JACK.
pub(super) enum JackMidi {
    /// Not known yet: the audio devices are being opened.
    Opening,
    /// None, for this one-line reason: the audio device on JACK cannot be opened.
    Failed(String),
    /// The client of the audio device.
    #[cfg(target_os = "linux")]
    Shared(MidiClient),
    /// A client of its own: the audio devices are not on JACK.
    Separate,
}

impl MidiLink {
    pub fn new(queues: Arc<PortQueues>) -> Self {
        Self {
            queues,
            jack: Mutex::new(JackMidi::Opening),
            changed: AtomicBool::new(false),
        }
    }

    /// Changes the client. The previous one is no longer in use when this returns.
    pub fn set(&self, jack: JackMidi) {
        let before = std::mem::replace(&mut *self.jack(), jack);
        self.changed.store(true, Relaxed);
        drop(before);
    }

    /// Locks the client. It is not closed meanwhile.
    pub fn jack(&self) -> MutexGuard<'_, JackMidi> {
        lock(&self.jack)
    }

    /// Returns whether the client was changed since the last call.
    pub fn take_changed(&self) -> bool {
        self.changed.swap(false, Relaxed)
    }
}
