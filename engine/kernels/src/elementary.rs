//! Elementary functions, one polynomial each.
//!
//! The coefficients are minimax fits (Remez exchange, weighted for the error named), then rounded
//! to `f32`; the error given is that of the rounded polynomial in exact arithmetic. A unit in the
//! last place is 6·10⁻⁸ to 1.2·10⁻⁷.

use crate::simd::Simd;

/// ln 2 in two parts; the first has few enough bits that `n * LN2_HIGH` is exact for every exponent
/// `n`.
const LN2_HIGH: f32 = 355.0 / 512.0;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// ln 10 in two parts, the first rounded to nearest.
const LN10_HIGH: f32 = std::f32::consts::LN_10;
const LN10_LOW: f32 = -3.197_543_6e-8;
/// 1/π in two parts, the first rounded to nearest.
const FRAC_1_PI_HIGH: f32 = std::f32::consts::FRAC_1_PI;
const FRAC_1_PI_LOW: f32 = 1.284_127_6e-8;

/// (eʳ − 1 − r)/r² on |r| ≤ ln2/2: 1.7·10⁻⁸ of eʳ − 1.
const EXPM1: [f32; 5] = [
    0.499_999_97,
    0.166_665_43,
    0.041_667_2,
    0.008_366_548,
    0.001_388_251_2,
];
/// (2ʳ − 1)/r on |r| ≤ 1/2: 1.1·10⁻⁷ of 2ʳ.
#[expect(clippy::approx_constant, reason = "a fit, not ln 2")]
const EXP2: [f32; 5] = [
    0.693_147,
    0.240_222_42,
    0.055_507_336,
    0.009_671_52,
    0.001_326_475,
];
/// sin(πr)/r in r² on |r| ≤ 1/2: 4.3·10⁻⁸, relative; most of it is the rounding of π.
const SIN_PI: [f32; 5] = [
    std::f32::consts::PI,
    -5.167_71,
    2.550_07,
    -0.598_242_1,
    0.077_560_395,
];
/// (cos(πr) − 1)/r² in r² on |r| ≤ 1/2: 2.6·10⁻⁸ of the cosine, absolute.
const COS_PI: [f32; 5] = [
    -4.934_802,
    4.058_709_6,
    -1.335_216_2,
    0.234_953_93,
    -0.024_420_701,
];
/// (2·artanh(t)/t − 2)/t² in t² on 0 ≤ t ≤ 1/3: 5.5·10⁻⁹ of the function.
const TWO_ARTANH: [f32; 4] = [0.666_664_2, 0.400_215_27, 0.280_018_12, 0.280_119_54];
/// tanh(x)/x on 0 ≤ x ≤ 9.02 as a quotient in x²: 2.1·10⁻⁸, relative; 3.3·10⁻⁷ with all roundings.
const TANH_NUMERATOR: [f32; 5] = [
    1.0,
    0.133_797_02,
    0.003_494_014_7,
    2.058_315_7e-5,
    1.331_863_2e-8,
];
const TANH_DENOMINATOR: [f32; 5] = [
    1.0,
    0.467_130_15,
    0.025_870_997,
    3.283_060_5e-4,
    7.761_836_4e-7,
];

#[inline(always)]
fn polynomial<S: Simd, const N: usize>(s: S, x: S::V, coefficients: [f32; N]) -> S::V {
    let mut sum = s.splat(coefficients[N - 1]);
    for k in 1..N {
        sum = s.fma(sum, x, s.splat(coefficients[N - 1 - k]));
    }
    sum
}

/// `(n, r)` with x = n·ln2 + r, `n` integral and |r| ≤ ln2/2.
#[inline(always)]
fn split_exponent<S: Simd>(s: S, x: S::V) -> (S::V, S::V) {
    let n = s.round(s.mul(x, s.splat(std::f32::consts::LOG2_E)));
    let r = s.fma(n, s.splat(-LN2_HIGH), x);
    (n, s.fma(n, s.splat(-LN2_LOW), r))
}

/// eʳ − 1 for |r| ≤ ln2/2.
#[inline(always)]
fn expm1_reduced<S: Simd>(s: S, r: S::V) -> S::V {
    s.fma(s.mul(r, r), polynomial(s, r, EXPM1), r)
}

