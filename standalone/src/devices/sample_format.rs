//! Conversion between interleaved device formats and planar `f32`.

use std::ops::Range;

use cpal::{Data, FromSample, I24, SampleFormat, SizedSample, U24};

/// Evaluates an expression with the type of a sample format; `None` for formats other than linear
/// PCM.
macro_rules! with_sample {
    ($format:expr, $Sample:ident => $code:expr) => {
        with_sample!($format, $Sample => $code,
            I8 i8, I16 i16, I24 I24, I32 i32, I64 i64, U8 u8, U16 u16, U24 U24, U32 u32, U64 u64, F32 f32, F64 f64)
    };
    ($format:expr, $Sample:ident => $code:expr, $($variant:ident $type:ty),*) => {
        match $format {
            $(SampleFormat::$variant => {
                type $Sample = $type;
                $code
            })*
            _ => None,
        }
    };
}

/// Largest value for integer formats, one 24-bit step below 1 (representable in `f32`): 1 itself
/// would wrap around in 24 bits.
const FULL_SCALE: f32 = 1.0 - 1.0 / 8_388_608.0;

/// Returns whether the format is supported.
pub(super) fn is_known(format: SampleFormat) -> bool {
    with_sample!(format, Sample => Some(size_of::<Sample>())).is_some()
}

/// Passes all samples of a device buffer to `take`, interleaved, in −1 … 1.
pub(super) fn read(data: &Data, take: impl FnOnce(&mut dyn ExactSizeIterator<Item = f32>)) {
    fn read<T: SizedSample>(
        data: &Data,
        take: impl FnOnce(&mut dyn ExactSizeIterator<Item = f32>),
    ) -> Option<()>
    where
        f32: FromSample<T>,
    {
        take(
            &mut data
                .as_slice::<T>()?
                .iter()
                .map(|sample| f32::from_sample_(*sample)),
        );
        Some(())
    }
    // Unsupported formats were refused when the device was opened.
    let _known: Option<()> =
        with_sample!(data.sample_format(), Sample => read::<Sample>(data, take));
}

/// Writes `frames` of a device buffer from planar sound, clipped for integer formats.
pub(super) fn write(data: &mut Data, frames: Range<usize>, planar: &[Vec<f32>]) {
    fn write<T: SizedSample + FromSample<f32>>(
        data: &mut Data,
        frames: Range<usize>,
        planar: &[Vec<f32>],
    ) -> Option<()> {
        let (least, most) = if T::FORMAT.is_float() {
            (f32::NEG_INFINITY, f32::INFINITY)
        } else {
            (-1.0, FULL_SCALE)
        };
        let channels = planar.len();
        let samples = data.as_slice_mut::<T>()?;
        let samples = samples.get_mut(frames.start * channels..frames.end * channels)?;
        for (frame, interleaved) in samples.chunks_exact_mut(channels).enumerate() {
            for (sample, channel) in interleaved.iter_mut().zip(planar) {
                *sample = T::from_sample_(channel[frame].clamp(least, most));
            }
        }
        Some(())
    }
    let _known: Option<()> =
        with_sample!(data.sample_format(), Sample => write::<Sample>(data, frames, planar));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_linear_formats_are_supported() {
        use SampleFormat::*;
        for format in [I8, I16, I24, I32, I64, U8, U16, U24, U32, U64, F32, F64] {
            assert!(is_known(format), "{format}");
        }
        for format in [DsdU8, DsdU16, DsdU32] {
            assert!(!is_known(format), "{format}");
        }
    }

    /// Wraps a slice as a device buffer.
    #[allow(unsafe_code)]
    fn data<T: SizedSample>(samples: &mut [T]) -> Data {
        // SAFETY: pointer, length and format are those of the slice, which outlives the returned
        // value in these tests.
        unsafe { Data::from_parts(samples.as_mut_ptr().cast(), samples.len(), T::FORMAT) }
    }

    /// Writes two channels of three frames to the last three of four frames.
    fn written<T: SizedSample>(untouched: T) -> Vec<T> {
        let planar = [vec![0.0, 0.5, 2.0], vec![-0.25, -1.0, -2.0]];
        let mut samples = vec![untouched; 8];
        write(&mut data(&mut samples), 1..4, &planar);
        samples
    }

    fn read_back<T: SizedSample>(mut samples: Vec<T>) -> Vec<f32> {
        let mut heard = Vec::new();
        read(&data(&mut samples), |samples| heard.extend(samples));
        heard
    }

    #[test]
    fn integers_use_full_scale_and_clip() {
        let sixteen = written(7i16);
        assert_eq!(
            sixteen,
            [7, 7, 0, -0x2000, 0x4000, i16::MIN, i16::MAX, i16::MIN]
        );
        assert_eq!(read_back(sixteen)[2..6], [0.0, -0.25, 0.5, -1.0]);
        let eight = written(7u8);
        assert_eq!(eight, [7, 7, 0x80, 0x60, 0xC0, 0, 0xFF, 0]);
        assert_eq!(read_back(eight)[2..6], [0.0, -0.25, 0.5, -1.0]);
        let thirty_two = written(7i32);
        assert_eq!(
            thirty_two[..6],
            [7, 7, 0, -0x2000_0000, 0x4000_0000, i32::MIN]
        );
        assert_eq!(thirty_two[6..], [i32::MAX - 0xFF, i32::MIN]);
        let twenty_four: Vec<i32> = written(I24::new(7).unwrap())
            .into_iter()
            .map(I24::inner)
            .collect();
        assert_eq!(
            twenty_four[2..],
            [0, -0x20_0000, 0x40_0000, -0x80_0000, 0x7F_FFFF, -0x80_0000]
        );
    }

    #[test]
    fn floating_point_is_unchanged() {
        let samples = [0.0, -0.25, 0.5, -1.0, 2.0, -2.0];
        assert_eq!(written(7.0f32)[2..], samples);
        assert_eq!(written(7.0f64)[2..], samples.map(f64::from));
        assert_eq!(read_back(written(7.0f32))[2..], samples);
    }
}
