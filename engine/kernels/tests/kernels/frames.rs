//! Kernels on one frame: conditioning, normalisation, recurrent cells, complex products.

use ondes_kernels::{FilterPosition, Kernels};

use crate::common::{Noise, assert_close, assert_same_bits, check, sigmoid};

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

pub fn gate(kernels: Kernels) {
    check((0usize..70, 0u64..1000), |(channels, seed)| {
        let x = Noise::new(seed).vec(2 * channels, 6.0);
        let wide = wide(&x);
        let expected: Vec<f64> = (0..channels)
            .map(|c| wide[c].tanh() * sigmoid(wide[channels + c]))
            .collect();
        let mut y = vec![f32::NAN; channels];
        kernels.gate(&x, &mut y);
        assert_close(&y, &expected, 5e-7, 0.0);
    });
}

pub fn film(kernels: Kernels) {
    check((0usize..70, 0u64..1000), |(channels, seed)| {
        let mut noise = Noise::new(seed);
        let (x, condition) = (noise.vec(channels, 2.0), noise.vec(2 * channels, 2.0));
        let expected: Vec<f32> = (0..channels)
            .map(|c| x[c].mul_add(condition[c], condition[channels + c]))
            .collect();
        let mut y = x;
        kernels.film(&mut y, &condition);
        assert_same_bits(&y, &expected);
    });
}

pub fn layer_norm(kernels: Kernels) {
    check((1usize..600, 0u64..1000), |(channels, seed)| {
        let mut noise = Noise::new(seed);
        let (x, gain, bias) = (
            noise.vec(channels, 2.0),
            noise.vec(channels, 2.0),
            noise.vec(channels, 2.0),
        );
        let epsilon = 1e-5;
        let x64 = wide(&x);
        let n = channels as f64;
        let mean = x64.iter().sum::<f64>() / n;
        let variance = x64.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let expected: Vec<f64> = (0..channels)
            .map(|c| {
                (x64[c] - mean) / (variance + f64::from(epsilon)).sqrt() * f64::from(gain[c])
                    + f64::from(bias[c])
            })
            .collect();
        let mut y = x;
        kernels.layer_norm(&mut y, &gain, &bias, epsilon);
        // With one channel the result is the bias, plus rounding divided by epsilon.
        assert_close(&y, &expected, 1e-6, 3e-6);
    });
    kernels.layer_norm(&mut [], &[], &[], 1e-5);
}

pub fn softmax(kernels: Kernels) {
    check((1usize..200, 0u64..1000), |(channels, seed)| {
        let x = Noise::new(seed).vec(channels, 10.0);
        let exponentials: Vec<f64> = wide(&x).iter().map(|x| x.exp()).collect();
        let sum: f64 = exponentials.iter().sum();
        let expected: Vec<f64> = exponentials.iter().map(|value| value / sum).collect();
        let mut y = x;
        kernels.softmax(&mut y);
        assert_close(&y, &expected, 3e-6, 0.0);
    });
    kernels.softmax(&mut []);
}

pub fn gru(kernels: Kernels) {
    check((0usize..70, 0u64..1000), |(size, seed)| {
        let mut noise = Noise::new(seed);
        let (input, state, h) = (
            noise.vec(3 * size, 4.0),
            noise.vec(3 * size, 4.0),
            noise.vec(size, 1.0),
        );
        let (input64, state64, h64) = (wide(&input), wide(&state), wide(&h));
        let expected: Vec<f64> = (0..size)
            .map(|i| {
                let r = sigmoid(input64[i] + state64[i]);
                let z = sigmoid(input64[size + i] + state64[size + i]);
                let n = (input64[2 * size + i] + r * state64[2 * size + i]).tanh();
                (1.0 - z) * n + z * h64[i]
            })
            .collect();
        let mut next = h;
        kernels.gru(&input, &state, &mut next);
        assert_close(&next, &expected, 0.0, 1e-6);
    });
}

pub fn lstm(kernels: Kernels) {
    check((0usize..70, 0u64..1000), |(size, seed)| {
        let mut noise = Noise::new(seed);
        let (gates, c) = (noise.vec(4 * size, 4.0), noise.vec(size, 2.0));
        let (gates64, c64) = (wide(&gates), wide(&c));
        let expected_c: Vec<f64> = (0..size)
            .map(|k| {
                let (i, f, g) = (gates64[k], gates64[size + k], gates64[2 * size + k]);
                sigmoid(f) * c64[k] + sigmoid(i) * g.tanh()
            })
            .collect();
        let expected_h: Vec<f64> = (0..size)
            .map(|k| sigmoid(gates64[3 * size + k]) * expected_c[k].tanh())
            .collect();
        let (mut h, mut next) = (vec![f32::NAN; size], c);
        kernels.lstm(&gates, &mut h, &mut next);
        assert_close(&next, &expected_c, 0.0, 1e-6);
        assert_close(&h, &expected_h, 0.0, 1e-6);
    });
}

