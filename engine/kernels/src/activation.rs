//! Activations, in place.

use crate::Kernels;
use crate::elementary;
use crate::lanewise::{Lanewise, Over};
use crate::simd::{Array, Kernel, LANES, Simd};

macro_rules! functions {
    ($($operation:ident = |$s:ident, $x:ident| $body:expr;)*) => {$(
        pub(crate) struct $operation;

        impl Lanewise<0, 1> for $operation {
            #[inline(always)]
            fn apply<S: Simd>(&self, $s: S, []: [S::V; 0], [$x]: [S::V; 1]) -> [S::V; 1] {
                [$body]
            }
        }
    )*};
}

functions! {
    Tanh = |s, x| elementary::tanh(s, x);
    Sigmoid = |s, x| elementary::sigmoid(s, x);
    Relu = |s, x| s.max(s.splat(0.0), x);
    Softplus = |s, x| elementary::softplus(s, x);
    ExpSigmoid = |s, x| elementary::exp_sigmoid(s, x);
    Exp = |s, x| elementary::exp(s, x);
}

pub(crate) struct LeakyRelu {
    pub slope: f32,
}

impl Lanewise<0, 1> for LeakyRelu {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, []: [S::V; 0], [x]: [S::V; 1]) -> [S::V; 1] {
        [s.select_less(x, s.splat(0.0), s.mul(x, s.splat(self.slope)), x)]
    }
}

/// Below this |alpha| the quotient is all rounding, and `x` is the result to well under a unit in the last place.
const SNAKE_IDENTITY_BELOW: f32 = 1e-9;

struct Snake<'a> {
    x: &'a mut [f32],
    alpha: &'a [f32],
}

impl Kernel for Snake<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let channels = self.alpha.len();
        if channels < LANES {
            // Frames are narrower than a vector: channels go round within it.
            let mut channel = 0;
            for chunk in self.x.chunks_mut(LANES) {
                let mut alpha: Array = [0.0; LANES];
                for lane in 0..chunk.len() {
                    alpha[lane] = self.alpha[channel];
                    channel = if channel + 1 == channels { 0 } else { channel + 1 };
                }
                let y = snake(s, s.load_padded(chunk, 0.0), s.load(&alpha));
                s.store_partial(y, chunk);
            }
            return;
        }
        let (alphas, alpha_tail) = self.alpha.as_chunks();
        for frame in self.x.chunks_exact_mut(channels) {
            let (chunks, tail) = frame.as_chunks_mut();
            for (chunk, alpha) in chunks.iter_mut().zip(alphas) {
                let y = snake(s, s.load(chunk), s.load(alpha));
                s.store(y, chunk);
            }
            if !tail.is_empty() {
                let y = snake(s, s.load_padded(tail, 0.0), s.load_padded(alpha_tail, 0.0));
                s.store_partial(y, tail);
            }
        }
    }
}

#[inline(always)]
fn snake<S: Simd>(s: S, x: S::V, alpha: S::V) -> S::V {
    let y = s.add(x, s.div(elementary::sin_squared(s, s.mul(alpha, x)), alpha));
    s.select_less(s.abs(alpha), s.splat(SNAKE_IDENTITY_BELOW), x, y)
}

/// Activations. All keep NaN, none loses more than a few units in the last place, and all are in place.
impl Kernels {
    /// tanh x.
    pub fn tanh(self, x: &mut [f32]) {
        self.map(Tanh, x);
    }

    /// 1/(1 + e⁻ˣ).
    pub fn sigmoid(self, x: &mut [f32]) {
        self.map(Sigmoid, x);
    }

    /// max(x, 0).
    pub fn relu(self, x: &mut [f32]) {
        self.map(Relu, x);
    }

    /// ln(1 + eˣ).
    pub fn softplus(self, x: &mut [f32]) {
        self.map(Softplus, x);
    }

    /// 2·sigmoid(x)^ln10 + 10⁻⁷, the positive non-linearity of DDSP.
    pub fn exp_sigmoid(self, x: &mut [f32]) {
        self.map(ExpSigmoid, x);
    }

    /// eˣ; 0 and ∞ beyond the range of `f32`.
    pub fn exp(self, x: &mut [f32]) {
        self.map(Exp, x);
    }

    /// x, or x·`slope` where x is negative.
    pub fn leaky_relu(self, x: &mut [f32], slope: f32) {
        self.map(LeakyRelu { slope }, x);
    }

    /// x + sin²(αx)/α, and x where α is near 0. `x` is `[frame][channel]`, `alpha` is `[channel]`.
    ///
    /// # Panics
    /// If `x.len()` is not a multiple of `alpha.len()`, or `alpha` is empty and `x` is not.
    pub fn snake(self, x: &mut [f32], alpha: &[f32]) {
        if x.is_empty() {
            return;
        }
        assert!(!alpha.is_empty(), "snake needs one alpha per channel, found none");
        assert!(x.len().is_multiple_of(alpha.len()), "snake over {} values of {} channels", x.len(), alpha.len());
        self.run(Snake { x, alpha });
    }

    fn map<Op: Lanewise<0, 1>>(self, op: Op, x: &mut [f32]) {
        self.run(Over { op, inputs: [], held: [x] });
    }
}
