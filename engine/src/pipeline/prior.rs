//! A model's method `prior`, which makes latents on its own, played at a variable tempo.
//!
//! The decoder's frames come at a constant rate; the prior advances by its tempo from each of them
//! to the next, interpolating linearly between two of its own frames, or skipping some. At tempo 1
//! its frames are the decoder's, bit by bit.
//!
//! A prior may listen: it has an input for the latents of the encoder, which it goes on from.

use std::time::Duration;

use super::bar_memory::BarMemory;
use super::control_ports::is_on;
use super::controls::{
    MAX_PRIOR_SEED, MAX_PRIOR_TEMPO, MIN_PRIOR_TEMPO, PRIOR_FREEZE, PRIOR_LOOP, PRIOR_SEED,
    PRIOR_TEMPO, PRIOR_VARIATION,
};
use super::effect_stream::EffectStream;
use super::method_runner::MethodRunner;
use super::prior_loop::{LoopSettings, PriorLoop};
use crate::dsp::noise::stream_seed;
use crate::model::Port;

/// Ports of the controls that a prior has.
#[derive(Clone, Copy)]
pub(super) struct PriorPorts {
    tempo: usize,
    seed: usize,
    freeze: usize,
    /// The loop's bars and variation; `None` for a prior that follows no bars.
    looped: Option<(usize, usize)>,
}

impl PriorPorts {
    /// Looks up the ports by the names of the controls.
    pub fn new(port: impl Fn(&str) -> Option<usize>) -> Self {
        let [tempo, seed, freeze] = [PRIOR_TEMPO, PRIOR_SEED, PRIOR_FREEZE]
            .map(|name| port(name).expect("every prior has the control"));
        Self {
            tempo,
            seed,
            freeze,
            looped: port(PRIOR_LOOP).zip(port(PRIOR_VARIATION)),
        }
    }
}

/// Dimensions of a [`Prior`].
#[derive(Clone, Copy)]
pub(super) struct PriorSize {
    /// Channels that it listens to.
    pub heard: usize,
    /// Samples of its method's block.
    pub block: usize,
    /// Samples of a hop.
    pub hop: usize,
    pub streams: usize,
    /// Sample rate of the model, Hz.
    pub sample_rate: u32,
}

/// A piece that a prior plays: it begins anew where this changes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Piece {
    /// Value of the control that is added to the seed.
    number: u64,
    /// Number of times that it began anew, and the key of the last time.
    beginning: (u64, Option<u8>),
}

impl Piece {
    /// Returns what is added to the seed of the session: each number with each key is a piece of
    /// its own.
    fn seed(self) -> u64 {
        let keys = self.beginning.1.map_or(0, |key| u64::from(key) + 1);
        self.number + keys * (MAX_PRIOR_SEED as u64 + 1)
    }
}

/// Latents of the encoder in a hop, `[slot][frame][latent]`.
#[derive(Clone, Copy)]
pub(super) struct Heard<'a> {
    pub slots: &'a [usize],
    pub latents: &'a [f32],
}

/// A prior for all streams.
///
/// A hop is [`Prior::begin_hop`], then [`Prior::finish`]. In between, [`Prior::run_layer`] computes
/// parts of it.
pub(super) struct Prior {
    runner: MethodRunner,
    memory: BarMemory,
    ports: PriorPorts,
    latents: usize,
    /// Channels that it listens to; 0 for one that does not.
    heard: usize,
    /// Samples per frame.
    ratio: usize,
    /// Blocks of its method in a hop.
    blocks: usize,
    /// `[stream]`
    paths: Vec<Path>,
    /// Streams of this hop.
    slots: Vec<usize>,
    /// Latents of the hop for them, `[slot][frame][latent]`.
    made: Vec<f32>,
    /// Values of one of them.
    hop_latents: usize,
    /// Frames of the hop that are complete.
    frame: usize,
    /// Streams that need another block, which is begun where there are any.
    starved: Vec<usize>,
}

/// Position of a stream between two frames of its prior.
struct Path {
    /// Frames of the last block, `[frame][latent]`.
    block: Vec<f32>,
    /// Values at the end of the block that are not used yet.
    remaining: usize,
    /// Frame before the position, and frame after it, `[latent]`.
    from: Vec<f32>,
    to: Vec<f32>,
    /// Position between them, from 0 to 1; above 1 another frame is due.
    position: f64,
    /// Seed of the session, and the piece that is played with it.
    seed: u64,
    piece: Piece,
    /// Last frame played, `[latent]`, and the last bars.
    last: Vec<f32>,
    looped: Option<PriorLoop>,
}

impl Path {
    /// Position at the start: the first frame is due.
    const START: f64 = 2.0;

    /// Takes frames of `latents` values from blocks of `frames`.
    fn new(frames: usize, latents: usize) -> Self {
        Self {
            block: vec![0.0; frames * latents],
            remaining: 0,
            from: vec![0.0; latents],
            to: vec![0.0; latents],
            position: Self::START,
            seed: 0,
            piece: Piece::default(),
            last: vec![0.0; latents],
            looped: None,
        }
    }

