//! The period about one instant.
//!
//! Where sound repeats after a lag, what comes a lag later differs by r = ε x′ + γ x: it is shifted by the ε samples by
//! which the lag misses the period and has grown by γ. Least squares give both, free of the bias that a parabola through
//! an NSDF has at short periods and that a swell gives it. What they leave over is noise, and says how sure ε is.

/// Lengths of the stretches tried, as halvings of the window: 21 and 11 ms. At 6 Hz and ±60 cents they lower the crests by
/// 1 and by 0.25 cents, the whole window by 4.
const HALVINGS: [u32; 2] = [1, 2];
/// A stretch has at least this many periods: one to compare with the next.
const PERIODS: f32 = 2.0;
/// How far a stretch may move the period of the window; further away is another peak.
const REACH_SEMITONES: f32 = 1.0;
/// How many times the deviation that noise explains a stretch must differ by to be heeded. Noise that is more correlated
/// than the smoothing alone makes it asks for more than one.
const DOUBT: f32 = 2.0;
/// A fit within this many samples of its lag holds; it is linear only so near.
const NEAR: f32 = 0.6;
/// Lags tried on the way to such a fit, and samples from one to the next at most.
const TRIES: usize = 6;
const STRIDE: f32 = 8.0;
/// Sums are taken in this many strands, which the compiler turns into vectors.
const STRANDS: usize = 8;

/// Measures the period about the middle of a window from as short a stretch as its noise allows.
pub(super) struct Refiner {
    /// Change of the sound per sample, where a stretch needs it.
    slopes: Vec<f32>,
    /// Over how many samples noise is correlated.
    correlation: f32,
}

/// A period in samples and the variance it has from noise.
#[derive(Debug, Clone, Copy)]
struct PitchFit {
    period: f32,
    variance: f32,
}

impl Refiner {
    /// For windows of an odd number of samples, whose noise is correlated over `correlation` of them.
    pub(super) fn new(window: usize, correlation: f32) -> Self {
        Self { slopes: vec![0.0; window], correlation }
    }

    /// The period in samples, where that of the whole window is `coarse`.
    ///
    /// A shorter stretch blurs less and trembles more: it is heeded as far as noise does not explain how it differs,
    /// and where noise explains all of it, none shorter is tried.
    pub(super) fn period(&mut self, window: &[f32], coarse: f32) -> f32 {
        let shortest = (PERIODS * coarse) as usize;
        let longest = shortest.max(window.len() >> HALVINGS[0]);
        // Slopes reach two samples further than a stretch, and parity may take one.
        if longest + 6 > window.len() {
            return coarse;
        }
        self.differentiate(window, (window.len() - longest) / 2 - 1);
        let (mut period, mut tried) = (coarse, 0);
        for halvings in HALVINGS {
            let length = shortest.max(window.len() >> halvings);
            if length == tried {
                break;
            }
            tried = length;
            let Some(fit) = self.fit(window, period, length) else { break };
            let step = (fit.period - period).powi(2);
            let doubt = DOUBT * DOUBT * fit.variance;
            if step <= doubt || (fit.period / coarse).log2().abs() * 12.0 > REACH_SEMITONES {
                break;
            }
            period += (fit.period - period) * (1.0 - (doubt / step).powi(2));
        }
        period
    }

    /// Slopes by central differences of fourth order, all but `margin` samples at either end.
    fn differentiate(&mut self, window: &[f32], margin: usize) {
        let near = window[margin - 2..window.len() - margin + 2].array_windows();
        for (slope, [before, left, _, right, after]) in self.slopes[margin..].iter_mut().zip(near) {
            *slope = (8.0 * (right - left) - (after - before)) * (1.0 / 12.0);
        }
    }

    /// The period in the middle `length` samples, near `period`.
    fn fit(&self, window: &[f32], period: f32, length: usize) -> Option<PitchFit> {
        // At half the stretch the pairs and their lag share it evenly, which blurs least.
        let multiple = (0.5 * length as f32 / period).round().max(1.0);
        // Only an odd stretch shares its middle with the window.
        let length = length - (length + 1) % 2;
        let start = (window.len() - length) / 2;
        let mut lag = (multiple * period).round() as usize;
        for _ in 0..TRIES {
            let end = start + length - lag;
            // A pitch that moves is early in one half and late in the other: noise is what is left of either by itself.
            let middle = start + (end - start) / 2;
            let halves = [self.sums(window, start, middle, lag), self.sums(window, middle, end, lag)];
            let whole = halves[0].and(&halves[1]);
            let solution = whole.solve()?;
            if solution.shift.abs() <= NEAR {
                let noise = halves[0].solve()?.rest + halves[1].solve()?.rest;
                let variance = noise / (end - start) as f32 * self.correlation * solution.shift_per_noise;
                let period = (lag as f32 - solution.shift) / multiple;
                return Some(PitchFit { period, variance: variance / (multiple * multiple) });
            }
            let next = lag as f32 - solution.shift.clamp(-STRIDE, STRIDE).round();
            if !(0.25 * length as f32..=0.75 * length as f32).contains(&next) {
                return None;
            }
            lag = next as usize;
        }
        None
    }

