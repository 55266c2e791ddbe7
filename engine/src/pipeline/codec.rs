//! Codecs and generators: `encode` turns the input into latents, controls change these, and
//! `decode` turns them into the output.
//!
//! A model with a method `prior` makes latents on its own ([`super::prior`]); the control `prior`
//! cross-fades between those of the input and those of the prior. A generator has no input; its
//! encoder, if it has one, is for its training. Channels are as in [`super::effect`]: a stereo
//! session has latents for each channel, or shared ones if the encoder's input or the decoder's
//! output has two channels.

use super::bar_memory::BarMemory;
use super::batch::{BatchNetwork, SessionBatch};
use super::control_ports::{ControlBinding, ControlPorts};
use super::controls::{LISTEN, PRIOR_SHARE, controls, latent_controls, prior_controls};
use super::effect_stream::{EffectStream, EffectStreamConfig, HopStart};
use super::method_ports::{
    ChannelLayout, fits, has_prior, inputs, is_made, listens, output, prior_inputs, require_audio,
};
use super::method_runner::{MethodRunner, RunnerSize, select_active, take_equally_long};
use super::options::{PipelineError, PipelineOptions};
use super::playable::ENDLESS;
use super::prior::{Heard, Prior, PriorPorts, PriorSize};
use super::spread::Spread;
use super::timeline::{CHUNK, gcd};
use crate::dsp::noise::stream_seed;
use crate::executor::Backend;
use crate::model::{Header, Kind, Method, Model, ModelError, Port, limits};

/// The methods of a codec or a generator, checked against each other.
pub(super) struct Methods<'a> {
    encode: Option<&'a Method>,
    prior: Option<&'a Method>,
    decode: &'a Method,
    latents: &'a Port,
    /// Samples per hop: the least common multiple of all blocks.
    hop: usize,
    /// Channels of the encoder's input; 0 without an encoder.
    audio_inputs: usize,
    /// Channels of the decoder's output.
    audio_outputs: usize,
    /// Names of the ports that controls feed; the latents' own come first.
    port_names: Vec<String>,
}

impl<'a> Methods<'a> {
    /// Looks up the methods.
    ///
    /// # Errors
    /// Returns [`ModelError`] if the model lacks what its kind needs.
    pub fn new(model: &'a Model) -> Result<Self, ModelError> {
        let header = model.header();
        let decode = model.method("decode")?;
        let (decoder_ports, latents) = inputs(header, decode)?;
        require_audio(decode, output(decode)?)?;
        let is_codec = header.kind == Kind::Codec;
        let prior = if !is_codec || has_prior(header) {
            Some(model.method("prior")?)
        } else {
            None
        };
        let encode = if is_codec {
            Some(model.method("encode")?)
        } else {
            header
                .method("encode")
                .filter(|_| prior.is_some_and(|prior| listens(header, prior, latents)))
        };
        let mut hop = decode.block;
        for method in [encode, prior].into_iter().flatten() {
            let made = output(method)?;
            let is_prior = prior.is_some_and(|prior| std::ptr::eq(method, prior));
            if !(fits(made, latents) || is_prior && is_made(latents, made)) {
                return Err(ModelError::Header(format!(
                    "{} makes {} latents at ratio {}, decode takes {} at {}",
                    method.name, made.channels, made.ratio, latents.channels, latents.ratio
                )));
            }
            hop = hop / gcd(hop as u64, method.block as u64) as usize * method.block;
        }
        ModelError::limit("the number of latents", latents.channels, limits::LATENTS)?;
        ModelError::limit("the block of all methods together", hop, limits::BLOCK)?;
        let port_names = port_names(header, latents, [encode, prior], decoder_ports)?;
        let audio_inputs = encode
            .map(|encode| inputs(header, encode))
            .transpose()?
            .map_or(0, |(_, port)| port.channels);
        let audio_outputs = output(decode)?.channels;
        Ok(Self {
            encode,
            prior,
            decode,
            latents,
            hop,
            audio_inputs,
            audio_outputs,
            port_names,
        })
    }

