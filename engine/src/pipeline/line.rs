//! One session's own half of a model that sound goes through: its input in hops and pieces of them, and its knobs.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::batch::Seat;
use super::controls::Knob;
use super::cue::{Action, Cue, CueFull};
use super::options::{PipelineError, PipelineOptions};
use super::playable::Start;
use super::ports::Ports;
use super::rates::Inside;
use super::stream::Stream;

/// From the host's sound to hops of input.
pub(super) struct Line {
    pub stream: Stream,
    pub ports: Ports,
    /// Sound at the model's rate that no hop was made of yet.
    heard: VecDeque<f32>,
    /// One hop of the input, at the model's rate.
    pub input: Vec<f32>,
    /// The samples of the hop that are made next: a whole number of units.
    pub piece: Range<usize>,
    unit: usize,
    /// The network rests.
    pub mute: bool,
}

/// What a line leads through.
pub(super) struct Through<'a> {
    /// Rate of the model, Hz.
    pub sample_rate: u32,
    /// Samples at that rate which are needed at a time.
    pub unit: usize,
    /// Samples at that rate from one look at the knobs to the next: a whole number of units.
    pub hop: usize,
    /// Samples by which what comes out is behind what goes in.
    pub delay: usize,
    /// Names of the ports that controls feed.
    pub names: &'a [String],
    /// All knobs of the model.
    pub knobs: &'a Arc<[Knob]>,
}

impl Line {
    pub fn new(through: &Through<'_>, options: &PipelineOptions) -> Result<Self, PipelineError> {
        let Through { sample_rate, unit, hop, delay, names, knobs } = *through;
        // The first sample of a unit waits for the last one.
        let inside = Inside { lookahead: unit - 1, delay };
        let stream = Stream::new(options.sample_rate, sample_rate, inside, true, hop)?;
        let mut line = Self {
            ports: Ports::new(knobs, names, hop as f64 / f64::from(sample_rate)),
            heard: VecDeque::with_capacity(hop + stream.most_heard()),
            stream,
            input: vec![0.0; hop],
            piece: 0..0,
            unit,
            mute: false,
        };
        line.open(&Start { at: 0, seed: options.seed, transpose: 0.0 });
        Ok(line)
    }

    /// Host samples that still sound after the input has ended, where the model's own sound goes on for `samples` at its rate.
    pub fn tail_samples(&self, samples: usize) -> usize {
        self.stream.to_host_samples(samples) + self.stream.ring_samples()
    }
}

impl Seat for Line {
    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    fn open(&mut self, start: &Start) {
        self.stream.open(start.at);
        self.heard.clear();
        self.piece = 0..0;
        self.ports.reset();
    }

    fn handle(&mut self, cue: Cue) -> Result<(), CueFull> {
        match cue.action {
            // Nobody plays notes.
            Action::Play(_) => Ok(()),
            _ if self.stream.is_full() => Err(CueFull(cue)),
            action => {
                let at = self.stream.model_time(cue.at);
                self.stream.push(at, action);
                Ok(())
            }
        }
    }

    fn take(&mut self, input: &[f32], length: usize, mute: bool) {
        self.mute = mute;
        self.stream.advance(length);
        let heard = &mut self.heard;
        self.stream.hear(input, length, |samples| heard.extend(samples));
    }

    fn next(&mut self) -> bool {
        let hop = self.input.len();
        let start = self.piece.end % hop;
        let there = self.heard.len();
        let length = (there - there % self.unit).min(hop - start);
        if length == 0 {
            return false;
        }
        self.piece = start..start + length;
        for (slot, sample) in self.input[self.piece.clone()].iter_mut().zip(self.heard.drain(..length)) {
            *slot = sample;
        }
        // Knobs are looked at where hops begin, however much of one is there at a time: what is heard must not depend on that.
        if start > 0 {
            return true;
        }
        while let Some((when, action)) = self.stream.next_due() {
            match action {
                Action::Play(_) => {}
                Action::Control { id, value } => drop(self.ports.turn(id, value, self.stream.is_fresh())),
                Action::Transport(transport) => self.ports.follow(when, transport),
            }
        }
        self.ports.step(self.stream.at(), |samples| self.stream.seconds(samples));
        self.stream.step();
        true
    }

    fn deliver(&mut self) {
        self.stream.check();
        self.stream.deliver(self.piece.len());
    }
}
