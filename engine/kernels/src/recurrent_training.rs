//! Recurrent cells in training: steps that keep what their gradients need, and the gradients of a
//! step.
//!
//! Gates and formulas are those of [`Kernels::gru`] and [`Kernels::lstm`].

use crate::Kernels;
use crate::elementary::{sigmoid, tanh};
use crate::lanewise::{Lanewise, OverSlices};
use crate::recurrent::parts;
use crate::simd::Simd;

struct LstmStep;
struct LstmGradient;
struct GruStep;
struct GruGradient;

impl Lanewise<5, 6> for LstmStep {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, state: [S::V; 5], [i, f, g, o, _, _]: [S::V; 6]) -> [S::V; 6] {
        let [state_i, state_f, state_g, state_o, c_before] = state;
        let i = sigmoid(s, s.add(i, state_i));
        let f = sigmoid(s, s.add(f, state_f));
        let g = tanh(s, s.add(g, state_g));
        let o = sigmoid(s, s.add(o, state_o));
        let c = s.fma(f, c_before, s.mul(i, g));
        [i, f, g, o, c, s.mul(o, tanh(s, c))]
    }
}

impl Lanewise<8, 5> for LstmGradient {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, kept: [S::V; 8], [.., dc]: [S::V; 5]) -> [S::V; 5] {
        let [i, f, g, o, c_before, c, dy, dh] = kept;
        let dh = s.add(dy, dh);
        let bent = tanh(s, c);
        let dc = s.fma(s.mul(dh, o), tanh_slope(s, bent), dc);
        let d_i = s.mul(s.mul(dc, g), sigmoid_slope(s, i));
        let d_f = s.mul(s.mul(dc, c_before), sigmoid_slope(s, f));
        let d_g = s.mul(s.mul(dc, i), tanh_slope(s, g));
        let d_o = s.mul(s.mul(dh, bent), sigmoid_slope(s, o));
        [d_i, d_f, d_g, d_o, s.mul(dc, f)]
    }
}

impl Lanewise<4, 5> for GruStep {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, state: [S::V; 4], [r, z, n, _, _]: [S::V; 5]) -> [S::V; 5] {
        let [state_r, state_z, state_n, h_before] = state;
        let r = sigmoid(s, s.add(r, state_r));
        let z = sigmoid(s, s.add(z, state_z));
        let n = tanh(s, s.fma(r, state_n, n));
        [r, z, n, state_n, s.fma(z, s.sub(h_before, n), n)]
    }
}

impl Lanewise<7, 7> for GruGradient {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, kept: [S::V; 7], [.., dh]: [S::V; 7]) -> [S::V; 7] {
        let [r, z, n, state_n, h_before, dy, from_next] = kept;
        let dh = s.add(s.add(dy, from_next), dh);
        let d_n = s.mul(s.mul(dh, s.sub(s.splat(1.0), z)), tanh_slope(s, n));
        let d_z = s.mul(s.mul(dh, s.sub(h_before, n)), sigmoid_slope(s, z));
        let d_r = s.mul(s.mul(d_n, state_n), sigmoid_slope(s, r));
        [d_r, d_z, d_n, d_r, d_z, s.mul(d_n, r), s.mul(dh, z)]
    }
}

/// Returns the slope of the logistic function where it is `y`.
#[inline(always)]
fn sigmoid_slope<S: Simd>(s: S, y: S::V) -> S::V {
    s.mul(y, s.sub(s.splat(1.0), y))
}

/// Returns the slope of the hyperbolic tangent where it is `y`.
#[inline(always)]
fn tanh_slope<S: Simd>(s: S, y: S::V) -> S::V {
    s.sub(s.splat(1.0), s.mul(y, y))
}

