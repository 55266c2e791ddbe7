//! Scan for devices and ports, on a thread of its own since some systems are slow.

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use ondes_engine::panics::contain;

use crate::devices::catalogue;
use crate::devices::device_info::{AudioDevice, AudioHost};
use crate::devices::midi::{self, MidiPort};

/// Devices and ports to choose from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AvailableDevices {
    /// Sound systems.
    pub hosts: Vec<AudioHost>,
    /// Devices of the chosen sound system.
    pub devices: Vec<AudioDevice>,
    /// MIDI ports.
    pub ports: Vec<MidiPort>,
    /// Errors of the scan, one line each.
    pub errors: Vec<String>,
    /// A scan is running.
    pub scanning: bool,
}

/// Runs scans and holds the last result.
#[derive(Default)]
pub(super) struct DeviceScan {
    pub found: AvailableDevices,
    coming: Option<Receiver<AvailableDevices>>,
}

impl DeviceScan {
    /// Starts a scan; `wake` is called at its end.
    pub fn begin(&mut self, host: Option<String>, wake: impl FnOnce() + Send + 'static) {
        let (sender, receiver) = channel();
        let look = move || {
            let found =
                contain(|| look(host.as_deref())).unwrap_or_else(|panic| AvailableDevices {
                    errors: vec![format!("the device scan failed: {panic}")],
                    ..AvailableDevices::default()
                });
            // The receiver is gone if the window was closed or another scan was started.
            drop(sender.send(found));
            wake();
        };
        let started = std::thread::Builder::new()
            .name("ondes-devices".into())
            .spawn(look);
        (self.coming, self.found.scanning) = match started {
            Ok(_) => (Some(receiver), true),
            Err(error) => {
                self.found.errors = vec![format!("the device scan cannot be started: {error}")];
                (None, false)
            }
        };
    }

    /// Takes over the result of the scan when there is one.
    pub fn poll(&mut self) {
        match self.coming.as_ref().map(Receiver::try_recv) {
            Some(Ok(found)) => (self.found, self.coming) = (found, None),
            Some(Err(TryRecvError::Disconnected)) => {
                (self.found.scanning, self.coming) = (false, None)
            }
            Some(Err(TryRecvError::Empty)) | None => {}
        }
    }
}

/// Lists the devices of a sound system, and all ports.
fn look(host: Option<&str>) -> AvailableDevices {
    let hosts = catalogue::hosts();
    let (ports, mut errors) = midi::ports();
    let devices = catalogue::devices(host).unwrap_or_else(|error| {
        errors.insert(0, error);
        Vec::new()
    });
    AvailableDevices {
        hosts,
        devices,
        ports,
        errors,
        scanning: false,
    }
}
