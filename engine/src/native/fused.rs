//! Convolutional networks at audio rate, such as captures of amplifiers, run as a whole with time
//! across the lanes.
//!
//! [`lowering`] turns nodes into operations, [`layout`] assigns their values to buffers
//! ([`signal_buffer`], [`channel_range`]), [`fusion`] merges the operations into few passes, and
//! [`network`] is the result. Chunks of frames are computed channel by channel; the other layers
//! compute frame by frame with channels across the lanes.

mod channel_range;
mod fusion;
mod layout;
mod lowering;
mod network;
mod signal_buffer;

use network::Network;
use ondes_kernels::{BufferView, Kernels, StreamSignals};
use signal_buffer::{CHUNK, SignalBuffer};

use super::layer::{Io, Layer};
use crate::model::graph::Shapes;
use crate::model::{Method, Weights};

/// A method run as one layer, with state per stream.
pub struct FusedConvNet {
    network: Network,
    /// Maximum number of frames computed at a time.
    chunk: usize,
    streams: Vec<StreamState>,
    /// State in which streams begin; `None` for silence since ever.
    initial: Option<StreamState>,
}

/// All signals of one stream.
struct StreamState {
    memory: Vec<f32>,
    /// Index of the first signal in `memory`, on a cache line.
    start: usize,
    /// `[buffer]`: the frame at which the next chunk begins.
    positions: Vec<usize>,
}

/// Values per cache line.
const CACHE_LINE: usize = 16;

impl StreamState {
    fn new(network: &Network) -> Self {
        let memory = vec![0.0; network.length + CACHE_LINE];
        let start = memory
            .as_ptr()
            .align_offset(CACHE_LINE * size_of::<f32>())
            .min(CACHE_LINE);
        let positions = network
            .buffers
            .iter()
            .map(SignalBuffer::first_position)
            .collect();
        Self {
            memory,
            start,
            positions,
        }
    }

    fn reset(&mut self, network: &Network) {
        self.memory.fill(0.0);
        for (position, buffer) in self.positions.iter_mut().zip(&network.buffers) {
            *position = buffer.first_position();
        }
    }

    /// Copies the state of another stream, which may be aligned differently.
    fn copy_from(&mut self, other: &Self) {
        let length = self.memory.len() - CACHE_LINE;
        self.memory[self.start..][..length].copy_from_slice(&other.memory[other.start..][..length]);
        self.positions.copy_from_slice(&other.positions);
    }

    /// Returns `frames` frames of a channel of a view from the current position on.
    fn row(&mut self, view: &BufferView, channel: usize, frames: usize) -> &mut [f32] {
        let rows = view.rows(&self.positions);
        &mut self.memory[self.start + rows.start + channel * rows.stride..][..frames]
    }

    /// Writes frames `[frame][channel]` to a view.
    fn write(&mut self, view: &BufferView, input: &[f32]) {
        let channels = view.channels();
        for channel in 0..channels {
            let row = self.row(view, channel, input.len() / channels);
            if channels == 1 {
                row.copy_from_slice(input);
            } else {
                row.iter_mut()
                    .zip(input.iter().skip(channel).step_by(channels))
                    .for_each(|(to, &value)| *to = value);
            }
        }
    }

    /// Reads frames `[frame][channel]` from a view.
    fn read(&mut self, view: &BufferView, output: &mut [f32]) {
        let channels = view.channels();
        let frames = output.len() / channels;
        for channel in 0..channels {
            let row = self.row(view, channel, frames);
            if channels == 1 {
                output.copy_from_slice(row);
            } else {
                output
                    .iter_mut()
                    .skip(channel)
                    .step_by(channels)
                    .zip(row)
                    .for_each(|(to, value)| *to = *value);
            }
        }
    }

