//! Bessel function of Kaiser windows.

/// Modified Bessel function of the first kind and order 0, by its series.
#[must_use]
pub fn i0(x: f64) -> f64 {
    let term = |term: &mut f64, n: u32| {
        *term *= (x / (2.0 * f64::from(n))).powi(2);
        Some(*term)
    };
    1.0 + (1..40).scan(1.0, term).sum::<f64>()
}