    /// Returns how many hops one step may process. Steps of a program and of a prior are single
    /// hops, on whose number their noise and their controls depend.
    fn hops(
        &self,
        model: &Model,
        options: &PipelineOptions,
        streams: usize,
    ) -> Result<usize, ModelError> {
        let is_torch = model.program().is_some() || options.executor.backend == Backend::Torch;
        if is_torch || self.prior.is_some() {
            return Ok(1);
        }
        let mut hops = (MAX_STEP / self.hop).max(1);
        for method in self.encode.into_iter().chain([self.decode]) {
            let shapes = method.infer()?;
            let values =
                |hops| method.held_values(&shapes, streams, hops * self.hop / method.block);
            while hops > 1 && values(hops) > limits::EXECUTOR_VALUES {
                hops -= 1;
            }
        }
        Ok(hops)
    }

    fn port(&self, name: &str) -> Option<usize> {
        self.port_names.iter().position(|port| port == name)
    }
}

/// Lists the names of all ports that controls feed: those of the latents, of the encoder, the prior
/// and the decoder.
fn port_names(
    header: &Header,
    latents: &Port,
    [encode, prior]: [Option<&Method>; 2],
    decoder_ports: Vec<String>,
) -> Result<Vec<String>, ModelError> {
    let mut names: Vec<String> = latent_controls(latents.channels)
        .map(|control| control.name)
        .collect();
    if let Some(encode) = encode {
        let (ports, input) = inputs(header, encode)?;
        require_audio(encode, input)?;
        names.extend(ports);
    }
    if let Some(prior) = prior {
        names.extend(prior_inputs(header, prior, latents)?.0);
    }
    names.extend(decoder_ports);
    names.extend(
        prior_controls(header)
            .into_iter()
            .map(|control| control.name),
    );
    Ok(names)
}

/// The methods `encode`, `prior` and `decode` for all streams, and the latents between them.
pub(super) struct CodecNetwork {
    encode: Option<MethodRunner>,
    prior: Option<Prior>,
    /// Port of the control that cross-fades from the encoder's latents to the prior's; `None` if
    /// only one of them plays.
    share_port: Option<usize>,
    /// Port of the control without which the encoder of a generator is not run.
    listen_port: Option<usize>,
    /// Latents of one stream before the transform, `[frame][latent]`.
    latents: Vec<f32>,
    /// Values of these per hop.
    hop_latents: usize,
    transform: LatentTransform,
    decode: MethodRunner,
    /// States that are not muted in this hop, by their first streams.
    active: Vec<usize>,
    /// Those of them whose pieces are equally long; the streams of the step that is spread.
    group: Vec<usize>,
    /// Those of `group` that the encoder runs for.
    hearing: Vec<usize>,
    /// Progress of the step, if steps are spread over host blocks.
    spread: Option<Spread>,
    /// Layers of the encoder, then of the prior, which come first in a step that is spread.
    first_layers: [usize; 2],
}

/// Returns the samples of a step of a codec or a generator, and its multiply-adds per second,
/// without those of an encoder that a generator listens with.
pub(crate) fn codec_steps(model: &Model) -> Option<(usize, f64)> {
    let header = model.header();
    if !matches!(header.kind, Kind::Codec | Kind::Generator) {
        return None;
    }
    let methods = Methods::new(model).ok()?;
    let encode = methods.encode.filter(|_| header.kind == Kind::Codec);
    let all = encode
        .into_iter()
        .chain(methods.prior)
        .chain([methods.decode]);
    Some((
        methods.hop,
        all.map(|method| method.multiply_adds_per_second(header.sample_rate))
            .sum(),
    ))
}

/// Most samples of several hops that one step processes: a model with short blocks reads its
/// weights once for all of them where host blocks are long.
const MAX_STEP: usize = CHUNK;