/// Recurrent cells in training, one frame of one stream at a time. `H` is the number of units.
impl Kernels {
    /// Advances an LSTM. `gates` is `[i[H], f[H], g[H], o[H]]`: the product of the input with its
    /// bias, and afterwards the activated gates. `from_state` is the product of the state, in the
    /// same order; `c_before`, `c` and `h` are `[H]`.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn lstm_step(
        self,
        from_state: &[f32],
        c_before: &[f32],
        gates: &mut [f32],
        c: &mut [f32],
        h: &mut [f32],
    ) {
        let width = h.len();
        check(
            "lstm_step",
            width,
            &[
                (from_state.len(), 4),
                (c_before.len(), 1),
                (gates.len(), 4),
                (c.len(), 1),
            ],
        );
        let [i, f, g, o] = parts(from_state, width);
        let [gate_i, gate_f, gate_g, gate_o] = parts_mut(gates, width);
        let in_out = [gate_i, gate_f, gate_g, gate_o, c, h];
        self.run(OverSlices {
            op: LstmStep,
            inputs: [i, f, g, o, c_before],
            in_out,
        });
    }

    /// Goes back over a step of [`Kernels::lstm_step`]: from the gradients of its `h`, which is the
    /// sum of `dh`, and of its `c`, which is `dc`, to those of the gates' sums,
    /// `[i[H], f[H], g[H], o[H]]`, and of `c_before`, in `dc`.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn lstm_step_gradient(
        self,
        gates: &[f32],
        [c_before, c]: [&[f32]; 2],
        dh: [&[f32]; 2],
        d_gates: &mut [f32],
        dc: &mut [f32],
    ) {
        let width = dc.len();
        let ones = [c_before.len(), c.len(), dh[0].len(), dh[1].len()].map(|length| (length, 1));
        check(
            "lstm_step_gradient",
            width,
            &[(gates.len(), 4), (d_gates.len(), 4)],
        );
        check("lstm_step_gradient", width, &ones);
        let [i, f, g, o] = parts(gates, width);
        let [d_i, d_f, d_g, d_o] = parts_mut(d_gates, width);
        let inputs = [i, f, g, o, c_before, c, dh[0], dh[1]];
        self.run(OverSlices {
            op: LstmGradient,
            inputs,
            in_out: [d_i, d_f, d_g, d_o, dc],
        });
    }

    /// Advances a GRU. `gates` is `[r[H], z[H], n[H]]`: the product of the input with its bias, and
    /// afterwards the activated gates. `from_state` is the product of the state with its bias, in
    /// the same order, of which `kept`, `[H]`, gets the last; `h_before` and `h` are `[H]`.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn gru_step(
        self,
        from_state: &[f32],
        h_before: &[f32],
        gates: &mut [f32],
        kept: &mut [f32],
        h: &mut [f32],
    ) {
        let width = h.len();
        check(
            "gru_step",
            width,
            &[
                (from_state.len(), 3),
                (h_before.len(), 1),
                (gates.len(), 3),
                (kept.len(), 1),
            ],
        );
        let [r, z, n] = parts(from_state, width);
        let [gate_r, gate_z, gate_n] = parts_mut(gates, width);
        let in_out = [gate_r, gate_z, gate_n, kept, h];
        self.run(OverSlices {
            op: GruStep,
            inputs: [r, z, n, h_before],
            in_out,
        });
    }

    /// Goes back over a step of [`Kernels::gru_step`], from the gradient of its `h`, which is the
    /// sum of `dh` and `direct`: to those of the gates' sums of the input and of the state,
    /// `[r[H], z[H], n[H]]` each, and to the part of that of `h_before` which passes no gate, in
    /// `direct`.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn gru_step_gradient(
        self,
        gates: &[f32],
        [kept, h_before]: [&[f32]; 2],
        dh: [&[f32]; 2],
        [d_gates, d_state]: [&mut [f32]; 2],
        direct: &mut [f32],
    ) {
        let width = direct.len();
        let ones = [kept.len(), h_before.len(), dh[0].len(), dh[1].len()].map(|length| (length, 1));
        check(
            "gru_step_gradient",
            width,
            &[(gates.len(), 3), (d_gates.len(), 3), (d_state.len(), 3)],
        );
        check("gru_step_gradient", width, &ones);
        let [r, z, n] = parts(gates, width);
        let [d_r, d_z, d_n] = parts_mut(d_gates, width);
        let [state_r, state_z, state_n] = parts_mut(d_state, width);
        let inputs = [r, z, n, kept, h_before, dh[0], dh[1]];
        self.run(OverSlices {
            op: GruGradient,
            inputs,
            in_out: [d_r, d_z, d_n, state_r, state_z, state_n, direct],
        });
    }
}

/// Checks lengths of slices, each a multiple of `width`.
fn check(name: &str, width: usize, lengths: &[(usize, usize)]) {
    for &(length, times) in lengths {
        assert_eq!(
            length,
            times * width,
            "{name}: a slice of {length} values for {width} units"
        );
    }
}

/// Splits `x` into parts of `width` values.
fn parts_mut<const N: usize>(mut x: &mut [f32], width: usize) -> [&mut [f32]; N] {
    std::array::from_fn(|_| x.split_off_mut(..width).expect("the length is checked"))
}
