//! Sound systems of cpal: ALSA, CoreAudio, WASAPI.

use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use cpal::traits::{DeviceTrait, HostTrait, StreamTrait};
use cpal::{
    BufferSize, Data, ErrorKind, StreamConfig, SupportedBufferSize, SupportedStreamConfig,
    SupportedStreamConfigRange,
};
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::bridge::{BridgeIn, BridgeOut, bridge, bridge_latency};
use super::callback_slot::{CallbackSlot, MAX_BLOCK, MAX_CHANNELS, StreamStats};
use super::device_info::{self, AudioDevice, DirectionInfo};
use super::opened_stream::{DeviceStream, OpenedStream};
use super::sample_format;
use super::status::Opened;
use crate::io::AudioChoice;

/// Rates that are listed if a device supports a range.
const COMMON_RATES: [u32; 8] = [
    22_050, 32_000, 44_100, 48_000, 88_200, 96_000, 176_400, 192_000,
];

/// Timeout for opening, and for checking a device without blocks.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// Assumed block length in frames if the system does not report one.
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

    fn configs(
        self,
        device: &cpal::Device,
    ) -> Result<Vec<SupportedStreamConfigRange>, cpal::Error> {
        let all: Vec<_> = match self {
            Self::Output => device.supported_output_configs()?.collect(),
            Self::Input => device.supported_input_configs()?.collect(),
        };
        Ok(all
            .into_iter()
            .filter(|config| sample_format::is_known(config.sample_format()))
            .collect())
    }
}

/// Returns the devices of a sound system that can be opened or are busy.
pub(super) fn devices(host: cpal::HostId) -> Result<Vec<AudioDevice>, String> {
    let host = open_host(host)?;
    let default = |direction: Direction| {
        direction
            .default_device(&host)
            .and_then(|device| device.id().ok())
    };
    let defaults = (default(Direction::Output), default(Direction::Input));
    let all = host.devices().map_err(|error| one_line(&error))?;
    let described = all.filter_map(|device| {
        let id = device.id().ok()?;
        // ALSA's null device accepts any amount at once and has no clock.
        if id.id() == "null" {
            return None;
        }
        let output = side(&device, Direction::Output, defaults.0.as_ref() == Some(&id));
        let input = side(&device, Direction::Input, defaults.1.as_ref() == Some(&id));
        let there = output.is_some() || input.is_some();
        there.then(|| AudioDevice {
            id: id.id().to_owned(),
            name: name(&device),
            output,
            input,
        })
    });
    Ok(described.collect())
}

fn side(device: &cpal::Device, direction: Direction, default: bool) -> Option<DirectionInfo> {
    if !direction.supported_by(device) {
        return None;
    }
    match direction.configs(device) {
        Ok(configs) if configs.is_empty() => None,
        Ok(configs) => {
            let channels = configs
                .iter()
                .map(SupportedStreamConfigRange::channels)
                .max()
                .unwrap_or(0);
            Some(DirectionInfo {
                channels,
                sample_rates: rates(&configs),
                default,
            })
        }
        Err(error) if error.kind() == ErrorKind::DeviceBusy => Some(DirectionInfo {
            channels: 0,
            sample_rates: Vec::new(),
            default,
        }),
        Err(_) => None,
    }
}

fn rates(configs: &[SupportedStreamConfigRange]) -> Vec<u32> {
    let mut rates: Vec<u32> = COMMON_RATES
        .into_iter()
        .filter(|&rate| configs.iter().any(|c| c.contains_rate(rate)))
        .collect();
    if rates.is_empty() {
        rates = configs
            .iter()
            .map(SupportedStreamConfigRange::max_sample_rate)
            .collect();
        rates.sort_unstable();
        rates.dedup();
    }
    rates
}

