//! One channel of a session of a model that processes audio: its input in hops, or pieces of hops,
//! and its controls.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::batch::SessionStream;
use super::control_ports::{ControlBinding, ControlPorts, is_on};
use super::controls::PRIOR_GATE;
use super::held_keys::HeldKeys;
use super::options::{PipelineError, PipelineOptions};
use super::playable::{Action, CommandQueueFull, SessionStart, TimedCommand};
use super::timeline::{ModelDelays, Timeline, pop_slice};

/// Cuts a session's input into hops.
pub(super) struct EffectStream {
    pub timeline: Timeline,
    pub ports: ControlPorts,
    /// Input at the model's rate that belongs to no piece yet.
    pending: VecDeque<f32>,
    /// Input of a step at the model's rate.
    pub input: Vec<f32>,
    /// Samples that are processed next: several hops, one, or a part of one, which is an integer
    /// number of blocks.
    pub piece: Range<usize>,
    /// Samples per hop.
    pub hop: usize,
    block: usize,
    start: HopStart,
    /// The piece has no sound yet: it is the first one, ahead of its time.
    is_early: bool,
    /// Skips the network.
    mute: bool,
    /// Keys that are held, if the model follows notes.
    pub keys: HeldKeys,
    /// Control that lets the sound through only while a key is held; `None` for a model without
    /// notes.
    gate_port: Option<usize>,
    /// Gain of the gate, and its largest change from sample to sample.
    gate_gain: f32,
    gate_step: f32,
}

/// Time in which a gate opens and closes, seconds.
const GATE_S: f32 = 0.005;

/// Time at which a hop of a model begins to be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HopStart {
    /// When its input is complete, which adds latency.
    WithInput,
    /// At its first sample, with input that is a block late: for a model that plays by itself.
    FirstSample,
    /// A hop before its first sample, for as long: its sound is taken when the next one begins.
    /// Controls act a hop later. The first hop has no hop before it, and is computed at once.
    Ahead,
}

/// Properties of a model that its [`EffectStream`]s need.
pub(super) struct EffectStreamConfig<'a> {
    /// Sample rate of the model, in Hz.
    pub sample_rate: u32,
    /// Samples per block of the model's methods.
    pub block: usize,
    /// Time at which a hop begins to be computed.
    pub start: HopStart,
    /// Samples between two updates of the controls: an integer number of blocks.
    pub hop: usize,
    /// Most hops that one step processes.
    pub hops: usize,
    /// Delay from input to output, in samples at the model's rate.
    pub delay: usize,
    /// Names of the ports that controls feed.
    pub port_names: &'a [String],
    /// All controls of the model.
    pub bindings: &'a Arc<[ControlBinding]>,
}

impl EffectStream {
    /// Creates one stream for each channel of each session, `count` in all.
    pub fn several(
        config: &EffectStreamConfig<'_>,
        options: &PipelineOptions,
        count: usize,
    ) -> Result<Vec<Self>, PipelineError> {
        (0..count).map(|_| Self::new(config, options)).collect()
    }

    fn new(
        config: &EffectStreamConfig<'_>,
        options: &PipelineOptions,
    ) -> Result<Self, PipelineError> {
        let EffectStreamConfig {
            sample_rate,
            block,
            start,
            hop,
            hops,
            delay,
            port_names,
            bindings,
        } = *config;
        // The first sample of a block waits for the last one.
        let lookahead = if start == HopStart::WithInput {
            block - 1
        } else {
            0
        };
        let delays = ModelDelays { lookahead, delay };
        let timeline = Timeline::new(options, sample_rate, delays, true, (hop, hops), 1)?;
        let mut stream = Self {
            ports: ControlPorts::new(
                bindings,
                port_names,
                hop as f64 / f64::from(sample_rate),
                hops,
            ),
            pending: VecDeque::with_capacity(2 * hop + timeline.max_model_samples()),
            timeline,
            input: vec![0.0; hops * hop],
            piece: 0..0,
            hop,
            block,
            start,
            is_early: false,
            mute: false,
            keys: HeldKeys::default(),
            gate_port: port_names.iter().position(|name| name == PRIOR_GATE),
            gate_gain: 1.0,
            gate_step: 1.0 / (GATE_S * sample_rate as f32),
        };
        stream.open(&SessionStart {
            at: 0,
            seed: options.seed,
            transpose: 0.0,
        });
        Ok(stream)
    }

