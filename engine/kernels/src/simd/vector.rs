//! The vector operations that each CPU variant implements, and the kernels written against them.

use half::f16;

/// Lanes of a vector, in every variant: one AVX-512 register, two of AVX2, four of NEON.
pub(crate) const LANES: usize = 16;

/// Memory of a vector.
pub(crate) type Array = [f32; LANES];

/// Proof of a set of CPU features, with the vector operations that they offer.
///
/// All variants follow this contract bit for bit, also where IEEE 754 leaves a choice.
pub(crate) trait Simd: Copy {
    /// 16 lanes of `f32`.
    type V: Copy;

    /// `true` if 24 vectors and their operands fit into the registers, `false` if 6 to 8 do.
    const MANY_REGISTERS: bool;

    /// `true` if larger tiles are no faster, and would only take time to compile.
    const SMALL_TILES: bool = false;

    fn splat(self, x: f32) -> Self::V;
    fn load(self, from: &Array) -> Self::V;
    fn store(self, v: Self::V, to: &mut Array);
    /// Loads finite values in half precision and widens them, which is exact.
    fn load_f16(self, from: &[f16; LANES]) -> Self::V;

    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `if a < b { a } else { b }`: keeps a NaN in `b`.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// `if a > b { a } else { b }`: keeps a NaN in `b`.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// Rounds to the nearest integer, halves to even.
    fn round(self, a: Self::V) -> Self::V;
    fn abs(self, a: Self::V) -> Self::V;
    /// The magnitude of `a` with the sign of `sign`.
    fn copysign(self, a: Self::V, sign: Self::V) -> Self::V;
    /// `if a < b { yes } else { no }`.
    fn select_less(self, a: Self::V, b: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    /// 2ⁿ for integral `n` in −126..=127; unspecified for other `n`, but the same in every variant.
    fn pow2(self, n: Self::V) -> Self::V;
    /// `a · 2ⁿ` for integral `n` and a product within the range of normal numbers.
    #[inline(always)]
    fn scale(self, a: Self::V, n: Self::V) -> Self::V {
        self.mul(a, self.pow2(n))
    }
    /// `−a` where the integer `n` is odd, else `a`; |n| < 2²².
    fn negate_if_odd(self, a: Self::V, n: Self::V) -> Self::V;
    /// Lanes 0 0 2 2 4 4 …
    fn duplicate_even(self, a: Self::V) -> Self::V;
    /// Lanes 1 1 3 3 5 5 …
    fn duplicate_odd(self, a: Self::V) -> Self::V;
    /// Lanes 1 0 3 2 5 4 …
    fn swap_pairs(self, a: Self::V) -> Self::V;
    /// Lanes 14 15 12 13 10 11 …
    fn reverse_pairs(self, a: Self::V) -> Self::V;
    /// Lanes 8 9 … 15 8 9 … 15
    fn high_half(self, a: Self::V) -> Self::V;
    /// Transposes: lane `i` of vector `j` becomes lane `j` of vector `i`.
    fn transpose(self, rows: [Self::V; LANES]) -> [Self::V; LANES];

    /// Stores integers from −127 to 127 as bytes with an offset of 128.
    fn store_bytes(self, v: Self::V, to: &mut [u8; LANES]);

    /// Returns the same vector, and keeps the compiler from reordering the computations of the
    /// vectors given here, so that the longest one can start first.
    #[inline(always)]
    fn in_turn(self, v: Self::V) -> Self::V {
        v
    }

    /// Runs a kernel as a function that is not inlined, so that it has all registers for itself.
    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) {
        kernel.run(self);
    }

    #[inline(always)]
    fn neg(self, a: Self::V) -> Self::V {
        self.sub(self.splat(-0.0), a)
    }

    /// Copies one lane to all lanes.
    #[inline(always)]
    fn broadcast(self, v: Self::V, lane: usize) -> Self::V {
        let mut lanes = [0.0; LANES];
        self.store(v, &mut lanes);
        self.splat(lanes[lane])
    }

    /// Loads four values, each into all lanes of a vector.
    #[inline(always)]
    fn spread(self, from: &[f32; 4]) -> [Self::V; 4] {
        let mut all = [self.splat(from[0]); 4];
        for k in 1..4 {
            all[k] = self.splat(from[k]);
        }
        all
    }

    /// Loads at most 16 values and fills the other lanes with `padding`.
    #[inline(always)]
    fn load_padded(self, from: &[f32], padding: f32) -> Self::V {
        if let Ok(whole) = from.try_into() {
            return self.load(whole);
        }
        let mut lanes = [padding; LANES];
        lanes[..from.len()].copy_from_slice(from);
        self.load(&lanes)
    }

    /// Stores the first `to.len()` lanes, at most 16.
    #[inline(always)]
    fn store_partial(self, v: Self::V, to: &mut [f32]) {
        if let Ok(whole) = to.try_into() {
            return self.store(v, whole);
        }
        let mut lanes = [0.0; LANES];
        self.store(v, &mut lanes);
        to.copy_from_slice(&lanes[..to.len()]);
    }
}

/// Adding this to `n` leaves `n + 127`, the biased exponent of a float, in the lowest bits.
pub(super) const POW2_MAGIC: f32 = 8_388_608.0 + 127.0;
pub(super) const EXPONENT_SHIFT: u32 = 23;
/// Adding this to `n` leaves the parity of `n` in the lowest bit, also for negative `n`.
pub(super) const PARITY_MAGIC: f32 = 12_582_912.0;
pub(super) const SIGN_SHIFT: u32 = 31;

/// Computation written once for any token. Its fields are its arguments.
pub(crate) trait Kernel {
    /// Runs the computation. It and everything that it calls must be `#[inline(always)]` to be
    /// compiled with the token's CPU features.
    fn run<S: Simd>(self, s: S);
}
