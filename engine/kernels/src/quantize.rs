//! Quantization of frames to eight bits, each with the scale that maps its peak to ±127.

use crate::Kernels;
use crate::int8_matrix::int8_frame_width;
use crate::simd::{Array, Kernel, LANES, Simd, ZERO_POINT};

/// Largest magnitude of a code, relative to the zero point.
const LARGEST: f32 = 127.0;
/// Frames with a lower peak are silence, so that neither a scale nor its inverse is subnormal or
/// infinite.
const SILENCE: f32 = LARGEST * f32::MIN_POSITIVE;

struct Quantize<'a> {
    x: &'a [f32],
    channels: usize,
    codes: &'a mut [u8],
    scales: &'a mut [f32],
}

impl Kernel for Quantize<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Quantize {
            x,
            channels,
            codes,
            scales,
        } = self;
        let frames = x
            .chunks_exact(channels)
            .zip(codes.chunks_exact_mut(int8_frame_width(channels)));
        for ((x, codes), scale) in frames.zip(scales) {
            let (inverse, frame_scale) = scale_of(s, x);
            *scale = frame_scale;
            let (chunks, tail) = x.as_chunks();
            let (whole, rest) = codes.split_at_mut(chunks.len() * LANES);
            for (chunk, to) in chunks.iter().zip(whole.as_chunks_mut().0) {
                s.store_bytes(to_codes(s, s.load(chunk), inverse), to);
            }
            // The last values and the padding of the frame.
            let mut last = [ZERO_POINT; LANES];
            s.store_bytes(to_codes(s, s.load_padded(tail, 0.0), inverse), &mut last);
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

/// Returns the inverse scale and the scale of a frame. The scale is NaN if a value is not finite,
/// so that the error stays visible in the products.
#[inline(always)]
fn scale_of<S: Simd>(s: S, x: &[f32]) -> (f32, f32) {
    let (mut peaks, mut not_finite) = (s.splat(0.0), s.splat(0.0));
    let (chunks, tail) = x.as_chunks();
    let mut scan = |v: S::V| {
        peaks = s.max(s.abs(v), peaks);
        // Zero times infinity or NaN is NaN.
        not_finite = s.fma(v, s.splat(0.0), not_finite);
    };
    chunks.iter().for_each(|chunk| scan(s.load(chunk)));
    scan(s.load_padded(tail, 0.0));
    let (mut peak, mut nan): (Array, Array) = ([0.0; LANES], [0.0; LANES]);
    s.store(peaks, &mut peak);
    s.store(not_finite, &mut nan);
    let peak = peak
        .into_iter()
        .fold(0.0, |max: f32, lane| if lane > max { lane } else { max });
    if nan.iter().any(|lane| lane.is_nan()) {
        (0.0, f32::NAN)
    } else if peak < SILENCE {
        (0.0, 0.0)
    } else {
        (LARGEST / peak, peak / LARGEST)
    }
}

/// Rounds scaled values to integers from −127 to 127.
#[inline(always)]
fn to_codes<S: Simd>(s: S, x: S::V, inverse_scale: f32) -> S::V {
    let rounded = s.round(s.mul(x, s.splat(inverse_scale)));
    s.max(s.min(rounded, s.splat(LARGEST)), s.splat(-LARGEST))
}

/// Quantization.
impl Kernels {
    /// Quantizes frames `[frame][channel]` to eight bits.
    ///
    /// `codes [frame][int8_frame_width(channels)]` become `128 + round(x / scale)`, halves to even,
    /// with padding of
    /// 128. The scale of a frame is its largest magnitude over 127, 0 for silence and NaN if a
    ///      value is not finite.
    ///
    /// ```
    /// use ondes_kernels::{Kernels, int8_frame_width};
    ///
    /// let (mut codes, mut scales) = (vec![0; int8_frame_width(3)], [0.0]);
    /// Kernels::detect().quantize(&[1.27, -0.5, 0.0], 3, &mut codes, &mut scales);
    /// assert_eq!(codes, [255, 78, 128, 128]);
    /// ```
    ///
    /// # Panics
    /// If `channels` is 0, `x` is not whole frames, or `codes` or `scales` has another number of
    /// frames.
    pub fn quantize(self, x: &[f32], channels: usize, codes: &mut [u8], scales: &mut [f32]) {
        assert!(
            channels > 0 && x.len().is_multiple_of(channels),
            "quantize: {} values of {channels} channels",
            x.len()
        );
        let frames = x.len() / channels;
        assert_eq!(
            codes.len(),
            frames * int8_frame_width(channels),
            "quantize: codes of {frames} frames"
        );
        assert_eq!(scales.len(), frames, "quantize: a scale for each frame");
        self.run(Quantize {
            x,
            channels,
            codes,
            scales,
        });
    }
}
