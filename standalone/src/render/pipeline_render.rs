//! Rendering of one sound through a pipeline, from notes or a recording.
//!
//! The end of a render does not depend on the block length.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use ondes_engine::chain::Chain;
use ondes_engine::instrument::{Event, TempoChange};
use ondes_engine::panics::contain;
use ondes_engine::pipeline::{Pipeline, Transport};

use super::prime::LISTEN;
use super::recording_reader::RecordingReader;
use super::report::InvalidOutput;
use super::wav_output::WavOutput;
use crate::interrupt;
use crate::progress::RenderProgress;

/// Checks per second, after the last event, for voices that still sound.
const CHECKS_PER_S: u32 = 100;
/// Longest wait for a voice to end, seconds; the longest release of an instrument is 20 s.
const MAX_RING_S: u64 = 60;

/// Pipeline, chain and output of a render, with measurements.
pub struct PipelineRender<'a> {
    pipeline: Pipeline,
    chain: Chain,
    output: WavOutput,
    progress: &'a RenderProgress,
    sample_rate: u32,
    /// `[channel][frame]`: output of the pipeline and the chain.
    block: [Vec<f32>; 2],
    /// `[channel][frame]`: input after the chain.
    input_block: [Vec<f32>; 2],
    /// Samples rendered so far, latency included, after a recording that the model went on from.
    position: u64,
    in_pipeline: Duration,
    first_sample: Option<Instant>,
    /// Numbers of the first invalid sample and of the sample after the last one.
    invalid: Option<(u64, u64)>,
    /// False while the model hears a recording: then nothing is written.
    is_heard: bool,
}

/// Result of a render.
pub struct FinishedRender {
    /// The pipeline, with its counters.
    pub pipeline: Pipeline,
    /// The WAV, completely written but not yet finished.
    pub output: WavOutput,
    /// Computation time of the pipeline.
    pub in_pipeline: Duration,
    /// Time of the first audible sample.
    pub first_sample: Option<Instant>,
    /// Output that the model could not compute.
    pub invalid_output: Option<InvalidOutput>,
}

impl<'a> PipelineRender<'a> {
    /// Creates a render in blocks of `block` samples, the largest block of the chain, at
    /// `sample_rate` Hz.
    pub fn new(
        pipeline: Pipeline,
        chain: Chain,
        output: WavOutput,
        progress: &'a RenderProgress,
        sample_rate: u32,
        block: usize,
    ) -> Self {
        Self {
            pipeline,
            chain,
            output,
            progress,
            sample_rate,
            block: [(); 2].map(|()| vec![0.0; block]),
            input_block: [(); 2].map(|()| vec![0.0; block]),
            position: 0,
            in_pipeline: Duration::ZERO,
            first_sample: None,
            invalid: None,
            is_heard: true,
        }
    }

    /// Plays events in order of time, in a song with these changes of tempo, until every voice is
    /// silent and the tail has faded out.
    ///
    /// # Errors
    /// Returns an error if the sound cannot be written or the work is interrupted.
    pub fn play(
        mut self,
        events: impl Iterator<Item = Event>,
        tempos: &[TempoChange],
    ) -> anyhow::Result<FinishedRender> {
        let mut events = events.peekable();
        let rate = f64::from(self.sample_rate);
        let mut tempos = tempos
            .iter()
            .map(|change| ((change.at_s * rate).round() as u64, change))
            .peekable();
        let mut last = 0;
        loop {
            let mut length = self.block[0].len();
            while let Some((_, change)) = tempos.next_if(|(at, _)| *at <= self.position) {
                let song = Transport {
                    tempo: change.tempo,
                    position: change.beats,
                    playing: true,
                };
                self.pipeline.set_transport(song)?;
            }
            if let Some((at, _)) = tempos.peek() {
                length = length.min((at - self.position) as usize);
            }
            let end = self.position + length as u64;
            while let Some(&event) = events.peek().filter(|event| event.at < end) {
                if self.pipeline.handle(event).is_err() {
                    // The event queue is full: render up to this event, sample by sample if
                    // necessary, since queued events wait for the next frame.
                    length = event
                        .at
                        .saturating_sub(self.position)
                        .clamp(1, length as u64) as usize;
                    break;
                }
                last = event.at;
                events.next();
            }
            if events.peek().is_none() {
                break;
            }
            self.advance(None, length)?;
        }
        self.ring_out(last)?;
        Ok(self.finish())
    }

    /// Sends a recording through the model, until the tail has faded out.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged, the sound cannot be written or the work is
    /// interrupted.
    pub fn play_recording(
        mut self,
        recording: &mut RecordingReader,
    ) -> anyhow::Result<FinishedRender> {
        self.hear(recording)?;
        // What stands before the model rings out through it.
        let silence = self
            .input_block
            .each_ref()
            .map(|side| vec![0.0; side.len()]);
        self.advance_to(self.position + self.tail_samples(), Some(&silence))?;
        Ok(self.finish())
    }

