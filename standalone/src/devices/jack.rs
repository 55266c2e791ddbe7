//! JACK, as a client of our own: input and output run in one cycle, so nothing has to be bridged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrayvec::ArrayVec;
use jack::{
    AudioIn, AudioOut, Client, ClientOptions, ClientStatus, Control, Frames, LatencyType, NotificationHandler, Port,
    PortFlags, ProcessHandler, ProcessScope,
};

use super::audio::{AudioChoice, Opened};
use super::catalogue::{self, Device, Side};
use super::stage::{MAX_BLOCK, MAX_CHANNELS, Meter, Stage};
use super::supervisor::{Running, Stream};

/// The name of this host.
pub(super) const HOST: &str = "JACK";

/// What our clients are called in JACK's graph; the server adds a number when there are several.
pub(super) const CLIENT: &str = "Ondes";

/// The name of a client that only looks.
const LOOKER: &str = "Ondes looks";

/// The type of ports that carry sound, as JACK names it.
const AUDIO: &str = "32 bit float mono audio";

/// Channels when none are asked for.
const CHANNELS: u16 = 2;

/// How often a server is asked that refuses us. It may be busy; and a client of the same name on another server of this
/// machine is in the way for a moment, as their sockets have the same name.
const ATTEMPTS: usize = 4;

/// How long to wait before the next attempt.
const PAUSE: Duration = Duration::from_millis(30);

/// What is said where there is no server.
const NO_SERVER: &str = "no JACK server is running";
/// What is said where JACK is not installed.
const NO_LIBRARY: &str = "JACK's library is not installed";

