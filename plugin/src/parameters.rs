//! What a host can automate.

use std::sync::Arc;

use nice_plug::prelude::*;
use ondes_engine::pipeline::Source;
use ondes_engine::realtime::Driver;

use crate::macros::{MACROS, REST};
use crate::player::{Knobs, Playing};
use crate::shared::{Selection, Shared};

/// At this gain, dB, and below nothing is heard.
pub const SILENT_DB: f32 = -60.0;

/// Where the model runs; changing it makes the host restart the plugin, since latency changes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub enum DriverChoice {
    /// In the callback where the model is cheap enough, else by the worker.
    #[id = "auto"]
    #[name = "Auto"]
    Auto,
    /// In the callback: no latency is added.
    #[id = "inline"]
    #[name = "Inline"]
    Inline,
    /// By the worker thread, a block and 10 ms late.
    #[id = "worker"]
    #[name = "Worker"]
    Worker,
}

impl DriverChoice {
    /// The choice that comes nearest; none for what a host never drives by.
    #[must_use]
    pub fn of(driver: Driver) -> Option<Self> {
        match driver {
            Driver::Auto => Some(Self::Auto),
            Driver::Inline => Some(Self::Inline),
            Driver::Worker { .. } => Some(Self::Worker),
            Driver::Offline => None,
        }
    }
}

impl From<DriverChoice> for Driver {
    fn from(choice: DriverChoice) -> Self {
        match choice {
            DriverChoice::Auto => Self::Auto,
            DriverChoice::Inline => Self::Inline,
            DriverChoice::Worker => Self::Worker { latency: None },
        }
    }
}

/// How notes that overlap are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub enum Mode {
    /// As the model says.
    #[id = "model"]
    #[name = "As made"]
    Model,
    /// Each has a voice of its own.
    #[id = "poly"]
    #[name = "Poly"]
    Poly,
    /// One voice, which each note strikes anew.
    #[id = "mono"]
    #[name = "Mono"]
    Mono,
    /// One voice, which slurs.
    #[id = "legato"]
    #[name = "Legato"]
    Legato,
}

/// What plays the instrument; changing it makes the host restart the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub enum PlayedBy {
    /// Notes.
    #[id = "notes"]
    #[name = "Notes"]
    Notes,
    /// A sound, by its pitch and loudness.
    #[id = "input"]
    #[name = "Side-chain"]
    Input,
}

impl From<PlayedBy> for Source {
    fn from(played_by: PlayedBy) -> Self {
        match played_by {
            PlayedBy::Notes => Self::Notes,
            PlayedBy::Input => Self::Sound,
        }
    }
}

/// The parameters of both plugins, and what else is saved.
#[derive(Params)]
pub struct Parameters {
    #[persist = "ondes"]
    selection: Selection,
    /// The dry sound alone, as late as the wet one.
    #[id = "bypass"]
    pub bypass: BoolParam,
    /// Gain of what drives the model, dB (−60 … 24; −60 is silence).
    #[id = "input_gain"]
    pub input_gain: FloatParam,
    /// Gain of what is heard, dB (−60 … 24; −60 is silence).
    #[id = "output_gain"]
    pub output_gain: FloatParam,
    /// Share of the model's sound, 0 … 1; the rest is the input.
    #[id = "mix"]
    pub mix: FloatParam,
    /// Shift of all pitches, semitones (−24 … 24).
    #[id = "transpose"]
    pub transpose: IntParam,
    /// Fine shift of all pitches, cents (−100 … 100).
    #[id = "tune"]
    pub tune: FloatParam,
    /// How notes that overlap are played.
    #[id = "mode"]
    pub mode: EnumParam<Mode>,
    /// Time of the slide between notes that share a voice, ms (0 … 2,000; below 0 it is the model's own).
    #[id = "glide"]
    pub glide: FloatParam,
    /// Most notes at once (1 … 16; 0 for as many as the model has voices).
    #[id = "voices"]
    pub voices: IntParam,
    /// Silence at once, each time that it is switched on.
    #[id = "panic"]
    pub panic: BoolParam,
    /// Where the model runs.
    #[id = "driver"]
    pub driver: EnumParam<DriverChoice>,
    /// What plays the model; hosts do not see it where there is no choice.
    #[id = "source"]
    pub played_by: EnumParam<PlayedBy>,
    #[id = "macro1"]
    macro1: FloatParam,
    #[id = "macro2"]
    macro2: FloatParam,
    #[id = "macro3"]
    macro3: FloatParam,
    #[id = "macro4"]
    macro4: FloatParam,
    #[id = "macro5"]
    macro5: FloatParam,
    #[id = "macro6"]
    macro6: FloatParam,
    #[id = "macro7"]
    macro7: FloatParam,
    #[id = "macro8"]
    macro8: FloatParam,
}

