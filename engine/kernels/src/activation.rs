//! Activations, each defined by one entry of a table.
//!
//! An entry holds the documentation, the variant of [`Activation`] with its parameters, its tag in
//! model files and its formula. A macro derives the rest: the enum, its serialised form and the
//! dispatch to a loop compiled for each formula. Activations with learnt parameters per channel are
//! in `channel_activation`.

use serde::{Deserialize, Serialize};

use crate::Kernels;
use crate::elementary;
use crate::lanewise::{Lanewise, OverSlices};
use crate::simd::Simd;

macro_rules! activations {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident $({ $($(#[doc = $parameter_doc:literal])+ $parameter:ident: f32,)+ })? as $tag:literal =>
            |$s:ident, $x:ident| $formula:expr;
    )+) => {
        /// Function of a single value without learnt weights.
        ///
        /// All keep NaN and lose at most a few units in the last place. Serialised as model files
        /// have it:
        ///
        /// ```
        /// use ondes_kernels::Activation;
        ///
        /// let json = serde_json::to_string(&Activation::LeakyRelu { slope: 0.5 })?;
        /// assert_eq!(json, r#"{"op":"leaky_relu","slope":0.5}"#);
        /// # Ok::<(), serde_json::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "op")]
        pub enum Activation {$(
            $(#[doc = $doc])+
            #[serde(rename = $tag)]
            $name $({ $($(#[doc = $parameter_doc])+ $parameter: f32,)+ })?,
        )+}

        impl Activation {
            /// The tags of all activations, as in the field `op` of model files.
            pub const TAGS: &[&str] = &[$($tag),+];

            /// Returns whether all parameters are finite numbers.
            #[must_use]
            pub fn has_finite_parameters(self) -> bool {
                match self {$(
                    Self::$name $({ $($parameter,)+ })? => true $($(&& $parameter.is_finite())+)?,
                )+}
            }

            /// Runs a task with the formula of this activation, so that the task is compiled for
            /// each formula by itself.
            #[inline(always)]
            pub(crate) fn dispatch<T: FormulaTask>(self, task: T) {
                match self {$(
                    Self::$name $({ $($parameter,)+ })? => task.run(formula::$name { $($($parameter,)+)? }),
                )+}
            }
        }

        /// The formula of each activation.
        pub(crate) mod formula {
            use super::*;

            $(
                pub(crate) struct $name {
                    $($(pub(crate) $parameter: f32,)+)?
                }

                impl Lanewise<0, 1> for $name {
                    #[inline(always)]
                    fn apply<S: Simd>(&self, $s: S, []: [S::V; 0], [$x]: [S::V; 1]) -> [S::V; 1] {
                        $($(let $parameter = self.$parameter;)+)?
                        [$formula]
                    }
                }
            )+
        }
    };
}

activations! {
    /// Hyperbolic tangent.
    Tanh as "tanh" => |s, x| elementary::tanh(s, x);

    /// `1 / (1 + e^−x)`.
    Sigmoid as "sigmoid" => |s, x| elementary::sigmoid(s, x);

    /// `max(x, 0)`.
    Relu as "relu" => |s, x| s.max(s.splat(0.0), x);

    /// `x` above zero, `slope · x` below.
    LeakyRelu {
        /// Slope below zero.
        slope: f32,
    } as "leaky_relu" => |s, x| leaky_relu(s, x, slope);

    /// `x` limited to −1..1.
    HardTanh as "hard_tanh" => |s, x| s.max(s.splat(-1.0), s.min(s.splat(1.0), x));

    /// `x` from `min` to `max`, and straight lines of other slopes beyond them.
    LeakyHardTanh {
        /// Lower end of the middle segment.
        min: f32,
        /// Upper end of the middle segment, not below `min`.
        max: f32,
        /// Slope below `min`.
        min_slope: f32,
        /// Slope above `max`.
        max_slope: f32,
    } as "leaky_hard_tanh" => |s, x| leaky_hard_tanh(s, x, [min, max], [min_slope, max_slope]);

    /// `x · min(max(x + 3, 0), 6) / 6` (Howard et al., ICCV 2019).
    HardSwish as "hard_swish" => |s, x| hard_swish(s, x);

    /// `x / (1 + |x|)`.
    Softsign as "softsign" => |s, x| softsign(s, x);

    /// `x / (1 + e^−x)`.
    Silu as "silu" => |s, x| silu(s, x);

    /// The rational "fast tanh" of capture players, up to 0.8 % above tanh. No faster substitute
    /// for
    /// [`Activation::Tanh`]: only models trained with it need it. With `a = |x|` it is `sign(x)` times
    /// `a (2.45550750702956 (1 + a) + (0.893229853513558 + 0.821226666969744 a) a²)` over
    /// `2.44506634652299 + (2.44506634652299 + a²) (a + 0.814642734961073 a²)` (A. Vaneev, KVR
    /// forum, 2013).
    FastTanh as "fast_tanh" => |s, x| fast_tanh(s, x);

    /// `ln(1 + e^x)`.
    Softplus as "softplus" => |s, x| elementary::softplus(s, x);

    /// `e^x`; 0 and ∞ beyond the range of `f32`.
    Exp as "exp" => |s, x| elementary::exp(s, x);

    /// `2 · sigmoid(x)^ln 10 + 1e-7`, the positive non-linearity of DDSP (Engel et al., ICLR 2020).
    ExpSigmoid as "exp_sigmoid" => |s, x| elementary::exp_sigmoid(s, x);
}

/// Computation that is compiled once for each formula.
pub(crate) trait FormulaTask {
    /// Must be `#[inline(always)]`, like everything that kernels call.
    fn run<F: Lanewise<0, 1>>(self, formula: F);
}

/// A product instead of a selected result: for a selection the compiler would store only the lanes
/// that change, and the next load would wait for that partial store.
#[inline(always)]
fn leaky_relu<S: Simd>(s: S, x: S::V, slope: f32) -> S::V {
    s.mul(
        x,
        s.select_less(x, s.splat(0.0), s.splat(slope), s.splat(1.0)),
    )
}

#[inline(always)]
fn leaky_hard_tanh<S: Simd>(
    s: S,
    x: S::V,
    [min, max]: [f32; 2],
    [min_slope, max_slope]: [f32; 2],
) -> S::V {
    let (low, high) = (s.splat(min), s.splat(max));
    let below = s.fma(s.sub(x, low), s.splat(min_slope), low);
    let above = s.fma(s.sub(x, high), s.splat(max_slope), high);
    s.select_less(x, low, below, s.select_less(high, x, above, x))
}

/// Limits `x` to −3 and above first, so that −∞ gives 0.
#[inline(always)]
fn hard_swish<S: Simd>(s: S, x: S::V) -> S::V {
    let x = s.max(s.splat(-3.0), x);
    let ramp = s.min(s.splat(6.0), s.add(x, s.splat(3.0)));
    s.mul(x, s.mul(ramp, s.splat(1.0 / 6.0)))
}

/// Below this, silu is 0 in `f32`, whose smallest number is e^−103.3.
const SILU_ZERO_BELOW: f32 = -110.0;

#[inline(always)]
fn silu<S: Simd>(s: S, x: S::V) -> S::V {
    let x = s.max(s.splat(SILU_ZERO_BELOW), x);
    s.mul(x, elementary::sigmoid(s, x))
}

/// Above this, x/(1 + x) is 1 in `f32`, also for infinity.
const SOFTSIGN_ONE_ABOVE: f32 = 1e30;

#[inline(always)]
fn softsign<S: Simd>(s: S, x: S::V) -> S::V {
    let magnitude = s.min(s.splat(SOFTSIGN_ONE_ABOVE), s.abs(x));
    s.copysign(s.div(magnitude, s.add(s.splat(1.0), magnitude)), x)
}

/// Above this, the rational function equals its limit while its fourth powers are still finite.
const FAST_TANH_SETTLED: f32 = 1e8;

#[inline(always)]
fn fast_tanh<S: Simd>(s: S, x: S::V) -> S::V {
    let a = s.min(s.splat(FAST_TANH_SETTLED), s.abs(x));
    let square = s.mul(a, a);
    let high = s.fma(s.splat(0.821_226_67), a, s.splat(0.893_229_85));
    let numerator = s.mul(
        a,
        s.fma(
            high,
            square,
            s.fma(s.splat(2.455_507_5), a, s.splat(2.455_507_5)),
        ),
    );
    let stretched = s.fma(s.splat(0.814_642_7), square, a);
    let denominator = s.fma(
        s.add(s.splat(2.445_066_4), square),
        stretched,
        s.splat(2.445_066_4),
    );
    s.copysign(s.div(numerator, denominator), x)
}

/// Applies a formula to a slice in place.
struct InPlace<'a> {
    kernels: Kernels,
    x: &'a mut [f32],
}

impl FormulaTask for InPlace<'_> {
    #[inline(always)]
    fn run<F: Lanewise<0, 1>>(self, formula: F) {
        self.kernels.run(OverSlices {
            op: formula,
            inputs: [],
            in_out: [self.x],
        });
    }
}

impl Kernels {
    /// Applies an activation to each value in place.
    ///
    /// ```
    /// use ondes_kernels::{Activation, Kernels};
    ///
    /// let mut x = [-2.0, 0.5, 3.0];
    /// Kernels::detect().activate(Activation::LeakyRelu { slope: 0.25 }, &mut x);
    /// assert_eq!(x, [-0.5, 0.5, 3.0]);
    /// ```
    pub fn activate(self, activation: Activation, x: &mut [f32]) {
        activation.dispatch(InPlace { kernels: self, x });
    }
}
