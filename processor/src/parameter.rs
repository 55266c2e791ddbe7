//! All that can be turned, as data: one table, from which hosts' parameters, windows and presets are made.

use ondes_engine::dsp::tone::MOST_DB;
use ondes_ui::{Knob, KnobId, Midi};

use crate::choice::{DRIVERS, MODES, OUTPUT_LEVELS, OVERSAMPLINGS, QUALITIES, SOURCES, TONES};
use crate::macros::{MACROS, REST};
use crate::text::{GATE_OFF_DB, INTERFACE_OFF_DBU, SILENT_DB, Text};

/// One thing to turn.
///
/// Its *value* is in its unit, and what has names has their places in the list as values: 0, 1, …. Its *position* is
/// where a knob stands for that, 0 … 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// What hosts, projects and presets know it by; never changes.
    pub id: &'static str,
    /// What people know it by.
    pub name: &'static str,
    /// What follows a value's text.
    pub unit: &'static str,
    /// Which values it has.
    pub kind: Kind,
    /// What keeps its value.
    pub scope: Scope,
    /// Whether automation and controllers may turn it. What makes the host begin anew, or takes time to load, they may not.
    pub turnable: bool,
    /// Whether it means nothing where only a sound can play the model.
    pub notes_only: bool,
    text: Text,
}

/// Which values a parameter has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any between two ends, which are among them.
    Float {
        /// The least, in the parameter's unit.
        min: f32,
        /// The most.
        max: f32,
        /// Where it stands in the beginning.
        default: f32,
        /// How they are spread.
        curve: Curve,
    },
    /// Whole numbers between two ends, which are among them.
    Whole {
        /// The least, in the parameter's unit.
        min: i32,
        /// The most.
        max: i32,
        /// Where it stands in the beginning.
        default: i32,
    },
    /// Off, which it is in the beginning, or on.
    Switch,
    /// One of several; the first in the beginning.
    Choice(Choices),
}

/// What there is to choose between; both lists are in the same order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choices {
    /// What projects and presets know them by.
    pub ids: &'static [&'static str],
    /// What people know them by.
    pub names: &'static [&'static str],
}

/// How values are spread over a knob's way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Curve {
    /// Evenly.
    Linear,
    /// A value's share of the range, to the power of 2 to this, is the position: below 0 small values have more room.
    Skewed(f32),
}

/// What keeps a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Presets and projects: it makes the sound.
    Sound,
    /// Projects alone: it is the track's or the machine's. Changing it from sound to sound would cut notes off.
    Project,
    /// Nothing: it happens when it is turned.
    Moment,
}

/// How many there are.
pub const COUNT: usize = MACROS + 24;

