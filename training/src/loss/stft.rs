//! Multi-resolution STFT (Yamamoto, Song & Kim, "Parallel WaveGAN", ICASSP 2020): spectral
//! convergence and log magnitude at three resolutions, on the wave or on bands (Yang et al.,
//! "Multi-band MelGAN", SLT 2021).

use tch::{Device, Kind, Tensor};

use super::power_spectrum::power_spectrum;

/// Transform, hop and window, samples.
const RESOLUTIONS: [(i64, i64, i64); 3] = [(1024, 120, 600), (2048, 240, 1200), (512, 50, 240)];
/// The same on bands, whose rate is a quarter.
const BAND_RESOLUTIONS: [(i64, i64, i64); 3] = [(384, 30, 150), (683, 60, 300), (171, 10, 60)];
/// Bands of equal width.
const BANDS: i64 = 4;
/// Power added to spectra, so that logarithm and gradient of silence are finite.
const FLOOR: f64 = 1e-7;

/// Multi-resolution STFT distance on one device.
pub struct MultiResolutionStft {
    windows: Vec<Tensor>,
    band_windows: Vec<Tensor>,
}

impl MultiResolutionStft {
    /// Prepares the windows.
    pub fn new(device: Device) -> Self {
        let windows = |resolutions: [(i64, i64, i64); 3]| {
            resolutions
                .map(|(_, _, window)| Tensor::hann_window(window, (Kind::Float, device)))
                .into()
        };
        Self {
            windows: windows(RESOLUTIONS),
            band_windows: windows(BAND_RESOLUTIONS),
        }
    }

    /// Returns the distance of `[batch, samples]`: the mean over resolutions and rows of
    /// `‖b − a‖ / ‖b‖ + |ln b − ln a|`.
    pub fn between(&self, sound: &Tensor, target: &Tensor) -> Tensor {
        distance(sound, target, &RESOLUTIONS, &self.windows)
    }

    /// Returns the distance of four bands of equal width.
    pub fn between_bands(&self, sound: &Tensor, target: &Tensor) -> Tensor {
        distance(
            &bands(sound),
            &bands(target),
            &BAND_RESOLUTIONS,
            &self.band_windows,
        )
    }
}

fn distance(
    sound: &Tensor,
    target: &Tensor,
    resolutions: &[(i64, i64, i64)],
    windows: &[Tensor],
) -> Tensor {
    let terms = resolutions
        .iter()
        .zip(windows)
        .map(|(&(length, hop, _), window)| {
            let magnitudes =
                |sound: &Tensor| (power_spectrum(sound, length, hop, window) + FLOOR).sqrt();
            let target = tch::no_grad(|| magnitudes(target));
            let sound = magnitudes(sound);
            // Of each row, so that the parts of a batch add up to the whole.
            let norm = |x: &Tensor| x.norm_scalaropt_dim(2.0, [1_i64, 2].as_slice(), false);
            let convergence = (norm(&(&target - &sound)) / norm(&target)).mean(Kind::Float);
            convergence + (target.log() - sound.log()).abs().mean(Kind::Float)
        });
    terms
        .reduce(|sum, term| sum + term)
        .expect("there are resolutions")
        / resolutions.len() as f64
}

/// Splits `[batch, samples]` into bands of equal width at a quarter of the rate,
/// `[batch · bands, samples / bands]`.
fn bands(sound: &Tensor) -> Tensor {
    let samples = sound.size()[1] / (2 * BANDS) * (2 * BANDS);
    let spectrum = sound.narrow(1, 0, samples).fft_rfft(None, -1, "backward");
    let bins = samples / 2 / BANDS;
    let parts = (0..BANDS).map(|band| {
        let part =
            spectrum
                .narrow(1, band * bins, bins + 1)
                .fft_irfft(samples / BANDS, -1, "backward");
        part / BANDS as f64
    });
    Tensor::cat(&parts.collect::<Vec<_>>(), 0)
}
