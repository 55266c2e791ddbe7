//! Additive oscillator.

use std::f64::consts::TAU;

use ondes_kernels::{HarmonicFrame, Kernels};

use crate::common::{Noise, assert_same_bits, check};

/// The documented formula, with sines and sums in `f64`.
fn reference(frame: HarmonicFrame<'_>, samples: usize) -> Vec<f64> {
    let n = samples as f64;
    (1..=samples)
        .map(|t| {
            let t = t as f64;
            let cycles = frame.phase
                + t * frame.step_start
                + (frame.step_end - frame.step_start) * t * t / (2.0 * n);
            let phase = f64::from((cycles - cycles.round()) as f32);
            let amplitudes = frame.start.iter().zip(frame.end);
            amplitudes
                .enumerate()
                .map(|(h, (&start, &end))| {
                    let (start, end) = (f64::from(start), f64::from(end));
                    (start + (end - start) * t / n) * (TAU * (h + 1) as f64 * phase).sin()
                })
                .sum()
        })
        .collect()
}

fn relative_rms(found: &[f32], expected: &[f64]) -> f64 {
    let error: f64 = found
        .iter()
        .zip(expected)
        .map(|(&found, expected)| (f64::from(found) - expected).powi(2))
        .sum();
    let power: f64 = expected.iter().map(|x| x * x).sum();
    (error / power).sqrt()
}

fn run(kernels: Kernels, frame: HarmonicFrame<'_>, samples: usize) -> Vec<f32> {
    let mut out = vec![f32::NAN; samples];
    kernels.harmonics(frame, &mut out);
    out
}

pub fn against_f64(kernels: Kernels) {
    check(
        (1usize..260, 1usize..140, 0u64..1000),
        |(samples, harmonics, seed)| {
            let mut noise = Noise::new(seed);
            let (start, end) = (noise.vec(harmonics, 1.0), noise.vec(harmonics, 1.0));
            let phase = f64::from(noise.value(0.5)) + 0.5;
            let step = 0.5 / harmonics as f64;
            let frame = HarmonicFrame {
                phase,
                step_start: step * 0.9,
                step_end: step,
                start: &start,
                end: &end,
            };
            let found = run(kernels, frame, samples);
            let scale: f64 = start
                .iter()
                .zip(&end)
                .map(|(a, b)| f64::from(a.abs().max(b.abs())).powi(2))
                .sum::<f64>()
                .sqrt();
            for (found, expected) in found.iter().zip(reference(frame, samples)) {
                assert!(
                    (f64::from(*found) - expected).abs() <= 4e-6 * scale.max(1e-3),
                    "{found:e} for {expected:e}"
                );
            }
        },
    );
}

pub fn many_equal_harmonics(kernels: Kernels) {
    for harmonics in [1, 16, 17, 100, 128, 200, 300] {
        let amplitudes = vec![1.0 / harmonics as f32; harmonics];
        // A bass note, which runs through all phases from −1/2 to 1/2.
        let frame = HarmonicFrame {
            phase: 0.1,
            step_start: 55.0 / 48_000.0,
            step_end: 61.7 / 48_000.0,
            start: &amplitudes,
            end: &amplitudes,
        };
        let error = relative_rms(&run(kernels, frame, 4096), &reference(frame, 4096));
        eprintln!("{harmonics} equal harmonics: relative RMS error {error:.2e}");
        assert!(error <= 1e-6, "{harmonics} harmonics: {error:e}");
    }
}

pub fn same_bits_of_harmonics(kernels: Kernels) {
    check(
        (0usize..260, 0usize..300, 0u64..1000),
        |(samples, harmonics, seed)| {
            let mut noise = Noise::new(seed);
            let (start, end) = (noise.vec(harmonics, 1.0), noise.vec(harmonics, 1.0));
            let (phase, step_start, step_end) =
                (noise.value(1.0), noise.value(0.1), noise.value(0.1));
            let frame = HarmonicFrame {
                phase: phase.into(),
                step_start: step_start.into(),
                step_end: step_end.into(),
                start: &start,
                end: &end,
            };
            assert_same_bits(
                &run(kernels, frame, samples),
                &run(Kernels::scalar(), frame, samples),
            );
        },
    );
}

pub fn glide_continues(kernels: Kernels) {
    // A steady tone in two frames equals the tone in one, up to the rounding of the phase.
    let amplitudes = [0.5, 0.25, 0.125];
    let step = 0.01;
    let frame = |phase| HarmonicFrame {
        phase,
        step_start: step,
        step_end: step,
        start: &amplitudes,
        end: &amplitudes,
    };
    let whole = run(kernels, frame(0.3), 192);
    let middle = HarmonicFrame::phase_after(0.3, step, step, 64);
    let mut parts = run(kernels, frame(0.3), 64);
    parts.extend(run(kernels, frame(middle), 128));
    for (whole, parts) in whole.iter().zip(&parts) {
        assert!((whole - parts).abs() < 1e-6);
    }

    assert_eq!(HarmonicFrame::phase_after(-1e-30, 0.0, 0.0, 10), 0.0);
    assert_eq!(HarmonicFrame::phase_after(2.25, 0.5, 0.5, 0), 0.25);
    assert!((HarmonicFrame::phase_after(0.9, 0.1, 0.2, 10) - 0.4).abs() < 1e-12);
}

pub fn silence(kernels: Kernels) {
    let frame = |start, end| HarmonicFrame {
        phase: 0.2,
        step_start: 0.01,
        step_end: 0.02,
        start,
        end,
    };
    assert_same_bits(&run(kernels, frame(&[], &[]), 40), &[0.0; 40]);
    assert_same_bits(&run(kernels, frame(&[0.0; 20], &[0.0; 20]), 40), &[0.0; 40]);

    // Silent harmonics at the top do not change the result; a harmonic is silent only if both ends
    // are.
    let (start, end) = ([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]);
    let cut = run(kernels, frame(&start[..2], &end[..2]), 40);
    assert_same_bits(&run(kernels, frame(&start, &end), 40), &cut);

    let broken = HarmonicFrame {
        phase: f64::NAN,
        ..frame(&start, &end)
    };
    assert!(run(kernels, broken, 40).iter().all(|x| x.is_nan()));
    let infinite = HarmonicFrame {
        step_end: f64::INFINITY,
        ..frame(&start, &end)
    };
    run(kernels, infinite, 40);
}
