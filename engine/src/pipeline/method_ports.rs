//! Ports of a model's methods: audio, latents, and inputs that controls feed.

use super::options::InputChannels;
use crate::model::bars::BARS;
use crate::model::{Header, Method, ModelError, Port, limits};

/// Relation of a session's channels to the states of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChannelLayout {
    /// Channels of a session, each a stream of its own: 1 or 2.
    pub channels: usize,
    /// Streams that share a state of the network: 2 for both channels of a stereo session if the
    /// network has several channels, else 1.
    pub joined: usize,
}

impl ChannelLayout {
    /// Chooses the layout for a network with `inputs` and `outputs` channels of audio.
    pub fn new(channels: InputChannels, inputs: usize, outputs: usize) -> Self {
        match channels {
            InputChannels::Mono | InputChannels::Left => Self {
                channels: 1,
                joined: 1,
            },
            InputChannels::Stereo if inputs >= 2 || outputs >= 2 => Self {
                channels: 2,
                joined: 2,
            },
            // Without an input both channels would be equal.
            InputChannels::Stereo if inputs == 0 => Self {
                channels: 1,
                joined: 1,
            },
            InputChannels::Stereo => Self {
                channels: 2,
                joined: 1,
            },
        }
    }
}

/// Returns whether an input receives an output of the method's own.
pub(super) fn is_fed_back(method: &Method, port: &Port) -> bool {
    method
        .fed_back()
        .any(|input| method.inputs[input].name == port.name)
}

/// Returns whether a control or the song feeds an input.
fn is_fed(header: &Header, port: &Port) -> bool {
    port.name == BARS
        || header
            .controls
            .iter()
            .any(|control| control.name == port.name)
}

/// Returns the names of the inputs that controls feed, and the one input that is left.
///
/// # Errors
/// Returns [`ModelError::Header`] unless exactly one input is left, or if a control feeds several
/// channels.
pub(super) fn inputs<'a>(
    header: &Header,
    method: &'a Method,
) -> Result<(Vec<String>, &'a Port), ModelError> {
    let is_fed = |port: &&Port| is_fed(header, port);
    let open = method
        .inputs
        .iter()
        .filter(|port| !is_fed_back(method, port));
    let (fed, left): (Vec<&Port>, Vec<&Port>) = open.partition(is_fed);
    let [main] = left[..] else {
        let count = left.len();
        return Err(header_error(
            method,
            &format!("has {count} inputs that no control feeds; exactly one is needed"),
        ));
    };
    if let Some(wide) = fed.iter().find(|port| port.channels != 1) {
        let (name, channels) = (&wide.name, wide.channels);
        return Err(header_error(
            method,
            &format!("has {channels} channels at control port {name:?}; one is allowed"),
        ));
    }
    Ok((
        fed.into_iter().map(|port| port.name.clone()).collect(),
        main,
    ))
}

/// Returns the names of all inputs of a method that controls alone feed, without those that it
/// feeds itself.
///
/// # Errors
/// Returns [`ModelError::Header`] if no control feeds one of the inputs.
pub(super) fn control_inputs(header: &Header, method: &Method) -> Result<Vec<String>, ModelError> {
    let is_fed = |port: &&Port| port.channels == 1 && is_fed(header, port);
    let open = || {
        method
            .inputs
            .iter()
            .filter(|port| !is_fed_back(method, port))
    };
    match open().find(|port| !is_fed(port)) {
        None => Ok(open().map(|port| port.name.clone()).collect()),
        Some(port) => Err(header_error(
            method,
            &format!("has input {:?}, which no control feeds", port.name),
        )),
    }
}

/// Returns the first output of a method.
///
/// # Errors
/// Returns [`ModelError::Header`] if the method has no output.
pub(super) fn output(method: &Method) -> Result<&Port, ModelError> {
    method
        .outputs
        .first()
        .ok_or_else(|| header_error(method, "has no output"))
}

/// Checks that a port is audio, one frame per sample.
///
/// # Errors
/// Returns [`ModelError::Header`] if the port has another ratio.
pub(super) fn require_audio(method: &Method, port: &Port) -> Result<(), ModelError> {
    if port.ratio == 1 {
        return Ok(());
    }
    Err(header_error(
        method,
        &format!(
            "has ratio {} at audio port {:?}; it must be 1",
            port.ratio, port.name
        ),
    ))
}

/// Returns true if one method's output fits another's input.
pub(super) fn fits(output: &Port, input: &Port) -> bool {
    (output.channels, output.ratio) == (input.channels, input.ratio)
}

/// Returns true if the model's method `prior` can be played: it makes the latents of `decode`, and
/// controls feed all its inputs, but for one that may take latents to listen to.
pub(super) fn has_prior(header: &Header) -> bool {
    let (Some(prior), Some(decode)) = (header.method("prior"), header.method("decode")) else {
        return false;
    };
    let Ok((_, latents)) = inputs(header, decode) else {
        return false;
    };
    output(prior).is_ok_and(|made| is_made(latents, made))
        && prior_inputs(header, prior, latents).is_ok()
}

/// Returns true if the model's prior follows the bars of the song.
pub(super) fn follows_bars(header: &Header) -> bool {
    header
        .method("prior")
        .is_some_and(|prior| prior.inputs.iter().any(|port| port.name == BARS))
}

/// Returns true if the first channels of a prior's output are these latents; further ones, such as
/// the perplexity of `msprior`, are left out.
pub(super) fn is_made(latents: &Port, made: &Port) -> bool {
    made.ratio == latents.ratio && made.channels >= latents.channels
}

/// Returns the names of the inputs of a prior that controls feed, and how many channels it listens
/// to: those of the one input that is left, at the ratio of the latents; 0 without one.
///
/// # Errors
/// Returns [`ModelError::Header`] if another input is left.
pub(super) fn prior_inputs(
    header: &Header,
    prior: &Method,
    latents: &Port,
) -> Result<(Vec<String>, usize), ModelError> {
    match inputs(header, prior) {
        Ok((names, heard)) if heard.ratio == latents.ratio => Ok((names, heard.channels)),
        _ => Ok((control_inputs(header, prior)?, 0)),
    }
}

/// Returns true if a prior has an input for latents of the encoder.
pub(super) fn listens(header: &Header, prior: &Method, latents: &Port) -> bool {
    prior_inputs(header, prior, latents).is_ok_and(|(_, heard)| heard > 0)
}

/// Returns the number of latents of a codec or a generator; 0 for other models.
#[must_use]
pub fn latent_count(header: &Header) -> usize {
    let latents = header
        .method("decode")
        .and_then(|decode| inputs(header, decode).ok());
    latents.map_or(0, |(_, port)| port.channels.min(limits::LATENTS))
}

/// Returns the error that a method `has` something it must not have.
pub(super) fn header_error(method: &Method, text: &str) -> ModelError {
    ModelError::Header(format!("method {:?} {text}", method.name))
}
