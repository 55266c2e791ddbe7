//! Captures in the pipeline: in time, started after silence, and unchanged by conversion.

use ondes_engine::model::{file, import};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_tests::random_splits;

use super::accuracy::{play, playing};
use super::generate::Generator;

#[test]
fn the_pipeline_plays_what_the_method_makes() {
    for seed in 0..6 {
        let mut generator = Generator::new(seed);
        let file = if seed % 2 == 0 {
            generator.wavenet(1)
        } else {
            generator.lstm()
        };
        let model = import::parse(file.to_string().as_bytes())
            .expect("it is read")
            .model;
        let input = playing(6_016);
        let expected = play(&model, "forward", std::slice::from_ref(&input), &[6_016]);
        let mut pipeline = Pipeline::new(&model, &PipelineOptions::default()).expect("it plays");
        let latency = pipeline.latency_samples();
        let mut output = vec![0.0; input.len()];
        let mut at = 0;
        for length in random_splits(seed, input.len(), 900) {
            pipeline.process(&input[at..at + length], &mut output[at..at + length]);
            at += length;
        }
        assert!(
            output[latency..] == expected[..input.len() - latency],
            "seed {seed}"
        );
    }
}

#[test]
fn a_converted_capture_is_the_same() {
    for seed in 0..12 {
        let file = Generator::new(seed).any();
        let model = import::parse(file.to_string().as_bytes())
            .expect("it is read")
            .model;
        let bytes = file::serialize(&model).expect("it can be laid out");
        let again = file::parse(&bytes).expect("it can be read");
        assert_eq!(
            (&again, again.content_hash()),
            (&model, model.content_hash())
        );
    }
}
