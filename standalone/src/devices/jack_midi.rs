//! JACK's MIDI, as a client of our own with one input that others can also be connected to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jack::{AsyncClient, Client, Control, MidiIn, Port, PortFlags, ProcessHandler, ProcessScope};

use super::jack::{Notes, State, client};
use super::midi::{Line, MidiChoice, MidiPorts, Pool};

/// What the client is called in JACK's graph.
const CLIENT: &str = "Ondes-MIDI";

/// Its input.
const PORT: &str = "in";

/// The type of ports that carry MIDI, as JACK names it.
const MIDI: &str = "8 bit raw midi";

/// Our client, while there is a server.
#[derive(Default)]
pub(super) struct JackMidi(Option<Listening>);

struct Listening {
    client: AsyncClient<Notes, Process>,
    state: Arc<State>,
    /// Our port's full name.
    name: String,
    /// Ports that are there and were dealt with: each is connected when it appears and then left to the user.
    known: BTreeSet<String>,
}

impl JackMidi {
    /// Whether the server has gone, so that this is to be dropped.
    pub fn is_gone(&self) -> bool {
        self.0.as_ref().is_some_and(|listening| listening.state.fault().is_some())
    }

    /// Connects what came; returns the names of all that are heard. With `mirrored` set, the system's own MIDI is heard
    /// elsewhere, and "all" does not mean the hardware ports by which JACK offers the same.
    pub fn look(&mut self, choice: &MidiChoice, pool: &Arc<Pool>, mirrored: bool) -> Result<Vec<String>, String> {
        let listening = match &mut self.0 {
            Some(listening) => listening,
            none => none.insert(Listening::open(choice, pool)?),
        };
        Ok(listening.look(choice, mirrored))
    }
}

impl Listening {
    fn open(choice: &MidiChoice, pool: &Arc<Pool>) -> Result<Self, String> {
        let client = client(CLIENT)?;
        let failed = |error: jack::Error| format!("JACK: {error}");
        let port = client.register_port(PORT, MidiIn::default()).map_err(failed)?;
        let name = port.name().map_err(failed)?;
        let line = pool.line(choice.channels).ok_or("JACK: too many MIDI ports are heard already")?;
        let state = Arc::new(State::at(client.sample_rate()));
        let process = Process { port, line, sample_rate: f64::from(client.sample_rate()) };
        let client = client.activate_async(Notes { state: state.clone(), meter: None }, process).map_err(failed)?;
        Ok(Self { client, state, name, known: BTreeSet::new() })
    }

    fn look(&mut self, choice: &MidiChoice, mirrored: bool) -> Vec<String> {
        let client = self.client.as_client();
        let there: BTreeSet<String> = client.ports(None, Some(MIDI), PortFlags::IS_OUTPUT).into_iter().collect();
        let own = client.port_by_name(&self.name);
        let is_connected = |port: &str| own.as_ref().is_some_and(|own| own.is_connected_to(port).unwrap_or(false));
        self.known.retain(|port| there.contains(port));
        for port in there {
            if self.known.contains(&port) {
                continue;
            }
            let hardware = client.port_by_name(&port).is_some_and(|port| port.flags().contains(PortFlags::IS_PHYSICAL));
            let twice = choice.ports == MidiPorts::All && mirrored && hardware;
            let wanted = choice.ports.want(&port) && !twice;
            // A port whose client is not ready yet refuses; it is asked again the next time.
            if !wanted || is_connected(&port) || client.connect_ports_by_name(&port, &self.name).is_ok() {
                self.known.insert(port);
            }
        }
        own.map(|own| own.get_connections()).unwrap_or_default()
    }
}

/// The names of the ports that there are.
pub(super) fn ports() -> Result<Vec<String>, String> {
    Ok(client(CLIENT)?.ports(None, Some(MIDI), PortFlags::IS_OUTPUT))
}

struct Process {
    port: Port<MidiIn>,
    line: Line,
    sample_rate: f64,
}

impl ProcessHandler for Process {
    fn process(&mut self, client: &Client, scope: &ProcessScope) -> Control {
        // When this cycle began, by JACK's own smooth clock rather than by when we were called.
        let since = scope.cycle_times().map_or(0, |times| client.time().saturating_sub(times.current_usecs));
        let now = Instant::now();
        let start = now.checked_sub(Duration::from_micros(since)).unwrap_or(now);
        for message in self.port.iter(scope) {
            let offset = Duration::from_secs_f64(f64::from(message.time) / self.sample_rate);
            self.line.send(start + offset, message.bytes);
        }
        Control::Continue
    }
}
