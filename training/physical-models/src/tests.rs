//! Requirements on every instrument.

use std::f64::consts::TAU;
use std::sync::LazyLock;

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

use super::curves::midi_to_hz;
use super::performance::{Note, Score};
use super::{CorpusOptions, Instrument, OUTPUT_RATE_HZ, Recorder, generate, names};
use super::{bowed::Bowed, plucked::Plucked, wind::Wind};

static BOWED: LazyLock<Bowed> = LazyLock::new(Bowed::new);
static WIND: LazyLock<Wind> = LazyLock::new(Wind::new);

/// Plays one note from 0.1 s to 1.1 s without a room, 1.9 s in all.
fn note(instrument: &dyn Instrument, midi: f64, dynamic: f64) -> Vec<f32> {
    let score = Score {
        duration_s: 1.9,
        notes: vec![Note::plain(0.1, 1.1, midi, dynamic)],
    };
    instrument.render(&score, &mut Xoshiro256PlusPlus::seed_from_u64(7))
}

fn part(samples: &[f32], from_s: f64, to_s: f64) -> &[f32] {
    &samples[(from_s * OUTPUT_RATE_HZ) as usize..(to_s * OUTPUT_RATE_HZ) as usize]
}

fn rms_db(samples: &[f32]) -> f64 {
    let energy: f64 = samples.iter().map(|x| f64::from(*x).powi(2)).sum();
    10.0 * (energy / samples.len() as f64 + 1e-24).log10()
}

/// Measures the pitch of a steady tone by autocorrelation, from two octaves below `near_hz` to two
/// above, so that wrong registers are found too. The instruments tune themselves by another method.
fn pitch_hz(samples: &[f32], near_hz: f64) -> f64 {
    let len = samples.len() / 2;
    let correlation = |lag: usize| -> f64 {
        let (a, b) = (&samples[..len], &samples[lag..lag + len]);
        let product: f64 = a
            .iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum();
        let energy: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a * a + b * b)).sum();
        2.0 * product / energy
    };
    let bounds = [0.24, 4.2].map(|ratio| (OUTPUT_RATE_HZ / near_hz * ratio) as usize);
    let values: Vec<f64> = (0..=bounds[1] + 1).map(correlation).collect();
    let is_peak = |lag: &usize| values[*lag] > values[lag - 1] && values[*lag] >= values[lag + 1];
    let highest = (bounds[0]..=bounds[1])
        .filter(is_peak)
        .map(|lag| values[lag])
        .fold(0.0, f64::max);
    let first = (bounds[0]..=bounds[1])
        .filter(is_peak)
        .find(|lag| values[*lag] > 0.93 * highest)
        .expect("a tone has a period");
    // Over sixteen periods an error of one sample is sixteen times smaller.
    let mut period = refine(first, &correlation);
    for periods in [2.0, 4.0, 8.0, 16.0] {
        let centre = (period * periods).round() as usize;
        let lag = (centre - 2..=centre + 2)
            .max_by(|a, b| correlation(*a).total_cmp(&correlation(*b)))
            .unwrap_or(centre);
        period = refine(lag, &correlation) / periods;
    }
    OUTPUT_RATE_HZ / period
}

/// Refines the position of a peak by the parabola through it and its neighbours.
fn refine(lag: usize, correlation: &impl Fn(usize) -> f64) -> f64 {
    let [before, at, after] = [lag - 1, lag, lag + 1].map(correlation);
    lag as f64 + 0.5 * (before - after) / (before - 2.0 * at + after)
}

/// Returns the level of harmonics four to ten relative to the first three, dB.
fn brightness_db(samples: &[f32], hz: f64) -> f64 {
    let power = |harmonic: u32| {
        let (mut re, mut im) = (0.0, 0.0);
        for (n, x) in samples.iter().enumerate() {
            let window = 0.5 - 0.5 * (TAU * n as f64 / samples.len() as f64).cos();
            let angle = TAU * hz * f64::from(harmonic) * n as f64 / OUTPUT_RATE_HZ;
            re += window * f64::from(*x) * angle.cos();
            im += window * f64::from(*x) * angle.sin();
        }
        re * re + im * im
    };
    10.0 * ((4..=10).map(power).sum::<f64>() / (1..=3).map(power).sum::<f64>()).log10()
}

fn is_in_tune(instrument: &dyn Instrument, pitches: &[f64]) {
    for &midi in pitches {
        for dynamic in [0.1, 0.5, 0.95] {
            let hz = midi_to_hz(midi);
            let got = pitch_hz(part(&note(instrument, midi, dynamic), 0.4, 1.0), hz);
            let cents = 1200.0 * (got / hz).log2();
            assert!(
                cents.abs() < 10.0,
                "midi {midi} at dynamic {dynamic}: {cents:.1} cents off"
            );
        }
    }
}

