//! The sound systems that cpal knows: ALSA, CoreAudio, WASAPI.

use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use cpal::traits::{DeviceTrait, HostTrait, StreamTrait};
use cpal::{
    BufferSize, Data, ErrorKind, StreamConfig, SupportedBufferSize, SupportedStreamConfig, SupportedStreamConfigRange,
};
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::audio::{AudioChoice, Opened};
use super::bridge::{BridgeIn, BridgeOut, bridge, bridge_latency};
use super::catalogue::{self, Device, Side};
use super::samples;
use super::stage::{MAX_BLOCK, MAX_CHANNELS, Meter, Stage};
use super::supervisor::{Running, Stream};

/// Rates that are asked about where a device knows a whole range.
const COMMON_RATES: [u32; 8] = [22_050, 32_000, 44_100, 48_000, 88_200, 96_000, 176_400, 192_000];

/// How long a system may take over opening, and how long without a block before it looks whether the device is still there.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is offered when a system does not tell the length of its blocks, in frames.
const UNKNOWN_BLOCK: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Output,
    Input,
}

impl Direction {
    fn plural(self) -> &'static str {
        match self {
            Self::Output => "outputs",
            Self::Input => "inputs",
        }
    }

    fn supported_by(self, device: &cpal::Device) -> bool {
        match self {
            Self::Output => device.supports_output(),
            Self::Input => device.supports_input(),
        }
    }

    fn default_device(self, host: &cpal::Host) -> Option<cpal::Device> {
        match self {
            Self::Output => host.default_output_device(),
            Self::Input => host.default_input_device(),
        }
    }

    fn default_config(self, device: &cpal::Device) -> Result<SupportedStreamConfig, cpal::Error> {
        match self {
            Self::Output => device.default_output_config(),
            Self::Input => device.default_input_config(),
        }
    }

    fn configs(self, device: &cpal::Device) -> Result<Vec<SupportedStreamConfigRange>, cpal::Error> {
        let all: Vec<_> = match self {
            Self::Output => device.supported_output_configs()?.collect(),
            Self::Input => device.supported_input_configs()?.collect(),
        };
        Ok(all.into_iter().filter(|config| samples::is_known(config.sample_format())).collect())
    }
}

/// The devices of a host that can be opened or are busy.
pub(super) fn devices(host: cpal::HostId) -> Result<Vec<Device>, String> {
    let host = cpal::host_from_id(host).map_err(|error| one_line(&error))?;
    let default = |direction: Direction| direction.default_device(&host).and_then(|device| device.id().ok());
    let defaults = (default(Direction::Output), default(Direction::Input));
    let all = host.devices().map_err(|error| one_line(&error))?;
    let described = all.filter_map(|device| {
        let id = device.id().ok()?;
        // ALSA's device that swallows everything at once is no place for sound.
        if id.id() == "null" {
            return None;
        }
        let output = side(&device, Direction::Output, defaults.0.as_ref() == Some(&id));
        let input = side(&device, Direction::Input, defaults.1.as_ref() == Some(&id));
        let there = output.is_some() || input.is_some();
        there.then(|| Device { id: id.id().to_owned(), name: name(&device), output, input })
    });
    Ok(described.collect())
}

fn side(device: &cpal::Device, direction: Direction, default: bool) -> Option<Side> {
    if !direction.supported_by(device) {
        return None;
    }
    match direction.configs(device) {
        Ok(configs) if configs.is_empty() => None,
        Ok(configs) => {
            let channels = configs.iter().map(SupportedStreamConfigRange::channels).max().unwrap_or(0);
            Some(Side { channels, sample_rates: rates(&configs), default })
        }
        Err(error) if error.kind() == ErrorKind::DeviceBusy => {
            Some(Side { channels: 0, sample_rates: Vec::new(), default })
        }
        Err(_) => None,
    }
}

fn rates(configs: &[SupportedStreamConfigRange]) -> Vec<u32> {
    let mut rates: Vec<u32> =
        COMMON_RATES.into_iter().filter(|&rate| configs.iter().any(|c| c.contains_rate(rate))).collect();
    if rates.is_empty() {
        rates = configs.iter().map(SupportedStreamConfigRange::max_sample_rate).collect();
        rates.sort_unstable();
        rates.dedup();
    }
    rates
}

