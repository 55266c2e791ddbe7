//! White noise, and bins of real transforms.

use ondes_kernels::Kernels;

use crate::common::{Noise, assert_same_bits, check};

pub fn white_noise(kernels: Kernels) {
    let reference = |key: u64, counter: u32| {
        let mut x = counter ^ (key as u32);
        x = (x ^ (x >> 16)).wrapping_mul(0x7FEB_352D);
        x = (x ^ (x >> 15)).wrapping_mul(0x846C_A68B);
        x = x ^ (x >> 16) ^ ((key >> 32) as u32);
        x as i32 as f32 / 2_147_483_648.0
    };
    // A start near the end wraps to 0.
    check(
        (
            0usize..100,
            0usize..40,
            u64::MIN..u64::MAX,
            u32::MAX - 200..u32::MAX,
        ),
        |(len, cut, key, first)| {
            for first in [first, first.wrapping_add(200), first / 3] {
                let expected: Vec<f32> = (0..len)
                    .map(|n| reference(key, first.wrapping_add(n as u32)))
                    .collect();
                let mut found = vec![f32::NAN; len];
                let (left, right) = found.split_at_mut(cut.min(len));
                kernels.white_noise(key, first, left);
                kernels.white_noise(key, first.wrapping_add(left.len() as u32), right);
                assert_same_bits(&found, &expected);
                assert!(found.iter().all(|sample| (-1.0..1.0).contains(sample)));
            }
        },
    );
}

pub fn real_bins(kernels: Kernels) {
    check((0usize..60, 0u64..1000), |(count, seed)| {
        let mut noise = Noise::new(seed);
        let (near, far, twiddles) = (
            noise.vec(2 * count, 2.0),
            noise.vec(2 * count, 2.0),
            noise.vec(2 * count, 1.0),
        );
        let scale = noise.value(2.0);
        let (mut expected_near, mut expected_far) = (near.clone(), far.clone());
        for k in 0..count {
            let (re, im) = (2 * k, 2 * k + 1);
            let (far_re, far_im) = (2 * (count - 1 - k), 2 * (count - 1 - k) + 1);
            let (w_re, w_im) = (twiddles[re], twiddles[im]);
            let (sum_re, sum_im) = (near[re] + far[far_re], near[im] + far[far_im]);
            let (diff_re, diff_im) = (near[re] - far[far_re], near[im] - far[far_im]);
            let (odd_re, odd_im) = (
                sum_im * w_re + diff_re * w_im,
                sum_im * w_im - diff_re * w_re,
            );
            (expected_near[re], expected_near[im]) =
                (scale * sum_re + odd_re, scale * diff_im + odd_im);
            (expected_far[far_re], expected_far[far_im]) =
                (scale * sum_re - odd_re, odd_im - scale * diff_im);
        }
        let (mut found_near, mut found_far) = (near, far);
        kernels.real_bins(&mut found_near, &mut found_far, &twiddles, scale);
        assert_same_bits(&found_near, &expected_near);
        assert_same_bits(&found_far, &expected_far);
    });
}
