//! Period about one instant.
//!
//! Samples one lag apart differ by r = ε x′ + γ x, where ε is the error of the lag in samples and γ
//! the growth of the sound. Least squares give both, without the bias of a parabola through the
//! NSDF at short periods or in a swell. The residual is noise and gives the variance of ε.

/// Stretches to try, as halvings of the window: 21 and 11 ms. At 6 Hz and ±60 cents they flatten
/// the crests by 1 and 0.25 cents, the whole window by 4.
const HALVINGS: [u32; 2] = [1, 2];
/// Least periods in a stretch: one to compare with the next.
const MIN_PERIODS: f32 = 2.0;
/// Samples of the window besides a stretch: the derivative needs two on each side, parity possibly
/// one.
const MARGIN: usize = 6;
/// Largest correction of the window's period; further away is another peak.
const MAX_CORRECTION_SEMITONES: f32 = 1.0;
/// Number of standard deviations by which a correction must exceed noise. More than one, since
/// noise may be more correlated than the smoothing makes it.
const DOUBT: f32 = 2.0;
/// Largest error of a lag, in samples, for which the linear model holds.
const MAX_SHIFT: f32 = 0.6;
/// Most lags to try for a fit, and largest step between them in samples.
const MAX_TRIES: usize = 6;
const MAX_STEP: f32 = 8.0;
/// Independent partial sums, which the compiler vectorises.
const LANES: usize = 8;

/// Measures the period about the middle of a window over as short a stretch as noise allows.
pub(super) struct Refiner {
    /// Derivative of the sound per sample.
    slopes: Vec<f32>,
    /// Number of samples over which noise is correlated.
    correlation: f32,
}

/// Period in samples and its variance due to noise.
#[derive(Debug, Clone, Copy)]
struct PitchFit {
    period: f32,
    variance: f32,
}

impl Refiner {
    /// Creates a refiner for windows of an odd number of samples whose noise is correlated over
    /// `correlation` samples.
    pub(super) fn new(window: usize, correlation: f32) -> Self {
        Self {
            slopes: vec![0.0; window],
            correlation,
        }
    }

    /// Returns the least window for a period in samples.
    pub(super) fn least_window(period: f32) -> usize {
        (MIN_PERIODS * period) as usize + MARGIN
    }

    /// Returns the period in samples about the middle of a window, an odd number of samples;
    /// `coarse` is that of the whole window.
    ///
    /// A shorter stretch blurs less but is noisier: its correction counts as far as noise does not
    /// explain it, and if noise explains all of it, no shorter stretch is tried.
    pub(super) fn period(&mut self, window: &[f32], coarse: f32) -> f32 {
        let shortest = (MIN_PERIODS * coarse) as usize;
        let full = self.slopes.len();
        let longest = shortest
            .max(full >> HALVINGS[0])
            .min(window.len().saturating_sub(MARGIN));
        if longest < shortest {
            return coarse;
        }
        self.differentiate(window, (window.len() - longest) / 2 - 1);
        let (mut period, mut tried) = (coarse, 0);
        for halvings in HALVINGS {
            let length = shortest.max(full >> halvings).min(longest);
            if length == tried {
                break;
            }
            tried = length;
            let Some(fit) = self.fit(window, period, length) else {
                break;
            };
            let step = (fit.period - period).powi(2);
            let doubt = DOUBT * DOUBT * fit.variance;
            if step <= doubt || (fit.period / coarse).log2().abs() * 12.0 > MAX_CORRECTION_SEMITONES
            {
                break;
            }
            period += (fit.period - period) * (1.0 - (doubt / step).powi(2));
        }
        period
    }

    /// Computes fourth-order central differences, except for `margin` samples at either end.
    fn differentiate(&mut self, window: &[f32], margin: usize) {
        let near = window[margin - 2..window.len() - margin + 2].array_windows();
        for (slope, [before, left, _, right, after]) in self.slopes[margin..].iter_mut().zip(near) {
            *slope = (8.0 * (right - left) - (after - before)) * (1.0 / 12.0);
        }
    }

    /// Fits the period in the middle `length` samples, near `period`.
    fn fit(&self, window: &[f32], period: f32, length: usize) -> Option<PitchFit> {
        // At half the stretch, the pairs and their lag share it evenly, which blurs least.
        let multiple = (0.5 * length as f32 / period).round().max(1.0);
        // The stretch must be odd, like the window, to have the same middle.
        let length = length - (length + 1) % 2;
        let start = (window.len() - length) / 2;
        let mut lag = (multiple * period).round() as usize;
        for _ in 0..MAX_TRIES {
            let end = start + length - lag;
            // A changing pitch shifts the halves in opposite directions, so noise is the residual
            // of each half by itself.
            let middle = start + (end - start) / 2;
            let halves = [
                self.sums(window, start, middle, lag),
                self.sums(window, middle, end, lag),
            ];
            let both = halves[0].plus(&halves[1]);
            let solution = both.solve()?;
            if solution.shift.abs() <= MAX_SHIFT {
                let noise = halves[0].solve()?.residual + halves[1].solve()?.residual;
                let variance =
                    noise / (end - start) as f32 * self.correlation * solution.shift_per_noise;
                let period = (lag as f32 - solution.shift) / multiple;
                return Some(PitchFit {
                    period,
                    variance: variance / (multiple * multiple),
                });
            }
            let next = lag as f32 - solution.shift.clamp(-MAX_STEP, MAX_STEP).round();
            if !(0.25 * length as f32..=0.75 * length as f32).contains(&next) {
                return None;
            }
            lag = next as usize;
        }
        None
    }