/// Opens the chosen devices; plays silence until a callback is installed.
pub(super) fn open(
    host: cpal::HostId,
    choice: &AudioChoice,
    stats: &Arc<StreamStats>,
) -> Result<OpenedStream, String> {
    let host = open_host(host)?;
    let output = ConfiguredDevice::find(&host, Direction::Output, choice, choice.sample_rate)?;
    let sample_rate = output.config.sample_rate;
    let input = choice
        .wants_input()
        .then(|| ConfiguredDevice::find(&host, Direction::Input, choice, Some(sample_rate)))
        .transpose()?;

    let (errors, output_faults) = HeapRb::new(1).split();
    let mut stream = SystemStream {
        streams: ArrayVec::new(),
        errors: ArrayVec::new(),
    };
    stream.errors.push(output_faults);

    // Input first: its end of the bridge must exist when the output starts to read.
    let (mut bridge_tx, bridge_rx) = HeapRb::<BridgeIn>::new(1).split();
    let mut input_block = 0;
    if let Some(input) = &input {
        let (errors, input_faults) = HeapRb::new(1).split();
        stream.errors.push(input_faults);
        let opened = input.record(
            bridge_rx,
            stats,
            StreamErrors {
                ring: errors,
                stats: stats.clone(),
            },
        )?;
        input_block = block_of(&opened);
        stream.streams.push(opened);
    }

    let (mut callback_tx, callback_rx) = HeapRb::<OutputCallback>::new(1).split();
    let played = output.play(
        callback_rx,
        stats,
        StreamErrors {
            ring: errors,
            stats: stats.clone(),
        },
    )?;
    let output_block = block_of(&played);
    stream.streams.push(played);

    let max_block = output_block.min(MAX_BLOCK);
    let outputs = usize::from(output.config.channels);
    let inputs = input
        .as_ref()
        .map_or(0, |input| usize::from(input.config.channels));
    let (slot, owner) = CallbackSlot::new(max_block, stats.clone());
    let ends = input
        .is_some()
        .then(|| bridge(inputs, input_block, output_block, stats));
    let (bridge_in, bridge_out) = ends.unzip();
    let room = |channels: usize| vec![vec![0.0; max_block]; channels];
    let player = OutputCallback {
        slot,
        bridge: bridge_out,
        input: room(inputs),
        output: room(outputs),
        max_block,
    };
    // There is room for one of each.
    let seated = callback_tx.try_push(player).is_ok()
        && bridge_in.is_none_or(|end| bridge_tx.try_push(end).is_ok());
    debug_assert!(seated);
    for started in &stream.streams {
        started
            .play()
            .map_err(|error| output.describe_error(&error))?;
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
        bridge_frames: if inputs > 0 {
            bridge_latency(input_block, output_block)
        } else {
            0
        },
    };
    Ok(OpenedStream {
        opened,
        stream: Box::new(stream),
        owner,
    })
}

/// Device with the requested configuration.
struct ConfiguredDevice {
    device: cpal::Device,
    name: String,
    config: StreamConfig,
    format: cpal::SampleFormat,
}

impl ConfiguredDevice {
    fn find(
        host: &cpal::Host,
        direction: Direction,
        choice: &AudioChoice,
        rate: Option<u32>,
    ) -> Result<Self, String> {
        let (wanted, channels) = match direction {
            Direction::Output => (&choice.output, choice.output_channels),
            Direction::Input => (&choice.input, choice.input_channels),
        };
        let what = format!("{} of {}", direction.plural(), host.id().name());
        let device = match wanted {
            None => direction
                .default_device(host)
                .ok_or_else(|| format!("there are no {what}"))?,
            Some(wanted) => {
                let devices = host.devices().map_err(|error| one_line(&error))?;
                let mut devices: Vec<_> = devices
                    .filter(|device| direction.supported_by(device))
                    .collect();
                let names: Vec<_> = devices
                    .iter()
                    .map(|device| (id(device), name(device)))
                    .collect();
                devices.swap_remove(device_info::find(&names, wanted, &what)?)
            }
        };
        let name = name(&device);
        let offered = direction
            .configs(&device)
            .map_err(|error| format!("{name}: {}", one_line(&error)))?;
        let usual = direction
            .default_config(&device)
            .map_err(|error| format!("{name}: {}", one_line(&error)))?;
        let channels = channels.unwrap_or_else(|| usual.channels());
        if channels == 0 || usize::from(channels) > MAX_CHANNELS {
            return Err(format!(
                "{name}: {channels} channels; supported: 1 to {MAX_CHANNELS}"
            ));
        }
        let sample_rate = rate.unwrap_or_else(|| usual.sample_rate());
        let fitting = offered
            .iter()
            .filter(|config| config.channels() == channels && config.contains_rate(sample_rate));
        let Some(best) = fitting.max_by(|a, b| a.cmp_default_heuristics(b)) else {
            let most = offered
                .iter()
                .map(SupportedStreamConfigRange::channels)
                .max()
                .unwrap_or(0);
            let rates: Vec<String> = rates(&offered).iter().map(u32::to_string).collect();
            return Err(format!(
                "{name}: no {channels} channels at {sample_rate} Hz; it has up to {most} channels and {} Hz",
                rates.join(", ")
            ));
        };
        let buffer_size = match (choice.block, best.buffer_size()) {
            (None, _) => BufferSize::Default,
            (Some(block), SupportedBufferSize::Range { min, max }) => {
                BufferSize::Fixed(block.max(*min).min(*max))
            }
            (Some(block), SupportedBufferSize::Unknown) => BufferSize::Fixed(block.max(1)),
        };
        let config = StreamConfig {
            channels,
            sample_rate,
            buffer_size,
        };
        Ok(Self {
            device,
            name,
            config,
            format: best.sample_format(),
        })
    }

    fn record(
        &self,
        mut incoming: HeapCons<BridgeIn>,
        stats: &Arc<StreamStats>,
        mut errors: StreamErrors,
    ) -> Result<cpal::Stream, String> {
        let mut bridge = None;
        let (stats, rate, channels) = (
            stats.clone(),
            self.config.sample_rate,
            usize::from(self.config.channels),
        );
        let take = move |data: &Data, info: &cpal::InputCallbackInfo| {
            // The system reports the age of the first frame; the bridge counts from the last one.
            let time = info.timestamp();
            let age = frames(time.callback.saturating_duration_since(time.capture), rate);
            stats.set_input_latency(age.saturating_sub(data.len() / channels));
            if bridge.is_none() {
                bridge = incoming.try_pop();
            }
            if let Some(bridge) = &mut bridge {
                sample_format::read(data, |samples| bridge.push(samples));
            }
        };
        let on_error = move |error| errors.record_error(error);
        let opened = self.device.build_input_stream_raw(
            self.config,
            self.format,
            take,
            on_error,
            Some(OPEN_TIMEOUT),
        );
        opened.map_err(|error| self.describe_error(&error))
    }

