//! The latency that a pipeline reports is the one it has, at every rate.

use ondes_engine::dsp::resample::resample;
use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::pipeline::{Pipeline, PipelineOptions, Source};
use ondes_tests::{SAMPLE_RATE, untrained_instrument};

/// Plays one second and a bit at a rate, takes the latency off, and brings the sound to the model's rate.
fn aligned(sample_rate: u32, source: Source) -> Vec<f32> {
    let model = untrained_instrument(1);
    let mut pipeline = Pipeline::new(&model, &PipelineOptions { sample_rate, source, ..PipelineOptions::default() }).expect("it plays");
    let latency = pipeline.latency_samples();
    let length = sample_rate as usize + latency;
    let mut sound = vec![0.0; length];
    match source {
        Source::Notes => {
            let at = u64::from(sample_rate) / 4;
            let kind = EventKind::NoteOn { channel: 0, key: 57, velocity: 0.8 };
            pipeline.handle(Event { at, kind }).expect("there is room");
            pipeline.process(&[], &mut sound);
        }
        Source::Sound => {
            let step = std::f64::consts::TAU * 220.0 / f64::from(sample_rate);
            // Never silent, so that the pitch is known from the first frame on and the oscillators agree in phase.
            let swell = |n: usize| 0.2 + 0.8 * (n as f64 / f64::from(sample_rate) * 9.0).sin().max(0.0);
            let input: Vec<f32> = (0..length).map(|n| (0.4 * swell(n) * (step * n as f64).sin()) as f32).collect();
            pipeline.process(&input, &mut sound);
        }
    }
    resample(&sound[latency..], sample_rate, SAMPLE_RATE).expect("rates that can be bridged")
}

/// The shift of `sound` against `reference` at which they are most alike, samples.
fn shift(sound: &[f32], reference: &[f32]) -> isize {
    let alike = |shift: isize| -> f64 {
        let pairs = (2000..40_000).map(|n: isize| (sound[(n + shift) as usize], reference[n as usize]));
        pairs.map(|(a, b)| f64::from(a) * f64::from(b)).sum()
    };
    (-300..=300).max_by(|&a, &b| alike(a).total_cmp(&alike(b))).expect("there are shifts")
}

#[test]
fn reported_latency_is_real() {
    for source in [Source::Notes, Source::Sound] {
        let reference = aligned(SAMPLE_RATE, source);
        assert!(reference.iter().any(|sample| sample.abs() > 1e-3), "{source:?}: nothing sounds");
        for rate in [22_050, 32_000, 44_100, 88_200, 96_000, 192_000] {
            let found = shift(&aligned(rate, source), &reference);
            assert!(found.abs() <= 1, "{source:?} at {rate} Hz is {found} samples off");
        }
    }
}

#[test]
fn notes_begin_when_they_should() {
    let sound = aligned(SAMPLE_RATE, Source::Notes);
    let onset = sound.iter().position(|sample| sample.abs() > 1e-5).expect("the note sounds");
    // The note is at 12 000; the frame in which it falls is drawn out over one hop, and it fades in over one more.
    assert!((11_808..12_600).contains(&onset), "onset at {onset}");
}

#[test]
fn without_conversion_notes_wait_for_one_hop_only() {
    let pipeline = Pipeline::new(&untrained_instrument(1), &PipelineOptions::default()).expect("it plays");
    assert_eq!(pipeline.latency_samples(), ondes_tests::HOP);
}
