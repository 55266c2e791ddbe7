//! Parsers of numbers on the command line that several commands have in common.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Transpositions, semitones.
pub const TRANSPOSE: RangeInclusive<f32> = -24.0..=24.0;
/// Sizes of a model with variants: a share of the whole.
pub const SIZE: RangeInclusive<f32> = 0.0..=1.0;

/// Durations, seconds: a thousandth to a day.
pub const SECONDS: RangeInclusive<f64> = 0.001..=86_400.0;

/// Returns a parser of numbers within a range, which NaN and infinities are not; its error names
/// the range.
pub fn number_in<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!(
            "expected a number from {} to {}",
            range.start(),
            range.end()
        )),
    }
}

/// Parses `NAME=VALUE` with a finite value.
pub fn parse_control(text: &str) -> Result<(String, f32), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    match value.trim().parse() {
        Ok(value) if f32::is_finite(value) => Ok((name.trim().to_owned(), value)),
        _ => Err(format!("{value:?} is not a finite number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_finite_or_out_of_range_are_refused() {
        let seconds = number_in(SECONDS);
        assert_eq!((seconds("1.5"), seconds("86400")), (Ok(1.5), Ok(86_400.0)));
        for text in [
            "nan", "NaN", "inf", "-inf", "infinity", "-1", "-0", "0", "1e-300", "86401", "1e999",
            "", "1s",
        ] {
            assert!(
                seconds(text).unwrap_err().contains("0.001 to 86400"),
                "{text}"
            );
            assert!(
                number_in(TRANSPOSE)(text).is_err()
                    || (-24.0..=24.0).contains(&text.parse::<f32>().unwrap())
            );
        }
        assert_eq!(parse_control("room = -0.5"), Ok(("room".into(), -0.5)));
        for text in [
            "room",
            "room=",
            "room=loud",
            "room=nan",
            "room=inf",
            "room=1e39",
        ] {
            assert!(parse_control(text).is_err(), "{text}");
        }
    }
}
