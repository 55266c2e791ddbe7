//! The architectures of most captures in use.

use ondes_engine::model::{Model, Op, import};
use ondes_engine::ops::Conv1d;
use serde_json::{Value, json};

use super::accuracy::check;
use super::generate::Generator;

fn read(file: &Value) -> Model {
    import::parse(file.to_string().as_bytes())
        .expect("it is read")
        .model
}

fn octaves(range: std::ops::Range<u32>) -> Vec<(usize, usize)> {
    range.map(|octave| (3, 1 << octave)).collect()
}

fn standard() -> Value {
    let arrays = [(1, 16, 8, octaves(0..10)), (16, 8, 1, octaves(0..10))];
    Generator::new(1).classic(&arrays, |_| {})
}

/// Kernels and dilations of A2.
fn a2_taps() -> Vec<(usize, usize)> {
    let round = [1, 3, 7, 17, 41, 101, 239];
    let dilations = round
        .iter()
        .chain(&round)
        .chain(&[1, 13])
        .chain(&round)
        .copied();
    let kernels = [6; 14].into_iter().chain([15; 2]).chain([6; 7]);
    kernels.zip(dilations).collect()
}

fn a2(channels: usize) -> Value {
    let mut file = Generator::new(2).classic(&[(1, channels, 1, a2_taps())], |array| {
        array["activation"] = json!({ "type": "LeakyReLU", "negative_slope": 0.01 });
        array["head"] = json!({ "out_channels": 1, "kernel_size": 16, "bias": true });
    });
    file["version"] = json!("0.7.0");
    file
}

#[test]
fn the_standard_is_as_large_as_it_is_known_to_be() {
    let file = standard();
    assert_eq!(file["weights"].as_array().unwrap().len(), 13_802);
    check(&file, "forward", &file, "standard");
    let model = read(&file);
    let method = model.method("forward").unwrap();
    // Each array hears 1023 frames of two taps more than the one before.
    assert_eq!(method.warm_up, 2 * 2 * 1023);
    assert_eq!(method.latency_samples(), 0);
    // A planner knows this form: nothing else is in it.
    let of_layer = |layer: &str| -> Vec<(String, Vec<String>)> {
        let nodes = method
            .nodes
            .iter()
            .filter_map(|node| Some((node.name.strip_prefix(layer)?, node)));
        nodes
            .map(|(name, node)| (name.to_owned(), node.inputs.clone()))
            .collect()
    };
    let own = |names: &[&str]| -> Vec<String> {
        names
            .iter()
            .map(|name| name.replace("@", "array0.layer3."))
            .collect()
    };
    let expected = [
        ("conv", own(&["array0.layer2.residual"])),
        ("mixin", own(&["in"])),
        ("sum", own(&["@conv", "@mixin"])),
        ("act", own(&["@sum"])),
        ("out", own(&["@act"])),
        ("head", own(&["array0.layer2.head", "@act"])),
        ("residual", own(&["array0.layer2.residual", "@out"])),
    ];
    assert_eq!(
        of_layer("array0.layer3."),
        expected.map(|(name, inputs)| (name.to_owned(), inputs))
    );
    let conv = method
        .nodes
        .iter()
        .find(|node| node.name == "array0.layer3.conv")
        .unwrap();
    assert_eq!(conv.op, Op::Conv1d(Conv1d::new(16, 3).dilated(8)));
    let mixin = model.weights().get("array0.layer3.mixin", "bias");
    assert!(mixin.floats().iter().all(|bias| *bias == 0.0));
    // The second array's layers add to what the first one's head made.
    let first = method
        .nodes
        .iter()
        .find(|node| node.name == "array1.layer0.head")
        .unwrap();
    assert_eq!(first.inputs, ["array0.head", "array1.layer0.act"]);
}

#[test]
fn a2_in_both_sizes() {
    let (lite, full) = (a2(3), a2(8));
    assert_eq!(full["weights"].as_array().unwrap().len(), 12_146);
    let file = json!({
        "version": "0.7.0", "architecture": "SlimmableContainer", "weights": [], "sample_rate": 48_000,
        "config": { "submodels": [{ "max_value": 0.5, "model": lite }, { "max_value": 1.0, "model": full }] },
    });
    check(&file, "forward", &full, "A2 full");
    check(&file, "forward.lite", &lite, "A2 lite");
    let model = read(&file);
    assert_eq!(model.method("forward").unwrap().warm_up, 6_346);
    let variants = &model.header().variants;
    let variant = (
        variants[0].name.as_str(),
        variants[0].method.as_str(),
        variants[0].up_to,
    );
    assert_eq!(
        (variants.len(), variant),
        (1, ("lite", "forward.lite", 0.5))
    );
}

#[test]
fn slices_are_the_first_channels() {
    for gated in [false, true] {
        let arrays = |channels| [(1, channels, 1, octaves(0..4))];
        let mut file = Generator::new(3).classic(&arrays(6), |array| {
            array["slimmable"] =
                json!({ "method": "slice_channels_uniform", "kwargs": { "allowed_channels": [2, 3, 6] } });
        });
        // What is left of it, written as a model of its own.
        let (mut left, mut whole) = (Vec::new(), Vec::new());
        let mut generator = Generator::new(4);
        let mut matrix = |rows: usize, columns: usize, taps: usize, kept: (usize, usize)| {
            for row in 0..rows {
                for column in 0..columns {
                    for _ in 0..taps {
                        let weight = generator.weight();
                        whole.push(weight);
                        if row < kept.0 && column < kept.1 {
                            left.push(weight);
                        }
                    }
                }
            }
        };
        let double = if gated { 2 } else { 1 };
        matrix(6, 1, 1, (3, 1));
        for _ in 0..4 {
            matrix(double * 6, 6, 3, (double * 3, 3));
            matrix(double * 6, 1, 1, (double * 3, 1));
            matrix(double * 6, 1, 1, (double * 3, 1));
            matrix(6, 6, 1, (3, 3));
            matrix(6, 1, 1, (3, 1));
        }
        matrix(1, 6, 1, (1, 3));
        matrix(1, 1, 1, (1, 1));
        matrix(1, 1, 1, (1, 1));
        file["config"]["layers"][0]["gated"] = json!(gated);
        let mut slim = file.clone();
        file["weights"] = json!(whole);
        slim["weights"] = json!(left);
        slim["config"]["layers"][0]["channels"] = json!(3);
        slim["config"]["layers"][0]["slimmable"] = Value::Null;
        check(&file, "forward", &file, "the whole");
        check(&file, "forward.3", &slim, "three channels");
        let variants: Vec<_> = read(&file)
            .header()
            .variants
            .iter()
            .map(|variant| variant.up_to)
            .collect();
        assert_eq!(variants, [1.0 / 3.0, 2.0 / 3.0]);
    }
}

#[test]
fn the_usual_lstms() {
    for (hidden, layers) in [(24, 1), (8, 2), (40, 1)] {
        let mut file = Generator::new(7).lstm_of(hidden, layers);
        file["sample_rate"] = json!(44_100);
        check(
            &file,
            "forward",
            &file,
            &format!("LSTM {layers} × {hidden}"),
        );
        assert_eq!(read(&file).method("forward").unwrap().warm_up, 22_050);
    }
}
