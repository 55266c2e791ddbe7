//! Oversampling by 2, 4 and 8, for nonlinear models whose harmonics would alias.
//!
//! Cascaded linear-phase half-band filters: every other tap is 0, so half of the samples are only
//! delayed (P. P. Vaidyanathan, "Multirate Systems and Filter Banks", 1993, section 4.6.2).

use std::f64::consts::PI;

use ondes_kernels::Kernels;

use super::bessel::i0;

/// Non-zero taps on each side of the middle, for each filter from the lowest rate up.
///
/// The first passes 20 kHz at 48 kHz and attenuates 28 kHz by 100 dB; the others have their
/// transitions from 20 kHz to 76 kHz and to 172 kHz (J. F. Kaiser's estimate: 92 / (2.285 · width)
/// taps).
const SIDES: [usize; 3] = [20, 6, 5];
/// Samples at its lower rate by which each filter is later than it must be. Up and down, it delays
/// by an odd number of them; with these it is a whole number at the lowest rate.
const EXTRA_DELAYS: [usize; 3] = [0, 1, 3];
/// Factors, each with one stage more than the one before.
const FACTORS: [usize; 3] = [2, 4, 8];
/// Shape of the Kaiser window for ripples of −100 dB.
const BETA: f64 = 0.1102 * (100.0 - 8.7);

/// Converts one channel to 2, 4 or 8 times its rate and back. Only [`Oversampler::new`] allocates.
///
/// # Examples
/// ```
/// use ondes_engine::Kernels;
/// use ondes_engine::dsp::oversample::Oversampler;
///
/// let mut oversampler = Oversampler::new(2, 64, Kernels::detect());
/// let (mut block, mut high) = ([0.5; 64], [0.0; 128]);
/// oversampler.up(&block, &mut high);
/// high.iter_mut().for_each(|sample| *sample = (3.0 * *sample).tanh());
/// oversampler.down(&high, &mut block);
/// assert_eq!(oversampler.latency_samples(), 39);
/// ```
pub struct Oversampler {
    /// Stages, from the lowest rate up.
    stages: Vec<HalfBandStage>,
    latency: usize,
}

impl Oversampler {
    /// Creates an oversampler by `factor` 2, 4 or 8 for blocks of at most `max_block` samples at the
    /// lower rate.
    ///
    /// # Panics
    /// If `factor` is none of these.
    #[must_use]
    pub fn new(factor: usize, max_block: usize, kernels: Kernels) -> Self {
        let last = FACTORS.iter().position(|&one| one == factor);
        let last = last.expect("the factor must be 2, 4 or 8");
        let stages = (0..=last).map(|index| {
            let (sides, extra) = (SIDES[index], EXTRA_DELAYS[index]);
            HalfBandStage::new(sides, extra, max_block << index, kernels)
        });
        let delay = |index: usize| (2 * SIDES[index] - 1 + EXTRA_DELAYS[index]) >> index;
        Self {
            stages: stages.collect(),
            latency: (0..=last).map(delay).sum(),
        }
    }

    /// Returns the latency of the way up and down, in samples at the lower rate.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.latency
    }

    /// Writes samples at the higher rate to `high`.
    ///
    /// # Panics
    /// If the lengths do not match, or `low` is longer than a block.
    pub fn up(&mut self, low: &[f32], high: &mut [f32]) {
        up(&mut self.stages, low, high);
    }

    /// Writes samples at the lower rate to `low`.
    ///
    /// # Panics
    /// If the lengths do not match, or `low` is longer than a block.
    pub fn down(&mut self, high: &[f32], low: &mut [f32]) {
        down(&mut self.stages, high, low);
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        for stage in &mut self.stages {
            for line in [&mut stage.upwards, &mut stage.even, &mut stage.odd] {
                line.samples.fill(0.0);
            }
        }
    }
}

fn up(stages: &mut [HalfBandStage], low: &[f32], high: &mut [f32]) {
    let Some((first, others)) = stages.split_first_mut() else {
        return high.copy_from_slice(low);
    };
    let mut between = std::mem::take(&mut first.between);
    let doubled = &mut between[..2 * low.len()];
    first.up(low, doubled);
    up(others, doubled, high);
    first.between = between;
}

