//! The parameter table: everything that is known of each parameter, in one place.
//!
//! Plugin parameters, window knobs, tooltips, presets, projects and command-line controls are made
//! from [`PARAMETERS`], and [`parameter_docs`](crate::parameter_docs) documents it. To add a
//! parameter, append it to the table and name its id below.

use ondes_engine::dsp::reverb::{DEFAULT_TIME_S, TIME_RANGE_S};
use ondes_engine::dsp::tone::MAX_GAIN_DB;

use crate::choice::{
    self, CONTROL_INPUTS, Choices, DRIVERS, MODES, MPE_ZONES, OUTPUT_LEVELS, OVERSAMPLINGS,
    QUALITIES, SOURCES, TONES,
};
use crate::macros::MACRO_CENTRE;
use crate::product::Product;
use crate::rig::scene::SCENES;
use crate::value_format::{GATE_OFF_DB, INTERFACE_OFF_DBU, SILENT_DB, ValueFormat};

/// Number of a parameter, its index in [`PARAMETERS`]; or number of a latent knob (see
/// [`crate::model_controls`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParameterId(pub u32);

/// An entry of the parameter table.
///
/// A *value* is in the parameter's unit; values of switches and choices are the indices of their
/// options, 0, 1, …. A *normalized* value is the position of the knob, 0 … 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Identifier in hosts, projects, presets and on the command line; never changes.
    pub id: &'static str,
    /// Label in hosts and in the window.
    pub label: &'static str,
    /// Unit, with the space that separates it from the value.
    pub unit: &'static str,
    /// Group in hosts and in the documentation; empty for none.
    pub group: &'static str,
    /// One sentence for tooltips and documentation.
    pub tooltip: &'static str,
    /// Type, range and default.
    pub kind: ParameterKind,
    /// Files that save the value.
    pub scope: ParameterScope,
    /// True if MIDI controllers may change it, and, unless it is
    /// [momentary](ParameterScope::Momentary), automation. Parameters that restart the host or load
    /// a model are not automatable.
    pub automatable: bool,
    /// The product that the parameter only applies to: an effect has neither keys nor voices.
    pub only: Option<Product>,
    format: ValueFormat,
}

/// Type, range and default of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterKind {
    /// A real number between two ends, both included.
    Float {
        /// Least value, in the parameter's unit.
        min: f32,
        /// Greatest value.
        max: f32,
        /// Default value.
        default: f32,
        /// Relation of values and knob positions.
        curve: KnobCurve,
    },
    /// An integer between two ends, both included.
    Integer {
        /// Least value, in the parameter's unit.
        min: i32,
        /// Greatest value.
        max: i32,
        /// Default value.
        default: i32,
    },
    /// Off, the default, or on.
    Switch,
    /// One of several options; the first is the default.
    Choice(Choices),
}

/// Relation of values and knob positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KnobCurve {
    /// Proportional.
    Linear,
    /// Position = (share of the range)^(2^bend): a bend below 0 gives more of the knob's travel to
    /// small values.
    Skewed(f32),
}

/// Files that save a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterScope {
    /// Presets and projects: it belongs to the sound.
    Sound,
    /// Projects only: it belongs to the track or the machine, or changing it would interrupt the
    /// sound.
    Project,
    /// None: it triggers an action.
    Momentary,
}

/// Number of parameters.
pub const PARAMETER_COUNT: usize = PARAMETERS.len();

const DECIBELS: ValueFormat = ValueFormat::Decibels;
const PERCENT: ValueFormat = ValueFormat::Percent;
const TENTHS: ValueFormat = ValueFormat::Tenths;
const TONE_RANGE_DB: [f32; 2] = [-MAX_GAIN_DB, MAX_GAIN_DB];

/// Groups of parameters, named as the window's pages where there is one.
const MACROS: &str = "Macros";
const LEVELS: &str = "Levels";
const VOICE: &str = "Voice";
const CHAIN: &str = "Chain";
const RIG: &str = "Rig";
const PROCESSING: &str = "Processing";

