//! Frames of bytes: each with the scale that makes its largest value ±127.

use crate::Kernels;
use crate::int8_matrix::int8_frame_width;
use crate::simd::{Array, Kernel, LANES, Simd, ZERO_POINT};

/// The largest byte, above and below zero.
const LARGEST: f32 = 127.0;
/// Frames below this are silence: neither a scale nor its inverse leaves the range of normal numbers.
const SILENCE: f32 = LARGEST * f32::MIN_POSITIVE;

struct Quantize<'a> {
    x: &'a [f32],
    channels: usize,
    bytes: &'a mut [u8],
    scales: &'a mut [f32],
}

impl Kernel for Quantize<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Quantize { x, channels, bytes, scales } = self;
        let frames = x.chunks_exact(channels).zip(bytes.chunks_exact_mut(int8_frame_width(channels)));
        for ((x, bytes), scale) in frames.zip(scales) {
            let (steps, step) = steps_of(s, x);
            *scale = step;
            let (chunks, tail) = x.as_chunks();
            let (whole, rest) = bytes.split_at_mut(chunks.len() * LANES);
            for (chunk, to) in chunks.iter().zip(whole.as_chunks_mut().0) {
                s.store_bytes(to_steps(s, s.load(chunk), steps), to);
            }
            // The last values, and whatever fills up the frame.
            let mut last = [ZERO_POINT; LANES];
            s.store_bytes(to_steps(s, s.load_padded(tail, 0.0), steps), &mut last);
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

/// How many steps a frame's values are, per unit, and how large a step is. A frame that holds a NaN or an infinity has steps
/// that are none, so that it spoils what is made of it.
#[inline(always)]
fn steps_of<S: Simd>(s: S, x: &[f32]) -> (f32, f32) {
    let (mut peaks, mut broken) = (s.splat(0.0), s.splat(0.0));
    let (chunks, tail) = x.as_chunks();
    let mut hear = |v: S::V| {
        peaks = s.max(s.abs(v), peaks);
        // Zero times what is not finite is no number.
        broken = s.fma(v, s.splat(0.0), broken);
    };
    chunks.iter().for_each(|chunk| hear(s.load(chunk)));
    hear(s.load_padded(tail, 0.0));
    let (mut peak, mut spoilt): (Array, Array) = ([0.0; LANES], [0.0; LANES]);
    s.store(peaks, &mut peak);
    s.store(broken, &mut spoilt);
    let peak = peak.into_iter().fold(0.0, |most: f32, lane| if lane > most { lane } else { most });
    if spoilt.iter().any(|lane| lane.is_nan()) {
        (0.0, f32::NAN)
    } else if peak < SILENCE {
        (0.0, 0.0)
    } else {
        (LARGEST / peak, peak / LARGEST)
    }
}

#[inline(always)]
fn to_steps<S: Simd>(s: S, x: S::V, steps: f32) -> S::V {
    let whole = s.round(s.mul(x, s.splat(steps)));
    s.max(s.min(whole, s.splat(LARGEST)), s.splat(-LARGEST))
}

/// From floats to bytes.
impl Kernels {
    /// Brings frames `[frame][channel]` to eight bits: `bytes [frame][int8_frame_width(channels)]` are `128 + round(x / scale)`,
    /// halves to even, and a frame's scale is its largest magnitude over 127; what fills up a frame is 128. A frame with a
    /// value that is not finite has a scale that is no number.
    ///
    /// # Panics
    /// If `channels` is 0, `x` is not whole frames, or `bytes` and `scales` are not as many.
    pub fn quantize(self, x: &[f32], channels: usize, bytes: &mut [u8], scales: &mut [f32]) {
        assert!(
            channels > 0 && x.len().is_multiple_of(channels),
            "quantize: {} values of {channels} channels",
            x.len()
        );
        let frames = x.len() / channels;
        assert_eq!(bytes.len(), frames * int8_frame_width(channels), "quantize: bytes of {frames} frames");
        assert_eq!(scales.len(), frames, "quantize: a scale for each frame");
        self.run(Quantize { x, channels, bytes, scales });
    }
}
