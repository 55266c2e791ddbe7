//! Synthetic sounds whose pitch is known at every sample.

use std::f64::consts::TAU;

use proptest::prelude::*;

use super::*;

const RATE: f64 = 48_000.0;
const HOP: usize = 192;

/// Uniform noise in -1..1 from a 64-bit linear congruential generator.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// Amplitude of a harmonic, counted from 1.
type Spectrum = fn(usize) -> f64;

const SPECTRA: [(&str, Spectrum); 6] = [
    ("sine", |harmonic| if harmonic == 1 { 1.0 } else { 0.0 }),
    ("sawtooth", |harmonic| 1.0 / harmonic as f64),
    ("clarinet", |harmonic| {
        if harmonic % 2 == 1 {
            1.0 / harmonic as f64
        } else {
            0.05 / harmonic as f64
        }
    }),
    // The fundamental is 26 dB below the second and third harmonic.
    ("weak fundamental", |harmonic| {
        if harmonic == 1 {
            0.05
        } else {
            2.0 / harmonic as f64
        }
    }),
    ("no fundamental", |harmonic| {
        if harmonic == 1 {
            0.0
        } else {
            2.0 / harmonic as f64
        }
    }),
    // A vowel with a formant at the fourth harmonic.
    ("formant", |harmonic| {
        0.1 / harmonic as f64 + (-(harmonic as f64 - 4.0).powi(2)).exp()
    }),
];

/// Tone of mean square about 0.05 with a given pitch in semitones over time in seconds, and its
/// true pitches.
fn tone(
    rate: f64,
    seconds: f64,
    spectrum: Spectrum,
    semitones: impl Fn(f64) -> f64,
    signal_to_noise_db: Option<f64>,
) -> (Vec<f32>, Vec<f64>) {
    let length = (rate * seconds) as usize;
    let mut noise = Noise(7);
    let starts: Vec<f64> = (0..64).map(|_| noise.next() * TAU).collect();
    let mut phase = 0.0;
    let mut truth = Vec::with_capacity(length);
    let mut sound = Vec::with_capacity(length);
    for sample in 0..length {
        let pitch = semitones(sample as f64 / rate);
        let frequency = 440.0 * ((pitch - 69.0) / 12.0).exp2();
        let harmonics = ((0.45 * rate / frequency) as usize).min(40);
        let value: f64 = (1..=harmonics)
            .map(|harmonic| spectrum(harmonic) * (harmonic as f64 * phase + starts[harmonic]).sin())
            .sum();
        sound.push(value);
        truth.push(pitch);
        phase = (phase + TAU * frequency / rate) % TAU;
    }
    let power = sound.iter().map(|value| value * value).sum::<f64>() / length as f64;
    // The variance of the uniform distribution is 1/3.
    let level = signal_to_noise_db.map_or(0.0, |db| (3.0 * power * 10_f64.powf(-db / 10.0)).sqrt());
    let scale = (0.05 / power).sqrt();
    let sound = sound
        .iter()
        .map(|value| (scale * (value + level * noise.next())) as f32)
        .collect();
    (sound, truth)
}

/// Returns the errors in cents of all frames whose window is inside the sound, and the number of
/// unvoiced ones.
fn errors(rate: f64, sound: &[f32], truth: &[f64]) -> (Vec<f64>, usize) {
    errors_of(PitchTracker::new(rate, HOP), sound, truth)
}

fn errors_of(mut tracker: PitchTracker, sound: &[f32], truth: &[f64]) -> (Vec<f64>, usize) {
    // The longer window, whose end is the frame's instant plus the latency, must be filled.
    let window = tracker.ring.len() / 2;
    let edge = tracker
        .latency()
        .max(window + 1 + 2 * tracker.conditioner.delay() - tracker.latency());
    let (mut centre, mut unvoiced, mut errors) = (0, 0, Vec::new());
    tracker.push(sound, |frame| {
        if centre >= edge {
            unvoiced += usize::from(!frame.voiced);
            errors.push(100.0 * (f64::from(frame.semitones) - truth[centre]));
        }
        centre += HOP;
    });
    (errors, unvoiced)
}

fn quantile(errors: &[f64], part: f64) -> f64 {
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    sizes[((sizes.len() - 1) as f64 * part) as usize]
}

fn gross(errors: &[f64]) -> f64 {
    errors.iter().filter(|error| error.abs() > 50.0).count() as f64 / errors.len() as f64
}

