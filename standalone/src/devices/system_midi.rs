//! MIDI of the system: ALSA's sequencer, CoreMIDI, Windows MIDI.

use std::time::Instant;

use midir::{Ignore, MidiInput, MidiInputConnection};

use super::timestamps::TimestampMapper;
use crate::io::MidiChoice;
use crate::io::midi_queues::{PortQueues, PortSender};

/// Name of the MIDI system.
pub(super) const SYSTEM: &str = if cfg!(target_os = "linux") {
    "ALSA"
} else if cfg!(target_os = "macos") {
    "CoreMIDI"
} else {
    "MIDI"
};

/// Name of the client and of its port.
const NAME: &str = "Ondes";

/// Connected ports of the system.
#[derive(Default)]
pub(super) struct SystemMidi {
    /// Client that lists ports.
    lister: Option<MidiInput>,
    /// Port that other programs can send to.
    _virtual_port: Option<Connection>,
    connected: Vec<ConnectedPort>,
}

type Connection = MidiInputConnection<(PortSender, TimestampMapper)>;

struct ConnectedPort {
    id: String,
    name: String,
    _connection: Connection,
}

impl SystemMidi {
    /// Connects new ports, drops lost ones and returns the names of all connected ones.
    pub fn update_connections(
        &mut self,
        choice: &MidiChoice,
        queues: &std::sync::Arc<PortQueues>,
    ) -> Result<Vec<String>, String> {
        if self.lister.is_none() {
            self.lister = Some(client()?);
            self._virtual_port = virtual_port(queues.sender());
        }
        let Some(lister) = &self.lister else {
            return Ok(Vec::new());
        };
        let there: Vec<_> = lister
            .ports()
            .into_iter()
            .map(|port| (port.id(), port))
            .collect();
        self.connected
            .retain(|connected| there.iter().any(|(id, _)| *id == connected.id));
        for (id, port) in there {
            // The port disappeared after it was listed.
            let Ok(name) = lister.port_name(&port) else {
                continue;
            };
            if !choice.ports.includes(&name)
                || self.connected.iter().any(|connected| connected.id == id)
            {
                continue;
            }
            let (Some(sender), Ok(client)) = (queues.sender(), client()) else {
                continue;
            };
            // A port that cannot be connected is tried again next time.
            if let Ok(connection) = client.connect(
                &port,
                NAME,
                on_message,
                (sender, TimestampMapper::default()),
            ) {
                self.connected.push(ConnectedPort {
                    id,
                    name,
                    _connection: connection,
                });
            }
        }
        Ok(self
            .connected
            .iter()
            .map(|connected| connected.name.clone())
            .collect())
    }
}

/// Returns the names of all ports.
pub(super) fn ports() -> Result<Vec<String>, String> {
    let client = client()?;
    Ok(client
        .ports()
        .iter()
        .filter_map(|port| client.port_name(port).ok())
        .collect())
}

fn on_message(stamp_us: u64, message: &[u8], (sender, stamps): &mut (PortSender, TimestampMapper)) {
    sender.send(stamps.time(stamp_us, Instant::now()), message);
}

fn client() -> Result<MidiInput, String> {
    #[cfg(target_os = "linux")]
    if !super::alsa_library::is_installed() {
        return Err(format!("MIDI is missing: {}", super::alsa_library::MISSING));
    }
    #[cfg(target_os = "linux")]
    if !std::path::Path::new("/dev/snd/seq").exists() {
        return Err("ALSA MIDI is missing: no /dev/snd/seq; load the kernel module snd-seq".into());
    }
    let mut client =
        MidiInput::new(NAME).map_err(|_| format!("{SYSTEM}: MIDI cannot be opened"))?;
    client.ignore(Ignore::ActiveSense);
    Ok(client)
}

#[cfg(unix)]
fn virtual_port(sender: Option<PortSender>) -> Option<Connection> {
    use midir::os::unix::VirtualInput;
    // If it cannot be created, other ports can still be connected.
    client()
        .ok()?
        .create_virtual(NAME, on_message, (sender?, TimestampMapper::default()))
        .ok()
}

#[cfg(not(unix))]
fn virtual_port(_: Option<PortSender>) -> Option<Connection> {
    None
}
