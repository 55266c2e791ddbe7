//! Sound through JACK: input and output run in one cycle and need no bridge. The client receives
//! MIDI as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrayvec::ArrayVec;
use jack::{AudioIn, AudioOut, Client, LatencyType, Port, PortFlags, ProcessScope};

use super::callback_slot::{CallbackSlot, MAX_BLOCK, MAX_CHANNELS, StreamStats};
use super::device_info::{self, AudioDevice, DirectionInfo};
use super::jack_client::{ActiveClient, CLIENT, NO_LIBRARY, NO_SERVER, connect};
use super::jack_midi::{MidiClient, MidiInput};
use super::midi_link::{JackMidi, MidiLink};
use super::opened_stream::{DeviceStream, OpenedStream};
use super::status::Opened;
use crate::io::AudioChoice;

/// Name of this sound system.
pub(super) const HOST: &str = "JACK";

/// Name of a client for queries.
const QUERY_CLIENT: &str = "Ondes query";

/// JACK's type of audio ports.
const AUDIO: &str = "32 bit float mono audio";

/// Default number of channels.
const CHANNELS: u16 = 2;

/// Returns whether a server is running; one that refuses for the moment occupies the sound card all
/// the same.
pub(super) fn is_running() -> bool {
    match connect(QUERY_CLIENT) {
        Ok(_) => true,
        Err(reason) => reason != NO_SERVER && reason != NO_LIBRARY,
    }
}