impl Parameters {
    /// Parameters at their defaults.
    #[must_use]
    ///
    /// Where a sound plays the model by itself, there is no choice what plays it.
    pub fn new(shared: &Arc<Shared>, source: Source) -> Self {
        let turn = |index| a_macro(shared, index);
        Self {
            selection: Selection(shared.clone()),
            bypass: BoolParam::new("Bypass", false).make_bypass(),
            input_gain: gain("Input gain"),
            output_gain: gain("Output gain"),
            mix: FloatParam::new("Mix", 1.0, FloatRange::Linear { min: 0.0, max: 1.0 })
                .with_unit(" %")
                .with_value_to_string(formatters::v2s_f32_percentage(1))
                .with_string_to_value(Arc::new(|text| Some(number(text)? / 100.0))),
            transpose: IntParam::new("Transpose", 0, IntRange::Linear { min: -24, max: 24 })
                .with_unit(" st")
                .with_string_to_value(Arc::new(|text| Some(number(text)?.round() as i32))),
            tune: FloatParam::new("Tune", 0.0, FloatRange::Linear { min: -100.0, max: 100.0 })
                .with_unit(" ct")
                .with_value_to_string(formatters::v2s_f32_rounded(1))
                .with_string_to_value(Arc::new(number)),
            mode: EnumParam::new("Mode", Mode::Model),
            glide: glide(),
            voices: IntParam::new("Voices", 0, IntRange::Linear { min: 0, max: 16 })
                .with_value_to_string(Arc::new(|value| if value == 0 { AS_MADE.into() } else { value.to_string() }))
                .with_string_to_value(Arc::new(|text| {
                    if is_as_made(text) { Some(0) } else { Some(number(text)?.round() as i32) }
                })),
            panic: BoolParam::new("Panic", false),
            driver: EnumParam::new("Driver", DriverChoice::Auto).non_automatable(),
            played_by: match source {
                Source::Notes => EnumParam::new("Played by", PlayedBy::Notes).non_automatable(),
                Source::Sound => EnumParam::new("Played by", PlayedBy::Input).non_automatable().hide(),
            },
            macro1: turn(0),
            macro2: turn(1),
            macro3: turn(2),
            macro4: turn(3),
            macro5: turn(4),
            macro6: turn(5),
            macro7: turn(6),
            macro8: turn(7),
        }
    }

    /// The macros, each 0 … 1.
    #[must_use]
    pub fn macros(&self) -> [&FloatParam; MACROS] {
        let Self { macro1, macro2, macro3, macro4, macro5, macro6, macro7, macro8, .. } = self;
        [macro1, macro2, macro3, macro4, macro5, macro6, macro7, macro8]
    }

    /// Whether notes can play the model.
    #[must_use]
    pub fn can_play_notes(&self) -> bool {
        !self.played_by.flags().contains(ParamFlags::HIDDEN)
    }

    /// Where everything stands now.
    #[must_use]
    pub fn knobs(&self) -> Knobs {
        Knobs {
            bypass: self.bypass.value(),
            input_gain: linear(self.input_gain.value()),
            output_gain: linear(self.output_gain.value()),
            mix: self.mix.value(),
            panic: self.panic.value(),
            playing: Playing {
                semitones: self.transpose.value() as f32 + self.tune.value() / 100.0,
                mode: self.mode.value() as u8,
                glide_ms: self.glide.value(),
                voices: self.voices.value() as u8,
            },
            macros: self.macros().map(FloatParam::value),
        }
    }
}

fn gain(name: &str) -> FloatParam {
    let text = |value: f32| if value <= SILENT_DB { "-inf".into() } else { format!("{value:.1}") };
    let value = |text: &str| if text.trim().starts_with("-inf") { Some(SILENT_DB) } else { number(text) };
    FloatParam::new(name, 0.0, FloatRange::Linear { min: SILENT_DB, max: 24.0 })
        .with_unit(" dB")
        .with_value_to_string(Arc::new(text))
        .with_string_to_value(Arc::new(value))
}

fn a_macro(shared: &Arc<Shared>, index: usize) -> FloatParam {
    let (text, value) = (shared.clone(), shared.clone());
    FloatParam::new(format!("Macro {}", index + 1), REST, FloatRange::Linear { min: 0.0, max: 1.0 })
        .with_value_to_string(Arc::new(move |position| text.macro_text(index, position)))
        .with_string_to_value(Arc::new(move |typed| value.macro_position(index, typed)))
}

/// The text of what is left to the model.
const AS_MADE: &str = "As made";

fn is_as_made(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case(AS_MADE)
}

fn glide() -> FloatParam {
    // All below 0 means the same; the slower half of the range is in the upper quarter.
    let range = FloatRange::Skewed { min: -1.0, max: 2_000.0, factor: FloatRange::skew_factor(-1.3) };
    let text = |value: f32| if value < 0.0 { AS_MADE.into() } else { format!("{value:.0} ms") };
    let value = |text: &str| if is_as_made(text) { Some(-1.0) } else { number(text) };
    FloatParam::new("Glide", -1.0, range).with_value_to_string(Arc::new(text)).with_string_to_value(Arc::new(value))
}

/// The number at the start of a text, whatever its unit.
fn number(text: &str) -> Option<f32> {
    let text = text.trim();
    let end = text.find(|sign: char| !matches!(sign, '0'..='9' | '.' | '-' | '+')).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The factor of a gain.
fn linear(gain_db: f32) -> f32 {
    if gain_db <= SILENT_DB { 0.0 } else { 10.0_f32.powf(gain_db / 20.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_any_unit() {
        assert_eq!([number("-3dB"), number(" 4.5 %"), number("+2 st")], [Some(-3.0), Some(4.5), Some(2.0)]);
        assert_eq!([number("loud"), number(""), number("1-2")], [None; 3]);
    }

    #[test]
    fn gains_go_down_to_nothing() {
        assert_eq!((linear(0.0), linear(SILENT_DB)), (1.0, 0.0));
        assert!((linear(20.0) - 10.0).abs() < 1e-5);
    }
}
