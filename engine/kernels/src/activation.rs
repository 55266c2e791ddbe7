//! Activations, in place.

use std::marker::PhantomData;

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
    HardTanh = |s, x| s.max(s.splat(-1.0), s.min(s.splat(1.0), x));
    HardSwish = |s, x| hard_swish(s, x);
    Silu = |s, x| silu(s, x);
    Softsign = |s, x| softsign(s, x);
    FastTanh = |s, x| fast_tanh(s, x);
}

/// x·min(max(x + 3, 0), 6)/6: where x is below −3 it is held there, so that −∞ gives 0.
#[inline(always)]
fn hard_swish<S: Simd>(s: S, x: S::V) -> S::V {
    let x = s.max(s.splat(-3.0), x);
    let ramp = s.min(s.splat(6.0), s.add(x, s.splat(3.0)));
    s.mul(x, s.mul(ramp, s.splat(1.0 / 6.0)))
}

/// Below this silu is 0 in `f32`, whose smallest number is e^−103.3.
const SILU_ZERO_BELOW: f32 = -110.0;

#[inline(always)]
fn silu<S: Simd>(s: S, x: S::V) -> S::V {
    let x = s.max(s.splat(SILU_ZERO_BELOW), x);
    s.mul(x, elementary::sigmoid(s, x))
}

/// Above this x/(1 + x) is 1 in `f32`, and infinity is no exception.
const SOFTSIGN_ONE_ABOVE: f32 = 1e30;

#[inline(always)]
fn softsign<S: Simd>(s: S, x: S::V) -> S::V {
    let magnitude = s.min(s.splat(SOFTSIGN_ONE_ABOVE), s.abs(x));
    s.copysign(s.div(magnitude, s.add(s.splat(1.0), magnitude)), x)
}

/// Above this the rational function is at its limit, and its fourth powers are still finite.
const FAST_TANH_SETTLED: f32 = 1e8;

/// The rational tanh of the players of captures, odd in x (A. Vaneev, KVR forum, 2013); up to 0.8 % above tanh.
#[inline(always)]
fn fast_tanh<S: Simd>(s: S, x: S::V) -> S::V {
    let a = s.min(s.splat(FAST_TANH_SETTLED), s.abs(x));
    let square = s.mul(a, a);
    let high = s.fma(s.splat(0.821_226_67), a, s.splat(0.893_229_85));
    let numerator = s.mul(a, s.fma(high, square, s.fma(s.splat(2.455_507_5), a, s.splat(2.455_507_5))));
    let stretched = s.fma(s.splat(0.814_642_7), square, a);
    let denominator = s.fma(s.add(s.splat(2.445_066_4), square), stretched, s.splat(2.445_066_4));
    s.copysign(s.div(numerator, denominator), x)
}

pub(crate) struct LeakyRelu {
    pub slope: f32,
}

impl Lanewise<0, 1> for LeakyRelu {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, []: [S::V; 0], [x]: [S::V; 1]) -> [S::V; 1] {
        // Not a choice of results: the compiler would store only those that differ, and who reads on would wait for the memory.
        [s.mul(x, s.select_less(x, s.splat(0.0), s.splat(self.slope), s.splat(1.0)))]
    }
}

pub(crate) struct LeakyHardTanh {
    pub low: f32,
    pub high: f32,
    pub low_slope: f32,
    pub high_slope: f32,
}

impl Lanewise<0, 1> for LeakyHardTanh {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, []: [S::V; 0], [x]: [S::V; 1]) -> [S::V; 1] {
        let (low, high) = (s.splat(self.low), s.splat(self.high));
        let below = s.fma(s.sub(x, low), s.splat(self.low_slope), low);
        let above = s.fma(s.sub(x, high), s.splat(self.high_slope), high);
        [s.select_less(x, low, below, s.select_less(high, x, above, x))]
    }
}

/// A function of a value and of a parameter of its channel.
trait Channelwise {
    fn apply<S: Simd>(s: S, x: S::V, parameter: S::V) -> S::V;
}

/// Below this |alpha| the quotient is all rounding, and `x` is the result to well under a unit in the last place.
const SNAKE_IDENTITY_BELOW: f32 = 1e-9;

struct Snake;

impl Channelwise for Snake {
    #[inline(always)]
    fn apply<S: Simd>(s: S, x: S::V, alpha: S::V) -> S::V {
        let y = s.add(x, s.div(elementary::sin_squared(s, s.mul(alpha, x)), alpha));
        s.select_less(s.abs(alpha), s.splat(SNAKE_IDENTITY_BELOW), x, y)
    }
}