/// 2ⁿ·eʳ for |r| ≤ ln2/2 and −150 ≤ n ≤ 128, with one rounding where the result is subnormal.
#[inline(always)]
fn scaled_exp<S: Simd>(s: S, n: S::V, r: S::V) -> S::V {
    let mantissa = s.add(expm1_reduced(s, r), s.splat(1.0));
    let half = s.round(s.mul(n, s.splat(0.5)));
    s.mul(s.mul(mantissa, s.pow2(half)), s.pow2(s.sub(n, half)))
}

/// eˣ: 0 and ∞ beyond the range of `f32`.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::V) -> S::V {
    // e⁻¹⁰⁴ rounds to 0 and e⁸⁹ to ∞.
    let x = s.max(s.splat(-104.0), s.min(s.splat(89.0), x));
    let (n, r) = split_exponent(s, x);
    scaled_exp(s, n, r)
}

/// tanh x = x·P(x²)/Q(x²) on |x|, then signed: a third of the steps of an exponential, in two
/// independent chains.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(s: S, x: S::V) -> S::V {
    // tanh 9.02 rounds to 1.
    let magnitude = s.min(s.splat(9.02), s.abs(x));
    let square = s.mul(magnitude, magnitude);
    let numerator = s.mul(magnitude, polynomial(s, square, TANH_NUMERATOR));
    let denominator = polynomial(s, square, TANH_DENOMINATOR);
    // Rounding must not push the quotient above 1.
    s.copysign(s.div(s.min(denominator, numerator), denominator), x)
}

/// tanh x / `over` as numerator and denominator, for sums and products with one division at the
/// end. The denominator is 1 to 34 times `over`. Has the shortest possible dependency chain, since
/// the state of a recurrent cell waits for it.
#[inline(always)]
pub(crate) fn tanh_ratio<S: Simd>(s: S, x: S::V, over: S::V) -> (S::V, S::V) {
    let square = s.min(s.splat(9.02 * 9.02), s.mul(x, x));
    let x = s.max(s.splat(-9.02), s.min(s.splat(9.02), x));
    let fourth = s.mul(square, square);
    let (low, high) = halves(s, square, fourth, TANH_NUMERATOR);
    let (low_over, high_over) = halves(s, square, fourth, TANH_DENOMINATOR);
    (
        s.fma(high, s.mul(fourth, x), s.mul(low, x)),
        s.fma(high_over, s.mul(fourth, over), s.mul(low_over, over)),
    )
}

/// A polynomial as low + high·x².
#[inline(always)]
fn halves<S: Simd>(s: S, x: S::V, square: S::V, coefficients: [f32; 5]) -> (S::V, S::V) {
    let [c0, c1, c2, c3, c4] = coefficients.map(|coefficient| s.splat(coefficient));
    (s.fma(c1, x, c0), s.fma(c4, square, s.fma(c3, x, c2)))
}

/// 2ˣ as `(a, n)`, a · 2ⁿ, for gates 1/(1 + 2ˣ) with one division at the end.
///
/// The error is 1.1·10⁻⁷ from 2⁻³⁶ to 2³⁶; beyond that range the result lies beyond it too. `x` is
/// finite or NaN, which is kept. This is the shortest dependency chain with a small error of both
/// the gate and 1 minus the gate: a gate that forgets little accumulates its errors over thousands
/// of samples.
#[inline(always)]
pub(crate) fn exp2_of_gate<S: Simd>(s: S, x: S::V) -> (S::V, S::V) {
    let n = s.round(x);
    // Within ±1/2 for any x.
    let r = s.sub(x, n);
    let square = s.mul(r, r);
    let [c1, c2, c3, c4, c5] = EXP2.map(|coefficient| s.splat(coefficient));
    let high = s.fma(s.fma(c5, r, c4), square, s.fma(c3, r, c2));
    let n = s.max(s.splat(-36.0), s.min(s.splat(36.0), n));
    (s.fma(high, square, s.fma(c1, r, s.splat(1.0))), n)
}

