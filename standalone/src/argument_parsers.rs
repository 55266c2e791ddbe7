//! Parsers of numbers on the command line that several commands have in common.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Transpositions, semitones.
pub const TRANSPOSE: RangeInclusive<f32> = -24.0..=24.0;
/// Sizes of a model with variants: a share of the whole.
pub const SIZE: RangeInclusive<f32> = 0.0..=1.0;

/// Longest duration, seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// Parses a duration above 0, up to a day, in seconds.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= MAX_SECONDS => Ok(seconds),
        _ => Err(format!("expected a number above 0, up to {MAX_SECONDS}")),
    }
}

/// Returns a parser of numbers within a range; its error names the range.
pub fn number_in<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("expected a number from {} to {}", range.start(), range.end())),
    }
}
