//! Other clients in JACK's graph.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use jack::contrib::ClosureProcessHandler;
use jack::{
    AsyncClient, AudioIn, AudioOut, Client, ClientOptions, Control, MidiOut, ProcessScope, RawMidi,
};

/// Recorded samples, each with the server's time in frames.
pub type Tape = Arc<Mutex<Vec<(f32, u32)>>>;

/// Messages to be sent.
pub type Queue = Arc<Mutex<VecDeque<Vec<u8>>>>;

type Process = Box<dyn FnMut(&Client, &ProcessScope) -> Control + Send>;

/// Client with a process callback.
pub struct Peer(AsyncClient<(), ClosureProcessHandler<(), Process>>);

fn client(name: &str) -> Client {
    Client::new(name, ClientOptions::NO_START_SERVER).unwrap().0
}

impl Peer {
    fn start(client: Client, process: Process) -> Self {
        Self(
            client
                .activate_async((), ClosureProcessHandler::new(process))
                .unwrap(),
        )
    }

    /// Records one port.
    pub fn recorder(port: &str) -> (Self, Tape) {
        let client = client("recorder");
        let input = client.register_port("in", AudioIn::default()).unwrap();
        let name = input.name().unwrap();
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let tape = recorded.clone();
        let record = move |_: &Client, scope: &ProcessScope| {
            let frames = input
                .as_slice(scope)
                .iter()
                .copied()
                .zip(scope.last_frame_time()..);
            tape.lock().unwrap().extend(frames);
            Control::Continue
        };
        let peer = Self::start(client, Box::new(record));
        peer.connect(port, &name);
        (peer, recorded)
    }

    /// Plays the server's time in frames, modulo 2^20, to a port.
    pub fn timekeeper(port: &str) -> Self {
        let client = client("timekeeper");
        let mut output = client.register_port("out", AudioOut::default()).unwrap();
        let name = output.name().unwrap();
        let play = move |_: &Client, scope: &ProcessScope| {
            for (sample, time) in output
                .as_mut_slice(scope)
                .iter_mut()
                .zip(scope.last_frame_time()..)
            {
                *sample = (time % (1 << 20)) as f32;
            }
            Control::Continue
        };
        let peer = Self::start(client, Box::new(play));
        peer.connect(&name, port);
        peer
    }

    /// Sends queued messages, up to three per cycle at frames 7, 8 and 200.
    pub fn keyboard(name: &str) -> (Self, Queue) {
        let client = client(name);
        let mut output = client.register_port("keys", MidiOut::default()).unwrap();
        let queue = Arc::new(Mutex::new(VecDeque::<Vec<u8>>::new()));
        let hands = queue.clone();
        let send = move |_: &Client, scope: &ProcessScope| {
            let mut writer = output.writer(scope);
            for time in [7, 8, 200] {
                let Some(message) = hands.lock().unwrap().pop_front() else {
                    break;
                };
                writer
                    .write(&RawMidi {
                        time,
                        bytes: &message,
                    })
                    .unwrap();
            }
            Control::Continue
        };
        (Self::start(client, Box::new(send)), queue)
    }

    /// Connects two ports, given by name or pattern.
    pub fn connect(&self, from: &str, to: &str) {
        let port = |pattern: &str| {
            self.port_with(pattern)
                .unwrap_or_else(|| panic!("no port is like {pattern}"))
        };
        self.0
            .as_client()
            .connect_ports_by_name(&port(from), &port(to))
            .unwrap();
    }

    /// Returns the first port whose name matches a pattern.
    pub fn port_with(&self, pattern: &str) -> Option<String> {
        self.0
            .as_client()
            .ports(Some(pattern), None, jack::PortFlags::empty())
            .into_iter()
            .next()
    }

    pub fn connections(&self, port: &str) -> Vec<String> {
        self.0
            .as_client()
            .port_by_name(port)
            .map(|port| port.get_connections())
            .unwrap_or_default()
    }
}
