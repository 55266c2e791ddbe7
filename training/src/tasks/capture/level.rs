//! Levels of recordings.

/// Returns the root mean square, dB of full scale; −200 for silence.
#[must_use]
pub fn rms_db(sound: &[f32]) -> f64 {
    let square: f64 =
        sound.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / sound.len().max(1) as f64;
    10.0 * square.max(1e-20).log10()
}