/// The table. A parameter's number is its place here; the macros come first.
pub static PARAMETERS: [Parameter; COUNT] = [
    a_macro("macro1", "Macro 1"),
    a_macro("macro2", "Macro 2"),
    a_macro("macro3", "Macro 3"),
    a_macro("macro4", "Macro 4"),
    a_macro("macro5", "Macro 5"),
    a_macro("macro6", "Macro 6"),
    a_macro("macro7", "Macro 7"),
    a_macro("macro8", "Macro 8"),
    Parameter { unit: " dB", ..float("input_gain", "Input gain", 0.0, [SILENT_DB, 24.0], Text::Decibels) },
    Parameter { unit: " dB", ..float("output_gain", "Output gain", 0.0, [SILENT_DB, 24.0], Text::Decibels) },
    Parameter { unit: " %", ..float("mix", "Mix", 1.0, [0.0, 1.0], Text::Percent) },
    Parameter { unit: " st", ..whole("transpose", "Transpose", 0, [-24, 24], Text::Whole) },
    Parameter { unit: " ct", ..float("tune", "Tune", 0.0, [-100.0, 100.0], Text::Tenths) },
    Parameter { scope: Scope::Project, ..switch("bypass", "Bypass") },
    Parameter { scope: Scope::Project, turnable: false, ..choice("driver", "Driver", DRIVERS) },
    Parameter { notes_only: true, ..choice("mode", "Mode", MODES) },
    Parameter {
        // All below 0 means the same; the slower half of the range is in the upper quarter.
        kind: Kind::Float { min: -1.0, max: 2_000.0, default: -1.0, curve: Curve::Skewed(-1.3) },
        notes_only: true,
        ..float("glide", "Glide", 0.0, [0.0, 0.0], Text::Milliseconds)
    },
    Parameter { notes_only: true, ..whole("voices", "Voices", 0, [0, 16], Text::Count) },
    Parameter { scope: Scope::Project, turnable: false, notes_only: true, ..choice("source", "Played by", SOURCES) },
    Parameter { scope: Scope::Moment, ..switch("panic", "Panic") },
    float("gate", "Gate", GATE_OFF_DB, [GATE_OFF_DB, -20.0], Text::Threshold),
    Parameter { unit: " dB", ..float("bass", "Bass", 0.0, [-MOST_DB, MOST_DB], Text::Tenths) },
    Parameter { unit: " dB", ..float("middle", "Middle", 0.0, [-MOST_DB, MOST_DB], Text::Tenths) },
    Parameter { unit: " dB", ..float("treble", "Treble", 0.0, [-MOST_DB, MOST_DB], Text::Tenths) },
    choice("tone", "Tone", TONES),
    switch("block_dc", "Block DC"),
    Parameter { unit: " %", ..float("cabinet", "Cabinet", 1.0, [0.0, 1.0], Text::Percent) },
    Parameter { scope: Scope::Project, turnable: false, ..choice("oversampling", "Oversampling", OVERSAMPLINGS) },
    Parameter {
        unit: " %",
        scope: Scope::Project,
        turnable: false,
        ..float("size", "Size", 1.0, [0.0, 1.0], Text::Percent)
    },
    Parameter {
        scope: Scope::Project,
        ..float("interface_level", "Interface level", INTERFACE_OFF_DBU, [INTERFACE_OFF_DBU, 30.0], Text::Interface)
    },
    choice("output_level", "Output level", OUTPUT_LEVELS),
    Parameter { scope: Scope::Project, turnable: false, ..choice("quality", "Quality", QUALITIES) },
];

/// Gain of what drives the model.
pub const INPUT_GAIN: KnobId = number("input_gain");
/// Gain of what is heard.
pub const OUTPUT_GAIN: KnobId = number("output_gain");
/// Share of the model's sound, 0 … 1; the rest is the input.
pub const MIX: KnobId = number("mix");
/// Shift of all pitches, semitones.
pub const TRANSPOSE: KnobId = number("transpose");
/// Fine shift of all pitches, cents.
pub const TUNE: KnobId = number("tune");
/// The dry sound alone, as late as the wet one.
pub const BYPASS: KnobId = number("bypass");
/// Where the model runs; changing it makes the host begin anew, since latency changes with it.
pub const DRIVER: KnobId = number("driver");
/// How notes that overlap are played.
pub const MODE: KnobId = number("mode");
/// Time of the slide between notes that share a voice, ms; below 0 it is the model's own.
pub const GLIDE: KnobId = number("glide");
/// Most notes at once; 0 for as many as the model has voices.
pub const VOICES: KnobId = number("voices");
/// What plays the model; hosts do not see it where there is no choice.
pub const PLAYED_BY: KnobId = number("source");
/// Silence at once, each time that it is switched on.
pub const PANIC: KnobId = number("panic");
/// Peaks above this open the gate before the model, dB; at the least it is off.
pub const GATE: KnobId = number("gate");
/// Gains of the tone control, dB.
pub const TONE_GAINS: [KnobId; 3] = [number("bass"), number("middle"), number("treble")];
/// Whether the tone control stands before or after the model.
pub const TONE: KnobId = number("tone");
/// What the model adds to all samples alike is taken away.
pub const BLOCK_DC: KnobId = number("block_dc");
/// Share of the cabinet's sound, 0 … 1; at 0 it is off.
pub const CABINET: KnobId = number("cabinet");
/// At how many times its rate an effect's network runs; changing it makes the host begin anew, since latency changes with it.
pub const OVERSAMPLING: KnobId = number("oversampling");
/// In which of its sizes a model with variants plays at most, 0 … 1; at 1 the whole of it.
pub const SIZE: KnobId = number("size");
/// How much of a model with variants plays, of those up to its [`SIZE`].
pub const QUALITY: KnobId = number("quality");
/// Level of full scale at the user's interface, dBu; at the least it is not told.
pub const INTERFACE_LEVEL: KnobId = number("interface_level");
/// How loud the output of a model is made.
pub const OUTPUT_LEVEL: KnobId = number("output_level");