    /// Lets the model hear a recording as what it has played, without writing what it plays
    /// meanwhile, and sets the control that this takes to `listen` for what follows.
    ///
    /// # Errors
    /// Returns an error if the model cannot listen, the recording is damaged or the work is
    /// interrupted.
    pub fn prime(mut self, recording: &mut RecordingReader, listen: f32) -> anyhow::Result<Self> {
        self.pipeline.set_control(LISTEN, 1.0)?;
        self.is_heard = false;
        self.hear(recording)?;
        self.is_heard = true;
        self.position = 0;
        self.pipeline.set_control(LISTEN, listen)?;
        Ok(self)
    }

    /// Sends a whole recording through the model.
    fn hear(&mut self, recording: &mut RecordingReader) -> anyhow::Result<()> {
        let mut input = self.input_block.clone();
        loop {
            let length = recording.fill(&mut input)?;
            self.advance(Some(&input), length)?;
            if length < input[0].len() {
                return Ok(());
            }
        }
    }

    /// Renders `samples` that the model generates.
    ///
    /// # Errors
    /// Returns an error if the sound cannot be written or the work is interrupted.
    pub fn generate(mut self, samples: u64) -> anyhow::Result<FinishedRender> {
        self.advance_to(samples + self.pipeline.latency_samples() as u64, None)?;
        Ok(self.finish())
    }

    /// Renders after the last event until all voices are silent.
    fn ring_out(&mut self, last: u64) -> anyhow::Result<()> {
        let check = u64::from((self.sample_rate / CHECKS_PER_S).max(1));
        // Time by which the last event has reached the voices.
        let mut target = last + self.pipeline.latency_samples() as u64 + check;
        let most = target + MAX_RING_S * u64::from(self.sample_rate);
        self.advance_to(target, None)?;
        while self.pipeline.sounding() > 0 && target < most {
            target += check;
            self.advance_to(target, None)?;
        }
        self.advance_to(target + self.tail_samples(), None)
    }

    /// Returns the samples after the voices' last one until everything is written.
    fn tail_samples(&self) -> u64 {
        (self.pipeline.latency_samples() + self.pipeline.tail_samples() + self.chain.tail_samples())
            as u64
    }

    /// Renders up to a sample; `input` is a block of silence, or none where the model has no input.
    fn advance_to(&mut self, target: u64, input: Option<&[Vec<f32>; 2]>) -> anyhow::Result<()> {
        while self.position < target {
            let length = (target - self.position).min(self.block[0].len() as u64);
            self.advance(input, length as usize)?;
        }
        Ok(())
    }

    /// Renders `length` samples, at most a block; `input` is a block with at least as many, or none
    /// for silence.
    fn advance(&mut self, input: Option<&[Vec<f32>; 2]>, length: usize) -> anyhow::Result<()> {
        interrupt::check()?;
        let is_stereo = self.pipeline.channels() == 2;
        let [left, right] = self.block.each_mut().map(|side| &mut side[..length]);
        let started_at = Instant::now();
        let mut driven: [&[f32]; 2] = [&[]; 2];
        if let Some(input) = input {
            let mut sides = self.input_block.each_mut().map(|side| &mut side[..length]);
            let count = self.pipeline.input_channels();
            sides
                .iter_mut()
                .zip(input)
                .take(count)
                .for_each(|(side, input)| side.copy_from_slice(&input[..length]));
            self.chain.process_input(&mut sides[..count]);
            driven = sides.map(|side| &*side);
        }
        let process = || match is_stereo {
            true => self
                .pipeline
                .process_stereo(driven, [&mut *left, &mut *right]),
            false => self.pipeline.process(driven[0], left),
        };
        // A TorchScript model reports an error by a panic with a message.
        contain(process).map_err(|reason| anyhow!("the model failed: {reason}"))?;
        // The pipeline outputs NaN from the first invalid sample on.
        if let Some(first) =
            (0..length).find(|frame| left[*frame].is_nan() || is_stereo && right[*frame].is_nan())
        {
            [&mut *left, &mut *right]
                .into_iter()
                .for_each(|side| side[first..].fill(0.0));
            let (first, _) = self.invalid.unwrap_or((self.position + first as u64, 0));
            self.invalid = Some((first, self.position + length as u64));
        }
        if !is_stereo {
            right.copy_from_slice(left);
        }
        self.chain.process_output(left, right, is_stereo);
        self.in_pipeline += started_at.elapsed();
        self.position += length as u64;
        if !self.is_heard {
            return Ok(());
        }
        let sides: [&[f32]; 2] = [left, right];
        self.output.write(&sides)?;
        if self.first_sample.is_none() && self.output.frames() > 0 {
            self.first_sample = Some(Instant::now());
        }
        self.progress.advance(length as u64, self.sample_rate);
        Ok(())
    }

    fn finish(self) -> FinishedRender {
        let latency = self.pipeline.latency_samples() as u64;
        let invalid_output = self.invalid.map(|(first, end)| {
            let first = first.saturating_sub(latency);
            InvalidOutput {
                first_second: first as f64 / f64::from(self.sample_rate),
                samples: end.saturating_sub(latency).saturating_sub(first),
            }
        });
        let Self {
            pipeline,
            output,
            in_pipeline,
            first_sample,
            ..
        } = self;
        FinishedRender {
            pipeline,
            output,
            in_pipeline,
            first_sample,
            invalid_output,
        }
    }
}