    /// The sums over all pairs `lag` apart whose first sample is in `start..end`.
    fn sums(&self, window: &[f32], start: usize, end: usize, lag: usize) -> NormalEquations {
        let (early, late) = (start..end, start + lag..end + lag);
        NormalEquations::over([&window[early.clone()], &window[late.clone()], &self.slopes[early], &self.slopes[late]])
    }
}

/// What least squares need to know of the difference, the slope and the level of the pairs.
#[derive(Debug, Clone, Copy)]
struct NormalEquations {
    difference_squared: f32,
    difference_slope: f32,
    slope_squared: f32,
    difference_level: f32,
    level_squared: f32,
    slope_level: f32,
}

/// The least squares' answer.
#[derive(Debug, Clone, Copy)]
struct Solution {
    /// By how much the lag exceeds the period, in samples.
    shift: f32,
    /// The sum of squares that shift and growth do not explain.
    rest: f32,
    /// Variance of the shift for white noise of variance 1.
    shift_per_noise: f32,
}

impl NormalEquations {
    /// Of runs of one length: earlier and later samples, earlier and later slopes.
    fn over(runs: [&[f32]; 4]) -> Self {
        let mut strands = [[0.0; STRANDS]; 6];
        let [early, late, early_slopes, late_slopes] = runs.map(|run| run.as_chunks::<STRANDS>());
        for (((early, late), early_slopes), late_slopes) in
            early.0.iter().zip(late.0).zip(early_slopes.0).zip(late_slopes.0)
        {
            accumulate(&mut strands, early, late, early_slopes, late_slopes);
        }
        let [early, late, early_slopes, late_slopes] = [early.1, late.1, early_slopes.1, late_slopes.1].map(padded);
        accumulate(&mut strands, &early, &late, &early_slopes, &late_slopes);
        let [dd, ds, ss, dl, ll, sl] = strands.map(|strand| strand.iter().sum::<f32>());
        // Slope and level are means of two, which so far are sums.
        Self {
            difference_squared: dd,
            difference_slope: 0.5 * ds,
            slope_squared: 0.25 * ss,
            difference_level: 0.5 * dl,
            level_squared: 0.25 * ll,
            slope_level: 0.25 * sl,
        }
    }

    /// Over the pairs of both.
    fn and(&self, other: &Self) -> Self {
        Self {
            difference_squared: self.difference_squared + other.difference_squared,
            difference_slope: self.difference_slope + other.difference_slope,
            slope_squared: self.slope_squared + other.slope_squared,
            difference_level: self.difference_level + other.difference_level,
            level_squared: self.level_squared + other.level_squared,
            slope_level: self.slope_level + other.slope_level,
        }
    }

    /// None where the sound does not tell a shift from growth.
    fn solve(&self) -> Option<Solution> {
        let determinant = self.slope_squared * self.level_squared - self.slope_level * self.slope_level;
        let shift =
            (self.difference_slope * self.level_squared - self.difference_level * self.slope_level) / determinant;
        let growth =
            (self.difference_level * self.slope_squared - self.difference_slope * self.slope_level) / determinant;
        let rest = self.difference_squared - shift * self.difference_slope - growth * self.difference_level;
        let solution = Solution { shift, rest: rest.max(0.0), shift_per_noise: self.level_squared / determinant };
        (determinant > 0.0).then_some(solution)
    }
}

/// Adds the products that [`NormalEquations`] names, in its order, with slope and level twice what they are.
fn accumulate(
    strands: &mut [[f32; STRANDS]; 6],
    early: &[f32; STRANDS],
    late: &[f32; STRANDS],
    early_slopes: &[f32; STRANDS],
    late_slopes: &[f32; STRANDS],
) {
    for strand in 0..STRANDS {
        let difference = late[strand] - early[strand];
        let level = late[strand] + early[strand];
        let slope = late_slopes[strand] + early_slopes[strand];
        strands[0][strand] += difference * difference;
        strands[1][strand] += difference * slope;
        strands[2][strand] += slope * slope;
        strands[3][strand] += difference * level;
        strands[4][strand] += level * level;
        strands[5][strand] += slope * level;
    }
}

/// Zeros add nothing to any sum.
fn padded(run: &[f32]) -> [f32; STRANDS] {
    let mut padded = [0.0; STRANDS];
    padded[..run.len()].copy_from_slice(run);
    padded
}
