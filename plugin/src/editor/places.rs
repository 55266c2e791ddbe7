//! The parameters as a window knows them: places to turn, by number.

use nice_plug::prelude::*;
use ondes_ui::{Knob, KnobId, Midi};

use crate::macros::MACROS;
use crate::parameters::{DriverChoice, Mode, Parameters, PlayedBy};

/// Numbers of the knobs after the macros, which are 0 … 7.
pub const INPUT_GAIN: KnobId = KnobId(8);
/// Gain after all.
pub const OUTPUT_GAIN: KnobId = KnobId(9);
/// Dry to wet.
pub const MIX: KnobId = KnobId(10);
/// Semitones.
pub const TRANSPOSE: KnobId = KnobId(11);
/// Cents.
pub const TUNE: KnobId = KnobId(12);
/// No knob, but set like one.
pub const BYPASS: KnobId = KnobId(13);
/// No knob, but set like one.
pub const DRIVER: KnobId = KnobId(14);
/// How notes that overlap are played.
pub const MODE: KnobId = KnobId(15);
/// Time between notes that share a voice.
pub const GLIDE: KnobId = KnobId(16);
/// Most notes at once.
pub const VOICES: KnobId = KnobId(17);
/// No knob, but set like one.
pub const PLAYED_BY: KnobId = KnobId(18);
/// All of them.
pub const ALL: std::ops::RangeInclusive<u32> = 0..=18;

/// One parameter.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// Of any value.
    Float(&'a FloatParam),
    /// Of whole numbers.
    Int(&'a IntParam),
    /// On or off.
    Bool(&'a BoolParam),
    /// The driver.
    Driver(&'a EnumParam<DriverChoice>),
    /// How notes that overlap are played.
    Mode(&'a EnumParam<Mode>),
    /// What plays the model.
    PlayedBy(&'a EnumParam<PlayedBy>),
}

/// Does the same with a parameter of any type.
macro_rules! with {
    ($place:expr, $param:ident => $deed:expr) => {
        match $place {
            $crate::editor::places::Place::Float($param) => $deed,
            $crate::editor::places::Place::Int($param) => $deed,
            $crate::editor::places::Place::Bool($param) => $deed,
            $crate::editor::places::Place::Driver($param) => $deed,
            $crate::editor::places::Place::Mode($param) => $deed,
            $crate::editor::places::Place::PlayedBy($param) => $deed,
        }
    };
}
pub(super) use with;

impl<'a> Place<'a> {
    /// The parameter of that number.
    #[must_use]
    pub fn of(parameters: &'a Parameters, id: KnobId) -> Option<Self> {
        Some(match id {
            INPUT_GAIN => Self::Float(&parameters.input_gain),
            OUTPUT_GAIN => Self::Float(&parameters.output_gain),
            MIX => Self::Float(&parameters.mix),
            TRANSPOSE => Self::Int(&parameters.transpose),
            TUNE => Self::Float(&parameters.tune),
            BYPASS => Self::Bool(&parameters.bypass),
            DRIVER => Self::Driver(&parameters.driver),
            MODE => Self::Mode(&parameters.mode),
            GLIDE => Self::Float(&parameters.glide),
            VOICES => Self::Int(&parameters.voices),
            PLAYED_BY => Self::PlayedBy(&parameters.played_by),
            KnobId(index) => {
                Self::Float(*parameters.macros().get(index as usize).filter(|_| (index as usize) < MACROS)?)
            }
        })
    }

    /// The id under which hosts and projects know the parameter of that number.
    #[must_use]
    pub fn id(knob: KnobId) -> Option<&'static str> {
        const MACRO_IDS: [&str; MACROS] =
            ["macro1", "macro2", "macro3", "macro4", "macro5", "macro6", "macro7", "macro8"];
        Some(match knob {
            INPUT_GAIN => "input_gain",
            OUTPUT_GAIN => "output_gain",
            MIX => "mix",
            TRANSPOSE => "transpose",
            TUNE => "tune",
            BYPASS => "bypass",
            DRIVER => "driver",
            MODE => "mode",
            GLIDE => "glide",
            VOICES => "voices",
            PLAYED_BY => "source",
            KnobId(index) => MACRO_IDS.get(index as usize)?,
        })
    }

    /// The number of the parameter of that id.
    #[must_use]
    pub fn named(id: &str) -> Option<KnobId> {
        ALL.map(KnobId).find(|knob| Self::id(*knob) == Some(id))
    }

    /// Where it stands, 0 … 1, as the user has set it.
    #[must_use]
    pub fn value(self) -> f32 {
        with!(self, param => param.unmodulated_normalized_value())
    }

    /// What it says there, with its unit.
    #[must_use]
    pub fn text(self, value: f32) -> String {
        with!(self, param => param.normalized_value_to_string(value, true))
    }

    /// Where it says that.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<f32> {
        with!(self, param => param.string_to_normalized_value(text)).filter(|value| value.is_finite())
    }

    /// As a knob of that number.
    #[must_use]
    pub fn knob(self, id: KnobId) -> Knob {
        let (name, default) = with!(self, param => (param.name().to_owned(), param.default_normalized_value()));
        // The framework counts the steps between the places.
        let steps = with!(self, param => param.step_count()).map_or(0, |steps| steps as u32 + 1);
        let choices = match self {
            Self::Mode(_) => (0..steps).map(|step| self.text(step as f32 / (steps - 1) as f32)).collect(),
            _ => Vec::new(),
        };
        Knob { id, name, value: self.value(), default, steps, choices, midi: Midi::None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use ondes_engine::pipeline::Source;

    use super::*;
    use crate::shared::Shared;

    #[test]
    fn all_places_are_known_to_hosts_by_their_ids() {
        let parameters = Parameters::new(&Shared::new(Source::Notes), Source::Notes);
        let known: HashMap<String, ParamPtr> =
            parameters.param_map().into_iter().map(|(id, parameter, _)| (id, parameter)).collect();
        for knob in ALL.map(KnobId) {
            let place = Place::of(&parameters, knob).unwrap();
            let here = with!(place, param => param.as_ptr());
            assert_eq!(Place::id(knob).and_then(|id| known.get(id)), Some(&here), "{knob:?}");
        }
        assert_eq!(Place::id(KnobId(99)), None);
    }
}