    /// Takes frames from the block until none is due; returns false if the block does not suffice.
    fn catch_up(&mut self) -> bool {
        while self.position > 1.0 && self.remaining > 0 {
            let (used, latents) = (self.block.len() - self.remaining, self.to.len());
            std::mem::swap(&mut self.from, &mut self.to);
            self.to.copy_from_slice(&self.block[used..used + latents]);
            self.remaining -= latents;
            self.position -= 1.0;
        }
        self.position <= 1.0
    }

    /// Writes the latents at the position, then advances by `tempo` frames.
    fn step(&mut self, frame: &mut [f32], tempo: f32) {
        if self.position == 1.0 {
            // Exact, without the rounding of the interpolation.
            frame.copy_from_slice(&self.to);
        } else {
            for ((value, from), to) in frame.iter_mut().zip(&self.from).zip(&self.to) {
                *value = from + self.position as f32 * (to - from);
            }
        }
        self.position += f64::from(tempo.clamp(MIN_PRIOR_TEMPO, MAX_PRIOR_TEMPO));
    }
}

impl Prior {
    /// Wraps the runner of a prior's method, with a memory for the same method; `latents` is the
    /// decoder's input.
    pub fn new(
        runner: MethodRunner,
        memory: BarMemory,
        ports: PriorPorts,
        latents: &Port,
        size: PriorSize,
    ) -> Self {
        let PriorSize {
            heard,
            block,
            hop,
            streams,
            sample_rate,
        } = size;
        let Port {
            channels: latents,
            ratio,
            ..
        } = *latents;
        let frames_per_second = f64::from(sample_rate) / ratio as f64;
        let path = || Path {
            looped: ports
                .looped
                .map(|_| PriorLoop::new(latents, frames_per_second)),
            ..Path::new(block / ratio, latents)
        };
        Self {
            runner,
            memory,
            ports,
            latents,
            heard,
            ratio,
            blocks: hop / block,
            paths: (0..streams).map(|_| path()).collect(),
            slots: Vec::with_capacity(streams),
            made: vec![0.0; hop / ratio * latents * streams],
            hop_latents: hop / ratio * latents,
            frame: 0,
            starved: Vec::with_capacity(streams),
        }
    }

    /// Resets a stream.
    pub fn open(&mut self, stream: usize, seed: u64) {
        self.paths[stream].seed = seed;
        self.begin(stream, Piece::default());
    }

    /// Begins a piece.
    fn begin(&mut self, stream: usize, piece: Piece) {
        let path = &mut self.paths[stream];
        let seed = path.seed.wrapping_add(piece.seed());
        self.runner.open(stream, stream_seed(seed, 2));
        self.memory.clear(stream);
        path.remaining = 0;
        path.to.fill(0.0);
        path.position = Path::START;
        path.piece = piece;
        path.last.fill(0.0);
        if let Some(looped) = &mut path.looped {
            looped.begin(stream_seed(seed, 3));
        }
    }

    /// Begins a hop for these streams.
    pub fn begin_hop(&mut self, streams: &[EffectStream], slots: impl Iterator<Item = usize>) {
        self.slots.clear();
        for slot in slots {
            self.slots.push(slot);
            let EffectStream { ports, keys, .. } = &streams[slot];
            let number = ports.target(self.ports.seed).round() as u64;
            let piece = Piece {
                number,
                beginning: keys.beginning(),
            };
            if piece != self.paths[slot].piece {
                self.begin(slot, piece);
            }
        }
        self.frame = 0;
        self.starved.clear();
    }

    /// Returns the times of the layers that a hop has at tempo 1.
    pub fn layer_times(&mut self) -> Vec<Duration> {
        self.runner.layer_times(self.block()).repeat(self.blocks)
    }

    /// Computes one of these layers, if a block is needed.
    pub fn run_layer(&mut self, streams: &[EffectStream], heard: Option<Heard<'_>>, index: usize) {
        let layers = self.runner.layers();
        let layer = index % layers;
        if layer == 0 {
            self.run_frames(streams, heard);
        }
        if self.starved.is_empty() {
            return;
        }
        self.runner.run_layer(layer);
        if layer + 1 == layers {
            self.take_block();
        }
    }

    /// Completes the hop.
    pub fn finish(&mut self, streams: &[EffectStream], heard: Option<Heard<'_>>) {
        self.run_frames(streams, heard);
        while !self.starved.is_empty() {
            self.runner.run();
            self.take_block();
            self.run_frames(streams, heard);
        }
    }

    /// Returns the latents of a stream, `[frame][latent]`; `None` if the hop is not for it.
    pub fn latents(&self, stream: usize) -> Option<&[f32]> {
        let row = self.slots.iter().position(|slot| *slot == stream)?;
        Some(&self.made[row * self.hop_latents..][..self.hop_latents])
    }

    /// Returns the samples of a block.
    fn block(&self) -> usize {
        self.paths[0].block.len() / self.latents * self.ratio
    }

