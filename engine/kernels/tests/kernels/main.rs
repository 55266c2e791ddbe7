//! One suite for every variant: each kernel against a plain reference in `f64`, to the bit against the scalar variant,
//! and independent of how a call is cut.

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

            tests! { $variant:
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
    ($variant:ident: $($module:ident $test:ident;)*) => {$(
        #[test]
        fn $test() {
            common::with(stringify!($variant), $module::$test);
        }
    )*};
}

suite! { scalar avx2 avx512 neon }