/// Makes a codec or a generator playable.
///
/// # Errors
/// Returns [`PipelineError`] if the model lacks what its kind needs, or the options do not fit it.
pub(super) fn build(
    model: &Model,
    options: &PipelineOptions,
) -> Result<SessionBatch<EffectStream, CodecNetwork>, PipelineError> {
    let header = model.header();
    let methods = Methods::new(model)?;
    let Methods {
        encode,
        prior,
        decode,
        latents,
        hop,
        ..
    } = methods;
    let is_generator = header.kind == Kind::Generator;
    // A generator makes one sound, and hears both channels together.
    let inputs = if is_generator {
        0
    } else {
        methods.audio_inputs
    };
    let layout = ChannelLayout::new(options.channels, inputs, methods.audio_outputs);
    let count = options.sessions * layout.channels;
    let is_native = model.program().is_none() && options.executor.backend != Backend::Torch;
    let is_spread = options.spread && options.sessions == 1 && is_native;
    let hops = if is_spread {
        1
    } else {
        methods.hops(model, options, count)?
    };
    let first =
        if is_generator { prior } else { encode }.map_or(0, |method| model.latency_samples(method));
    let (start, spread_delay) = match (is_generator, is_spread) {
        (false, false) => (HopStart::WithInput, 0),
        (false, true) => (HopStart::WithInput, hop),
        (true, false) => (HopStart::FirstSample, 0),
        (true, true) => (HopStart::Ahead, 0),
    };
    let config = EffectStreamConfig {
        sample_rate: header.sample_rate,
        block: hop,
        start,
        hop,
        hops,
        delay: first + model.latency_samples(decode) + spread_delay,
        port_names: &methods.port_names,
        bindings: &ControlBinding::all(&controls(header), &methods.port_names),
    };
    let streams = EffectStream::several(&config, options, count)?;
    let runner = |method: &Method, step| {
        let size = RunnerSize {
            streams: count,
            joined: layout.joined,
            step,
            oversampling: 1,
        };
        MethodRunner::new(
            model,
            method,
            &methods.port_names,
            options.executor_options(),
            size,
        )
    };
    let hop_latents = hop / latents.ratio * latents.channels;
    let prior_runner = prior.map(|method| {
        let (_, heard) = prior_inputs(header, method, latents)?;
        let runner = runner(method, method.block)?;
        let size = PriorSize {
            heard,
            block: method.block,
            hop,
            streams: count,
            sample_rate: header.sample_rate,
        };
        Ok::<_, ModelError>(Prior::new(
            runner,
            BarMemory::new(method, header.sample_rate, count)?,
            PriorPorts::new(|name| methods.port(name)),
            latents,
            size,
        ))
    });
    let mut network = CodecNetwork {
        encode: encode
            .map(|method| runner(method, hops * hop))
            .transpose()?,
        prior: prior_runner.transpose()?,
        share_port: if encode.is_some() && prior.is_some() {
            methods.port(PRIOR_SHARE)
        } else {
            None
        },
        listen_port: if is_generator {
            methods.port(LISTEN)
        } else {
            None
        },
        latents: vec![0.0; hops * hop_latents],
        hop_latents,
        transform: LatentTransform::new(latents.channels, count),
        decode: runner(decode, hops * hop)?,
        active: Vec::with_capacity(count),
        group: Vec::with_capacity(count),
        hearing: Vec::with_capacity(count),
        spread: None,
        first_layers: [0; 2],
    };
    if is_spread {
        network.measure(hop);
    }
    let tail = encode.map_or(0, |encode| model.tail_samples(encode)) + model.tail_samples(decode);
    let tail = if is_generator {
        ENDLESS
    } else {
        streams[0].tail_samples(tail)
    };
    Ok(SessionBatch::new(
        streams,
        layout.channels,
        network,
        options.seed,
        tail,
    ))
}

impl BatchNetwork<EffectStream> for CodecNetwork {
    fn open(&mut self, stream: usize, seed: u64) {
        if let Some(encode) = &mut self.encode {
            encode.open(stream, stream_seed(seed, 0));
        }
        self.decode.open(stream, stream_seed(seed, 1));
        if let Some(prior) = &mut self.prior {
            prior.open(stream, seed);
        }
        self.transform.open(stream);
        if let Some(spread) = &mut self.spread {
            spread.reset();
            self.group.clear();
        }
    }

    fn advance(&mut self, streams: &mut [EffectStream]) {
        while let Some(layer) = self
            .spread
            .as_mut()
            .and_then(|spread| spread.next_due(streams[0].hop_share()))
        {
            self.run_layer(streams, layer);
        }
    }

    fn process_hop(&mut self, streams: &mut [EffectStream], ready: &[usize]) {
        if self.spread.is_some() {
            self.begin_spread(streams, ready);
            return;
        }
        select_active(streams, ready, self.decode.joined(), &mut self.active);
        while !self.active.is_empty() {
            take_equally_long(streams, &mut self.active, &mut self.group);
            self.process_group(streams);
        }
    }

    fn name(&self) -> String {
        self.decode.name()
    }

