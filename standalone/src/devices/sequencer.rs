//! The system's own MIDI: ALSA's sequencer, CoreMIDI, Windows.

use std::time::Instant;

use midir::{Ignore, MidiInput, MidiInputConnection};

use super::midi::{Line, MidiChoice, Pool};
use super::timing::Stamps;

/// What this system is called.
pub(super) const SYSTEM: &str = if cfg!(target_os = "linux") {
    "ALSA"
} else if cfg!(target_os = "macos") {
    "CoreMIDI"
} else {
    "MIDI"
};

/// Our name among the system's MIDI clients, and that of our port.
const NAME: &str = "Ondes";

/// The ports that we hear.
#[derive(Default)]
pub(super) struct Sequencer {
    /// Finds ports.
    scout: Option<MidiInput>,
    /// Our own port, which others can send to.
    _own: Option<Connection>,
    heard: Vec<Heard>,
}

type Connection = MidiInputConnection<(Line, Stamps)>;

struct Heard {
    id: String,
    name: String,
    _connection: Connection,
}

impl Sequencer {
    /// Connects what came, lets go what went; returns the names of all that are heard.
    pub fn look(&mut self, choice: &MidiChoice, pool: &std::sync::Arc<Pool>) -> Result<Vec<String>, String> {
        if self.scout.is_none() {
            self.scout = Some(client()?);
            self._own = own_port(pool.line(choice.channels));
        }
        let Some(scout) = &self.scout else { return Ok(Vec::new()) };
        let there: Vec<_> = scout.ports().into_iter().map(|port| (port.id(), port)).collect();
        self.heard.retain(|heard| there.iter().any(|(id, _)| *id == heard.id));
        for (id, port) in there {
            // A port that went between two calls has no name.
            let Ok(name) = scout.port_name(&port) else { continue };
            if !choice.ports.want(&name) || self.heard.iter().any(|heard| heard.id == id) {
                continue;
            }
            let (Some(line), Ok(client)) = (pool.line(choice.channels), client()) else { continue };
            // One that cannot be had now may be had the next time.
            if let Ok(connection) = client.connect(&port, NAME, hear, (line, Stamps::default())) {
                self.heard.push(Heard { id, name, _connection: connection });
            }
        }
        Ok(self.heard.iter().map(|heard| heard.name.clone()).collect())
    }
}

/// The names of the ports that there are.
pub(super) fn ports() -> Result<Vec<String>, String> {
    let client = client()?;
    Ok(client.ports().iter().filter_map(|port| client.port_name(port).ok()).collect())
}

fn hear(stamp_us: u64, message: &[u8], (line, stamps): &mut (Line, Stamps)) {
    line.send(stamps.time(stamp_us, Instant::now()), message);
}

fn client() -> Result<MidiInput, String> {
    #[cfg(target_os = "linux")]
    if !std::path::Path::new("/dev/snd/seq").exists() {
        return Err("ALSA has no MIDI here: there is no /dev/snd/seq (the kernel's module snd-seq)".into());
    }
    let mut client = MidiInput::new(NAME).map_err(|_| format!("{SYSTEM}: MIDI cannot be opened"))?;
    client.ignore(Ignore::SysexAndActiveSense);
    Ok(client)
}

#[cfg(unix)]
fn own_port(line: Option<Line>) -> Option<Connection> {
    use midir::os::unix::VirtualInput;
    // Where that fails, what others offer can still be heard.
    client().ok()?.create_virtual(NAME, hear, (line?, Stamps::default())).ok()
}

#[cfg(not(unix))]
fn own_port(_: Option<Line>) -> Option<Connection> {
    None
}
