//! A pipeline that plays into a file, by notes or after a recording.
//!
//! Where a render ends does not depend on how long its blocks are.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use ondes_engine::chain::Chain;
use ondes_engine::instrument::Event;
use ondes_engine::pipeline::Pipeline;

use super::destination::Destination;
use super::recording::Recording;
use crate::interrupt;
use crate::progress::Progress;

/// After the last event voices are asked this many times a second whether they still sound.
const CHECKS_PER_S: u32 = 100;
/// A voice that still sounds so long after the last event will not end; the longest release of an instrument is 20 s.
const MOST_RING_S: u64 = 60;

/// A pipeline, where its sound goes, and what was seen on the way.
pub struct Stage<'a> {
    pipeline: Pipeline,
    chain: Chain,
    destination: Destination,
    progress: &'a Progress,
    sample_rate: u32,
    block: Vec<f32>,
    /// What comes in, as the chain changes it, and the other side of what comes out, which is the same.
    heard: Vec<f32>,
    /// Samples played so far, latency included.
    position: u64,
    in_pipeline: Duration,
    first_sample: Option<Instant>,
}

/// What a render leaves behind.
pub struct Played {
    /// The pipeline, for what it counted.
    pub pipeline: Pipeline,
    /// The WAV, all written but not yet finished.
    pub destination: Destination,
    /// Time that the pipeline took.
    pub in_pipeline: Duration,
    /// When the first sample that is heard was there.
    pub first_sample: Option<Instant>,
}

impl<'a> Stage<'a> {
    /// A stage that plays `block` samples at a time, the longest block of the chain, at `sample_rate` in Hz.
    pub fn new(
        pipeline: Pipeline,
        chain: Chain,
        destination: Destination,
        progress: &'a Progress,
        sample_rate: u32,
        block: usize,
    ) -> Self {
        Self {
            pipeline,
            chain,
            destination,
            progress,
            sample_rate,
            block: vec![0.0; block],
            heard: vec![0.0; block],
            position: 0,
            in_pipeline: Duration::ZERO,
            first_sample: None,
        }
    }

    /// Plays events, which come in the order of time, until every voice is silent and the room has faded.
    ///
    /// # Errors
    /// When the sound cannot be written, or somebody interrupts.
    pub fn play(mut self, events: impl Iterator<Item = Event>) -> anyhow::Result<Played> {
        let mut events = events.peekable();
        let mut last = 0;
        loop {
            let mut length = self.block.len();
            let end = self.position + length as u64;
            while let Some(&event) = events.peek().filter(|event| event.at < end) {
                if self.pipeline.handle(event).is_err() {
                    // More events than can wait: play up to this one and, since the others wait for the next frame, on
                    // to that sample by sample.
                    length = event.at.saturating_sub(self.position).clamp(1, length as u64) as usize;
                    break;
                }
                last = event.at;
                events.next();
            }
            if events.peek().is_none() {
                break;
            }
            self.advance(&[], length)?;
        }
        self.ring_out(last)?;
        Ok(self.leave())
    }

    /// Re-plays a recording, or lets it through, and lets what rings on fade.
    ///
    /// # Errors
    /// When the recording is damaged or the sound cannot be written, or somebody interrupts.
    pub fn follow(mut self, recording: &mut Recording) -> anyhow::Result<Played> {
        let mut input = vec![0.0; self.block.len()];
        loop {
            let length = recording.fill(&mut input)?;
            self.advance(&input[..length], length)?;
            if length < input.len() {
                break;
            }
        }
        self.advance_to(self.position + self.after_last())?;
        Ok(self.leave())
    }

    /// Plays so many samples of what the model makes on its own.
    ///
    /// # Errors
    /// When the sound cannot be written, or somebody interrupts.
    pub fn alone(mut self, samples: u64) -> anyhow::Result<Played> {
        self.advance_to(samples + self.pipeline.latency_samples() as u64)?;
        Ok(self.leave())
    }

    /// Plays on after the last event until nothing is heard.
    fn ring_out(&mut self, last: u64) -> anyhow::Result<()> {
        let check = u64::from((self.sample_rate / CHECKS_PER_S).max(1));
        // By then the last event has reached the voices.
        let mut target = last + self.pipeline.latency_samples() as u64 + check;
        let most = target + MOST_RING_S * u64::from(self.sample_rate);
        self.advance_to(target)?;
        while self.pipeline.sounding() > 0 && target < most {
            target += check;
            self.advance_to(target)?;
        }
        self.advance_to(target + self.after_last())
    }

    /// Samples after the last one of the voices until all that they made is written.
    fn after_last(&self) -> u64 {
        (self.pipeline.latency_samples() + self.pipeline.tail_samples() + self.chain.tail_samples()) as u64
    }

    /// Plays silence, or what still sounds, up to a sample.
    fn advance_to(&mut self, target: u64) -> anyhow::Result<()> {
        while self.position < target {
            let length = (target - self.position).min(self.block.len() as u64);
            self.advance(&[], length as usize)?;
        }
        Ok(())
    }

    /// Plays `length` samples, at most a block; the input is as long, or empty.
    fn advance(&mut self, input: &[f32], length: usize) -> anyhow::Result<()> {
        interrupt::check()?;
        let sound = &mut self.block[..length];
        let begun = Instant::now();
        let heard = &mut self.heard[..length];
        let driven: &[f32] = if input.is_empty() {
            &[]
        } else {
            heard.copy_from_slice(input);
            self.chain.before(&mut [heard]);
            heard
        };
        // A program may break down in the middle of a sound, and says why.
        catch_unwind(AssertUnwindSafe(|| self.pipeline.process(driven, sound))).map_err(broken_down)?;
        self.chain.after(sound, heard);
        self.in_pipeline += begun.elapsed();
        self.position += length as u64;
        self.destination.take(&[sound])?;
        if self.first_sample.is_none() && self.destination.frames() > 0 {
            self.first_sample = Some(Instant::now());
        }
        self.progress.advance(length as u64, self.sample_rate);
        Ok(())
    }

    fn leave(self) -> Played {
        let Self { pipeline, destination, in_pipeline, first_sample, .. } = self;
        Played { pipeline, destination, in_pipeline, first_sample }
    }
}

/// What a program says when it breaks down; a mistake of our own unwinds on.
fn broken_down(reason: Box<dyn Any + Send>) -> anyhow::Error {
    match reason.downcast::<String>() {
        Ok(reason) => anyhow!("the model broke down: {reason}"),
        Err(reason) => resume_unwind(reason),
    }
}
