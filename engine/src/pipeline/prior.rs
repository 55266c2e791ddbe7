//! Latents that a model's method `prior` makes on its own, at a tempo: the decoder's frames come as fast as ever, and the prior
//! goes on by as much as the knob says from each to the next. Between two of its frames it is on the straight line from one to
//! the other; where it is faster than the decoder some of its frames are passed by. At 1 its frames are the decoder's, to the
//! bit.

use super::line::Line;
use super::stage::{self, Stage};
use crate::dsp::noise::stream_seed;
use crate::model::{Control, Curve, Header, Port};

/// The knob of a codec that has a prior: where its latents come from.
pub(super) const SHARE: &str = "prior";
/// The knob for the tempo of a prior, and where that may go.
pub(super) const TEMPO: &str = "prior.tempo";
const SLOWEST: f32 = 0.25;
const FASTEST: f32 = 4.0;

/// The controls that a prior brings with it; none where there is no prior. Only where there is an encoder, too, there is
/// something to choose from.
pub(super) fn controls(header: &Header) -> impl Iterator<Item = Control> {
    let is_there = is_playable(header);
    let share = (is_there && header.method("encode").is_some()).then(|| Control {
        name: SHARE.into(),
        unit: String::new(),
        min: 0.0,
        max: 1.0,
        default: 0.0,
        curve: Curve::Linear,
        description: "At 0 latents come from the input, at 1 from the model's own prior.".into(),
    });
    let tempo = is_there.then(|| Control {
        name: TEMPO.into(),
        unit: "x".into(),
        min: SLOWEST,
        max: FASTEST,
        default: 1.0,
        curve: Curve::Logarithmic,
        description: "How fast the model's own prior goes on, while what is decoded sounds as fast as ever.".into(),
    });
    share.into_iter().chain(tempo)
}

/// Whether a model has a prior that can be played: one whose latents are those of `decode` and whose inputs controls feed.
pub(super) fn is_playable(header: &Header) -> bool {
    let (Some(prior), Some(decode)) = (header.method("prior"), header.method("decode")) else { return false };
    let into = stage::inputs(header, decode).map(|(_, port)| port);
    let fits = stage::output(prior).ok().zip(into.ok()).is_some_and(|(out, into)| fits(out, into));
    fits && stage::all_fed(header, prior).is_ok()
}

/// Whether what comes out of one method may go into another.
pub(super) fn fits(out: &Port, into: &Port) -> bool {
    (out.channels, out.ratio) == (into.channels, into.ratio)
}

/// A prior at work for all seats.
pub(super) struct Prior {
    stage: Stage,
    /// The port of its tempo.
    tempo: usize,
    latents: usize,
    /// Samples per frame.
    ratio: usize,
    /// `[seat]`
    paths: Vec<Path>,
    /// Seats that need another block.
    behind: Vec<usize>,
}

/// Where a seat is among the frames of its prior.
struct Path {
    /// Frames of the last block, `[frame][latent]`.
    block: Vec<f32>,
    /// Values of them that were not taken yet, which are the last ones.
    left: usize,
    /// The frame that was passed, and the one that is gone to, `[latent]`.
    from: Vec<f32>,
    to: Vec<f32>,
    /// Part of the way that is done; above 1 another frame is due.
    done: f64,
}

impl Path {
    /// Nothing is passed, and the first frame is due.
    const BEGINNING: f64 = 2.0;

    /// Takes frames until none is due; gives whether there were enough.
    fn catch_up(&mut self) -> bool {
        while self.done > 1.0 && self.left > 0 {
            let (taken, latents) = (self.block.len() - self.left, self.to.len());
            std::mem::swap(&mut self.from, &mut self.to);
            self.to.copy_from_slice(&self.block[taken..taken + latents]);
            self.left -= latents;
            self.done -= 1.0;
        }
        self.done <= 1.0
    }

