//! What can be turned on the model that is played, and the knobs for what bends a codec's latents.
//!
//! Those are no parameters: hosts want to know all parameters before there is a model, and a codec may have a thousand
//! latents. Macros turn them for hosts and MIDI controllers.

use std::collections::HashMap;

use ondes_engine::model::{Control, Curve, Kind, Model};
use ondes_engine::pipeline::{controls, latent_controls, latents};
use ondes_ui::KnobId;

/// Number of the first knob that bends a latent, far beyond all parameters: latent `n`, from 1, has its scale at
/// `FIRST + 3 (n - 1)`, its offset after that, then its hold.
pub const FIRST: u32 = 1 << 16;

/// What is turned on a latent, in the order of its knobs.
pub const BENDS: [&str; 3] = ["scale", "offset", "hold"];

/// The controls of a model as it is played.
#[derive(Default)]
pub struct Controls {
    all: Vec<Control>,
    /// `[knob]`: places in `all`.
    bends: Vec<usize>,
}

impl Controls {
    /// Those of a model.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let header = model.header();
        let all = controls(header);
        let latents = if matches!(header.kind, Kind::Codec | Kind::Generator) { latents(header) } else { 0 };
        let places: HashMap<&str, usize> = all.iter().map(|control| control.name.as_str()).zip(0..).collect();
        let bends = latent_controls(latents).filter_map(|bend| places.get(bend.name.as_str()).copied()).collect();
        Self { all, bends }
    }

    /// All of them, in the order in which macros are bound to them.
    #[must_use]
    pub fn all(&self) -> &[Control] {
        &self.all
    }

    /// Those that bend latents, by the numbers of their knobs.
    pub fn bends(&self) -> impl Iterator<Item = (KnobId, &Control)> {
        (FIRST..).map(KnobId).zip(self.bends.iter().filter_map(|place| self.all.get(*place)))
    }

    /// What the knob of that number bends; none where there is no such knob.
    #[must_use]
    pub fn bend(&self, knob: KnobId) -> Option<&Control> {
        self.all.get(*self.bends.get(knob.0.checked_sub(FIRST)? as usize)?)
    }

    /// The knob for the control of that name; none where that bends nothing.
    #[must_use]
    pub fn knob(&self, name: &str) -> Option<KnobId> {
        let (latent, what) = name.strip_prefix("latent")?.split_once('.')?;
        let latent = latent.parse::<u32>().ok()?.checked_sub(1)?;
        let what = BENDS.iter().position(|bend| *bend == what)? as u32;
        let knob = KnobId(latent.checked_mul(BENDS.len() as u32)?.checked_add(FIRST + what)?);
        self.bend(knob).filter(|control| control.name == name).map(|_| knob)
    }
}

/// Where a knob stands for a value of the control, 0 … 1.
#[must_use]
pub fn position(control: &Control, value: f32) -> f32 {
    let Control { min, max, curve, .. } = *control;
    let value = control.clamp(value);
    match curve {
        Curve::Linear => (value - min) / (max - min),
        Curve::Logarithmic => (value / min).ln() / (max / min).ln(),
    }
}

/// The control's value where a knob stands, 0 … 1.
#[must_use]
pub fn value(control: &Control, position: f32) -> f32 {
    let Control { min, max, curve, .. } = *control;
    let position = position.clamp(0.0, 1.0);
    let value = match curve {
        Curve::Linear => min + position * (max - min),
        Curve::Logarithmic => min * (max / min).powf(position),
    };
    control.clamp(value)
}

/// A value with its unit: four digits, as far as they say something.
#[must_use]
pub fn say(control: &Control, value: f32) -> String {
    let digits = (2 - value.abs().max(1.0).log10() as i32).max(0) as usize;
    format!("{value:.digits$} {}", control.unit).trim_end().to_owned()
}

/// The value that a text says; the control's name before it may be left out, and the unit after it. It may be out of range.
#[must_use]
pub fn read(control: &Control, text: &str) -> Option<f32> {
    let number = text.trim().trim_start_matches(control.name.as_str()).trim_start();
    let end = number.find(|sign: char| sign.is_whitespace() || sign == '%' || sign.is_alphabetic());
    number[..end.unwrap_or(number.len())].parse().ok().filter(|value: &f32| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::COUNT;
    use crate::tests::{codec, codec_with};

    #[test]
    fn knobs_of_latents_come_after_all_parameters_and_are_found_by_name() {
        let controls = Controls::of(&codec());
        let names: Vec<&str> = controls.bends().map(|(_, control)| control.name.as_str()).collect();
        assert_eq!(
            names,
            ["latent1.scale", "latent1.offset", "latent1.hold", "latent2.scale", "latent2.offset", "latent2.hold"]
        );
        for (knob, control) in controls.bends() {
            assert!(knob.0 >= COUNT as u32);
            assert_eq!(controls.knob(&control.name), Some(knob));
            assert_eq!(controls.bend(knob), Some(control));
        }
        for name in ["", "latent", "latent0.scale", "latent3.scale", "latent01.scale", "latent1.wow", "drive"] {
            assert_eq!(controls.knob(name), None, "{name}");
        }
        assert_eq!(controls.knob("latent4294967295.hold"), None);
        for knob in [0, FIRST - 1, FIRST + 6, u32::MAX] {
            assert_eq!(controls.bend(KnobId(knob)), None, "{knob}");
        }
    }

    #[test]
    fn a_model_that_lists_a_latents_control_itself_has_it_once() {
        let own = Control { min: 1.0, max: 100.0, curve: Curve::Logarithmic, ..control() };
        let controls = Controls::of(&codec_with(std::slice::from_ref(&own)));
        assert_eq!(controls.all().iter().filter(|control| control.name == own.name).count(), 1);
        assert_eq!(controls.bend(KnobId(FIRST + 3)), Some(&own));
        assert_eq!((controls.bends().count(), controls.all()[0].name.as_str()), (6, "latent2.scale"));
        assert_eq!([position(&own, 1.0), position(&own, 10.0), position(&own, 1e3)], [0.0, 0.5, 1.0]);
    }

    fn control() -> Control {
        let controls = Controls::of(&codec());
        controls.bend(KnobId(FIRST + 3)).unwrap().clone()
    }

    #[test]
    fn values_lead_to_positions_and_texts_and_back() {
        let control = control();
        assert_eq!((position(&control, 1.0), value(&control, 0.625)), (0.625, 1.0));
        assert_eq!([value(&control, 0.0), value(&control, 1.0), value(&control, f32::NAN)], [-4.0, 4.0, 1.0]);
        assert_eq!((position(&control, -9.0), position(&control, f32::NAN)), (0.0, 0.625));
        assert_eq!((say(&control, -1.5), read(&control, "-1.50")), ("-1.50".into(), Some(-1.5)));
        assert_eq!((read(&control, "latent2.scale 2"), read(&control, "loud")), (Some(2.0), None));
    }
}
