//! Generators that follow the bars of a song: in time with the host or by themselves, repeated, and
//! held.

use ondes_engine::model::{Kind, Model, Op, Tensor};
use ondes_engine::ops::Linear;
use ondes_engine::pipeline::{Pipeline, PipelineOptions, Transport, controls};
use ondes_tests::audio_models::{LATENTS, RATIO, codec_methods, method, model_with};
use ondes_tests::{node, port};

const SAMPLE_RATE: u32 = 48_000;
/// Samples of a hop: the block of the decoder.
const HOP: usize = 2 * RATIO;

/// Returns a generator whose latents are all the place in four bars.
fn follower() -> Model {
    let nodes = vec![node(
        "place",
        &["bars"],
        Op::Linear(Linear { outputs: LATENTS }),
    )];
    let mut methods = codec_methods();
    methods[0] = method("prior", RATIO, vec![port("bars", 1, RATIO)], nodes);
    let model = model_with(Kind::Generator, methods, &[], 1);
    let mut weights = model.weights().clone();
    weights.insert(
        "place.weight",
        Tensor::new(&[LATENTS, 1], vec![1.0; LATENTS]),
    );
    weights.insert("place.bias", Tensor::new(&[LATENTS], vec![0.0; LATENTS]));
    Model::new(model.header().clone(), weights).expect("it fits")
}

/// Plays for some seconds; returns the place that the prior was told in each hop.
fn places(pipeline: &mut Pipeline, seconds: f64) -> Vec<f32> {
    let hops = (seconds * f64::from(SAMPLE_RATE) / HOP as f64).round() as usize;
    let mut sound = [0.0; HOP];
    let mut hop = || {
        pipeline.process(&[], &mut sound);
        pipeline.latents()[0]
    };
    (0..hops).map(|_| hop()).collect()
}

fn bars(seconds: f64, tempo: f64) -> f32 {
    (seconds * tempo / 60.0 / 4.0).rem_euclid(4.0) as f32
}

fn after(hops: usize) -> f64 {
    (hops * HOP) as f64 / f64::from(SAMPLE_RATE)
}

fn assert_places(places: &[f32], expected: impl Fn(usize) -> f32, what: &str) {
    for (hop, place) in places.iter().enumerate() {
        let error = (place - expected(hop)).abs();
        assert!(
            error.min(4.0 - error) < 1e-3,
            "{what}, hop {hop}: {place}, expected {}",
            expected(hop)
        );
    }
}

#[test]
fn bars_go_on_by_themselves_and_with_the_song() {
    let model = follower();
    let mut pipeline = Pipeline::new(
        &model,
        &PipelineOptions {
            sample_rate: SAMPLE_RATE,
            ..Default::default()
        },
    );
    let pipeline = pipeline.as_mut().expect("it plays");
    let named = |name: &str| {
        controls(model.header())
            .into_iter()
            .find(|control| control.name == name)
    };
    assert_eq!(
        named("tempo").map(|control| (control.min, control.default, control.max)),
        Some((40.0, 120.0, 240.0))
    );
    assert_places(
        &places(pipeline, 10.0),
        |hop| bars(after(hop), 120.0),
        "alone",
    );
    pipeline.set_control("tempo", 60.0).expect("a control");
    let from = bars(10.0, 120.0);
    assert_places(
        &places(pipeline, 3.0),
        |hop| (from + bars(after(hop), 60.0)).rem_euclid(4.0),
        "slower",
    );

    let song = Transport {
        tempo: 90.0,
        position: 6.5,
        playing: true,
    };
    pipeline.set_transport(song).expect("there is room");
    let told = |hop: usize| bars(6.5 * 60.0 / 90.0 + after(hop), 90.0);
    let played = places(pipeline, 5.0);
    assert_places(&played, told, "with the song");
    // Where the song stops, bars go on at its tempo.
    let stopped = Transport {
        playing: false,
        position: 0.0,
        ..song
    };
    pipeline.set_transport(stopped).expect("there is room");
    assert_places(
        &places(pipeline, 2.0),
        |hop| told(played.len() + hop),
        "after the song",
    );
}

#[test]
fn the_last_bars_are_repeated_and_the_moment_is_held() {
    let model = follower();
    let mut pipeline = Pipeline::new(
        &model,
        &PipelineOptions {
            sample_rate: SAMPLE_RATE,
            ..Default::default()
        },
    );
    let pipeline = pipeline.as_mut().expect("it plays");
    // Two bars and a half.
    places(pipeline, 5.0);
    pipeline.set_control("prior.loop", 1.0).expect("a control");
    let looped = places(pipeline, 6.0);
    let repeated = |hop: usize| 1.5 + bars(after(hop), 120.0).rem_euclid(1.0);
    for (hop, place) in looped.iter().enumerate() {
        // To the next frame, of which a bar has 1,500.
        let error = (place - repeated(hop)).abs();
        assert!(
            error.min(1.0 - error) < 2e-3,
            "hop {hop}: {place}, expected {}",
            repeated(hop)
        );
    }
    pipeline.set_control("prior.loop", 0.0).expect("a control");
    assert_places(
        &places(pipeline, 1.0),
        |hop| bars(11.0 + after(hop), 120.0),
        "after the loop",
    );
    // All beats anew: as if there were no loop, once the first beat has begun.
    pipeline.set_control("prior.loop", 2.0).expect("a control");
    pipeline
        .set_control("prior.variation", 1.0)
        .expect("a control");
    places(pipeline, 1.0);
    assert_places(
        &places(pipeline, 3.0),
        |hop| bars(13.0 + after(hop), 120.0),
        "varied",
    );

    pipeline
        .set_control("prior.freeze", 1.0)
        .expect("a control");
    let held = places(pipeline, 2.0);
    assert!(
        held.iter()
            .all(|place| place.to_bits() == held[0].to_bits()),
        "{held:?}"
    );
    pipeline
        .set_control("prior.freeze", 0.0)
        .expect("a control");
    assert_places(
        &places(pipeline, 1.0),
        |hop| bars(18.0 + after(hop), 120.0),
        "after it was held",
    );
}
