//! One suite for every variant: each kernel against a plain reference in `f64`, to the bit against
//! the scalar variant, and independent of the division into calls.

mod cells;
mod common;
mod elementwise;
mod frames;
mod fused;
mod harmonics;
mod int8;
mod matmul;
mod sound;

/// Instantiates the suite for each variant; the tests of variants that the CPU lacks do nothing.
macro_rules! suite {
    ($($variant:ident)*) => {$(
        mod $variant {
            use crate::{common, elementwise, frames, harmonics, matmul, sound};

            tests! { with $variant:
                elementwise accuracy;
                elementwise special_values;
                elementwise any_cut_of_a_slice;
                elementwise same_bits;
                elementwise arithmetic;
                elementwise snake_with_any_channels;
                elementwise prelu_with_any_channels;
                frames gate;
                frames film;
                frames layer_norm;
                frames softmax;
                frames gru;
                frames lstm;
                frames gru_in_training;
                frames lstm_in_training;
                frames complex_multiply_add;
                frames filters;
                frames same_bits_of_frames;
                harmonics against_f64;
                harmonics many_equal_harmonics;
                harmonics same_bits_of_harmonics;
                harmonics glide_continues;
                harmonics silence;
                matmul against_reference;
                matmul one_chain_to_the_bit;
                matmul half_precision_to_the_bit;
                matmul columns_are_independent;
                matmul empty_products;
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

/// Instantiates the suite for each variant of products in eight bits.
macro_rules! suite_of_int8 {
    ($($variant:ident)*) => {$(
        mod $variant {
            use crate::{common, int8};

            tests! { with_int8 $variant:
                int8 product_to_the_bit;
                int8 int8_columns_are_independent;
                int8 longest_sums;
                int8 empty_int8_products;
                int8 frames_are_quantized;
                int8 silent_and_broken_frames;
            }
        }
    )*};
}

mod of_int8 {
    suite_of_int8! { scalar avx2 avx_vnni avx512_vnni neon neon_dot }
}
