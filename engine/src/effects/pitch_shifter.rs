//! Pitch shifter.

use super::{CHANGE_S, Effect, EffectKind, EffectParameter};
use crate::dsp::delay_line::DelayLine;
use crate::dsp::ramp::Ramp;

/// Delays between which the sound is read, s.
const NEAREST_S: f32 = 0.003;
const FARTHEST_S: f32 = 0.045;
/// Jumps to choose from, s: at least a period of 40 Hz.
const JUMPS_S: [f32; 2] = [0.004, 0.029];
/// Duration of the fade from one place to another, s.
const FADE_S: f32 = 0.004;
/// Sound that is compared to find where the wave repeats, s.
const COMPARED_S: f32 = 0.010;
/// Steps in which the places are compared, samples: of the jumps at first, and of the sound.
const COARSE: usize = 4;

pub(super) static KIND: EffectKind = EffectKind {
    id: "pitch",
    name: "Pitch shifter",
    description: "Raises or lowers the pitch by up to two octaves, some 25 ms late.",
    parameters: &[
        EffectParameter::new("semitones", "Semitones", "", [-24.0, 24.0], -12.0),
        EffectParameter::new("cents", "Cents", "", [-100.0, 100.0], 0.0),
    ],
    mix: 0.5,
    new: |sample_rate| Box::new(PitchShifter::new(sample_rate)),
};

/// Reads the past faster or slower, and jumps by whole periods of the wave, found by correlation
/// (Verhelst & Roelands, "An overlap-add technique based on waveform similarity (WSOLA)", ICASSP
/// 1993).
struct PitchShifter {
    lines: [DelayLine; 2],
    /// Both channels, to compare.
    mono: DelayLine,
    /// Octaves.
    shift: Ramp,
    /// Distance of the place that is read, and of the one that it came from, samples.
    places: [f32; 2],
    /// Samples until the fade between them ends.
    fading: usize,
    nearest: f32,
    farthest: f32,
    jumps: [usize; 2],
    fade: usize,
    compared: usize,
}

impl PitchShifter {
    fn new(sample_rate: u32) -> Self {
        let samples = |seconds: f32| seconds * sample_rate as f32;
        let longest = FARTHEST_S + JUMPS_S[1] + COMPARED_S + 4.0 * FADE_S;
        let line = DelayLine::new(samples(longest) as usize);
        Self {
            lines: [line.clone(), line.clone()],
            mono: line,
            shift: Ramp::new(0.0, CHANGE_S, sample_rate),
            places: [samples(NEAREST_S); 2],
            fading: 0,
            nearest: samples(NEAREST_S),
            farthest: samples(FARTHEST_S),
            jumps: JUMPS_S.map(|seconds| samples(seconds) as usize),
            fade: samples(FADE_S) as usize,
            compared: samples(COMPARED_S) as usize,
        }
    }

    /// Returns how much the sound at two distances is alike: their correlation, by the power of the
    /// second.
    fn likeness(&self, from: usize, to: usize) -> f32 {
        let (mut product, mut power) = (0.0, 1e-9);
        for back in (0..self.compared).step_by(COARSE) {
            let (there, here) = (self.mono.at(to + back), self.mono.at(from + back));
            product += there * here;
            power += there * there;
        }
        product * product.abs() / power
    }

    /// Returns the length of the jump from a distance, farther away or nearer, after which the wave
    /// goes on best.
    fn jump(&self, from: usize, farther: bool) -> usize {
        let [shortest, longest] = self.jumps;
        let to = |jump: usize| {
            if farther {
                from + jump
            } else {
                from.saturating_sub(jump)
            }
        };
        let best = |jumps: &mut dyn Iterator<Item = usize>| {
            jumps
                .map(|jump| (jump, self.likeness(from, to(jump))))
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .map_or(shortest, |(jump, _)| jump)
        };
        let coarse = best(&mut (shortest..=longest).step_by(COARSE));
        best(&mut (coarse - COARSE + 1..coarse + COARSE))
    }
}

impl Effect for PitchShifter {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        if let &[semitones, cents] = values {
            self.shift.set_target((semitones + 1e-2 * cents) / 12.0);
        }
    }

    fn reset(&mut self) {
        self.shift.finish();
        self.lines.iter_mut().for_each(DelayLine::reset);
        self.mono.reset();
        (self.places, self.fading) = ([self.nearest; 2], 0);
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        for (left, right) in left.iter_mut().zip(right) {
            let [into_left, into_right] = &mut self.lines;
            into_left.push(*left);
            into_right.push(*right);
            self.mono.push(*left + *right);
            // Distance that is won in a sample.
            let nearer = self.shift.advance().exp2() - 1.0;
            if self.fading == 0 {
                let needed = nearer.max(0.0) * self.fade as f32;
                let here = self.places[0];
                let farther = here - needed < self.nearest && nearer > 0.0;
                if farther || here > self.farthest {
                    let jump = self.jump(here as usize, farther) as f32;
                    let there = if farther { here + jump } else { here - jump };
                    (self.places, self.fading) = ([there, here], self.fade);
                }
            }
            self.fading = self.fading.saturating_sub(1);
            let old = self.fading as f32 / self.fade as f32;
            for (sample, line) in [left, right].into_iter().zip(&self.lines) {
                let [new, before] = self.places.map(|place| line.read(place.max(1.0)));
                *sample = new + old * (before - new);
            }
            for place in &mut self.places {
                *place = (*place - nearer).max(1.0);
            }
        }
    }

    fn tail_samples(&self) -> usize {
        self.farthest as usize + self.jumps[1] + self.fade
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{level_db, play, sine, spectrum_db};
    use super::KIND;

    #[test]
    fn tones_move_by_the_interval() {
        for (semitones, cents, hz, expected) in [
            (12.0, 0.0, 440.0, 880),
            (-12.0, 0.0, 440.0, 220),
            (7.0, 0.0, 300.0, 449),
            (-24.0, 0.0, 800.0, 200),
            (24.0, 0.0, 200.0, 800),
            (0.0, 50.0, 1_000.0, 1_029),
        ] {
            let sound = sine(hz, -12.0, 3.0);
            let [heard, _] = play(&KIND, &[semitones, cents], [&sound, &sound]);
            let spectrum = spectrum_db(&heard[48_000..96_000]);
            let (peak, level) = spectrum
                .iter()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .unwrap();
            assert!(
                peak.abs_diff(expected) <= 2,
                "{semitones}: {peak} Hz, not {expected}"
            );
            let far = spectrum
                .iter()
                .enumerate()
                .filter(|(bin, _)| bin.abs_diff(peak) > 60);
            let rest = far.map(|(_, db)| *db).fold(f64::MIN, f64::max);
            assert!(
                rest < level - 30.0,
                "{semitones}: {rest} dB beside {level} dB"
            );
            let loss = level_db(&heard[48_000..]) - level_db(&sound);
            assert!(loss.abs() < 0.5, "{semitones}: {loss} dB");
        }
    }
}
