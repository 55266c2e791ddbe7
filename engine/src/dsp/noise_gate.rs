//! Noise gate.

use super::level::db_to_amplitude;

/// Hysteresis: an open gate closes at this many dB below the threshold.
const HYSTERESIS_DB: f32 = 6.0;
/// Opening time, s; short enough for a pick attack, long enough not to click.
const ATTACK_S: f64 = 0.001;
/// Time that the gate stays open after the last loud sample, s; more than a period of the lowest
/// string.
const HOLD_S: f64 = 0.050;
/// Closing time, s.
const RELEASE_S: f64 = 0.100;

/// Passes sound above a threshold and what follows shortly after. All channels share one gate,
/// controlled by the loudest.
///
/// Samples pass unchanged while the gate is open or has no threshold.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::noise_gate::NoiseGate;
///
/// let mut gate = NoiseGate::new(48_000);
/// gate.set(Some(-50.0));
/// let mut hum = vec![0.001; 48_000];
/// gate.process(&mut [&mut hum]);
/// assert_eq!(hum[47_999], 0.0);
/// ```
pub struct NoiseGate {
    /// Amplitudes that open the gate and keep it open; `None` while it is off.
    thresholds: Option<[f32; 2]>,
    /// Remaining samples until the gate closes, and their number after a loud sample.
    left: usize,
    hold: usize,
    /// Current gain, 0 to 1, and its changes per sample.
    gain: f32,
    attack: f32,
    release: f32,
}

impl NoiseGate {
    /// Creates a gate without threshold, for a sample rate in Hz.
    #[must_use]
    pub fn new(sample_rate: u32) -> Self {
        let step = |seconds: f64| (1.0 / (seconds * f64::from(sample_rate))) as f32;
        let hold = (HOLD_S * f64::from(sample_rate)) as usize;
        Self {
            thresholds: None,
            left: hold,
            hold,
            gain: 1.0,
            attack: step(ATTACK_S),
            release: step(RELEASE_S),
        }
    }

    /// Sets the threshold in dB of full scale; `None` keeps the gate open.
    pub fn set(&mut self, threshold_db: Option<f32>) {
        self.thresholds =
            threshold_db.map(|db| [db_to_amplitude(db), db_to_amplitude(db - HYSTERESIS_DB)]);
    }

    /// Opens the gate at once.
    pub fn reset(&mut self) {
        (self.left, self.gain) = (self.hold, 1.0);
    }

    /// Returns whether samples pass unchanged until a threshold is set.
    #[must_use]
    pub fn is_neutral(&self) -> bool {
        self.thresholds.is_none() && self.gain >= 1.0
    }

    /// Processes samples in place, `[channel][frame]`; channels must have equal lengths.
    pub fn process(&mut self, channels: &mut [&mut [f32]]) {
        if self.is_neutral() {
            return;
        }
        let frames = channels
            .iter()
            .map(|channel| channel.len())
            .min()
            .unwrap_or(0);
        for frame in 0..frames {
            let key = channels
                .iter()
                .fold(0.0_f32, |key, channel| key.max(channel[frame].abs()));
            let gain = self.next(key);
            channels
                .iter_mut()
                .for_each(|channel| channel[frame] *= gain);
        }
    }

    /// Returns the gain for a sample of magnitude `key`.
    fn next(&mut self, key: f32) -> f32 {
        let open = self.thresholds.is_none_or(|[opens, holds]| {
            let loud = key >= if self.left > 0 { holds } else { opens };
            self.left = if loud {
                self.hold
            } else {
                self.left.saturating_sub(1)
            };
            self.left > 0
        });
        self.gain = if open {
            (self.gain + self.attack).min(1.0)
        } else {
            (self.gain - self.release).max(0.0)
        };
        self.gain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 48_000;

    /// Hum of 0.1 s with a peak level in dB.
    fn hum(db: f32) -> Vec<f32> {
        let peak = db_to_amplitude(db);
        (0..4_800)
            .map(|n| peak * (n as f32 * 0.0131).sin())
            .collect()
    }

    fn through(gate: &mut NoiseGate, sound: &[f32]) -> Vec<f32> {
        let mut sound = sound.to_vec();
        gate.process(&mut [&mut sound]);
        sound
    }

    #[test]
    fn loud_sound_opens_and_hum_closes() {
        let mut gate = NoiseGate::new(RATE);
        gate.set(Some(-50.0));
        let hiss = hum(-57.0);
        through(&mut gate, &hiss);
        assert!(
            through(&mut gate, &hiss)[2_500..]
                .iter()
                .all(|sample| *sample == 0.0),
            "closed"
        );
        // Open 1 ms after a loud sample.
        let played = hum(-20.0);
        let output = through(&mut gate, &played);
        assert_eq!(output[100..], played[100..]);
        // Slightly below the threshold: keeps the gate open, but does not open it.
        let soft = hum(-53.0);
        assert_eq!(through(&mut gate, &soft), soft);
        for _ in 0..3 {
            through(&mut gate, &hiss);
        }
        assert!(
            through(&mut gate, &soft)
                .iter()
                .all(|sample| *sample == 0.0)
        );
        gate.set(None);
        assert_eq!(through(&mut gate, &soft)[100..], soft[100..]);
        assert!(gate.is_neutral());
    }

    #[test]
    fn gains_change_smoothly_in_blocks_of_any_length() {
        let sound: Vec<f32> = [hum(-20.0), hum(-60.0), hum(-60.0), hum(-10.0)].concat();
        let expected = {
            let mut gate = NoiseGate::new(RATE);
            gate.set(Some(-40.0));
            through(&mut gate, &sound)
        };
        let mut gate = NoiseGate::new(RATE);
        gate.set(Some(-40.0));
        let split: Vec<f32> = sound
            .chunks(37)
            .flat_map(|block| through(&mut gate, block))
            .collect();
        assert_eq!(split, expected);
        let gains = |n: usize| {
            if sound[n] == 0.0 {
                None
            } else {
                Some(expected[n] / sound[n])
            }
        };
        for n in 1..sound.len() {
            if let (Some(one), Some(next)) = (gains(n - 1), gains(n)) {
                assert!((one - next).abs() < 0.022, "{one} and {next} at {n}");
            }
        }
    }

    #[test]
    fn both_channels_open_together() {
        let mut gate = NoiseGate::new(RATE);
        gate.set(Some(-40.0));
        let (soft, loud) = (hum(-60.0), hum(-10.0));
        let (mut left, mut right) = (
            [soft.clone(), soft.clone()].concat(),
            [soft.clone(), loud].concat(),
        );
        gate.process(&mut [&mut left, &mut right]);
        assert_eq!(left[5_000..], soft[200..]);
    }
}
