//! The kind `codec`: its method `encode` turns the input into latents, which are bent as the session's knobs say, and `decode`
//! turns those into what is heard. Where it has a method `prior`, which makes latents on its own, the knob `prior` goes from those of
//! the input to those. The kind `generator` has nothing else than these.
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
use crate::model::{Control, Curve, Fault, Header, Kind, Model, Port, limits};

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

/// The knob of a codec that has a prior: where its latents come from.
const PRIOR: &str = "prior";

/// The control that goes from the latents of the input to those of the prior; none where there is only one of them.
pub(super) fn prior_control(header: &Header) -> Option<Control> {
    let both = header.method("encode").is_some() && has_prior(header);
    both.then(|| Control {
        name: PRIOR.into(),
        unit: String::new(),
        min: 0.0,
        max: 1.0,
        default: 0.0,
        curve: Curve::Linear,
        description: "At 0 latents come from the input, at 1 from the model's own prior.".into(),
    })
}

/// Whether a model has a prior that can be played: one whose latents are those of `decode` and whose inputs controls feed.
fn has_prior(header: &Header) -> bool {
    let (Some(prior), Some(decode)) = (header.method("prior"), header.method("decode")) else { return false };
    let into = stage::inputs(header, decode).map(|(_, port)| port);
    let fits = stage::output(prior).ok().zip(into.ok()).is_some_and(|(out, into)| fits(out, into));
    fits && stage::all_fed(header, prior).is_ok()
}

fn fits(out: &Port, into: &Port) -> bool {
    (out.channels, out.ratio) == (into.channels, into.ratio)
}

/// The methods `encode`, `prior` and `decode` for all seats, and what is between them.
pub(super) struct Transcoder {
    encode: Option<Stage>,
    prior: Option<Stage>,
    /// The port of the knob between both.
    between: Option<usize>,
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
    let prior = if encode.is_none() || has_prior(header) { Some(model.method("prior")?) } else { None };
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
    let between = prior_control(header).map(|control| {
        names.push(control.name);
        names.len() - 1
    });
    let knobs: Arc<[Knob]> = Knob::all(&controls, &names).into();
    let first = encode.or(prior).map_or(0, |method| model.latency_samples(method));
    let delay = first + model.latency_samples(decode);
    let through = Through { sample_rate: header.sample_rate, unit: hop, hop, delay, names: &names, knobs: &knobs };
    let lines: Vec<Line> = (0..options.seats).map(|_| Line::new(&through, options)).collect::<Result<_, _>>()?;
    let stage = |method| Stage::new(model, method, &names, hop, options.running(), options.seats, 1);
    let transcoder = Transcoder {
        encode: encode.map(stage).transpose()?,
        prior: prior.map(stage).transpose()?,
        between,
        live: vec![0.0; hop / latents_in.ratio * latents_in.channels],
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
            prior.open(seat, stream_seed(seed, 2));
        }
        self.bend.open(seat);
    }

    fn hop(&mut self, lines: &mut [Line], ready: &[usize]) {
        let Self { encode, prior, between, live, bend, decode, playing } = self;
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
        let prior = prior.as_mut().filter(|_| playing.iter().any(|&seat| share(&lines[seat]) > 0.0));
        let prior = prior.map(|prior| {
            prior.begin(lines, playing);
            prior.run();
            &*prior
        });
        decode.begin(lines, playing);
        let length = live.len();
        for (row, (bent, &seat)) in decode.input().chunks_exact_mut(length).zip(&*playing).enumerate() {
            let its = row * length..(row + 1) * length;
            let line = &lines[seat];
            match (encode.as_ref(), prior) {
                (Some(heard), None) => live.copy_from_slice(&heard.output()[its.clone()]),
                (None, Some(made)) => live.copy_from_slice(&made.output()[its.clone()]),
                (Some(heard), Some(made)) => {
                    let share = share(line);
                    let both = heard.output()[its.clone()].iter().zip(&made.output()[its.clone()]);
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
        let others = [&self.encode, &self.prior].into_iter().flatten().map(Stage::bytes).sum::<usize>();
        others + self.decode.bytes()
    }

    fn may_allocate(&self) -> bool {
        self.decode.may_allocate()
    }

    fn latents(&self, seat: usize) -> &[f32] {
        self.bend.latents(seat)
    }
}
