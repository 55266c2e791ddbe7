//! Steady tones, stiff strings, onsets and silence.

use std::f64::consts::TAU;

use super::TunerPitch;

/// Adds partials of a plucked string with this stiffness; `decay_s` is the time constant of the
/// first.
fn string(rate_hz: f64, seconds: f64, hz: f64, stiffness: f64, decay_s: f64) -> Vec<f32> {
    let first = (1.0 + stiffness).sqrt();
    let partials: Vec<(f64, f64, f64)> = (1..=24)
        .map(|n| {
            let number = f64::from(n);
            let partial = number * hz * (1.0 + stiffness * number * number).sqrt() / first;
            // Plucked at a fifth of its length, with a pickup at a tenth.
            let amplitude =
                (0.2 * TAU / 2.0 * number).sin() * (0.1 * TAU / 2.0 * number).sin() / number;
            (partial, 0.5 * amplitude, decay_s / (0.7 + 0.3 * number))
        })
        .filter(|(partial, ..)| *partial < 0.45 * rate_hz)
        .collect();
    let at = |n: usize| {
        let t = n as f64 / rate_hz;
        let one = |(partial, amplitude, decay): &(f64, f64, f64)| {
            amplitude * (-t / decay).exp() * (TAU * partial * t + 0.3 * partial).sin()
        };
        partials.iter().map(one).sum::<f64>() as f32
    };
    (0..(seconds * rate_hz) as usize).map(at).collect()
}

fn sine(rate_hz: f64, seconds: f64, hz: f64) -> Vec<f32> {
    (0..(seconds * rate_hz) as usize)
        .map(|n| (0.2 * (TAU * hz * n as f64 / rate_hz).sin()) as f32)
        .collect()
}

/// Notes from B0 to E6 and between them, in Hz.
fn notes() -> impl Iterator<Item = f64> {
    // 23 = B0, 88 = E6.
    (0..=130).map(|step| 440.0 * ((23.0 + 0.5 * f64::from(step) - 69.0) / 12.0).exp2())
}

fn cents(found: f64, hz: f64) -> f64 {
    1200.0 * (found / hz).log2()
}

/// Returns the largest error over readings at the interval of frames, in cents, from `from_s` on.
fn worst(rate_hz: f64, sound: &[f32], hz: f64, from_s: f64) -> f64 {
    let mut pitch = TunerPitch::new(rate_hz);
    let frame = (0.033 * rate_hz) as usize;
    let mut worst = 0.0_f64;
    for (index, block) in sound.chunks(frame).enumerate() {
        pitch.push(block);
        let found = pitch.frequency_hz();
        if (index as f64 + 1.0) * 0.033 > from_s {
            let found = found.unwrap_or_else(|| {
                panic!("{hz:.2} Hz at {rate_hz} Hz: no reading in frame {index}")
            });
            worst = worst.max(cents(found, hz).abs());
        }
    }
    worst
}

#[test]
fn steady_tones_are_read_within_a_cent_from_b0_to_e6_at_any_rate() {
    for rate_hz in [44_100.0, 48_000.0, 96_000.0, 192_000.0, 22_050.0] {
        for hz in notes().step_by(if rate_hz == 48_000.0 { 2 } else { 13 }) {
            let error = worst(rate_hz, &sine(rate_hz, 0.8, hz), hz, 0.35);
            assert!(error < 0.3, "{hz:.2} Hz at {rate_hz} Hz: {error:.3} cents");
        }
    }
}

#[test]
fn stiff_strings_are_read_by_their_first_partial() {
    let mut all = 0.0_f64;
    for hz in notes().step_by(3) {
        // Plain steel strings have some 1e-5 to 1e-4, wound bass strings and short scales more.
        for stiffness in [0.0, 3e-5, 2e-4, 5e-4] {
            let error = worst(
                48_000.0,
                &string(48_000.0, 1.0, hz, stiffness, 1.5),
                hz,
                0.4,
            );
            assert!(error < 1.0, "{hz:.2} Hz, B = {stiffness}: {error:.2} cents");
            all = all.max(error);
        }
    }
    println!("largest error of strings: {all:.2} cents");
}