/// The table. A parameter's index is its [`ParameterId`]; the macros come first. Hosts know this
/// order.
pub static PARAMETERS: &[Parameter] = &[
    macro_parameter("macro1", "Macro 1"),
    macro_parameter("macro2", "Macro 2"),
    macro_parameter("macro3", "Macro 3"),
    macro_parameter("macro4", "Macro 4"),
    macro_parameter("macro5", "Macro 5"),
    macro_parameter("macro6", "Macro 6"),
    macro_parameter("macro7", "Macro 7"),
    macro_parameter("macro8", "Macro 8"),
    float("input_gain", "Input gain", 0.0, [SILENT_DB, 24.0], DECIBELS)
        .group(LEVELS)
        .unit(" dB")
        .tooltip("Gain of the input, before the model"),
    float("output_gain", "Output gain", 0.0, [SILENT_DB, 24.0], DECIBELS)
        .group(LEVELS)
        .unit(" dB")
        .tooltip("Gain of the output, wet and dry"),
    float("mix", "Mix", 1.0, [0.0, 1.0], PERCENT)
        .group(LEVELS)
        .unit(" %")
        .tooltip("Share of the model's sound; the rest is the input"),
    integer("transpose", "Transpose", 0, [-24, 24], ValueFormat::Integer)
        .group(VOICE)
        .unit(" st")
        .tooltip("Shift of all pitches in semitones"),
    float("tune", "Tune", 0.0, [-100.0, 100.0], TENTHS)
        .group(VOICE)
        .unit(" ct")
        .tooltip("Fine shift of all pitches in cents"),
    switch("bypass", "Bypass").project_only().tooltip("Pass the input through, delayed by the reported latency"),
    choice("driver", "Processing", DRIVERS)
        .group(PROCESSING)
        .project_only()
        .not_automatable()
        .tooltip("Thread that runs the model; the latency depends on it"),
    choice("mode", "Mode", MODES).group(VOICE).only(Product::Instrument).tooltip("How overlapping notes are played"),
    float("glide", "Glide", -1.0, [-1.0, 2_000.0], ValueFormat::Milliseconds)
        .group(VOICE)
        // All values below 0 mean the same; the slower half of the range takes the upper quarter of
        // the knob.
        .skewed(-1.3)
        .only(Product::Instrument)
        .tooltip("Time of the slide between notes that share a voice"),
    integer("voices", "Voices", 0, [0, 16], ValueFormat::Count)
        .group(VOICE)
        .only(Product::Instrument)
        .tooltip("Number of notes at once"),
    choice("source", "Control source", SOURCES)
        .group(PROCESSING)
        .project_only()
        .not_automatable()
        .only(Product::Instrument)
        .tooltip("Play the model by MIDI, or by pitch and loudness of the side-chain"),
    Parameter { scope: ParameterScope::Momentary, ..switch("panic", "Panic") }.tooltip("Silence everything at once"),
    float("gate", "Gate", GATE_OFF_DB, [GATE_OFF_DB, -20.0], ValueFormat::Threshold)
        .group(CHAIN)
        .tooltip("Threshold of the noise gate before the model, as a peak level"),
    float("bass", "Bass", 0.0, TONE_RANGE_DB, TENTHS).group(CHAIN).unit(" dB").tooltip("Gain of low frequencies"),
    float("middle", "Middle", 0.0, TONE_RANGE_DB, TENTHS)
        .group(CHAIN)
        .unit(" dB")
        .tooltip("Gain of middle frequencies"),
    float("treble", "Treble", 0.0, TONE_RANGE_DB, TENTHS).group(CHAIN).unit(" dB").tooltip("Gain of high frequencies"),
    choice("tone", "Tone position", TONES)
        .group(CHAIN)
        .tooltip("Position of bass, middle and treble: before or after the model"),
    switch("block_dc", "Block DC").group(CHAIN).tooltip("Remove the model's constant offset"),
    float("cabinet", "Cabinet", 1.0, [0.0, 1.0], PERCENT)
        .group(CHAIN)
        .unit(" %")
        .tooltip("Share of the cabinet's sound; 0 turns it off"),
    choice("oversampling", "Oversampling", OVERSAMPLINGS).group(PROCESSING).project_only().not_automatable().tooltip(
        "Run an effect's network at a multiple of its sample rate, against aliasing, by default that which the model \
         asks for; the latency depends on it",
    ),
    float("size", "Size", 1.0, [0.0, 1.0], PERCENT)
        .group(PROCESSING)
        .unit(" %")
        .project_only()
        .not_automatable()
        .tooltip("Largest variant that may be used of a model with variants"),
    float("interface_level", "Interface level", INTERFACE_OFF_DBU, [INTERFACE_OFF_DBU, 30.0], ValueFormat::Level)
        .group(LEVELS)
        .project_only()
        .tooltip("Input level of the audio interface at full scale, to drive the model as it was recorded"),
    choice("output_level", "Output level", OUTPUT_LEVELS)
        .group(LEVELS)
        .tooltip("Output level of captures: unchanged, at a common loudness, or as high as the recorded device's"),
    choice("quality", "Quality", QUALITIES)
        .group(PROCESSING)
        .project_only()
        .not_automatable()
        .tooltip("Variant to use of a model with variants, up to the chosen size"),
    choice("control_input", "Control input", CONTROL_INPUTS)
        .group(PROCESSING)
        .project_only()
        .not_automatable()
        .only(Product::Effect)
        .tooltip("Play an instrument by pitch and loudness of the track, or of the side-chain"),
    choice("channels", "Channels", choice::CHANNELS)
        .group(PROCESSING)
        .project_only()
        .not_automatable()
        .tooltip("Channels of a stereo input that the model processes: both, their mean, or the left one"),
    float("reverb", "Reverb", 0.0, [0.0, 1.0], PERCENT)
        .group(CHAIN)
        .unit(" %")
        .skewed(-1.0)
        .tooltip("Amount of a stereo room around the sound; at 100 % as loud as the sound itself"),
    float("reverb_time", "Reverb time", DEFAULT_TIME_S, TIME_RANGE_S, TENTHS)
        .group(CHAIN)
        .unit(" s")
        .skewed(-1.3)
        .tooltip("Time in which the room's sound decays by 60 dB"),
    integer("bend_range", "Bend range", 2, [0, 96], ValueFormat::Integer)
        .group(VOICE)
        .unit(" st")
        .project_only()
        .not_automatable()
        .only(Product::Instrument)
        .tooltip("Range of the pitch wheel, up and down, where the MIDI does not set it"),
    choice("mpe", "MPE", MPE_ZONES)
        .group(VOICE)
        .project_only()
        .not_automatable()
        .only(Product::Instrument)
        .tooltip("Zone of an MPE controller that does not send it; its notes bend by 48 semitones"),
    integer("scene", "Scene", 1, [1, SCENES as i32], ValueFormat::Integer)
        .group(RIG)
        .project_only()
        .tooltip("Scene of the rig; MIDI program changes choose it as well"),
    Parameter { scope: ParameterScope::Momentary, ..switch("next_scene", "Next scene") }
        .group(RIG)
        .tooltip("Go to the next scene, when it is switched on"),
    Parameter { scope: ParameterScope::Momentary, ..switch("previous_scene", "Previous scene") }
        .group(RIG)
        .tooltip("Go to the scene before, when it is switched on"),
];

