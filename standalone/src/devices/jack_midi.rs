//! MIDI from JACK: an input port that others can connect to, in the client of the audio device, or
//! in a client of its own if that is not on JACK.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jack::{Client, MidiIn, Port, PortFlags, ProcessScope};

use super::jack_client::{ActiveClient, CLIENT, connect};
use crate::io::midi_queues::{PortQueues, PortSender};
use crate::io::{MidiChoice, MidiPorts};

/// Name of a client for MIDI only.
const MIDI_CLIENT: &str = "Ondes-MIDI";

/// Name of the input port.
const PORT: &str = "midi_in";

/// JACK's type of MIDI ports.
const MIDI: &str = "8 bit raw midi";

/// Input port at work in a process cycle.
pub(super) struct MidiInput {
    port: Port<MidiIn>,
    sender: PortSender,
    sample_rate: f64,
}

impl MidiInput {
    /// Registers the port with a client that is not active yet.
    pub fn register(client: &Client, queues: &Arc<PortQueues>) -> Result<Self, String> {
        let port = client
            .register_port(PORT, MidiIn::default())
            .map_err(|error| format!("JACK: {error}"))?;
        let sender = queues
            .sender()
            .ok_or("JACK: too many MIDI ports are connected")?;
        Ok(Self {
            port,
            sender,
            sample_rate: f64::from(client.sample_rate()),
        })
    }

    /// Returns the full name of the port.
    pub fn name(&self) -> Result<String, String> {
        self.port.name().map_err(|error| format!("JACK: {error}"))
    }

    /// Sends the messages of this cycle to the callback.
    pub fn receive(&mut self, client: &Client, scope: &ProcessScope) {
        // Start of this cycle by JACK's smooth clock rather than by the time of this call.
        let since = scope
            .cycle_times()
            .map_or(0, |times| client.time().saturating_sub(times.current_usecs));
        let now = Instant::now();
        let start = now.checked_sub(Duration::from_micros(since)).unwrap_or(now);
        for message in self.port.iter(scope) {
            let offset = Duration::from_secs_f64(f64::from(message.time) / self.sample_rate);
            self.sender.send(start + offset, message.bytes);
        }
    }
}

/// Active client with a MIDI port.
pub(super) struct MidiClient {
    client: Arc<ActiveClient>,
    /// Full name of the input port.
    port: String,
    /// Ports that were handled: each is connected when it appears, then left to the user.
    handled: BTreeSet<String>,
}

impl MidiClient {
    pub fn new(client: Arc<ActiveClient>, port: String) -> Self {
        Self {
            client,
            port,
            handled: BTreeSet::new(),
        }
    }

    pub fn open_separate(queues: &Arc<PortQueues>) -> Result<Self, String> {
        let client = connect(MIDI_CLIENT)?;
        let mut input = MidiInput::register(&client, queues)?;
        let port = input.name()?;
        let handler = move |client: &Client, scope: &ProcessScope| input.receive(client, scope);
        Ok(Self::new(
            Arc::new(ActiveClient::activate(client, Box::new(handler), None)?),
            port,
        ))
    }

    /// Returns whether the server is gone.
    pub fn is_gone(&self) -> bool {
        self.client.failure().is_some()
    }

    /// Connects new ports and returns the names of all connected ones.
    pub fn update_connections(&mut self, choice: &MidiChoice, mirrored: bool) -> Vec<String> {
        let client = self.client.client();
        let available: BTreeSet<String> = client
            .ports(None, Some(MIDI), PortFlags::IS_OUTPUT)
            .into_iter()
            .collect();
        let own = client.port_by_name(&self.port);
        let is_connected = |port: &str| {
            own.as_ref()
                .is_some_and(|own| own.is_connected_to(port).unwrap_or(false))
        };
        self.handled.retain(|port| available.contains(port));
        for port in available {
            if self.handled.contains(&port) {
                continue;
            }
            let hardware = client
                .port_by_name(&port)
                .is_some_and(|port| port.flags().contains(PortFlags::IS_PHYSICAL));
            let twice = choice.ports == MidiPorts::All && mirrored && hardware;
            let wanted = choice.ports.includes(&port) && !twice;
            // A port whose client is not ready refuses; it is tried again next time.
            if !wanted
                || is_connected(&port)
                || client.connect_ports_by_name(&port, &self.port).is_ok()
            {
                self.handled.insert(port);
            }
        }
        own.map(|own| own.get_connections()).unwrap_or_default()
    }

    /// Removes all connections; those that are wanted are made again.
    pub fn disconnect(&mut self) {
        let client = self.client.client();
        let connected = client
            .port_by_name(&self.port)
            .map(|port| port.get_connections())
            .unwrap_or_default();
        for port in connected {
            // The other port may have disappeared.
            drop(client.disconnect_ports_by_name(&port, &self.port));
        }
        self.handled.clear();
    }
}

/// Returns the names of all ports.
pub(super) fn ports() -> Result<Vec<String>, String> {
    Ok(connect(CLIENT)?.ports(None, Some(MIDI), PortFlags::IS_OUTPUT))
}