    fn play(
        &self,
        mut incoming: HeapCons<OutputCallback>,
        stats: &Arc<StreamStats>,
        mut errors: StreamErrors,
    ) -> Result<cpal::Stream, String> {
        let mut player = None;
        let (stats, rate) = (stats.clone(), self.config.sample_rate);
        let give = move |data: &mut Data, info: &cpal::OutputCallbackInfo| {
            let time = info.timestamp();
            stats.set_output_latency(frames(
                time.playback.saturating_duration_since(time.callback),
                rate,
            ));
            if player.is_none() {
                player = incoming.try_pop();
            }
            // Without a callback the buffer stays silent as it came.
            if let Some(player) = &mut player {
                player.play(data);
            }
        };
        let on_error = move |error| errors.record_error(error);
        let opened = self.device.build_output_stream_raw(
            self.config,
            self.format,
            give,
            on_error,
            Some(OPEN_TIMEOUT),
        );
        opened.map_err(|error| self.describe_error(&error))
    }

    fn describe_error(&self, error: &cpal::Error) -> String {
        format!("{}: {}", self.name, one_line(error))
    }
}

/// Fills the buffers of the output device.
struct OutputCallback {
    slot: CallbackSlot,
    bridge: Option<BridgeOut>,
    /// `[channel][frame]`, for the output as well.
    input: Vec<Vec<f32>>,
    output: Vec<Vec<f32>>,
    max_block: usize,
}

impl OutputCallback {
    fn play(&mut self, data: &mut Data) {
        let frames = data.len() / self.output.len();
        let mut bridge = self.bridge.as_mut();
        let recorded = bridge.as_mut().is_some_and(|bridge| bridge.prepare(frames));
        for start in (0..frames).step_by(self.max_block) {
            let block = start..frames.min(start + self.max_block);
            match &mut bridge {
                Some(bridge) if recorded => bridge.pop(&mut self.input, block.len()),
                _ => self
                    .input
                    .iter_mut()
                    .for_each(|channel| channel[..block.len()].fill(0.0)),
            }
            let input: ArrayVec<&[f32], MAX_CHANNELS> =
                self.input.iter().map(|all| &all[..block.len()]).collect();
            let mut output: ArrayVec<&mut [f32], MAX_CHANNELS> = self
                .output
                .iter_mut()
                .map(|all| &mut all[..block.len()])
                .collect();
            self.slot.play(&input, &mut output);
            drop(output);
            sample_format::write(data, block, &self.output);
        }
    }
}

/// Streams of the opened devices.
struct SystemStream {
    streams: ArrayVec<cpal::Stream, 2>,
    errors: ArrayVec<HeapCons<cpal::Error>, 2>,
}

impl DeviceStream for SystemStream {
    fn failure(&mut self) -> Option<String> {
        self.errors
            .iter_mut()
            .find_map(Consumer::try_pop)
            .map(|error| one_line(&error))
    }
}

/// Receiver of a stream's errors, which may be reported on its audio thread.
struct StreamErrors {
    ring: HeapProd<cpal::Error>,
    stats: Arc<StreamStats>,
}

impl StreamErrors {
    fn record_error(&mut self, error: cpal::Error) {
        match error.kind() {
            ErrorKind::Xrun => self.stats.count_xrun(),
            // The stream continues.
            ErrorKind::DeviceChanged | ErrorKind::RealtimeDenied => {}
            // The first error is the reason; later ones are its consequences.
            _ => drop(self.ring.try_push(error)),
        }
    }
}

fn block_of(stream: &cpal::Stream) -> usize {
    stream
        .buffer_size()
        .map_or(UNKNOWN_BLOCK, |frames| frames as usize)
        .max(1)
}

fn frames(time: Duration, sample_rate: u32) -> usize {
    (time.as_secs_f64() * f64::from(sample_rate)).round() as usize
}

fn id(device: &cpal::Device) -> String {
    device
        .id()
        .map_or_else(|_| String::new(), |id| id.id().to_owned())
}

fn name(device: &cpal::Device) -> String {
    device
        .description()
        .map_or_else(|_| id(device), |description| description.name().to_owned())
}

/// Returns a sound system.
pub(super) fn open_host(host: cpal::HostId) -> Result<cpal::Host, String> {
    #[cfg(target_os = "linux")]
    if host == cpal::HostId::Alsa && !super::alsa_library::is_installed() {
        return Err(super::alsa_library::MISSING.into());
    }
    cpal::host_from_id(host).map_err(|error| one_line(&error))
}

fn one_line(error: &cpal::Error) -> String {
    let text = error.to_string().replace('\n', " ");
    text.trim_end_matches('.').to_owned()
}
