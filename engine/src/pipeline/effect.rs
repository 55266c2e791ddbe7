//! The kind `effect`: its method `forward` turns the input into what is heard, or one of its variants does.
//!
//! A session is mono: all channels of the method's input hear the same, and the mean of those that come out is heard.
//!
//! Oversampled, the network hears the even samples of a sound at twice its rate, and another state of it the odd ones; so it is
//! the same network at that rate, with all its delays in seconds as they were.

use std::sync::Arc;

use super::batch::{Batch, Network};
use super::controls::Knob;
use super::line::{Line, Through};
use super::options::{PipelineError, PipelineOptions};
use super::stage::{self, Stage, awake};
use crate::dsp::noise::stream_seed;
use crate::model::Model;

/// The method `forward`, or a variant of it, for all seats.
pub(super) struct Forward {
    stage: Stage,
    /// Seats whose network plays in this hop.
    playing: Vec<usize>,
    /// Those of them whose pieces are equally long.
    alike: Vec<usize>,
}

/// How often knobs are looked at, at least, in samples: as much as is worth being computed at a time.
const HOP: usize = 64;

/// Makes an effect playable.
pub(super) fn make(model: &Model, options: &PipelineOptions) -> Result<Batch<Line, Forward>, PipelineError> {
    let header = model.header();
    let method = model.method(options.variant(header)?.map_or("forward", |variant| variant.method.as_str()))?;
    let (names, input) = stage::inputs(header, method)?;
    stage::audio(method, input)?;
    stage::audio(method, stage::output(method)?)?;
    let factor = options.oversampling;
    if ![1, 2, 4].contains(&factor) {
        return Err(PipelineError::Oversampling(factor));
    }
    let hop = HOP.next_multiple_of(method.block);
    let stage = Stage::new(model, method, &names, hop, options.running(), options.seats, factor)?;
    let knobs: Arc<[Knob]> = Knob::all(&header.controls, &names).into();
    let through = Through {
        sample_rate: header.sample_rate,
        unit: method.block,
        hop,
        delay: model.latency_samples(method) + stage.latency_samples(),
        names: &names,
        knobs: &knobs,
    };
    let lines: Vec<Line> = (0..options.seats).map(|_| Line::new(&through, options)).collect::<Result<_, _>>()?;
    // The filters are symmetric: what is before their middle is behind it, too.
    let tail = lines[0].tail_samples(model.tail_samples(method) + stage.latency_samples());
    let seats = || Vec::with_capacity(options.seats);
    let forward = Forward { stage, playing: seats(), alike: seats() };
    Ok(Batch::new(lines, forward, options.seed, tail))
}

impl Network<Line> for Forward {
    fn open(&mut self, seat: usize, seed: u64) {
        self.stage.open(seat, stream_seed(seed, 0));
    }

    fn hop(&mut self, lines: &mut [Line], ready: &[usize]) {
        let Self { stage, playing, alike } = self;
        awake(lines, ready, playing);
        while let Some(&first) = playing.first() {
            let length = lines[first].piece.len();
            alike.clear();
            playing.retain(|&seat| {
                let is_alike = lines[seat].piece.len() == length;
                if is_alike {
                    alike.push(seat);
                }
                !is_alike
            });
            stage.begin(lines, alike);
            stage.hear(lines, alike);
            stage.run();
            stage.sound(lines, alike);
        }
    }

    fn name(&self) -> String {
        self.stage.name()
    }

    fn bytes(&self) -> usize {
        self.stage.bytes()
    }

    fn may_allocate(&self) -> bool {
        self.stage.may_allocate()
    }
}

#[cfg(test)]
mod tests;
