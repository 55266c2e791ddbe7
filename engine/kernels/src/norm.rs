//! Layer normalisation and softmax.

use crate::Kernels;
use crate::elementary;
use crate::simd::{Array, Kernel, LANES, Simd};

struct LayerNorm<'a> {
    x: &'a mut [f32],
    gain: &'a [f32],
    bias: &'a [f32],
    epsilon: f32,
}

impl Kernel for LayerNorm<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let LayerNorm {
            x,
            gain,
            bias,
            epsilon,
        } = self;
        let count = x.len() as f32;
        let (chunks, tail) = x.as_chunks_mut();

        let mut sums = s.splat(0.0);
        for chunk in chunks.iter() {
            sums = s.add(sums, s.load(chunk));
        }
        sums = s.add(sums, s.load_padded(tail, 0.0));
        let mean = sum(s, sums) / count;

        let means = s.splat(mean);
        let mut squares = s.splat(0.0);
        for chunk in chunks.iter() {
            let deviation = s.sub(s.load(chunk), means);
            squares = s.fma(deviation, deviation, squares);
        }
        if !tail.is_empty() {
            // The padding is the mean, so it adds nothing.
            let deviation = s.sub(s.load_padded(tail, mean), means);
            squares = s.fma(deviation, deviation, squares);
        }
        let variance = sum(s, squares) / count;

        let factor = s.splat(1.0 / (variance + epsilon).sqrt());
        let (gains, gain_tail) = gain.as_chunks();
        let (biases, bias_tail) = bias.as_chunks();
        for ((chunk, gain), bias) in chunks.iter_mut().zip(gains).zip(biases) {
            let normal = s.mul(s.sub(s.load(chunk), means), factor);
            s.store(s.fma(normal, s.load(gain), s.load(bias)), chunk);
        }
        if !tail.is_empty() {
            let normal = s.mul(s.sub(s.load_padded(tail, mean), means), factor);
            let y = s.fma(
                normal,
                s.load_padded(gain_tail, 0.0),
                s.load_padded(bias_tail, 0.0),
            );
            s.store_partial(y, tail);
        }
    }
}

struct Softmax<'a> {
    x: &'a mut [f32],
}

impl Kernel for Softmax<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let peak = self.x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let (chunks, tail) = self.x.as_chunks_mut();
        let peaks = s.splat(peak);
        let mut sums = s.splat(0.0);
        for chunk in chunks.iter_mut() {
            let y = elementary::exp(s, s.sub(s.load(chunk), peaks));
            sums = s.add(sums, y);
            s.store(y, chunk);
        }
        if !tail.is_empty() {
            // e^−∞ adds nothing.
            let y = elementary::exp(s, s.sub(s.load_padded(tail, f32::NEG_INFINITY), peaks));
            sums = s.add(sums, y);
            s.store_partial(y, tail);
        }
        let factor = s.splat(1.0 / sum(s, sums));
        for chunk in chunks.iter_mut() {
            s.store(s.mul(s.load(chunk), factor), chunk);
        }
        if !tail.is_empty() {
            s.store_partial(s.mul(s.load_padded(tail, 0.0), factor), tail);
        }
    }
}

/// Sums the lanes of a vector by adding halves to halves.
#[inline(always)]
pub(crate) fn sum<S: Simd>(s: S, v: S::V) -> f32 {
    let mut lanes: Array = [0.0; LANES];
    s.store(v, &mut lanes);
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0]
}

/// Normalisation, one frame at a time.
impl Kernels {
    /// Computes `x = (x - mean) / sqrt(variance + epsilon) * gain + bias` as `torch.nn.LayerNorm`
    /// does, with the mean and the biased variance of the frame.
    ///
    /// ```
    /// let mut x = [1.0, 3.0];
    /// ondes_kernels::Kernels::detect().layer_norm(&mut x, &[1.0, 1.0], &[0.0, 10.0], 0.0);
    /// assert_eq!(x, [-1.0, 11.0]);
    /// ```
    ///
    /// # Panics
    /// If the lengths of `x`, `gain` and `bias` differ.
    pub fn layer_norm(self, x: &mut [f32], gain: &[f32], bias: &[f32], epsilon: f32) {
        assert_eq!(
            x.len(),
            gain.len(),
            "layer_norm: lengths of x and gain differ"
        );
        assert_eq!(
            x.len(),
            bias.len(),
            "layer_norm: lengths of x and bias differ"
        );
        if !x.is_empty() {
            self.run(LayerNorm {
                x,
                gain,
                bias,
                epsilon,
            });
        }
    }

    /// Computes `e^x / Σ e^x` in place, without overflow of large values.
    ///
    /// ```
    /// let mut x = [1_000.0, 1_000.0];
    /// ondes_kernels::Kernels::detect().softmax(&mut x);
    /// assert_eq!(x, [0.5, 0.5]);
    /// ```
    pub fn softmax(self, x: &mut [f32]) {
        if !x.is_empty() {
            self.run(Softmax { x });
        }
    }
}
