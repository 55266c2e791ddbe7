//! Distance of the timbres of two collections of sounds, independent of the music.
//!
//! The Fréchet distance (Heusel et al., arXiv:1706.08500; for sound Kilgour et al.,
//! arXiv:1812.08466) of the means and deviations of logarithmic mel spectra in half a second.

use tch::{Device, Kind, Tensor};

use crate::loss::MelSpectrum;

/// Time that one embedding describes, seconds.
const EMBEDDED_S: f64 = 0.5;

/// Spectra of a collection of sounds, concatenated.
pub struct Timbres {
    spectrum: MelSpectrum,
    /// Embeddings of each sound, `[half second, value]`.
    embeddings: Vec<Tensor>,
    /// Logarithmic mel spectrum of less than half a second at the end, `[band, frame]`.
    rest: Option<Tensor>,
}

impl Timbres {
    /// Prepares an empty collection of sounds at a sample rate, Hz.
    #[must_use]
    pub fn new(sample_rate: f64) -> Self {
        Self {
            spectrum: MelSpectrum::new(sample_rate, Device::Cpu),
            embeddings: Vec::new(),
            rest: None,
        }
    }

    /// Adds a sound.
    pub fn add(&mut self, sound: &[f32]) {
        let mel = self
            .spectrum
            .logarithm(&Tensor::from_slice(sound).view([1, -1]))
            .squeeze_dim(0);
        let mel = Tensor::cat(
            &self
                .rest
                .take()
                .into_iter()
                .chain([mel])
                .collect::<Vec<_>>(),
            1,
        );
        let rest = mel.size()[1] % frames(self.spectrum.frame_rate());
        if rest < mel.size()[1] {
            self.embeddings
                .push(embeddings(&mel, self.spectrum.frame_rate()));
        }
        // A copy, since a view would keep the whole.
        self.rest = Some(mel.narrow(1, mel.size()[1] - rest, rest).copy());
    }

    /// Returns the distance from other sounds; `None` if either last less than a second.
    #[must_use]
    pub fn distance(&self, other: &Self) -> Option<f64> {
        let rows = |timbres: &Self| {
            let any = !timbres.embeddings.is_empty();
            any.then(|| Tensor::cat(&timbres.embeddings, 0))
                .filter(|rows| rows.size()[0] > 1)
        };
        Some(frechet(&rows(self)?, &rows(other)?))
    }
}

/// Returns the number of frames of an embedding.
fn frames(frame_rate: f64) -> i64 {
    (EMBEDDED_S * frame_rate).round() as i64
}

/// Returns means and deviations of the bands of `[band, frame]` in each half second,
/// `[half second, value]`.
pub(crate) fn embeddings(mel: &Tensor, frame_rate: f64) -> Tensor {
    let frames = frames(frame_rate);
    let (bands, count) = (mel.size()[0], mel.size()[1] / frames);
    let cut = mel
        .narrow(1, 0, count * frames)
        .reshape([bands, count, frames]);
    let both = [
        cut.mean_dim([2_i64].as_slice(), false, Kind::Float),
        cut.std_dim(2, false, false),
    ];
    Tensor::cat(&both, 0).transpose(0, 1).to_kind(Kind::Double)
}

/// Returns the Fréchet distance of the Gaussians with the means and covariances of `[row, value]`.
pub(crate) fn frechet(one: &Tensor, other: &Tensor) -> f64 {
    let [(mean, covariance), (other_mean, other_covariance)] = [one, other].map(|rows| {
        let mean = rows.mean_dim([0_i64].as_slice(), true, Kind::Double);
        let centred = rows - &mean;
        (
            mean,
            centred.transpose(0, 1).matmul(&centred) / (rows.size()[0] - 1).max(1) as f64,
        )
    });
    let root = |matrix: &Tensor| {
        let (values, vectors) = matrix.linalg_eigh("L");
        vectors
            .matmul(&values.clamp_min(0.0).sqrt().diag(0))
            .matmul(&vectors.transpose(0, 1))
    };
    let first = root(&covariance);
    let cross = root(&first.matmul(&other_covariance).matmul(&first));
    let means = (mean - other_mean).square().sum(Kind::Double);
    let spreads = covariance.trace() + other_covariance.trace() - cross.trace() * 2.0;
    (means + spreads).double_value(&[]).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_gaussians_is_that_of_the_formula() {
        // Deviations 1 and 2 at a distance of 3, in the first of two values.
        let normal = |mean: f64, deviation: f64| {
            let rows = Tensor::randn([20_000, 2], (Kind::Double, Device::Cpu));
            rows * Tensor::from_slice(&[deviation, 1.0]) + Tensor::from_slice(&[mean, 0.0])
        };
        tch::manual_seed(1);
        let distance = frechet(&normal(0.0, 1.0), &normal(3.0, 2.0));
        assert!((distance - 10.0).abs() < 0.3, "{distance}");
        let rows = normal(0.0, 1.0);
        assert!(frechet(&rows, &rows) < 1e-6);
    }

    #[test]
    fn half_seconds_go_on_from_sound_to_sound() {
        // Noise has no band at the limits of the arithmetic, where the alignment of memory shows.
        let mut random = ondes_engine::random::Lcg::new(3);
        let mut noise = |samples: usize| {
            (0..samples)
                .map(|_| random.next_signed() as f32)
                .collect::<Vec<f32>>()
        };
        let sounds = [noise(20_000), noise(3_000), noise(48_000)];
        let mut timbres = Timbres::new(16_000.0);
        sounds.iter().for_each(|sound| timbres.add(sound));
        let mel = |sound: &Vec<f32>| {
            timbres
                .spectrum
                .logarithm(&Tensor::from_slice(sound).view([1, -1]))
                .squeeze_dim(0)
        };
        let mels: Vec<Tensor> = sounds.iter().map(mel).collect();
        let whole = embeddings(&Tensor::cat(&mels, 1), timbres.spectrum.frame_rate());
        let difference = (Tensor::cat(&timbres.embeddings, 0) - whole)
            .abs()
            .max()
            .double_value(&[]);
        assert!(difference < 1e-3, "{difference}");
    }

    #[test]
    fn sounds_of_one_timbre_are_near() {
        let tone = |hz: f32, harmonics: i32| -> Vec<f32> {
            let phase = |n: i32| std::f32::consts::TAU * hz * n as f32 / 16_000.0;
            (0..48_000)
                .map(|n| {
                    (1..=harmonics)
                        .map(|k| 0.1 * (k as f32 * phase(n)).sin())
                        .sum()
                })
                .collect()
        };
        let timbres = |harmonics: i32, lowest: f32| {
            let mut timbres = Timbres::new(16_000.0);
            (0..6).for_each(|n| timbres.add(&tone(lowest * 1.1_f32.powi(n), harmonics)));
            timbres
        };
        let (one, same, other) = (timbres(8, 200.0), timbres(8, 205.0), timbres(1, 200.0));
        let distance = |a: &Timbres, b: &Timbres| a.distance(b).expect("they are long enough");
        assert!(distance(&one, &one) < 1e-3);
        assert!(distance(&one, &same) < 0.3 * distance(&one, &other));
        let mut short = Timbres::new(16_000.0);
        assert!(short.distance(&one).is_none());
        short.add(&[0.0; 1_000]);
        assert!(short.distance(&one).is_none());
    }
}
