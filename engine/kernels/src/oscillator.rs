//! Additive oscillator: a sum of harmonics whose amplitudes and common frequency glide.
//!
//! Vectors lie across samples. Harmonics go in blocks of 16 by the addition theorem: with base B =
//! 16·block,
//!
//! Σₘ aₘ·sin((B + m)θ) = sin(Bθ)·Σₘ aₘ·cos(mθ) + cos(Bθ)·Σₘ aₘ·sin(mθ),  m = 1..=16,
//!
//! so sines and cosines of the first 16 multiples are computed once per sample, and each harmonic
//! costs three multiply-adds: its amplitude and its two sums. No error accumulates within a block;
//! the base is rotated by 16θ per block and recomputed every few blocks.

use crate::Kernels;
use crate::elementary::sin_cos_cycles;
use crate::simd::{Array, Kernel, LANES, Simd};

/// One control frame of the oscillator, from its control values to the next.
#[derive(Clone, Copy, Debug)]
pub struct HarmonicFrame<'a> {
    /// Cycles at sample −1, the end of the frame before.
    pub phase: f64,
    /// Cycles per sample at the start of the frame.
    pub step_start: f64,
    /// Cycles per sample at the end of the frame; the frequency is interpolated linearly.
    pub step_end: f64,
    /// Amplitudes at sample −1, of harmonics 1, 2, 3, …
    pub start: &'a [f32],
    /// Amplitudes at the last sample.
    pub end: &'a [f32],
}

impl HarmonicFrame<'_> {
    /// Returns the phase after a frame of `samples` samples, in cycles within 0..1: the next
    /// frame's `phase`.
    pub fn phase_after(phase: f64, step_start: f64, step_end: f64, samples: usize) -> f64 {
        let n = samples as f64;
        let end = if samples == 0 {
            phase
        } else {
            phase_at(phase, step_start, step_end, n, n)
        };
        let within = end - end.floor();
        // A tiny negative phase rounds up to a whole cycle.
        if within >= 1.0 { 0.0 } else { within }
    }
}

/// Returns the phase `t` samples into a frame of `n`, in cycles. The libtorch executor has the same
/// formula, so the order of operations matters.
#[inline(always)]
fn phase_at(phase: f64, step_start: f64, step_end: f64, t: f64, n: f64) -> f64 {
    phase + t * step_start + (step_end - step_start) * t * t / (2.0 * n)
}

/// Harmonics per block.
const BLOCK: usize = 16;
/// Blocks after which the base is recomputed instead of rotated.
const BLOCKS_PER_SEED: usize = 8;

/// Sample 0 of a frame is at time 1: time 0 is the end of the frame before.
const TIMES: [f64; LANES] = [
    1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0,
];

struct Harmonics<'a> {
    frame: HarmonicFrame<'a>,
    out: &'a mut [f32],
}

impl Kernel for Harmonics<'_> {
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let mut first = 0;
        if S::MANY_REGISTERS {
            first = self.samples::<S, 4>(s, first);
        }
        first = self.samples::<S, 2>(s, first);
        self.samples::<S, 1>(s, first);
    }
}

/// `[multiple][vector]`: the sines, or cosines, of the first 16 multiples of each sample's phase;
/// row 0 is unused.
type Multiples<V, const U: usize> = [[V; U]; BLOCK + 1];

impl Harmonics<'_> {
    /// Computes `U` vectors of samples at a time from `first` on, while more than half of them are
    /// left. Returns the next sample.
    #[inline(always)]
    fn samples<S: Simd, const U: usize>(&mut self, s: S, mut first: usize) -> usize {
        let end = self.out.len().saturating_sub(U / 2 * LANES);
        if first >= end {
            return first;
        }
        // Allocated once for all groups, since clearing takes as long as filling.
        let mut sin: Multiples<S::V, U> = [[s.splat(0.0); U]; BLOCK + 1];
        let mut cos = sin;
        while first < end {
            self.group(s, first, &mut sin, &mut cos);
            first += U * LANES;
        }
        first
    }

    /// Computes up to `U` vectors of samples from `first` on.
    #[inline(always)]
    fn group<S: Simd, const U: usize>(
        &mut self,
        s: S,
        first: usize,
        sin: &mut Multiples<S::V, U>,
        cos: &mut Multiples<S::V, U>,
    ) {
        let HarmonicFrame {
            phase,
            step_start,
            step_end,
            start,
            end,
        } = self.frame;
        let samples = self.out.len() as f64;

        let mut p = [s.splat(0.0); U];
        let mut time = [s.splat(0.0); U];
        for u in 0..U {
            // Times are counted in `f64`, exactly; a conversion per sample would prevent
            // vectorisation.
            let before = (first + u * LANES) as f64;
            let mut phases: Array = [0.0; LANES];
            let mut times: Array = [0.0; LANES];
            for lane in 0..LANES {
                let t = before + TIMES[lane];
                let cycles = phase_at(phase, step_start, step_end, t, samples);
                phases[lane] = (cycles - cycles.round_ties_even()) as f32;
                times[lane] = t as f32;
            }
            p[u] = s.load(&phases);
            time[u] = s.div(s.load(&times), s.splat(samples as f32));
        }

        multiples(s, p, start.len(), sin, cos);
        let (sin, cos) = (&*sin, &*cos);
        let mut sum = [s.splat(0.0); U];
        let mut base_sin = [s.splat(0.0); U];
        let mut base_cos = [s.splat(1.0); U];
        for (block, (start, end)) in start.chunks(BLOCK).zip(end.chunks(BLOCK)).enumerate() {
            let mut change: Array = [0.0; BLOCK];
            s.store(
                s.sub(s.load_padded(end, 0.0), s.load_padded(start, 0.0)),
                &mut change,
            );
            let mut with_sin = [s.splat(0.0); U];
            let mut with_cos = [s.splat(0.0); U];
            for m in 0..start.len() {
                let (start, change) = (s.splat(start[m]), s.splat(change[m]));
                for u in 0..U {
                    let amplitude = s.fma(change, time[u], start);
                    with_sin[u] = s.fma(amplitude, sin[m + 1][u], with_sin[u]);
                    with_cos[u] = s.fma(amplitude, cos[m + 1][u], with_cos[u]);
                }
            }
            if block == 0 {
                // The base is 0: its sine is 0 and its cosine 1.
                sum = with_sin;
            } else {
                for u in 0..U {
                    if block % BLOCKS_PER_SEED == 0 {
                        (base_sin[u], base_cos[u]) =
                            sin_cos_cycles(s, (block * BLOCK) as f32, p[u]);
                    } else {
                        (base_sin[u], base_cos[u]) = turn(
                            s,
                            (base_sin[u], base_cos[u]),
                            (sin[BLOCK][u], cos[BLOCK][u]),
                        );
                    }
                    sum[u] = s.fma(base_sin[u], with_cos[u], sum[u]);
                    sum[u] = s.fma(base_cos[u], with_sin[u], sum[u]);
                }
            }
        }

        for (u, out) in self.out[first..].chunks_mut(LANES).take(U).enumerate() {
            s.store_partial(sum[u], out);
        }
    }
}

