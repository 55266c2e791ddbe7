//! One model in one session, wherever it runs: what the audio thread holds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fader::Fader;
use super::health::Meter;
use super::history::History;
use super::queue::Queue;
use crate::executor;
use crate::pipeline::{Cue, Playable, Start, Turn};

/// Nothing is louder than this: +24 dB of full scale. A model that runs away is no louder.
pub(super) const LOUDEST: f32 = 16.0;
/// How long a model must be in time again before it is heard again, as a part of a second.
const PROBATION_PER_S: usize = 50;
/// Samples that are caught up with at a time.
const PIECE: usize = 1024;

/// Why a model is not heard any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Its code broke down.
    #[error("the model's code panicked; it stays silent until a model is loaded again")]
    Panicked,
}

/// A model at work for a session.
pub(super) struct Lane {
    pub engine: Engine,
    /// Its number among all lanes of the process, from 1.
    pub number: u32,
    /// What is the same model: its controls stay where they are.
    pub tag: u64,
    pub meter: Arc<Meter>,
    /// It was told what the session had played when it was made.
    pub told: bool,
    /// The next cue that it has not been given, by the session's count.
    pub next_cue: u64,
    fader: Fader,
    sample_rate: u32,
    /// It was in time once: from then on it is expected to be.
    ready: bool,
    /// Samples for which it must still be in time before it is heard again.
    probation: usize,
    pub failure: Option<Failure>,
}

/// Where it works.
pub(super) enum Engine {
    Inline(Inline),
    Queued(Queue),
}

/// A model in the audio callback.
pub(super) struct Inline {
    pub playable: Box<dyn Playable>,
    /// The next sample that it will be given.
    pub position: u64,
    pub offline: bool,
    /// How it begins anew, but for the time.
    start: Start,
    scratch: [Vec<f32>; 2],
}

impl Inline {
    pub fn new(playable: Box<dyn Playable>, start: Start, offline: bool) -> Self {
        Self { playable, position: start.at, offline, start, scratch: [vec![0.0; PIECE], vec![0.0; PIECE]] }
    }
}

/// The block that the host asks for.
pub(super) struct Block<'a> {
    /// Number of its first sample.
    pub at: u64,
    pub input: &'a [f32],
    /// Where to look up earlier input.
    pub history: &'a History,
    /// Wait for whoever is late.
    pub patient: bool,
}

impl Lane {
    pub fn new(
        engine: Engine,
        number: u32,
        tag: u64,
        meter: Arc<Meter>,
        told: bool,
        next_cue: u64,
        sample_rate: u32,
    ) -> Self {
        let mut fader = Fader::new(sample_rate);
        fader.open();
        Self {
            engine,
            number,
            tag,
            meter,
            told,
            next_cue,
            fader,
            sample_rate,
            ready: false,
            probation: 0,
            failure: None,
        }
    }

    pub fn latency_samples(&self) -> usize {
        match &self.engine {
            Engine::Inline(inline) => inline.playable.latency_samples(),
            Engine::Queued(queue) => queue.latency_samples(),
        }
    }

    pub fn tail_samples(&self) -> usize {
        match &self.engine {
            Engine::Inline(inline) => inline.playable.tail_samples(),
            Engine::Queued(queue) => queue.tail_samples(),
        }
    }

    /// Hands a cue on. Gives whether there was room for it.
    pub fn handle(&mut self, cue: Cue) -> bool {
        if self.failure.is_some() {
            return true;
        }
        match &mut self.engine {
            Engine::Inline(inline) => inline.handle(cue).unwrap_or_else(|failure| {
                self.failure = Some(failure);
                true
            }),
            Engine::Queued(queue) => queue.handle(cue),
        }
    }

    /// Plays a block. Gives whether the model keeps up: one that has just arrived may still have to catch up with the
    /// present, and is silent so long.
    pub fn play(&mut self, block: &Block<'_>, out: &mut [f32]) -> bool {
        let there = match &mut self.engine {
            _ if self.failure.is_some() => Err(Failure::Panicked),
            Engine::Inline(inline) => inline.play(block, out, &self.meter, self.sample_rate),
            Engine::Queued(queue) => queue.play(block, out, &self.meter),
        };
        let there = there.unwrap_or_else(|failure| {
            self.failure = Some(failure);
            Some(0)
        });
        let Some(there) = there else {
            out.fill(0.0);
            return self.ready;
        };
        let in_time = there == out.len();
        if !in_time && !self.ready && self.failure.is_none() {
            // When it comes, it will be in the middle of something.
            self.fader.shut();
            out.fill(0.0);
            return false;
        }
        self.ready = true;
        if !in_time && self.failure.is_none() {
            self.meter.miss();
        }
        let (sound, late) = out.split_at_mut(there);
        let sane = sound.iter().all(|sample| sample.is_finite());
        if !sane {
            self.meter.fault();
            if let Engine::Inline(inline) = &mut self.engine {
                self.failure = inline.begin_again().err();
            }
        }
        if sane && self.probation == 0 {
            sound.iter_mut().for_each(|sample| *sample = sample.clamp(-LOUDEST, LOUDEST));
            self.fader.play(sound);
            self.fader.late(late);
        } else {
            self.fader.late(out);
        }
        self.probation = match in_time && sane {
            true => self.probation.saturating_sub(out.len()),
            false => self.sample_rate as usize / PROBATION_PER_S,
        };
        true
    }
}

