//! From the sums of the gates to the state, in two parts: what needs the critical gates, and what needs the late one too. A
//! division takes as long as three multiply-adds in a row, so all quotients that the state waits for are brought over one
//! denominator.

use super::{Cell, GATES};
use crate::elementary::{exp2_of_gate, tanh_ratio};
use crate::simd::Simd;

/// What the critical gates make: the next `c` of an LSTM, or `n` of a GRU as a numerator and a denominator.
#[inline(always)]
pub(super) fn begin<S: Simd>(s: S, cell: Cell, gates: [S::V; GATES - 1], c: S::V) -> [S::V; 2] {
    match cell {
        Cell::Lstm => [lstm_cell(s, gates, c), s.splat(1.0)],
        Cell::Gru => gru_candidate(s, gates),
    }
}

/// The next state, from what [`begin`] made, the late gate and the state before.
#[inline(always)]
pub(super) fn finish<S: Simd>(s: S, cell: Cell, [begun, over]: [S::V; 2], late: S::V, h: S::V) -> S::V {
    match cell {
        Cell::Lstm => lstm_state(s, late, begun),
        Cell::Gru => gru_state(s, late, [begun, over], h),
    }
}

/// `σ(f) · c + σ(i) · tanh(g)`, with `σ(i) = 1/(1 + i)` and `σ(f) = 1/(1 + f)` multiplied out so that few steps follow the
/// polynomials: `((1 + f) · g + (1 + i) · g_over · c)/((1 + f) · (1 + i) · g_over)`. The longest way begins with `g`, then with
/// `i`; a CPU begins with what it is told first.
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
    let over = s.mul(s.fma(i, i_scale, g_over), s.fma(f, s.scale(one, f_power), one));
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
