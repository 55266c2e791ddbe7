//! Random signs, the same on all devices.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use tch::Tensor;

/// Returns random signs in the shape of a tensor, which depend on the seed only.
pub fn random_signs(like: &Tensor, seed: u64) -> Tensor {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let count = like.numel();
    let mut signs = Vec::with_capacity(count.next_multiple_of(64));
    while signs.len() < count {
        let bits = random.next_u64();
        signs.extend((0..64).map(|bit| if bits >> bit & 1 == 0 { -1.0_f32 } else { 1.0 }));
    }
    Tensor::from_slice(&signs[..count])
        .to_kind(like.kind())
        .to_device(like.device())
        .view_as(like)
}