/// Goes to the next scene when it is switched on.
pub const NEXT_SCENE: ParameterId = id_of("next_scene");
/// Goes to the scene before when it is switched on.
pub const PREVIOUS_SCENE: ParameterId = id_of("previous_scene");
/// Scene of the rig, from 1.
pub const SCENE: ParameterId = id_of("scene");
/// Gain of the input, dB.
pub const INPUT_GAIN: ParameterId = id_of("input_gain");
/// Gain of the output, dB.
pub const OUTPUT_GAIN: ParameterId = id_of("output_gain");
/// Share of the model's sound, 0 … 1; the rest is the input.
pub const MIX: ParameterId = id_of("mix");
/// Shift of all pitches, semitones.
pub const TRANSPOSE: ParameterId = id_of("transpose");
/// Fine shift of all pitches, cents.
pub const TUNE: ParameterId = id_of("tune");
/// Passes the input through, with the latency of the model.
pub const BYPASS: ParameterId = id_of("bypass");
/// Thread that runs the model, one of [`DRIVERS`]. A change restarts the host, since the latency
/// changes.
pub const DRIVER: ParameterId = id_of("driver");
/// Voice mode, one of [`MODES`].
pub const MODE: ParameterId = id_of("mode");
/// Time of the slide between notes that share a voice, ms; the model's own below 0.
pub const GLIDE: ParameterId = id_of("glide");
/// Number of voices; 0 for the model's own.
pub const VOICES: ParameterId = id_of("voices");
/// Control source, one of [`SOURCES`]. Not shown to hosts for a product without the choice.
pub const SOURCE: ParameterId = id_of("source");
/// Silences everything when it is switched on.
pub const PANIC: ParameterId = id_of("panic");
/// Threshold of the noise gate, dB; off at the least value.
pub const GATE: ParameterId = id_of("gate");
/// Gains of the tone control, dB.
pub const TONE_GAINS: [ParameterId; 3] = [id_of("bass"), id_of("middle"), id_of("treble")];
/// Position of the tone control, one of [`TONES`].
pub const TONE: ParameterId = id_of("tone");
/// Removes the model's constant offset.
pub const BLOCK_DC: ParameterId = id_of("block_dc");
/// Share of the cabinet's sound, 0 … 1; off at 0.
pub const CABINET: ParameterId = id_of("cabinet");
/// Amount of reverberation, 0 … 1; off at 0.
pub const REVERB: ParameterId = id_of("reverb");
/// Reverberation time, s.
pub const REVERB_TIME: ParameterId = id_of("reverb_time");
/// Oversampling factor of an effect, one of [`OVERSAMPLINGS`]. A change restarts the host, since
/// the latency changes.
pub const OVERSAMPLING: ParameterId = id_of("oversampling");
/// Largest variant of a model that may be used, 0 … 1; the full network at 1.
pub const SIZE: ParameterId = id_of("size");
/// Variant of a model to use, up to [`SIZE`]; one of [`QUALITIES`].
pub const QUALITY: ParameterId = id_of("quality");
/// Input of an effect that controls an instrument, one of [`CONTROL_INPUTS`].
pub const CONTROL_INPUT: ParameterId = id_of("control_input");
/// Channels of the input to process, one of [`choice::CHANNELS`].
pub const CHANNELS: ParameterId = id_of("channels");
/// Range of the pitch wheel where the MIDI does not set it, ± semitones.
pub const BEND_RANGE: ParameterId = id_of("bend_range");
/// MPE zone where the MIDI does not set it, one of [`MPE_ZONES`].
pub const MPE: ParameterId = id_of("mpe");
/// Input level of the audio interface at full scale, dBu; unknown at the least value.
pub const INTERFACE_LEVEL: ParameterId = id_of("interface_level");
/// Output level, one of [`OUTPUT_LEVELS`].
pub const OUTPUT_LEVEL: ParameterId = id_of("output_level");

