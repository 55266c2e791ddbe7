//! The resampler of low latency: frequency response by sines, latency, and equality of any division
//! into blocks.

#[path = "../benches/resampling/response.rs"]
mod response;

use ondes_engine::Kernels;
use ondes_engine::dsp::resample::StreamResampler;
use proptest::prelude::*;
use response::{response, sine_response};

/// Pairs of rates with the edge of the pass band.
const PAIRS: [(u32, u32, f64); 14] = [
    (44_100, 48_000, 18_000.0),
    (48_000, 44_100, 18_000.0),
    (48_000, 96_000, 18_000.0),
    (96_000, 48_000, 18_000.0),
    (192_000, 48_000, 18_000.0),
    (48_000, 192_000, 18_000.0),
    (88_200, 48_000, 18_000.0),
    (48_000, 88_200, 18_000.0),
    (44_100, 96_000, 18_000.0),
    (96_000, 44_100, 18_000.0),
    (96_000, 88_200, 20_000.0),
    (22_050, 48_000, 9_000.0),
    // No common divisor: interpolated phases.
    (48_000, 47_999, 18_000.0),
    (44_101, 48_000, 18_000.0),
];

#[test]
fn pass_band_is_flat_and_images_and_aliases_are_rejected() {
    for (rate_in, rate_out, edge_hz) in PAIRS {
        let found = response(rate_in, rate_out, edge_hz, 701.0);
        // Both ways together must be flat to 0.1 dB.
        assert!(
            found.ripple_db < 0.05,
            "{rate_in} to {rate_out}: ripple of {:.3} dB",
            found.ripple_db
        );
        assert!(
            found.phase_degrees < 0.5,
            "{rate_in} to {rate_out}: phase off by {:.2}°",
            found.phase_degrees
        );
        assert!(
            found.rejection_db < -90.0,
            "{rate_in} to {rate_out}: rest at {:.1} dB",
            found.rejection_db
        );
    }
}

/// Just above and below the lower Nyquist frequency, where the filter is steepest.
#[test]
fn the_stop_band_begins_at_the_nyquist_frequency() {
    for hz in [22_051.0, 22_100.0, 22_500.0, 23_900.0] {
        let alias = sine_response(48_000, 44_100, hz).rest_db;
        assert!(alias < -90.0, "{hz} Hz: {alias:.1} dB");
    }
    for hz in [21_000.0, 21_500.0, 21_900.0, 22_040.0] {
        let image = sine_response(44_100, 48_000, hz).rest_db;
        assert!(image < -90.0, "{hz} Hz: {image:.1} dB");
    }
}

#[test]
fn latency_both_ways_is_short() {
    for (host, model, limit_ms) in [
        (44_100, 48_000, 1.0),
        (48_000, 44_100, 1.0),
        (96_000, 48_000, 0.6),
        (192_000, 48_000, 0.6),
        (48_000, 96_000, 0.6),
        (88_200, 48_000, 0.6),
    ] {
        let latency = |from: u32, to: u32| {
            let resampler =
                StreamResampler::low_latency(from, to, Kernels::detect()).expect("supported rates");
            resampler.latency() as f64 / f64::from(to)
        };
        let both_ms = 1e3 * (latency(host, model) + latency(model, host));
        assert!(both_ms <= limit_ms, "{host} and {model}: {both_ms:.3} ms");
    }
}

#[test]
fn constants_pass_exactly() {
    for (rate_in, rate_out, _) in PAIRS {
        let mut resampler =
            StreamResampler::low_latency(rate_in, rate_out, Kernels::detect()).expect("supported");
        let mut output = Vec::new();
        resampler.push(&[0.5; 4_000], |samples| output.extend_from_slice(samples));
        let settled = resampler.latency() + resampler.tail();
        assert!(output.len() > settled + 100);
        assert!(
            output[settled..]
                .iter()
                .all(|sample| (sample - 0.5).abs() < 1e-6),
            "{rate_in} to {rate_out}"
        );
    }
}

/// As many samples come out as time passes, and after the tail there is silence.
#[test]
fn output_is_even_and_ends() {
    for (rate_in, rate_out) in [
        (44_100, 48_000),
        (192_000, 44_100),
        (1_000, 1_000_000),
        (1_000_000, 1_000),
        (8_009, 48_000),
    ] {
        let mut resampler =
            StreamResampler::low_latency(rate_in, rate_out, Kernels::detect()).expect("supported");
        let (latency, tail) = (resampler.latency(), resampler.tail());
        let (mut pushed, mut output) = (0_u64, Vec::new());
        for block in 0..400 {
            let sound = if block < 200 { [1.0; 64] } else { [0.0; 64] };
            let before = output.len();
            resampler.push(&sound, |samples| output.extend_from_slice(samples));
            assert!(output.len() - before <= resampler.max_output(64));
            pushed += 64;
            // Never behind the time at the input by more than a sample.
            let due = (u128::from(pushed) * u128::from(rate_out) / u128::from(rate_in)) as usize;
            assert!(
                output.len() + 1 >= due,
                "{rate_in} to {rate_out}: {} of {due}",
                output.len()
            );
        }
        let end = 200 * 64 * u64::from(rate_out) / u64::from(rate_in);
        let silent = &output[(end as usize + latency + tail + 1).min(output.len())..];
        assert!(
            silent.iter().all(|sample| *sample == 0.0),
            "{rate_in} to {rate_out}"
        );
        assert!(rate_in > rate_out || !silent.is_empty());
    }
}

#[test]
fn finish_emits_what_is_left() {
    for (rate_in, rate_out, _) in PAIRS {
        let mut resampler =
            StreamResampler::low_latency(rate_in, rate_out, Kernels::detect()).expect("supported");
        let mut count = 0;
        resampler.push(&[0.1; 1_001], |samples| count += samples.len());
        resampler.finish(|samples| count += samples.len());
        let expected = (1_001 * u64::from(rate_out)).div_ceil(u64::from(rate_in)) as usize
            + resampler.latency();
        assert_eq!(count, expected, "{rate_in} to {rate_out}");
    }
}

/// Every variant of the arithmetic and every division into blocks gives the same bits, also after a
/// reset.
#[test]
fn bits_do_not_depend_on_blocks_or_variants() {
    let config = ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(
        splits in prop::collection::vec(0_usize..700, 1..20),
        pair in prop::sample::select(PAIRS.to_vec()),
    )| {
        let sound: Vec<f32> = (0..5_000).map(|n| (0.07 * n as f32).sin() * (0.0113 * n as f32).cos()).collect();
        let converted = |kernels: Kernels, splits: &[usize]| {
            let mut resampler = StreamResampler::low_latency(pair.0, pair.1, kernels).expect("supported rates");
            resampler.push(&[0.3, f32::NAN, -0.7], |_| ());
            resampler.reset();
            let (mut bits, mut rest) = (Vec::new(), &sound[..]);
            for &length in splits {
                let (block, after) = rest.split_at(length.min(rest.len()));
                resampler.push(block, |samples| bits.extend(samples.iter().map(|sample| sample.to_bits())));
                rest = after;
            }
            resampler.push(rest, |samples| bits.extend(samples.iter().map(|sample| sample.to_bits())));
            bits
        };
        let whole = converted(Kernels::scalar(), &[]);
        for kernels in Kernels::available() {
            prop_assert_eq!(&converted(kernels, &splits), &whole, "{}", kernels.name());
        }
    });
}
