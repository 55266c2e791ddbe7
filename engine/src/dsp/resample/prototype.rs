//! Low-pass filters that delay less than symmetrical ones: prototypes of the polyphase resampler.
//!
//! A symmetrical filter delays by half its length, and rejecting everything above the Nyquist
//! frequency by 90 dB takes 1.4 ms at 44.1 kHz. These filters are longer after their centre than
//! before. They are fitted by least squares to a pure delay in the pass band and to zero from the
//! lower Nyquist frequency on (as in T. W. Parks and C. S. Burrus, "Digital Filter Design", 1987,
//! chapter 3, for a complex response), so they are linear in phase up to the edge of the pass band,
//! to within half a degree, and disperse only above it.
//!
//! The impulse response is a sum of shifted Kaiser windows, which makes it a function of continuous
//! time that vanishes above a known frequency, so that it can be sampled at any phase.

use std::f64::consts::{PI, TAU};
use std::sync::LazyLock;

use crate::dsp::bessel::i0;

/// Windows per unit of time, and their width. Unit of time is a sample at the lower rate.
const DENSITY: f64 = 2.0;
const WIDTH: f64 = 3.0;
/// Lower Nyquist frequency in cycles per unit of time: start of the stop band.
const STOP: f64 = 0.5;
/// Weight of the pass band relative to the stop band.
const PASS_WEIGHT: f64 = 0.004;
/// Regularisation relative to the diagonal: keeps the gain between the bands low and rounding
/// errors harmless.
const RIDGE: f64 = 1e-9;
/// Frequencies of the fit per cycle and unit of the filter's length.
const GRID: f64 = 16.0;

/// Specification of a filter, for the lower of two sample rates.
struct Specification {
    /// Lowest rate in Hz for which it is used.
    from_hz: u32,
    /// Edge of the pass band in cycles per sample.
    pass: f64,
    /// Delay in samples: how far the filter reaches ahead of its centre.
    delay: u32,
    /// Length in samples.
    length: f64,
}

/// The pass band ends at 18.3 kHz at 44.1 kHz, at 18.5 kHz at 48 kHz, and at 22 kHz at 88.2 kHz.
/// Delays are 0.48, 0.29 and 0.08 ms. At the first length, 44.1 and 48 kHz need filters of 64
/// samples.
const SPECIFICATIONS: [Specification; 3] = [
    Specification {
        from_hz: 0,
        pass: 0.415,
        delay: 21,
        length: 58.5,
    },
    Specification {
        from_hz: 48_000,
        pass: 0.385,
        delay: 14,
        length: 46.0,
    },
    Specification {
        from_hz: 88_200,
        pass: 0.25,
        delay: 7,
        length: 22.0,
    },
];

static PROTOTYPES: [LazyLock<Prototype>; 3] = [
    LazyLock::new(|| Prototype::design(&SPECIFICATIONS[0])),
    LazyLock::new(|| Prototype::design(&SPECIFICATIONS[1])),
    LazyLock::new(|| Prototype::design(&SPECIFICATIONS[2])),
];

/// Impulse response in continuous time, in samples at the lower rate.
pub(super) struct Prototype {
    /// Reach ahead of the centre, in samples.
    pub delay: u32,
    /// Reach after the centre, in samples.
    pub ring: f64,
    /// Heights of the windows; the first one ends at `delay`.
    heights: Vec<f64>,
}