/// Opens what is chosen. Silence is played until a callback is seated.
pub(super) fn open(host: cpal::HostId, choice: &AudioChoice, meter: &Arc<Meter>) -> Result<Running, String> {
    let host = cpal::host_from_id(host).map_err(|error| one_line(&error))?;
    let output = Chosen::find(&host, Direction::Output, choice, choice.sample_rate)?;
    let sample_rate = output.config.sample_rate;
    let input =
        choice.wants_input().then(|| Chosen::find(&host, Direction::Input, choice, Some(sample_rate))).transpose()?;

    let (faults, output_faults) = HeapRb::new(1).split();
    let mut stream = SystemStream { streams: ArrayVec::new(), faults: ArrayVec::new() };
    stream.faults.push(output_faults);

    // The input comes first: its end of the bridge must be there when the output begins to take.
    let (mut bridge_in_to, bridge_in_seat) = HeapRb::<BridgeIn>::new(1).split();
    let mut input_block = 0;
    if let Some(input) = &input {
        let (faults, input_faults) = HeapRb::new(1).split();
        stream.faults.push(input_faults);
        let opened = input.record(bridge_in_seat, meter, Faults { ring: faults, meter: meter.clone() })?;
        input_block = block_of(&opened);
        stream.streams.push(opened);
    }

    let (mut player_to, player_seat) = HeapRb::<Player>::new(1).split();
    let played = output.play(player_seat, meter, Faults { ring: faults, meter: meter.clone() })?;
    let output_block = block_of(&played);
    stream.streams.push(played);

    let max_block = output_block.min(MAX_BLOCK);
    let outputs = usize::from(output.config.channels);
    let inputs = input.as_ref().map_or(0, |input| usize::from(input.config.channels));
    let (stage, backstage) = Stage::new(max_block, meter.clone());
    let ends = input.is_some().then(|| bridge(inputs, input_block, output_block, meter));
    let (bridge_in, bridge_out) = ends.unzip();
    let room = |channels: usize| vec![vec![0.0; max_block]; channels];
    let player = Player { stage, bridge: bridge_out, input: room(inputs), output: room(outputs), max_block };
    // There is room for one of each.
    let seated = player_to.try_push(player).is_ok() && bridge_in.is_none_or(|end| bridge_in_to.try_push(end).is_ok());
    debug_assert!(seated);
    for started in &stream.streams {
        started.play().map_err(|error| output.complaint(&error))?;
    }
    let opened = Opened {
        host: host.id().name().into(),
        output: output.name,
        input: input.map(|input| input.name),
        sample_rate,
        max_block,
        inputs,
        outputs,
        output_latency_frames: 0,
        input_latency_frames: 0,
        bridge_frames: if inputs > 0 { bridge_latency(input_block, output_block) } else { 0 },
    };
    Ok(Running { opened, stream: Box::new(stream), backstage })
}

/// A device with the configuration that is wanted of it.
struct Chosen {
    device: cpal::Device,
    name: String,
    config: StreamConfig,
    format: cpal::SampleFormat,
}

impl Chosen {
    fn find(host: &cpal::Host, direction: Direction, choice: &AudioChoice, rate: Option<u32>) -> Result<Self, String> {
        let (wanted, channels) = match direction {
            Direction::Output => (&choice.output, choice.output_channels),
            Direction::Input => (&choice.input, choice.input_channels),
        };
        let what = format!("{} of {}", direction.plural(), host.id().name());
        let device = match wanted {
            None => direction.default_device(host).ok_or_else(|| format!("there are no {what}"))?,
            Some(wanted) => {
                let devices = host.devices().map_err(|error| one_line(&error))?;
                let mut devices: Vec<_> = devices.filter(|device| direction.supported_by(device)).collect();
                let names: Vec<_> = devices.iter().map(|device| (id(device), name(device))).collect();
                devices.swap_remove(catalogue::find(&names, wanted, &what)?)
            }
        };
        let name = name(&device);
        let offered = direction.configs(&device).map_err(|error| format!("{name}: {}", one_line(&error)))?;
        let usual = direction.default_config(&device).map_err(|error| format!("{name}: {}", one_line(&error)))?;
        let channels = channels.unwrap_or_else(|| usual.channels());
        if channels == 0 || usize::from(channels) > MAX_CHANNELS {
            return Err(format!("{name}: {channels} channels; 1 to {MAX_CHANNELS} can be had"));
        }
        let sample_rate = rate.unwrap_or_else(|| usual.sample_rate());
        let fitting =
            offered.iter().filter(|config| config.channels() == channels && config.contains_rate(sample_rate));
        let Some(best) = fitting.max_by(|a, b| a.cmp_default_heuristics(b)) else {
            let most = offered.iter().map(SupportedStreamConfigRange::channels).max().unwrap_or(0);
            let rates: Vec<String> = rates(&offered).iter().map(u32::to_string).collect();
            return Err(format!(
                "{name}: no {channels} channels at {sample_rate} Hz; it has up to {most} channels and {} Hz",
                rates.join(", ")
            ));
        };
        let buffer_size = match (choice.block, best.buffer_size()) {
            (None, _) => BufferSize::Default,
            (Some(block), SupportedBufferSize::Range { min, max }) => BufferSize::Fixed(block.max(*min).min(*max)),
            (Some(block), SupportedBufferSize::Unknown) => BufferSize::Fixed(block.max(1)),
        };
        let config = StreamConfig { channels, sample_rate, buffer_size };
        Ok(Self { device, name, config, format: best.sample_format() })
    }

