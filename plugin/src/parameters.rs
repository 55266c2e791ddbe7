//! What a host can automate: the framework's parameters, made from the table of all.

use std::sync::Arc;

use nice_plug::params::persist::PersistentField;
use nice_plug::prelude::*;
use ondes_processor::board::Board;
use ondes_processor::choice::of_source;
use ondes_processor::macros::MACROS;
use ondes_processor::parameter::{
    BLOCK_DC, BYPASS, CABINET, Choices, Curve, DRIVER, GATE, GLIDE, INPUT_GAIN, INTERFACE_LEVEL, Kind, MIX, MODE,
    OUTPUT_GAIN, OUTPUT_LEVEL, OVERSAMPLING, PANIC, PARAMETERS, PLAYED_BY, Parameter, QUALITY, SIZE, TONE, TONE_GAINS,
    TRANSPOSE, TUNE, VOICES,
};
use ondes_processor::player::Knobs;
use ondes_processor::preset::Product;
use ondes_processor::shared::Shared;
use ondes_processor::state::Saved;
use ondes_ui::KnobId;

use crate::places::Place;

/// One of what the parameter of that number chooses between, by its place among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<const KNOB: u32>(pub usize);

impl<const KNOB: u32> Choice<KNOB> {
    const CHOICES: Choices = match PARAMETERS[KNOB as usize].kind {
        Kind::Choice(choices) => choices,
        _ => panic!("there is nothing to choose"),
    };
}

impl<const KNOB: u32> Enum for Choice<KNOB> {
    fn variants() -> &'static [&'static str] {
        Self::CHOICES.names
    }

    fn ids() -> Option<&'static [&'static str]> {
        Some(Self::CHOICES.ids)
    }

    fn to_index(self) -> usize {
        self.0
    }

    fn from_index(index: usize) -> Self {
        Self(if index < Self::CHOICES.ids.len() { index } else { 0 })
    }
}

/// What a project saves besides the parameters.
struct Selection(Arc<Shared>);

impl PersistentField<'_, Saved> for Selection {
    fn set(&self, saved: Saved) {
        self.0.restore(saved);
    }

    fn map<F: Fn(&Saved) -> R, R>(&self, give: F) -> R {
        give(&self.0.saved())
    }
}

/// The parameters of both plugins, and what else is saved.
#[derive(Params)]
pub struct Parameters {
    #[persist = "ondes"]
    selection: Selection,
    #[id = "bypass"]
    pub(crate) bypass: BoolParam,
    #[id = "input_gain"]
    pub(crate) input_gain: FloatParam,
    #[id = "output_gain"]
    pub(crate) output_gain: FloatParam,
    #[id = "mix"]
    pub(crate) mix: FloatParam,
    #[id = "transpose"]
    pub(crate) transpose: IntParam,
    #[id = "tune"]
    pub(crate) tune: FloatParam,
    #[id = "mode"]
    pub(crate) mode: EnumParam<Choice<{ MODE.0 }>>,
    #[id = "glide"]
    pub(crate) glide: FloatParam,
    #[id = "voices"]
    pub(crate) voices: IntParam,
    #[id = "panic"]
    pub(crate) panic: BoolParam,
    #[id = "driver"]
    pub(crate) driver: EnumParam<Choice<{ DRIVER.0 }>>,
    #[id = "source"]
    pub(crate) played_by: EnumParam<Choice<{ PLAYED_BY.0 }>>,
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
    #[id = "gate"]
    pub(crate) gate: FloatParam,
    #[id = "bass"]
    pub(crate) bass: FloatParam,
    #[id = "middle"]
    pub(crate) middle: FloatParam,
    #[id = "treble"]
    pub(crate) treble: FloatParam,
    #[id = "tone"]
    pub(crate) tone: EnumParam<Choice<{ TONE.0 }>>,
    #[id = "block_dc"]
    pub(crate) block_dc: BoolParam,
    #[id = "cabinet"]
    pub(crate) cabinet: FloatParam,
    #[id = "oversampling"]
    pub(crate) oversampling: EnumParam<Choice<{ OVERSAMPLING.0 }>>,
    #[id = "size"]
    pub(crate) size: FloatParam,
    #[id = "interface_level"]
    pub(crate) interface_level: FloatParam,
    #[id = "output_level"]
    pub(crate) output_level: EnumParam<Choice<{ OUTPUT_LEVEL.0 }>>,
    #[id = "quality"]
    pub(crate) quality: EnumParam<Choice<{ QUALITY.0 }>>,
}

