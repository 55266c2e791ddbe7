//! Parsers of numbers for flags.

/// Parses a number in a range; `range_text` is the error for others.
///
/// # Errors
/// Returns `range_text`, or that it is not a number.
pub fn in_range(text: &str, range: impl Fn(f64) -> bool, range_text: &str) -> Result<f64, String> {
    let number = text.parse().map_err(|_| "not a number".to_owned())?;
    if range(number) {
        Ok(number)
    } else {
        Err(range_text.into())
    }
}

/// Parses a number above 0.
///
/// # Errors
/// Returns what is allowed.
pub fn positive(text: &str) -> Result<f64, String> {
    in_range(
        text,
        |number| number > 0.0 && number.is_finite(),
        "must be above 0",
    )
}

/// Parses a number of at least 0.
///
/// # Errors
/// Returns what is allowed.
pub fn non_negative(text: &str) -> Result<f64, String> {
    in_range(
        text,
        |number| number >= 0.0 && number.is_finite(),
        "must be 0 or above",
    )
}

/// Parses a number from 0 to 1.
///
/// # Errors
/// Returns what is allowed.
pub fn fraction(text: &str) -> Result<f64, String> {
    in_range(
        text,
        |number| (0.0..=1.0).contains(&number),
        "must be 0 to 1",
    )
}

/// Parses a ratio above 0 and below 1.
///
/// # Errors
/// Returns what is allowed.
pub fn ratio(text: &str) -> Result<f64, String> {
    in_range(
        text,
        |number| number > 0.0 && number < 1.0,
        "must be above 0 and below 1",
    )
}

/// Parses the length of a crop, seconds.
///
/// # Errors
/// Returns what is allowed.
pub fn crop_seconds(text: &str) -> Result<f64, String> {
    in_range(
        text,
        |seconds| (0.1..=60.0).contains(&seconds),
        "must be 0.1 to 60 seconds",
    )
}

/// Parses a decay rate, 0 to below 1.
///
/// # Errors
/// Returns what is allowed.
pub fn decay(text: &str) -> Result<f64, String> {
    in_range(
        text,
        |number| (0.0..1.0).contains(&number),
        "must be 0 to below 1",
    )
}

/// Parses a level at an interface, dBu.
///
/// # Errors
/// Returns what is allowed.
pub fn dbu(text: &str) -> Result<f64, String> {
    in_range(
        text,
        |level| (-60.0..=60.0).contains(&level),
        "must be -60 to 60 dBu",
    )
}

/// Parses a loudness.
///
/// # Errors
/// Returns what is allowed.
pub fn lufs(text: &str) -> Result<f64, String> {
    in_range(
        text,
        |loudness| (-70.0..=0.0).contains(&loudness),
        "must be -70 to 0 LUFS",
    )
}

/// Parses the length of a corpus, minutes.
///
/// # Errors
/// Returns what is allowed.
pub fn corpus_minutes(text: &str) -> Result<f64, String> {
    in_range(
        text,
        |minutes| minutes > 0.0 && minutes <= 1440.0,
        "must be above 0, up to 1440 minutes",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_finite_are_refused() {
        let parsers = [
            positive,
            non_negative,
            fraction,
            ratio,
            crop_seconds,
            dbu,
            corpus_minutes,
        ];
        for parse in parsers {
            for text in ["nan", "-nan", "inf", "-inf", "1e999", "", "1 s"] {
                assert!(parse(text).is_err(), "{text}");
            }
            assert_eq!(parse("0.5"), Ok(0.5));
        }
    }
}
