//! Instruments in their room.

use anyhow::bail;
use ondes_engine::random::{GOLDEN_GAMMA, mix64};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

use super::bowed::Bowed;
use super::instrument::{Instrument, OUTPUT_RATE_HZ};
use super::performance::{Score, ease};
use super::plucked::Plucked;
use super::room::Room;
use super::wind::Wind;

/// Length of a recording, seconds.
pub(super) const RECORDING_S: f64 = 12.5;

/// Returns the names of the instruments.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &["bowed", "wind", "plucked"]
}

/// Recording of a score, before the gain of the corpus.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Seed of the score and the performance.
    pub seed: u64,
    /// The notes.
    pub score: Score,
    /// Sound at [`OUTPUT_RATE_HZ`].
    pub samples: Vec<f32>,
}

/// Instrument in its room.
pub struct Recorder {
    instrument: Box<dyn Instrument>,
    room: Room,
    seed: u64,
}

impl Recorder {
    /// Sets up the instrument called `name`.
    ///
    /// # Errors
    /// Returns an error that lists the known names if there is no such instrument.
    pub fn new(name: &str, seed: u64) -> anyhow::Result<Self> {
        let instrument: Box<dyn Instrument> = match name {
            "bowed" => Box::new(Bowed::new()),
            "wind" => Box::new(Wind::new()),
            "plucked" => Box::new(Plucked),
            _ => bail!("unknown corpus {name:?}; available: {}", names().join(", ")),
        };
        let index = names().iter().position(|known| *known == name).unwrap_or(0);
        // Every corpus of an instrument has the same room, whatever the seed.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x0ade_5000 + index as u64);
        Ok(Self {
            instrument,
            room: Room::new(OUTPUT_RATE_HZ, &mut rng),
            seed,
        })
    }

    /// Plays recording number `index`; equal seeds and indices give equal samples.
    #[must_use]
    pub fn record(&self, index: usize) -> Recording {
        let seed = recording_seed(self.seed, index);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let score = Score::compose(&self.instrument.style(), RECORDING_S, index, &mut rng);
        let dry = self.instrument.render(&score, &mut rng);
        let mut samples = self.room.apply(&dry);
        fade_out(&mut samples);
        Recording {
            seed,
            score,
            samples,
        }
    }
}

/// Derives the seed of a recording from that of the corpus by a step of SplitMix64, so that
/// neighbours are uncorrelated.
fn recording_seed(seed: u64, index: usize) -> u64 {
    mix64(seed.wrapping_add((index as u64 + 1).wrapping_mul(GOLDEN_GAMMA)))
}

/// Fades the end over 50 ms, followed by 50 ms of zeros.
fn fade_out(samples: &mut [f32]) {
    let length = (0.05 * OUTPUT_RATE_HZ) as usize;
    let silent_from = samples.len().saturating_sub(length);
    let fade_from = silent_from.saturating_sub(length);
    for (n, x) in samples[fade_from..silent_from].iter_mut().enumerate() {
        *x *= 1.0 - ease(n as f64 / length as f64) as f32;
    }
    samples[silent_from..].fill(0.0);
}
