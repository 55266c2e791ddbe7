//! Recurrent cells after their matrix products.

use crate::Kernels;
use crate::elementary::{sigmoid, tanh};
use crate::lanewise::{Lanewise, OverSlices};
use crate::simd::Simd;

struct Gru;
struct Lstm;

impl Lanewise<6, 1> for Gru {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, gates: [S::V; 6], [h]: [S::V; 1]) -> [S::V; 1] {
        let [input_r, input_z, input_n, state_r, state_z, state_n] = gates;
        let r = sigmoid(s, s.add(input_r, state_r));
        let z = sigmoid(s, s.add(input_z, state_z));
        let n = tanh(s, s.fma(r, state_n, input_n));
        // (1 − z)·n + z·h
        [s.fma(z, s.sub(h, n), n)]
    }
}

impl Lanewise<4, 2> for Lstm {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, [i, f, g, o]: [S::V; 4], [_, c]: [S::V; 2]) -> [S::V; 2] {
        let entering = s.mul(sigmoid(s, i), tanh(s, g));
        let c = s.fma(sigmoid(s, f), c, entering);
        [s.mul(sigmoid(s, o), tanh(s, c)), c]
    }
}

/// Recurrent cells, one frame at a time, with gates and formulas as in PyTorch.
impl Kernels {
    /// Advances a GRU's state by one step. Both products are `[r[H], z[H], n[H]]`, each with its
    /// bias; `h` is `[H]`: `n = tanh(input_n + r * state_n)`, `h = (1 - z) * n + z * h`.
    ///
    /// # Panics
    /// If a product is not three times as long as `h`.
    pub fn gru(self, from_input: &[f32], from_state: &[f32], h: &mut [f32]) {
        assert_eq!(
            from_input.len(),
            3 * h.len(),
            "gru: from_input must be three times as long as h"
        );
        assert_eq!(
            from_state.len(),
            3 * h.len(),
            "gru: from_state must be three times as long as h"
        );
        let ([input_r, input_z, input_n], [state_r, state_z, state_n]) =
            (parts(from_input, h.len()), parts(from_state, h.len()));
        self.run(OverSlices {
            op: Gru,
            inputs: [input_r, input_z, input_n, state_r, state_z, state_n],
            in_out: [h],
        });
    }

    /// Advances an LSTM's state by one step. `gates` is `[i[H], f[H], g[H], o[H]]`, the products
    /// already summed; `h` and `c` are `[H]`: `c = f * c + i * g`, `h = o * tanh(c)`.
    ///
    /// # Panics
    /// If `gates` is not four times as long as `h`, or `c` not as long as `h`.
    pub fn lstm(self, gates: &[f32], h: &mut [f32], c: &mut [f32]) {
        assert_eq!(
            gates.len(),
            4 * h.len(),
            "lstm: gates must be four times as long as h"
        );
        assert_eq!(c.len(), h.len(), "lstm: lengths of h and c differ");
        self.run(OverSlices {
            op: Lstm,
            inputs: parts(gates, h.len()),
            in_out: [h, c],
        });
    }
}

/// Splits `x` into parts of `width` values.
pub(crate) fn parts<const N: usize>(x: &[f32], width: usize) -> [&[f32]; N] {
    std::array::from_fn(|part| &x[part * width..][..width])
}