    fn bytes(&self) -> usize {
        let encode = self.encode.as_ref().map_or(0, MethodRunner::bytes);
        encode + self.prior.as_ref().map_or(0, Prior::bytes) + self.decode.bytes()
    }

    fn may_allocate(&self) -> bool {
        self.decode.may_allocate()
    }

    fn latents(&self, stream: usize) -> &[f32] {
        self.transform.latents(stream)
    }
}

impl CodecNetwork {
    /// Prepares steps that are spread, of `hop` samples.
    fn measure(&mut self, hop: usize) {
        let mut times = self
            .encode
            .as_mut()
            .map_or_else(Vec::new, |encode| encode.layer_times(hop));
        let encoder_layers = times.len();
        times.extend(
            self.prior
                .as_mut()
                .map_or_else(Vec::new, Prior::layer_times),
        );
        self.first_layers = [encoder_layers, times.len() - encoder_layers];
        times.extend(self.decode.layer_times(hop));
        self.spread = Some(Spread::new(&times));
    }

    /// Begins a step for the `ready` streams, whose sound is that of the last step.
    fn begin_spread(&mut self, streams: &mut [EffectStream], ready: &[usize]) {
        if self.group.is_empty() {
            ready
                .iter()
                .for_each(|&stream| streams[stream].timeline.sound.fill(0.0));
        }
        let joined = self.decode.joined();
        self.group.clear();
        self.group.extend(
            ready
                .iter()
                .filter(|&&slot| slot.is_multiple_of(joined) && !streams[slot].is_silent()),
        );
        if !self.group.is_empty() {
            self.begin(streams);
            let first = if self.hearing.is_empty() {
                self.first_layers[0]
            } else {
                0
            };
            self.spread
                .as_mut()
                .expect("the step is spread")
                .begin(first);
        }
    }

    /// Computes a layer of a step that is spread: those of the encoder, the prior and the decoder
    /// in order.
    fn run_layer(&mut self, streams: &mut [EffectStream], layer: usize) {
        let [encoder_layers, prior_layers] = self.first_layers;
        if let (Some(encode), true) = (&mut self.encode, layer < encoder_layers) {
            encode.run_layer(layer);
            return;
        }
        let layer = layer - encoder_layers;
        if let (Some(prior), true) = (&mut self.prior, layer < prior_layers) {
            prior.run_layer(streams, heard(self.encode.as_ref(), &self.hearing), layer);
            return;
        }
        let layer = layer - prior_layers;
        if layer == 0 {
            self.transform_latents(streams);
        }
        self.decode.run_layer(layer);
        if layer + 1 == self.decode.layers() {
            self.take_sound(streams);
        }
    }

    /// Begins a step for the streams in `group`.
    fn begin(&mut self, streams: &[EffectStream]) {
        let Self {
            encode,
            prior,
            listen_port,
            share_port,
            group,
            hearing,
            ..
        } = self;
        hearing.clear();
        let hears =
            |slot: &&usize| listen_port.is_none_or(|port| streams[**slot].ports.end(port) > 0.0);
        hearing.extend(group.iter().filter(hears));
        if let Some(encode) = encode.as_mut().filter(|_| !hearing.is_empty()) {
            encode.begin(streams, hearing);
            encode.copy_input(streams, hearing);
        }
        if let Some(prior) = prior {
            // It runs only for streams that use it.
            let uses =
                |slot: &usize| share_port.is_none_or(|port| streams[*slot].ports.end(port) > 0.0);
            prior.begin_hop(streams, group.iter().copied().filter(uses));
        }
        self.decode.begin(streams, &self.group);
    }

    /// Computes the pieces of the streams in `group`.
    fn process_group(&mut self, streams: &mut [EffectStream]) {
        self.begin(streams);
        if let Some(encode) = self.encode.as_mut().filter(|_| !self.hearing.is_empty()) {
            encode.run();
        }
        self.transform_latents(streams);
        self.decode.run();
        self.take_sound(streams);
    }

    /// Gives the sound to the streams in `group`.
    fn take_sound(&mut self, streams: &mut [EffectStream]) {
        self.decode.copy_output(streams, &self.group);
        let joined = self.decode.joined();
        self.group
            .iter()
            .flat_map(|first| *first..first + joined)
            .for_each(|stream| streams[stream].apply_gate());
    }

