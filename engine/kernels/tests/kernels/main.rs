//! One suite for every variant: each kernel against a plain reference in `f64`, to the bit against the scalar variant,
//! and independent of how a call is cut.

mod common;
mod elementwise;
mod frames;
mod harmonics;
mod int8;
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
macro_rules! suite_of_int8 {
    ($($variant:ident)*) => {$(
        mod $variant {
            use crate::{common, int8};

            tests! { with_int8 $variant:
                int8 product_to_the_bit;
                int8 byte_columns_do_not_matter;
                int8 longest_sums;
                int8 nothing_to_multiply_in_bytes;
                int8 frames_become_bytes;
                int8 frames_without_a_scale;
            }
        }
    )*};
}

mod of_int8 {
    suite_of_int8! { scalar avx2 avx_vnni avx512_vnni neon neon_dot }
}
