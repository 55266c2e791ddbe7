//! Networks at the rate of sound, such as captures of amplifiers: run as a whole, with time across the lanes.
//!
//! [`network`] turns a method into steps, [`home`] is where a signal and its past lie, [`place`] where steps find it. What
//! node by node would be computed frame by frame with channels across the lanes is computed here channel by channel in chunks
//! of frames.

mod home;
mod network;
mod place;

use home::{CHUNK, Home};
use network::Network;
use ondes_kernels::Kernels;

use super::layers::{Io, Layer};
use crate::model::graph::Shapes;
use crate::model::{Method, Weights};

/// A method at work, with a state for each stream.
pub struct Timewise {
    network: Network,
    /// Frames computed at a time at most.
    chunk: usize,
    streams: Vec<Stream>,
    /// All that a stream that begins has heard; none for silence of all time.
    settled: Option<Stream>,
}

/// All signals of one stream.
struct Stream {
    signals: Vec<f32>,
    /// Where the signals begin: on a cache line.
    start: usize,
    /// For each home the frame where the next chunk goes.
    now: Vec<usize>,
}

/// Values of a cache line.
const LINE: usize = 16;

impl Stream {
    fn new(network: &Network) -> Self {
        let signals = vec![0.0; network.length + LINE];
        let start = signals.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        Self { signals, start, now: network.homes.iter().map(Home::first).collect() }
    }

    fn reset(&mut self, network: &Network) {
        self.signals.fill(0.0);
        self.now.iter_mut().zip(&network.homes).for_each(|(now, home)| *now = home.first());
    }

    /// Stands where another one stands.
    fn follow(&mut self, other: &Self) {
        let length = self.signals.len() - LINE;
        self.signals[self.start..][..length].copy_from_slice(&other.signals[other.start..][..length]);
        self.now.copy_from_slice(&other.now);
    }

    /// Computes a chunk of what was written to the inputs.
    fn run(&mut self, kernels: Kernels, network: &Network, frames: usize) {
        let signals = &mut self.signals[self.start..];
        network.inputs.iter().for_each(|input| input.close(&self.now, signals, frames));
        kernels.run_steps(&network.steps, &self.now, signals, frames);
    }

    fn advance(&mut self, network: &Network, frames: usize) {
        let signals = &mut self.signals[self.start..];
        for (now, home) in self.now.iter_mut().zip(&network.homes) {
            *now = home.advance(signals, *now, frames);
        }
    }
}

impl Timewise {
    /// For up to `frames` frames at a time. None where some of the method is not at the rate of sound, or has ops that are not made
    /// for this.
    pub fn new(method: &Method, shapes: &Shapes, weights: &Weights, streams: usize, frames: usize) -> Option<Self> {
        let chunk = frames.min(CHUNK);
        let network = Network::new(method, shapes, weights, chunk)?;
        let streams = (0..streams).map(|_| Stream::new(&network)).collect();
        Some(Self { network, chunk, streams, settled: None })
    }
}

impl Layer for Timewise {
    fn run(&mut self, kernels: Kernels, mut io: Io<'_>) {
        let &mut Self { ref network, chunk: most, ref mut streams, .. } = self;
        let channels = network.output.channels();
        let rows = std::mem::take(&mut io.output).chunks_exact_mut(io.frames * channels);
        for ((row, out), &stream) in rows.enumerate().zip(io.streams) {
            let stream = &mut streams[stream];
            for (chunk, out) in out.chunks_mut(most * channels).enumerate() {
                let frames = out.len() / channels;
                for (port, place) in network.inputs.iter().enumerate() {
                    let to = place.rows(&stream.now);
                    let first = (row * io.frames + chunk * most) * to.channels;
                    let input = &io.input(port)[first..first + frames * to.channels];
                    for channel in 0..to.channels {
                        let row = &mut stream.signals[stream.start + to.start + channel * to.stride..][..frames];
                        if to.channels == 1 {
                            row.copy_from_slice(input);
                            continue;
                        }
                        let frames = input.iter().skip(channel).step_by(to.channels);
                        row.iter_mut().zip(frames).for_each(|(to, &value)| *to = value);
                    }
                }
                stream.run(kernels, network, frames);
                let from = network.output.rows(&stream.now);
                for channel in 0..channels {
                    let row = &stream.signals[stream.start + from.start + channel * from.stride..][..frames];
                    if channels == 1 {
                        out.copy_from_slice(row);
                        continue;
                    }
                    let frames = out.iter_mut().skip(channel).step_by(channels);
                    frames.zip(row).for_each(|(out, &value)| *out = value);
                }
                stream.advance(network, frames);
            }
        }
    }

    fn reset(&mut self, stream: usize) {
        match &self.settled {
            Some(settled) => self.streams[stream].follow(settled),
            None => self.streams[stream].reset(&self.network),
        }
    }

    fn settle(&mut self) {
        let mut settled = Stream::new(&self.network);
        settled.follow(&self.streams[0]);
        self.streams.iter_mut().for_each(|stream| stream.follow(&settled));
        self.settled = Some(settled);
    }

    fn bytes(&self) -> usize {
        let states: usize =
            self.streams.iter().chain(&self.settled).map(|stream| size_of_val(stream.signals.as_slice())).sum();
        states + self.network.steps.bytes()
    }
}
