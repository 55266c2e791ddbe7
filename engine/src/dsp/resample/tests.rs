use std::f64::consts::TAU;

use proptest::prelude::*;

use super::*;

fn sine(rate: u32, frequency: f64, length: usize) -> Vec<f32> {
    (0..length)
        .map(|n| (0.5 * (TAU * frequency * n as f64 / f64::from(rate)).sin()) as f32)
        .collect()
}

/// Signal-to-error ratio in dB, without `edge` samples at either end.
fn signal_to_error_db(expected: &[f32], found: &[f32], edge: usize) -> f64 {
    let middle = edge..expected.len() - edge;
    let power =
        |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let signal = power(
        &mut expected[middle.clone()]
            .iter()
            .map(|&value| f64::from(value)),
    );
    let error = power(&mut middle.map(|n| f64::from(expected[n]) - f64::from(found[n])));
    10.0 * (signal / error).log10()
}

#[test]
fn sines_keep_their_phase() {
    for (from, to) in [
        (44_100, 48_000),
        (48_000, 44_100),
        (48_000, 96_000),
        (96_000, 48_000),
        (48_000, 16_000),
        (8_000, 48_000),
    ] {
        for part in [0.01, 0.3, 0.6, 0.9] {
            let frequency = part * 0.5 * f64::from(from.min(to));
            let found = resample(&sine(from, frequency, from as usize), from, to).unwrap();
            assert_eq!(found.len(), to as usize);
            let db =
                signal_to_error_db(&sine(to, frequency, to as usize), &found, to as usize / 10);
            assert!(db > 100.0, "{from} to {to} at {frequency} Hz: {db:.1} dB");
        }
    }
}

#[test]
fn conversion_is_reversible() {
    for frequency in [100.0, 1_000.0, 10_000.0, 19_500.0] {
        let sound = sine(44_100, frequency, 44_100);
        let back = resample(&resample(&sound, 44_100, 48_000).unwrap(), 48_000, 44_100).unwrap();
        let db = signal_to_error_db(&sound, &back, 4_000);
        assert!(db > 100.0, "{frequency} Hz: {db:.1} dB");
    }
}

#[test]
fn frequencies_above_nyquist_are_rejected() {
    for (frequency, from, to) in [
        (23_000.0, 48_000, 44_100),
        (9_000.0, 48_000, 16_000),
        (40_000.0, 96_000, 48_000),
    ] {
        let found = resample(&sine(from, frequency, from as usize), from, to).unwrap();
        let middle = &found[to as usize / 10..to as usize * 9 / 10];
        let power = middle
            .iter()
            .map(|&value| f64::from(value).powi(2))
            .sum::<f64>()
            / middle.len() as f64;
        // Relative to the power of the input, 1/8.
        let db = 10.0 * (8.0 * power).log10();
        assert!(db < -100.0, "{frequency} Hz at {from} to {to}: {db:.1} dB");
    }
}

/// A converted click is symmetric about its position.
#[test]
fn latency_is_exact() {
    for (from, to) in [
        (44_100, 48_000),
        (48_000, 44_100),
        (48_000, 16_000),
        (48_000, 192_000),
        (11_025, 48_000),
        (37_800, 48_000),
    ] {
        let mut resampler = StreamResampler::new(from, to).unwrap();
        // A whole number of samples at both rates.
        let at = 3 * (from / greatest_common_divisor(from, to)) as usize;
        let centre = 3 * (to / greatest_common_divisor(from, to)) as usize + resampler.latency();
        let mut click = vec![0.0; 10 * at + 5_000];
        click[at] = 1.0;
        let mut found = Vec::new();
        resampler.push(&click, |block| found.extend_from_slice(block));
        resampler.finish(|block| found.extend_from_slice(block));
        let top = (0..found.len()).max_by(|&a, &b| found[a].abs().total_cmp(&found[b].abs()));
        assert_eq!(top, Some(centre), "{from} to {to}");
        for distance in 1..100 {
            let (before, after) = (found[centre - distance], found[centre + distance]);
            assert!(
                (before - after).abs() < 1e-6,
                "{from} to {to}: {before} and {after} at {distance}"
            );
        }
    }
}