    /// Where it is, then on by so many frames.
    fn step(&mut self, frame: &mut [f32], tempo: f32) {
        if self.done == 1.0 {
            // Arrived, whatever rounding would make of it.
            frame.copy_from_slice(&self.to);
        } else {
            for ((value, from), to) in frame.iter_mut().zip(&self.from).zip(&self.to) {
                *value = from + self.done as f32 * (to - from);
            }
        }
        self.done += f64::from(tempo.clamp(SLOWEST, FASTEST));
    }
}

impl Prior {
    /// For a method that makes so many latents a frame, a frame every `ratio` samples, and whose block is `block` samples;
    /// `tempo` is the port of its tempo.
    pub fn new(stage: Stage, tempo: usize, latents: usize, ratio: usize, block: usize, seats: usize) -> Self {
        let path = || Path {
            block: vec![0.0; block / ratio * latents],
            left: 0,
            from: vec![0.0; latents],
            to: vec![0.0; latents],
            done: Path::BEGINNING,
        };
        Self {
            stage,
            tempo,
            latents,
            ratio,
            paths: (0..seats).map(|_| path()).collect(),
            behind: Vec::with_capacity(seats),
        }
    }

    /// A seat is taken anew.
    pub fn open(&mut self, seat: usize, seed: u64) {
        self.stage.open(seat, stream_seed(seed, 2));
        let path = &mut self.paths[seat];
        path.left = 0;
        path.to.fill(0.0);
        path.done = Path::BEGINNING;
    }

    /// Makes the latents of a hop for those seats: `made[seat]` as they are listed, `[frame][latent]`.
    pub fn run(&mut self, lines: &[Line], seats: &[usize], made: &mut [f32]) {
        let Self { stage, tempo, latents, ratio, paths, behind } = self;
        let Some(length) = made.len().checked_div(seats.len()) else { return };
        let frames = length / *latents;
        for frame in 0..frames {
            loop {
                behind.clear();
                behind.extend(seats.iter().filter(|seat| !paths[**seat].catch_up()));
                if behind.is_empty() {
                    break;
                }
                stage.begin_block(lines, behind, frame * *ratio);
                stage.run();
                let blocks = stage.output();
                for (block, &seat) in blocks.chunks_exact(blocks.len() / behind.len()).zip(&*behind) {
                    paths[seat].block.copy_from_slice(block);
                    paths[seat].left = block.len();
                }
            }
            for (row, &seat) in seats.iter().enumerate() {
                let tempo = lines[seat].ports.at(*tempo, frame, frames);
                paths[seat].step(&mut made[row * length + frame * *latents..][..*latents], tempo);
            }
        }
    }

    /// Bytes of weights, states and buffers.
    pub fn bytes(&self) -> usize {
        self.stage.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a path gives that goes along frames 0, 1, 2, … in blocks of `block`.
    fn along(tempos: &[f32], block: usize) -> Vec<f32> {
        let mut path = Path { block: vec![0.0; block], left: 0, from: vec![0.0], to: vec![0.0], done: Path::BEGINNING };
        let mut next = 0.0;
        let step = |tempo: &f32| {
            while !path.catch_up() {
                path.block.iter_mut().for_each(|value| {
                    *value = next;
                    next += 1.0;
                });
                path.left = block;
            }
            let mut frame = [0.0];
            path.step(&mut frame, *tempo);
            frame[0]
        };
        tempos.iter().map(step).collect()
    }

    #[test]
    fn a_path_goes_on_as_fast_as_its_tempo() {
        for block in [1, 2, 5] {
            assert_eq!(along(&[1.0; 6], block), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
            assert_eq!(along(&[0.5; 6], block), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
            assert_eq!(along(&[4.0; 4], block), [0.0, 4.0, 8.0, 12.0]);
            assert_eq!(along(&[1.5, 0.25, 0.25, 1.0, 2.0, 1.0], block), [0.0, 1.5, 1.75, 2.0, 3.0, 5.0]);
            // Nobody goes back, or for ever.
            assert_eq!(along(&[-1.0, 1e9, 1.0], block), [0.0, 0.25, 4.25]);
        }
    }
}