impl Parameters {
    /// Parameters of an instance at their defaults.
    #[must_use]
    pub fn new(shared: &Arc<Shared>) -> Self {
        let turn = |index| a_macro(shared, index);
        let played_by = choice(PLAYED_BY, of_source(shared.product.source()) as usize);
        Self {
            selection: Selection(shared.clone()),
            bypass: switch(BYPASS).make_bypass(),
            input_gain: float(INPUT_GAIN),
            output_gain: float(OUTPUT_GAIN),
            mix: float(MIX),
            transpose: whole(TRANSPOSE),
            tune: float(TUNE),
            mode: choice(MODE, 0),
            glide: float(GLIDE),
            voices: whole(VOICES),
            panic: switch(PANIC),
            driver: choice(DRIVER, 0),
            played_by: match shared.product {
                Product::Instrument => played_by,
                // Where only a sound plays the model there is no choice.
                Product::Effect => played_by.hide(),
            },
            macro1: turn(0),
            macro2: turn(1),
            macro3: turn(2),
            macro4: turn(3),
            macro5: turn(4),
            macro6: turn(5),
            macro7: turn(6),
            macro8: turn(7),
            gate: float(GATE),
            bass: float(TONE_GAINS[0]),
            middle: float(TONE_GAINS[1]),
            treble: float(TONE_GAINS[2]),
            tone: choice(TONE, 0),
            block_dc: switch(BLOCK_DC),
            cabinet: float(CABINET),
            oversampling: choice(OVERSAMPLING, 0),
            size: float(SIZE),
            interface_level: float(INTERFACE_LEVEL),
            output_level: choice(OUTPUT_LEVEL, 0),
            quality: choice(QUALITY, 0),
        }
    }

    /// The macros, each 0 … 1.
    #[must_use]
    pub fn macros(&self) -> [&FloatParam; MACROS] {
        let Self { macro1, macro2, macro3, macro4, macro5, macro6, macro7, macro8, .. } = self;
        [macro1, macro2, macro3, macro4, macro5, macro6, macro7, macro8]
    }
}

impl Board for Parameters {
    fn knobs(&self) -> Knobs {
        Knobs::read(|knob| Place::of(self, knob).map_or(0.0, Place::modulated))
    }

    fn value(&self, knob: KnobId) -> Option<f32> {
        Place::of(self, knob).map(Place::value)
    }
}

fn of(knob: KnobId) -> &'static Parameter {
    &PARAMETERS[knob.0 as usize]
}

fn float(knob: KnobId) -> FloatParam {
    let parameter = of(knob);
    plain(knob)
        .with_unit(parameter.unit)
        .with_value_to_string(Arc::new(|value| parameter.say(value)))
        .with_string_to_value(Arc::new(|text| parameter.read(text)))
}

/// Without texts.
fn plain(knob: KnobId) -> FloatParam {
    let parameter = of(knob);
    let [min, max] = parameter.range();
    let range = match parameter.kind {
        Kind::Float { curve: Curve::Skewed(bend), .. } => {
            FloatRange::Skewed { min, max, factor: FloatRange::skew_factor(bend) }
        }
        _ => FloatRange::Linear { min, max },
    };
    let param = FloatParam::new(parameter.name, parameter.default(), range);
    if parameter.turnable { param } else { param.non_automatable() }
}

fn whole(knob: KnobId) -> IntParam {
    let parameter = of(knob);
    let [min, max] = parameter.range().map(|end| end as i32);
    IntParam::new(parameter.name, parameter.default() as i32, IntRange::Linear { min, max })
        .with_unit(parameter.unit)
        .with_value_to_string(Arc::new(|value| parameter.say(value as f32)))
        .with_string_to_value(Arc::new(|text| parameter.read(text).map(|value| value as i32)))
}

fn switch(knob: KnobId) -> BoolParam {
    BoolParam::new(of(knob).name, false)
}

fn choice<const KNOB: u32>(knob: KnobId, default: usize) -> EnumParam<Choice<KNOB>> {
    let param = EnumParam::new(of(knob).name, Choice(default));
    if of(knob).turnable { param } else { param.non_automatable() }
}

/// What it turns is said with it, unit and all.
fn a_macro(shared: &Arc<Shared>, index: u32) -> FloatParam {
    let (knob, text, value) = (KnobId(index), shared.clone(), shared.clone());
    plain(knob)
        .with_value_to_string(Arc::new(move |position| text.text(knob, position).unwrap_or_default()))
        .with_string_to_value(Arc::new(move |typed| value.parse(knob, typed)))
}

#[cfg(test)]
mod tests {
    use ondes_processor::parameter::all;

    use super::*;
    use crate::places::with;

    fn parameters(product: Product) -> Parameters {
        Parameters::new(&Shared::new(product, || ()))
    }

