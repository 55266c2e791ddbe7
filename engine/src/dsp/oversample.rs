//! Twice and four times as many samples, and back, for what makes overtones that would fold.
//!
//! Half-band filters of linear phase in a row: every other tap of one is 0, so that half of all samples only wait (P. P.
//! Vaidyanathan, "Multirate Systems and Filter Banks", 1993, section 4.6.2).

use std::f64::consts::PI;

use ondes_kernels::Kernels;

/// Taps on each side of the middle that are not 0, of the first filter and of the second.
///
/// The first passes up to 20 kHz at 48 kHz and holds 28 kHz and more 100 dB down; the second has all the room between 20 kHz and
/// 76 kHz for its edge (J. F. Kaiser's estimate: 92 / (2.285 · width) taps).
const SIDES: [usize; 2] = [20, 6];
/// Shape of the Kaiser window that leaves ripples of −100 dB.
const BETA: f64 = 0.1102 * (100.0 - 8.7);

/// Takes one channel to 2 or 4 times its rate and back. Nothing after [`Oversampler::new`] allocates.
pub struct Oversampler {
    /// From the lowest rate up.
    stages: Vec<HalfBandStage>,
    latency: usize,
}

impl Oversampler {
    /// For 2 or 4 times the rate, and up to `longest` samples at a time at the lower one.
    ///
    /// # Panics
    /// When `factor` is another one.
    #[must_use]
    pub fn new(factor: usize, longest: usize, kernels: Kernels) -> Self {
        assert!(factor == 2 || factor == 4, "2 or 4 times as many samples");
        let stage = |place: usize| HalfBandStage::new(SIDES[place], place, longest << place, kernels);
        // Both ways together a filter delays by an odd number of samples at its lower rate. Where that is the upper rate of another
        // one, it has to be even: one more.
        let (stages, latency) = match factor {
            2 => (vec![stage(0)], 2 * SIDES[0] - 1),
            _ => (vec![stage(0), stage(1)], 2 * SIDES[0] - 1 + SIDES[1]),
        };
        Self { stages, latency }
    }

    /// Samples at the lower rate from what goes up to what comes down again.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.latency
    }

    /// Fills `high` with the next samples at the higher rate.
    ///
    /// # Panics
    /// When there are not as many as belong to `low`, or more than at most.
    pub fn up(&mut self, low: &[f32], high: &mut [f32]) {
        match &mut self.stages[..] {
            [one] => one.up(low, high),
            [first, second, ..] => {
                let mut between = std::mem::take(&mut first.between);
                first.up(low, &mut between[..2 * low.len()]);
                second.up(&between[..2 * low.len()], high);
                first.between = between;
            }
            [] => {}
        }
    }

    /// Fills `low` with the next samples at the lower rate.
    ///
    /// # Panics
    /// When there are not as many as belong to `high`, or more than at most.
    pub fn down(&mut self, high: &[f32], low: &mut [f32]) {
        match &mut self.stages[..] {
            [one] => one.down(high, low),
            [first, second, ..] => {
                let mut between = std::mem::take(&mut first.between);
                second.down(high, &mut between[..2 * low.len()]);
                first.down(&between[..2 * low.len()], low);
                first.between = between;
            }
            [] => {}
        }
    }

    /// Forgets all sound.
    pub fn reset(&mut self) {
        for stage in &mut self.stages {
            for line in [&mut stage.upwards, &mut stage.even, &mut stage.odd] {
                line.samples.fill(0.0);
            }
        }
    }
}

/// One filter, on both ways.
struct HalfBandStage {
    kernels: Kernels,
    /// Taps that are not 0, but for the middle, which is 1/2.
    taps: Vec<f32>,
    sides: usize,
    /// Low samples by which what comes down is later than it must be.
    more: usize,
    /// Low samples on the way up, and those of both kinds on the way down.
    upwards: DelayLine,
    even: DelayLine,
    odd: DelayLine,
    /// The summed ones on the way up.
    scratch: Vec<f32>,
    /// At the higher rate.
    between: Vec<f32>,
}