/// Computes sine and cosine of the first multiples of phases `p`, as many as `harmonics` needs:
/// some directly, the others by the addition theorem from two smaller ones.
#[inline(always)]
fn multiples<S: Simd, const U: usize>(
    s: S,
    p: [S::V; U],
    harmonics: usize,
    sin: &mut Multiples<S::V, U>,
    cos: &mut Multiples<S::V, U>,
) {
    for m in 1..=BLOCK.min(harmonics) {
        // The highest power of two below m, and the rest; a power of two is twice its half.
        let high = if m.is_power_of_two() {
            m / 2
        } else {
            1 << m.ilog2()
        };
        for u in 0..U {
            (sin[m][u], cos[m][u]) = if matches!(m, 1 | 4 | 16) {
                sin_cos_cycles(s, m as f32, p[u])
            } else {
                turn(
                    s,
                    (sin[high][u], cos[high][u]),
                    (sin[m - high][u], cos[m - high][u]),
                )
            };
        }
    }
}

/// Returns sine and cosine of the sum of two angles.
#[inline(always)]
fn turn<S: Simd>(s: S, (sin_a, cos_a): (S::V, S::V), (sin_b, cos_b): (S::V, S::V)) -> (S::V, S::V) {
    let sin = s.fma(sin_a, cos_b, s.mul(cos_a, sin_b));
    let cos = s.fma(cos_a, cos_b, s.neg(s.mul(sin_a, sin_b)));
    (sin, cos)
}

/// Oscillators.
impl Kernels {
    /// Renders one control frame of an additive harmonic oscillator:
    /// `out[n] = Σ_h lerp(start[h], end[h], (n + 1) / N) * sin(2π * (h + 1) * phase(n))` with
    /// `N = out.len()`.
    ///
    /// With `t = n + 1`,
    /// `phase(n) = phase + t * step_start + (step_end - step_start) * t * t / (2 * N)` in `f64`,
    /// which is reduced by its nearest integer and rounded to `f32`. Zero the amplitudes above
    /// Nyquist: the highest harmonics cost nothing if they are silent.
    ///
    /// ```
    /// use ondes_kernels::{HarmonicFrame, Kernels};
    ///
    /// // A sine at a quarter of the sample rate.
    /// let frame = HarmonicFrame { phase: 0.0, step_start: 0.25, step_end: 0.25, start: &[1.0], end: &[1.0] };
    /// let mut out = [0.0; 4];
    /// Kernels::detect().harmonics(frame, &mut out);
    /// for (sample, expected) in out.iter().zip([1.0, 0.0, -1.0, 0.0]) {
    ///     assert!((sample - expected).abs() < 1e-6);
    /// }
    /// ```
    ///
    /// # Panics
    /// If the lengths of `start` and `end` differ.
    pub fn harmonics(self, oscillator: HarmonicFrame<'_>, out: &mut [f32]) {
        let HarmonicFrame { start, end, .. } = oscillator;
        assert_eq!(
            start.len(),
            end.len(),
            "harmonics: as many amplitudes at the end as at the start"
        );
        let sounding = start
            .iter()
            .zip(end)
            .rposition(|(&start, &end)| start != 0.0 || end != 0.0);
        match sounding {
            None => out.fill(0.0),
            Some(highest) => {
                let frame = HarmonicFrame {
                    start: &start[..=highest],
                    end: &end[..=highest],
                    ..oscillator
                };
                self.run(Harmonics { frame, out });
            }
        }
    }
}