    /// Makes the latents of the streams in `group` from those of the encoder and the prior.
    fn transform_latents(&mut self, streams: &[EffectStream]) {
        let Self {
            encode,
            prior,
            share_port,
            transform,
            decode,
            group: active,
            hearing,
            ..
        } = self;
        let (piece, hop) = (streams[active[0]].piece.len(), streams[active[0]].hop);
        let latents = &mut self.latents[..piece / hop * self.hop_latents];
        let length = latents.len();
        if let Some(prior) = prior {
            prior.finish(streams, heard(encode.as_ref(), hearing));
        }
        // A generator's own encoder is not heard itself.
        let encode = encode
            .as_ref()
            .filter(|_| prior.is_none() || share_port.is_some());
        for (row, (transformed, &slot)) in decode
            .input()
            .chunks_exact_mut(length)
            .zip(&*active)
            .enumerate()
        {
            let range = row * length..(row + 1) * length;
            let stream = &streams[slot];
            match (encode, prior.as_ref().and_then(|prior| prior.latents(slot))) {
                (Some(encode), None) => latents.copy_from_slice(&encode.output()[range]),
                (None, Some(from_prior)) => latents.copy_from_slice(from_prior),
                (Some(encode), Some(from_prior)) => {
                    let share = share_port.map_or(1.0, |port| stream.ports.end(port));
                    let both = encode.output()[range].iter().zip(from_prior);
                    for (latent, (encoded, from_prior)) in latents.iter_mut().zip(both) {
                        *latent = encoded + share * (from_prior - encoded);
                    }
                }
                (None, None) => latents.fill(0.0),
            }
            transform.run(slot, &stream.ports, latents, transformed, self.hop_latents);
        }
    }
}

/// Returns what the encoder has made for the streams that it ran for.
fn heard<'a>(encode: Option<&'a MethodRunner>, hearing: &'a [usize]) -> Option<Heard<'a>> {
    let encode = encode.filter(|_| !hearing.is_empty())?;
    Some(Heard {
        slots: hearing,
        latents: encode.output(),
    })
}

/// Controls per latent: latent `i` has ports `3 i` (scale), `3 i + 1` (offset) and `3 i + 2`
/// (hold).
const LATENT_PORTS: usize = 3;

/// Scales, offsets and holds the latents of all streams.
struct LatentTransform {
    count: usize,
    /// `[stream][latent]`: the value that a hold freezes; `None` before the first frame.
    held: Vec<Option<f32>>,
    /// `[stream][latent]`: the last transformed value.
    last: Vec<f32>,
}

impl LatentTransform {
    fn new(count: usize, streams: usize) -> Self {
        Self {
            count,
            held: vec![None; count * streams],
            last: vec![0.0; count * streams],
        }
    }

    fn open(&mut self, slot: usize) {
        let range = slot * self.count..(slot + 1) * self.count;
        self.held[range.clone()].fill(None);
        self.last[range].fill(0.0);
    }

    fn latents(&self, slot: usize) -> &[f32] {
        &self.last[slot * self.count..][..self.count]
    }

    /// Transforms the latents of a piece, `[frame][latent]`, of which a hop has `per_hop`.
    fn run(
        &mut self,
        slot: usize,
        ports: &ControlPorts,
        latents: &[f32],
        transformed: &mut [f32],
        per_hop: usize,
    ) {
        let frames = per_hop / self.count;
        let held = &mut self.held[slot * self.count..][..self.count];
        let rows = latents
            .chunks_exact(self.count)
            .zip(transformed.chunks_exact_mut(self.count));
        for (frame, (latents, transformed)) in rows.enumerate() {
            for (index, ((&latent, transformed), held)) in
                latents.iter().zip(transformed).zip(&mut *held).enumerate()
            {
                let control =
                    |number: usize| ports.at(LATENT_PORTS * index + number, frame, frames);
                let (scale, offset, hold) = (control(0), control(1), control(2));
                let frozen = if hold == 0.0 {
                    latent
                } else {
                    held.unwrap_or(latent)
                };
                *held = Some(frozen);
                // A full hold is exact: the interpolation below would change the last digit.
                let value = if hold >= 1.0 {
                    frozen
                } else {
                    latent + hold * (frozen - latent)
                };
                *transformed = scale * value + offset;
            }
        }
        if let Some(last) = transformed.chunks_exact(self.count).next_back() {
            self.last[slot * self.count..][..self.count].copy_from_slice(last);
        }
    }
}
