//! Constants of air.

/// Density of air, kg/m³.
pub const AIR_DENSITY: f64 = 1.204;
/// Speed of sound, m/s.
pub const SOUND_SPEED: f64 = 343.0;