    /// Makes frames until streams are starved, and begins a block for these.
    fn run_frames(&mut self, streams: &[EffectStream], heard: Option<Heard<'_>>) {
        let Self {
            runner,
            memory,
            ports,
            latents,
            paths,
            slots,
            made,
            hop_latents,
            starved,
            ..
        } = self;
        let frames = *hop_latents / *latents;
        while self.frame < frames {
            let frame = self.frame;
            let is_frozen = |slot: &usize| is_on(streams[*slot].ports.target(ports.freeze));
            starved.extend(
                slots
                    .iter()
                    .filter(|slot| !is_frozen(slot) && !paths[**slot].catch_up()),
            );
            if !starved.is_empty() {
                runner.begin_block(streams, starved, frame * self.ratio);
                if self.heard > 0 {
                    listen(runner.input(), self.heard, starved, heard, frame, frames);
                }
                memory.begin_block(runner.executor(), starved);
                return;
            }
            for (row, &slot) in slots.iter().enumerate() {
                let (path, controls) = (&mut paths[slot], &streams[slot].ports);
                let out = &mut made[row * *hop_latents + frame * *latents..][..*latents];
                if is_on(controls.target(ports.freeze)) {
                    out.copy_from_slice(&path.last);
                    continue;
                }
                path.step(out, controls.at(ports.tempo, frame, frames));
                if let Some((looped, (bars, variation))) = path.looped.as_mut().zip(ports.looped) {
                    looped.run(
                        out,
                        LoopSettings {
                            bars: controls.target(bars).round() as usize,
                            variation: controls.target(variation),
                            tempo: controls.tempo(),
                            beat: controls.beat(),
                        },
                    );
                }
                path.last.copy_from_slice(out);
            }
            self.frame += 1;
        }
    }

    /// Gives the block that was computed to the streams that were starved.
    fn take_block(&mut self) {
        let Self {
            runner,
            memory,
            latents,
            paths,
            starved,
            ..
        } = self;
        memory.end_block(runner.executor(), starved);
        let blocks = runner.output();
        for (block, &slot) in blocks
            .chunks_exact(blocks.len() / starved.len())
            .zip(&*starved)
        {
            let path = &mut paths[slot];
            let made = block.len() / (path.block.len() / *latents);
            for (to, from) in path
                .block
                .chunks_exact_mut(*latents)
                .zip(block.chunks_exact(made))
            {
                to.copy_from_slice(&from[..*latents]);
            }
            path.remaining = path.block.len();
        }
        starved.clear();
    }

    /// Returns the bytes of weights, states and buffers.
    pub fn bytes(&self) -> usize {
        let looped = self.paths.iter().filter_map(|path| path.looped.as_ref());
        self.runner.bytes() + self.memory.bytes() + looped.map(PriorLoop::bytes).sum::<usize>()
    }
}

/// Fills the input of a prior, `[slot][frame][channel]`, with what was heard from a frame of the
/// hop on. Frames after the hop repeat its last one; what was not heard is 0.
fn listen(
    input: &mut [f32],
    channels: usize,
    slots: &[usize],
    heard: Option<Heard<'_>>,
    frame: usize,
    frames: usize,
) {
    input.fill(0.0);
    let Some(heard) = heard else { return };
    let length = heard.latents.len() / heard.slots.len();
    let (row, latents) = (input.len() / slots.len(), length / frames);
    for (row, slot) in input.chunks_exact_mut(row).zip(slots) {
        let Some(index) = heard.slots.iter().position(|other| other == slot) else {
            continue;
        };
        let heard = &heard.latents[index * length..][..length];
        for (step, to) in row.chunks_exact_mut(channels).enumerate() {
            let from = &heard[(frame + step).min(frames - 1) * latents..][..latents];
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps a path along frames 0, 1, 2, … in blocks of `block`.
    fn along(tempos: &[f32], block: usize) -> Vec<f32> {
        let mut path = Path::new(block, 1);
        let mut next = 0.0;
        let step = |tempo: &f32| {
            while !path.catch_up() {
                path.block.iter_mut().for_each(|value| {
                    *value = next;
                    next += 1.0;
                });
                path.remaining = block;
            }
            let mut frame = [0.0];
            path.step(&mut frame, *tempo);
            frame[0]
        };
        tempos.iter().map(step).collect()
    }

    #[test]
    fn a_path_advances_by_its_tempo() {
        for block in [1, 2, 5] {
            assert_eq!(along(&[1.0; 6], block), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
            assert_eq!(along(&[0.5; 6], block), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
            assert_eq!(along(&[4.0; 4], block), [0.0, 4.0, 8.0, 12.0]);
            assert_eq!(
                along(&[1.5, 0.25, 0.25, 1.0, 2.0, 1.0], block),
                [0.0, 1.5, 1.75, 2.0, 3.0, 5.0]
            );
            // The tempo is clamped.
            assert_eq!(along(&[-1.0, 1e9, 1.0], block), [0.0, 0.25, 4.25]);
        }
    }
}