fn down(stages: &mut [HalfBandStage], high: &[f32], low: &mut [f32]) {
    let Some((first, others)) = stages.split_first_mut() else {
        return low.copy_from_slice(high);
    };
    let mut between = std::mem::take(&mut first.between);
    let doubled = &mut between[..2 * low.len()];
    down(others, high, doubled);
    first.down(doubled, low);
    first.between = between;
}

/// Half-band filter in both directions.
struct HalfBandStage {
    kernels: Kernels,
    /// Non-zero taps except for the middle one, which is 1/2.
    taps: Vec<f32>,
    sides: usize,
    /// Additional delay on the way down, in samples at the lower rate.
    extra_delay: usize,
    /// Samples at the lower rate on the way up, and even and odd samples on the way down.
    upwards: DelayLine,
    even: DelayLine,
    odd: DelayLine,
    /// Filtered samples on the way up.
    scratch: Vec<f32>,
    /// Samples at the higher rate, for the next stage.
    between: Vec<f32>,
}

impl HalfBandStage {
    /// Creates a filter; `extra_delay` is in samples at the lower rate.
    fn new(sides: usize, extra_delay: usize, max_block: usize, kernels: Kernels) -> Self {
        let middle = 2 * sides as i32 - 1;
        let tap = |k: i32| {
            let x = f64::from(k - middle);
            let window =
                i0(BETA * (1.0 - (x / f64::from(middle + 1)).powi(2)).max(0.0).sqrt()) / i0(BETA);
            (PI * x / 2.0).sin() / (PI * x) * window
        };
        let taps: Vec<f64> = (0..2 * sides as i32).map(|j| tap(2 * j)).collect();
        // Even and odd output samples must have equal gain.
        let scale = 0.5 / taps.iter().sum::<f64>();
        Self {
            kernels,
            taps: taps.into_iter().map(|tap| (scale * tap) as f32).collect(),
            sides,
            extra_delay,
            upwards: DelayLine::new(2 * sides, max_block),
            even: DelayLine::new(2 * sides + extra_delay, max_block),
            odd: DelayLine::new(2 * sides + extra_delay, max_block),
            scratch: vec![0.0; max_block],
            between: vec![0.0; 2 * max_block],
        }
    }

    fn up(&mut self, low: &[f32], high: &mut [f32]) {
        assert_eq!(
            high.len(),
            2 * low.len(),
            "the higher rate must have twice as many samples"
        );
        self.upwards.push(low.iter().copied());
        let even = &mut self.scratch[..low.len()];
        even.fill(0.0);
        for (delay, tap) in self.taps.iter().enumerate() {
            self.kernels
                .multiply_add(even, self.upwards.delayed(delay, low.len()), 2.0 * tap);
        }
        let odd = self.upwards.delayed(self.sides - 1, low.len());
        for (pair, (even, odd)) in high.chunks_exact_mut(2).zip(even.iter().zip(odd)) {
            pair.copy_from_slice(&[*even, *odd]);
        }
        self.upwards.advance(low.len());
    }

    fn down(&mut self, high: &[f32], low: &mut [f32]) {
        assert_eq!(
            high.len(),
            2 * low.len(),
            "the higher rate must have twice as many samples"
        );
        let length = low.len();
        self.even.push(high.iter().step_by(2).copied());
        self.odd.push(high.iter().skip(1).step_by(2).copied());
        low.fill(0.0);
        for (delay, tap) in self.taps.iter().enumerate() {
            self.kernels.multiply_add(
                low,
                self.even.delayed(delay + self.extra_delay, length),
                *tap,
            );
        }
        self.kernels.multiply_add(
            low,
            self.odd.delayed(self.sides + self.extra_delay, length),
            0.5,
        );
        self.even.advance(length);
        self.odd.advance(length);
    }
}

/// Current block, preceded by as many earlier samples as the longest delay.
struct DelayLine {
    max_delay: usize,
    samples: Vec<f32>,
}

impl DelayLine {
    fn new(max_delay: usize, block: usize) -> Self {
        Self {
            max_delay,
            samples: vec![0.0; max_delay + block],
        }
    }

    fn push(&mut self, samples: impl Iterator<Item = f32>) {
        self.samples[self.max_delay..]
            .iter_mut()
            .zip(samples)
            .for_each(|(slot, sample)| *slot = sample);
    }

    /// Returns the current block, delayed by `delay` samples.
    fn delayed(&self, delay: usize, length: usize) -> &[f32] {
        &self.samples[self.max_delay - delay..][..length]
    }