const fn float(
    id: &'static str,
    label: &'static str,
    default: f32,
    [min, max]: [f32; 2],
    format: ValueFormat,
) -> Parameter {
    let kind = ParameterKind::Float {
        min,
        max,
        default,
        curve: KnobCurve::Linear,
    };
    Parameter {
        id,
        label,
        unit: "",
        group: "",
        tooltip: "",
        kind,
        scope: ParameterScope::Sound,
        automatable: true,
        only: None,
        format,
    }
}

const fn integer(
    id: &'static str,
    label: &'static str,
    default: i32,
    [min, max]: [i32; 2],
    format: ValueFormat,
) -> Parameter {
    Parameter {
        kind: ParameterKind::Integer { min, max, default },
        ..float(id, label, 0.0, [0.0, 0.0], format)
    }
}

const fn switch(id: &'static str, label: &'static str) -> Parameter {
    Parameter {
        kind: ParameterKind::Switch,
        ..float(id, label, 0.0, [0.0, 0.0], ValueFormat::Option)
    }
}

const fn choice(id: &'static str, label: &'static str, choices: Choices) -> Parameter {
    Parameter {
        kind: ParameterKind::Choice(choices),
        ..float(id, label, 0.0, [0.0, 0.0], ValueFormat::Option)
    }
}