/// 1/(1 + e⁻ˣ), by the exponential of −|x| so that neither side overflows or loses digits.
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(s: S, x: S::V) -> S::V {
    let one = s.splat(1.0);
    let small = exp(s, s.neg(s.abs(x)));
    let numerator = s.select_less(x, s.splat(0.0), small, one);
    s.div(numerator, s.add(one, small))
}

/// ln(1 + e^−|x|), from ln(1 + u) = 2·artanh(u/(2 + u)).
#[inline(always)]
fn log1p_exp_neg_abs<S: Simd>(s: S, x: S::V) -> S::V {
    let u = exp(s, s.neg(s.abs(x)));
    let t = s.div(u, s.add(s.splat(2.0), u));
    let z = s.mul(t, t);
    s.fma(s.mul(t, z), polynomial(s, z, TWO_ARTANH), s.add(t, t))
}

/// ln(1 + eˣ) = max(x, 0) + ln(1 + e^−|x|).
#[inline(always)]
pub(crate) fn softplus<S: Simd>(s: S, x: S::V) -> S::V {
    s.add(s.max(s.splat(0.0), x), log1p_exp_neg_abs(s, x))
}

/// 2·sigmoid(x)^ln10 + 10⁻⁷, the positive non-linearity of DDSP (Engel et al. 2020, section B.5).
#[inline(always)]
pub(crate) fn exp_sigmoid<S: Simd>(s: S, x: S::V) -> S::V {
    // sigmoid(x)^ln10 = e^−ln10·(m + l) with m = max(−x, 0) and l = ln(1 + e^−|x|). The product
    // with m is kept in two parts: rounding an exponent of 15 to one float would cost six digits.
    // At m = 40 the result is 10⁻⁷ already.
    let m = s.min(s.splat(40.0), s.max(s.splat(0.0), s.neg(x)));
    let l = log1p_exp_neg_abs(s, x);
    let product = s.mul(m, s.splat(LN10_HIGH));
    let rest = s.fma(
        m,
        s.splat(LN10_LOW),
        s.fma(m, s.splat(LN10_HIGH), s.neg(product)),
    );
    let rest = s.fma(l, s.splat(LN10_HIGH), rest);
    let n = s.round(s.mul(s.add(product, rest), s.splat(-std::f32::consts::LOG2_E)));
    // −product − n·ln2 is small, so `rest` keeps its digits.
    let r = s.sub(
        s.fma(n, s.splat(-LN2_HIGH), s.neg(product)),
        s.fma(n, s.splat(LN2_LOW), rest),
    );
    s.fma(s.splat(2.0), scaled_exp(s, n, r), s.splat(1e-7))
}

/// sin(πr) for |r| ≤ 1/2.
#[inline(always)]
fn sin_pi<S: Simd>(s: S, r: S::V) -> S::V {
    s.mul(r, polynomial(s, s.mul(r, r), SIN_PI))
}

/// cos(πr) for |r| ≤ 1/2.
#[inline(always)]
fn cos_pi<S: Simd>(s: S, r: S::V) -> S::V {
    let z = s.mul(r, r);
    s.fma(z, polynomial(s, z, COS_PI), s.splat(1.0))
}

/// sin²(x).
#[inline(always)]
pub(crate) fn sin_squared<S: Simd>(s: S, x: S::V) -> S::V {
    let high = s.splat(FRAC_1_PI_HIGH);
    let n = s.round(s.mul(x, high));
    let r = s.fma(x, s.splat(FRAC_1_PI_LOW), s.fma(x, high, s.neg(n)));
    // Beyond 2²³ half-turns the remainder is meaningless; it is limited all the same.
    let r = s.max(s.splat(-0.5), s.min(s.splat(0.5), r));
    let sin = sin_pi(s, r);
    s.mul(sin, sin)
}

/// `(sin, cos)` of 2π·multiple·phase, for |multiple·phase| < 2²¹.
#[inline(always)]
pub(crate) fn sin_cos_cycles<S: Simd>(s: S, multiple: f32, phase: S::V) -> (S::V, S::V) {
    let half_turns = s.splat(2.0 * multiple);
    let n = s.round(s.mul(half_turns, phase));
    let r = s.fma(half_turns, phase, s.neg(n));
    (
        s.negate_if_odd(sin_pi(s, r), n),
        s.negate_if_odd(cos_pi(s, r), n),
    )
}
