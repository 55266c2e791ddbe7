//! White noise with random access; equal for all executors and block lengths.

use ondes_kernels::Kernels;

use crate::random::{GOLDEN_GAMMA, mix64};

/// Returns an independent seed for each stream.
#[must_use]
pub fn stream_seed(seed: u64, stream: u64) -> u64 {
    mix64(seed ^ mix64(stream.wrapping_add(GOLDEN_GAMMA)))
}

/// Fills `out` with uniform noise in [−1, 1): samples from `position` on of the noise of a seed.
pub fn fill(kernels: Kernels, seed: u64, mut position: u64, mut out: &mut [f32]) {
    // The low half of the position is hashed with a key that changes with the high half, so there
    // is no practical period.
    while !out.is_empty() {
        let key = seed.wrapping_add((position >> 32).wrapping_mul(GOLDEN_GAMMA));
        let first = position as u32;
        let left = (1 << 32) - u64::from(first);
        let length = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (now, later) = out.split_at_mut(length);
        kernels.white_noise(key, first, now);
        (position, out) = (position.wrapping_add(length as u64), later);
    }
}

/// Fills `out` with normally distributed noise of mean 0 and variance 1: values from `position` on
/// of the noise of a seed. Value `i` is derived from samples `2 i` and `2 i + 1` of [`fill`] (Box &
/// Muller, Ann. Math. Statist. 29(2), 1958).
pub fn fill_normal(kernels: Kernels, seed: u64, mut position: u64, out: &mut [f32]) {
    const PIECE: usize = 64;
    let mut pairs = [0.0; 2 * PIECE];
    for piece in out.chunks_mut(PIECE) {
        let pairs = &mut pairs[..2 * piece.len()];
        fill(kernels, seed, position.wrapping_mul(2), pairs);
        for (value, pair) in piece.iter_mut().zip(pairs.chunks_exact(2)) {
            // In (0, 1], so that its logarithm is finite.
            let radius = 0.5 - 0.5 * f64::from(pair[0]);
            let angle = std::f64::consts::PI * f64::from(pair[1]);
            *value = ((-2.0 * radius.max(f64::MIN_POSITIVE).ln()).sqrt() * angle.cos()) as f32;
        }
        position = position.wrapping_add(piece.len() as u64);
    }
}

/// Fills `out` with noise of the standard Gumbel distribution: values from `position` on of the
/// noise of a seed. The index of the largest sum of a logit and such a value is a draw from the
/// categories with these logits (Gumbel, "Statistical theory of extreme values", 1954).
pub fn fill_gumbel(kernels: Kernels, seed: u64, position: u64, out: &mut [f32]) {
    fill(kernels, seed, position, out);
    // Half of the resolution of the uniform noise at its ends, whose logarithms are infinite.
    const END: f64 = 1.0 / (1 << 26) as f64;
    for value in out {
        let uniform = (0.5 + 0.5 * f64::from(*value)).clamp(END, 1.0 - END);
        *value = -(-uniform.ln()).ln() as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_white_bounded_and_without_offset() {
        let mut noise = vec![0.0; 1 << 16];
        fill(Kernels::detect(), stream_seed(1, 2), 0, &mut noise);
        assert!(noise.iter().all(|sample| (-1.0..1.0).contains(sample)));
        let mean = |values: &mut dyn Iterator<Item = f32>| {
            values.map(f64::from).sum::<f64>() / noise.len() as f64
        };
        assert!(mean(&mut noise.iter().copied()).abs() < 0.01);
        assert!((mean(&mut noise.iter().map(|x| x * x)) - 1.0 / 3.0).abs() < 0.01);
        for lag in [1, 2, 64, 192] {
            assert!(
                mean(&mut noise.iter().zip(&noise[lag..]).map(|(a, b)| a * b)).abs() < 0.01,
                "lag {lag}"
            );
        }
    }

    #[test]
    fn normal_noise_has_normal_moments() {
        let mut noise = vec![0.0; 1 << 16];
        fill_normal(Kernels::detect(), 3, 0, &mut noise);
        let moment = |power: i32| {
            noise.iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / noise.len() as f64
        };
        for (power, expected, tolerance) in [
            (1, 0.0, 0.02),
            (2, 1.0, 0.03),
            (3, 0.0, 0.08),
            (4, 3.0, 0.15),
        ] {
            assert!(
                (moment(power) - expected).abs() < tolerance,
                "moment {power}: {}",
                moment(power)
            );
        }
        let mut part = [0.0; 70];
        fill_normal(Kernels::detect(), 3, 1001, &mut part);
        assert_eq!(part, noise[1001..1071]);
    }

    #[test]
    fn the_largest_sum_with_gumbel_noise_draws_a_category() {
        let logits = [0.2_f32.ln(), 0.7_f32.ln(), 0.1_f32.ln()];
        let mut noise = vec![0.0; 3 << 14];
        fill_gumbel(Kernels::detect(), 5, 0, &mut noise);
        let mut counts = [0; 3];
        for frame in noise.chunks_exact(3) {
            let score = |index: &usize| logits[*index] + frame[*index];
            counts[(0..3)
                .max_by(|a, b| score(a).total_cmp(&score(b)))
                .expect("three")] += 1;
        }
        for (count, share) in counts.into_iter().zip([0.2, 0.7, 0.1]) {
            assert!(
                (f64::from(count) / f64::from(1 << 14) - share).abs() < 0.012,
                "{counts:?}"
            );
        }
        let mut part = [0.0; 9];
        fill_gumbel(Kernels::detect(), 5, 301, &mut part);
        assert_eq!(part, noise[301..310]);
    }

    #[test]
    fn noise_has_random_access() {
        let start = (1_u64 << 32) - 100;
        let mut whole = vec![0.0; 300];
        fill(Kernels::detect(), 7, start, &mut whole);
        let mut part = vec![0.0; 50];
        fill(Kernels::detect(), 7, start + 120, &mut part);
        assert_eq!(part, whole[120..170]);
    }
}
