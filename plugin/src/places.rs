//! The framework's parameters by number, whatever their types.

use nice_plug::prelude::*;
use ondes_processor::parameter::{
    BLOCK_DC, BYPASS, CABINET, DRIVER, GATE, GLIDE, INPUT_GAIN, INTERFACE_LEVEL, MIX, MODE, OUTPUT_GAIN, OUTPUT_LEVEL,
    OVERSAMPLING, PANIC, PLAYED_BY, QUALITY, SIZE, TONE, TONE_GAINS, TRANSPOSE, TUNE, VOICES,
};
use ondes_ui::KnobId;

use crate::parameters::{Choice, Parameters};

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
    Driver(&'a EnumParam<Choice<{ DRIVER.0 }>>),
    /// How notes that overlap are played.
    Mode(&'a EnumParam<Choice<{ MODE.0 }>>),
    /// What plays the model.
    PlayedBy(&'a EnumParam<Choice<{ PLAYED_BY.0 }>>),
    /// Where the tone control stands.
    Tone(&'a EnumParam<Choice<{ TONE.0 }>>),
    /// At how many times its rate an effect's network runs.
    Oversampling(&'a EnumParam<Choice<{ OVERSAMPLING.0 }>>),
    /// How much of a model with variants plays.
    Quality(&'a EnumParam<Choice<{ QUALITY.0 }>>),
    /// How loud the output of a model is made.
    OutputLevel(&'a EnumParam<Choice<{ OUTPUT_LEVEL.0 }>>),
}

/// Does the same with a parameter of any type.
macro_rules! with {
    ($place:expr, $param:ident => $deed:expr) => {
        match $place {
            $crate::places::Place::Float($param) => $deed,
            $crate::places::Place::Int($param) => $deed,
            $crate::places::Place::Bool($param) => $deed,
            $crate::places::Place::Driver($param) => $deed,
            $crate::places::Place::Mode($param) => $deed,
            $crate::places::Place::PlayedBy($param) => $deed,
            $crate::places::Place::Tone($param) => $deed,
            $crate::places::Place::Oversampling($param) => $deed,
            $crate::places::Place::Quality($param) => $deed,
            $crate::places::Place::OutputLevel($param) => $deed,
        }
    };
}
pub(crate) use with;

impl<'a> Place<'a> {
    /// The parameter of that number.
    #[must_use]
    pub fn of(parameters: &'a Parameters, knob: KnobId) -> Option<Self> {
        Some(match knob {
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
            PANIC => Self::Bool(&parameters.panic),
            GATE => Self::Float(&parameters.gate),
            knob if knob == TONE_GAINS[0] => Self::Float(&parameters.bass),
            knob if knob == TONE_GAINS[1] => Self::Float(&parameters.middle),
            knob if knob == TONE_GAINS[2] => Self::Float(&parameters.treble),
            TONE => Self::Tone(&parameters.tone),
            BLOCK_DC => Self::Bool(&parameters.block_dc),
            CABINET => Self::Float(&parameters.cabinet),
            OVERSAMPLING => Self::Oversampling(&parameters.oversampling),
            SIZE => Self::Float(&parameters.size),
            INTERFACE_LEVEL => Self::Float(&parameters.interface_level),
            QUALITY => Self::Quality(&parameters.quality),
            OUTPUT_LEVEL => Self::OutputLevel(&parameters.output_level),
            KnobId(index) => Self::Float(*parameters.macros().get(index as usize)?),
        })
    }

    /// Its value as the user has set it.
    #[must_use]
    pub fn value(self) -> f32 {
        match self {
            Self::Float(param) => param.unmodulated_plain_value(),
            Self::Int(param) => param.unmodulated_plain_value() as f32,
            Self::Bool(param) => param.unmodulated_normalized_value(),
            Self::Driver(param) => param.unmodulated_plain_value().0 as f32,
            Self::Mode(param) => param.unmodulated_plain_value().0 as f32,
            Self::PlayedBy(param) => param.unmodulated_plain_value().0 as f32,
            Self::Tone(param) => param.unmodulated_plain_value().0 as f32,
            Self::Oversampling(param) => param.unmodulated_plain_value().0 as f32,
            Self::Quality(param) => param.unmodulated_plain_value().0 as f32,
            Self::OutputLevel(param) => param.unmodulated_plain_value().0 as f32,
        }
    }

    /// Its value with what the host adds to that.
    #[must_use]
    pub fn modulated(self) -> f32 {
        match self {
            Self::Float(param) => param.value(),
            Self::Int(param) => param.value() as f32,
            Self::Bool(param) => f32::from(u8::from(param.value())),
            Self::Driver(param) => param.value().0 as f32,
            Self::Mode(param) => param.value().0 as f32,
            Self::PlayedBy(param) => param.value().0 as f32,
            Self::Tone(param) => param.value().0 as f32,
            Self::Oversampling(param) => param.value().0 as f32,
            Self::Quality(param) => param.value().0 as f32,
            Self::OutputLevel(param) => param.value().0 as f32,
        }
    }
}
