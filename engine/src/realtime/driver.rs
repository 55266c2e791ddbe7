//! Which driver, and how late: decided by what a model costs here.

use std::time::{Duration, Instant};

use super::lane::{guard_told, length};
use super::maker::Maker;
use super::session::{HISTORY_S, Setup};
use crate::pipeline::{Cue, Playable, Start, Turn};

/// How a model is to be driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// In the callback where its worst block takes less than a quarter of the block's time, else by the worker.
    #[default]
    Auto,
    /// In the callback; what may allocate or wait is played by the worker all the same.
    Inline,
    /// By the worker, with that much time for it in host samples, or else as little as is safe. It never has less than one
    /// block.
    Worker {
        /// Host samples.
        latency: Option<usize>,
    },
    /// In the caller's time, however long it takes: for what is not heard while it is made.
    Offline,
}

/// The share of a block's time that a model in the callback may take.
const INLINE_SHARE: f64 = 0.25;
/// Sound that is made to find the worst block, seconds, and how often: what another process takes away is not the model's.
const TRIAL_S: f64 = 0.06;
const TRIALS: usize = 3;
/// Time that a system takes to wake a worker, and by which a callback that comes late is followed by one that is not.
const WAKING: Duration = Duration::from_micros(1500);

/// Where a model runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Inline,
    Offline,
    /// With so many host samples of time for the worker.
    Worker(usize),
}

/// Decides; `playable` is tried out in its first seat, which must be opened anew after.
///
/// # Errors
/// When the model's code breaks down.
pub(super) fn place(
    driver: Driver,
    playable: &mut dyn Playable,
    maker: &dyn Maker,
    setup: Setup,
) -> Result<Place, String> {
    let forced = match driver {
        Driver::Offline => return Ok(Place::Offline),
        Driver::Inline if !playable.may_allocate() => return Ok(Place::Inline),
        Driver::Worker { latency: Some(latency) } => {
            let most = (HISTORY_S * f64::from(setup.sample_rate)) as usize;
            if latency > most {
                return Err(format!("{latency} samples for the worker are too many; at most {most} are remembered"));
            }
            return Ok(Place::Worker(latency.max(setup.max_block)));
        }
        Driver::Worker { latency: None } | Driver::Inline => true,
        Driver::Auto => playable.may_allocate(),
    };
    let worst = worst_block(playable, maker, setup)?;
    let block = length(setup.max_block, setup.sample_rate);
    if !forced && worst < block.mul_f64(INLINE_SHARE) {
        return Ok(Place::Inline);
    }
    let late = WAKING + 2 * worst;
    let samples = (late.as_secs_f64() * f64::from(setup.sample_rate)).ceil() as usize;
    Ok(Place::Worker(setup.max_block + samples))
}

/// The longest that a block takes, of those that the model takes longest for.
fn worst_block(playable: &mut dyn Playable, maker: &dyn Maker, setup: Setup) -> Result<Duration, String> {
    let count = ((TRIAL_S * f64::from(setup.sample_rate)) as usize / setup.max_block).max(2);
    let input: Vec<f32> = (0..setup.max_block).map(|n| 0.3 * (n as f32 * 0.06).sin()).collect();
    let mut output = vec![0.0; setup.max_block];
    let mut quickest = vec![Duration::MAX; count];
    for _ in 0..TRIALS {
        guard_told(|| {
            playable.open(0, &Start::default());
            for action in maker.hardest() {
                // What it has no room for it need not do.
                let _ = playable.handle(0, Cue { at: 0, action });
            }
        })?;
        for quickest in &mut quickest {
            let begun = Instant::now();
            let input = if maker.hears() { &input[..] } else { &[] };
            guard_told(|| playable.process(&mut [Turn { seat: 0, input, output: &mut output, mute: false }]))?;
            *quickest = begun.elapsed().min(*quickest);
        }
    }
    Ok(quickest.into_iter().max().unwrap_or_default())
}