    /// Moves `length` samples to the past.
    fn advance(&mut self, length: usize) {
        self.samples.copy_within(length..length + self.max_delay, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    const RATE: f64 = 48_000.0;
    const FRAMES: usize = 9_600;

    fn sine(hz: f64, rate: f64, frames: usize, delay: f64) -> Vec<f32> {
        (0..frames)
            .map(|n| (TAU * hz * (n as f64 - delay) / rate).sin() as f32)
            .collect()
    }

    fn raised(sampler: &mut Oversampler, factor: usize, low: &[f32], block: usize) -> Vec<f32> {
        let mut high = vec![0.0; factor * low.len()];
        for (low, high) in low.chunks(block).zip(high.chunks_mut(factor * block)) {
            sampler.up(low, high);
        }
        high
    }

    fn lowered(sampler: &mut Oversampler, factor: usize, high: &[f32], block: usize) -> Vec<f32> {
        let mut low = vec![0.0; high.len() / factor];
        for (low, high) in low.chunks_mut(block).zip(high.chunks(factor * block)) {
            sampler.down(high, low);
        }
        low
    }

    fn power_db(sound: &[f32]) -> f64 {
        10.0 * (sound.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / sound.len() as f64)
            .max(1e-30)
            .log10()
    }

    #[test]
    fn latency_is_exact() {
        for factor in FACTORS {
            let mut sampler = Oversampler::new(factor, 64, Kernels::detect());
            let delay = sampler.latency_samples() as f64;
            for hz in [50.0, 5_000.0, 12_000.0, 19_900.0] {
                sampler.reset();
                let high = raised(&mut sampler, factor, &sine(hz, RATE, FRAMES, 0.0), 64);
                let low = lowered(&mut sampler, factor, &high, 64);
                let expected = sine(hz, RATE, FRAMES, delay);
                let error: Vec<f32> = low
                    .iter()
                    .zip(&expected)
                    .skip(200)
                    .map(|(low, sine)| low - sine)
                    .collect();
                assert!(
                    power_db(&error) < -85.0,
                    "{hz} Hz, {factor} times: {} dB",
                    power_db(&error)
                );
            }
        }
    }

    #[test]
    fn images_and_aliases_are_rejected() {
        for factor in FACTORS {
            let rate = factor as f64 * RATE;
            let mut sampler = Oversampler::new(factor, 64, Kernels::detect());
            let high = raised(&mut sampler, factor, &sine(15_000.0, RATE, FRAMES, 0.0), 64);
            // Removes the sine and cosine of the tone; the rest must be silent.
            let settled = &high[2_000..2_000 + 4_800 * factor];
            let part = |wave: fn(f64) -> f64| {
                let term =
                    |(n, x): (usize, &f32)| f64::from(*x) * wave(TAU * 15_000.0 * n as f64 / rate);
                2.0 * settled.iter().enumerate().map(term).sum::<f64>() / settled.len() as f64
            };
            let (sin, cos) = (part(f64::sin), part(f64::cos));
            let residual: Vec<f32> = settled
                .iter()
                .enumerate()
                .map(|(n, x)| {
                    let phase = TAU * 15_000.0 * n as f64 / rate;
                    (f64::from(*x) - sin * phase.sin() - cos * phase.cos()) as f32
                })
                .collect();
            assert!(power_db(&residual) < -90.0, "{} dB", power_db(&residual));
            for hz in [29_000.0, 40_000.0, 66_000.0, 81_000.0, 95_000.0, 175_000.0]
                .into_iter()
                .filter(|hz| *hz < rate / 2.0)
            {
                sampler.reset();
                let low = lowered(
                    &mut sampler,
                    factor,
                    &sine(hz, rate, factor * FRAMES, 0.0),
                    64,
                );
                assert!(
                    power_db(&low[200..]) < -90.0,
                    "{hz} Hz, {factor} times: {} dB",
                    power_db(&low[200..])
                );
            }
        }
    }

    #[test]
    fn output_does_not_depend_on_block_length() {
        for factor in FACTORS {
            let play = |block| {
                let mut sampler = Oversampler::new(factor, 512, Kernels::detect());
                let high = raised(&mut sampler, factor, &sine(777.0, RATE, 2_000, 0.0), block);
                lowered(&mut sampler, factor, &high, block)
            };
            for block in [1, 7, 64] {
                assert_eq!(play(block), play(512), "blocks of {block}");
            }
        }
    }
}