impl Inline {
    /// Catches up and plays. Gives how many samples are there, or none while there is more to catch up with.
    fn play(
        &mut self,
        block: &Block<'_>,
        out: &mut [f32],
        meter: &Meter,
        sample_rate: u32,
    ) -> Result<Option<usize>, Failure> {
        let behind = block.at.saturating_sub(self.position);
        // The callback has time for a model that takes a quarter of it: twice as much as a block does no harm.
        let most = 2 * out.len() as u64;
        let all = block.patient || self.offline || behind + out.len() as u64 <= most;
        self.catch_up(if all { behind } else { most }, block.history)?;
        if !all {
            return Ok(None);
        }
        let begun = Instant::now();
        if self.offline {
            // Nobody is in a hurry, and there is time to hear why.
            let done = guard_told(|| play_turn(&mut *self.playable, block.input, out));
            done.map_err(|reason| {
                meter.broke_down(&reason);
                Failure::Panicked
            })?;
            if let Some(notice) = executor::noticed() {
                meter.set_notice(&notice);
            }
        } else {
            run(&mut *self.playable, block.input, out)?;
        }
        guard(|| {
            meter.set_followed(self.playable.followed(0));
            meter.set_latents(self.playable.latents(0));
        })?;
        self.position += out.len() as u64;
        let (taken, sound) = (begun.elapsed(), length(out.len(), sample_rate));
        meter.step(taken, sound);
        if taken > sound && !self.offline && !block.patient {
            meter.miss();
        }
        Ok(Some(out.len()))
    }

    /// Plays what lies in the past, unheard.
    fn catch_up(&mut self, samples: u64, history: &History) -> Result<(), Failure> {
        let target = self.position + samples;
        while self.position < target {
            let count = (target - self.position).min(PIECE as u64) as usize;
            let [input, output] = &mut self.scratch;
            // Where nothing is remembered any more, there was silence.
            history.read(self.position, &mut input[..count]);
            run(&mut *self.playable, &input[..count], &mut output[..count])?;
            self.position += count as u64;
        }
        Ok(())
    }

    /// Forgets all sound, which is no sound any more.
    fn begin_again(&mut self) -> Result<(), Failure> {
        let start = Start { at: self.position, ..self.start };
        guard(|| self.playable.open(0, &start))
    }

    /// Gives whether there was room for the cue.
    fn handle(&mut self, cue: Cue) -> Result<bool, Failure> {
        let mut taken = false;
        guard(|| taken = self.playable.handle(0, cue).is_ok())?;
        Ok(taken)
    }
}

/// The length of so many samples.
pub(super) fn length(samples: usize, sample_rate: u32) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(sample_rate.max(1)))
}

/// Plays a turn in the first seat.
pub(super) fn run(playable: &mut dyn Playable, input: &[f32], output: &mut [f32]) -> Result<(), Failure> {
    guard(|| play_turn(playable, input, output))
}

fn play_turn(playable: &mut dyn Playable, input: &[f32], output: &mut [f32]) {
    playable.process(&mut [Turn { seat: 0, input, output, mute: false }]);
}

/// Longest reason that is told, characters.
const REASON: usize = 200;

/// Runs a model's code, which may panic, where there is time to hear why: not on the audio thread. A program says it with a
/// text; of that the first line is told, shortened.
pub(super) fn guard_told(work: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|reason| {
        let text = reason.downcast_ref::<String>().and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
        let Some(text) = text.map(str::trim) else { return Failure::Panicked.to_string() };
        let short: String = text.chars().take(REASON).collect();
        let more = if short.len() < text.len() { "…" } else { "" };
        format!("the model broke down: {short}{more}; it stays silent until a model is loaded again")
    })
}

/// Runs a model's code, which may panic.
pub(super) fn guard(work: impl FnOnce()) -> Result<(), Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|reason| {
        // Dropping it would give back memory, perhaps on the audio thread. It happens once.
        std::mem::forget(reason);
        Failure::Panicked
    })
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::*;

    #[test]
    fn a_program_says_in_one_line_why_it_breaks_down() {
        let said = |text: &str| {
            let text = text.to_owned();
            guard_told(move || resume_unwind(Box::new(text))).unwrap_err()
        };
        assert!(
            said("\n RuntimeError: shape\nTraceback").starts_with("the model broke down: RuntimeError: shape; it ")
        );
        let long = said(&"é".repeat(1_000));
        assert!(long.contains(&format!("{}…;", "é".repeat(REASON))) && long.lines().count() == 1, "{long}");
        assert_eq!(guard_told(|| resume_unwind(Box::new(7))).unwrap_err(), Failure::Panicked.to_string());
        assert_eq!(said(""), Failure::Panicked.to_string());
        assert_eq!(guard_told(|| ()), Ok(()));
    }
}
