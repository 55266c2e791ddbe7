//! Controls of the loaded model, among them those for a codec's latents, which have knobs of their
//! own.
//!
//! Latent knobs are not plugin parameters: hosts need all parameters before a model is loaded, and
//! a codec may have a thousand latents. Hosts and MIDI controllers reach them through macros.

use std::collections::HashMap;

use ondes_engine::model::{Control, Curve, Kind, Model};
use ondes_engine::pipeline::{controls, latent_controls, latent_count};

use crate::parameter::ParameterId;

/// Id of the first latent knob, far above all parameters. Latent `n`, counted from 1, has its scale
/// at `FIRST_LATENT_ID
/// + 3 (n - 1)`, followed by its offset and its hold.
pub const FIRST_LATENT_ID: u32 = 1 << 16;

/// Names of a latent's knobs, in the order of their ids.
pub const LATENT_KNOBS: [&str; 3] = ["scale", "offset", "hold"];

/// Controls of a loaded model.
#[derive(Default)]
pub struct ModelControls {
    all: Vec<Control>,
    /// `[knob]`: index into `all`.
    latents: Vec<usize>,
}

impl ModelControls {
    /// Returns the controls of a model.
    #[must_use]
    pub fn new(model: &Model) -> Self {
        let header = model.header();
        let all = controls(header);
        let latents = if matches!(header.kind, Kind::Codec | Kind::Generator) {
            latent_count(header)
        } else {
            0
        };
        let by_name: HashMap<&str, usize> = all
            .iter()
            .map(|control| control.name.as_str())
            .zip(0..)
            .collect();
        let indices = latent_controls(latents)
            .filter_map(|control| by_name.get(control.name.as_str()).copied())
            .collect();
        Self {
            all,
            latents: indices,
        }
    }

    /// Returns all controls, in the order in which macros are bound by default.
    #[must_use]
    pub fn all(&self) -> &[Control] {
        &self.all
    }

    /// Returns the controls of the latents with the ids of their knobs.
    pub fn latent_knobs(&self) -> impl Iterator<Item = (ParameterId, &Control)> {
        (FIRST_LATENT_ID..)
            .map(ParameterId)
            .zip(self.latents.iter().filter_map(|place| self.all.get(*place)))
    }

    /// Returns the control of a latent knob; `None` if there is no such knob.
    #[must_use]
    pub fn latent_control(&self, knob: ParameterId) -> Option<&Control> {
        self.all.get(
            *self
                .latents
                .get(knob.0.checked_sub(FIRST_LATENT_ID)? as usize)?,
        )
    }

    /// Returns the latent knob for the control of this name; `None` if it is not a latent's.
    #[must_use]
    pub fn latent_id(&self, name: &str) -> Option<ParameterId> {
        let (latent, what) = name.strip_prefix("latent")?.split_once('.')?;
        let latent = latent.parse::<u32>().ok()?.checked_sub(1)?;
        let what = LATENT_KNOBS.iter().position(|bend| *bend == what)? as u32;
        let knob = ParameterId(
            latent
                .checked_mul(LATENT_KNOBS.len() as u32)?
                .checked_add(FIRST_LATENT_ID + what)?,
        );
        self.latent_control(knob)
            .filter(|control| control.name == name)
            .map(|_| knob)
    }
}

/// Returns the label of a control: `vibrato_rate` becomes "Vibrato rate", `latent2.scale` "Latent 2
/// scale".
#[must_use]
pub fn label(control: &str) -> String {
    let mut label = String::with_capacity(control.len() + 2);
    let mut previous = ' ';
    for character in control.chars() {
        let character = if matches!(character, '_' | '.') {
            ' '
        } else {
            character
        };
        if character.is_ascii_digit() && previous.is_alphabetic() {
            label.push(' ');
        }
        if label.is_empty() {
            label.extend(character.to_uppercase())
        } else {
            label.push(character)
        }
        previous = character;
    }
    label
}

/// Returns the knob position, 0 … 1, for a value of the control.
#[must_use]
pub fn normalize(control: &Control, value: f32) -> f32 {
    let Control {
        min, max, curve, ..
    } = *control;
    let value = control.clamp(value);
    match curve {
        Curve::Linear | Curve::Steps => (value - min) / (max - min),
        Curve::Logarithmic => (value / min).ln() / (max / min).ln(),
    }
}

/// Returns the control's value for a knob position, 0 … 1.
#[must_use]
pub fn denormalize(control: &Control, position: f32) -> f32 {
    let Control {
        min, max, curve, ..
    } = *control;
    let position = position.clamp(0.0, 1.0);
    let value = match curve {
        Curve::Linear | Curve::Steps => min + position * (max - min),
        Curve::Logarithmic => min * (max / min).powf(position),
    };
    control.clamp(value)
}

/// Formats a value with its unit, with up to three significant digits.
#[must_use]
pub fn format(control: &Control, value: f32) -> String {
    format_number(value, &control.unit)
}