/// A macro. [`InstanceHandle`](crate::instance::InstanceHandle) formats the values of one that is
/// bound to a control.
const fn macro_parameter(id: &'static str, label: &'static str) -> Parameter {
    float(id, label, MACRO_CENTRE, [0.0, 1.0], PERCENT)
        .group(MACROS)
        .unit(" %")
        .tooltip("Sets the model's control that it is bound to")
}

/// Returns the number of a parameter at compile time.
const fn id_of(id: &str) -> ParameterId {
    let mut index = 0;
    while index < PARAMETER_COUNT {
        if is_same(PARAMETERS[index].id.as_bytes(), id.as_bytes()) {
            return ParameterId(index as u32);
        }
        index += 1;
    }
    panic!("no such parameter")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

/// Returns all parameters with their numbers.
pub fn all() -> impl Iterator<Item = (ParameterId, &'static Parameter)> {
    (0..).map(ParameterId).zip(PARAMETERS)
}

/// Returns the parameters that automation and MIDI controllers may change.
pub fn automatable() -> impl Iterator<Item = (ParameterId, &'static Parameter)> {
    all().filter(|(_, parameter)| parameter.automatable)
}

impl Parameter {
    const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    const fn group(self, group: &'static str) -> Self {
        Self { group, ..self }
    }

    const fn tooltip(self, tooltip: &'static str) -> Self {
        Self { tooltip, ..self }
    }

    const fn project_only(self) -> Self {
        Self {
            scope: ParameterScope::Project,
            ..self
        }
    }

    const fn not_automatable(self) -> Self {
        Self {
            automatable: false,
            ..self
        }
    }

    const fn only(self, product: Product) -> Self {
        Self {
            only: Some(product),
            ..self
        }
    }

    /// Sets the curve of a [`ParameterKind::Float`].
    const fn skewed(self, bend: f32) -> Self {
        match self.kind {
            ParameterKind::Float {
                min, max, default, ..
            } => {
                let kind = ParameterKind::Float {
                    min,
                    max,
                    default,
                    curve: KnobCurve::Skewed(bend),
                };
                Self { kind, ..self }
            }
            _ => self,
        }
    }

    /// Returns the parameter of this number.
    #[must_use]
    pub fn get(id: ParameterId) -> Option<&'static Self> {
        PARAMETERS.get(id.0 as usize)
    }

    /// Returns the number of the parameter with this identifier.
    #[must_use]
    pub fn find(id: &str) -> Option<ParameterId> {
        all()
            .find(|(_, parameter)| parameter.id == id)
            .map(|(number, _)| number)
    }

    /// Returns whether the parameter has a meaning for that product.
    #[must_use]
    pub fn applies_to(&self, product: Product) -> bool {
        self.only.is_none_or(|only| only == product)
    }

    /// Returns whether hosts may automate the parameter: not if it triggers an action, as [`PANIC`]
    /// does.
    #[must_use]
    pub fn is_host_automatable(&self) -> bool {
        self.automatable && self.scope != ParameterScope::Momentary
    }

    /// Returns the default value.
    #[must_use]
    pub fn default(&self) -> f32 {
        match self.kind {
            ParameterKind::Float { default, .. } => default,
            ParameterKind::Integer { default, .. } => default as f32,
            ParameterKind::Switch | ParameterKind::Choice(_) => 0.0,
        }
    }

    /// Returns the least and the greatest value.
    #[must_use]
    pub fn range(&self) -> [f32; 2] {
        match self.kind {
            ParameterKind::Float { min, max, .. } => [min, max],
            ParameterKind::Integer { min, max, .. } => [min as f32, max as f32],
            ParameterKind::Switch => [0.0, 1.0],
            ParameterKind::Choice(choices) => [0.0, choices.names.len() as f32 - 1.0],
        }
    }

    /// Returns the labels of a switch or a choice, in the order of their values; empty for numbers.
    #[must_use]
    pub fn options(&self) -> &'static [&'static str] {
        match self.kind {
            ParameterKind::Choice(choices) => choices.names,
            ParameterKind::Switch => &["Off", "On"],
            ParameterKind::Float { .. } | ParameterKind::Integer { .. } => &[],
        }
    }

    /// Returns the nearest valid value; the default for NaN.
    #[must_use]
    pub fn clamp(&self, value: f32) -> f32 {
        let [min, max] = self.range();
        let value = if value.is_nan() {
            self.default()
        } else {
            value.clamp(min, max)
        };
        match self.kind {
            ParameterKind::Float { .. } => value,
            ParameterKind::Switch => f32::from(u8::from(value > 0.5)),
            // Counted from the least value, as knob positions are.
            ParameterKind::Integer { .. } | ParameterKind::Choice(_) => (value - min).round() + min,
        }
    }

    /// Returns the number of values, evenly spaced; 0 for a continuous parameter.
    #[must_use]
    pub fn steps(&self) -> u32 {
        let [min, max] = self.range();
        match self.kind {
            ParameterKind::Float { .. } => 0,
            _ => (max - min) as u32 + 1,
        }
    }

    /// Returns the normalized value, 0 … 1; values out of range are clamped.
    #[must_use]
    pub fn normalize(&self, value: f32) -> f32 {
        let [min, max] = self.range();
        let share = (self.clamp(value) - min) / (max - min);
        match self.kind {
            ParameterKind::Float {
                curve: KnobCurve::Skewed(bend),
                ..
            } => share.powf(2.0_f32.powf(bend)),
            _ => share,
        }
    }

    /// Returns the value for a normalized one, 0 … 1; rounded to the nearest step.
    #[must_use]
    pub fn denormalize(&self, normalized: f32) -> f32 {
        let normalized = if normalized.is_nan() {
            self.normalize(self.default())
        } else {
            normalized.clamp(0.0, 1.0)
        };
        let [min, max] = self.range();
        match self.kind {
            ParameterKind::Float {
                curve: KnobCurve::Skewed(bend),
                ..
            } => normalized.powf(2.0_f32.powf(bend).recip()) * (max - min) + min,
            ParameterKind::Float { .. } => normalized * (max - min) + min,
            ParameterKind::Integer { .. } | ParameterKind::Choice(_) => {
                (normalized * (max - min)).round() + min
            }
            ParameterKind::Switch => f32::from(u8::from(normalized > 0.5)),
        }
    }

    /// Formats a value, without its unit.
    #[must_use]
    pub fn format(&self, value: f32) -> String {
        self.format.format(value, self.options())
    }

    /// Parses a value, with or without its unit; the result is clamped.
    #[must_use]
    pub fn parse(&self, text: &str) -> Option<f32> {
        self.format
            .parse(text, self.options())
            .map(|value| self.clamp(value))
    }
}

#[cfg(test)]
mod tests;
