//! What a strip of the mixer is set to.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// At this level, dB, and below nothing is heard.
pub const SILENT_DB: f32 = -60.0;
/// The highest level, dB.
pub const LOUDEST_DB: f32 = 12.0;

/// A strip's settings as they are saved. What is out of range is at the end of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// dB, [`SILENT_DB`] to [`LOUDEST_DB`].
    pub level_db: f32,
    /// −1 (left) to 1 (right).
    pub pan: f32,
    /// Nothing of it is heard.
    pub mute: bool,
    /// Nothing but this, and others that are so, is heard.
    pub solo: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { level_db: 0.0, pan: 0.0, mute: false, solo: false }
    }
}

impl Settings {
    /// The same within its ranges; what is no number is as it is by default.
    #[must_use]
    pub fn within_limits(self) -> Self {
        let sane = |value: f32, min: f32, max: f32| if value.is_nan() { 0.0 } else { value.clamp(min, max) };
        Self { level_db: sane(self.level_db, SILENT_DB, LOUDEST_DB), pan: sane(self.pan, -1.0, 1.0), ..self }
    }

    /// Factors for left and right, of equal power wherever it is panned to; 1 in the middle at 0 dB.
    #[must_use]
    pub fn gains(&self) -> [f32; 2] {
        let level = if self.level_db <= SILENT_DB { 0.0 } else { 10.0_f32.powf(self.level_db / 20.0) };
        if self.pan == 0.0 {
            return [level; 2];
        }
        let angle = (self.pan + 1.0) * std::f32::consts::FRAC_PI_4;
        [angle.cos(), angle.sin()].map(|side| std::f32::consts::SQRT_2 * side * level)
    }

    /// The factors of what is heard, where `alone` says that only what is solo is.
    #[must_use]
    pub fn gains_heard(&self, alone: bool) -> [f32; 2] {
        if self.mute || alone && !self.solo { [0.0; 2] } else { self.gains() }
    }
}

/// Goes with a gain from where it was to `target` within a block.
pub fn ramp(block: &mut [f32], gain: &mut f32, target: f32) {
    let step = (target - *gain) / block.len().max(1) as f32;
    for (frame, sample) in block.iter_mut().enumerate() {
        *sample *= if step == 0.0 { target } else { *gain + step * (frame + 1) as f32 };
    }
    *gain = target;
}

/// A strip's settings for all threads.
#[derive(Debug)]
pub struct Mix {
    level_db: AtomicU32,
    pan: AtomicU32,
    mute: AtomicBool,
    solo: AtomicBool,
}

impl Default for Mix {
    fn default() -> Self {
        let mix = Self {
            level_db: AtomicU32::new(0),
            pan: AtomicU32::new(0),
            mute: AtomicBool::new(false),
            solo: AtomicBool::new(false),
        };
        mix.set(Settings::default());
        mix
    }
}

impl Mix {
    /// As it is.
    #[must_use]
    pub fn get(&self) -> Settings {
        let float = |bits: &AtomicU32| f32::from_bits(bits.load(Relaxed));
        Settings {
            level_db: float(&self.level_db),
            pan: float(&self.pan),
            mute: self.mute.load(Relaxed),
            solo: self.solo.load(Relaxed),
        }
    }

    /// As it is to be.
    pub fn set(&self, settings: Settings) {
        let Settings { level_db, pan, mute, solo } = settings.within_limits();
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
    fn panning_keeps_the_power() {
        for pan in [-1.0, -0.3, 0.0, 0.7, 1.0] {
            let [left, right] = Settings { pan, ..Settings::default() }.gains();
            assert!((left * left + right * right - 2.0).abs() < 1e-5, "{pan}");
        }
        assert_eq!(Settings::default().gains(), [1.0; 2]);
        assert_eq!(Settings { level_db: SILENT_DB, pan: 0.5, ..Settings::default() }.gains(), [0.0; 2]);
    }

    #[test]
    fn nothing_leaves_its_range() {
        let mix = Mix::default();
        mix.set(Settings { level_db: 400.0, pan: f32::NAN, mute: true, solo: false });
        assert_eq!(mix.get(), Settings { level_db: LOUDEST_DB, pan: 0.0, mute: true, solo: false });
    }
}