/// Formats a number with a unit, with up to three significant digits.
#[must_use]
pub fn format_number(value: f32, unit: &str) -> String {
    let digits = |value: f32| (2 - value.abs().max(1.0).log10() as i32).max(0);
    let scale = 10.0_f32.powi(digits(value));
    // Never a negative zero.
    let rounded = (value * scale).round() / scale + 0.0;
    // Rounding may add a digit before the point.
    let digits = digits(rounded) as usize;
    format!("{rounded:.digits$} {unit}").trim_end().to_owned()
}

/// Parses a value; the control's name or label before it and the unit after it are optional. The
/// result may be out of range.
#[must_use]
pub fn parse(control: &Control, text: &str) -> Option<f32> {
    let text = text.trim();
    let number = [control.name.as_str(), &label(&control.name)]
        .into_iter()
        .find_map(|name| text.strip_prefix(name));
    parse_number(number.unwrap_or(text))
}

/// Parses a number; the unit after it is optional.
#[must_use]
pub fn parse_number(text: &str) -> Option<f32> {
    let number = text.trim();
    let end = number.find(|sign: char| sign.is_whitespace() || sign == '%' || sign.is_alphabetic());
    number[..end.unwrap_or(number.len())]
        .parse()
        .ok()
        .filter(|value: &f32| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::PARAMETER_COUNT;
    use crate::test_model::{codec, codec_with};

    #[test]
    fn knobs_of_latents_come_after_all_parameters_and_are_found_by_name() {
        let controls = ModelControls::new(&codec());
        let names: Vec<&str> = controls
            .latent_knobs()
            .map(|(_, control)| control.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "latent1.scale",
                "latent1.offset",
                "latent1.hold",
                "latent2.scale",
                "latent2.offset",
                "latent2.hold"
            ]
        );
        for (knob, control) in controls.latent_knobs() {
            assert!(knob.0 >= PARAMETER_COUNT as u32);
            assert_eq!(controls.latent_id(&control.name), Some(knob));
            assert_eq!(controls.latent_control(knob), Some(control));
        }
        for name in [
            "",
            "latent",
            "latent0.scale",
            "latent3.scale",
            "latent01.scale",
            "latent1.wow",
            "drive",
        ] {
            assert_eq!(controls.latent_id(name), None, "{name}");
        }
        assert_eq!(controls.latent_id("latent4294967295.hold"), None);
        for knob in [0, FIRST_LATENT_ID - 1, FIRST_LATENT_ID + 6, u32::MAX] {
            assert_eq!(controls.latent_control(ParameterId(knob)), None, "{knob}");
        }
    }

    #[test]
    fn a_model_that_lists_a_latents_control_itself_has_it_once() {
        let own = Control {
            min: 1.0,
            max: 100.0,
            curve: Curve::Logarithmic,
            ..control()
        };
        let controls = ModelControls::new(&codec_with(std::slice::from_ref(&own)));
        assert_eq!(
            controls
                .all()
                .iter()
                .filter(|control| control.name == own.name)
                .count(),
            1
        );
        assert_eq!(
            controls.latent_control(ParameterId(FIRST_LATENT_ID + 3)),
            Some(&own)
        );
        assert_eq!(
            (
                controls.latent_knobs().count(),
                controls.all()[0].name.as_str()
            ),
            (6, "latent2.scale")
        );
        assert_eq!(
            [
                normalize(&own, 1.0),
                normalize(&own, 10.0),
                normalize(&own, 1e3)
            ],
            [0.0, 0.5, 1.0]
        );
    }

    fn control() -> Control {
        let controls = ModelControls::new(&codec());
        controls
            .latent_control(ParameterId(FIRST_LATENT_ID + 3))
            .unwrap()
            .clone()
    }

    #[test]
    fn values_lead_to_positions_and_texts_and_back() {
        let control = control();
        assert_eq!(
            (normalize(&control, 1.0), denormalize(&control, 0.625)),
            (0.625, 1.0)
        );
        assert_eq!(
            [
                denormalize(&control, 0.0),
                denormalize(&control, 1.0),
                denormalize(&control, f32::NAN)
            ],
            [-4.0, 4.0, 1.0]
        );
        assert_eq!(
            (normalize(&control, -9.0), normalize(&control, f32::NAN)),
            (0.0, 0.625)
        );
        assert_eq!(
            (format(&control, -1.5), parse(&control, "-1.50")),
            ("-1.50".into(), Some(-1.5))
        );
        let texts =
            [9.996, 99.97, 10.0, 1_234.5, -0.001, 0.126].map(|value| format(&control, value));
        assert_eq!(texts, ["10.0", "100", "10.0", "1235", "0.00", "0.13"]);
        assert_eq!(
            (parse(&control, "latent2.scale 2"), parse(&control, "loud")),
            (Some(2.0), None)
        );
        assert_eq!(parse(&control, "Latent 2 scale 2"), Some(2.0));
    }

    #[test]
    fn controls_have_labels() {
        let labels = [
            "vibrato_rate",
            "latent2.scale",
            "room",
            "PRESENCE",
            "low_cut_2",
            "",
        ]
        .map(label);
        assert_eq!(
            labels,
            [
                "Vibrato rate",
                "Latent 2 scale",
                "Room",
                "PRESENCE",
                "Low cut 2",
                ""
            ]
        );
    }
}