/// A client of the server that runs; none is started.
pub(super) fn client(name: &str) -> Result<Client, String> {
    // Who looks for devices while the sound begins would be in the way of that, and the server would seem not to be there.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for attempt in 1..=ATTEMPTS {
        match Client::new(name, ClientOptions::NO_START_SERVER) {
            Ok((client, _)) => return Ok(client),
            Err(jack::Error::LibraryError(_)) => return Err(NO_LIBRARY.into()),
            Err(jack::Error::ClientError(status)) if status.contains(ClientStatus::SERVER_FAILED) => break,
            Err(_) if attempt == ATTEMPTS => return Err("the JACK server refuses us".into()),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    Err(NO_SERVER.into())
}

/// Whether there is a server; one that refuses us for the moment has the sound card all the same.
pub(super) fn is_running() -> bool {
    match client(LOOKER) {
        Ok(_) => true,
        Err(reason) => reason != NO_SERVER && reason != NO_LIBRARY,
    }
}

/// What JACK has as devices: the clients that stand for hardware.
pub(super) fn devices() -> Result<Vec<Device>, String> {
    let client = client(LOOKER)?;
    let side = |ports: &BTreeMap<String, Vec<String>>, name: &String, default: &Option<String>| {
        let ports = ports.get(name)?;
        let channels = ports.len().try_into().unwrap_or(u16::MAX);
        Some(Side { channels, sample_rates: vec![client.sample_rate()], default: default.as_ref() == Some(name) })
    };
    // What plays has ports that take sound.
    let (outputs, inputs) = (hardware(&client, PortFlags::IS_INPUT), hardware(&client, PortFlags::IS_OUTPUT));
    let defaults = (default_of(&outputs), default_of(&inputs));
    let mut names: Vec<&String> = outputs.keys().chain(inputs.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let describe = |name: &String| Device {
        id: name.clone(),
        name: name.clone(),
        output: side(&outputs, name, &defaults.0),
        input: side(&inputs, name, &defaults.1),
    };
    Ok(names.into_iter().map(describe).collect())
}

/// The ports of each client that stands for hardware, in order.
fn hardware(client: &Client, direction: PortFlags) -> BTreeMap<String, Vec<String>> {
    let mut clients = BTreeMap::<String, Vec<String>>::new();
    for port in client.ports(None, Some(AUDIO), PortFlags::IS_PHYSICAL | direction) {
        // Clients may have colons in their names, ports may not.
        if let Some((owner, _)) = port.rsplit_once(':') {
            clients.entry(owner.to_owned()).or_default().push(port);
        }
    }
    clients
}

/// "system" is the sound card that the server itself runs on.
fn default_of(clients: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let system = clients.keys().find(|name| *name == "system");
    system.or_else(|| clients.keys().next()).cloned()
}

/// Opens what is chosen. Silence is played until a callback is seated. A server without hardware is played to as well; what
/// is played there is connected by others.
pub(super) fn open(choice: &AudioChoice, meter: &Arc<Meter>) -> Result<Running, String> {
    let client = client(CLIENT)?;
    let sample_rate = client.sample_rate();
    if let Some(wanted) = choice.sample_rate.filter(|&wanted| wanted != sample_rate) {
        return Err(format!("the JACK server runs at {sample_rate} Hz, not at {wanted} Hz"));
    }
    let (output, playback) = pick(&client, PortFlags::IS_INPUT, choice.output.as_deref(), "outputs of JACK")?;
    let wants_input = choice.wants_input();
    let (input, capture) = match wants_input {
        true => pick(&client, PortFlags::IS_OUTPUT, choice.input.as_deref(), "inputs of JACK")?,
        false => (None, Vec::new()),
    };
    let outputs = channels(choice.output_channels)?;
    let inputs = if wants_input { channels(choice.input_channels)? } else { 0 };
    let failed = |error: jack::Error| format!("JACK: {error}");
    let max_block = (client.buffer_size() as usize).min(MAX_BLOCK);
    let (stage, backstage) = Stage::new(max_block, meter.clone());
    let process = Process {
        inputs: (1..=inputs)
            .map(|number| client.register_port(&format!("in_{number}"), AudioIn::default()))
            .collect::<Result<_, _>>()
            .map_err(failed)?,
        outputs: (1..=outputs)
            .map(|number| client.register_port(&format!("out_{number}"), AudioOut::default()))
            .collect::<Result<_, _>>()
            .map_err(failed)?,
        stage,
        meter: meter.clone(),
    };
    let ours_out: Vec<String> = process.outputs.iter().filter_map(|port| port.name().ok()).collect();
    let ours_in: Vec<String> = process.inputs.iter().filter_map(|port| port.name().ok()).collect();
    let state = Arc::new(State::at(sample_rate));
    let notes = Notes { state: state.clone(), meter: Some(meter.clone()) };
    let client = client.activate_async(notes, process).map_err(failed)?;
    let connections = ours_out.iter().zip(&playback).chain(capture.iter().zip(&ours_in));
    for (from, to) in connections {
        client.as_client().connect_ports_by_name(from, to).map_err(failed)?;
    }
    let opened = Opened {
        host: HOST.into(),
        output: output.unwrap_or_else(|| HOST.into()),
        input: if wants_input { Some(input.unwrap_or_else(|| HOST.into())) } else { None },
        sample_rate,
        max_block,
        inputs,
        outputs,
        output_latency_frames: 0,
        input_latency_frames: 0,
        bridge_frames: 0,
    };
    Ok(Running { opened, stream: Box::new(JackStream { _client: client, state }), backstage })
}

/// The device that is asked for, and its ports.
fn pick(
    client: &Client,
    direction: PortFlags,
    wanted: Option<&str>,
    what: &str,
) -> Result<(Option<String>, Vec<String>), String> {
    let mut clients = hardware(client, direction);
    let name = match wanted {
        None => default_of(&clients),
        Some(wanted) => {
            let names: Vec<_> = clients.keys().map(|name| (name.clone(), name.clone())).collect();
            Some(names[catalogue::find(&names, wanted, what)?].0.clone())
        }
    };
    let ports = name.as_ref().and_then(|name| clients.remove(name)).unwrap_or_default();
    Ok((name, ports))
}

fn channels(wanted: Option<u16>) -> Result<usize, String> {
    match usize::from(wanted.unwrap_or(CHANNELS)) {
        channels @ 1..=MAX_CHANNELS => Ok(channels),
        channels => Err(format!("JACK: {channels} channels; 1 to {MAX_CHANNELS} can be had")),
    }
}

/// What happens in a cycle.
struct Process {
    inputs: Vec<Port<AudioIn>>,
    outputs: Vec<Port<AudioOut>>,
    stage: Stage,
    meter: Arc<Meter>,
}

impl ProcessHandler for Process {
    fn process(&mut self, _: &Client, scope: &ProcessScope) -> Control {
        // JACK keeps these figures at hand; asking does not reach the server.
        let playback = self.outputs.iter().map(|port| port.get_latency_range(LatencyType::Playback).1).max();
        let capture = self.inputs.iter().map(|port| port.get_latency_range(LatencyType::Capture).1).max();
        self.meter.set_output_latency(playback.unwrap_or(0) as usize);
        self.meter.set_input_latency(capture.unwrap_or(0) as usize);
        let input: ArrayVec<&[f32], MAX_CHANNELS> = self.inputs.iter().map(|port| port.as_slice(scope)).collect();
        let mut output: ArrayVec<&mut [f32], MAX_CHANNELS> =
            self.outputs.iter_mut().map(|port| port.as_mut_slice(scope)).collect();
        self.stage.play(&input, &mut output);
        Control::Continue
    }
}

/// What the server tells besides.
pub(super) struct Notes {
    pub state: Arc<State>,
    /// Where sound that came too late is counted.
    pub meter: Option<Arc<Meter>>,
}

/// What has been told.
#[derive(Default)]
pub(super) struct State {
    gone: AtomicBool,
    changed_rate: AtomicBool,
    sample_rate: AtomicU32,
}

impl State {
    /// Nothing told yet by a server that runs at some rate, Hz.
    pub fn at(sample_rate: u32) -> Self {
        Self { sample_rate: AtomicU32::new(sample_rate), ..Self::default() }
    }

    /// Why the client is of no more use, if so.
    pub fn fault(&self) -> Option<String> {
        if self.gone.load(Relaxed) {
            return Some("the JACK server has stopped".into());
        }
        let rate = self.sample_rate.load(Relaxed);
        self.changed_rate.load(Relaxed).then(|| format!("the JACK server went over to {rate} Hz"))
    }
}

impl NotificationHandler for Notes {
    // The method is only unsafe to call: it may interrupt anything. A flag may be set at any time.
    #[allow(unsafe_code)]
    unsafe fn shutdown(&mut self, _: ClientStatus, _: &str) {
        self.state.gone.store(true, Relaxed);
    }

    fn sample_rate(&mut self, _: &Client, sample_rate: Frames) -> Control {
        // The server tells its rate to each new client, too.
        if self.state.sample_rate.swap(sample_rate, Relaxed) != sample_rate {
            self.state.changed_rate.store(true, Relaxed);
        }
        Control::Continue
    }

    fn xrun(&mut self, _: &Client) -> Control {
        if let Some(meter) = &self.meter {
            meter.count_xrun();
        }
        Control::Continue
    }
}

struct JackStream {
    _client: jack::AsyncClient<Notes, Process>,
    state: Arc<State>,
}

impl Stream for JackStream {
    fn fault(&mut self) -> Option<String> {
        self.state.fault()
    }
}