    /// Returns how much of the coming hop's input is there, as a share; 1 and more if it is
    /// complete.
    pub fn hop_share(&self) -> f64 {
        self.pending.len() as f64 / self.hop as f64
    }

    /// Returns the gain that the gate tends to.
    fn gate_target(&self) -> f32 {
        let is_closed = self
            .gate_port
            .is_some_and(|port| is_on(self.ports.target(port)))
            && !self.keys.any();
        if is_closed { 0.0 } else { 1.0 }
    }

    /// Returns true if the sound of the coming piece is silence.
    pub fn is_silent(&self) -> bool {
        self.mute || self.gate_gain == 0.0 && self.gate_target() == 0.0
    }

    /// Fades the sound of the piece in or out, as the gate demands.
    pub fn apply_gate(&mut self) {
        let target = self.gate_target();
        if self.gate_gain == target && target == 1.0 {
            return;
        }
        for sample in &mut self.timeline.sound[..self.piece.len()] {
            self.gate_gain += (target - self.gate_gain).clamp(-self.gate_step, self.gate_step);
            *sample *= self.gate_gain;
        }
    }

    /// Returns how long the output continues after the input has ended, in host samples, if the
    /// model's own output continues for `samples` at its rate.
    pub fn tail_samples(&self, samples: usize) -> usize {
        self.timeline.to_host_samples(samples) + self.timeline.resampler_tail_samples()
    }
}

impl SessionStream for EffectStream {
    fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    fn timeline_mut(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    fn open(&mut self, start: &SessionStart) {
        self.timeline.open(start.at);
        self.pending.clear();
        // Input that is late is silence first.
        let late = match self.start {
            HopStart::WithInput => 0,
            HopStart::FirstSample => self.block - 1,
            HopStart::Ahead => self.hop + self.block - 1,
        };
        self.pending.extend(std::iter::repeat_n(0.0, late));
        self.piece = 0..0;
        self.ports.reset();
        self.keys = HeldKeys::default();
        self.gate_gain = 1.0;
    }

    fn handle(&mut self, command: TimedCommand) -> Result<(), CommandQueueFull> {
        match command.action {
            Action::Play(_) if self.gate_port.is_none() => Ok(()),
            _ if self.timeline.is_full() => Err(CommandQueueFull(command)),
            action => {
                let at = self.timeline.model_time(command.at);
                self.timeline.push(at, action);
                Ok(())
            }
        }
    }

    fn take_input(&mut self, input: &[f32], length: usize, mute: bool) {
        self.mute = mute;
        self.timeline.advance(length);
        let pending = &mut self.pending;
        self.timeline
            .convert_input(input, length, |samples| pending.extend(samples));
    }

    fn next_hop(&mut self) -> bool {
        let hop = self.hop;
        let start = self.piece.end % hop;
        let available = self.pending.len();
        let whole_hops = available / hop;
        let length = if start == 0 && whole_hops > 0 {
            (whole_hops * hop).min(self.input.len())
        } else {
            (available - available % self.block).min(hop - start)
        };
        if length == 0 {
            return false;
        }
        self.piece = start..start + length;
        pop_slice(&mut self.pending, &mut self.input[self.piece.clone()]);
        // Controls change where hops begin, even if less than a hop is available: the output must
        // not depend on host blocks.
        if start > 0 {
            return true;
        }
        let ahead = if self.start == HopStart::Ahead {
            hop
        } else {
            0
        };
        self.is_early = ahead > 0 && self.timeline.is_fresh();
        for index in 0..length.div_ceil(hop) {
            while let Some((when, action)) = self.timeline.next_due(ahead) {
                match action {
                    Action::Play(event) => {
                        if self.keys.handle(event) {
                            self.ports.restart_bars();
                        }
                    }
                    Action::Control { id, value } => {
                        let _ = self.ports.set(id, value, self.timeline.is_fresh());
                    }
                    Action::Transport(transport) => self.ports.set_transport(when, transport),
                }
            }
            self.ports
                .step(index, self.timeline.hop_start(), |samples| {
                    self.timeline.seconds(samples)
                });
            if self.timeline.is_fresh() {
                self.gate_gain = self.gate_target();
            }
            self.timeline.step();
        }
        true
    }

    fn deliver(&mut self) {
        if self.is_early {
            return;
        }
        self.timeline.check_sound(self.piece.len());
        self.timeline.deliver(self.piece.len());
    }
}
