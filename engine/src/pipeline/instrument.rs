//! The kind `instrument`: its method `synth` is played by notes, or by the pitch and loudness of a sound; `room` is around it. A
//! variant takes the place of both.

use std::sync::Arc;

use super::batch::Batch;
use super::controls::Knob;
use super::options::{PipelineError, PipelineOptions};
use super::part::Part;
use super::synthesis::{Synthesis, further_ports};
use crate::model::{Model, Op};

/// Makes an instrument playable.
pub(super) fn make(model: &Model, options: &PipelineOptions) -> Result<Batch<Part, Synthesis>, PipelineError> {
    let header = model.header();
    let variant = options.variant(header)?;
    let synth = model.method(variant.map_or("synth", |variant| variant.method.as_str()))?;
    let room = variant.and_then(|variant| variant.room.as_deref()).unwrap_or("room");
    let ports = further_ports(synth);
    let knobs: Arc<[Knob]> = Knob::all(&header.controls, &ports).into();
    let part = |_| Part::new(header, synth, &ports, &knobs, options);
    let parts: Vec<Part> = (0..options.seats).map(part).collect::<Result<_, _>>()?;
    let room = header.method(room);
    let taps = room.map_or(0, |room| {
        let taps = room.nodes.iter().map(|node| if let Op::Convolve { taps } = node.op { taps } else { 0 });
        taps.sum()
    });
    let synthesis = Synthesis::new(model, (synth, room), options.kernels, options.seats, parts[0].slots())?;
    let tail = parts[0].stream.to_host_samples(taps);
    Ok(Batch::new(parts, synthesis, options.seed, tail))
}
