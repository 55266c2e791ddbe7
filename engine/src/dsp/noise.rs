//! White noise that can be read at any position: equal for every executor and every block size.

use ondes_kernels::Kernels;

/// A seed of its own for each `(seed, stream)`.
#[must_use]
pub fn stream_seed(seed: u64, stream: u64) -> u64 {
    mix64(seed ^ mix64(stream.wrapping_add(0x9e37_79b9_7f4a_7c15)))
}

/// Fills `out` with uniform noise in [−1, 1): samples `position ..` of the noise of that seed.
pub fn fill(kernels: Kernels, seed: u64, mut position: u64, mut out: &mut [f32]) {
    // The low half of the counter walks through one 32-bit hash, whose key changes with the high half: no period in practice.
    while !out.is_empty() {
        let key = seed.wrapping_add((position >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let first = position as u32;
        let left = (1 << 32) - u64::from(first);
        let length = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (now, later) = out.split_at_mut(length);
        kernels.white_noise(key, first, now);
        (position, out) = (position.wrapping_add(length as u64), later);
    }
}

/// SplitMix64's finaliser (Steele et al., OOPSLA 2014).
fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_white_bounded_and_without_offset() {
        let mut noise = vec![0.0; 1 << 16];
        fill(Kernels::detect(), stream_seed(1, 2), 0, &mut noise);
        assert!(noise.iter().all(|sample| (-1.0..1.0).contains(sample)));
        let mean = |values: &mut dyn Iterator<Item = f32>| values.map(f64::from).sum::<f64>() / noise.len() as f64;
        assert!(mean(&mut noise.iter().copied()).abs() < 0.01);
        assert!((mean(&mut noise.iter().map(|x| x * x)) - 1.0 / 3.0).abs() < 0.01);
        for lag in [1, 2, 64, 192] {
            assert!(mean(&mut noise.iter().zip(&noise[lag..]).map(|(a, b)| a * b)).abs() < 0.01, "lag {lag}");
        }
    }

    #[test]
    fn any_position_can_be_read() {
        let start = (1_u64 << 32) - 100;
        let mut whole = vec![0.0; 300];
        fill(Kernels::detect(), 7, start, &mut whole);
        let mut part = vec![0.0; 50];
        fill(Kernels::detect(), 7, start + 120, &mut part);
        assert_eq!(part, whole[120..170]);
    }
}
