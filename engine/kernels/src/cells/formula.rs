//! From the sums of the gates to the state, in two parts: from the critical gates, and from the
//! late gate.
//!
//! A division takes as long as three dependent multiply-adds, so quotients on the path of the state
//! share one denominator.

use super::{CellKind, GATES};
use crate::elementary::{exp2_of_gate, tanh_ratio};
use crate::simd::Simd;

/// Returns the result of the critical gates: the next `c` of an LSTM, or `n` of a GRU as numerator
/// and denominator.
#[inline(always)]
pub(super) fn update_critical<S: Simd>(
    s: S,
    cell: CellKind,
    gates: [S::V; GATES - 1],
    c: S::V,
) -> [S::V; 2] {
    match cell {
        CellKind::Lstm => [lstm_cell(s, gates, c), s.splat(1.0)],
        CellKind::Gru => gru_candidate(s, gates),
    }
}

/// Returns the next state from the result of [`update_critical`], the late gate and the previous
/// state.
#[inline(always)]
pub(super) fn next_state<S: Simd>(
    s: S,
    cell: CellKind,
    [partial, over]: [S::V; 2],
    late: S::V,
    h: S::V,
) -> S::V {
    match cell {
        CellKind::Lstm => lstm_state(s, late, partial),
        CellKind::Gru => gru_state(s, late, [partial, over], h),
    }
}

/// `σ(f) · c + σ(i) · tanh(g)`, with `σ(i) = 1/(1 + i)` and `σ(f) = 1/(1 + f)` multiplied out so
/// that few steps follow the polynomials:
/// `((1 + f) · g + (1 + i) · g_over · c)/((1 + f) · (1 + i) · g_over)`. The longest path begins
/// with `g`, the next with `i`, so their instructions come first.
#[inline(always)]
fn lstm_cell<S: Simd>(s: S, [i, f, g]: [S::V; 3], c: S::V) -> S::V {
    let one = s.splat(1.0);
    let (g, g_over) = tanh_ratio(s, g, one);
    let g_over = s.in_turn(g_over);
    let (i, i_power) = exp2_of_gate(s, s.in_turn(i));
    let i = s.in_turn(i);
    let (f, f_power) = exp2_of_gate(s, s.in_turn(f));
    let f = s.in_turn(f);
    let i_scale = s.scale(g_over, i_power);
    let over = s.mul(
        s.fma(i, i_scale, g_over),
        s.fma(f, s.scale(one, f_power), one),
    );
    let without_i = s.fma(f, s.scale(g, f_power), s.fma(g_over, c, g));
    s.div(s.fma(i, s.mul(i_scale, c), without_i), over)
}

/// `σ(o) · tanh(c)`, with `σ(o) = 1/(1 + o)`
#[inline(always)]
fn lstm_state<S: Simd>(s: S, o: S::V, c: S::V) -> S::V {
    let (o, power) = exp2_of_gate(s, o);
    let one = s.splat(1.0);
    let (h, over) = tanh_ratio(s, c, s.fma(o, s.scale(one, power), one));
    s.div(h, over)
}

/// `n = tanh(n_x + σ(r) · n_h)`
#[inline(always)]
fn gru_candidate<S: Simd>(s: S, [r, n_x, n_h]: [S::V; 3]) -> [S::V; 2] {
    let (r, power) = exp2_of_gate(s, r);
    let one = s.splat(1.0);
    let reset = s.div(n_h, s.fma(r, s.scale(one, power), one));
    let (n, over) = tanh_ratio(s, s.add(reset, n_x), one);
    [n, over]
}

/// `(1 − σ(z)) · n + σ(z) · h`, with `σ(z) = 1/(1 + z)` and `1 − σ(z) = z · σ(z)`
#[inline(always)]
fn gru_state<S: Simd>(s: S, z: S::V, [n, over]: [S::V; 2], h: S::V) -> S::V {
    let (z, power) = exp2_of_gate(s, z);
    let z = s.scale(z, power);
    s.div(s.fma(z, n, s.mul(over, h)), s.fma(z, over, over))
}