    /// Returns the sums over all pairs `lag` apart whose first sample is in `start..end`.
    fn sums(&self, window: &[f32], start: usize, end: usize, lag: usize) -> NormalEquations {
        let (early, late) = (start..end, start + lag..end + lag);
        NormalEquations::over([
            &window[early.clone()],
            &window[late.clone()],
            &self.slopes[early],
            &self.slopes[late],
        ])
    }
}

/// Sums of the least-squares problem over the difference, slope and level of pairs.
#[derive(Debug, Clone, Copy)]
struct NormalEquations {
    difference_squared: f32,
    difference_slope: f32,
    slope_squared: f32,
    difference_level: f32,
    level_squared: f32,
    slope_level: f32,
}

/// Solution of the least-squares problem.
#[derive(Debug, Clone, Copy)]
struct Solution {
    /// Excess of the lag over the period, in samples.
    shift: f32,
    /// Residual sum of squares.
    residual: f32,
    /// Variance of the shift for white noise of variance 1.
    shift_per_noise: f32,
}

impl NormalEquations {
    /// Sums over runs of equal length: earlier and later samples, earlier and later slopes.
    fn over(runs: [&[f32]; 4]) -> Self {
        let mut lanes = [[0.0; LANES]; 6];
        let [early, late, early_slopes, late_slopes] = runs.map(|run| run.as_chunks::<LANES>());
        for (((early, late), early_slopes), late_slopes) in early
            .0
            .iter()
            .zip(late.0)
            .zip(early_slopes.0)
            .zip(late_slopes.0)
        {
            accumulate(&mut lanes, early, late, early_slopes, late_slopes);
        }
        let [early, late, early_slopes, late_slopes] =
            [early.1, late.1, early_slopes.1, late_slopes.1].map(padded);
        accumulate(&mut lanes, &early, &late, &early_slopes, &late_slopes);
        let [dd, ds, ss, dl, ll, sl] = lanes.map(|lane| lane.iter().sum::<f32>());
        // Slope and level are means of two values, which are summed so far.
        Self {
            difference_squared: dd,
            difference_slope: 0.5 * ds,
            slope_squared: 0.25 * ss,
            difference_level: 0.5 * dl,
            level_squared: 0.25 * ll,
            slope_level: 0.25 * sl,
        }
    }

    /// Adds the sums of other pairs.
    fn plus(&self, other: &Self) -> Self {
        Self {
            difference_squared: self.difference_squared + other.difference_squared,
            difference_slope: self.difference_slope + other.difference_slope,
            slope_squared: self.slope_squared + other.slope_squared,
            difference_level: self.difference_level + other.difference_level,
            level_squared: self.level_squared + other.level_squared,
            slope_level: self.slope_level + other.slope_level,
        }
    }

    /// Solves for shift and growth; `None` if the sound does not determine both.
    fn solve(&self) -> Option<Solution> {
        let determinant =
            self.slope_squared * self.level_squared - self.slope_level * self.slope_level;
        let shift = (self.difference_slope * self.level_squared
            - self.difference_level * self.slope_level)
            / determinant;
        let growth = (self.difference_level * self.slope_squared
            - self.difference_slope * self.slope_level)
            / determinant;
        let residual = self.difference_squared
            - shift * self.difference_slope
            - growth * self.difference_level;
        let solution = Solution {
            shift,
            residual: residual.max(0.0),
            shift_per_noise: self.level_squared / determinant,
        };
        (determinant > 0.0).then_some(solution)
    }
}

/// Adds the products in the order of [`NormalEquations`]; slope and level are doubled.
fn accumulate(
    lanes: &mut [[f32; LANES]; 6],
    early: &[f32; LANES],
    late: &[f32; LANES],
    early_slopes: &[f32; LANES],
    late_slopes: &[f32; LANES],
) {
    for lane in 0..LANES {
        let difference = late[lane] - early[lane];
        let level = late[lane] + early[lane];
        let slope = late_slopes[lane] + early_slopes[lane];
        lanes[0][lane] += difference * difference;
        lanes[1][lane] += difference * slope;
        lanes[2][lane] += slope * slope;
        lanes[3][lane] += difference * level;
        lanes[4][lane] += level * level;
        lanes[5][lane] += slope * level;
    }
}

/// Pads with zeros, which do not change the sums.
fn padded(run: &[f32]) -> [f32; LANES] {
    let mut padded = [0.0; LANES];
    padded[..run.len()].copy_from_slice(run);
    padded
}