    /// Makes the frames written to the inputs contiguous, and returns all signals to compute a
    /// chunk.
    fn begin_chunk(&mut self, network: &Network, frames: usize) -> StreamSignals<'_> {
        let signals = &mut self.memory[self.start..];
        network
            .inputs
            .iter()
            .for_each(|input| input.mirror(&self.positions, signals, frames));
        StreamSignals {
            positions: &self.positions,
            signals,
        }
    }

    fn advance(&mut self, network: &Network, frames: usize) {
        let signals = &mut self.memory[self.start..];
        for (position, buffer) in self.positions.iter_mut().zip(&network.buffers) {
            *position = buffer.advance(signals, *position, frames);
        }
    }
}

impl FusedConvNet {
    /// Compiles a method for up to `frames` frames at a time; `None` unless all of its values are
    /// at audio rate and each of its ops has a pass over rows.
    pub fn new(
        method: &Method,
        shapes: &Shapes,
        weights: &Weights,
        streams: usize,
        frames: usize,
    ) -> Option<Self> {
        let chunk = frames.min(CHUNK);
        let network = Network::new(method, shapes, weights, chunk)?;
        let streams = (0..streams).map(|_| StreamState::new(&network)).collect();
        Some(Self {
            network,
            chunk,
            streams,
            initial: None,
        })
    }

    /// Computes all frames of N streams, chunk by chunk; `first_row` is the row of the first one in
    /// the inputs.
    fn run_streams<const N: usize>(
        &mut self,
        kernels: Kernels,
        io: &Io<'_>,
        streams: [usize; N],
        first_row: usize,
        output: &mut [f32],
    ) {
        let Self {
            network,
            chunk: max_frames,
            streams: all,
            ..
        } = self;
        let mut streams = all
            .get_disjoint_mut(streams)
            .expect("a step names each stream once");
        let channels = network.output.channels();
        for start in (0..io.frames).step_by(*max_frames) {
            let frames = (io.frames - start).min(*max_frames);
            for (row, stream) in streams.iter_mut().enumerate() {
                for (port, view) in network.inputs.iter().enumerate() {
                    let first = ((first_row + row) * io.frames + start) * view.channels();
                    stream.write(
                        view,
                        &io.input(port)[first..first + frames * view.channels()],
                    );
                }
            }
            let mut signals = streams
                .each_mut()
                .map(|stream| stream.begin_chunk(network, frames));
            kernels.run_passes_batch(&network.passes, &mut signals, frames);
            for (row, stream) in streams.iter_mut().enumerate() {
                let first = (row * io.frames + start) * channels;
                stream.read(
                    &network.output,
                    &mut output[first..first + frames * channels],
                );
                stream.advance(network, frames);
            }
        }
    }
}

impl Layer for FusedConvNet {
    fn run(&mut self, kernels: Kernels, mut io: Io<'_>) {
        let values = io.frames * self.network.output.channels();
        let mut outputs = std::mem::take(&mut io.output);
        for (index, streams) in io.streams.chunks(2).enumerate() {
            let output = outputs
                .split_off_mut(..streams.len() * values)
                .unwrap_or_default();
            match *streams {
                [one, other] => self.run_streams(kernels, &io, [one, other], 2 * index, output),
                [one] => self.run_streams(kernels, &io, [one], 2 * index, output),
                _ => {}
            }
        }
    }

    fn reset(&mut self, stream: usize) {
        match &self.initial {
            Some(initial) => self.streams[stream].copy_from(initial),
            None => self.streams[stream].reset(&self.network),
        }
    }

    fn capture_initial_state(&mut self) {
        let mut initial = StreamState::new(&self.network);
        initial.copy_from(&self.streams[0]);
        self.streams
            .iter_mut()
            .for_each(|stream| stream.copy_from(&initial));
        self.initial = Some(initial);
    }

    fn bytes(&self) -> usize {
        let signals = self
            .streams
            .iter()
            .chain(&self.initial)
            .map(|stream| size_of_val(stream.memory.as_slice()));
        signals.sum::<usize>() + self.network.passes.bytes()
    }
}
