//! A filter that makes a note brighter or darker without making it louder or softer.

/// Frequency that divides treble from bass, as a multiple of the pitch, and its limits, Hz. Notes
/// recorded at several dynamics (cello, double bass, two saxophones) turn about partials 3 to 6.
const PIVOT_PARTIAL: f32 = 4.0;
const PIVOT_HZ: (f32, f32) = (300.0, 4_000.0);
/// Largest difference of treble and bass, dB.
const MAX_DB: f32 = 24.0;
/// Frequency below which levels count less, Hz: about as in A-weighting.
const WEIGHTING_HZ: f32 = 500.0;
/// Time over which levels are measured, seconds.
const LEVEL_S: f32 = 0.03;
/// Mean square below which there is nothing to measure.
const SILENCE: f32 = 1e-14;

/// Mixes treble and bass of a note, divided by a filter of the first order, with gains that keep
/// the level. Allocates only on construction.
#[derive(Clone, Debug)]
pub struct Tilt {
    sample_rate: f32,
    /// Lowpass of the dividing filter.
    bass: f32,
    /// Lowpasses of the weighting of the sound and of its bass.
    weighting: [f32; 2],
    /// Weighted level of the note, if it has begun.
    level: Option<BandLevel>,
    /// Gains of bass and treble.
    gains: [f32; 2],
    /// Bass of a hop.
    band: Vec<f32>,
}

/// Mean squares of bass and treble, and the mean of their product.
#[derive(Clone, Copy, Debug, Default)]
struct BandLevel {
    bass: f32,
    treble: f32,
    product: f32,
}

impl BandLevel {
    fn map2(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self {
            bass: f(self.bass, other.bass),
            treble: f(self.treble, other.treble),
            product: f(self.product, other.product),
        }
    }

    /// Returns the mean square of the bands with these gains.
    fn mixed(self, [bass, treble]: [f32; 2]) -> f32 {
        bass * bass * self.bass + treble * treble * self.treble + 2.0 * bass * treble * self.product
    }
}

impl Tilt {
    /// Creates a filter without effect, for hops of a length, at a sample rate in Hz.
    #[must_use]
    pub fn new(sample_rate: f32, hop: usize) -> Self {
        Self {
            sample_rate,
            bass: 0.0,
            weighting: [0.0; 2],
            level: None,
            gains: [1.0; 2],
            band: vec![0.0; hop],
        }
    }

    /// Forgets the sound before.
    pub fn reset(&mut self) {
        (self.bass, self.weighting) = (0.0, [0.0; 2]);
        (self.level, self.gains) = (None, [1.0; 2]);
    }

    /// Filters a hop of a note of a pitch in semitones, so that treble is raised against bass by
    /// `tilt_db` (±24 dB) at its end. Changes are smooth.
    ///
    /// # Panics
    /// Panics if the hop has another length.
    pub fn process(&mut self, tilt_db: f32, semitones: f32, sound: &mut [f32]) {
        let frames = sound.len() as f32;
        self.measure(semitones, sound);
        let level = self.level.unwrap_or_default();
        let treble = 10_f32.powf(tilt_db.clamp(-MAX_DB, MAX_DB) / 40.0);
        let gains = [1.0 / treble, treble];
        let mixed = level.mixed(gains);
        let makeup = if mixed > SILENCE {
            (level.mixed([1.0; 2]) / mixed).sqrt()
        } else {
            1.0
        };
        let end = gains.map(|gain| makeup * gain);
        let step = [0, 1].map(|n| (end[n] - self.gains[n]) / frames);
        for (n, (sample, bass)) in sound.iter_mut().zip(&self.band).enumerate() {
            let passed = (n + 1) as f32;
            let [low, high] = [0, 1].map(|n| self.gains[n] + passed * step[n]);
            *sample = low * bass + high * (*sample - bass);
        }
        self.gains = end;
    }

