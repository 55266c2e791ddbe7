//! Effects of our own, for what a capture cannot make: it knows neither time nor tempo.
//!
//! [`EFFECTS`] lists them; each is a file that has its [`EffectKind`], its sound and the test of what
//! it promises. A host keeps the values of its parameters, and gives them to [`Effect::set`] with
//! each block; changes are smoothed. All effects stream as the stages of [`dsp`](crate::dsp) do:
//! their output does not depend on how the sound was divided into blocks.
//!
//! # Examples
//! ```
//! use ondes_engine::effects::{Effect, effect};
//!
//! let kind = effect("tremolo").unwrap();
//! let mut tremolo = (kind.new)(48_000);
//! tremolo.set(&kind.defaults(), 120.0);
//! let (mut left, mut right) = ([0.5; 64], [0.5; 64]);
//! tremolo.process(&mut left, &mut right);
//! ```

mod chorus;
mod compressor;
mod delay;
mod drive;
pub mod equalizer;
mod flanger;
mod gate;
mod limiter;
pub mod looper;
mod phaser;
mod pitch_shifter;
mod reverb;
mod tempo;
#[cfg(test)]
pub(crate) mod tests;
mod tremolo;
mod wah;

use std::borrow::Cow;

use crate::model::{Curve, KnobRange};
use crate::pipeline::Transport;

/// All effects, in the order in which a window offers them.
pub static EFFECTS: [&EffectKind; 14] = [
    &gate::KIND,
    &compressor::KIND,
    &equalizer::KIND,
    &drive::KIND,
    &wah::KIND,
    &chorus::KIND,
    &flanger::KIND,
    &phaser::KIND,
    &tremolo::KIND,
    &pitch_shifter::KIND,
    &delay::KIND,
    &reverb::KIND,
    &limiter::KIND,
    &looper::KIND,
];

/// Returns the effect with an id of [`EFFECTS`].
#[must_use]
pub fn effect(id: &str) -> Option<&'static EffectKind> {
    EFFECTS.into_iter().find(|kind| kind.id == id)
}

/// Kind of effect.
#[derive(Debug)]
pub struct EffectKind {
    /// Id in files; it never changes.
    pub id: &'static str,
    /// Name.
    pub name: &'static str,
    /// Description, one sentence.
    pub description: &'static str,
    /// Parameters, in the order of their values.
    pub parameters: &'static [EffectParameter],
    /// Share of the effect beside the dry sound, 0 to 1, by default.
    pub mix: f32,
    /// Makes one for a sample rate in Hz, whose parameters [`Effect::set`] sets before it plays.
    pub new: fn(u32) -> Box<dyn Effect>,
}

impl EffectKind {
    /// Returns the default values of the parameters.
    #[must_use]
    pub fn defaults(&self) -> Vec<f32> {
        let defaults = self.parameters.iter().map(|parameter| parameter.default);
        defaults.collect()
    }
}

/// Parameter of an effect.
#[derive(Clone, Debug)]
pub struct EffectParameter {
    /// Id in files; it never changes.
    pub id: Cow<'static, str>,
    /// Name.
    pub name: Cow<'static, str>,
    /// Unit with a leading space, or empty.
    pub unit: Cow<'static, str>,
    /// Least and largest value.
    pub range: [f32; 2],
    /// Default value.
    pub default: f32,
    /// True if equal ratios are equal distances on a knob.
    pub is_logarithmic: bool,
    /// Names of the values 0, 1, 2 …, if it chooses one of several.
    pub options: &'static [&'static str],
    /// It is a pedal: something happens whenever its value goes from 0 to 1.
    pub is_trigger: bool,
}

impl EffectParameter {
    /// Creates a parameter; equal differences are equal distances on its knob.
    #[must_use]
    pub const fn new(
        id: &'static str,
        name: &'static str,
        unit: &'static str,
        range: [f32; 2],
        default: f32,
    ) -> Self {
        Self {
            id: Cow::Borrowed(id),
            name: Cow::Borrowed(name),
            unit: Cow::Borrowed(unit),
            range,
            default,
            is_logarithmic: false,
            options: &[],
            is_trigger: false,
        }
    }

