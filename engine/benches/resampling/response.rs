//! Response of a resampler to sines: gain, phase, and everything else that comes out (images,
//! aliases).

use std::f64::consts::TAU;

use ondes_engine::Kernels;
use ondes_engine::dsp::resample::StreamResampler;

/// Output samples that are examined.
const EXAMINED: usize = 4_096;

/// Output for a sine of amplitude 1.
pub struct SineResponse {
    /// Amplitude of the same sine in the output, in dB.
    pub gain_db: f64,
    /// Its phase after the latency is removed, in degrees.
    pub phase_degrees: f64,
    /// Everything else in the output, in dB relative to the input.
    pub rest_db: f64,
}

/// Converts a sine and separates it from what else comes out. Above the output's Nyquist frequency
/// all of it is alias.
pub fn sine_response(rate_in: u32, rate_out: u32, hz: f64) -> SineResponse {
    let mut resampler = StreamResampler::low_latency(rate_in, rate_out, Kernels::detect())
        .expect("supported rates");
    let settled = resampler.latency() + resampler.tail();
    let length = (settled + EXAMINED) * rate_in as usize / rate_out as usize + 1_000;
    let input: Vec<f32> = (0..length)
        .map(|n| (TAU * hz * n as f64 / f64::from(rate_in)).sin() as f32)
        .collect();
    let mut output = Vec::new();
    resampler.push(&input, |samples| output.extend_from_slice(samples));
    let phase = |n: usize| TAU * hz * (n as f64 - resampler.latency() as f64) / f64::from(rate_out);
    let samples: Vec<(f64, f64)> = (settled..settled + EXAMINED)
        .map(|n| (phase(n), f64::from(output[n])))
        .collect();
    let power = |rest: &dyn Fn(f64, f64) -> f64| {
        let sum: f64 = samples
            .iter()
            .map(|&(phase, sample)| rest(phase, sample).powi(2))
            .sum();
        // Relative to the power of a sine, 1/2.
        10.0 * (2.0 * sum / EXAMINED as f64).max(1e-30).log10()
    };
    if 2.0 * hz >= f64::from(rate_out) {
        let rest_db = power(&|_, sample| sample);
        return SineResponse {
            gain_db: f64::NEG_INFINITY,
            phase_degrees: 0.0,
            rest_db,
        };
    }
    // Least squares over sine and cosine.
    let mut sums = [0.0; 5];
    for &(phase, sample) in &samples {
        let (sin, cos) = phase.sin_cos();
        for (sum, term) in
            sums.iter_mut()
                .zip([sin * sin, sin * cos, cos * cos, sin * sample, cos * sample])
        {
            *sum += term;
        }
    }
    let [ss, sc, cc, s, c] = sums;
    let determinant = ss * cc - sc * sc;
    let (sine, cosine) = (
        (s * cc - c * sc) / determinant,
        (c * ss - s * sc) / determinant,
    );
    SineResponse {
        gain_db: 20.0 * sine.hypot(cosine).log10(),
        phase_degrees: cosine.atan2(sine).to_degrees(),
        rest_db: power(&|phase, sample| sample - sine * phase.sin() - cosine * phase.cos()),
    }
}

/// Worst values over sines of all frequencies.
pub struct Response {
    /// Largest deviation of the gain from 0 dB up to the given edge.
    pub ripple_db: f64,
    /// Largest deviation of the phase there.
    pub phase_degrees: f64,
    /// Largest image or alias of any sine below the input's Nyquist frequency.
    pub rejection_db: f64,
}

/// Measures sines `step_hz` apart.
pub fn response(rate_in: u32, rate_out: u32, edge_hz: f64, step_hz: f64) -> Response {
    let mut worst = Response {
        ripple_db: 0.0,
        phase_degrees: 0.0,
        rejection_db: f64::NEG_INFINITY,
    };
    // Off the grid, so that no image coincides with the sine.
    let mut hz = 0.37 * step_hz;
    // Within 0.5 % of Nyquist a sine and its image are too close to be told apart.
    while hz < 0.4975 * f64::from(rate_in) {
        let near_output_nyquist =
            (hz - 0.5 * f64::from(rate_out)).abs() < 0.0025 * f64::from(rate_out);
        if !near_output_nyquist {
            let found = sine_response(rate_in, rate_out, hz);
            worst.rejection_db = worst.rejection_db.max(found.rest_db);
            if hz <= edge_hz {
                worst.ripple_db = worst.ripple_db.max(found.gain_db.abs());
                worst.phase_degrees = worst.phase_degrees.max(found.phase_degrees.abs());
            }
        }
        hz += step_hz;
    }
    worst
}
