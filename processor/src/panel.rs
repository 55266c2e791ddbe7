//! A board of our own, for holders that have none.

use std::array;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ondes_ui::KnobId;

use crate::board::{Board, Setter};
use crate::choice::of_source;
use crate::controllers::Controllers;
use crate::parameter::{COUNT, PARAMETERS, PLAYED_BY, Parameter, Scope, all, turnable};
use crate::player::Knobs;
use crate::preset::Product;
use crate::preset::values::{Value, Values};

/// All parameters of one instance. Any thread may turn and look at them at any time.
pub struct Panel {
    /// `[number]`: values, as bits of `f32`.
    values: [AtomicU32; COUNT],
    product: Product,
}

impl Panel {
    /// All at their defaults.
    #[must_use]
    pub fn new(product: Product) -> Self {
        let panel = Self { values: array::from_fn(|_| AtomicU32::new(0)), product };
        panel.reset();
        panel
    }

    fn reset(&self) {
        for (knob, parameter) in all() {
            self.put(knob, parameter.default());
        }
        self.put(PLAYED_BY, of_source(self.product.source()));
    }

    /// Gives a parameter the nearest value that it has.
    pub fn put(&self, knob: KnobId, value: f32) {
        if let Some((place, parameter)) = self.values.get(knob.0 as usize).zip(Parameter::of(knob)) {
            place.store(parameter.nearest(value).to_bits(), Relaxed);
        }
    }

    /// Tells an instance's controllers what of this they can turn; before they are asked for anything.
    pub fn offer(&self, controllers: &Controllers) {
        controllers.begin(turnable().map(|(_, parameter)| parameter.id.to_owned()));
    }

    /// A MIDI controller was moved, 0 … 127: turns what it turns, the parameter that has learnt it by this among them.
    /// Wait-free.
    pub fn follow(&self, controllers: &Controllers, number: u8, position: u8) {
        for place in controllers.turned(number) {
            if let Some((knob, _)) = turnable().nth(place) {
                self.set(knob, f32::from(position.min(127)) / 127.0);
            }
        }
    }

    /// What a project saves of them: values by ids, as in presets.
    #[must_use]
    pub fn saved(&self) -> Values {
        let kept = PARAMETERS.iter().zip(&self.values).filter(|(parameter, _)| parameter.scope != Scope::Moment);
        let value = |place: &AtomicU32| f32::from_bits(place.load(Relaxed));
        kept.map(|(parameter, place)| (parameter.id.to_owned(), Value::of(parameter, value(place)))).collect()
    }

    /// Goes to what a project has saved. What is missing or makes no sense stands at its default, what is out of range
    /// at its end; what there is not is left out.
    pub fn restore(&self, values: &Values) {
        self.reset();
        for (knob, parameter) in all().filter(|(_, parameter)| parameter.scope != Scope::Moment) {
            if let Some(value) = values.get(parameter.id).and_then(|value| value.read(parameter)) {
                self.put(knob, value);
            }
        }
    }
}

impl Board for Panel {
    fn knobs(&self) -> Knobs {
        Knobs::read(|knob| self.value(knob).unwrap_or_default())
    }

    fn value(&self, knob: KnobId) -> Option<f32> {
        self.values.get(knob.0 as usize).map(|value| f32::from_bits(value.load(Relaxed)))
    }
}

impl Setter for Panel {
    fn begin(&self, _: KnobId) {}

    fn set(&self, knob: KnobId, position: f32) {
        if let Some(parameter) = Parameter::of(knob) {
            self.put(knob, parameter.value(position));
        }
    }

    fn end(&self, _: KnobId) {}
}

#[cfg(test)]
mod tests {
    use ondes_engine::pipeline::Source;
    use ondes_engine::realtime::Driver;

    use super::*;
    use crate::macros::{MACROS, REST};
    use crate::parameter::{BYPASS, DRIVER, INPUT_GAIN, MIX, MODE, OUTPUT_GAIN, PANIC, TRANSPOSE, TUNE, VOICES};
    use crate::player::Playing;

