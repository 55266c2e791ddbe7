//! Multi-scale spectral distance (Engel et al., ICLR 2020): compares spectra at several
//! resolutions.

use tch::{Device, Kind, Tensor};

/// Lengths of the Fourier transforms, samples; the hop is a quarter of the length. The paper uses
/// 2048 to 64 at 16 kHz, 128 to 4 ms. Windows shorter than the period of a low note resolve phases,
/// which are inaudible and which an oscillator bank cannot match, so these end at 11 ms.
const SCALES: [i64; 4] = [4096, 2048, 1024, 512];
/// Magnitude below which spectra count as silent: −80 dB of a full-scale spectral line.
const FLOOR: f64 = 1e-4;
/// Samples of sound whose spectra are computed at a time.
const REFERENCE_PIECE: usize = 1 << 19;

/// Multi-scale spectral distance on one device.
pub struct SpectralDistance {
    /// Window of each scale; a transform is as long as its window.
    windows: Vec<Tensor>,
    /// Mean magnitude at each scale that differences are relative to; `None` for that of the
    /// target.
    levels: Option<Vec<f64>>,
}

impl SpectralDistance {
    /// Prepares the scales of instruments.
    #[must_use]
    pub fn new(device: Device) -> Self {
        Self::with_scales(&SCALES, device)
    }

    /// Prepares transforms of these lengths, samples.
    #[must_use]
    pub fn with_scales(lengths: &[i64], device: Device) -> Self {
        let windows = lengths.iter().map(|&length| {
            let window = Tensor::hann_window(length, (Kind::Float, device));
            // A full-scale sine has magnitude 1 at every scale.
            let sum = window.sum(Kind::Float);
            window * 2.0 / sum
        });
        Self {
            windows: windows.collect(),
            levels: None,
        }
    }

    /// Takes differences relative to the mean magnitude of these sounds, not of the target: so the
    /// parts of a batch add up to the whole.
    #[must_use]
    pub fn relative_to(mut self, sounds: &[impl AsRef<[f32]>]) -> Self {
        let _no_grad = tch::no_grad_guard();
        let longest = self
            .windows
            .iter()
            .map(|window| window.numel())
            .max()
            .unwrap_or(0);
        // In pieces, since spectra need much more memory than the sound.
        let pieces = sounds
            .iter()
            .flat_map(|sound| sound.as_ref().chunks(REFERENCE_PIECE));
        let mut sums = vec![(0.0, 0); self.windows.len()];
        for piece in pieces.filter(|piece| piece.len() >= longest) {
            let piece = Tensor::from_slice(piece)
                .unsqueeze(0)
                .to_device(self.windows[0].device());
            for ((sum, count), spectrum) in sums.iter_mut().zip(self.spectra(&piece)) {
                *sum += spectrum.sum(Kind::Double).double_value(&[]);
                *count += spectrum.numel();
            }
        }
        // Nothing that is long enough says nothing.
        if sums.iter().all(|(_, count)| *count > 0) {
            self.levels = Some(
                sums.into_iter()
                    .map(|(sum, count)| (sum / count as f64).max(FLOOR))
                    .collect(),
            );
        }
        self
    }

    /// Returns the magnitudes of `[batch, samples]` at each scale, `[batch, bin, frame]`.
    #[must_use]
    pub fn spectra(&self, audio: &Tensor) -> Vec<Tensor> {
        self.windows
            .iter()
            .map(|window| {
                let length = window.size()[0];
                let spectrum = audio.stft(
                    length,
                    length / 4,
                    length,
                    Some(window),
                    false,
                    true,
                    true,
                    false,
                );
                let parts = spectrum.view_as_real().unbind(-1);
                // The floor keeps the gradient at zero finite.
                (parts[0].square() + parts[1].square() + 1e-14).sqrt()
            })
            .collect()
    }

    /// Returns the distance, a scalar: the mean over scales of `|a − b| / mean b + |ln a − ln b|`,
    /// or relative to what [`SpectralDistance::relative_to`] says.
    pub fn between(&self, sound: &Tensor, target: &Tensor) -> Tensor {
        let targets = tch::no_grad(|| self.spectra(target));
        let terms = self
            .spectra(sound)
            .into_iter()
            .zip(&targets)
            .enumerate()
            .map(|(scale, (sound, target))| {
                let difference = (&sound - target).abs().mean(Kind::Float);
                let linear = match &self.levels {
                    Some(levels) => difference / levels[scale],
                    None => difference / tch::no_grad(|| target.mean(Kind::Float).clamp_min(FLOOR)),
                };
                let logarithmic = ((sound + FLOOR).log() - (target + FLOOR).log())
                    .abs()
                    .mean(Kind::Float);
                linear + logarithmic
            });
        terms
            .reduce(|sum, term| sum + term)
            .expect("there are scales")
            / self.windows.len() as f64
    }
}
