//! Conditioning of a frame: gated activation (WaveNet) and feature-wise modulation (FiLM).

use crate::Kernels;
use crate::elementary::{sigmoid, tanh};
use crate::lanewise::{Lanewise, OverSlices};
use crate::simd::Simd;

struct Gate;
struct Film;

impl Lanewise<2, 1> for Gate {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, [filter, gate]: [S::V; 2], _: [S::V; 1]) -> [S::V; 1] {
        [s.mul(tanh(s, filter), sigmoid(s, gate))]
    }
}

impl Lanewise<2, 1> for Film {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, [scale, shift]: [S::V; 2], [x]: [S::V; 1]) -> [S::V; 1] {
        [s.fma(x, scale, shift)]
    }
}

/// Conditioning, one frame at a time.
impl Kernels {
    /// Computes `y = tanh(filter) * sigmoid(gate)`, where `x` is `[filter[C], gate[C]]` and `y` is
    /// `[C]`.
    ///
    /// # Panics
    /// If `x` is not twice as long as `y`.
    pub fn gate(self, x: &[f32], y: &mut [f32]) {
        assert_eq!(x.len(), 2 * y.len(), "gate: x must be twice as long as y");
        let (filter, gate) = x.split_at(y.len());
        self.run(OverSlices {
            op: Gate,
            inputs: [filter, gate],
            in_out: [y],
        });
    }

    /// Computes `x = x * scale + shift`, where `condition` is `[scale[C], shift[C]]` and `x` is
    /// `[C]`.
    ///
    /// ```
    /// let mut x = [1.0, 2.0];
    /// ondes_kernels::Kernels::detect().film(&mut x, &[10.0, 100.0, 0.5, 0.25]);
    /// assert_eq!(x, [10.5, 200.25]);
    /// ```
    ///
    /// # Panics
    /// If `condition` is not twice as long as `x`.
    pub fn film(self, x: &mut [f32], condition: &[f32]) {
        assert_eq!(
            condition.len(),
            2 * x.len(),
            "film: condition must be twice as long as x"
        );
        let (scale, shift) = condition.split_at(x.len());
        self.run(OverSlices {
            op: Film,
            inputs: [scale, shift],
            in_out: [x],
        });
    }
}
