//! One method of a model that sound goes through, at work for all lines in one batch.

use super::line::Line;
use crate::dsp::oversample::Oversampler;
use crate::executor::{Execute, Running};
use crate::model::{Fault, Header, Method, Model, Port};

/// A method, what goes in, and what its controls feed.
pub(super) struct Stage {
    executor: Box<dyn Execute>,
    /// The input that no control feeds.
    main: usize,
    /// The others.
    fed: Vec<Fed>,
    /// Samples of the method's block.
    block: usize,
    /// Channels of the main input and of the first output.
    channels: (usize, usize),
    /// States of the network for each seat, which hear its samples in turn; 1, but where it is oversampled.
    phases: usize,
    streams: Vec<usize>,
    /// `[seat]`, where it is oversampled.
    samplers: Vec<Oversampler>,
    /// A hop of one seat at the higher rate.
    high: Vec<f32>,
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

/// The inputs of a method that makes something on its own, all of which controls feed, by name.
///
/// # Errors
/// [`Fault::Header`] when there is one that none feeds.
pub(super) fn all_fed(header: &Header, method: &Method) -> Result<Vec<String>, Fault> {
    let is_fed = |port: &&Port| port.channels == 1 && header.controls.iter().any(|control| control.name == port.name);
    match method.inputs.iter().find(|port| !is_fed(port)) {
        None => Ok(method.inputs.iter().map(|port| port.name.clone()).collect()),
        Some(port) => {
            let what = format!("method {:?}: no control feeds its input {:?}", method.name, port.name);
            Err(Fault::Header(what))
        }
    }
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
    /// ports. With `phases` 2 or 4 instead of 1 the network runs at so many times its rate.
    pub fn new(
        model: &Model,
        method: &Method,
        names: &[String],
        hop: usize,
        running: Running,
        seats: usize,
        phases: usize,
    ) -> Result<Self, Fault> {
        let main = method.inputs.iter().position(|port| !names.contains(&port.name)).unwrap_or_default();
        let fed = method.inputs.iter().enumerate().filter_map(|(input, port)| {
            let fed = names.iter().position(|name| *name == port.name)?;
            Some(Fed { input, port: fed, ratio: port.ratio })
        });
        Ok(Self {
            executor: running.prepare(model, method, phases * seats, hop / method.block)?,
            main,
            fed: fed.collect(),
            block: method.block,
            channels: (method.inputs.get(main).map_or(1, |port| port.channels), output(method)?.channels),
            phases,
            streams: Vec::with_capacity(phases * seats),
            samplers: if phases == 1 {
                Vec::new()
            } else {
                (0..seats).map(|_| Oversampler::new(phases, hop, running.kernels)).collect()
            },
            high: vec![0.0; phases * hop],
        })
    }

    pub fn name(&self) -> String {
        self.executor.name()
    }

    pub fn may_allocate(&self) -> bool {
        self.executor.may_allocate()
    }

    pub fn bytes(&self) -> usize {
        self.executor.bytes()
    }

    /// Samples by which it is later than its method, because it is oversampled.
    pub fn latency_samples(&self) -> usize {
        self.samplers.first().map_or(0, Oversampler::latency_samples)
    }

    /// A seat is taken anew.
    pub fn open(&mut self, seat: usize, seed: u64) {
        for phase in 0..self.phases {
            self.executor.seed(self.phases * seat + phase, seed);
        }
        if let Some(sampler) = self.samplers.get_mut(seat) {
            sampler.reset();
        }
    }

    /// Begins the pieces of hops that those seats are at, which are equally long: only [`Stage::input`] is still to be filled.
    pub fn begin(&mut self, lines: &[Line], seats: &[usize]) {
        let Line { piece, .. } = &lines[seats[0]];
        self.feed(lines, seats, piece.start, piece.len());
    }

    /// Begins one block of the method for those seats, whose controls stand as they do from sample `at` of their hops on.
    pub fn begin_block(&mut self, lines: &[Line], seats: &[usize], at: usize) {
        self.feed(lines, seats, at, self.block);
    }

    /// Begins so many samples, and gives the method what its controls say.
    fn feed(&mut self, lines: &[Line], seats: &[usize], at: usize, length: usize) {
        let phases = self.phases;
        self.streams.clear();
        self.streams.extend(seats.iter().flat_map(|seat| phases * seat..phases * (seat + 1)));
        self.executor.begin(&self.streams, length / self.block);
        for &Fed { input, port, ratio } in &self.fed {
            for (row, stream) in self.executor.input(input).chunks_exact_mut(length / ratio).zip(&self.streams) {
                let Line { ports, input: hop, .. } = &lines[stream / phases];
                let frames = hop.len() / ratio;
                for (frame, value) in row.iter_mut().enumerate() {
                    // A block may begin where too little of the hop is left.
                    *value = ports.at(port, (at / ratio + frame).min(frames - 1), frames);
                }
            }
        }
    }

    /// The main input, `[seat][frame][channel]`, where it is not oversampled.
    pub fn input(&mut self) -> &mut [f32] {
        self.executor.input(self.main)
    }

    /// The first output, `[seat][frame][channel]`, where it is not oversampled.
    pub fn output(&self) -> &[f32] {
        self.executor.output(0)
    }

    /// Computes the pieces.
    pub fn run(&mut self) {
        self.executor.run();
    }

    /// Fills the main input with what the lines hear, on all channels.
    pub fn hear(&mut self, lines: &[Line], seats: &[usize]) {
        let Self { executor, main, channels: (channels, _), phases, samplers, high, .. } = self;
        let input = executor.input(*main);
        let length = input.len() / seats.len();
        for (rows, &seat) in input.chunks_exact_mut(length).zip(seats) {
            let Line { input, piece, .. } = &lines[seat];
            let sound = match samplers.get_mut(seat) {
                None => &input[piece.clone()],
                Some(sampler) => {
                    let high = &mut high[..*phases * piece.len()];
                    sampler.up(&input[piece.clone()], high);
                    high
                }
            };
            for (phase, row) in rows.chunks_exact_mut(length / *phases).enumerate() {
                let samples = sound[phase..].iter().step_by(*phases);
                row.chunks_exact_mut(*channels).zip(samples).for_each(|(frame, sample)| frame.fill(*sample));
            }
        }
    }

    /// Gives the lines the mean of all channels of the first output.
    pub fn sound(&mut self, lines: &mut [Line], seats: &[usize]) {
        let Self { executor, channels: (_, channels), phases, samplers, high, .. } = self;
        let gain = 1.0 / *channels as f32;
        let output = executor.output(0);
        let length = output.len() / seats.len();
        for (rows, &seat) in output.chunks_exact(length).zip(seats) {
            let Line { stream, piece, .. } = &mut lines[seat];
            let sound = &mut stream.sound[..piece.len()];
            let sampler = samplers.get_mut(seat);
            let made = if sampler.is_none() { &mut *sound } else { &mut high[..*phases * piece.len()] };
            for (phase, row) in rows.chunks_exact(length / *phases).enumerate() {
                let samples = made[phase..].iter_mut().step_by(*phases);
                for (sample, frame) in samples.zip(row.chunks_exact(*channels)) {
                    *sample = gain * frame.iter().sum::<f32>();
                }
            }
            if let Some(sampler) = sampler {
                sampler.down(&high[..*phases * piece.len()], sound);
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
