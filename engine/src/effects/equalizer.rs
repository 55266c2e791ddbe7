//! Parametric equaliser.

use super::{CHANGE_S, Effect, EffectKind, EffectParameter, STEP, Steps};
use crate::dsp::level::limit_sample;
use crate::dsp::ramp::Ramp;
use crate::dsp::svf::{FilterResponse, Svf};

/// Id of the effect.
pub const ID: &str = "equalizer";
/// Bands: a low shelf, six bells, a high shelf.
pub const BANDS: usize = 8;
/// Parameters of a band: frequency, gain, Q.
pub const OF_A_BAND: usize = 3;
/// Time after which filters have decayed, s.
const RING_S: f32 = 0.3;

/// Parameters of one band.
macro_rules! band {
    ($number:literal, $hz:literal) => {
        [
            EffectParameter::new(
                concat!("frequency", $number),
                concat!("Frequency ", $number),
                " Hz",
                [20.0, 20_000.0],
                $hz,
            )
            .logarithmic(),
            EffectParameter::new(
                concat!("gain", $number),
                concat!("Gain ", $number),
                " dB",
                [-18.0, 18.0],
                0.0,
            ),
            EffectParameter::new(
                concat!("q", $number),
                concat!("Q ", $number),
                "",
                [0.2, 12.0],
                0.7,
            )
            .logarithmic(),
        ]
    };
}

static PARAMETERS: [[EffectParameter; OF_A_BAND]; BANDS] = [
    band!("1", 80.0),
    band!("2", 150.0),
    band!("3", 300.0),
    band!("4", 600.0),
    band!("5", 1_200.0),
    band!("6", 2_500.0),
    band!("7", 5_000.0),
    band!("8", 8_000.0),
];

pub(super) static KIND: EffectKind = EffectKind {
    id: ID,
    name: "Equaliser",
    description: "Eight bands: a low shelf, six bells and a high shelf.",
    parameters: PARAMETERS.as_flattened(),
    mix: 1.0,
    new: |sample_rate| Box::new(Equalizer::new(sample_rate)),
};

/// Returns what a band does with a gain in dB.
fn response(band: usize) -> fn(f64) -> FilterResponse {
    match band {
        0 => FilterResponse::LowShelf,
        band if band == BANDS - 1 => FilterResponse::HighShelf,
        _ => FilterResponse::Bell,
    }
}

/// Gain by frequency.
pub struct Curve {
    bands: [Svf; BANDS],
    sample_rate: u32,
}

impl Curve {
    /// Creates the curve of an equaliser with these values of its parameters, which are in range, at
    /// a sample rate in Hz.
    #[must_use]
    pub fn new(values: &[f32], sample_rate: u32) -> Self {
        let mut bands: [Svf; BANDS] = Default::default();
        for (number, band) in bands.iter_mut().enumerate() {
            let own = values.chunks_exact(OF_A_BAND).nth(number);
            let [hz, db, quality] = own.map_or([1e3, 0.0, 1.0], |own| {
                [own[0], own[1], own[2]].map(f64::from)
            });
            band.set(response(number)(db), hz, quality, sample_rate);
        }
        Self { bands, sample_rate }
    }

    /// Returns the gain at a frequency in Hz, dB.
    #[must_use]
    pub fn gain_db(&self, hz: f64) -> f64 {
        let bands = self.bands.iter();
        bands.map(|band| band.gain_db(hz, self.sample_rate)).sum()
    }
}

struct Equalizer {
    steps: Steps,
    bands: [Band; BANDS],
    ring: usize,
}

struct Band {
    sample_rate: u32,
    response: fn(f64) -> FilterResponse,
    /// Octaves above 1 Hz, dB, and Q, by the step.
    values: [Ramp; OF_A_BAND],
    filters: [Svf; 2],
    /// Samples until the filters are silent after the gain has become 0 dB.
    ringing: usize,
}

impl Equalizer {
    fn new(sample_rate: u32) -> Self {
        let ramp = |value| Ramp::new(value, CHANGE_S, sample_rate / STEP as u32);
        let band = |band: usize| Band {
            sample_rate,
            response: response(band),
            values: [ramp(10.0), ramp(0.0), ramp(1.0)],
            filters: Default::default(),
            ringing: 0,
        };
        Self {
            steps: Steps::default(),
            bands: std::array::from_fn(band),
            ring: (RING_S * sample_rate as f32) as usize,
        }
    }
}