    #[test]
    fn they_are_what_the_table_says() {
        let parameters = parameters(Product::Instrument);
        assert_eq!(parameters.param_map().len(), PARAMETERS.len());
        for (knob, parameter) in all() {
            let place = Place::of(&parameters, knob).unwrap();
            let (pointer, id) = (with!(place, param => param.as_ptr()), parameter.id);
            assert!(parameters.param_map().iter().any(|(known, there, _)| known == id && *there == pointer), "{id}");
            let (name, flags) = with!(place, param => (param.name().to_owned(), param.flags()));
            assert_eq!(
                (name.as_str(), !flags.contains(ParamFlags::NON_AUTOMATABLE)),
                (parameter.name, parameter.turnable)
            );
            assert_eq!(place.value(), parameter.default(), "{id}");
            assert_eq!(
                parameters.normalized(knob),
                Some(with!(place, param => param.default_normalized_value())),
                "{id}"
            );
            assert_eq!(
                with!(place, param => param.step_count()).map_or(0, |steps| steps as u32 + 1),
                parameter.steps()
            );
            if (knob.0 as usize) < MACROS {
                // What they say is the model's.
                continue;
            }
            for step in 0..=1_000 {
                let position = step as f32 / 1_000.0;
                let said = with!(place, param => param.normalized_value_to_string(position, true));
                assert_eq!(said, format!("{}{}", parameter.say(parameter.value(position)), parameter.unit), "{id}");
                let understood = with!(place, param => param.string_to_normalized_value(&said));
                let stood = parameter.read(&said).map(|value| parameter.position(value));
                assert!(understood.is_some() && understood == stood, "{id} {said}");
            }
            let numbers = matches!(parameter.kind, Kind::Float { .. } | Kind::Whole { .. });
            for (typed, end) in [("-99999999999", 0.0), ("99999999999", 1.0)].into_iter().filter(|_| numbers) {
                assert_eq!(with!(place, param => param.string_to_normalized_value(typed)), Some(end), "{id} {typed}");
            }
        }
        assert!(Place::of(&parameters, KnobId(99)).is_none());
    }

    /// Hosts have automation and projects of these.
    #[test]
    fn hosts_find_what_they_always_found() {
        let parameters = parameters(Product::Instrument);
        let found: Vec<String> = parameters
            .param_map()
            .into_iter()
            .take(12)
            .map(|(id, ..)| {
                let place = Place::of(&parameters, Parameter::named(&id).unwrap()).unwrap();
                let texts = [0.0, 0.4, 1.0].map(|at| with!(place, param => param.normalized_value_to_string(at, true)));
                let default = with!(place, param => {
                    param.normalized_value_to_string(param.default_normalized_value(), true)
                });
                format!("{id}: {} {texts:?} {default}", with!(place, param => param.name().to_owned()))
            })
            .collect();
        let always = [
            r#"bypass: Bypass ["Off", "Off", "On"] Off"#,
            r#"input_gain: Input gain ["-inf dB", "-26.4 dB", "24.0 dB"] 0.0 dB"#,
            r#"output_gain: Output gain ["-inf dB", "-26.4 dB", "24.0 dB"] 0.0 dB"#,
            r#"mix: Mix ["0.0 %", "40.0 %", "100.0 %"] 100.0 %"#,
            r#"transpose: Transpose ["-24 st", "-5 st", "24 st"] 0 st"#,
            r#"tune: Tune ["-100.0 ct", "-20.0 ct", "100.0 ct"] 0.0 ct"#,
            r#"mode: Mode ["As made", "Poly", "Legato"] As made"#,
            r#"glide: Glide ["As made", "209 ms", "2000 ms"] As made"#,
            r#"voices: Voices ["As made", "6", "16"] As made"#,
            r#"panic: Panic ["Off", "Off", "On"] Off"#,
            r#"driver: Driver ["Auto", "Inline", "Worker"] Auto"#,
            r#"source: Played by ["Notes", "Notes", "Side-chain"] Notes"#,
        ];
        assert_eq!(found, always);
        let macros = parameters.macros();
        for (index, turn) in macros.into_iter().enumerate() {
            let known = (turn.name(), turn.default_plain_value(), turn.normalized_value_to_string(0.5, true));
            assert_eq!((known.0, known.1), (format!("Macro {}", index + 1).as_str(), 0.5));
            assert_eq!(turn.string_to_normalized_value(&known.2), Some(0.5), "{}", known.2);
        }
    }

    #[test]
    fn an_effect_has_no_choice_what_plays_it() {
        let parameters = parameters(Product::Effect);
        assert!(parameters.played_by.flags().contains(ParamFlags::HIDDEN));
        assert_eq!(parameters.source(), ondes_engine::pipeline::Source::Sound);
    }
}
