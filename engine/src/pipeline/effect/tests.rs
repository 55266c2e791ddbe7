//! Tests of oversampling and variants through the public interface.

use std::f64::consts::TAU;

use crate::Kernels;
use crate::dsp::fourier::RealFft;
use crate::model::{
    Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Weights,
};
use crate::pipeline::{Pipeline, PipelineError, PipelineOptions, Playable, ProcessRequest};

const RATE: usize = 48_000;
/// Samples per block of the clipper.
const BLOCK: usize = 1;

/// Effect: tanh(5 x), with the gain as a chain of additions.
fn clipper(block: usize) -> Model {
    let port = |name: &str| Port {
        name: name.into(),
        channels: 1,
        ratio: 1,
    };
    let node = |name: &str, inputs: &[&str], op| Node {
        name: name.into(),
        inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
        op,
    };
    let nodes = vec![
        node("two", &["in", "in"], Op::Add),
        node("four", &["two", "two"], Op::Add),
        node("five", &["four", "in"], Op::Add),
        node("audio", &["five"], Op::Activation(Activation::Tanh)),
    ];
    let forward = Method {
        name: "forward".into(),
        block,
        warm_up: 0,
        inputs: vec![port("in")],
        outputs: vec![port("audio")],
        nodes,
    };
    let header = Header {
        format: FORMAT,
        kind: Kind::Effect,
        sample_rate: RATE as u32,
        methods: vec![forward],
        variants: Vec::new(),
        oversampling: 1,
        controls: Vec::new(),
        performance: None,
        card: Card {
            name: "Clipper".into(),
            ..Card::default()
        },
    };
    Model::new(header, Weights::default()).unwrap()
}

fn options(oversampling: usize) -> PipelineOptions {
    PipelineOptions {
        oversampling: Some(oversampling),
        ..PipelineOptions::default()
    }
}

/// Returns one second of a tone through the clipper after settling, and the latency.
fn through(oversampling: usize, hz: f64, amplitude: f64) -> (Vec<f32>, usize) {
    let mut pipeline = Pipeline::new(&clipper(BLOCK), &options(oversampling)).unwrap();
    let tone: Vec<f32> = (0..2 * RATE)
        .map(|n| (amplitude * (TAU * hz * n as f64 / RATE as f64).sin()) as f32)
        .collect();
    let mut heard = vec![0.0; tone.len()];
    for (tone, heard) in tone.chunks(100).zip(heard.chunks_mut(100)) {
        pipeline.process(tone, heard);
    }
    (heard.split_off(RATE), pipeline.latency_samples())
}

/// Returns the power in dB at all frequencies that are no multiples of `hz`, which has an integer
/// number of periods.
fn alias_db(sound: &[f32], hz: usize) -> f64 {
    let mut fft = RealFft::new(RATE, Kernels::detect());
    let (mut samples, mut spectrum) = (sound.to_vec(), vec![0.0; fft.spectrum()]);
    fft.forward(&mut samples, &mut spectrum);
    let heard = spectrum
        .chunks_exact(2)
        .enumerate()
        .take(20_000)
        .filter(|(bin, _)| bin % hz != 0);
    let power: f64 = heard
        .map(|(_, part)| f64::from(part[0]).powi(2) + f64::from(part[1]).powi(2))
        .sum();
    10.0 * (2.0 * power).log10() - 20.0 * (RATE as f64).log10()
}

#[test]
fn oversampling_reduces_aliasing() {
    // Overtones of 4999 Hz alias to frequencies that are no multiples of it.
    let [plain, twice, four_times, eight_times] =
        [1, 2, 4, 8].map(|factor| alias_db(&through(factor, 4_999.0, 0.3).0, 4_999));
    assert!(
        twice < plain - 10.0 && four_times < plain - 20.0 && eight_times < plain - 30.0,
        "{plain:.1} dB, {twice:.1} dB, {four_times:.1} dB, {eight_times:.1} dB"
    );
}

