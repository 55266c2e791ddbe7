//! One suite for every variant: each kernel against a plain reference in `f64`, to the bit against the scalar variant,
//! and independent of how a call is cut.

mod bytes;
mod common;
mod elementwise;
mod frames;
mod harmonics;
mod matmul;
mod sound;
mod timewise;

/// Instantiates the suite for a variant; where the CPU lacks it, its tests have nothing to do.
macro_rules! suite {
    ($($variant:ident)*) => {$(
        mod $variant {
            use crate::{common, elementwise, frames, harmonics, matmul, sound};

            tests! { with $variant:
                elementwise accuracy;
                elementwise special_values;
                elementwise anywhere_in_a_slice;
                elementwise same_bits;
                elementwise arithmetic;
                elementwise snake_with_any_channels;
                elementwise prelu_with_any_channels;
                frames gate;
                frames film;
                frames layer_norm;
                frames gru;
                frames lstm;
                frames complex_multiply_add;
                frames same_bits_of_frames;
                harmonics against_f64;
                harmonics many_equal_harmonics;
                harmonics same_bits_of_harmonics;
                harmonics glide_continues;
                harmonics silence;
                matmul against_reference;
                matmul one_chain_to_the_bit;
                matmul columns_do_not_matter;
                matmul nothing_to_multiply;
                sound white_noise;
                sound real_bins;
            }
        }
    )*};
}

macro_rules! tests {
    ($with:ident $variant:ident: $($module:ident $test:ident;)*) => {$(
        #[test]
        fn $test() {
            common::$with(stringify!($variant), $module::$test);
        }
    )*};
}

suite! { scalar avx2 avx512 neon }

/// The same for products of bytes, of which there are more variants.
macro_rules! suite_of_bytes {
    ($($variant:ident)*) => {$(
        mod $variant {
            use crate::{bytes, common};

            tests! { with_bytes $variant:
                bytes product_to_the_bit;
                bytes byte_columns_do_not_matter;
                bytes longest_sums;
                bytes nothing_to_multiply_in_bytes;
                bytes frames_become_bytes;
                bytes frames_without_a_scale;
            }
        }
    )*};
}

mod of_bytes {
    suite_of_bytes! { scalar avx2 avx_vnni avx512_vnni neon neon_dot }
}
