//! The kind `codec`: its method `encode` turns the input into latents, which are bent as the session's knobs say, and `decode`
//! turns those into what is heard.
//!
//! A session is mono, as in [`super::effect`].

use std::sync::Arc;

use super::batch::{Batch, Network};
use super::bend::Bend;
use super::controls::{Knob, controls};
use super::line::{Line, Through};
use super::options::{PipelineError, PipelineOptions};
use super::rates::gcd;
use super::stage::{self, Stage, awake};
use crate::dsp::noise::stream_seed;
use crate::model::{Control, Curve, Fault, Header, Model, limits};

/// Ranges of the knobs of a latent.
const SCALE: (f32, f32) = (-4.0, 4.0);
const OFFSET: (f32, f32) = (-4.0, 4.0);

/// How many latents a codec has; 0 where it is none.
#[must_use]
pub fn latents(header: &Header) -> usize {
    let port = header.method("encode").and_then(|encode| encode.outputs.first());
    port.map_or(0, |port| port.channels.min(limits::LATENTS))
}

/// The controls of so many latents: for each, in this order, `latentN.scale`, `latentN.offset` and `latentN.hold`, N from 1.
pub fn latent_controls(latents: usize) -> impl Iterator<Item = Control> {
    (1..=latents).flat_map(|number| {
        let control = |what: &str, (min, max): (f32, f32), default: f32, description: String| Control {
            name: format!("latent{number}.{what}"),
            unit: String::new(),
            min,
            max,
            default,
            curve: Curve::Linear,
            description,
        };
        [
            control("scale", SCALE, 1.0, format!("What latent {number} is multiplied with.")),
            control("offset", OFFSET, 0.0, format!("What is added to latent {number} after that.")),
            control("hold", (0.0, 1.0), 0.0, format!("At 1 latent {number} stays where it was, whatever comes in.")),
        ]
    })
}

/// The methods `encode` and `decode` for all seats, and what is between them.
pub(super) struct Transcoder {
    encode: Stage,
    bend: Bend,
    decode: Stage,
    /// Seats whose network plays in this hop.
    playing: Vec<usize>,
}

/// Makes a codec playable.
pub(super) fn make(model: &Model, options: &PipelineOptions) -> Result<Batch<Line, Transcoder>, PipelineError> {
    let header = model.header();
    let (encode, decode) = (model.method("encode")?, model.method("decode")?);
    let ((encoder_ports, input), (decoder_ports, latents_in)) =
        (stage::inputs(header, encode)?, stage::inputs(header, decode)?);
    let (latents_out, output) = (stage::output(encode)?, stage::output(decode)?);
    stage::audio(encode, input)?;
    stage::audio(decode, output)?;
    if (latents_out.channels, latents_out.ratio) != (latents_in.channels, latents_in.ratio) {
        return Err(Fault::Header(format!(
            "encode makes {} latents at ratio {}, decode takes {} at {}",
            latents_out.channels, latents_out.ratio, latents_in.channels, latents_in.ratio
        ))
        .into());
    }
    Fault::limit("the number of latents", latents_out.channels, limits::LATENTS)?;
    // What both take a whole number of blocks of.
    let hop = encode.block / gcd(encode.block as u64, decode.block as u64) as usize * decode.block;
    Fault::limit("the block of encode and decode together", hop, limits::BLOCK)?;

    let mut names: Vec<String> = latent_controls(latents_out.channels).map(|control| control.name).collect();
    names.extend(encoder_ports.into_iter().chain(decoder_ports));
    let knobs: Arc<[Knob]> = Knob::all(&controls(header), &names).into();
    let delay = encode.latency_samples() + decode.latency_samples();
    let through = Through { sample_rate: header.sample_rate, unit: hop, hop, delay, names: &names, knobs: &knobs };
    let lines: Vec<Line> = (0..options.seats).map(|_| Line::new(&through, options)).collect::<Result<_, _>>()?;
    let stage = |method| Stage::new(model, method, &names, hop, options.kernels, options.seats, 1);
    let transcoder = Transcoder {
        encode: stage(encode)?,
        bend: Bend::new(latents_out.channels, options.seats),
        decode: stage(decode)?,
        playing: Vec::with_capacity(options.seats),
    };
    let tail = encode.tail_samples(header.sample_rate) + decode.tail_samples(header.sample_rate);
    let tail = lines[0].tail_samples(tail);
    Ok(Batch::new(lines, transcoder, options.seed, tail))
}

impl Network<Line> for Transcoder {
    fn open(&mut self, seat: usize, seed: u64) {
        self.encode.open(seat, stream_seed(seed, 0));
        self.decode.open(seat, stream_seed(seed, 1));
        self.bend.open(seat);
    }

    fn hop(&mut self, lines: &mut [Line], ready: &[usize]) {
        let Self { encode, bend, decode, playing } = self;
        awake(lines, ready, playing);
        if playing.is_empty() {
            return;
        }
        encode.begin(lines, playing);
        encode.hear(lines, playing);
        encode.run();
        decode.begin(lines, playing);
        let length = encode.output().len() / playing.len();
        let rows = encode.output().chunks_exact(length).zip(decode.input().chunks_exact_mut(length));
        for ((live, bent), &seat) in rows.zip(&*playing) {
            bend.run(seat, &lines[seat].ports, live, bent);
        }
        decode.run();
        decode.sound(lines, playing);
    }

    fn name(&self) -> String {
        self.encode.name()
    }

    fn bytes(&self) -> usize {
        self.encode.bytes() + self.decode.bytes()
    }

    fn latents(&self, seat: usize) -> &[f32] {
        self.bend.latents(seat)
    }
}
