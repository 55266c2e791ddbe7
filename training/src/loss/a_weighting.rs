//! A-weighting (IEC 61672-1), applied to spectra.

use tch::{Device, Kind, Tensor};

/// Returns the power gain of A-weighting at a frequency, Hz; 1 at 1 kHz.
pub fn power_gain(frequency_hz: f64) -> f64 {
    let response = |f: f64| {
        let square = f * f;
        let pole = |corner: f64| square + corner * corner;
        12_194.217_f64.powi(2) * square * square
            / (pole(20.598_997) * (pole(107.652_65) * pole(737.862_23)).sqrt() * pole(12_194.217))
    };
    (response(frequency_hz) / response(1_000.0)).powi(2)
}

/// Returns the power gains of the bins of a transform of `length` samples.
pub fn bin_gains(length: i64, sample_rate: f64, device: Device) -> Tensor {
    let gains =
        (0..=length / 2).map(|bin| power_gain(bin as f64 * sample_rate / length as f64) as f32);
    Tensor::from_slice(&gains.collect::<Vec<_>>()).to_device(device)
}

/// Power of A-weighted sounds.
pub struct AWeighting {
    sample_rate: f64,
}

impl AWeighting {
    /// Prepares it for a sample rate, Hz.
    pub fn new(sample_rate: f64) -> Self {
        Self { sample_rate }
    }

    /// Returns the mean square of a weighted sound, computed from its spectrum by Parseval's
    /// theorem.
    pub fn mean_square(&self, sound: &Tensor) -> Tensor {
        let samples = sound.size()[1];
        let power = sound.fft_rfft(None, -1, "ortho").view_as_real().square();
        let power = power.sum_dim_intlist([-1_i64].as_slice(), false, Kind::Float);
        let gains = bin_gains(samples, self.sample_rate, sound.device());
        // Bins other than the first and the Nyquist frequency stand for two.
        let _ = gains.narrow(0, 1, (samples - 1) / 2).g_mul_scalar_(2.0);
        (power * gains)
            .sum_dim_intlist([-1_i64].as_slice(), false, Kind::Float)
            .mean(Kind::Float)
            / samples as f64
    }

    /// Returns the energy of a weighted sound.
    pub fn energy(&self, sound: &[f32]) -> f64 {
        const PART: usize = 1 << 16;
        let parts = sound.chunks(PART).filter(|part| part.len() > 1);
        parts
            .map(|part| {
                let row = Tensor::from_slice(part).view([1, -1]);
                tch::no_grad(|| self.mean_square(&row)).double_value(&[]) * part.len() as f64
            })
            .sum()
    }
}
