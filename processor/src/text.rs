//! How values are said, and what typed texts mean.

use crate::parameter::{Kind, Parameter};

/// At this gain, dB, and below nothing is heard.
pub const SILENT_DB: f32 = -60.0;

/// At this threshold, dB, and below a gate is off.
pub const GATE_OFF_DB: f32 = -90.0;

/// At this level of an interface, dBu, and below it is not told.
pub const INTERFACE_OFF_DBU: f32 = -20.0;

/// The text of what is off.
const OFF: &str = "Off";

/// The text of what is left to the model.
const AS_MADE: &str = "As made";

/// How values of a parameter are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// With one digit; `-inf` for silence.
    Decibels,
    /// With one digit and `dB`; `Off` at the least.
    Threshold,
    /// With one digit and `dBu`; `Off` at the least.
    Interface,
    /// A hundred times the value, with one digit.
    Percent,
    /// With one digit.
    Tenths,
    /// Without digits.
    Whole,
    /// With `ms`; below 0 it is as the model was made.
    Milliseconds,
    /// Without digits; at 0 it is as the model was made.
    Count,
    /// `On` and `Off`, or the names of what there is to choose between.
    Name,
}

impl Text {
    /// What a value of that parameter says, without its unit.
    #[must_use]
    pub fn say(self, parameter: &Parameter, value: f32) -> String {
        match self {
            Self::Decibels if value <= SILENT_DB => "-inf".into(),
            Self::Decibels => format!("{value:.1}"),
            Self::Threshold if value <= GATE_OFF_DB => OFF.into(),
            Self::Threshold => format!("{value:.1} dB"),
            Self::Interface if value <= INTERFACE_OFF_DBU => OFF.into(),
            Self::Interface => format!("{value:.1} dBu"),
            Self::Percent => format!("{:.1}", 100.0 * value),
            // Nothing is a little less than nothing.
            Self::Tenths if (10.0 * value).round() == 0.0 => "0.0".into(),
            Self::Tenths => format!("{value:.1}"),
            Self::Milliseconds if value < 0.0 => AS_MADE.into(),
            Self::Milliseconds => format!("{value:.0} ms"),
            Self::Count if value == 0.0 => AS_MADE.into(),
            Self::Count | Self::Whole => format!("{value:.0}"),
            Self::Name => names(parameter).get(value as usize).copied().unwrap_or_default().into(),
        }
    }

    /// The value that a text says, with or without a unit; it may be out of range.
    #[must_use]
    pub fn read(self, parameter: &Parameter, text: &str) -> Option<f32> {
        let text = text.trim();
        match self {
            Self::Decibels if text.starts_with("-inf") => Some(SILENT_DB),
            Self::Threshold if text.eq_ignore_ascii_case(OFF) => Some(GATE_OFF_DB),
            Self::Interface if text.eq_ignore_ascii_case(OFF) => Some(INTERFACE_OFF_DBU),
            Self::Milliseconds if text.eq_ignore_ascii_case(AS_MADE) => Some(-1.0),
            Self::Count if text.eq_ignore_ascii_case(AS_MADE) => Some(0.0),
            Self::Percent => Some(number(text)? / 100.0),
            Self::Decibels | Self::Threshold | Self::Interface | Self::Tenths | Self::Milliseconds => number(text),
            Self::Whole | Self::Count => Some(number(text)?.round()),
            Self::Name => {
                let place = names(parameter).iter().position(|name| name.eq_ignore_ascii_case(text))?;
                Some(place as f32)
            }
        }
    }
}

fn names(parameter: &Parameter) -> &'static [&'static str] {
    match parameter.kind {
        Kind::Choice(choices) => choices.names,
        Kind::Switch => &["Off", "On"],
        Kind::Float { .. } | Kind::Whole { .. } => &[],
    }
}

/// The number at the start of a text, whatever its unit.
#[must_use]
pub fn number(text: &str) -> Option<f32> {
    let text = text.trim();
    let end = text.find(|sign: char| !matches!(sign, '0'..='9' | '.' | '-' | '+')).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::all;

    #[test]
    fn numbers_are_read_with_any_unit() {
        assert_eq!([number("-3dB"), number(" 4.5 %"), number("+2 st")], [Some(-3.0), Some(4.5), Some(2.0)]);
        assert_eq!([number("loud"), number(""), number("1-2")], [None; 3]);
    }

    #[test]
    fn what_is_said_is_understood() {
        for (_, parameter) in all() {
            for step in 0..=20 {
                let value = parameter.value(step as f32 / 20.0);
                let said = format!("{}{}", parameter.say(value), parameter.unit);
                let understood = parameter.read(&said).map(|value| parameter.say(value));
                assert_eq!(understood, Some(parameter.say(value)), "{} {said}", parameter.id);
            }
            assert_eq!(parameter.read("loud"), None, "{}", parameter.id);
            let [min, max] = parameter.range();
            let ends = if names(parameter).is_empty() { [Some(min), Some(max)] } else { [None; 2] };
            assert_eq!(["-99999999999", "99999999999"].map(|text| parameter.read(text)), ends, "{}", parameter.id);
        }
    }

    #[test]
    fn some_values_have_words() {
        let said = |id: &str, value| {
            let parameter = all().find(|(_, parameter)| parameter.id == id).unwrap().1;
            (parameter.say(value), parameter.read(&parameter.say(value)))
        };
        assert_eq!(said("input_gain", SILENT_DB), ("-inf".into(), Some(SILENT_DB)));
        assert_eq!(said("glide", -0.3), ("As made".into(), Some(-1.0)));
        assert_eq!(said("voices", 0.0), ("As made".into(), Some(0.0)));
        assert_eq!(said("tune", -0.01), ("0.0".into(), Some(0.0)));
        assert_eq!(said("gate", GATE_OFF_DB), ("Off".into(), Some(GATE_OFF_DB)));
        assert_eq!(said("gate", -45.0), ("-45.0 dB".into(), Some(-45.0)));
        assert_eq!(said("interface_level", INTERFACE_OFF_DBU), ("Off".into(), Some(INTERFACE_OFF_DBU)));
        assert_eq!(said("interface_level", 12.54), ("12.5 dBu".into(), Some(12.5)));
        assert_eq!(said("bypass", 1.0), ("On".into(), Some(1.0)));
        assert_eq!(said("source", 1.0), ("Side-chain".into(), Some(1.0)));
    }
}
