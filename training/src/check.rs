//! Checks of settings, with errors that name them.

use std::fmt::Display;
use std::ops::RangeInclusive;

use anyhow::ensure;

/// Checks that a setting is in a range.
pub(crate) fn in_range<T: PartialOrd + Display>(
    name: &str,
    value: T,
    range: RangeInclusive<T>,
) -> anyhow::Result<()> {
    let (start, end) = (range.start(), range.end());
    ensure!(range.contains(&value), "{name} must be {start} to {end}");
    Ok(())
}

/// Checks that a setting is above 0.
pub(crate) fn positive(name: &str, value: f64) -> anyhow::Result<()> {
    let is_positive = value > 0.0 && value.is_finite();
    ensure!(is_positive, "{name} must be above 0");
    Ok(())
}

/// Checks that a number is not 0.
pub(crate) fn not_zero(name: &str, value: impl Into<Option<u64>>) -> anyhow::Result<()> {
    ensure!(value.into() != Some(0), "{name} must be above 0");
    Ok(())
}

/// Checks that a decay rate is 0 to below 1.
pub(crate) fn decay_rate(name: &str, value: f64) -> anyhow::Result<()> {
    let is_rate = (0.0..1.0).contains(&value);
    ensure!(is_rate, "{name} must be 0 to below 1");
    Ok(())
}

/// Checks that a weight is 0 or above.
pub(crate) fn weight(name: &str, value: f64) -> anyhow::Result<()> {
    let is_weight = value >= 0.0 && value.is_finite();
    ensure!(is_weight, "{name} must be 0 or above");
    Ok(())
}