/// Checks median and 95th percentile of the error in cents, and the share of gross errors.
fn assert_within(errors: &[f64], median: f64, most: f64, gross_part: f64, what: &str) {
    let found = (quantile(errors, 0.5), quantile(errors, 0.95), gross(errors));
    assert!(
        found.0 < median && found.1 < most && found.2 <= gross_part,
        "{what}: {found:?}"
    );
}

/// 55 Hz to 2 kHz in steps of 1.7 semitones, none of them on a note.
fn pitches() -> impl Iterator<Item = f64> {
    (0..)
        .map(|step| 33.0 + 1.7 * f64::from(step))
        .take_while(|&pitch| pitch < 95.2)
}

#[test]
fn clean_tones_are_exact() {
    for (name, spectrum) in SPECTRA {
        let mut all = Vec::new();
        for pitch in pitches() {
            let (sound, truth) = tone(RATE, 0.25, spectrum, |_| pitch, None);
            let (errors, unvoiced) = errors(RATE, &sound, &truth);
            assert_eq!(unvoiced, 0, "{name} at {pitch}");
            all.extend(errors);
        }
        assert_within(&all, 0.1, 0.3, 0.0, name);
    }
}

/// A partial with nine tenths of the power, as of a bassoon, is no pitch; a double bass has a lowest
/// string.
#[test]
fn strong_partials_and_low_strings_are_heard() {
    let formant = |harmonic| match harmonic {
        5 => 1.0,
        1..10 => 0.11,
        _ => 0.0,
    };
    let sawtooth = SPECTRA[1].1;
    for (spectrum, pitch) in [
        (formant as Spectrum, 50.3),
        (formant, 56.1),
        (formant, 62.7),
        (sawtooth, 28.3),
    ] {
        let (sound, truth) = tone(RATE, 0.4, spectrum, |_| pitch, Some(40.0));
        for tracker in [PitchTracker::new(RATE, HOP), low_latency()] {
            let (errors, unvoiced) = errors_of(tracker, &sound, &truth);
            let worst = errors
                .iter()
                .fold(0.0, |most, error: &f64| error.abs().max(most));
            assert!(
                worst < 5.0 && unvoiced == 0,
                "{pitch}: {worst} cents, {unvoiced}"
            );
        }
    }
}

#[test]
fn noise_has_little_effect() {
    for (name, spectrum) in SPECTRA {
        let mut all = Vec::new();
        for pitch in pitches() {
            let (sound, truth) = tone(RATE, 0.25, spectrum, |_| pitch, Some(20.0));
            let (errors, unvoiced) = errors(RATE, &sound, &truth);
            assert_eq!(unvoiced, 0, "{name} at {pitch}");
            all.extend(errors);
        }
        assert_within(&all, 0.5, 3.0, 0.005, name);
    }
}

#[test]
fn vibrato_is_followed() {
    for (name, spectrum) in SPECTRA {
        for noise in [None, Some(20.0)] {
            let mut all = Vec::new();
            for pitch in pitches() {
                let bent = |time: f64| pitch + 0.6 * (TAU * 6.0 * time).sin();
                let (sound, truth) = tone(RATE, 0.4, spectrum, bent, noise);
                all.extend(errors(RATE, &sound, &truth).0);
            }
            assert_within(&all, 5.0, 8.0, 0.005, name);
        }
    }
}

