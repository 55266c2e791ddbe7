//! What there is to play on, looked for on a thread of its own: some systems take their time.

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use crate::devices::catalogue::{self, Device, Host};
use crate::devices::midi::{self, MidiPort};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// Sound systems.
    pub hosts: Vec<Host>,
    /// Devices of the one that is chosen.
    pub devices: Vec<Device>,
    /// MIDI ports.
    pub ports: Vec<MidiPort>,
    /// Why there is less than there could be, one line each.
    pub troubles: Vec<String>,
    /// It is being looked for.
    pub looking: bool,
}

/// Looks, and knows what was found last.
#[derive(Default)]
pub(super) struct Scan {
    pub found: Inventory,
    coming: Option<Receiver<Inventory>>,
}

impl Scan {
    /// Begins to look; `wake` is called when something was found.
    pub fn begin(&mut self, host: Option<String>, wake: impl FnOnce() + Send + 'static) {
        let (sender, receiver) = channel();
        let look = move || {
            let hosts = catalogue::hosts();
            let (ports, mut troubles) = midi::ports();
            let devices = catalogue::devices(host.as_deref()).unwrap_or_else(|trouble| {
                troubles.insert(0, trouble);
                Vec::new()
            });
            // Nobody waits for it where the window is closed, or another look has begun.
            drop(sender.send(Inventory { hosts, devices, ports, troubles, looking: false }));
            wake();
        };
        let started = std::thread::Builder::new().name("ondes-devices".into()).spawn(look);
        (self.coming, self.found.looking) = match started {
            Ok(_) => (Some(receiver), true),
            Err(error) => {
                self.found.troubles = vec![format!("no thread to look for devices: {error}")];
                (None, false)
            }
        };
    }

    pub fn poll(&mut self) {
        match self.coming.as_ref().map(Receiver::try_recv) {
            Some(Ok(found)) => (self.found, self.coming) = (found, None),
            Some(Err(TryRecvError::Disconnected)) => (self.found.looking, self.coming) = (false, None),
            Some(Err(TryRecvError::Empty)) | None => {}
        }
    }
}