#[test]
fn oversampling_keeps_low_frequencies_and_reports_its_latency() {
    let (plain, latency) = through(1, 100.0, 0.01);
    for (factor, expected) in [(2, 39), (4, 45), (8, 48)] {
        let (heard, late) = through(factor, 100.0, 0.01);
        let more = late - latency;
        assert_eq!(more, expected);
        for n in 0..RATE - more {
            assert!(
                (heard[n + more] - plain[n]).abs() < 1e-5,
                "{} for {} at {n}",
                heard[n + more],
                plain[n]
            );
        }
    }
}

#[test]
fn output_is_independent_of_block_sizes() {
    let tone: Vec<f32> = (0..6_000)
        .map(|n| (0.5 * (n as f32 * 0.37).sin()) * (n as f32 * 0.011).cos())
        .collect();
    for (model, factor) in [(clipper(1), 2), (clipper(1), 8), (clipper(32), 4)] {
        let play = |lengths: &[usize]| {
            let mut pipeline = Pipeline::new(&model, &options(factor)).unwrap();
            let (mut heard, mut start) = (vec![0.0; tone.len()], 0);
            for length in lengths.iter().cycle() {
                let end = tone.len().min(start + length);
                pipeline.process(&tone[start..end], &mut heard[start..end]);
                start = end;
                if start == tone.len() {
                    break;
                }
            }
            heard
        };
        let expected = play(&[6_000]);
        for lengths in [&[1][..], &[64], &[7, 100, 1, 33], &[480]] {
            assert_eq!(
                play(lengths),
                expected,
                "{factor} times, blocks of {lengths:?}"
            );
        }
    }
}

#[test]
fn sessions_are_independent() {
    let sessions = PipelineOptions {
        sessions: 3,
        ..options(2)
    };
    let mut batch = super::build(&clipper(1), &sessions).unwrap();
    let tones: Vec<Vec<f32>> = [0.1_f32, 0.23, 0.4]
        .iter()
        .map(|step| (0..512).map(|n| (n as f32 * step).sin()).collect())
        .collect();
    let mut heard = vec![vec![0.0; 512]; 3];
    // In blocks of different lengths.
    let mut requests: Vec<ProcessRequest<'_>> = heard
        .iter_mut()
        .zip(&tones)
        .enumerate()
        .map(|(slot, (output, input))| {
            let length = 512 - 5 * slot;
            ProcessRequest::mono(slot, &input[..length], &mut output[..length])
        })
        .collect();
    batch.process(&mut requests);
    for (slot, (tone, heard)) in tones.iter().zip(&heard).enumerate() {
        let mut alone = vec![0.0; 512];
        Pipeline::new(&clipper(1), &options(2))
            .unwrap()
            .process(tone, &mut alone);
        let length = 512 - 5 * slot;
        assert_eq!(heard[..length], alone[..length], "slot {slot}");
    }
}

#[test]
fn invalid_oversampling_factors_are_refused() {
    for factor in [0, 3, 16] {
        let refused = Pipeline::new(&clipper(BLOCK), &options(factor)).err();
        assert!(matches!(refused, Some(PipelineError::Oversampling(found)) if found == factor));
    }
}

#[test]
fn invalid_sizes_are_refused() {
    for size in [-0.01, 1.01, f32::NAN, f32::INFINITY] {
        let refused = Pipeline::new(
            &clipper(BLOCK),
            &PipelineOptions {
                size,
                ..PipelineOptions::default()
            },
        )
        .err();
        assert!(
            matches!(refused, Some(PipelineError::Size(found)) if found.to_bits() == size.to_bits())
        );
    }
    // A model without variants plays at any size.
    assert!(
        Pipeline::new(
            &clipper(BLOCK),
            &PipelineOptions {
                size: 0.0,
                ..PipelineOptions::default()
            }
        )
        .is_ok()
    );
}
