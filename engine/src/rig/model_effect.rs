//! A model as an effect: an amplifier behind a pedal, a codec behind a compressor.

use crate::dsp::level::db_to_amplitude;
use crate::dsp::ramp::Ramp;
use crate::effects::{CHANGE_S, Effect};
use crate::pipeline::{Action, ControlId};
use crate::realtime::{BlockCommand, Session, Setup};

/// Plays a model on the sound of a block. Its values are the gain before the model, dB, and the
/// values of its controls; further ones are ignored.
pub struct ModelEffect {
    session: Session,
    gain: Ramp,
    controls: Vec<ControlId>,
    /// Values that the session has received; NaN before the first.
    values: Vec<f32>,
    commands: Vec<BlockCommand>,
    /// It has played since the last reset.
    has_played: bool,
    /// Samples of the output that come from before a reset.
    outdated: usize,
    /// Share of the input beside the output: all of it until there is a model.
    through: Ramp,
    /// `[channel][frame]`
    output: [Vec<f32>; 2],
}

impl ModelEffect {
    /// Creates an effect of a session that was activated with this setup, with the ids of the
    /// model's controls. Until the session has a model the sound passes.
    #[must_use]
    pub fn new(session: Session, controls: Vec<ControlId>, setup: Setup) -> Self {
        let block = || vec![0.0; setup.max_block];
        Self {
            session,
            gain: Ramp::new(1.0, CHANGE_S, setup.sample_rate),
            values: vec![f32::NAN; controls.len()],
            commands: Vec::with_capacity(controls.len()),
            controls,
            has_played: false,
            outdated: 0,
            through: Ramp::new(1.0, CHANGE_S, setup.sample_rate),
            output: [block(), block()],
        }
    }

    /// Sends the controls whose values are others than the session has received.
    fn send(&mut self, values: &[f32]) {
        let changes = self.controls.iter().zip(&mut self.values).zip(values);
        for ((id, sent), value) in changes {
            let waiting = self.commands.len() < self.commands.capacity();
            if sent.to_bits() != value.to_bits() && waiting {
                *sent = *value;
                let action = Action::Control {
                    id: *id,
                    value: *value,
                };
                self.commands.push(BlockCommand { offset: 0, action });
            }
        }
    }
}

impl Effect for ModelEffect {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        if let Some((gain, values)) = values.split_first() {
            self.gain.set_target(db_to_amplitude(*gain));
            self.send(values);
        }
    }

    fn reset(&mut self) {
        self.gain.finish();
        let is_there = self.session.active_model().is_some();
        self.through.jump(f32::from(u8::from(!is_there)));
        self.session.reset();
        if std::mem::take(&mut self.has_played) {
            self.outdated = self.session.latency_samples();
        }
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        if self.session.take_building() {
            // A model that takes over gets all controls from now on.
            for (id, value) in self.controls.iter().zip(&self.values) {
                let action = Action::Control {
                    id: *id,
                    value: *value,
                };
                let known = |command: &BlockCommand| matches!(command.action, Action::Control { id: other, .. } if other == *id);
                if !value.is_nan() && !self.commands.iter().any(known) {
                    self.commands.push(BlockCommand { offset: 0, action });
                }
            }
        }
        if self.gain.settled() != Some(1.0) {
            for (left, right) in left.iter_mut().zip(&mut *right) {
                let gain = self.gain.advance();
                *left *= gain;
                *right *= gain;
            }
        }
        let frames = left.len();
        let [out_left, out_right] = self.output.each_mut().map(|side| &mut side[..frames]);
        self.session
            .process(&self.commands, &[left, right], &mut [out_left, out_right]);
        self.commands.clear();
        self.has_played = true;
        let outdated = self.outdated.min(frames);
        self.outdated -= outdated;
        let is_there = self.session.active_model().is_some();
        self.through.set_target(f32::from(u8::from(!is_there)));
        let through = self.through;
        for (side, output) in [left, right].into_iter().zip(&mut self.output) {
            let output = &mut output[..frames];
            output[..outdated].fill(0.0);
            self.through = through;
            for (side, output) in side.iter_mut().zip(output) {
                *side = *output + self.through.advance() * *side;
            }
        }
    }

    fn latency_samples(&self) -> usize {
        self.session.latency_samples()
    }

    fn tail_samples(&self) -> usize {
        self.session.tail_samples()
    }
}
