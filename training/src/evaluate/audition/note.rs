//! Recorded and played notes, and spectra of them.

use ondes_engine::dsp::level::db_to_amplitude;
use tch::{Device, Kind, Tensor};

use crate::data::playing::NoteMeasures;
use crate::data::{FeatureRate, Features};
use crate::loss::{MelSpectrum, SpectralDistance, power_spectrum};

/// Length of an attack, seconds.
const ATTACK_S: f64 = 0.08;
/// Sound before an onset that belongs to the attack, seconds.
const BEFORE_S: f64 = 0.01;
/// Frequency from which sound is treble, Hz.
const TREBLE_HZ: f64 = 5_000.0;
/// Highest frequency of the noise between partials, Hz.
const NOISE_HZ: f64 = 10_000.0;
/// Sustained level to which sounds are brought before they are compared, dB.
const COMPARED_DB: f32 = -20.0;
/// Length of the transforms of sustained sound and of attacks, samples.
const SUSTAIN_FFT: i64 = 8192;
const ATTACK_FFT: i64 = 1024;

/// A sound with what was measured of it.
pub(super) struct Note {
    pub features: Features,
    pub measures: NoteMeasures,
}

impl Note {
    pub fn new(features: Features) -> Option<Self> {
        let measures = NoteMeasures::new(&features)?;
        Some(Self { features, measures })
    }

    /// Returns the sound from an onset on, at the compared level.
    fn levelled(&self, before_s: f64) -> Vec<f32> {
        let rate = self.features.rate;
        let onset = self.measures.held.0 * rate.hop;
        let before = (before_s * f64::from(rate.sample_rate)) as usize;
        let gain = db_to_amplitude(COMPARED_DB - self.measures.level_db);
        let from = onset.saturating_sub(before);
        let silence = std::iter::repeat_n(0.0, before - (onset - from));
        let sound = self.features.audio()[from..].iter();
        silence.chain(sound.map(|sample| gain * sample)).collect()
    }

    /// Returns the sound while the note is held and has settled.
    fn sustained(&self) -> &[f32] {
        let rate = self.features.rate;
        let (onset, end) = self.measures.held;
        let from = (onset + rate.frames(0.3)).min(onset + (end - onset) / 2);
        &self.features.audio()[from * rate.hop..(end + 1) * rate.hop]
    }
}

/// Spectra of notes at one sample rate.
pub(super) struct Analyser {
    rate: FeatureRate,
    mel: MelSpectrum,
    spectral: SpectralDistance,
    windows: [Tensor; 2],
}

impl Analyser {
    pub fn new(rate: FeatureRate) -> Self {
        let window = |length| Tensor::hann_window(length, (Kind::Float, Device::Cpu));
        Self {
            rate,
            mel: MelSpectrum::new(f64::from(rate.sample_rate), Device::Cpu),
            spectral: SpectralDistance::new(Device::Cpu),
            windows: [window(SUSTAIN_FFT), window(ATTACK_FFT)],
        }
    }

    fn samples(&self, seconds: f64) -> usize {
        (seconds * f64::from(self.rate.sample_rate)) as usize
    }

    /// Returns the mean power of a sound by bin.
    fn spectrum(&self, sound: &[f32], window: &Tensor) -> Vec<f64> {
        let length = window.size()[0];
        let row = Tensor::from_slice(sound).view([1, -1]);
        let power = power_spectrum(&row, length, length / 4, window);
        let mean = power.mean_dim([-1_i64].as_slice(), false, Kind::Double);
        Vec::try_from(mean.view(-1)).expect("a vector of numbers")
    }

    fn hz(&self, bin: usize, bins: usize) -> f64 {
        bin as f64 * f64::from(self.rate.sample_rate) / (2 * (bins - 1)) as f64
    }

    /// Returns the power above the bound of treble.
    fn treble(&self, sound: &[f32]) -> f64 {
        let spectrum = self.spectrum(sound, &self.windows[1]);
        let bins = spectrum.len();
        let treble = spectrum.iter().enumerate();
        treble
            .filter(|(bin, _)| self.hz(*bin, bins) >= TREBLE_HZ)
            .map(|(_, power)| power)
            .sum::<f64>()
            .max(1e-12)
    }

    /// Returns the treble of a note's first 80 ms relative to its sustained part, dB.
    pub fn attack_treble_db(&self, note: &Note) -> f64 {
        let mut attack = note.levelled(0.0);
        attack.truncate(self.samples(ATTACK_S));
        let gain = 10_f64.powf(f64::from(COMPARED_DB - note.measures.level_db) / 10.0);
        10.0 * (self.treble(&attack) / (gain * self.treble(note.sustained()))).log10()
    }

    /// Returns the difference of the mel spectra of two attacks, dB.
    pub fn attack_distance_db(&self, one: &Note, other: &Note) -> f64 {
        let [one, other] = [one, other].map(|note| {
            let mut attack = note.levelled(BEFORE_S);
            attack.truncate(self.samples(BEFORE_S + ATTACK_S));
            self.mel
                .logarithm(&Tensor::from_slice(&attack).view([1, -1]))
        });
        let frames = one.size()[2].min(other.size()[2]);
        let difference = one.narrow(2, 0, frames) - other.narrow(2, 0, frames);
        let nepers = difference.abs().mean(Kind::Double).double_value(&[]);
        20.0 * std::f64::consts::LOG10_E * nepers
    }

    /// Returns the spectral distance of two notes.
    pub fn distance(&self, one: &Note, other: &Note) -> f64 {
        let [one, other] = [one, other].map(|note| note.levelled(BEFORE_S));
        let samples = one.len().min(other.len()) as i64;
        let row = |sound: Vec<f32>| {
            Tensor::from_slice(&sound)
                .view([1, -1])
                .narrow(1, 0, samples)
        };
        tch::no_grad(|| {
            self.spectral
                .between(&row(one), &row(other))
                .double_value(&[])
        })
    }

    /// Returns the spectral centroid of the sustained part, Hz.
    pub fn centroid_hz(&self, note: &Note) -> f64 {
        let spectrum = self.spectrum(note.sustained(), &self.windows[0]);
        let bins = spectrum.len();
        let weighted = spectrum.iter().enumerate();
        let weighted: f64 = weighted
            .map(|(bin, power)| self.hz(bin, bins) * power)
            .sum();
        weighted / spectrum.iter().sum::<f64>().max(1e-20)
    }

    /// Returns the power between the partials relative to all, dB.
    pub fn noise_db(&self, note: &Note) -> f64 {
        let spectrum = self.spectrum(note.sustained(), &self.windows[0]);
        let bins = spectrum.len();
        let pitch_hz = 440.0 * ((f64::from(note.measures.pitch) - 69.0) / 12.0).exp2();
        let is_between = |bin: usize| {
            let partial = self.hz(bin, bins) / pitch_hz;
            (0.3..0.7).contains(&partial.fract()) && partial > 1.0
        };
        let below = (0..bins).filter(|bin| self.hz(*bin, bins) <= NOISE_HZ);
        let between: f64 = below
            .filter(|bin| is_between(*bin))
            .map(|bin| spectrum[bin])
            .sum();
        10.0 * (between.max(1e-12) / 0.4 / spectrum.iter().sum::<f64>().max(1e-12)).log10()
    }
}
