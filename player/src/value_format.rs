//! Formatting and parsing of parameter values.

/// Gains of this many dB or less are silent.
pub const SILENT_DB: f32 = -60.0;

/// Thresholds of this many dB or less turn the gate off.
pub const GATE_OFF_DB: f32 = -90.0;

/// Interface levels of this many dBu or less mean that the level is unknown.
pub const INTERFACE_OFF_DBU: f32 = -20.0;

/// Text of a value that turns something off.
const OFF: &str = "Off";

/// Text of a value that leaves something to the model.
const MODEL_DEFAULT: &str = "Model default";

/// Text format of a parameter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFormat {
    /// Gain with one decimal; `-inf` for silence.
    Decibels,
    /// Threshold with one decimal and `dB`; `Off` at the least value.
    Threshold,
    /// Level with one decimal and `dBu`; `Off` at the least value.
    Level,
    /// A hundred times the value, with one decimal.
    Percent,
    /// One decimal.
    Tenths,
    /// No decimals.
    Integer,
    /// Time with `ms`; `Model default` below -0.5.
    Milliseconds,
    /// No decimals; `Model default` at 0.
    Count,
    /// Name of the option: `On` and `Off`, or the labels of a choice.
    Option,
}

impl ValueFormat {
    /// Formats a value, without its unit. `options` are the labels for [`ValueFormat::Option`].
    #[must_use]
    pub fn format(self, value: f32, options: &[&str]) -> String {
        match self {
            // Compared as shown, so that the text leads back to a value with the same text.
            Self::Decibels if tenths(value) <= SILENT_DB => "-inf".into(),
            Self::Threshold if tenths(value) <= GATE_OFF_DB => OFF.into(),
            Self::Level if tenths(value) <= INTERFACE_OFF_DBU => OFF.into(),
            Self::Decibels | Self::Tenths => format!("{:.1}", tenths(value)),
            Self::Threshold => format!("{:.1} dB", tenths(value)),
            Self::Level => format!("{:.1} dBu", tenths(value)),
            Self::Percent => format!("{:.1}", 100.0 * value),
            Self::Milliseconds => {
                given_ms(value).map_or(MODEL_DEFAULT.into(), |ms| format!("{ms:.0} ms"))
            }
            Self::Count if value == 0.0 => MODEL_DEFAULT.into(),
            Self::Count | Self::Integer => format!("{value:.0}"),
            Self::Option => options
                .get(value as usize)
                .copied()
                .unwrap_or_default()
                .into(),
        }
    }

    /// Parses a value, with or without its unit; it may be out of range.
    #[must_use]
    pub fn parse(self, text: &str, options: &[&str]) -> Option<f32> {
        let text = text.trim();
        let is_model_default = text.eq_ignore_ascii_case(MODEL_DEFAULT);
        match self {
            Self::Decibels if text.starts_with("-inf") => Some(SILENT_DB),
            Self::Threshold if text.eq_ignore_ascii_case(OFF) => Some(GATE_OFF_DB),
            Self::Level if text.eq_ignore_ascii_case(OFF) => Some(INTERFACE_OFF_DBU),
            Self::Milliseconds if is_model_default => Some(-1.0),
            Self::Count if is_model_default => Some(0.0),
            Self::Percent => Some(number(text)? / 100.0),
            Self::Decibels | Self::Threshold | Self::Level | Self::Tenths | Self::Milliseconds => {
                number(text)
            }
            Self::Integer | Self::Count => Some(number(text)?.round()),
            Self::Option => {
                let index = options
                    .iter()
                    .position(|name| name.eq_ignore_ascii_case(text))?;
                Some(index as f32)
            }
        }
    }
}

/// Rounds to one decimal; never to a negative zero.
fn tenths(value: f32) -> f32 {
    (10.0 * value).round() / 10.0 + 0.0
}

/// Returns the time that a value of [`ValueFormat::Milliseconds`] gives; `None` if it leaves it to
/// the model. The bound is not 0, since the knob position of 0 ms may lead back to slightly less.
#[must_use]
pub fn given_ms(value: f32) -> Option<f32> {
    (value > -0.5).then_some(value.max(0.0))
}

/// Returns the number at the start of a text, followed by any unit.
#[must_use]
pub fn number(text: &str) -> Option<f32> {
    let text = text.trim();
    let end = text
        .find(|sign: char| !matches!(sign, '0'..='9' | '.' | '-' | '+'))
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::all;

    #[test]
    fn numbers_are_read_with_any_unit() {
        assert_eq!(
            [number("-3dB"), number(" 4.5 %"), number("+2 st")],
            [Some(-3.0), Some(4.5), Some(2.0)]
        );
        assert_eq!([number("loud"), number(""), number("1-2")], [None; 3]);
    }

    #[test]
    fn formatted_values_are_parsed() {
        for (_, parameter) in all() {
            for step in 0..=20_000 {
                let value = parameter.denormalize(step as f32 / 20_000.0);
                let text = format!("{}{}", parameter.format(value), parameter.unit);
                let parsed = parameter.parse(&text).map(|value| parameter.format(value));
                assert_eq!(
                    parsed,
                    Some(parameter.format(value)),
                    "{} {text}",
                    parameter.id
                );
            }
            assert_eq!(parameter.parse("loud"), None, "{}", parameter.id);
            let [min, max] = parameter.range();
            let ends = if parameter.options().is_empty() {
                [Some(min), Some(max)]
            } else {
                [None; 2]
            };
            assert_eq!(
                ["-99999999999", "99999999999"].map(|text| parameter.parse(text)),
                ends,
                "{}",
                parameter.id
            );
        }
    }

    #[test]
    fn special_values_have_names() {
        let formatted = |id: &str, value| {
            let parameter = all().find(|(_, parameter)| parameter.id == id).unwrap().1;
            (
                parameter.format(value),
                parameter.parse(&parameter.format(value)),
            )
        };
        assert_eq!(
            formatted("input_gain", SILENT_DB),
            ("-inf".into(), Some(SILENT_DB))
        );
        assert_eq!(
            formatted("glide", -0.7),
            ("Model default".into(), Some(-1.0))
        );
        assert_eq!(formatted("glide", -1e-4), ("0 ms".into(), Some(0.0)));
        assert_eq!(
            formatted("voices", 0.0),
            ("Model default".into(), Some(0.0))
        );
        assert_eq!(formatted("tune", -0.01), ("0.0".into(), Some(0.0)));
        assert_eq!(
            formatted("gate", GATE_OFF_DB),
            ("Off".into(), Some(GATE_OFF_DB))
        );
        assert_eq!(formatted("gate", -45.0), ("-45.0 dB".into(), Some(-45.0)));
        assert_eq!(
            formatted("interface_level", INTERFACE_OFF_DBU),
            ("Off".into(), Some(INTERFACE_OFF_DBU))
        );
        assert_eq!(
            formatted("interface_level", 12.54),
            ("12.5 dBu".into(), Some(12.5))
        );
        assert_eq!(formatted("bypass", 1.0), ("On".into(), Some(1.0)));
        assert_eq!(formatted("source", 1.0), ("Side-chain".into(), Some(1.0)));
    }
}
