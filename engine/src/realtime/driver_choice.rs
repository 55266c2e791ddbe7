//! Chooses between audio callback and worker, and the worker's latency, from the measured cost of a
//! model.

use std::time::{Duration, Instant};

use super::driver::{Driver, INLINE_SHARE, ResolvedDriver};
use super::guard::{duration_of, guard_with_reason};
use super::model_factory::{LoadError, ModelFactory};
use super::session_input::first_samples;
use super::setup::Setup;
use crate::pipeline::{Playable, ProcessRequest, SessionStart, TimedCommand};

/// Trial length and count; the fastest trial counts, to exclude preemption by other processes.
const TRIAL_S: f64 = 0.06;
const TRIALS: usize = 3;
/// Time to wake the worker, plus the jitter of the host's callbacks.
const WAKE_UP_TIME: Duration = Duration::from_micros(1500);

/// Resolves a driver without a trial; `None` if a trial has to decide.
///
/// # Errors
/// Returns [`LoadError`] if the worker's latency is too long.
pub(super) fn resolve_without_trial(
    driver: Driver,
    may_allocate: bool,
    setup: Setup,
) -> Result<Option<ResolvedDriver>, LoadError> {
    match driver {
        Driver::Offline => Ok(Some(ResolvedDriver::Offline)),
        Driver::Inline if !may_allocate => Ok(Some(ResolvedDriver::Inline)),
        Driver::Worker {
            latency: Some(latency),
        } => {
            let max = setup.history_samples();
            if latency > max {
                return Err(LoadError::WorkerLatency { latency, max });
            }
            Ok(Some(ResolvedDriver::Worker(latency.max(setup.max_block))))
        }
        Driver::Worker { latency: None } | Driver::Inline | Driver::Auto => Ok(None),
    }
}

/// Resolves a driver; runs trials in the playable's first slot, which must be reset afterwards.
///
/// # Errors
/// Returns [`LoadError`] if the worker's latency is too long or the model's code panics.
pub(super) fn resolve(
    driver: Driver,
    playable: &mut dyn Playable,
    factory: &dyn ModelFactory,
    setup: Setup,
) -> Result<ResolvedDriver, LoadError> {
    let may_allocate = playable.may_allocate();
    if let Some(resolved) = resolve_without_trial(driver, may_allocate, setup)? {
        return Ok(resolved);
    }
    let needs_worker = driver != Driver::Auto || may_allocate;
    let slowest = slowest_block(playable, factory, setup)?;
    let block = duration_of(setup.max_block, setup.sample_rate);
    if !needs_worker && slowest < block.mul_f64(INLINE_SHARE) {
        return Ok(ResolvedDriver::Inline);
    }
    let delay = WAKE_UP_TIME + 2 * slowest;
    let samples = (delay.as_secs_f64() * f64::from(setup.sample_rate)).ceil() as usize;
    Ok(ResolvedDriver::Worker(setup.max_block + samples))
}

/// Measures the slowest block under the model's worst-case load.
fn slowest_block(
    playable: &mut dyn Playable,
    factory: &dyn ModelFactory,
    setup: Setup,
) -> Result<Duration, LoadError> {
    let count = ((TRIAL_S * f64::from(setup.sample_rate)) as usize / setup.max_block).max(2);
    let input: Vec<f32> = (0..setup.max_block)
        .map(|n| 0.3 * (n as f32 * 0.06).sin())
        .collect();
    let mut output = [(); 2].map(|()| vec![0.0; setup.max_block]);
    let mut fastest = vec![Duration::MAX; count];
    for _ in 0..TRIALS {
        guard_with_reason(|| {
            playable.open(0, &SessionStart::default());
            for action in factory.worst_case_load() {
                // A full queue is acceptable: the trial only needs high load.
                let _ = playable.handle(0, TimedCommand { at: 0, action });
            }
        })
        .map_err(LoadError::Panicked)?;
        for fastest in &mut fastest {
            let start = Instant::now();
            let input = if factory.uses_audio_input() {
                &input[..]
            } else {
                &[]
            };
            let output = first_samples(&mut output, setup.max_block);
            let process = || {
                playable.process(&mut [ProcessRequest {
                    slot: 0,
                    input: [input; 2],
                    output,
                    mute: false,
                }])
            };
            guard_with_reason(process).map_err(LoadError::Panicked)?;
            *fastest = start.elapsed().min(*fastest);
        }
    }
    Ok(fastest.into_iter().max().unwrap_or_default())
}