#[test]
fn equal_rates_pass_samples_unchanged() {
    let sound = sine(48_000, 1_234.0, 1_000);
    let mut resampler = StreamResampler::new(48_000, 48_000).unwrap();
    assert_eq!(resampler.latency(), 0);
    let mut found = Vec::new();
    resampler.push(&sound, |block| found.extend_from_slice(block));
    assert_eq!(found, sound);
    resampler.finish(|_| panic!("nothing is left"));
}

#[test]
fn rates_without_a_common_divisor_work() {
    let found = resample(&sine(8_000, 1_000.0, 16_000), 8_000, 8_009).unwrap();
    let db = signal_to_error_db(&sine(8_009, 1_000.0, 16_018), &found, 4_000);
    assert!(db > 90.0, "{db:.1} dB");
}

#[test]
fn unsupported_rates_are_refused() {
    for (from, to) in [(0, 48_000), (48_000, 0), (48_000, 999), (2_000_001, 48_000)] {
        let error = Some(ResampleError::Rate { from, to });
        assert_eq!(StreamResampler::new(from, to).err(), error);
        assert_eq!(
            StreamResampler::low_latency(from, to, Kernels::scalar()).err(),
            error
        );
    }
}

#[test]
fn non_finite_samples_do_not_persist() {
    let mut resampler = StreamResampler::new(44_100, 48_000).unwrap();
    resampler.push(&[f32::NAN, f32::INFINITY], |_| ());
    resampler.push(&[0.0; 4_000], |block| {
        assert!(block.iter().all(|&sample| sample == 0.0))
    });
}

#[test]
fn huge_samples_are_limited() {
    let huge = [3e37, -1e38, f32::MAX, f32::MIN, f32::INFINITY, f32::NAN];
    let hostile: Vec<f32> = (0..9_000).map(|n| huge[n % 31 % huge.len()]).collect();
    for to in [44_100, 48_000, 96_000] {
        let low_latency = StreamResampler::low_latency(48_000, to, Kernels::detect()).unwrap();
        for mut resampler in [StreamResampler::new(48_000, to).unwrap(), low_latency] {
            let mut found = Vec::new();
            resampler.push(&hostile, |block| found.extend_from_slice(block));
            let largest = found
                .iter()
                .fold(0.0, |largest, sample: &f32| sample.abs().max(largest));
            assert!(
                found.iter().all(|sample| sample.is_finite()) && largest > 1e3,
                "to {to} Hz"
            );
            assert!(
                largest < 4.0 * crate::dsp::level::SAMPLE_LIMIT,
                "{largest} to {to} Hz"
            );
            // Nothing of it stays.
            resampler.push(&[0.0; 9_000], |_| ());
            resampler.push(&[0.0; 4_000], |block| {
                assert!(block.iter().all(|&sample| sample.abs() < 1e-30))
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn output_does_not_depend_on_block_length(
        splits in prop::collection::vec(0_usize..1_500, 1..20),
        rates in prop::sample::select(vec![(44_100, 48_000), (48_000, 44_100), (48_000, 96_000), (48_000, 48_000)]),
    ) {
        let sound = sine(rates.0, 555.0, 7_001);
        let (mut whole, mut split) = (Vec::new(), Vec::new());
        let mut resampler = StreamResampler::new(rates.0, rates.1).unwrap();
        resampler.push(&sound, |block| whole.extend(block.iter().map(|sample| sample.to_bits())));
        resampler.finish(|block| whole.extend(block.iter().map(|sample| sample.to_bits())));
        let expected = (7_001 * u64::from(rates.1)).div_ceil(u64::from(rates.0)) as usize + resampler.latency();
        prop_assert_eq!(whole.len(), expected);
        let mut rest = sound.as_slice();
        for length in splits {
            let (block, after) = rest.split_at(length.min(rest.len()));
            resampler.push(block, |block| split.extend(block.iter().map(|sample| sample.to_bits())));
            rest = after;
        }
        resampler.push(rest, |block| split.extend(block.iter().map(|sample| sample.to_bits())));
        resampler.finish(|block| split.extend(block.iter().map(|sample| sample.to_bits())));
        prop_assert_eq!(whole, split);
    }
}