    fn record(
        &self,
        mut seat: HeapCons<BridgeIn>,
        meter: &Arc<Meter>,
        mut faults: Faults,
    ) -> Result<cpal::Stream, String> {
        let mut bridge = None;
        let (meter, rate, channels) = (meter.clone(), self.config.sample_rate, usize::from(self.config.channels));
        let take = move |data: &Data, info: &cpal::InputCallbackInfo| {
            // The system tells how old the first frame is; the bridge counts from the last.
            let time = info.timestamp();
            let age = frames(time.callback.saturating_duration_since(time.capture), rate);
            meter.set_input_latency(age.saturating_sub(data.len() / channels));
            if bridge.is_none() {
                bridge = seat.try_pop();
            }
            if let Some(bridge) = &mut bridge {
                samples::read(data, |samples| bridge.push(samples));
            }
        };
        let complain = move |error| faults.note(error);
        let opened = self.device.build_input_stream_raw(self.config, self.format, take, complain, Some(PATIENCE));
        opened.map_err(|error| self.complaint(&error))
    }

    fn play(&self, mut seat: HeapCons<Player>, meter: &Arc<Meter>, mut faults: Faults) -> Result<cpal::Stream, String> {
        let mut player = None;
        let (meter, rate) = (meter.clone(), self.config.sample_rate);
        let give = move |data: &mut Data, info: &cpal::OutputCallbackInfo| {
            let time = info.timestamp();
            meter.set_output_latency(frames(time.playback.saturating_duration_since(time.callback), rate));
            if player.is_none() {
                player = seat.try_pop();
            }
            // Without a player the buffer is left as it came, silent.
            if let Some(player) = &mut player {
                player.play(data);
            }
        };
        let complain = move |error| faults.note(error);
        let opened = self.device.build_output_stream_raw(self.config, self.format, give, complain, Some(PATIENCE));
        opened.map_err(|error| self.complaint(&error))
    }

    fn complaint(&self, error: &cpal::Error) -> String {
        format!("{}: {}", self.name, one_line(error))
    }
}

/// What the output's callback does with a device's buffer.
struct Player {
    stage: Stage,
    bridge: Option<BridgeOut>,
    /// `[channel][frame]`, as are the output's.
    input: Vec<Vec<f32>>,
    output: Vec<Vec<f32>>,
    max_block: usize,
}

impl Player {
    fn play(&mut self, data: &mut Data) {
        let frames = data.len() / self.output.len();
        let mut bridge = self.bridge.as_mut();
        let recorded = bridge.as_mut().is_some_and(|bridge| bridge.prepare(frames));
        for start in (0..frames).step_by(self.max_block) {
            let block = start..frames.min(start + self.max_block);
            match &mut bridge {
                Some(bridge) if recorded => bridge.pop(&mut self.input, block.len()),
                _ => self.input.iter_mut().for_each(|channel| channel[..block.len()].fill(0.0)),
            }
            let input: ArrayVec<&[f32], MAX_CHANNELS> = self.input.iter().map(|all| &all[..block.len()]).collect();
            let mut output: ArrayVec<&mut [f32], MAX_CHANNELS> =
                self.output.iter_mut().map(|all| &mut all[..block.len()]).collect();
            self.stage.play(&input, &mut output);
            drop(output);
            samples::write(data, block, &self.output);
        }
    }
}

/// The streams of one opening.
struct SystemStream {
    streams: ArrayVec<cpal::Stream, 2>,
    faults: ArrayVec<HeapCons<cpal::Error>, 2>,
}

impl Stream for SystemStream {
    fn fault(&mut self) -> Option<String> {
        self.faults.iter_mut().find_map(Consumer::try_pop).map(|error| one_line(&error))
    }
}

/// Where a stream's errors go; it may call from its audio thread.
struct Faults {
    ring: HeapProd<cpal::Error>,
    meter: Arc<Meter>,
}

impl Faults {
    fn note(&mut self, error: cpal::Error) {
        match error.kind() {
            ErrorKind::Xrun => self.meter.count_xrun(),
            // The stream goes on.
            ErrorKind::DeviceChanged | ErrorKind::RealtimeDenied => {}
            // The first one is the reason that is told; those that follow it say nothing new.
            _ => drop(self.ring.try_push(error)),
        }
    }
}

fn block_of(stream: &cpal::Stream) -> usize {
    stream.buffer_size().map_or(UNKNOWN_BLOCK, |frames| frames as usize).max(1)
}

fn frames(time: Duration, sample_rate: u32) -> usize {
    (time.as_secs_f64() * f64::from(sample_rate)).round() as usize
}

fn id(device: &cpal::Device) -> String {
    device.id().map_or_else(|_| String::new(), |id| id.id().to_owned())
}

fn name(device: &cpal::Device) -> String {
    device.description().map_or_else(|_| id(device), |description| description.name().to_owned())
}

fn one_line(error: &cpal::Error) -> String {
    let text = error.to_string().replace('\n', " ");
    text.trim_end_matches('.').to_owned()
}
