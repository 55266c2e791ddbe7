//! One model in one session, wherever it runs: the audio thread's side.

use std::sync::Arc;

use super::dropout_fader::DropoutFader;
use super::guard::Failed;
use super::health::InstanceMetrics;
use super::inline_model::{HostBlock, InlineModel};
use super::worker_link::WorkerLink;
use crate::model::Levels;
use crate::pipeline::{TimedCommand, all_finite};

/// Hard output limit (+24 dBFS), also for diverging models.
pub(super) const OUTPUT_LIMIT: f32 = 16.0;
/// Time that a model must be in time again before it is heard, as a part of a second.
const PROBATION_PER_S: usize = 50;

/// A model that plays in a session.
pub(super) struct ModelInstance {
    pub placement: Placement,
    /// Number among all instances of the process, from 1.
    pub number: u32,
    /// Equal for instances of the same model: control changes carry over between them.
    pub model: u64,
    /// Levels of the model, or of its variant.
    pub levels: Levels,
    pub metrics: Arc<InstanceMetrics>,
    /// True if the instance received the session's state when it was built.
    pub has_session_state: bool,
    /// Number of the next command to receive, by the session's count.
    pub next_command: u64,
    /// `[channel]`; the right one is unused unless the model is stereo.
    faders: [DropoutFader; 2],
    is_stereo: bool,
    sample_rate: u32,
    /// Set once the instance was in time; from then on a late block is a dropout.
    is_ready: bool,
    /// Samples for which the instance must still be in time before it is heard again.
    probation: usize,
    /// The model's code has panicked; `metrics` have the reason.
    pub has_failed: bool,
}

/// Thread on which an instance runs.
pub(super) enum Placement {
    Inline(InlineModel),
    Worker(WorkerLink),
}

/// Identity and origin of a [`ModelInstance`].
pub(super) struct InstanceParts {
    pub number: u32,
    pub model: u64,
    pub levels: Levels,
    pub metrics: Arc<InstanceMetrics>,
    pub has_session_state: bool,
    pub next_command: u64,
    pub sample_rate: u32,
    pub is_stereo: bool,
}

impl ModelInstance {
    pub fn new(placement: Placement, parts: InstanceParts) -> Self {
        let InstanceParts {
            number,
            model,
            levels,
            metrics,
            has_session_state,
            next_command,
            sample_rate,
            is_stereo,
        } = parts;
        let mut fader = DropoutFader::new(sample_rate);
        fader.open();
        Self {
            placement,
            number,
            model,
            levels,
            metrics,
            has_session_state,
            next_command,
            faders: [fader.clone(), fader],
            is_stereo,
            sample_rate,
            is_ready: false,
            probation: 0,
            has_failed: false,
        }
    }

    pub fn latency_samples(&self) -> usize {
        match &self.placement {
            Placement::Inline(inline) => inline.playable.latency_samples(),
            Placement::Worker(link) => link.latency_samples(),
        }
    }

    pub fn tail_samples(&self) -> usize {
        match &self.placement {
            Placement::Inline(inline) => inline.playable.tail_samples(),
            Placement::Worker(link) => link.tail_samples(),
        }
    }

    /// Returns true if the output's channels may differ.
    pub fn is_stereo(&self) -> bool {
        self.is_stereo
    }

    /// Passes a command on. Returns true if there was room for it.
    pub fn handle(&mut self, command: TimedCommand) -> bool {
        if self.has_failed {
            return true;
        }
        match &mut self.placement {
            Placement::Inline(inline) => {
                inline
                    .handle(command, &self.metrics)
                    .unwrap_or_else(|Failed| {
                        self.has_failed = true;
                        true
                    })
            }
            Placement::Worker(link) => link.handle(command),
        }
    }

    /// Plays a block into both channels. Returns false while a new instance is still catching up
    /// with the present, in silence.
    pub fn play(&mut self, block: &HostBlock<'_>, [left, right]: [&mut [f32]; 2]) -> bool {
        if self.is_stereo {
            return self.play_channels(block, [left, right], 2);
        }
        let is_heard = self.play_channels(block, [&mut *left, &mut []], 1);
        right.copy_from_slice(left);
        is_heard
    }

    /// Plays a block into the first `count` channels.
    fn play_channels(
        &mut self,
        block: &HostBlock<'_>,
        mut out: [&mut [f32]; 2],
        count: usize,
    ) -> bool {
        let length = out[0].len();
        let [left, right] = &mut out;
        let available = match &mut self.placement {
            _ if self.has_failed => Err(Failed),
            Placement::Inline(inline) => {
                inline.play(block, [left, right], &self.metrics, self.sample_rate)
            }
            Placement::Worker(link) => link.play(block, [left, right], &self.metrics),
        };
        let available = available.unwrap_or_else(|Failed| {
            self.has_failed = true;
            Some(0)
        });
        let channels = &mut out[..count];
        let Some(available) = available else {
            channels.iter_mut().for_each(|channel| channel.fill(0.0));
            return self.is_ready;
        };
        let in_time = available == length;
        if !in_time && !self.is_ready && !self.has_failed {
            // Its output will begin in the middle of a sound.
            self.faders.iter_mut().for_each(DropoutFader::shut);
            channels.iter_mut().for_each(|channel| channel.fill(0.0));
            return false;
        }
        self.is_ready = true;
        if !in_time && !self.has_failed {
            self.metrics.count_dropout();
        }
        let is_valid = channels
            .iter()
            .all(|channel| all_finite(&channel[..available]));
        if !is_valid {
            self.metrics.count_invalid_block(block.at, length);
            if let Placement::Inline(inline) = &mut self.placement {
                self.has_failed = inline.restart(&self.metrics).is_err();
            }
        }
        for (fader, channel) in self.faders.iter_mut().zip(channels) {
            if is_valid && self.probation == 0 {
                let (sound, missing) = channel.split_at_mut(available);
                sound
                    .iter_mut()
                    .for_each(|sample| *sample = sample.clamp(-OUTPUT_LIMIT, OUTPUT_LIMIT));
                fader.play(sound);
                fader.fill_missing(missing);
            } else {
                fader.fill_missing(channel);
            }
        }
        self.probation = match in_time && is_valid {
            true => self.probation.saturating_sub(length),
            false => self.sample_rate as usize / PROBATION_PER_S,
        };
        true
    }
}