impl Band {
    /// A flat band that has decayed passes all samples unchanged.
    fn is_flat(&self) -> bool {
        self.values[1].settled() == Some(0.0) && self.ringing == 0
    }

    fn tune(&mut self) {
        let is_settled = self.values.iter().all(|value| value.settled().is_some());
        let [octaves, db, quality] = self
            .values
            .each_mut()
            .map(|value| f64::from(value.advance()));
        if !is_settled {
            for filter in &mut self.filters {
                filter.set(
                    (self.response)(db),
                    octaves.exp2(),
                    quality,
                    self.sample_rate,
                );
            }
        }
    }
}

impl Effect for Equalizer {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        for (band, values) in self.bands.iter_mut().zip(values.chunks_exact(OF_A_BAND)) {
            let targets = [values[0].log2(), values[1], values[2]];
            for (value, target) in band.values.iter_mut().zip(targets) {
                value.set_target(target);
            }
        }
    }

    fn reset(&mut self) {
        self.steps.reset();
        for band in &mut self.bands {
            let targets = band.values.map(|value| value.target());
            // Half a step on the way, so that the first step sets the filters.
            for (value, target) in band.values.iter_mut().zip(targets) {
                value.jump(target);
            }
            let [octaves, db, quality] = targets.map(f64::from);
            for filter in &mut band.filters {
                filter.reset();
                filter.set(
                    (band.response)(db),
                    octaves.exp2(),
                    quality,
                    band.sample_rate,
                );
            }
            band.ringing = 0;
        }
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        let mut done = 0;
        while done < left.len() {
            let (part, begins) = self.steps.next(left.len() - done);
            let part = done..done + part;
            for band in &mut self.bands {
                if begins {
                    band.tune();
                }
                if band.is_flat() {
                    continue;
                }
                for (filter, sound) in band.filters.iter_mut().zip([&mut *left, &mut *right]) {
                    for sample in &mut sound[part.clone()] {
                        *sample = filter.process(limit_sample(*sample));
                    }
                }
                band.ringing = match band.values[1].settled() == Some(0.0) {
                    true => band.ringing.saturating_sub(part.len()),
                    false => self.ring,
                };
                if band.ringing == 0 {
                    band.filters.iter_mut().for_each(Svf::reset);
                }
            }
            done = part.end;
        }
    }

    fn tail_samples(&self) -> usize {
        match self.bands.iter().all(Band::is_flat) {
            true => 0,
            false => self.ring,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{play, spectrum_db};
    use super::KIND;

    fn response(changes: &[(&str, f32)]) -> Vec<f64> {
        let mut values = KIND.defaults();
        for (id, value) in changes {
            let place = KIND
                .parameters
                .iter()
                .position(|parameter| parameter.id == *id);
            values[place.expect("a parameter")] = *value;
        }
        let mut click = vec![0.0; 48_000];
        click[0] = 1.0;
        let [heard, _] = play(&KIND, &values, [&click, &click]);
        let dry = spectrum_db(&click)[1_000];
        spectrum_db(&heard).iter().map(|db| db - dry).collect()
    }

    #[test]
    fn bands_shape_the_spectrum() {
        let found = response(&[
            ("gain1", 6.0),
            ("frequency4", 1_000.0),
            ("gain4", -12.0),
            ("q4", 4.0),
            ("gain8", -9.0),
        ]);
        for (hz, expected) in [
            (20, 6.0),
            (80, 3.0),
            (1_000, -12.0),
            (500, 0.0),
            (20_000, -8.7),
        ] {
            assert!(
                (found[hz] - expected).abs() < 0.7,
                "{hz} Hz: {} dB, not {expected}",
                found[hz]
            );
        }
    }

    #[test]
    fn a_flat_equaliser_changes_no_sample() {
        let sound: Vec<f32> = (0..5_000).map(|n| (n as f32 * 0.1).sin()).collect();
        let [heard, _] = play(&KIND, &KIND.defaults(), [&sound, &sound]);
        assert_eq!(heard, sound);
    }
}
