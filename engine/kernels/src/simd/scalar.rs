//! Reference implementation: 16 lanes one after the other, with the operations of `f32`.

use half::f16;

use super::int8::{Int8Simd, PanelSums, QUAD, WeightQuads, ZERO_POINT};
use super::vector::{Array, EXPONENT_SHIFT, LANES, PARITY_MAGIC, POW2_MAGIC, SIGN_SHIFT, Simd};

/// Token that needs no CPU feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar;

macro_rules! lane_by_lane {
    ($($name:ident($first:ident $(, $rest:ident)*) => $lane:expr;)*) => {$(
        // Inlined into the tiles of fused networks, sixteen unrolled lanes took two thirds of this
        // crate's compile time.
        #[inline(never)]
        fn $name(self, $first: Array $(, $rest: Array)*) -> Array {
            let mut out = [0.0; LANES];
            for lane in 0..LANES {
                let $first = $first[lane];
                $(let $rest = $rest[lane];)*
                out[lane] = $lane;
            }
            out
        }
    )*};
}

impl Simd for Scalar {
    type V = Array;

    const MANY_REGISTERS: bool = false;
    const SMALL_TILES: bool = true;

    #[inline(always)]
    fn splat(self, x: f32) -> Array {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, from: &Array) -> Array {
        *from
    }

    #[inline(always)]
    fn store(self, v: Array, to: &mut Array) {
        *to = v;
    }

    #[inline(never)]
    fn load_f16(self, from: &[f16; LANES]) -> Array {
        from.map(f16::to_f32)
    }

    lane_by_lane! {
        add(a, b) => a + b;
        sub(a, b) => a - b;
        mul(a, b) => a * b;
        div(a, b) => a / b;
        fma(a, b, c) => a.mul_add(b, c);
        min(a, b) => if a < b { a } else { b };
        max(a, b) => if a > b { a } else { b };
        round(a) => a.round_ties_even();
        abs(a) => a.abs();
        copysign(a, sign) => a.copysign(sign);
        select_less(a, b, yes, no) => if a < b { yes } else { no };
        pow2(n) => f32::from_bits((n + POW2_MAGIC).to_bits() << EXPONENT_SHIFT);
        negate_if_odd(a, n) => f32::from_bits(a.to_bits() ^ ((n + PARITY_MAGIC).to_bits() << SIGN_SHIFT));
    }

    #[inline(always)]
    fn store_bytes(self, v: Array, to: &mut [u8; LANES]) {
        for lane in 0..LANES {
            to[lane] = (v[lane] + f32::from(ZERO_POINT)) as u8;
        }
    }

    #[inline(always)]
    fn duplicate_even(self, a: Array) -> Array {
        std::array::from_fn(|lane| a[lane & !1])
    }

    #[inline(always)]
    fn duplicate_odd(self, a: Array) -> Array {
        std::array::from_fn(|lane| a[lane | 1])
    }

    #[inline(always)]
    fn transpose(self, rows: [Array; LANES]) -> [Array; LANES] {
        std::array::from_fn(|lane| std::array::from_fn(|row| rows[row][lane]))
    }

    #[inline(always)]
    fn swap_pairs(self, a: Array) -> Array {
        std::array::from_fn(|lane| a[lane ^ 1])
    }

    #[inline(always)]
    fn reverse_pairs(self, a: Array) -> Array {
        std::array::from_fn(|lane| a[lane ^ 14])
    }

    #[inline(always)]
    fn high_half(self, a: Array) -> Array {
        std::array::from_fn(|lane| a[lane | 8])
    }
}

impl Int8Simd for Scalar {
    type Float = Scalar;
    type SumVector = [i32; LANES];
    type WeightVector = [i8; LANES * QUAD];
    type ValueVector = [i32; QUAD];

    #[inline(always)]
    fn float(self) -> Scalar {
        self
    }

    #[inline(always)]
    fn initial_sums(self, _: &PanelSums) -> [i32; LANES] {
        [0; LANES]
    }

    #[inline(always)]
    fn load(self, from: &WeightQuads) -> [i8; LANES * QUAD] {
        from.0
    }

    #[inline(always)]
    fn splat(self, values: [u8; QUAD]) -> [i32; QUAD] {
        values.map(|value| i32::from(value) - i32::from(ZERO_POINT))
    }

    #[inline(always)]
    fn dot(
        self,
        mut sums: [i32; LANES],
        weights: [i8; LANES * QUAD],
        values: [i32; QUAD],
    ) -> [i32; LANES] {
        for lane in 0..LANES {
            for k in 0..QUAD {
                sums[lane] += i32::from(weights[lane * QUAD + k]) * values[k];
            }
        }
        sums
    }

    #[inline(always)]
    fn to_floats(self, sums: [i32; LANES]) -> Array {
        sums.map(|sum| sum as f32)
    }
}
