//! Interface of the physical models.

use rand::Rng;

use super::performance::{Score, Style};

/// Sample rate of the rendered sound, Hz.
pub const OUTPUT_RATE_HZ: f64 = 48_000.0;

/// Physical model of an instrument.
pub trait Instrument: Send + Sync {
    /// Returns the notes that the instrument can play.
    fn style(&self) -> Style;

    /// Renders a score at [`OUTPUT_RATE_HZ`], without a room.
    fn render(&self, score: &Score, rng: &mut dyn Rng) -> Vec<f32>;
}