impl HalfBandStage {
    /// What comes down is `more` low samples later than it must be.
    fn new(sides: usize, more: usize, longest: usize, kernels: Kernels) -> Self {
        let middle = 2 * sides as i32 - 1;
        let tap = |k: i32| {
            let x = f64::from(k - middle);
            let window = bessel(BETA * (1.0 - (x / f64::from(middle + 1)).powi(2)).max(0.0).sqrt()) / bessel(BETA);
            (PI * x / 2.0).sin() / (PI * x) * window
        };
        let taps: Vec<f64> = (0..2 * sides as i32).map(|j| tap(2 * j)).collect();
        // Both kinds of samples are equally loud.
        let scale = 0.5 / taps.iter().sum::<f64>();
        Self {
            kernels,
            taps: taps.into_iter().map(|tap| (scale * tap) as f32).collect(),
            sides,
            more,
            upwards: DelayLine::new(2 * sides, longest),
            even: DelayLine::new(2 * sides + more, longest),
            odd: DelayLine::new(2 * sides + more, longest),
            scratch: vec![0.0; longest],
            between: vec![0.0; 2 * longest],
        }
    }

    fn up(&mut self, low: &[f32], high: &mut [f32]) {
        assert_eq!(high.len(), 2 * low.len(), "twice as many");
        self.upwards.take(low.iter().copied());
        let even = &mut self.scratch[..low.len()];
        even.fill(0.0);
        for (delay, tap) in self.taps.iter().enumerate() {
            self.kernels.multiply_add(even, self.upwards.delayed(delay, low.len()), 2.0 * tap);
        }
        let odd = self.upwards.delayed(self.sides - 1, low.len());
        for (pair, (even, odd)) in high.chunks_exact_mut(2).zip(even.iter().zip(odd)) {
            pair.copy_from_slice(&[*even, *odd]);
        }
        self.upwards.keep(low.len());
    }

    fn down(&mut self, high: &[f32], low: &mut [f32]) {
        assert_eq!(high.len(), 2 * low.len(), "twice as many");
        let length = low.len();
        self.even.take(high.iter().step_by(2).copied());
        self.odd.take(high.iter().skip(1).step_by(2).copied());
        low.fill(0.0);
        for (delay, tap) in self.taps.iter().enumerate() {
            self.kernels.multiply_add(low, self.even.delayed(delay + self.more, length), *tap);
        }
        self.kernels.multiply_add(low, self.odd.delayed(self.sides + self.more, length), 0.5);
        self.even.keep(length);
        self.odd.keep(length);
    }
}

/// Samples that come, behind as many earlier ones as may be asked for.
struct DelayLine {
    longest: usize,
    samples: Vec<f32>,
}

impl DelayLine {
    fn new(longest: usize, block: usize) -> Self {
        Self { longest, samples: vec![0.0; longest + block] }
    }

    fn take(&mut self, samples: impl Iterator<Item = f32>) {
        self.samples[self.longest..].iter_mut().zip(samples).for_each(|(slot, sample)| *slot = sample);
    }

    /// The samples that came, so much later.
    fn delayed(&self, delay: usize, length: usize) -> &[f32] {
        &self.samples[self.longest - delay..][..length]
    }

    /// So many are past now.
    fn keep(&mut self, length: usize) {
        self.samples.copy_within(length..length + self.longest, 0);
    }
}

