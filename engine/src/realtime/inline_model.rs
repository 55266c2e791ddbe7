//! A model that runs in the audio callback.

use std::time::Instant;

use super::guard::{Failed, duration_of, guard};
use super::health::InstanceMetrics;
use super::session_input::{BlockInput, SessionHistory, first_samples};
use crate::executor;
use crate::pipeline::{InputChannels, Playable, ProcessRequest, SessionStart, TimedCommand};

/// Samples that are caught up with at a time.
const CATCH_UP_CHUNK: usize = 1024;

/// Block that the host asks for.
pub(super) struct HostBlock<'a> {
    /// Number of its first sample.
    pub at: u64,
    pub input: BlockInput<'a>,
    /// Earlier input.
    pub history: &'a SessionHistory,
    /// Waits for a late worker, as in an offline bounce.
    pub non_realtime: bool,
}

/// A model that runs in the audio callback.
pub(super) struct InlineModel {
    pub playable: Box<dyn Playable>,
    /// Number of the next sample to process.
    pub position: u64,
    pub offline: bool,
    /// Start after a reset, except for the time.
    start: SessionStart,
    /// Part of the input that is processed.
    channels: InputChannels,
    /// Input and output while catching up.
    scratch: [[Vec<f32>; 2]; 2],
}

impl InlineModel {
    pub fn new(
        playable: Box<dyn Playable>,
        start: SessionStart,
        channels: InputChannels,
        offline: bool,
    ) -> Self {
        let scratch = [(); 2].map(|()| [(); 2].map(|()| vec![0.0; CATCH_UP_CHUNK]));
        Self {
            playable,
            position: start.at,
            offline,
            start,
            channels,
            scratch,
        }
    }

    /// Catches up and processes a block. Returns how many samples are available, or `None` while
    /// there is more to catch up with.
    pub fn play(
        &mut self,
        block: &HostBlock<'_>,
        out: [&mut [f32]; 2],
        metrics: &InstanceMetrics,
        sample_rate: u32,
    ) -> Result<Option<usize>, Failed> {
        let behind = block.at.saturating_sub(self.position);
        let length = out[0].len();
        // The callback has time for a model that takes a quarter of it: processing twice the block
        // is safe.
        let max = 2 * length as u64;
        let completes = block.non_realtime || self.offline || behind + length as u64 <= max;
        self.catch_up(if completes { behind } else { max }, block.history, metrics)?;
        if !completes {
            return Ok(None);
        }
        let input = block.input.channels(self.channels);
        let start = Instant::now();
        guard(metrics, || {
            process(&mut *self.playable, input, out, metrics)
        })?;
        // Only where this is not the audio thread.
        if self.offline
            && let Some(warning) = executor::take_warning()
        {
            metrics.set_warning(&warning);
        }
        self.position += length as u64;
        let (elapsed, sound) = (start.elapsed(), duration_of(length, sample_rate));
        metrics.record_step(elapsed, sound);
        if elapsed > sound && !self.offline && !block.non_realtime {
            metrics.count_dropout();
        }
        Ok(Some(length))
    }

    /// Processes past input silently.
    pub fn catch_up(
        &mut self,
        samples: u64,
        history: &SessionHistory,
        metrics: &InstanceMetrics,
    ) -> Result<(), Failed> {
        let target = self.position + samples;
        while self.position < target {
            let count = (target - self.position).min(CATCH_UP_CHUNK as u64) as usize;
            let [input, output] = &mut self.scratch;
            history.read(self.channels, self.position, input, count);
            let input = input.each_ref().map(|side| &side[..count]);
            let output = first_samples(output, count);
            guard(metrics, || {
                self.playable.process(&mut [ProcessRequest {
                    slot: 0,
                    input,
                    output,
                    mute: false,
                }])
            })?;
            self.position += count as u64;
        }
        Ok(())
    }

    /// Resets the model after non-finite output.
    pub fn restart(&mut self, metrics: &InstanceMetrics) -> Result<(), Failed> {
        let start = SessionStart {
            at: self.position,
            ..self.start
        };
        guard(metrics, || self.playable.open(0, &start))
    }

    /// Returns true if there was room for the command.
    pub fn handle(
        &mut self,
        command: TimedCommand,
        metrics: &InstanceMetrics,
    ) -> Result<bool, Failed> {
        guard(metrics, || self.playable.handle(0, command).is_ok())
    }
}

/// Processes a block in the first slot and shows what the model follows and decodes.
fn process(
    playable: &mut dyn Playable,
    input: [&[f32]; 2],
    output: [&mut [f32]; 2],
    metrics: &InstanceMetrics,
) {
    playable.process(&mut [ProcessRequest {
        slot: 0,
        input,
        output,
        mute: false,
    }]);
    metrics.set_input_analysis(playable.input_analysis(0));
    if metrics.has_latents() {
        metrics.set_latents(playable.latents(0));
    }
}
