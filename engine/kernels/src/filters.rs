//! Filters at chosen positions of a signal: the inner loop of a polyphase resampler.

use crate::Kernels;
use crate::norm::sum;
use crate::simd::{Kernel, LANES, Simd};

/// Filter and position of one output sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterPosition {
    /// Number of the filter.
    pub filter: u32,
    /// First sample of the signal that the filter reads.
    pub start: u32,
}

struct Filters<'a> {
    taps: &'a [f32],
    length: usize,
    signal: &'a [f32],
    positions: &'a [FilterPosition],
    out: &'a mut [f32],
}

impl Kernel for Filters<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Filters {
            taps,
            length,
            signal,
            positions,
            out,
        } = self;
        for (out, position) in out.iter_mut().zip(positions) {
            let taps = &taps[position.filter as usize * length..][..length];
            let window = &signal[position.start as usize..][..length];
            let mut products = s.splat(0.0);
            for (taps, window) in taps.as_chunks().0.iter().zip(window.as_chunks().0) {
                products = s.fma(s.load(taps), s.load(window), products);
            }
            *out = sum(s, products);
        }
    }
}

/// Filters with finite impulse responses.
impl Kernels {
    /// Length of filters for [`Kernels::filters`] is a multiple of this number.
    pub const FILTER_UNIT: usize = LANES;

    /// Computes `out[k] = Σ_i taps[filter · length + i] · signal[start + i]` with `filter` and
    /// `start` of `positions[k]`.
    ///
    /// ```
    /// use ondes_kernels::{FilterPosition, Kernels};
    ///
    /// let mut taps = [0.0; 2 * 16];
    /// (taps[0], taps[16], taps[17]) = (1.0, 0.5, 0.5);
    /// let signal: Vec<f32> = (0..20).map(|n| n as f32).collect();
    /// let at = |filter, start| FilterPosition { filter, start };
    /// let mut out = [0.0; 2];
    /// Kernels::detect().filters(&taps, 16, &signal, &[at(0, 3), at(1, 3)], &mut out);
    /// assert_eq!(out, [3.0, 3.5]);
    /// ```
    ///
    /// # Panics
    /// If `length` is no multiple of [`Kernels::FILTER_UNIT`], if `positions` and `out` differ in
    /// length, or if a filter or a position is out of range.
    pub fn filters(
        self,
        taps: &[f32],
        length: usize,
        signal: &[f32],
        positions: &[FilterPosition],
        out: &mut [f32],
    ) {
        assert!(
            length.is_multiple_of(LANES),
            "filters: {length} taps are no whole number of vectors"
        );
        assert_eq!(
            positions.len(),
            out.len(),
            "filters: a position per output sample"
        );
        self.run(Filters {
            taps,
            length,
            signal,
            positions,
            out,
        });
    }
}
