//! The kind `codec`: its method `encode` turns the input into latents, which are bent as the session's knobs say, and `decode`
//! turns those into what is heard. Where it has a method `prior`, which makes latents on its own ([`super::prior`]), the knob
//! `prior` goes from those of the input to those. The kind `generator` has nothing else than these.
//!
//! A session is mono, as in [`super::effect`].

use std::sync::Arc;

use super::batch::{Batch, Network};
use super::bend::Bend;
use super::controls::{Knob, controls};
use super::line::{Line, Through};
use super::options::{PipelineError, PipelineOptions};
use super::prior::{self, Prior, fits};
use super::rates::gcd;
use super::stage::{self, Stage, awake};
use crate::dsp::noise::stream_seed;
use crate::model::{Control, Curve, Fault, Header, Kind, Model, limits};

/// Ranges of the knobs of a latent.
const SCALE: (f32, f32) = (-4.0, 4.0);
const OFFSET: (f32, f32) = (-4.0, 4.0);

/// How many latents a codec or a generator has; 0 where it is neither.
#[must_use]
pub fn latents(header: &Header) -> usize {
    let maker = header.method("encode").or_else(|| header.method("prior"));
    let port = maker.and_then(|method| method.outputs.first());
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

/// The methods `encode`, `prior` and `decode` for all seats, and what is between them.
pub(super) struct Transcoder {
    encode: Option<Stage>,
    prior: Option<Prior>,
    /// The port of the knob between both.
    between: Option<usize>,
    /// Seats whose prior is heard in this hop, and what it made for them, `[seat][frame][latent]`.
    wanted: Vec<usize>,
    made: Vec<f32>,
    /// Latents of one seat, `[frame][latent]`, on their way.
    live: Vec<f32>,
    bend: Bend,
    decode: Stage,
    /// Seats whose network plays in this hop.
    playing: Vec<usize>,
}

/// Makes a codec or a generator playable.
pub(super) fn make(model: &Model, options: &PipelineOptions) -> Result<Batch<Line, Transcoder>, PipelineError> {
    let header = model.header();
    let decode = model.method("decode")?;
    let (decoder_ports, latents_in) = stage::inputs(header, decode)?;
    stage::audio(decode, stage::output(decode)?)?;
    let encode = if header.kind == Kind::Codec { Some(model.method("encode")?) } else { None };
    let prior = if encode.is_none() || prior::is_playable(header) { Some(model.method("prior")?) } else { None };
    let controls = controls(header);
    let mut names: Vec<String> = latent_controls(latents_in.channels).map(|control| control.name).collect();
    // What all take a whole number of blocks of.
    let mut hop = decode.block;
    for method in [encode, prior].into_iter().flatten() {
        let latents_out = stage::output(method)?;
        if !fits(latents_out, latents_in) {
            return Err(Fault::Header(format!(
                "{} makes {} latents at ratio {}, decode takes {} at {}",
                method.name, latents_out.channels, latents_out.ratio, latents_in.channels, latents_in.ratio
            ))
            .into());
        }
        hop = hop / gcd(hop as u64, method.block as u64) as usize * method.block;
    }
    Fault::limit("the number of latents", latents_in.channels, limits::LATENTS)?;
    Fault::limit("the block of all methods together", hop, limits::BLOCK)?;
    if let Some(encode) = encode {
        let (ports, input) = stage::inputs(header, encode)?;
        stage::audio(encode, input)?;
        names.extend(ports);
    }
    if let Some(prior) = prior {
        names.extend(stage::all_fed(header, prior)?);
    }
    names.extend(decoder_ports);
    names.extend(prior::controls(header).map(|control| control.name));
    let named = |wanted: &str| names.iter().position(|name| name == wanted);
    let between = if encode.is_some() && prior.is_some() { named(prior::SHARE) } else { None };
    let knobs: Arc<[Knob]> = Knob::all(&controls, &names).into();
    let first = encode.or(prior).map_or(0, |method| model.latency_samples(method));
    let delay = first + model.latency_samples(decode);
    let through = Through { sample_rate: header.sample_rate, unit: hop, hop, delay, names: &names, knobs: &knobs };
    let lines: Vec<Line> = (0..options.seats).map(|_| Line::new(&through, options)).collect::<Result<_, _>>()?;
    let stage = |method| Stage::new(model, method, &names, hop, options.running(), options.seats, 1);
    let prior = prior.map(|method| {
        let tempo = named(prior::TEMPO).unwrap_or_default();
        let stage = Stage::new(model, method, &names, method.block, options.running(), options.seats, 1)?;
        Ok::<_, Fault>(Prior::new(stage, tempo, latents_in.channels, latents_in.ratio, method.block, options.seats))
    });
    let of_hop = hop / latents_in.ratio * latents_in.channels;
    let transcoder = Transcoder {
        encode: encode.map(stage).transpose()?,
        made: vec![0.0; if prior.is_some() { of_hop * options.seats } else { 0 }],
        prior: prior.transpose()?,
        between,
        wanted: Vec::with_capacity(options.seats),
        live: vec![0.0; of_hop],
        bend: Bend::new(latents_in.channels, options.seats),
        decode: stage(decode)?,
        playing: Vec::with_capacity(options.seats),
    };
    let tail = encode.map_or(0, |encode| model.tail_samples(encode)) + model.tail_samples(decode);
    let tail = lines[0].tail_samples(tail);
    Ok(Batch::new(lines, transcoder, options.seed, tail))
}

impl Network<Line> for Transcoder {
    fn open(&mut self, seat: usize, seed: u64) {
        if let Some(encode) = &mut self.encode {
            encode.open(seat, stream_seed(seed, 0));
        }
        self.decode.open(seat, stream_seed(seed, 1));
        if let Some(prior) = &mut self.prior {
            prior.open(seat, seed);
        }
        self.bend.open(seat);
    }

    fn hop(&mut self, lines: &mut [Line], ready: &[usize]) {
        let Self { encode, prior, between, wanted, made, live, bend, decode, playing } = self;
        awake(lines, ready, playing);
        if playing.is_empty() {
            return;
        }
        if let Some(encode) = encode.as_mut() {
            encode.begin(lines, playing);
            encode.hear(lines, playing);
            encode.run();
        }
        // A prior that nobody wants to hear waits.
        let share = |line: &Line| between.map_or(1.0, |port| line.ports.end(port));
        let length = live.len();
        wanted.clear();
        if let Some(prior) = prior {
            wanted.extend(playing.iter().filter(|seat| share(&lines[**seat]) > 0.0));
            prior.run(lines, wanted, &mut made[..wanted.len() * length]);
        }
        let mut made = wanted.iter().zip(made.chunks_exact(length)).peekable();
        decode.begin(lines, playing);
        for (row, (bent, &seat)) in decode.input().chunks_exact_mut(length).zip(&*playing).enumerate() {
            let its = row * length..(row + 1) * length;
            let line = &lines[seat];
            let made = made.next_if(|(wanted, _)| **wanted == seat).map(|(_, made)| made);
            match (encode.as_ref(), made) {
                (Some(heard), None) => live.copy_from_slice(&heard.output()[its]),
                (None, Some(made)) => live.copy_from_slice(made),
                (Some(heard), Some(made)) => {
                    let share = share(line);
                    let both = heard.output()[its].iter().zip(made);
                    live.iter_mut().zip(both).for_each(|(live, (heard, made))| *live = heard + share * (made - heard));
                }
                (None, None) => live.fill(0.0),
            }
            bend.run(seat, &line.ports, live, bent);
        }
        decode.run();
        decode.sound(lines, playing);
    }

    fn name(&self) -> String {
        self.decode.name()
    }

    fn bytes(&self) -> usize {
        let encode = self.encode.as_ref().map_or(0, Stage::bytes);
        encode + self.prior.as_ref().map_or(0, Prior::bytes) + self.decode.bytes()
    }

    fn may_allocate(&self) -> bool {
        self.decode.may_allocate()
    }

    fn latents(&self, seat: usize) -> &[f32] {
        self.bend.latents(seat)
    }
}
