use super::*;
use crate::model::limits;
use crate::ops::{
    Attention, CodeSum, Delay, DrawCategories, DrawMixture, Interleave, Latency, NearestCodes,
    Noise, ShapedNoise,
};

fn shape(channels: usize, ratio: usize) -> Shape {
    Shape { channels, ratio }
}

#[test]
fn ops_that_move_frames_check_their_shapes() {
    let interleave = |factor, channels, ratio| {
        Op::Interleave(Interleave { factor }).infer(&[shape(channels, ratio)], 64)
    };
    assert_eq!(interleave(4, 12, 8), Ok(shape(3, 2)));
    assert!(
        interleave(0, 12, 8).is_err()
            && interleave(5, 12, 10).is_err()
            && interleave(4, 12, 6).is_err()
    );
    let flip = |ratio| Op::FlipOddBands.infer(&[shape(3, ratio)], 64);
    assert_eq!(flip(32), Ok(shape(3, 32)));
    assert!(flip(64).is_err(), "one frame in a block");
    let delay = Op::Delay(Delay { frames: 5 });
    assert_eq!(delay.infer(&[shape(3, 8)], 64), Ok(shape(3, 8)));
    assert_eq!(
        (
            delay.operation().latency_samples(&[shape(3, 8)]),
            delay.operation().tail_samples(&[shape(3, 8)], 48_000)
        ),
        (0, 40)
    );
    assert_eq!(
        Op::Latency(Latency { samples: 9 })
            .operation()
            .latency_samples(&[shape(3, 8)]),
        9
    );
}

#[test]
fn noise_checks_its_shapes() {
    let noise = |channels| {
        Op::Noise(Noise {
            channels,
            distribution: Distribution::Normal,
            number: 1,
        })
    };
    assert_eq!(noise(3).infer(&[shape(1, 8)], 64), Ok(shape(3, 8)));
    assert!(noise(0).infer(&[shape(1, 8)], 64).is_err());
    let shaped = |bands, hop, magnitudes, noise| {
        Op::ShapedNoise(ShapedNoise { bands, hop })
            .infer(&[shape(magnitudes, 64), shape(noise, 64)], 64)
    };
    assert_eq!(shaped(5, 16, 10, 32), Ok(shape(2, 4)));
    for (bands, hop, magnitudes, noise) in [
        (1, 16, 10, 32),
        (5000, 16, 5000, 16),
        (5, 16, 11, 32),
        (5, 16, 10, 31),
        (5, 48, 10, 96),
        (5, 0, 10, 0),
    ] {
        assert!(
            shaped(bands, hop, magnitudes, noise).is_err(),
            "{bands} bands, {hop} frames"
        );
    }
}

#[test]
fn draws_check_their_shapes() {
    let mixture_above = |least, components, logits, means, scales, temperature| {
        let inputs = [logits, means, scales, temperature].map(|channels| shape(channels, 8));
        Op::DrawMixture(DrawMixture {
            components,
            least,
            number: 0,
        })
        .infer(&inputs, 64)
    };
    let mixture = |components, logits, means, scales, temperature| {
        mixture_above(0.1, components, logits, means, scales, temperature)
    };
    for least in [-0.1, 1.1, f32::NAN] {
        assert!(
            mixture_above(least, 3, 3, 15, 15, 1).is_err(),
            "least {least}"
        );
    }
    assert_eq!(mixture(3, 3, 15, 15, 1), Ok(shape(5, 8)));
    for (components, logits, means, scales, temperature) in [
        (0, 0, 0, 0, 1),
        (0, 3, 15, 15, 1),
        (3, 4, 15, 15, 1),
        (3, 3, 16, 16, 1),
        (3, 3, 15, 18, 1),
        (3, 3, 15, 15, 2),
    ] {
        let found = mixture(components, logits, means, scales, temperature);
        assert!(
            found.is_err(),
            "{components} components, {logits} logits, {means} means"
        );
    }
    let categories = |categories, top, logits, temperature| {
        Op::DrawCategories(DrawCategories {
            categories,
            top,
            number: 0,
        })
        .infer(&[shape(logits, 8), shape(temperature, 8)], 64)
    };
    assert_eq!(categories(4, 2, 12, 1), Ok(shape(3, 8)));
    for (count, top, logits, temperature) in [
        (0, 0, 12, 1),
        (4, 0, 12, 1),
        (4, 5, 12, 1),
        (5, 2, 12, 1),
        (4, 2, 12, 3),
    ] {
        assert!(
            categories(count, top, logits, temperature).is_err(),
            "{top} of {count} categories, {logits} logits"
        );
    }
}

