//! Sound to train on, made by our own physical models.
//!
//! A bundled model must come from sound that anyone can make again and nobody owns, so three instruments are simulated and
//! played. In reading order: [`performance`] composes phrases and [`curves`] turns them into what a bow or breath does;
//! [`bowed`], [`wind`] and [`plucked`] are the instruments, built from [`delay`] and [`filter`], corrected by [`tuning`] and
//! heard through a [`body`] and a [`room`]; [`write`](mod@write) puts the result on disk. Each file has its own seed, so a
//! corpus does not depend on how many threads made it.

#![forbid(unsafe_code)]

use std::path::Path;

use anyhow::{Context, bail};
use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};

pub mod body;
pub mod bowed;
pub mod circuits;
pub mod curves;
pub mod delay;
pub mod filter;
pub mod performance;
pub mod plucked;
pub mod room;
#[cfg(test)]
mod tests;
pub mod tuning;
pub mod wind;
pub mod write;

use performance::{Score, Style};
use room::Room;

/// Rate of the files, in hertz.
pub const OUTPUT_RATE_HZ: f64 = 48_000.0;

/// Changes whenever the same seed gives other samples.
pub const VERSION: u32 = 3;

/// Length of one file in seconds; a corpus has as many as its minutes ask for.
const FILE_S: f64 = 12.5;

/// The corpora that can be made.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &["bowed", "wind", "plucked"]
}

/// What to make.
#[derive(Debug, Clone)]
pub struct Options {
    /// One of [`names`].
    pub name: String,
    /// Length of the corpus in minutes; it will be this long or a few seconds longer.
    pub minutes: f64,
    /// Everything random follows from this.
    pub seed: u64,
}

/// What was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Number of files.
    pub files: usize,
    /// Number of notes in them.
    pub notes: usize,
    /// Their length together, in seconds.
    pub seconds: f64,
    /// The one gain that was applied to all of them, in decibels.
    pub gain_db: f64,
}

/// An instrument that plays scores.
pub trait Instrument: Send + Sync {
    /// What can be asked of it.
    fn style(&self) -> Style;

    /// Its sound at [`OUTPUT_RATE_HZ`], without a room.
    fn render(&self, score: &Score, rng: &mut dyn Rng) -> Vec<f32>;
}

/// The instrument of a corpus.
///
/// # Errors
///
/// If there is none of that name.
pub fn instrument(name: &str) -> anyhow::Result<Box<dyn Instrument>> {
    Ok(match name {
        "bowed" => Box::new(bowed::Bowed::new()),
        "wind" => Box::new(wind::Wind::new()),
        "plucked" => Box::new(plucked::Plucked),
        _ => bail!("there is no corpus `{name}`; there are {}", names().join(", ")),
    })
}

/// One file of a corpus, before the corpus's gain.
#[derive(Debug, Clone)]
pub struct Take {
    /// Seed of this file.
    pub seed: u64,
    /// What is played.
    pub score: Score,
    /// How it sounds, at [`OUTPUT_RATE_HZ`].
    pub samples: Vec<f32>,
}

/// An instrument in its room, ready to record.
pub struct Studio {
    instrument: Box<dyn Instrument>,
    room: Room,
    seed: u64,
}

impl Studio {
    /// Sets up the instrument called `name`.
    ///
    /// # Errors
    ///
    /// If there is none of that name.
    pub fn new(name: &str, seed: u64) -> anyhow::Result<Self> {
        let place = names().iter().position(|known| *known == name).unwrap_or(0);
        // The room belongs to the instrument, whatever is played in it.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x0ade_5000 + place as u64);
        Ok(Self { instrument: instrument(name)?, room: Room::new(OUTPUT_RATE_HZ, &mut rng), seed })
    }

    /// Records file number `index`.
    #[must_use]
    pub fn record(&self, index: usize) -> Take {
        let seed = file_seed(self.seed, index);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let score = Score::compose(&self.instrument.style(), FILE_S, index, &mut rng);
        let dry = self.instrument.render(&score, &mut rng);
        let mut samples = self.room.apply(&dry);
        fade_out(&mut samples);
        Take { seed, score, samples }
    }
}

/// The seed of one file: a step of SplitMix64 from the corpus's seed, so that neighbours have nothing in common.
fn file_seed(seed: u64, index: usize) -> u64 {
    let mut z = seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Brings the last of the tail to true silence: a fade of 50 ms, then 50 ms of zeros.
fn fade_out(samples: &mut [f32]) {
    let part = (0.05 * OUTPUT_RATE_HZ) as usize;
    let silent_from = samples.len().saturating_sub(part);
    let fade_from = silent_from.saturating_sub(part);
    for (n, x) in samples[fade_from..silent_from].iter_mut().enumerate() {
        *x *= 1.0 - performance::ease(n as f64 / part as f64) as f32;
    }
    samples[silent_from..].fill(0.0);
}

/// Makes a corpus and writes it into the folder `out`; `progress` hears of the files done and of their total.
///
/// # Errors
///
/// If there is no such corpus, if its length is no length, or if it cannot be written.
pub fn generate(options: &Options, out: &Path, progress: impl Fn(usize, usize) + Sync) -> anyhow::Result<Summary> {
    if !(options.minutes > 0.0 && options.minutes <= 600.0) {
        bail!("a corpus is up to 600 minutes long, not {}", options.minutes);
    }
    let studio = Studio::new(&options.name, options.seed)?;
    std::fs::create_dir_all(out).with_context(|| format!("cannot make the folder {}", out.display()))?;
    write::corpus(&studio, options, out, progress)
}

/// A value that moves in a straight line from one control point to the next.
#[derive(Debug, Clone, Copy, Default)]
struct Ramp {
    value: f64,
    step: f64,
    target: f64,
}

impl Ramp {
    /// Aims at a value that [`next`](Self::next) reaches in `samples` steps.
    fn towards(&mut self, target: f64, samples: usize) {
        self.step = (target - self.value) / samples as f64;
        self.target = target;
    }

    /// Is at its target at once.
    fn arrive(&mut self) {
        self.value = self.target;
        self.step = 0.0;
    }

    #[inline]
    fn next(&mut self) -> f64 {
        self.value += self.step;
        self.value
    }
}
