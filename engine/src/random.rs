//! Small generators of pseudo-random numbers, for dither, variation between notes and test signals.
//!
//! All of them give the same numbers on every machine. [`crate::dsp::noise`] makes white noise that
//! can be read at any position.

/// Increment of [`SplitMix64`]: 2⁶⁴ divided by the golden ratio, made odd.
pub const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Finaliser of SplitMix64: a bijection that spreads every input bit over all output bits.
#[must_use]
pub fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014).
///
/// # Examples
/// ```
/// use ondes_engine::random::SplitMix64;
///
/// let (mut one, mut other) = (SplitMix64::new(7), SplitMix64::new(7));
/// assert_eq!(one.next_u64(), other.next_u64());
/// ```
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Generator with a seed; any seed is as good as any other.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        mix64(self.0)
    }
}

/// Linear congruential generator of *Numerical Recipes*, for test signals; the upper bits are the
/// random ones.
#[derive(Clone, Debug)]
pub struct Lcg(u32);

impl Lcg {
    /// Generator with a seed.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self(seed)
    }

    /// Returns the next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }

    /// Returns the next number from −1 to 1.
    pub fn next_signed(&mut self) -> f64 {
        f64::from(self.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0
    }
}