/// Checks gradients against differences: `step` gives the next states of one unit from `values`,
/// and the objective is their sum, weighted by `weights`.
fn assert_gradients<const N: usize>(
    step: impl Fn(&[f64; N]) -> [f64; 2],
    values: [f32; N],
    weights: [f32; 2],
    found: [f32; N],
) {
    const STEP: f64 = 1e-5;
    let values = values.map(f64::from);
    let objective = |values: &[f64; N]| {
        step(values)
            .iter()
            .zip(weights)
            .map(|(y, w)| y * f64::from(w))
            .sum::<f64>()
    };
    let expected: [f64; N] = std::array::from_fn(|value| {
        let moved = |by: f64| {
            let mut moved = values;
            moved[value] += by;
            objective(&moved)
        };
        (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
    });
    assert_close(&found, &expected, 1e-5, 3e-6);
}

pub fn lstm_in_training(kernels: Kernels) {
    check((1usize..70, 0u64..1000), |(size, seed)| {
        let mut noise = Noise::new(seed);
        let (from_input, from_state) = (noise.vec(4 * size, 2.0), noise.vec(4 * size, 2.0));
        let c_before = noise.vec(size, 2.0);
        let (mut gates, mut c, mut h) = (
            from_input.clone(),
            vec![f32::NAN; size],
            vec![f32::NAN; size],
        );
        kernels.lstm_step(&from_state, &c_before, &mut gates, &mut c, &mut h);
        let sums: Vec<f32> = from_input
            .iter()
            .zip(&from_state)
            .map(|(a, b)| a + b)
            .collect();
        let (mut played_h, mut played_c) = (vec![0.0; size], c_before.clone());
        kernels.lstm(&sums, &mut played_h, &mut played_c);
        assert_close(&h, &wide(&played_h), 1e-6, 1e-6);
        assert_close(&c, &wide(&played_c), 1e-6, 1e-6);

        let (dy, from_next, dc) = (
            noise.vec(size, 1.0),
            noise.vec(size, 1.0),
            noise.vec(size, 1.0),
        );
        let (mut d_gates, mut d_c) = (vec![f32::NAN; 4 * size], dc.clone());
        kernels.lstm_step_gradient(
            &gates,
            [&c_before, &c],
            [&dy, &from_next],
            &mut d_gates,
            &mut d_c,
        );
        for unit in 0..size {
            let gate = |all: &[f32], gate: usize| all[gate * size + unit];
            let step = |[i, f, g, o, before]: &[f64; 5]| {
                let c = sigmoid(*f) * before + sigmoid(*i) * g.tanh();
                [sigmoid(*o) * c.tanh(), c]
            };
            let values = std::array::from_fn(|at| {
                if at < 4 {
                    gate(&sums, at)
                } else {
                    c_before[unit]
                }
            });
            let found = std::array::from_fn(|at| {
                if at < 4 {
                    gate(&d_gates, at)
                } else {
                    d_c[unit]
                }
            });
            assert_gradients(step, values, [dy[unit] + from_next[unit], dc[unit]], found);
        }
    });
}

pub fn gru_in_training(kernels: Kernels) {
    check((1usize..70, 0u64..1000), |(size, seed)| {
        let mut noise = Noise::new(seed);
        let (from_input, from_state) = (noise.vec(3 * size, 2.0), noise.vec(3 * size, 2.0));
        let before = noise.vec(size, 1.0);
        let (mut gates, mut kept, mut h) = (
            from_input.clone(),
            vec![f32::NAN; size],
            vec![f32::NAN; size],
        );
        kernels.gru_step(&from_state, &before, &mut gates, &mut kept, &mut h);
        let mut played = before.clone();
        kernels.gru(&from_input, &from_state, &mut played);
        assert_close(&h, &wide(&played), 1e-6, 1e-6);
        assert_eq!(kept, from_state[2 * size..]);

        let (dy, from_next, direct) = (
            noise.vec(size, 1.0),
            noise.vec(size, 1.0),
            noise.vec(size, 1.0),
        );
        let (mut d_gates, mut d_state, mut d_h) = (
            vec![f32::NAN; 3 * size],
            vec![f32::NAN; 3 * size],
            direct.clone(),
        );
        let gradients = [&mut d_gates[..], &mut d_state[..]];
        kernels.gru_step_gradient(
            &gates,
            [&kept, &before],
            [&dy, &from_next],
            gradients,
            &mut d_h,
        );
        for unit in 0..size {
            let gate = |all: &[f32], gate: usize| all[gate * size + unit];
            let step = |[r, z, n, state_r, state_z, state_n, before]: &[f64; 7]| {
                let z = sigmoid(z + state_z);
                let n = (n + sigmoid(r + state_r) * state_n).tanh();
                [(1.0 - z) * n + z * before, 0.0]
            };
            let of = |input: &[f32], state: &[f32], last: f32| {
                std::array::from_fn(|at| match at {
                    0..3 => gate(input, at),
                    3..6 => gate(state, at - 3),
                    _ => last,
                })
            };
            let (values, found) = (
                of(&from_input, &from_state, before[unit]),
                of(&d_gates, &d_state, d_h[unit]),
            );
            assert_gradients(
                step,
                values,
                [dy[unit] + from_next[unit] + direct[unit], 0.0],
                found,
            );
        }
    });
}

pub fn complex_multiply_add(kernels: Kernels) {
    check(
        (1usize..70, 0usize..5, 0usize..5, 0u64..1000),
        |(count, blocks, cut, seed)| {
            let mut noise = Noise::new(seed);
            let len = 2 * count;
            let (a, b, acc) = (
                noise.vec(blocks * len, 2.0),
                noise.vec(blocks * len, 2.0),
                noise.vec(len, 2.0),
            );
            let mut expected = acc.clone();
            for (a, b) in a.chunks_exact(len).zip(b.chunks_exact(len)) {
                for (re, im) in (0..count).map(|k| (2 * k, 2 * k + 1)) {
                    expected[re] = (-a[im]).mul_add(b[im], a[re].mul_add(b[re], expected[re]));
                    expected[im] = a[im].mul_add(b[re], a[re].mul_add(b[im], expected[im]));
                }
            }
            let mut found = acc;
            let cut = cut.min(blocks) * len;
            kernels.complex_multiply_add(&mut found, &a[..cut], &b[..cut]);
            kernels.complex_multiply_add(&mut found, &a[cut..], &b[cut..]);
            assert_same_bits(&found, &expected);
        },
    );
    kernels.complex_multiply_add(&mut [], &[], &[]);
}

pub fn filters(kernels: Kernels) {
    check(
        (1usize..7, 1usize..5, 0usize..40, 0u64..1000),
        |(vectors, filters, outputs, seed)| {
            let mut noise = Noise::new(seed);
            let length = vectors * Kernels::FILTER_UNIT;
            let (taps, signal) = (
                noise.vec(filters * length, 1.0),
                noise.vec(length + 20, 1.0),
            );
            let position = |k: usize| FilterPosition {
                filter: (k * 7 % filters) as u32,
                start: (k * 5 % 21) as u32,
            };
            let positions: Vec<FilterPosition> = (0..outputs).map(position).collect();
            let expected = positions.iter().map(|position| {
                let window = &signal[position.start as usize..];
                let products = taps[position.filter as usize * length..][..length]
                    .iter()
                    .zip(window);
                products
                    .map(|(tap, sample)| f64::from(*tap) * f64::from(*sample))
                    .sum()
            });
            let expected: Vec<f64> = expected.collect();
            let found = |kernels: Kernels| {
                let mut out = vec![f32::NAN; outputs];
                let (first, second) = out.split_at_mut(outputs / 3);
                kernels.filters(&taps, length, &signal, &positions[..outputs / 3], first);
                kernels.filters(&taps, length, &signal, &positions[outputs / 3..], second);
                out
            };
            assert_close(&found(kernels), &expected, 0.0, 3e-6);
            assert_same_bits(&found(kernels), &found(Kernels::scalar()));
        },
    );
}

pub fn same_bits_of_frames(kernels: Kernels) {
    check((1usize..200, 0u64..1000), |(size, seed)| {
        let all = |kernels: Kernels| {
            let mut noise = Noise::new(seed);
            let mut out = Vec::new();
            let mut y = vec![0.0; size];
            kernels.gate(&noise.vec(2 * size, 8.0), &mut y);
            out.extend_from_slice(&y);
            kernels.film(&mut y, &noise.vec(2 * size, 2.0));
            out.extend_from_slice(&y);
            kernels.layer_norm(&mut y, &noise.vec(size, 2.0), &noise.vec(size, 2.0), 1e-5);
            out.extend_from_slice(&y);
            kernels.softmax(&mut y);
            out.extend_from_slice(&y);
            kernels.gru(&noise.vec(3 * size, 8.0), &noise.vec(3 * size, 8.0), &mut y);
            out.extend_from_slice(&y);
            let mut c = noise.vec(size, 2.0);
            kernels.lstm(&noise.vec(4 * size, 8.0), &mut y, &mut c);
            out.extend_from_slice(&y);
            out.extend_from_slice(&c);
            out
        };
        assert_same_bits(&all(kernels), &all(Kernels::scalar()));
    });
}
