//! Level, pan, mute and solo of a track or the master.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use ondes_engine::dsp::level::db_to_amplitude;
use ondes_player::parameter_values::finite;
use serde::{Deserialize, Serialize};

/// Level in dB at and below which a fader is silent.
pub const SILENT_DB: f32 = -60.0;
/// Highest level, dB.
pub const LOUDEST_DB: f32 = 12.0;

/// Settings of a fader as they are saved. Values out of range are clamped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FaderSettings {
    /// Level in dB, [`SILENT_DB`] to [`LOUDEST_DB`].
    #[serde(deserialize_with = "finite")]
    pub level_db: f32,
    /// Position from −1 (left) to 1 (right).
    #[serde(deserialize_with = "finite")]
    pub pan: f32,
    /// Silences the track.
    pub mute: bool,
    /// Silences all tracks that are not solo.
    pub solo: bool,
}

impl Default for FaderSettings {
    fn default() -> Self {
        Self {
            level_db: 0.0,
            pan: 0.0,
            mute: false,
            solo: false,
        }
    }
}

impl FaderSettings {
    /// Clamps all values to their ranges; NaN becomes 0.
    #[must_use]
    pub fn within_limits(self) -> Self {
        let sane = |value: f32, min: f32, max: f32| {
            if value.is_nan() {
                0.0
            } else {
                value.clamp(min, max)
            }
        };
        Self {
            level_db: sane(self.level_db, SILENT_DB, LOUDEST_DB),
            pan: sane(self.pan, -1.0, 1.0),
            ..self
        }
    }

    /// Returns the gains of left and right with constant power; both are 1 at 0 dB in the middle.
    #[must_use]
    pub fn gains(&self) -> [f32; 2] {
        let level = if self.level_db <= SILENT_DB {
            0.0
        } else {
            db_to_amplitude(self.level_db)
        };
        if self.pan == 0.0 {
            return [level; 2];
        }
        let angle = (self.pan + 1.0) * std::f32::consts::FRAC_PI_4;
        [angle.cos(), angle.sin()].map(|side| std::f32::consts::SQRT_2 * side * level)
    }

    /// Returns the gains after mute and solo; `any_solo` tells that some track is solo.
    #[must_use]
    pub fn gains_heard(&self, any_solo: bool) -> [f32; 2] {
        if self.mute || any_solo && !self.solo {
            [0.0; 2]
        } else {
            self.gains()
        }
    }
}

/// Multiplies a block by a gain that moves linearly from its last value to `target`.
pub fn ramp(block: &mut [f32], gain: &mut f32, target: f32) {
    let step = (target - *gain) / block.len().max(1) as f32;
    for (frame, sample) in block.iter_mut().enumerate() {
        *sample *= if step == 0.0 {
            target
        } else {
            *gain + step * (frame + 1) as f32
        };
    }
    *gain = target;
}

/// Settings of a fader, shared between threads.
#[derive(Debug)]
pub struct Fader {
    level_db: AtomicU32,
    pan: AtomicU32,
    mute: AtomicBool,
    solo: AtomicBool,
}

impl Default for Fader {
    fn default() -> Self {
        let fader = Self {
            level_db: AtomicU32::new(0),
            pan: AtomicU32::new(0),
            mute: AtomicBool::new(false),
            solo: AtomicBool::new(false),
        };
        fader.set(FaderSettings::default());
        fader
    }
}

impl Fader {
    /// Returns the settings.
    #[must_use]
    pub fn get(&self) -> FaderSettings {
        let float = |bits: &AtomicU32| f32::from_bits(bits.load(Relaxed));
        FaderSettings {
            level_db: float(&self.level_db),
            pan: float(&self.pan),
            mute: self.mute.load(Relaxed),
            solo: self.solo.load(Relaxed),
        }
    }

    /// Changes the settings.
    pub fn set(&self, settings: FaderSettings) {
        let FaderSettings {
            level_db,
            pan,
            mute,
            solo,
        } = settings.within_limits();
        self.level_db.store(level_db.to_bits(), Relaxed);
        self.pan.store(pan.to_bits(), Relaxed);
        self.mute.store(mute, Relaxed);
        self.solo.store(solo, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panning_has_constant_power() {
        for pan in [-1.0, -0.3, 0.0, 0.7, 1.0] {
            let [left, right] = FaderSettings {
                pan,
                ..FaderSettings::default()
            }
            .gains();
            assert!((left * left + right * right - 2.0).abs() < 1e-5, "{pan}");
        }
        assert_eq!(FaderSettings::default().gains(), [1.0; 2]);
        assert_eq!(
            FaderSettings {
                level_db: SILENT_DB,
                pan: 0.5,
                ..FaderSettings::default()
            }
            .gains(),
            [0.0; 2]
        );
    }

    #[test]
    fn settings_are_clamped() {
        let fader = Fader::default();
        fader.set(FaderSettings {
            level_db: 400.0,
            pan: f32::NAN,
            mute: true,
            solo: false,
        });
        assert_eq!(
            fader.get(),
            FaderSettings {
                level_db: LOUDEST_DB,
                pan: 0.0,
                mute: true,
                solo: false
            }
        );
    }
}
