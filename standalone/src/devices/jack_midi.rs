//! JACK client for MIDI, with one input port that others can connect to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jack::{AsyncClient, Client, Control, MidiIn, Port, PortFlags, ProcessHandler, ProcessScope};

use super::jack::{ServerNotifications, ServerState, client};
use crate::io::midi_queues::{PortQueues, PortSender};
use crate::io::{MidiChoice, MidiPorts};

/// Name of the client.
const CLIENT: &str = "Ondes-MIDI";

/// Name of its input port.
const PORT: &str = "in";

/// JACK's type of MIDI ports.
const MIDI: &str = "8 bit raw midi";

/// The client, while a server is running.
#[derive(Default)]
pub(super) struct JackMidiInput(Option<MidiClient>);

struct MidiClient {
    client: AsyncClient<ServerNotifications, MidiProcess>,
    state: Arc<ServerState>,
    /// Full name of the input port.
    name: String,
    /// Ports that were handled: each is connected when it appears, then left to the user.
    handled: BTreeSet<String>,
}

impl JackMidiInput {
    /// Returns whether the server is gone; drop the client then.
    pub fn is_gone(&self) -> bool {
        self.0.as_ref().is_some_and(|client| client.state.failure().is_some())
    }

    /// Connects new ports and returns the names of all connected ones. With `mirrored` the system's MIDI is connected
    /// directly, and "all ports" excludes JACK's mirrors of hardware ports.
    pub fn update_connections(
        &mut self,
        choice: &MidiChoice,
        queues: &Arc<PortQueues>,
        mirrored: bool,
    ) -> Result<Vec<String>, String> {
        let client = match &mut self.0 {
            Some(client) => client,
            none => none.insert(MidiClient::open(choice, queues)?),
        };
        Ok(client.update_connections(choice, mirrored))
    }
}

impl MidiClient {
    fn open(choice: &MidiChoice, queues: &Arc<PortQueues>) -> Result<Self, String> {
        let client = client(CLIENT)?;
        let failed = |error: jack::Error| format!("JACK: {error}");
        let port = client.register_port(PORT, MidiIn::default()).map_err(failed)?;
        let name = port.name().map_err(failed)?;
        let sender = queues.sender(choice.channels).ok_or("JACK: too many MIDI ports are connected")?;
        let state = Arc::new(ServerState::at(client.sample_rate()));
        let process = MidiProcess { port, sender, sample_rate: f64::from(client.sample_rate()) };
        let client = client
            .activate_async(ServerNotifications { state: state.clone(), stats: None }, process)
            .map_err(failed)?;
        Ok(Self { client, state, name, handled: BTreeSet::new() })
    }

    fn update_connections(&mut self, choice: &MidiChoice, mirrored: bool) -> Vec<String> {
        let client = self.client.as_client();
        let available: BTreeSet<String> = client.ports(None, Some(MIDI), PortFlags::IS_OUTPUT).into_iter().collect();
        let own = client.port_by_name(&self.name);
        let is_connected = |port: &str| own.as_ref().is_some_and(|own| own.is_connected_to(port).unwrap_or(false));
        self.handled.retain(|port| available.contains(port));
        for port in available {
            if self.handled.contains(&port) {
                continue;
            }
            let hardware = client.port_by_name(&port).is_some_and(|port| port.flags().contains(PortFlags::IS_PHYSICAL));
            let twice = choice.ports == MidiPorts::All && mirrored && hardware;
            let wanted = choice.ports.includes(&port) && !twice;
            // A port whose client is not ready refuses; it is tried again next time.
            if !wanted || is_connected(&port) || client.connect_ports_by_name(&port, &self.name).is_ok() {
                self.handled.insert(port);
            }
        }
        own.map(|own| own.get_connections()).unwrap_or_default()
    }
}

/// Returns the names of all ports.
pub(super) fn ports() -> Result<Vec<String>, String> {
    Ok(client(CLIENT)?.ports(None, Some(MIDI), PortFlags::IS_OUTPUT))
}

struct MidiProcess {
    port: Port<MidiIn>,
    sender: PortSender,
    sample_rate: f64,
}

impl ProcessHandler for MidiProcess {
    fn process(&mut self, client: &Client, scope: &ProcessScope) -> Control {
        // Start of this cycle by JACK's smooth clock rather than by the time of this call.
        let since = scope.cycle_times().map_or(0, |times| client.time().saturating_sub(times.current_usecs));
        let now = Instant::now();
        let start = now.checked_sub(Duration::from_micros(since)).unwrap_or(now);
        for message in self.port.iter(scope) {
            let offset = Duration::from_secs_f64(f64::from(message.time) / self.sample_rate);
            self.sender.send(start + offset, message.bytes);
        }
        Control::Continue
    }
}