    #[test]
    fn it_begins_at_the_defaults() {
        let panel = Panel::new(Product::Instrument);
        let playing = Playing { semitones: 0.0, mode: 0, glide_ms: -1.0, voices: 0 };
        let knobs = panel.knobs();
        assert_eq!((knobs.bypass, knobs.panic, knobs.playing, knobs.macros), (false, false, playing, [REST; MACROS]));
        assert_eq!([knobs.input_gain, knobs.output_gain, knobs.mix], [1.0; 3]);
        assert_eq!((panel.driver(), panel.source()), (Driver::Auto, Source::Notes));
        assert_eq!(Panel::new(Product::Effect).source(), Source::Sound);
        assert_eq!((panel.value(KnobId(99)), panel.normalized(KnobId(99))), (None, None));
    }

    #[test]
    fn what_is_turned_is_what_is_played() {
        let panel = Panel::new(Product::Instrument);
        let turn = |knob, position| {
            panel.begin(knob);
            panel.set(knob, position);
            panel.end(knob);
        };
        turn(INPUT_GAIN, 0.0);
        turn(OUTPUT_GAIN, 1.0);
        turn(MIX, 0.25);
        turn(TRANSPOSE, 0.751);
        turn(TUNE, 0.75);
        turn(MODE, 1.0);
        turn(VOICES, 0.5);
        turn(BYPASS, 1.0);
        turn(PANIC, 1.0);
        turn(KnobId(7), 0.125);
        turn(KnobId(99), 1.0);
        let knobs = panel.knobs();
        assert_eq!((knobs.input_gain, knobs.mix, knobs.bypass, knobs.panic), (0.0, 0.25, true, true));
        assert!((knobs.output_gain - 15.849).abs() < 1e-3, "{}", knobs.output_gain);
        assert_eq!(knobs.playing, Playing { semitones: 12.5, mode: 3, glide_ms: -1.0, voices: 8 });
        assert_eq!((knobs.macros[6], knobs.macros[7]), (REST, 0.125));
        assert_eq!((panel.value(TRANSPOSE), panel.normalized(TRANSPOSE)), (Some(12.0), Some(0.75)), "it has steps");
    }

    #[test]
    fn controllers_turn_what_has_learnt_them() {
        let (panel, controllers) = (Panel::new(Product::Instrument), Controllers::default());
        panel.offer(&controllers);
        assert!(!controllers.learn("driver") && controllers.learn("mix"));
        panel.follow(&controllers, 20, 0);
        assert_eq!(panel.value(MIX), Some(0.0), "what teaches also turns");
        // One that comes after those that cannot be turned.
        controllers.learn("panic");
        panel.follow(&controllers, 21, 127);
        panel.follow(&controllers, 20, 255);
        assert_eq!((panel.value(PANIC), panel.value(MIX), panel.value(DRIVER)), (Some(1.0), Some(1.0), Some(0.0)));
    }

    #[test]
    fn what_is_saved_comes_back_and_nonsense_does_not() {
        let panel = Panel::new(Product::Effect);
        panel.put(INPUT_GAIN, -6.1);
        panel.put(DRIVER, 2.0);
        panel.put(BYPASS, 1.0);
        panel.put(PANIC, 1.0);
        panel.put(KnobId(2), 0.7);
        let text = serde_json::to_string(&panel.saved()).unwrap();
        assert!(text.contains(r#""driver":"worker""#) && text.contains(r#""source":"input""#), "{text}");
        assert!(!text.contains("panic"), "it is a moment's");
        let other = Panel::new(Product::Effect);
        other.put(MIX, 0.1);
        other.put(PANIC, 1.0);
        other.restore(&serde_json::from_str(&text).unwrap());
        assert_eq!((other.saved(), other.value(PANIC)), (panel.saved(), Some(0.0)));
        assert_eq!((other.value(INPUT_GAIN), other.value(MIX)), (Some(-6.1), Some(1.0)));

        let odd =
            r#"{ "mix": 7, "tune": "flat", "mode": "fugue", "bypass": 1, "driver": 1, "wow": true, "voices": 2.6 }"#;
        other.restore(&serde_json::from_str(odd).unwrap());
        let values = [MIX, TUNE, MODE, BYPASS, DRIVER, VOICES].map(|knob| other.value(knob).unwrap());
        assert_eq!(values, [1.0, 0.0, 0.0, 0.0, 0.0, 3.0]);
    }
}
