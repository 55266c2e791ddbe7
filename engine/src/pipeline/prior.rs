//! A model's method `prior`, which makes latents on its own, played at a variable tempo.
//!
//! The decoder's frames come at a constant rate; the prior advances by its tempo from each of them to the next,
//! interpolating linearly between two of its own frames, or skipping some. At tempo 1 its frames are the decoder's, bit
//! by bit.

use super::controls::{MAX_PRIOR_TEMPO, MIN_PRIOR_TEMPO};
use super::effect_stream::EffectStream;
use super::method_runner::MethodRunner;
use crate::dsp::noise::stream_seed;
use crate::model::Port;

/// Ports of the controls that every prior has.
#[derive(Clone, Copy)]
pub(super) struct PriorPorts {
    pub tempo: usize,
    pub seed: usize,
}

/// A prior for all streams.
pub(super) struct Prior {
    runner: MethodRunner,
    ports: PriorPorts,
    latents: usize,
    /// Samples per frame.
    ratio: usize,
    /// `[stream]`
    paths: Vec<Path>,
    /// Streams that need another block.
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
    /// Seed of the session, and the control's value that is added to it.
    seed: (u64, u64),
}

impl Path {
    /// Position at the start: the first frame is due.
    const START: f64 = 2.0;

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
    /// Wraps the runner of a prior's method, whose block is `block` samples; `latents` is its output.
    pub fn new(runner: MethodRunner, ports: PriorPorts, latents: &Port, block: usize, streams: usize) -> Self {
        let Port { channels: latents, ratio, .. } = *latents;
        let path = || Path {
            block: vec![0.0; block / ratio * latents],
            remaining: 0,
            from: vec![0.0; latents],
            to: vec![0.0; latents],
            position: Path::START,
            seed: (0, 0),
        };
        Self {
            runner,
            ports,
            latents,
            ratio,
            paths: (0..streams).map(|_| path()).collect(),
            starved: Vec::with_capacity(streams),
        }
    }

    /// Resets a stream.
    pub fn open(&mut self, stream: usize, seed: u64) {
        self.begin(stream, (seed, 0));
    }

    /// Begins again from a session's seed plus a number.
    fn begin(&mut self, stream: usize, seed: (u64, u64)) {
        self.runner.open(stream, stream_seed(seed.0.wrapping_add(seed.1), 2));
        let path = &mut self.paths[stream];
        path.remaining = 0;
        path.to.fill(0.0);
        path.position = Path::START;
        path.seed = seed;
    }

    /// Computes the latents of a hop for these streams, `[stream][frame][latent]` in their order.
    pub fn run(&mut self, streams: &[EffectStream], slots: &[usize], out: &mut [f32]) {
        for &slot in slots {
            let (seed, number) = self.paths[slot].seed;
            let chosen = streams[slot].ports.target(self.ports.seed).round() as u64;
            if chosen != number {
                self.begin(slot, (seed, chosen));
            }
        }
        let Self { runner, ports, latents, ratio, paths, starved } = self;
        let Some(length) = out.len().checked_div(slots.len()) else { return };
        let frames = length / *latents;
        for frame in 0..frames {
            loop {
                starved.clear();
                starved.extend(slots.iter().filter(|slot| !paths[**slot].catch_up()));
                if starved.is_empty() {
                    break;
                }
                runner.begin_block(streams, starved, frame * *ratio);
                runner.run();
                let blocks = runner.output();
                for (block, &slot) in blocks.chunks_exact(blocks.len() / starved.len()).zip(&*starved) {
                    paths[slot].block.copy_from_slice(block);
                    paths[slot].remaining = block.len();
                }
            }
            for (row, &slot) in slots.iter().enumerate() {
                let tempo = streams[slot].ports.at(ports.tempo, frame, frames);
                paths[slot].step(&mut out[row * length + frame * *latents..][..*latents], tempo);
            }
        }
    }

    /// Returns the bytes of weights, states and buffers.
    pub fn bytes(&self) -> usize {
        self.runner.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps a path along frames 0, 1, 2, … in blocks of `block`.
    fn along(tempos: &[f32], block: usize) -> Vec<f32> {
        let mut path = Path {
            block: vec![0.0; block],
            remaining: 0,
            from: vec![0.0],
            to: vec![0.0],
            position: Path::START,
            seed: (0, 0),
        };
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
            assert_eq!(along(&[1.5, 0.25, 0.25, 1.0, 2.0, 1.0], block), [0.0, 1.5, 1.75, 2.0, 3.0, 5.0]);
            // The tempo is clamped.
            assert_eq!(along(&[-1.0, 1e9, 1.0], block), [0.0, 0.25, 4.25]);
        }
    }
}