    /// Creates a parameter of several names; the first is the default.
    #[must_use]
    pub const fn choice(
        id: &'static str,
        name: &'static str,
        options: &'static [&'static str],
    ) -> Self {
        let range = [0.0, (options.len() - 1) as f32];
        let mut parameter = Self::new(id, name, "", range, 0.0);
        parameter.options = options;
        parameter
    }

    /// Creates a pedal, which is up.
    #[must_use]
    pub const fn trigger(id: &'static str, name: &'static str) -> Self {
        let mut parameter = Self::choice(id, name, &["Up", "Down"]);
        parameter.is_trigger = true;
        parameter
    }

    const fn logarithmic(mut self) -> Self {
        self.is_logarithmic = true;
        self
    }

    /// Returns the range of a knob that turns it, with its default in the middle.
    #[must_use]
    pub fn knob_range(&self) -> KnobRange {
        let [min, max] = self.range;
        let curve = match (self.options.is_empty(), self.is_logarithmic) {
            (false, _) => Curve::Steps,
            (true, true) => Curve::Logarithmic,
            (true, false) => Curve::Linear,
        };
        KnobRange {
            min,
            centre: self.default,
            max,
            curve,
        }
    }

    /// Returns the nearest value in range; the default for NaN.
    #[must_use]
    pub fn nearest(&self, value: f32) -> f32 {
        let [least, largest] = self.range;
        match value.is_nan() {
            true => self.default,
            false if self.options.is_empty() => value.clamp(least, largest),
            false => value.round().clamp(least, largest),
        }
    }
}

/// State of an effect, to be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// Number of its state, such as among the [`STATES`](looper::STATES) of a looper.
    pub state: u8,
    /// Share of its loop or of its time that has passed, 0 to 1.
    pub position: f32,
}

/// Effect on two channels. It allocates only when it is made.
pub trait Effect: Send {
    /// Sets all parameters, which are in range, and the tempo of the song, quarter notes a minute.
    /// Changes are smoothed from the next sample on.
    fn set(&mut self, values: &[f32], tempo: f32);

    /// Takes over where the song of the host is at the next sample. Called with each block, in time
    /// before its sound.
    fn follow(&mut self, _song: &Transport) {}

    /// Forgets all sound, and completes changes.
    fn reset(&mut self);

    /// Turns the sound of both channels into that of the effect alone, without the dry sound unless
    /// its mix is 1 by default. Both are equally long.
    fn process(&mut self, left: &mut [f32], right: &mut [f32]);

    /// Returns the delay of the output, samples.
    fn latency_samples(&self) -> usize {
        0
    }

    /// Returns how long it sounds after its input has ended, samples;
    /// [`ENDLESS`](crate::pipeline::ENDLESS) if it plays by itself.
    fn tail_samples(&self) -> usize;

    /// Returns what it is doing, if a window shows that.
    fn activity(&self) -> Option<Activity> {
        None
    }
}

/// Duration of changes, s.
pub(crate) const CHANGE_S: f64 = 0.030;
/// Samples of a step, between which slow values change.
const STEP: usize = 8;

/// Divides sound into steps of [`STEP`] samples, however long its blocks are.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    left: usize,
}

impl Steps {
    fn reset(&mut self) {
        self.left = 0;
    }

    /// Returns the part of the next `frames` samples that belongs to one step, and whether the step
    /// begins with it.
    fn next(&mut self, frames: usize) -> (usize, bool) {
        let begins = self.left == 0;
        if begins {
            self.left = STEP;
        }
        let part = self.left.min(frames);
        self.left -= part;
        (part, begins)
    }
}

/// Returns the share of a distance that is left after a sample, if 63 % of it takes `seconds`.
fn decay(seconds: f32, sample_rate: u32) -> f32 {
    (-1.0 / (seconds * sample_rate as f32)).exp()
}
