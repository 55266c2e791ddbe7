//! Zero-phase filters for noise, given by magnitudes at a few bands.

/// Sizes of noise filtering frame by frame (Engel et al., ICLR 2020, section 3.3: windowed
/// frequency sampling).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseFilter {
    /// Magnitudes per frame, from 0 Hz to half the sample rate.
    pub bands: usize,
    /// Samples per frame.
    pub hop: usize,
}

impl NoiseFilter {
    /// Returns the length of the centred impulse response in samples, `2 (bands − 1)`; the noise
    /// lags by half of it.
    #[must_use]
    pub fn taps(self) -> usize {
        2 * (self.bands - 1)
    }

    /// Returns the FFT length that fits a frame and its response: even, with no factors other than
    /// 2, 3 and 5.
    #[must_use]
    pub fn fft(self) -> usize {
        let without = |mut length: usize, factor: usize| {
            while length.is_multiple_of(factor) {
                length /= factor;
            }
            length
        };
        let mut length = (self.hop + self.taps()).next_multiple_of(2);
        while [2, 3, 5].into_iter().fold(length, without) > 1 {
            length += 2;
        }
        length
    }

    /// Returns the matrix `[bin][band]` from magnitudes to the real spectrum of the filter at
    /// `fft / 2 + 1` bins: the inverse transform of the bands under a Hann window, transformed at
    /// the length [`NoiseFilter::fft`].
    #[must_use]
    pub fn response(self) -> Vec<f32> {
        let (taps, fft, half) = (self.taps(), self.fft(), self.taps() / 2);
        // All angles are multiples of a fraction of a turn, so two tables contain all cosines.
        let table = |length: usize| -> Vec<f64> {
            (0..length)
                .map(|n| (std::f64::consts::TAU * n as f64 / length as f64).cos())
                .collect()
        };
        let (band_cosines, bin_cosines) = (table(taps), table(fft));
        let mut matrix = Vec::with_capacity((fft / 2 + 1) * self.bands);
        for bin in 0..=fft / 2 {
            for band in 0..self.bands {
                let edge = band == 0 || band == self.bands - 1;
                let weight = if edge { 1.0 } else { 2.0 } / taps as f64;
                // The response is symmetric about its middle.
                let term = |n: usize| {
                    let window = 0.5 + 0.5 * band_cosines[n % taps];
                    window * band_cosines[band * n % taps] * bin_cosines[bin * n % fft]
                };
                let sum = term(0) + 2.0 * (1..half).map(term).sum::<f64>();
                matrix.push((weight * sum) as f32);
            }
        }
        matrix
    }
}

impl NoiseFilter {
    /// Returns the taps of the impulse response within one frame: delays in samples, in ascending
    /// order, and the matrix `[tap][band]` from magnitudes to taps. The response is cut to the
    /// frame if it is longer, and its first half wraps to the end of the frame (RAVE's
    /// `amp_to_impulse_response`; acids-ircam/RAVE, `rave/core.py`). Taps where the window is 0 are
    /// left out.
    #[must_use]
    pub fn taps_in_frame(self) -> (Vec<usize>, Vec<f32>) {
        let (length, hop) = (self.taps(), self.hop);
        let cosine = |n: usize| (std::f64::consts::TAU * (n % length) as f64 / length as f64).cos();
        let value = |from_middle: usize, band: usize| {
            let edge = band == 0 || band == self.bands - 1;
            let weight = if edge { 1.0 } else { 2.0 } / length as f64;
            (weight * (0.5 + 0.5 * cosine(from_middle)) * cosine(band * from_middle)) as f32
        };
        // The window is 0 at the first sample of the response. It is symmetric about its middle.
        let mut taps: Vec<(usize, usize)> = (1..length.min(hop))
            .map(|n| {
                (
                    (n + hop * length - length / 2) % hop,
                    n.abs_diff(length / 2),
                )
            })
            .collect();
        taps.sort_unstable();
        let matrix = taps.iter().flat_map(|&(_, from_middle)| {
            (0..self.bands).map(move |band| value(from_middle, band))
        });
        (
            taps.iter().map(|&(delay, _)| delay).collect(),
            matrix.collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_magnitudes_have_unit_gain() {
        let filter = NoiseFilter {
            bands: 65,
            hop: 192,
        };
        assert_eq!((filter.taps(), filter.fft()), (128, 320));
        for (bin, row) in filter.response().chunks_exact(65).enumerate() {
            let gain: f32 = row.iter().sum();
            assert!((gain - 1.0).abs() < 1e-6, "bin {bin}: {gain}");
        }
    }

    #[test]
    fn taps_in_a_frame_determine_the_spectrum() {
        let filter = NoiseFilter { bands: 5, hop: 16 };
        let ((delays, matrix), fft) = (filter.taps_in_frame(), filter.fft());
        assert_eq!(delays, [0, 1, 2, 3, 13, 14, 15]);
        for (bin, row) in filter.response().chunks_exact(5).enumerate() {
            for (band, &gain) in row.iter().enumerate() {
                let term = |(&delay, row): (&usize, &[f32])| {
                    // The last ones lie before the middle.
                    let at = if delay > 8 { delay + fft - 16 } else { delay };
                    f64::from(row[band])
                        * (std::f64::consts::TAU * (bin * at) as f64 / fft as f64).cos()
                };
                let sum: f64 = delays.iter().zip(matrix.chunks_exact(5)).map(term).sum();
                assert!(
                    (sum - f64::from(gain)).abs() < 1e-6,
                    "bin {bin}, band {band}: {sum} against {gain}"
                );
            }
        }
    }

    #[test]
    fn longer_responses_are_cut_to_the_frame() {
        // 62 samples, of which the first 8 remain; the middle would be at 31.
        let (delays, matrix) = NoiseFilter { bands: 32, hop: 8 }.taps_in_frame();
        assert_eq!(delays, [0, 2, 3, 4, 5, 6, 7]);
        assert_eq!(matrix.len(), 7 * 32);
        let loudest = |row: &[f32]| {
            row.iter()
                .fold(0.0_f32, |most, value| most.max(value.abs()))
        };
        // Delay 0 is the last of the eight, where the window is widest.
        assert!(
            matrix[32..]
                .chunks_exact(32)
                .all(|row| loudest(row) < loudest(&matrix[..32]))
        );
    }

    #[test]
    fn a_single_band_passes_its_own_frequency_best() {
        let filter = NoiseFilter {
            bands: 65,
            hop: 192,
        };
        let column: Vec<f32> = filter
            .response()
            .chunks_exact(65)
            .map(|row| row[16])
            .collect();
        let loudest = (0..column.len()).max_by(|&a, &b| column[a].total_cmp(&column[b]));
        // Bands are as far apart as the bins of a transform of length 128.
        assert_eq!(loudest, Some(16 * 320 / 128));
        assert!(
            column[50..]
                .iter()
                .chain(&column[..30])
                .all(|gain| gain.abs() < 0.02)
        );
    }
}
