//! Parsers of numbers on the command line.

/// Parses a number in a range; `range_text` is the error for others.
pub fn in_range(text: &str, range: impl Fn(f64) -> bool, range_text: &str) -> Result<f64, String> {
    let number = text.parse().map_err(|_| "not a number".to_owned())?;
    if range(number) { Ok(number) } else { Err(range_text.into()) }
}

/// Parses a number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    in_range(text, |number| number > 0.0 && number.is_finite(), "must be above 0")
}

/// Parses a number of at least 0.
pub fn non_negative(text: &str) -> Result<f64, String> {
    in_range(text, |number| number >= 0.0 && number.is_finite(), "must be 0 or above")
}

/// Parses a number from 0 to 1.
pub fn fraction(text: &str) -> Result<f64, String> {
    in_range(text, |number| (0.0..=1.0).contains(&number), "must be 0 to 1")
}

/// Parses a ratio above 0 and below 1.
pub fn ratio(text: &str) -> Result<f64, String> {
    in_range(text, |number| number > 0.0 && number < 1.0, "must be above 0 and below 1")
}

/// Parses the length of a crop, seconds.
pub fn crop_seconds(text: &str) -> Result<f64, String> {
    in_range(text, |seconds| (0.1..=60.0).contains(&seconds), "must be 0.1 to 60 seconds")
}

/// Parses a decay rate, 0 to below 1.
pub fn decay(text: &str) -> Result<f64, String> {
    in_range(text, |number| (0.0..1.0).contains(&number), "must be 0 to below 1")
}
