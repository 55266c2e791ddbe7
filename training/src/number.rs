//! Numbers on the command line.

/// A number in a range, which `words` tell.
pub fn within(text: &str, range: impl Fn(f64) -> bool, words: &str) -> Result<f64, String> {
    let number = text.parse().map_err(|_| "not a number".to_owned())?;
    if range(number) { Ok(number) } else { Err(words.into()) }
}

/// Above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    within(text, |number| number > 0.0 && number.is_finite(), "must be above 0")
}

/// 0 or above.
pub fn not_negative(text: &str) -> Result<f64, String> {
    within(text, |number| number >= 0.0 && number.is_finite(), "must be 0 or above")
}

/// From 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    within(text, |number| (0.0..=1.0).contains(&number), "must be 0 to 1")
}

/// What is left out: more than nothing and less than all.
pub fn ratio(text: &str) -> Result<f64, String> {
    within(text, |number| number > 0.0 && number < 1.0, "must be above 0 and below 1")
}

/// Length of a crop, seconds.
pub fn crop(text: &str) -> Result<f64, String> {
    within(text, |seconds| (0.1..=60.0).contains(&seconds), "a crop is 0.1 to 60 seconds long")
}