fn root_mean_square(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

fn note(frequency: f64) -> f64 {
    69.0 + 12.0 * (frequency / 440.0).log2()
}

/// The whole window alone has an error of at least 2.6 cents.
#[test]
fn vibrato_keeps_its_depth_and_timing() {
    for frequency in [150.0, 300.0, 600.0, 1200.0] {
        for (noise, limit) in [(None, 0.6), (Some(40.0), 0.6), (Some(20.0), 1.0)] {
            let bent = |time: f64| note(frequency) + 0.6 * (TAU * 6.0 * time).sin();
            let (sound, truth) = tone(RATE, 1.5, SPECTRA[1].1, bent, noise);
            let (errors, _) = errors(RATE, &sound, &truth);
            let off = root_mean_square(&errors);
            assert!(
                off < limit,
                "{frequency} Hz at {noise:?} dB: {off:.2} cents"
            );
            // A curve that is late by t is low by t times its slope.
            let first = PitchTracker::new(RATE, HOP).latency().div_ceil(HOP);
            let slopes = (first..)
                .map(|frame| 60.0 * TAU * 6.0 * (TAU * 6.0 * (frame * HOP) as f64 / RATE).cos());
            let (product, square) = errors
                .iter()
                .zip(slopes)
                .fold((0.0, 0.0), |sums, (error, slope)| {
                    (sums.0 - error * slope, sums.1 + slope * slope)
                });
            let late = 1e3 * product / square;
            assert!(
                late.abs() < 0.05,
                "{frequency} Hz at {noise:?} dB: late by {late:.3} ms"
            );
        }
    }
}

/// The whole window alone rounds the corners by 9 to 16 cents.
#[test]
fn glides_keep_their_corners() {
    for frequency in [150.0, 300.0, 600.0] {
        for direction in [1.0, -1.0] {
            // An octave in 300 ms.
            let slid =
                |time: f64| note(frequency) + direction * (40.0 * (time - 0.25)).clamp(0.0, 12.0);
            let (sound, truth) = tone(RATE, 0.8, SPECTRA[1].1, slid, Some(40.0));
            let (errors, _) = errors(RATE, &sound, &truth);
            let (off, most) = (root_mean_square(&errors), quantile(&errors, 1.0));
            assert!(
                off < 1.2 && most < 7.0,
                "{frequency} Hz, {direction}: {off:.2} cents, at most {most:.2}"
            );
        }
    }
}

#[test]
fn steady_tones_are_exact_in_every_frame() {
    for (name, spectrum) in SPECTRA {
        for pitch in pitches() {
            let (sound, truth) = tone(RATE, 0.3, spectrum, |_| pitch, None);
            let (errors, _) = errors(RATE, &sound, &truth);
            // The high-pass settles in the first 60 ms.
            let most = quantile(&errors[15..], 1.0);
            assert!(most < 0.2, "{name} at {pitch}: {most:.3} cents");
        }
    }
}

/// Short stretches of a steady, noisy tone are less accurate than the whole window and must not
/// count.
#[test]
fn noise_does_not_disturb_steady_tones() {
    let mut all = Vec::new();
    for pitch in pitches() {
        let (sound, truth) = tone(RATE, 0.5, SPECTRA[1].1, |_| pitch, Some(20.0));
        all.extend(errors(RATE, &sound, &truth).0);
    }
    assert_within(&all, 0.06, 0.25, 0.0, "sawtooth");
}

#[test]
fn glides_are_followed() {
    for (name, spectrum) in SPECTRA {
        for noise in [None, Some(20.0)] {
            // Five octaves in 2.5 seconds, in both directions.
            let up = |time: f64| 33.5 + 24.0 * time;
            let down = |time: f64| 93.5 - 24.0 * time;
            let mut all = Vec::new();
            for (sound, truth) in [
                tone(RATE, 2.5, spectrum, up, noise),
                tone(RATE, 2.5, spectrum, down, noise),
            ] {
                all.extend(errors(RATE, &sound, &truth).0);
            }
            assert_within(&all, 1.5, 5.0, 0.01, name);
        }
    }
}

#[test]
fn leaps_are_accepted() {
    for (name, spectrum) in SPECTRA {
        for leap in [12.0, -12.0, 7.0, -19.0, 24.0] {
            let pitch = |time: f64| if time < 0.3 { 60.3 } else { 60.3 + leap };
            let (sound, truth) = tone(RATE, 0.7, spectrum, pitch, Some(40.0));
            let (errors, _) = errors(RATE, &sound, &truth);
            // The errors begin with frame 6; the last window that includes the leap at frame 75 is
            // that of frame 80.
            let settled: Vec<f64> = errors.iter().skip(75).copied().collect();
            assert!(
                gross(&settled) == 0.0,
                "{name} by {leap}: {:.3}",
                gross(&settled)
            );
        }
    }
}

#[test]
fn other_rates_work() {
    for rate in [16_000.0, 22_050.0, 44_100.0, 96_000.0, 192_000.0] {
        let mut all = Vec::new();
        for pitch in pitches().step_by(4) {
            let (sound, truth) = tone(rate, 0.2, SPECTRA[1].1, |_| pitch, None);
            all.extend(errors(rate, &sound, &truth).0);
        }
        assert_within(&all, 0.2, 0.6, 0.0, &rate.to_string());
    }
}

fn low_latency() -> PitchTracker {
    PitchTracker::low_latency(RATE, HOP)
}

#[test]
fn low_latency_tracks_steady_tones() {
    assert_eq!(low_latency().latency(), 513);
    for (name, spectrum) in SPECTRA {
        let (mut clean, mut noisy) = (Vec::new(), Vec::new());
        for pitch in pitches() {
            let (sound, truth) = tone(RATE, 0.3, spectrum, |_| pitch, None);
            let (errors, unvoiced) = errors_of(low_latency(), &sound, &truth);
            assert_eq!(unvoiced, 0, "{name} at {pitch}");
            clean.extend(errors);
            let (sound, truth) = tone(RATE, 0.3, spectrum, |_| pitch, Some(20.0));
            let (errors, unvoiced) = errors_of(low_latency(), &sound, &truth);
            assert_eq!(unvoiced, 0, "{name} at {pitch} with noise");
            noisy.extend(errors);
        }
        assert_within(&clean, 0.1, 0.3, 0.0, name);
        assert_within(&noisy, 0.5, 3.0, 0.005, name);
    }
}

/// Above 94 Hz the curve is neither late nor flattened, although half as much of the future is
/// known.
#[test]
fn low_latency_keeps_depth_and_timing_of_vibrato() {
    for frequency in [150.0, 300.0, 600.0, 1200.0] {
        for (noise, limit) in [(None, 0.8), (Some(40.0), 0.8), (Some(20.0), 1.5)] {
            let bent = |time: f64| note(frequency) + 0.6 * (TAU * 6.0 * time).sin();
            let (sound, truth) = tone(RATE, 1.5, SPECTRA[1].1, bent, noise);
            let (errors, _) = errors_of(low_latency(), &sound, &truth);
            let off = root_mean_square(&errors);
            assert!(
                off < limit,
                "{frequency} Hz at {noise:?} dB: {off:.2} cents"
            );
        }
    }
}

#[test]
fn low_latency_follows_glides() {
    for (name, spectrum) in SPECTRA {
        for noise in [None, Some(20.0)] {
            let (up, down) = (
                |time: f64| 43.5 + 24.0 * time,
                |time: f64| 93.5 - 24.0 * time,
            );
            let mut all = Vec::new();
            for (sound, truth) in [
                tone(RATE, 2.1, spectrum, up, noise),
                tone(RATE, 2.1, spectrum, down, noise),
            ] {
                all.extend(errors_of(low_latency(), &sound, &truth).0);
            }
            assert_within(&all, 1.5, 5.0, 0.01, name);
        }
    }
}

/// A new note above E3 is found as soon as its window has no other in it.
#[test]
fn low_latency_accepts_leaps_within_half_a_window() {
    for (name, spectrum) in SPECTRA {
        for (from, to) in [
            (60.3, 72.3),
            (60.3, 53.2),
            (72.3, 60.3),
            (60.3, 67.3),
            (55.3, 79.3),
            (84.2, 62.9),
        ] {
            let pitch = |time: f64| if time < 0.3 { from } else { to };
            let (sound, truth) = tone(RATE, 0.6, spectrum, pitch, Some(40.0));
            let mut frames = Vec::new();
            low_latency().push(&sound, |frame| frames.push(frame));
            // The leap is at frame 75; the short window leaves it behind with frame 78.
            let off =
                |frame: usize| 100.0 * (f64::from(frames[frame].semitones) - truth[frame * HOP]);
            let worst = (78..frames.len())
                .map(|frame| off(frame).abs())
                .fold(0.0, f64::max);
            assert!(worst < 50.0, "{name} from {from} to {to}: {worst:.1} cents");
        }
    }
}

#[test]
fn low_latency_ignores_noise_and_silence() {
    let (mut sound, _) = tone(RATE, 0.3, SPECTRA[1].1, |_| 57.25, None);
    let mut noise = Noise(3);
    sound.extend((0..48_000).map(|_| 0.1 * noise.next() as f32));
    sound.extend([0.0; 14_400]);
    let mut frames = Vec::new();
    low_latency().push(&sound, |frame| frames.push(frame));
    assert!(frames[10..70].iter().all(|frame| frame.voiced));
    assert!(frames[82..].iter().all(|frame| !frame.voiced));
    assert_eq!(frames.last().map(|frame| frame.confidence), Some(0.0));
}

#[test]
fn noise_and_silence_are_unvoiced_and_keep_the_pitch() {
    let (mut sound, _) = tone(RATE, 0.3, SPECTRA[1].1, |_| 57.25, None);
    let mut noise = Noise(3);
    sound.extend((0..14_400).map(|_| 0.1 * noise.next() as f32));
    sound.extend([0.0; 14_400]);
    let mut frames = Vec::new();
    let mut tracker = PitchTracker::new(RATE, HOP);
    tracker.push(&sound, |frame| frames.push(frame));
    assert!(!frames[0].voiced || frames[0].confidence > 0.75);
    assert!(frames[10..64].iter().all(|frame| frame.voiced));
    for frame in &frames[90..] {
        assert!(!frame.voiced && frame.confidence < 0.5, "{frame:?}");
        assert!((frame.semitones - frames[89].semitones).abs() < f32::EPSILON);
    }
    assert_eq!(frames.last().map(|frame| frame.confidence), Some(0.0));
}

#[test]
fn latency_is_exact() {
    let mut tracker = PitchTracker::new(RATE, HOP);
    let mut arrivals = Vec::new();
    for sample in 0..5_000 {
        tracker.push(&[0.1], |_| arrivals.push(sample));
    }
    let expected: Vec<usize> = (0..)
        .map(|i| i * HOP + tracker.latency() - 1)
        .take_while(|&at| at < 5_000)
        .collect();
    assert_eq!(arrivals, expected);
}

/// An impulse is symmetric only in the frame that is centred on it.
#[test]
fn windows_are_centred() {
    let mut tracker = PitchTracker::new(RATE, HOP);
    let half = (HALF_WINDOW_S * RATE) as usize;
    let smoothing = tracker.conditioner.delay();
    // Frame 8 covers half the window on either side of its centre, plus the smoothing.
    let affects = |at: usize, tracker: &mut PitchTracker| {
        tracker.reset();
        let mut sound = vec![0.0; 8 * HOP + tracker.latency()];
        sound[at] = 1.0;
        tracker.conditioner.pole = 0.0;
        let mut count = 0;
        tracker.push(&sound, |_| count += 1);
        assert_eq!(count, 9);
        tracker.ring.iter().any(|&sample| sample != 0.0)
    };
    assert!(affects(8 * HOP + half + smoothing, &mut tracker));
    // The last sample that the smoothing can include.
    assert!(affects(8 * HOP - half - smoothing, &mut tracker));
    // With its pole at 0 the high-pass is a difference, which includes one earlier sample.
    assert!(!affects(8 * HOP - half - smoothing - 2, &mut tracker));
}

#[test]
fn non_finite_samples_do_not_persist() {
    let mut tracker = PitchTracker::new(RATE, HOP);
    tracker.push(
        &[
            f32::NAN,
            f32::INFINITY,
            f32::MAX,
            -f32::MAX,
            f32::NEG_INFINITY,
        ],
        |_| (),
    );
    tracker.push(&[0.0; 96_000], |_| ());
    let (sound, _) = tone(RATE, 0.2, SPECTRA[1].1, |_| 57.25, None);
    let mut last = INITIAL_FRAME;
    tracker.push(&sound, |frame| {
        assert!(frame.semitones.is_finite() && (0.0..=1.0).contains(&frame.confidence));
        last = frame;
    });
    assert!(
        last.voiced && (last.semitones - 57.25).abs() < 0.02,
        "{last:?}"
    );
}

#[test]
fn reset_clears_all_state() {
    let (sound, _) = tone(RATE, 0.2, SPECTRA[1].1, |_| 57.25, None);
    let mut tracker = PitchTracker::new(RATE, HOP);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    tracker.push(&sound, |frame| first.push(frame));
    tracker.reset();
    tracker.push(&sound, |frame| second.push(frame));
    assert_eq!(first, second);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn frames_do_not_depend_on_block_length(splits in prop::collection::vec(0_usize..700, 1..40)) {
        let (sound, _) = tone(RATE, 0.2, SPECTRA[3].1, |time| 50.0 + 30.0 * time, Some(20.0));
        let (mut whole, mut split) = (Vec::new(), Vec::new());
        PitchTracker::new(RATE, HOP).push(&sound, |frame| whole.push(frame));
        let mut tracker = PitchTracker::new(RATE, HOP);
        let mut rest = sound.as_slice();
        for length in splits {
            let (block, after) = rest.split_at(length.min(rest.len()));
            tracker.push(block, |frame| split.push(frame));
            rest = after;
        }
        tracker.push(rest, |frame| split.push(frame));
        prop_assert_eq!(whole, split);
    }
}