struct Prelu;

impl Channelwise for Prelu {
    #[inline(always)]
    fn apply<S: Simd>(s: S, x: S::V, slope: S::V) -> S::V {
        s.select_less(x, s.splat(0.0), s.mul(x, slope), x)
    }
}

/// `x` is `[frame][channel]`, `parameters` are `[channel]`.
struct OverChannels<'a, F> {
    x: &'a mut [f32],
    parameters: &'a [f32],
    function: PhantomData<F>,
}

impl<F: Channelwise> Kernel for OverChannels<'_, F> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let channels = self.parameters.len();
        if channels < LANES {
            // Frames are narrower than a vector: channels go round within it.
            let mut channel = 0;
            for chunk in self.x.chunks_mut(LANES) {
                let mut parameter: Array = [0.0; LANES];
                for lane in 0..chunk.len() {
                    parameter[lane] = self.parameters[channel];
                    channel = if channel + 1 == channels { 0 } else { channel + 1 };
                }
                let y = F::apply(s, s.load_padded(chunk, 0.0), s.load(&parameter));
                s.store_partial(y, chunk);
            }
            return;
        }
        let (parameters, parameter_tail) = self.parameters.as_chunks();
        for frame in self.x.chunks_exact_mut(channels) {
            let (chunks, tail) = frame.as_chunks_mut();
            for (chunk, parameter) in chunks.iter_mut().zip(parameters) {
                let y = F::apply(s, s.load(chunk), s.load(parameter));
                s.store(y, chunk);
            }
            if !tail.is_empty() {
                let y = F::apply(s, s.load_padded(tail, 0.0), s.load_padded(parameter_tail, 0.0));
                s.store_partial(y, tail);
            }
        }
    }
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

    /// x held within −1 and 1.
    pub fn hard_tanh(self, x: &mut [f32]) {
        self.map(HardTanh, x);
    }

    /// x·min(max(x + 3, 0), 6)/6.
    pub fn hard_swish(self, x: &mut [f32]) {
        self.map(HardSwish, x);
    }

    /// x within `low` and `high`; beyond them it goes on from there with the slopes `low_slope` and `high_slope`.
    pub fn leaky_hard_tanh(self, x: &mut [f32], [low, high]: [f32; 2], [low_slope, high_slope]: [f32; 2]) {
        self.map(LeakyHardTanh { low, high, low_slope, high_slope }, x);
    }

    /// x/(1 + |x|).
    pub fn softsign(self, x: &mut [f32]) {
        self.map(Softsign, x);
    }

    /// x/(1 + e⁻ˣ).
    pub fn silu(self, x: &mut [f32]) {
        self.map(Silu, x);
    }

    /// The rational function that players of captures call a fast tanh. It is no approximation to be chosen for speed: models
    /// that were trained with it need it, all others need [`Kernels::tanh`].
    pub fn fast_tanh(self, x: &mut [f32]) {
        self.map(FastTanh, x);
    }

    /// x, or x times the slope of its channel where x is negative. `x` is `[frame][channel]`, `slopes` is `[channel]`.
    ///
    /// # Panics
    /// If `x.len()` is not a multiple of `slopes.len()`, or `slopes` is empty and `x` is not.
    pub fn prelu(self, x: &mut [f32], slopes: &[f32]) {
        self.over_channels::<Prelu>("prelu", x, slopes);
    }

    /// x + sin²(αx)/α, and x where α is near 0. `x` is `[frame][channel]`, `alpha` is `[channel]`.
    ///
    /// # Panics
    /// If `x.len()` is not a multiple of `alpha.len()`, or `alpha` is empty and `x` is not.
    pub fn snake(self, x: &mut [f32], alpha: &[f32]) {
        self.over_channels::<Snake>("snake", x, alpha);
    }

    fn over_channels<F: Channelwise>(self, name: &str, x: &mut [f32], parameters: &[f32]) {
        if x.is_empty() {
            return;
        }
        let channels = parameters.len();
        assert!(channels > 0, "{name} needs one parameter per channel, found none");
        assert!(x.len().is_multiple_of(channels), "{name} over {} values of {channels} channels", x.len());
        self.run(OverChannels { x, parameters, function: PhantomData::<F> });
    }

    fn map<Op: Lanewise<0, 1>>(self, op: Op, x: &mut [f32]) {
        self.run(Over { op, inputs: [], held: [x] });
    }
}