/// The modified Bessel function of the first kind and order 0, by its series.
fn bessel(x: f64) -> f64 {
    let term = |term: &mut f64, n: u32| {
        *term *= (x / (2.0 * f64::from(n))).powi(2);
        Some(*term)
    };
    1.0 + (1..40).scan(1.0, term).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    const RATE: f64 = 48_000.0;
    const FRAMES: usize = 9_600;

    fn sine(hz: f64, rate: f64, frames: usize, delay: f64) -> Vec<f32> {
        (0..frames).map(|n| (TAU * hz * (n as f64 - delay) / rate).sin() as f32).collect()
    }

    fn up(sampler: &mut Oversampler, factor: usize, low: &[f32], block: usize) -> Vec<f32> {
        let mut high = vec![0.0; factor * low.len()];
        for (low, high) in low.chunks(block).zip(high.chunks_mut(factor * block)) {
            sampler.up(low, high);
        }
        high
    }

    fn down(sampler: &mut Oversampler, factor: usize, high: &[f32], block: usize) -> Vec<f32> {
        let mut low = vec![0.0; high.len() / factor];
        for (low, high) in low.chunks_mut(block).zip(high.chunks(factor * block)) {
            sampler.down(high, low);
        }
        low
    }

    fn power_db(sound: &[f32]) -> f64 {
        10.0 * (sound.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / sound.len() as f64).max(1e-30).log10()
    }

    #[test]
    fn what_goes_up_comes_down_so_much_later() {
        for factor in [2, 4] {
            let mut sampler = Oversampler::new(factor, 64, Kernels::detect());
            let delay = sampler.latency_samples() as f64;
            for hz in [50.0, 5_000.0, 12_000.0, 19_900.0] {
                sampler.reset();
                let high = up(&mut sampler, factor, &sine(hz, RATE, FRAMES, 0.0), 64);
                let low = down(&mut sampler, factor, &high, 64);
                let expected = sine(hz, RATE, FRAMES, delay);
                let error: Vec<f32> = low.iter().zip(&expected).skip(200).map(|(low, sine)| low - sine).collect();
                assert!(power_db(&error) < -85.0, "{hz} Hz, {factor} times: {} dB", power_db(&error));
            }
        }
    }

    #[test]
    fn no_images_and_no_aliases() {
        for factor in [2, 4] {
            let rate = factor as f64 * RATE;
            let mut sampler = Oversampler::new(factor, 64, Kernels::detect());
            let high = up(&mut sampler, factor, &sine(15_000.0, RATE, FRAMES, 0.0), 64);
            // Nothing but the tone: its own power is that of a sine and a cosine of that frequency in it.
            let settled = &high[2_000..2_000 + 4_800 * factor];
            let part = |wave: fn(f64) -> f64| {
                let term = |(n, x): (usize, &f32)| f64::from(*x) * wave(TAU * 15_000.0 * n as f64 / rate);
                2.0 * settled.iter().enumerate().map(term).sum::<f64>() / settled.len() as f64
            };
            let (sin, cos) = (part(f64::sin), part(f64::cos));
            let rest: Vec<f32> = settled
                .iter()
                .enumerate()
                .map(|(n, x)| {
                    let phase = TAU * 15_000.0 * n as f64 / rate;
                    (f64::from(*x) - sin * phase.sin() - cos * phase.cos()) as f32
                })
                .collect();
            assert!(power_db(&rest) < -90.0, "{} dB", power_db(&rest));
            for hz in [29_000.0, 40_000.0, 66_000.0, 81_000.0, 95_000.0].into_iter().filter(|hz| *hz < rate / 2.0) {
                sampler.reset();
                let low = down(&mut sampler, factor, &sine(hz, rate, factor * FRAMES, 0.0), 64);
                assert!(power_db(&low[200..]) < -90.0, "{hz} Hz, {factor} times: {} dB", power_db(&low[200..]));
            }
        }
    }

    #[test]
    fn blocks_do_not_matter() {
        for factor in [2, 4] {
            let play = |block| {
                let mut sampler = Oversampler::new(factor, 512, Kernels::detect());
                let high = up(&mut sampler, factor, &sine(777.0, RATE, 2_000, 0.0), block);
                down(&mut sampler, factor, &high, block)
            };
            for block in [1, 7, 64] {
                assert_eq!(play(block), play(512), "blocks of {block}");
            }
        }
    }
}