#[test]
fn a_note_is_shown_within_a_tenth_of_a_second() {
    for (hz, within_s, most) in [
        (82.41, 0.1, 5.0),
        (110.0, 0.1, 3.0),
        (329.63, 0.08, 2.0),
        (41.2, 0.14, 8.0),
    ] {
        let rate_hz = 48_000.0;
        let mut sound = vec![0.0; 24_000];
        sound.extend(string(rate_hz, 0.5, hz, 1e-4, 1.0));
        let mut pitch = TunerPitch::new(rate_hz);
        pitch.push(&sound[..24_000]);
        assert_eq!(pitch.frequency_hz(), None);
        pitch.push(&sound[24_000..24_000 + (within_s * rate_hz) as usize]);
        let found = pitch
            .frequency_hz()
            .unwrap_or_else(|| panic!("{hz} Hz is not shown"));
        assert!(
            cents(found, hz).abs() < most,
            "{hz} Hz: {:.2} cents",
            cents(found, hz)
        );
    }
}

#[test]
fn another_note_takes_over_from_one_that_rings() {
    let rate_hz = 48_000.0;
    let mut sound = string(rate_hz, 1.0, 110.0, 5e-5, 0.6);
    let muted = 0.05;
    sound.iter_mut().skip(36_000).for_each(|x| *x *= muted);
    for (sample, next) in sound
        .iter_mut()
        .skip(36_000)
        .zip(string(rate_hz, 0.25, 146.83, 5e-5, 1.0))
    {
        *sample += next;
    }
    let mut pitch = TunerPitch::new(rate_hz);
    let mut found = Vec::new();
    for block in sound.chunks(1_600) {
        pitch.push(block);
        found.push(pitch.frequency_hz());
    }
    let last = found.last().copied().flatten().unwrap();
    assert!(cents(last, 146.83).abs() < 5.0, "{last}");
    assert!(
        found
            .iter()
            .flatten()
            .all(|hz| cents(*hz, 110.0).abs() < 10.0 || cents(*hz, 146.83).abs() < 60.0)
    );
}

#[test]
fn silence_noise_and_what_is_not_a_number_have_no_pitch() {
    let mut pitch = TunerPitch::new(48_000.0);
    pitch.push(&[]);
    assert_eq!(pitch.frequency_hz(), None);
    pitch.push(&[0.0; 48_000]);
    assert_eq!(pitch.frequency_hz(), None);
    let mut seed = 1_u32;
    let noise: Vec<f32> = (0..48_000)
        .map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            0.3 * (seed as f32 / u32::MAX as f32 - 0.5)
        })
        .collect();
    pitch.push(&noise);
    assert_eq!(pitch.frequency_hz(), None);
    // A string far below the noise floor of an input.
    pitch.clear();
    let faint: Vec<f32> = sine(48_000.0, 0.5, 110.0)
        .iter()
        .map(|x| 1e-3 * x)
        .collect();
    pitch.push(&faint);
    assert_eq!(pitch.frequency_hz(), None);
    pitch.push(&[f32::NAN, f32::INFINITY]);
    pitch.push(&sine(48_000.0, 0.5, 110.0));
    assert!((pitch.frequency_hz().unwrap() - 110.0).abs() < 0.05);
}

#[test]
fn hum_and_hiss_move_it_by_less_than_a_cent() {
    let rate_hz = 48_000.0;
    let mut seed = 7_u32;
    let mut hiss = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        2e-3 * (seed as f32 / u32::MAX as f32 - 0.5)
    };
    for hz in [30.87, 41.2, 82.41, 110.0, 196.0, 329.63, 659.26] {
        let mut sound = string(rate_hz, 0.8, hz, 5e-5, 1.5);
        let hum = sine(rate_hz, 0.8, 50.0);
        sound
            .iter_mut()
            .zip(hum)
            .for_each(|(x, hum)| *x += 0.005 * hum + hiss());
        let error = worst(rate_hz, &sound, hz, 0.45);
        assert!(error < 1.0, "{hz} Hz: {error:.2} cents");
    }
}