impl Prototype {
    /// Returns the filter for a lower rate in Hz. The first use of each designs it, which takes
    /// milliseconds.
    pub fn for_rate(lower_hz: u32) -> &'static Self {
        let index = SPECIFICATIONS
            .iter()
            .rposition(|specification| lower_hz >= specification.from_hz);
        &PROTOTYPES[index.unwrap_or_default()]
    }

    /// Returns the height of the impulse response for a sample that lies `ahead` of the centre.
    pub fn at(&self, ahead: f64) -> f64 {
        let since_start = f64::from(self.delay) - ahead;
        let first = ((since_start - WIDTH) * DENSITY).ceil().max(0.0) as usize;
        let last = (since_start * DENSITY).floor();
        let windows = first..((last + 1.0).max(0.0) as usize).min(self.heights.len());
        windows
            .map(|index| {
                self.heights[index] * window(since_start - 0.5 * WIDTH - index as f64 / DENSITY)
            })
            .sum()
    }

    fn design(specification: &Specification) -> Self {
        let &Specification {
            pass,
            delay,
            length,
            ..
        } = specification;
        let count = ((length - WIDTH) * DENSITY) as usize + 1;
        let first_centre = f64::from(delay) - 0.5 * WIDTH;
        // Toeplitz matrix of the normal equations by its first row, and the right side.
        let (mut row, mut right) = (vec![0.0; count], vec![0.0; count]);
        let frequencies = (0..=(DENSITY / 2.0 * GRID * length) as usize)
            .map(|point| point as f64 / (GRID * length));
        for frequency in frequencies.filter(|&frequency| frequency <= pass || frequency >= STOP) {
            let gain = window_spectrum(frequency);
            let weight = if frequency <= pass {
                PASS_WEIGHT * PASS_WEIGHT
            } else {
                1.0
            };
            for (index, (row, right)) in row.iter_mut().zip(&mut right).enumerate() {
                let shift = index as f64 / DENSITY;
                *row += weight * gain * gain * (TAU * frequency * shift).cos();
                if frequency <= pass {
                    *right += weight * gain * (TAU * frequency * (first_centre - shift)).cos();
                }
            }
        }
        row[0] *= 1.0 + RIDGE;
        solve_toeplitz(&row, &mut right);
        let ring = (count - 1) as f64 / DENSITY + WIDTH - f64::from(delay);
        Self {
            delay,
            ring,
            heights: right,
        }
    }
}

/// Shape of the windows: the main lobe of the spectrum ends where the images of the stop band's
/// start begin.
fn shape() -> f64 {
    PI * ((WIDTH * (DENSITY - STOP)).powi(2) - 1.0).sqrt()
}

/// Kaiser window at a distance from its centre.
fn window(distance: f64) -> f64 {
    i0(shape() * (1.0 - (2.0 * distance / WIDTH).powi(2)).max(0.0).sqrt()) / i0(shape())
}

/// Fourier transform of the window at a frequency in cycles per sample.
fn window_spectrum(frequency: f64) -> f64 {
    let square = shape().powi(2) - (PI * WIDTH * frequency).powi(2);
    let root = square.abs().sqrt().max(1e-9);
    WIDTH
        * if square > 0.0 {
            root.sinh()
        } else {
            root.sin()
        }
        / root
        / i0(shape())
}

/// Solves the equations of a symmetrical positive definite Toeplitz matrix by Cholesky's
/// factorisation.
fn solve_toeplitz(row: &[f64], right: &mut [f64]) {
    let count = row.len();
    let mut lower: Vec<Vec<f64>> = (0..count)
        .map(|i| (0..=i).map(|j| row[i - j]).collect())
        .collect();
    for i in 0..count {
        for j in 0..=i {
            let sum: f64 = lower[i][..j]
                .iter()
                .zip(&lower[j])
                .map(|(a, b)| a * b)
                .sum();
            let rest = lower[i][j] - sum;
            lower[i][j] = if i == j {
                rest.max(f64::MIN_POSITIVE).sqrt()
            } else {
                rest / lower[j][j]
            };
        }
        let sum: f64 = lower[i][..i].iter().zip(&*right).map(|(a, b)| a * b).sum();
        right[i] = (right[i] - sum) / lower[i][i];
    }
    for i in (0..count).rev() {
        let sum: f64 = (i + 1..count).map(|k| lower[k][i] * right[k]).sum();
        right[i] = (right[i] - sum) / lower[i][i];
    }
}