#[test]
fn attention_checks_its_shapes() {
    let infer = |heads, window, channels: [usize; 3]| {
        Op::Attention(Attention { heads, window })
            .infer(&channels.map(|channels| shape(channels, 8)), 64)
    };
    assert_eq!(infer(3, 5, [12, 12, 12]), Ok(shape(12, 8)));
    let op = Op::Attention(Attention {
        heads: 3,
        window: 5,
    });
    assert_eq!(op.weights(&[shape(12, 8)])[0].shape, [3, 5]);
    assert_eq!(op.operation().tail_samples(&[shape(12, 8)], 48_000), 32);
    for (heads, window, channels) in [
        (0, 5, [12; 3]),
        (3, 0, [12; 3]),
        (5, 5, [12; 3]),
        (3, 5, [12, 9, 12]),
        (3, 5, [12, 12, 15]),
    ] {
        assert!(
            infer(heads, window, channels).is_err(),
            "{heads} heads, {window} frames, {channels:?}"
        );
    }
}

#[test]
fn codes_check_their_shapes() {
    let nearest = |codebooks, codes| Op::NearestCodes(NearestCodes { codebooks, codes });
    assert_eq!(nearest(4, 32).infer(&[shape(6, 8)], 64), Ok(shape(4, 8)));
    assert_eq!(nearest(4, 32).weights(&[shape(6, 8)])[0].shape, [4, 32, 6]);
    let sum = |codes, channels| Op::CodeSum(CodeSum { codes, channels });
    assert_eq!(sum(32, 6).infer(&[shape(4, 8)], 64), Ok(shape(6, 8)));
    assert_eq!(sum(32, 6).weights(&[shape(4, 8)])[0].shape, [4, 32, 6]);
    for op in [
        nearest(0, 32),
        nearest(4, 0),
        nearest(4, limits::CODES + 1),
        sum(0, 6),
        sum(32, 0),
    ] {
        assert!(op.infer(&[shape(6, 8)], 64).is_err(), "{op:?}");
    }
}

#[test]
fn activations_keep_their_tags_in_files() {
    let node = |json: &str| serde_json::from_str::<crate::model::Node>(json);
    let json = r#"{"name":"y","inputs":["x"],"op":"leaky_relu","slope":0.01}"#;
    let leaky = node(json).expect("a valid node");
    assert_eq!(
        leaky.op,
        Op::Activation(Activation::LeakyRelu { slope: 0.01 })
    );
    assert_eq!(
        serde_json::to_string(&leaky).expect("a node is serialisable"),
        json
    );
    for &tag in Activation::TAGS {
        let json = format!(
            r#"{{"name":"y","inputs":["x"],"op":"{tag}","slope":0,"min":-1,"max":1,"min_slope":0,"max_slope":0}}"#
        );
        assert!(
            matches!(node(&json).expect("a valid node").op, Op::Activation(_)),
            "{tag}"
        );
    }
    let missing = node(r#"{"name":"y","inputs":["x"],"op":"leaky_relu"}"#).expect_err("no slope");
    assert!(
        missing.to_string().contains("missing field `slope`"),
        "{missing}"
    );
    let unknown = node(r#"{"name":"y","inputs":["x"],"op":"relu6"}"#).expect_err("no such op");
    assert!(unknown.to_string().contains("relu6"), "{unknown}");
    let flip = node(r#"{"name":"y","inputs":["x"],"op":"unmirror"}"#).expect("a valid node");
    assert_eq!(flip.op, Op::FlipOddBands);
}