    /// Divides the bands, and measures their levels.
    fn measure(&mut self, semitones: f32, sound: &[f32]) {
        let share = |hz: f32| 1.0 - (-std::f32::consts::TAU * hz / self.sample_rate).exp();
        let pitch_hz = 440.0 * ((semitones - 69.0) / 12.0).exp2();
        let pivot = share((PIVOT_PARTIAL * pitch_hz).clamp(PIVOT_HZ.0, PIVOT_HZ.1));
        let weighting = share(WEIGHTING_HZ);
        let mut sums = BandLevel::default();
        let ([mut low, mut low_bass], mut bass) = (self.weighting, self.bass);
        for (sample, band) in sound.iter().zip(&mut self.band) {
            bass += pivot * (sample - bass);
            *band = bass;
            let (heard, heard_bass) = (sample - low, bass - low_bass);
            low += weighting * heard;
            low_bass += weighting * heard_bass;
            let heard_treble = heard - heard_bass;
            sums.bass += heard_bass * heard_bass;
            sums.treble += heard_treble * heard_treble;
            sums.product += heard_bass * heard_treble;
        }
        (self.weighting, self.bass) = ([low, low_bass], bass);
        let frames = sound.len() as f32;
        let passed = match self.level {
            None => 1.0,
            Some(_) => 1.0 - (-frames / (LEVEL_S * self.sample_rate)).exp(),
        };
        let before = self.level.unwrap_or_default();
        self.level = Some(before.map2(sums, |before, sum| {
            before + passed * (sum / frames - before)
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;

    use super::*;

    const RATE: f32 = 48_000.0;

    /// Makes a second of a tone with 20 partials that fall by 6 dB per octave.
    fn tone(hz: f32) -> Vec<f32> {
        let partial = |n: usize, k: i32| {
            let k = k as f32;
            0.1 / k * (TAU * k * hz * n as f32 / RATE).sin()
        };
        (0..RATE as usize)
            .map(|n| (1..=20).map(|k| partial(n, k)).sum())
            .collect()
    }

    fn filtered(tilt_db: f32, semitones: f32, sound: &[f32], block: usize) -> Vec<f32> {
        let (mut tilt, mut sound) = (Tilt::new(RATE, block), sound.to_vec());
        for block in sound.chunks_mut(block) {
            tilt.process(tilt_db, semitones, block);
        }
        sound
    }

    /// Amplitude at a frequency in the second half.
    fn amplitude(sound: &[f32], hz: f32) -> f32 {
        let half = &sound[sound.len() / 2..];
        let (mut re, mut im) = (0.0, 0.0);
        for (n, sample) in half.iter().enumerate() {
            let (sin, cos) = (TAU * hz * n as f32 / RATE).sin_cos();
            re += sample * cos;
            im += sample * sin;
        }
        2.0 * re.hypot(im) / half.len() as f32
    }

    fn db(ratio: f32) -> f32 {
        20.0 * ratio.log10()
    }

    #[test]
    fn treble_rises_against_bass_at_the_same_level() {
        for (hz, semitones) in [(110.0, 45.0), (440.0, 69.0)] {
            let sound = tone(hz);
            for tilt in [-12.0, 6.0, 12.0] {
                let out = filtered(tilt, semitones, &sound, 192);
                let gain = |k: f32| db(amplitude(&out, k * hz) / amplitude(&sound, k * hz));
                let (low, high) = (gain(1.0), gain(20.0));
                let rise = (high - low) / tilt;
                assert!((0.65..1.0).contains(&rise), "{hz} Hz, {tilt}: {low} {high}");
                // Bass counts less, as to the ear.
                let level = |sound: &[f32]| {
                    let mut low = 0.0;
                    let weighted = sound.iter().map(|sample| {
                        let high = sample - low;
                        low += TAU * WEIGHTING_HZ / RATE * high;
                        high * high
                    });
                    weighted.skip(24_000).sum::<f32>()
                };
                let change = db(level(&out) / level(&sound)) / 2.0;
                assert!(change.abs() < 0.2, "{hz} Hz, {tilt}: {change} dB");
            }
        }
    }

    #[test]
    fn no_tilt_changes_nothing_audible() {
        let sound = tone(220.0);
        let out = filtered(0.0, 57.0, &sound, 192);
        let error = sound.iter().zip(&out).map(|(a, b)| (a - b).abs());
        assert!(error.fold(0.0, f32::max) < 1e-6);
    }

    #[test]
    fn changes_and_silence_make_no_steps() {
        let sound: Vec<f32> = (0..48_000)
            .map(|n| {
                if (24_000..36_000).contains(&n) {
                    0.0
                } else {
                    0.2 * (TAU * 220.0 * n as f32 / RATE).sin()
                }
            })
            .collect();
        let (mut tilt, mut out) = (Tilt::new(RATE, 192), sound.clone());
        for (n, block) in out.chunks_mut(192).enumerate() {
            tilt.process(if n % 20 < 10 { 18.0 } else { -18.0 }, 57.0, block);
        }
        let step = |sound: &[f32]| {
            let steps = sound.windows(2).map(|pair| (pair[1] - pair[0]).abs());
            steps.fold(0.0, f32::max)
        };
        assert!(out.iter().all(|sample| sample.abs() < 0.3));
        assert!(step(&out[..19_000]) < 3.0 * step(&sound[..19_000]));
        tilt.reset();
        let mut silence = vec![0.0; 192];
        tilt.process(12.0, 57.0, &mut silence);
        assert!(silence.iter().all(|sample| *sample == 0.0));
    }
}
