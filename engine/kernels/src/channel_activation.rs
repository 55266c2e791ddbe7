//! Activations with a learnt parameter per channel, in place.

use std::marker::PhantomData;

use crate::Kernels;
use crate::elementary;
use crate::simd::{Array, Kernel, LANES, Simd};

/// Function of a value and of the parameter of its channel.
trait ChannelFormula {
    fn apply<S: Simd>(s: S, x: S::V, parameter: S::V) -> S::V;
}

/// Below this |alpha| the quotient is all rounding, and `x` is the result to well under a unit in
/// the last place.
const SNAKE_IDENTITY_BELOW: f32 = 1e-9;

struct Snake;

impl ChannelFormula for Snake {
    #[inline(always)]
    fn apply<S: Simd>(s: S, x: S::V, alpha: S::V) -> S::V {
        let y = s.add(x, s.div(elementary::sin_squared(s, s.mul(alpha, x)), alpha));
        s.select_less(s.abs(alpha), s.splat(SNAKE_IDENTITY_BELOW), x, y)
    }
}

struct Prelu;

impl ChannelFormula for Prelu {
    #[inline(always)]
    fn apply<S: Simd>(s: S, x: S::V, slope: S::V) -> S::V {
        s.select_less(x, s.splat(0.0), s.mul(x, slope), x)
    }
}

/// `x` is `[frame][channel]`, `parameters` are `[channel]`.
struct OverChannels<'a, F> {
    x: &'a mut [f32],
    parameters: &'a [f32],
    formula: PhantomData<F>,
}

impl<F: ChannelFormula> Kernel for OverChannels<'_, F> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let channels = self.parameters.len();
        if channels < LANES {
            // A vector holds more than one frame, so the parameters repeat within it.
            let mut channel = 0;
            for chunk in self.x.chunks_mut(LANES) {
                let mut parameter: Array = [0.0; LANES];
                for lane in 0..chunk.len() {
                    parameter[lane] = self.parameters[channel];
                    channel = if channel + 1 == channels {
                        0
                    } else {
                        channel + 1
                    };
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
                let y = F::apply(
                    s,
                    s.load_padded(tail, 0.0),
                    s.load_padded(parameter_tail, 0.0),
                );
                s.store_partial(y, tail);
            }
        }
    }
}

/// Activations with learnt parameters.
impl Kernels {
    /// `x`, or `x · slope` of its channel where `x` is negative. `x` is `[frame][channel]`,
    /// `slopes` is `[channel]`.
    ///
    /// ```
    /// let mut x = [-1.0, -1.0, 2.0, 2.0];
    /// ondes_kernels::Kernels::detect().prelu(&mut x, &[0.5, 0.25]);
    /// assert_eq!(x, [-0.5, -0.25, 2.0, 2.0]);
    /// ```
    ///
    /// # Panics
    /// If `x.len()` is not a multiple of `slopes.len()`, or `slopes` is empty and `x` is not.
    pub fn prelu(self, x: &mut [f32], slopes: &[f32]) {
        self.over_channels::<Prelu>("prelu", x, slopes);
    }

    /// `x + sin²(α · x) / α`, and `x` where α is near 0. `x` is `[frame][channel]`, `alpha` is
    /// `[channel]`.
    ///
    /// ```
    /// let mut x = [0.5];
    /// ondes_kernels::Kernels::detect().snake(&mut x, &[2.0]);
    /// assert!((x[0] - (0.5 + 1.0_f32.sin().powi(2) / 2.0)).abs() < 1e-6);
    /// ```
    ///
    /// # Panics
    /// If `x.len()` is not a multiple of `alpha.len()`, or `alpha` is empty and `x` is not.
    pub fn snake(self, x: &mut [f32], alpha: &[f32]) {
        self.over_channels::<Snake>("snake", x, alpha);
    }

    fn over_channels<F: ChannelFormula>(self, name: &str, x: &mut [f32], parameters: &[f32]) {
        if x.is_empty() {
            return;
        }
        let channels = parameters.len();
        assert!(
            channels > 0,
            "{name} needs one parameter per channel, found none"
        );
        assert!(
            x.len().is_multiple_of(channels),
            "{name} over {} values of {channels} channels",
            x.len()
        );
        self.run(OverChannels {
            x,
            parameters,
            formula: PhantomData::<F>,
        });
    }
}