/// Lists the clients that stand for hardware.
pub(super) fn devices() -> Result<Vec<AudioDevice>, String> {
    let client = connect(QUERY_CLIENT)?;
    let side = |ports: &BTreeMap<String, Vec<String>>, name: &String, default: &Option<String>| {
        let ports = ports.get(name)?;
        let channels = ports.len().try_into().unwrap_or(u16::MAX);
        Some(DirectionInfo {
            channels,
            sample_rates: vec![client.sample_rate()],
            default: default.as_ref() == Some(name),
        })
    };
    // Outputs of hardware are input ports of its client.
    let (outputs, inputs) = (
        hardware(&client, PortFlags::IS_INPUT),
        hardware(&client, PortFlags::IS_OUTPUT),
    );
    let defaults = (default_of(&outputs), default_of(&inputs));
    let mut names: Vec<&String> = outputs.keys().chain(inputs.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let describe = |name: &String| AudioDevice {
        id: name.clone(),
        name: name.clone(),
        output: side(&outputs, name, &defaults.0),
        input: side(&inputs, name, &defaults.1),
    };
    Ok(names.into_iter().map(describe).collect())
}

/// Returns the ports of each client that stands for hardware, in order.
fn hardware(client: &Client, direction: PortFlags) -> BTreeMap<String, Vec<String>> {
    let mut clients = BTreeMap::<String, Vec<String>>::new();
    for port in client.ports(None, Some(AUDIO), PortFlags::IS_PHYSICAL | direction) {
        // Client names may contain colons, port names may not.
        if let Some((owner, _)) = port.rsplit_once(':') {
            clients.entry(owner.to_owned()).or_default().push(port);
        }
    }
    clients
}

/// Prefers "system", the sound card that the server itself runs on.
fn default_of(clients: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let system = clients.keys().find(|name| *name == "system");
    system.or_else(|| clients.keys().next()).cloned()
}

/// Opens the chosen devices; plays silence until a callback is installed. Also works on a server
/// without hardware, whose ports are connected by others. With `midi` the client receives MIDI.
pub(super) fn open(
    choice: &AudioChoice,
    stats: &Arc<StreamStats>,
    midi: Option<&Arc<MidiLink>>,
) -> Result<OpenedStream, String> {
    let client = connect(CLIENT)?;
    let sample_rate = client.sample_rate();
    if let Some(wanted) = choice.sample_rate.filter(|&wanted| wanted != sample_rate) {
        return Err(format!(
            "the JACK server runs at {sample_rate} Hz, not at {wanted} Hz"
        ));
    }
    let (output, playback) = find_ports(
        &client,
        PortFlags::IS_INPUT,
        choice.output.as_deref(),
        "outputs of JACK",
    )?;
    let wants_input = choice.wants_input();
    let (input, capture) = match wants_input {
        true => find_ports(
            &client,
            PortFlags::IS_OUTPUT,
            choice.input.as_deref(),
            "inputs of JACK",
        )?,
        false => (None, Vec::new()),
    };
    let outputs = channels(choice.output_channels)?;
    let inputs = if wants_input {
        channels(choice.input_channels)?
    } else {
        0
    };
    let failed = |error: jack::Error| format!("JACK: {error}");
    let max_block = (client.buffer_size() as usize).min(MAX_BLOCK);
    let (slot, owner) = CallbackSlot::new(max_block, stats.clone());
    let mut audio = AudioPorts {
        inputs: (1..=inputs)
            .map(|number| client.register_port(&format!("in_{number}"), AudioIn::default()))
            .collect::<Result<_, _>>()
            .map_err(failed)?,
        outputs: (1..=outputs)
            .map(|number| client.register_port(&format!("out_{number}"), AudioOut::default()))
            .collect::<Result<_, _>>()
            .map_err(failed)?,
        slot,
        stats: stats.clone(),
    };
    let ours_out: Vec<String> = audio
        .outputs
        .iter()
        .filter_map(|port| port.name().ok())
        .collect();
    let ours_in: Vec<String> = audio
        .inputs
        .iter()
        .filter_map(|port| port.name().ok())
        .collect();
    let mut midi_input = midi
        .map(|link| MidiInput::register(&client, &link.queues))
        .transpose()?;
    let midi_port = midi_input.as_ref().map(MidiInput::name).transpose()?;
    let handler = move |client: &Client, scope: &ProcessScope| {
        if let Some(midi) = &mut midi_input {
            midi.receive(client, scope);
        }
        audio.process(scope);
    };
    let client = Arc::new(ActiveClient::activate(
        client,
        Box::new(handler),
        Some(stats.clone()),
    )?);
    let connections = ours_out
        .iter()
        .zip(&playback)
        .chain(capture.iter().zip(&ours_in));
    for (from, to) in connections {
        client
            .client()
            .connect_ports_by_name(from, to)
            .map_err(failed)?;
    }
    if let Some((link, port)) = midi.zip(midi_port) {
        link.set(JackMidi::Shared(MidiClient::new(client.clone(), port)));
    }
    let opened = Opened {
        host: HOST.into(),
        output: output.unwrap_or_else(|| HOST.into()),
        input: if wants_input {
            Some(input.unwrap_or_else(|| HOST.into()))
        } else {
            None
        },
        sample_rate,
        max_block,
        inputs,
        outputs,
        output_latency_frames: 0,
        input_latency_frames: 0,
        bridge_frames: 0,
    };
    Ok(OpenedStream {
        opened,
        stream: Box::new(JackStream {
            client,
            midi: midi.cloned(),
        }),
        owner,
    })
}

/// Returns the requested device and its ports.
fn find_ports(
    client: &Client,
    direction: PortFlags,
    wanted: Option<&str>,
    what: &str,
) -> Result<(Option<String>, Vec<String>), String> {
    let mut clients = hardware(client, direction);
    let name = match wanted {
        None => default_of(&clients),
        Some(wanted) => {
            let names: Vec<_> = clients
                .keys()
                .map(|name| (name.clone(), name.clone()))
                .collect();
            Some(names[device_info::find(&names, wanted, what)?].0.clone())
        }
    };
    let ports = name
        .as_ref()
        .and_then(|name| clients.remove(name))
        .unwrap_or_default();
    Ok((name, ports))
}

fn channels(wanted: Option<u16>) -> Result<usize, String> {
    match usize::from(wanted.unwrap_or(CHANNELS)) {
        channels @ 1..=MAX_CHANNELS => Ok(channels),
        channels => Err(format!(
            "JACK: {channels} channels; supported: 1 to {MAX_CHANNELS}"
        )),
    }
}

/// Audio ports and their callback.
struct AudioPorts {
    inputs: Vec<Port<AudioIn>>,
    outputs: Vec<Port<AudioOut>>,
    slot: CallbackSlot,
    stats: Arc<StreamStats>,
}

impl AudioPorts {
    fn process(&mut self, scope: &ProcessScope) {
        // The library caches these values; no request to the server.
        let playback = self
            .outputs
            .iter()
            .map(|port| port.get_latency_range(LatencyType::Playback).1)
            .max();
        let capture = self
            .inputs
            .iter()
            .map(|port| port.get_latency_range(LatencyType::Capture).1)
            .max();
        self.stats
            .set_output_latency(playback.unwrap_or(0) as usize);
        self.stats.set_input_latency(capture.unwrap_or(0) as usize);
        let input: ArrayVec<&[f32], MAX_CHANNELS> = self
            .inputs
            .iter()
            .map(|port| port.as_slice(scope))
            .collect();
        let mut output: ArrayVec<&mut [f32], MAX_CHANNELS> = self
            .outputs
            .iter_mut()
            .map(|port| port.as_mut_slice(scope))
            .collect();
        self.slot.play(&input, &mut output);
    }
}

struct JackStream {
    client: Arc<ActiveClient>,
    midi: Option<Arc<MidiLink>>,
}

impl DeviceStream for JackStream {
    fn failure(&mut self) -> Option<String> {
        self.client.failure()
    }
}

impl Drop for JackStream {
    fn drop(&mut self) {
        // Leaves the last reference here, so that the callback is back when the stream is gone.
        if let Some(midi) = &self.midi {
            midi.set(JackMidi::Opening);
        }
    }
}