const fn float(id: &'static str, name: &'static str, default: f32, [min, max]: [f32; 2], text: Text) -> Parameter {
    let kind = Kind::Float { min, max, default, curve: Curve::Linear };
    Parameter { id, name, unit: "", kind, scope: Scope::Sound, turnable: true, notes_only: false, text }
}

const fn whole(id: &'static str, name: &'static str, default: i32, [min, max]: [i32; 2], text: Text) -> Parameter {
    Parameter { kind: Kind::Whole { min, max, default }, ..float(id, name, 0.0, [0.0, 0.0], text) }
}

const fn switch(id: &'static str, name: &'static str) -> Parameter {
    Parameter { kind: Kind::Switch, ..float(id, name, 0.0, [0.0, 0.0], Text::Name) }
}

const fn choice(id: &'static str, name: &'static str, choices: Choices) -> Parameter {
    Parameter { kind: Kind::Choice(choices), ..float(id, name, 0.0, [0.0, 0.0], Text::Name) }
}

/// A macro, as it is said where it turns nothing; else [`Shared`](crate::shared::Shared) knows what it turns.
const fn a_macro(id: &'static str, name: &'static str) -> Parameter {
    Parameter { unit: " %", ..float(id, name, REST, [0.0, 1.0], Text::Percent) }
}

/// The number of the parameter of that id, found by the compiler.
const fn number(id: &str) -> KnobId {
    let mut place = 0;
    while place < COUNT {
        if is_same(PARAMETERS[place].id.as_bytes(), id.as_bytes()) {
            return KnobId(place as u32);
        }
        place += 1;
    }
    panic!("there is no such parameter")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut place = 0;
    while place < one.len() && place < other.len() && one[place] == other[place] {
        place += 1;
    }
    place == one.len() && place == other.len()
}

/// All of them with their numbers.
pub fn all() -> impl Iterator<Item = (KnobId, &'static Parameter)> {
    (0..).map(KnobId).zip(&PARAMETERS)
}

/// All that automation and controllers may turn.
pub fn turnable() -> impl Iterator<Item = (KnobId, &'static Parameter)> {
    all().filter(|(_, parameter)| parameter.turnable)
}

