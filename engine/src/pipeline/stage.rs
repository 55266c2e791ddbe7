//! One method of a model that sound goes through, at work for all lines in one batch.

use ondes_kernels::Kernels;

use super::line::Line;
use crate::model::{Fault, Header, Method, Model, Port};
use crate::native::Executor;

/// A method, what goes in, and what its controls feed.
pub(super) struct Stage {
    executor: Executor,
    /// The input that no control feeds.
    main: usize,
    /// The others.
    fed: Vec<Fed>,
    /// Samples of the method's block.
    block: usize,
    /// Channels of the main input and of the first output.
    channels: (usize, usize),
}

/// An input and the port of [`super::ports::Ports`] that feeds it.
struct Fed {
    input: usize,
    port: usize,
    ratio: usize,
}

/// The inputs of a method that controls feed, by name, and the one that is left.
///
/// # Errors
/// [`Fault::Header`] when not exactly one is left.
pub(super) fn inputs<'a>(header: &Header, method: &'a Method) -> Result<(Vec<String>, &'a Port), Fault> {
    let is_fed = |port: &&Port| header.controls.iter().any(|control| control.name == port.name);
    let (fed, left): (Vec<&Port>, Vec<&Port>) = method.inputs.iter().partition(is_fed);
    let [main] = left[..] else {
        let what = format!("{} inputs that no control feeds, one is needed", left.len());
        return Err(Fault::Header(format!("method {:?} has {what}", method.name)));
    };
    if let Some(wide) = fed.iter().find(|port| port.channels != 1) {
        return Err(Fault::Header(format!(
            "method {:?}: control port {:?} has several channels",
            method.name, wide.name
        )));
    }
    Ok((fed.into_iter().map(|port| port.name.clone()).collect(), main))
}

/// The first output of a method.
///
/// # Errors
/// [`Fault::Header`] when there is none.
pub(super) fn output(method: &Method) -> Result<&Port, Fault> {
    method.outputs.first().ok_or_else(|| Fault::Header(format!("method {:?} has no output", method.name)))
}

/// Makes sure that a port is audio.
///
/// # Errors
/// [`Fault::Header`] when it is not.
pub(super) fn audio(method: &Method, port: &Port) -> Result<(), Fault> {
    if port.ratio == 1 {
        return Ok(());
    }
    Err(Fault::Header(format!(
        "port {:?} of method {:?} is no audio, its ratio is {}",
        port.name, method.name, port.ratio
    )))
}

impl Stage {
    /// Prepares a method for `seats` lines whose hops are `hop` samples, a multiple of its block; `names` are those of the lines'
    /// ports.
    pub fn new(
        model: &Model,
        method: &Method,
        names: &[String],
        hop: usize,
        kernels: Kernels,
        seats: usize,
    ) -> Result<Self, Fault> {
        let (_, main) = inputs(model.header(), method)?;
        let fed = method.inputs.iter().enumerate().filter_map(|(input, port)| {
            let fed = names.iter().position(|name| *name == port.name)?;
            Some(Fed { input, port: fed, ratio: port.ratio })
        });
        Ok(Self {
            executor: Executor::new(model, &method.name, kernels, seats, hop / method.block)?,
            main: method.inputs.iter().position(|port| port.name == main.name).unwrap_or_default(),
            fed: fed.collect(),
            block: method.block,
            channels: (main.channels, output(method)?.channels),
        })
    }

    pub fn name(&self) -> String {
        self.executor.name()
    }

    pub fn bytes(&self) -> usize {
        self.executor.bytes()
    }

    /// A seat is taken anew.
    pub fn open(&mut self, seat: usize, seed: u64) {
        self.executor.seed(seat, seed);
    }

    /// Begins the pieces of hops that those seats are at, which are equally long: only [`Stage::input`] is still to be filled.
    pub fn begin(&mut self, lines: &[Line], seats: &[usize]) {
        let length = lines[seats[0]].piece.len();
        self.executor.begin(seats, length / self.block);
        for &Fed { input, port, ratio } in &self.fed {
            for (row, &seat) in self.executor.input(input).chunks_exact_mut(length / ratio).zip(seats) {
                let Line { ports, piece, input: hop, .. } = &lines[seat];
                for (frame, value) in row.iter_mut().enumerate() {
                    *value = ports.at(port, piece.start / ratio + frame, hop.len() / ratio);
                }
            }
        }
    }

    /// The main input, `[seat][frame][channel]`.
    pub fn input(&mut self) -> &mut [f32] {
        self.executor.input(self.main)
    }

    /// The first output, `[seat][frame][channel]`.
    pub fn output(&self) -> &[f32] {
        self.executor.output(0)
    }

    /// Computes the pieces.
    pub fn run(&mut self) {
        self.executor.run();
    }

    /// Fills the main input with what the lines hear, on all channels.
    pub fn hear(&mut self, lines: &[Line], seats: &[usize]) {
        let channels = self.channels.0;
        let length = self.input().len() / seats.len();
        for (row, &seat) in self.input().chunks_exact_mut(length).zip(seats) {
            let Line { input, piece, .. } = &lines[seat];
            for (frame, sample) in row.chunks_exact_mut(channels).zip(&input[piece.clone()]) {
                frame.fill(*sample);
            }
        }
    }

    /// Gives the lines the mean of all channels of the first output.
    pub fn sound(&self, lines: &mut [Line], seats: &[usize]) {
        let channels = self.channels.1;
        let gain = 1.0 / channels as f32;
        let length = self.output().len() / seats.len();
        for (row, &seat) in self.output().chunks_exact(length).zip(seats) {
            for (sample, frame) in lines[seat].stream.sound.iter_mut().zip(row.chunks_exact(channels)) {
                *sample = gain * frame.iter().sum::<f32>();
            }
        }
    }
}

/// Lists in `playing` those of `ready` whose network does not rest; the others are silent.
pub(super) fn awake(lines: &mut [Line], ready: &[usize], playing: &mut Vec<usize>) {
    playing.clear();
    for &seat in ready {
        if lines[seat].mute {
            lines[seat].stream.sound.fill(0.0);
        } else {
            playing.push(seat);
        }
    }
}