fn dynamics_are_loudness_and_brightness(instrument: &dyn Instrument, midi: f64, range_db: f64) {
    let notes = [0.0, 0.33, 0.67, 1.0].map(|dynamic| note(instrument, midi, dynamic));
    let levels = notes.each_ref().map(|x| rms_db(part(x, 0.2, 0.9)));
    assert!(
        levels.windows(2).all(|pair| pair[1] > pair[0] + 5.0),
        "{levels:?}"
    );
    assert!(levels[3] - levels[0] > range_db, "{levels:?}");
    let [soft, .., loud] = notes.map(|x| brightness_db(part(&x, 0.3, 0.9), midi_to_hz(midi)));
    assert!(
        loud > soft + 2.0,
        "brightness {soft} dB soft, {loud} dB loud"
    );
}

fn is_bounded_and_ends_in_silence(instrument: &dyn Instrument, midi: f64) {
    let samples = note(instrument, midi, 1.0);
    assert!(samples.iter().all(|x| x.is_finite() && x.abs() < 60.0));
    assert!(part(&samples, 0.0, 0.09).iter().all(|x| *x == 0.0));
    let sounding = rms_db(part(&samples, 0.2, 1.0));
    assert!(rms_db(part(&samples, 1.8, 1.89)) < sounding - 70.0);
    assert!(
        samples.iter().all(|x| *x == 0.0 || x.abs() > 1e-30),
        "denormal numbers"
    );
}

#[test]
fn bowed_is_in_tune() {
    is_in_tune(&*BOWED, &[43.0, 50.3, 57.0, 64.0, 70.5, 76.0, 82.0, 88.0]);
}

#[test]
fn wind_is_in_tune() {
    is_in_tune(&*WIND, &[50.0, 55.4, 62.0, 69.0, 75.5, 81.0, 86.0]);
}

#[test]
fn plucked_is_in_tune() {
    is_in_tune(&Plucked, &[40.0, 47.0, 54.6, 60.0, 67.0, 75.5, 84.0]);
}

#[test]
fn dynamics_reach_the_sound() {
    dynamics_are_loudness_and_brightness(&*BOWED, 62.0, 33.0);
    dynamics_are_loudness_and_brightness(&*WIND, 62.0, 30.0);
    // A strong pluck is nearer to the bridge, which lowers its level a little.
    dynamics_are_loudness_and_brightness(&Plucked, 52.0, 29.0);
}

#[test]
fn sound_is_bounded_and_ends() {
    is_bounded_and_ends_in_silence(&*BOWED, 45.0);
    is_bounded_and_ends_in_silence(&*WIND, 52.0);
    is_bounded_and_ends_in_silence(&Plucked, 40.0);
}

#[test]
fn a_seed_gives_the_same_samples_and_another_gives_others() {
    for name in ["plucked", "wind"] {
        let recorder = Recorder::new(name, 3).expect("the corpus exists");
        let (first, again, other) = (recorder.record(5), recorder.record(5), recorder.record(6));
        assert_eq!(first.samples, again.samples);
        assert_ne!(first.samples, other.samples);
        assert!(
            first.samples[first.samples.len() - 2_000..]
                .iter()
                .all(|x| *x == 0.0)
        );
        let mean: f64 =
            first.samples.iter().map(|x| f64::from(*x)).sum::<f64>() / first.samples.len() as f64;
        assert!(mean.abs() < 1e-4, "a DC of {mean}");
    }
}

#[test]
fn a_corpus_does_not_depend_on_the_number_of_threads() {
    let options = CorpusOptions {
        name: "plucked".to_owned(),
        minutes: 0.4,
        seed: 11,
    };
    let root =
        std::env::temp_dir().join(format!("ondes-physical-models-test-{}", std::process::id()));
    let folders = [1, 3].map(|threads| {
        let folder = root.join(threads.to_string());
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads start");
        let summary = pool
            .install(|| generate(&options, &folder, |_, _| ()))
            .expect("the corpus is written");
        assert!(summary.seconds >= 24.0);
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .expect("the folder exists")
            .map(|entry| entry.expect("the folder can be read").file_name())
            .collect();
        files.sort();
        files
            .into_iter()
            .map(|file| std::fs::read(folder.join(file)).expect("the file can be read"))
            .collect::<Vec<_>>()
    });
    assert!(folders[0].len() >= 3);
    assert!(
        folders[0] == folders[1],
        "one thread and three threads wrote different corpora"
    );
    let wav = hound::WavReader::open(root.join("1").join("plucked-0001.wav")).expect("a WAV file");
    assert_eq!(
        (
            wav.spec().channels,
            wav.spec().sample_rate,
            wav.spec().bits_per_sample
        ),
        (1, 48_000, 24)
    );
    std::fs::remove_dir_all(&root).expect("the folder can be removed");
}

#[test]
fn unknown_names_and_lengths_are_refused() {
    let options = |name: &str, minutes| CorpusOptions {
        name: name.to_owned(),
        minutes,
        seed: 0,
    };
    let out = std::env::temp_dir();
    assert!(generate(&options("kazoo", 1.0), &out, |_, _| ()).is_err());
    for minutes in [0.0, -1.0, f64::NAN, 1e9] {
        assert!(generate(&options(names()[2], minutes), &out, |_, _| ()).is_err());
    }
}