impl Parameter {
    /// The parameter of that number.
    #[must_use]
    pub fn of(knob: KnobId) -> Option<&'static Self> {
        PARAMETERS.get(knob.0 as usize)
    }

    /// The number of the parameter of that id.
    #[must_use]
    pub fn named(id: &str) -> Option<KnobId> {
        all().find(|(_, parameter)| parameter.id == id).map(|(knob, _)| knob)
    }

    /// The value in the beginning.
    #[must_use]
    pub fn default(&self) -> f32 {
        match self.kind {
            Kind::Float { default, .. } => default,
            Kind::Whole { default, .. } => default as f32,
            Kind::Switch | Kind::Choice(_) => 0.0,
        }
    }

    /// The least value and the most.
    #[must_use]
    pub fn range(&self) -> [f32; 2] {
        match self.kind {
            Kind::Float { min, max, .. } => [min, max],
            Kind::Whole { min, max, .. } => [min as f32, max as f32],
            Kind::Switch => [0.0, 1.0],
            Kind::Choice(choices) => [0.0, choices.names.len() as f32 - 1.0],
        }
    }

    /// The nearest value that there is; the default for what is no number.
    #[must_use]
    pub fn nearest(&self, value: f32) -> f32 {
        let [min, max] = self.range();
        let value = if value.is_nan() { self.default() } else { value.clamp(min, max) };
        match self.kind {
            Kind::Float { .. } => value,
            _ => value.round(),
        }
    }

    /// How many values it has, spread evenly; 0 for any.
    #[must_use]
    pub fn steps(&self) -> u32 {
        let [min, max] = self.range();
        match self.kind {
            Kind::Float { .. } => 0,
            _ => (max - min) as u32 + 1,
        }
    }

    /// Where a knob stands for a value, 0 … 1; at the nearest end for one that is out of range.
    #[must_use]
    pub fn position(&self, value: f32) -> f32 {
        let [min, max] = self.range();
        let share = (self.nearest(value) - min) / (max - min);
        match self.kind {
            Kind::Float { curve: Curve::Skewed(bend), .. } => share.powf(2.0_f32.powf(bend)),
            _ => share,
        }
    }

    /// The value where a knob stands, 0 … 1; the nearest one where it stands between two.
    #[must_use]
    pub fn value(&self, position: f32) -> f32 {
        let position = if position.is_nan() { self.position(self.default()) } else { position.clamp(0.0, 1.0) };
        let [min, max] = self.range();
        match self.kind {
            Kind::Float { curve: Curve::Skewed(bend), .. } => {
                position.powf(2.0_f32.powf(bend).recip()) * (max - min) + min
            }
            Kind::Float { .. } => position * (max - min) + min,
            Kind::Whole { .. } | Kind::Choice(_) => (position * (max - min)).round() + min,
            Kind::Switch => f32::from(u8::from(position > 0.5)),
        }
    }

    /// What a value says, without its unit.
    #[must_use]
    pub fn say(&self, value: f32) -> String {
        self.text.say(self, value)
    }

    /// The value nearest to what a text says, with or without its unit.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<f32> {
        self.text.read(self, text).map(|value| self.nearest(value))
    }

    /// As a knob of that number, which stands there.
    #[must_use]
    pub fn knob(&self, id: KnobId, value: f32) -> Knob {
        let choices = match self.kind {
            Kind::Choice(choices) => choices.names.iter().map(|name| (*name).to_owned()).collect(),
            _ => Vec::new(),
        };
        let (value, default) = (self.position(value), self.position(self.default()));
        Knob { id, name: self.name.to_owned(), value, default, steps: self.steps(), choices, midi: Midi::None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_lead_to_parameters_and_macros_come_first() {
        let ids: BTreeSet<&str> = PARAMETERS.iter().map(|parameter| parameter.id).collect();
        assert_eq!(ids.len(), COUNT);
        for (knob, parameter) in all() {
            assert_eq!(Parameter::named(parameter.id), Some(knob));
            assert_eq!(Parameter::of(knob), Some(parameter));
            assert_eq!((knob.0 as usize) < MACROS, parameter.id.starts_with("macro"), "{}", parameter.id);
        }
        assert_eq!((Parameter::named("wow"), Parameter::of(KnobId(99))), (None, None));
        assert_eq!(Parameter::named("voices"), Some(VOICES));
    }

    /// Projects and presets have these, and hosts their order.
    #[test]
    fn ids_never_change() {
        let ids: Vec<&str> = PARAMETERS[MACROS..].iter().map(|parameter| parameter.id).collect();
        let always = "input_gain output_gain mix transpose tune bypass driver mode glide voices source panic gate bass \
                      middle treble tone block_dc cabinet oversampling size interface_level output_level \
                      quality";
        assert_eq!(ids.join(" "), always);
    }

    #[test]
    fn values_lead_to_positions_and_back() {
        for (_, parameter) in all() {
            let [min, max] = parameter.range();
            let ends = [parameter.position(min), parameter.position(max)];
            assert_eq!((ends, parameter.value(0.0), parameter.value(1.0)), ([0.0, 1.0], min, max), "{}", parameter.id);
            for step in 0..=40 {
                let value = parameter.value(step as f32 / 40.0);
                let again = parameter.value(parameter.position(value));
                assert!((again - value).abs() <= 1e-5 * (max - min), "{}: {value}, then {again}", parameter.id);
                assert_eq!(parameter.nearest(value), value, "{}", parameter.id);
            }
            let beyond = [f32::INFINITY, f32::MIN, f32::NAN].map(|value| parameter.nearest(value));
            assert_eq!(beyond, [max, min, parameter.default()], "{}", parameter.id);
            assert_eq!(parameter.value(f32::NAN), parameter.value(parameter.position(parameter.default())));
        }
        let glide = Parameter::of(GLIDE).unwrap();
        assert!((900.0..1_300.0).contains(&glide.value(0.75)), "{}", glide.value(0.75));
        assert_eq!(Parameter::of(TRANSPOSE).unwrap().nearest(-12.4), -12.0);
    }

    #[test]
    fn choices_have_a_name_for_each_id() {
        let choices = all().filter_map(|(_, parameter)| match parameter.kind {
            Kind::Choice(choices) => Some((parameter, choices)),
            _ => None,
        });
        for (parameter, Choices { ids, names }) in choices {
            assert_eq!((ids.len(), names.len() as u32), (names.len(), parameter.steps()), "{}", parameter.id);
        }
    }
}
