//! Malicious model files give an error that says why; [`crate::fuzz`] reads thousands of others.

use std::io::{Seek as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ondes_engine::model::storage::{QuantizedValues, Values};
use ondes_engine::model::{
    FORMAT, FORMAT_COMPRESSED, Kind, Measure, Model, ModelError, Op, Tensor, file,
};
use ondes_engine::ops::Conv1d;
use ondes_engine::random::SplitMix64;
use ondes_tests::{
    header, instrument_methods, int8_model, port, random_weights, single_node_method,
    untrained_instrument,
};

use crate::captures::generate::Generator;

#[test]
fn a_file_reads_back_as_it_was_written() {
    for model in [
        untrained_instrument(1),
        int8_model(&untrained_instrument(1)),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.ondes");
        file::write(&model, &path).expect("it can be written");
        assert_eq!(file::read(&path).expect("it can be read"), model);
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("a folder").count(),
            1,
            "nothing but the file is left"
        );
    }
}

#[test]
fn wrong_header_sizes_are_refused() {
    let bytes = file::serialize(&untrained_instrument(1)).expect("it can be laid out");
    for size in [
        0_u64,
        1,
        7,
        1 << 20,
        1 << 30,
        1 << 40,
        u64::MAX / 2,
        u64::MAX - 7,
        u64::MAX,
    ] {
        let mut lying = bytes.clone();
        lying[..8].copy_from_slice(&size.to_le_bytes());
        assert!(file::parse(&lying).is_err(), "{size}");
    }
    for length in 0..9 {
        assert!(file::parse(&bytes[..length]).is_err());
    }
}

#[test]
fn non_finite_weights_are_refused() {
    for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let methods = instrument_methods();
        let mut weights = random_weights(&methods, 1);
        let tensor = weights.get("memory", "weight_hh").clone();
        let mut floats = tensor.floats().into_owned();
        floats[7] = poison;
        weights.insert("memory.weight_hh", Tensor::new(tensor.shape(), floats));
        let refused = Model::new(header(Kind::Instrument, methods), weights);
        assert!(
            matches!(refused, Err(ModelError::Weight { name, .. }) if name == "memory.weight_hh")
        );
    }
}

#[test]
fn non_finite_header_values_are_refused() {
    let mut header = header(Kind::Instrument, instrument_methods());
    let measure = Measure {
        name: "distance".into(),
        unit: String::new(),
        value: 0.5,
        baseline: Some(f64::INFINITY),
    };
    header.card.quality.push(measure);
    let refused = Model::new(header, random_weights(&instrument_methods(), 1));
    assert!(matches!(refused, Err(ModelError::Header(reason)) if reason.contains("card")));
}

#[test]
fn weights_of_the_wrong_shape_are_refused() {
    let methods = instrument_methods();
    let whole = random_weights(&methods, 1);
    let build = |weights| Model::new(header(Kind::Instrument, methods.clone()), weights);
    let mut misshapen = whole.clone();
    misshapen.insert("heads.bias", Tensor::new(&[3], vec![0.0; 3]));
    assert!(
        matches!(build(misshapen), Err(ModelError::Weight { name, .. }) if name == "heads.bias")
    );
    let mut surplus = whole.clone();
    surplus.insert("nobody.weight", Tensor::new(&[1], vec![0.0]));
    assert!(
        matches!(build(surplus), Err(ModelError::Weight { name, .. }) if name == "nobody.weight")
    );
    let missing = random_weights(&methods[..1], 1);
    assert!(
        matches!(build(missing), Err(ModelError::Weight { name, .. }) if name == "room.impulse")
    );
    assert!(build(whole).is_ok());
}

/// Reads a file with another format version and one changed weight.
fn forged(
    format: u32,
    name: &str,
    change: impl Fn(&Tensor) -> Tensor,
) -> Result<Model, ModelError> {
    let model = int8_model(&untrained_instrument(1));
    let mut header = model.header().clone();
    header.format = format;
    let mut weights = model.weights().clone();
    let (_, old) = weights
        .iter()
        .find(|(other, _)| *other == name)
        .expect("it is there");
    weights.insert(name, change(&old.clone()));
    Model::new(header, weights)
}

#[test]
fn invalid_compressed_weights_are_refused() {
    let changed = |change: &dyn Fn(&mut QuantizedValues)| {
        forged(FORMAT_COMPRESSED, "memory.weight_hh", |tensor| {
            let mut quantized = tensor.quantized().expect("it is in bytes").clone();
            change(&mut quantized);
            Tensor::stored(tensor.shape(), Values::I8(quantized))
        })
    };
    assert!(changed(&|_| {}).is_ok());
    let refused: [&dyn Fn(&mut QuantizedValues); 10] = [
        &|quantized| quantized.scales[3] = 0.0,
        &|quantized| quantized.scales[3] = -1.0,
        &|quantized| quantized.scales[3] = f32::NAN,
        &|quantized| quantized.scales[3] = f32::MAX,
        &|quantized| quantized.codes[3] = -128,
        &|quantized| quantized.scales.truncate(71),
        &|quantized| quantized.scale_shape = vec![72],
        &|quantized| quantized.scale_shape = vec![1, 72],
        &|quantized| quantized.zero_points = vec![3; 71],
        // It is multiplied in 8 bits.
        &|quantized| quantized.zero_points = vec![3; 72],
    ];
    for (index, change) in refused.iter().enumerate() {
        let fault = changed(change).expect_err("it makes no sense");
        assert!(
            matches!(&fault, ModelError::Weight { name, .. } if name == "memory.weight_hh"),
            "{index}: {fault}"
        );
    }
    // Files that older versions read contain nothing unknown to them.
    assert!(
        matches!(forged(FORMAT, "heads.bias", Tensor::clone), Err(ModelError::Header(reason)) if reason.contains("F32"))
    );
    let infinite = |tensor: &Tensor| {
        let Values::F16(mut halves) = tensor.values().clone() else {
            panic!("a bias is in 16 bits")
        };
        halves[0] = halves[0] / (halves[0] - halves[0]);
        Tensor::stored(tensor.shape(), Values::F16(halves))
    };
    let refused = forged(FORMAT_COMPRESSED, "heads.bias", infinite);
    assert!(matches!(refused, Err(ModelError::Weight { name, .. }) if name == "heads.bias"));
}

/// Files with inconsistent tensors are refused before the checksum is read.
#[test]
fn inconsistent_compressed_files_are_refused() {
    use safetensors::tensor::{Dtype, TensorView};
    let bytes = file::serialize(&int8_model(&untrained_instrument(1))).expect("it can be laid out");
    let (_, metadata) = safetensors::SafeTensors::read_metadata(&bytes).expect("it is one");
    let texts = metadata.metadata().clone().expect("there are texts");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("it is one");
    let forge = |products: Option<&str>, dtype: &dyn Fn(&str, Dtype) -> Option<Dtype>| {
        let views = tensors.iter().filter_map(|(name, view)| {
            let dtype = dtype(name, view.dtype())?;
            Some((
                name,
                TensorView::new(dtype, view.shape().to_vec(), view.data())
                    .expect("of the same size"),
            ))
        });
        let mut texts = texts.clone();
        texts.extend(products.map(|names| ("int8".to_owned(), names.to_owned())));
        let forged = safetensors::serialize(views, Some(texts)).expect("it can be laid out");
        file::parse(&forged).map_err(|fault| fault.to_string())
    };
    let same = |_: &str, dtype| Some(dtype);
    assert!(forge(None, &same).is_ok());
    let without_scale = |name: &str, dtype| (name != "memory.weight_hh_scale").then_some(dtype);
    let without_weight = |name: &str, dtype| (name != "memory.weight_hh").then_some(dtype);
    let unsigned = |name: &str, dtype| {
        Some(if name == "memory.weight_hh" {
            Dtype::U8
        } else {
            dtype
        })
    };
    let otherwise = |name: &str, dtype| {
        Some(if name == "heads.bias" {
            Dtype::BF16
        } else {
            dtype
        })
    };
    for (products, dtype, named) in [
        (
            None,
            &without_scale as &dyn Fn(&str, Dtype) -> Option<Dtype>,
            "weight_hh_scale",
        ),
        (Some("[]"), &without_weight, "memory.weight_hh"),
        (Some("[]"), &unsigned, "U8"),
        (None, &otherwise, "checksum"),
        (Some("[]"), &same, "checksum"),
        (Some(r#"["heads.bias"]"#), &same, "heads.bias"),
        (Some("7"), &same, "int8"),
    ] {
        let message = forge(products, dtype).expect_err("it makes no sense");
        assert!(
            message.contains(named) && !message.contains('\n'),
            "{message}"
        );
    }
}

#[test]
fn unknown_format_versions_are_named() {
    let mut header = header(Kind::Instrument, instrument_methods());
    header.format = 99;
    let refused = Model::new(header, random_weights(&instrument_methods(), 1));
    assert!(matches!(
        refused,
        Err(ModelError::Version {
            found: 99,
            supported: 2
        })
    ));
    // Also in a file whose header has unknown fields.
    let json = r#"{"format":7,"everything":"is different"}"#.to_owned();
    let texts = std::collections::HashMap::from([("ondes".to_owned(), json)]);
    let none: Vec<(String, safetensors::tensor::TensorView<'_>)> = Vec::new();
    let bytes = safetensors::serialize(none, Some(texts)).expect("it can be laid out");
    assert!(matches!(
        file::parse(&bytes),
        Err(ModelError::Version {
            found: 7,
            supported: 2
        })
    ));
}

#[test]
fn excessive_histories_are_refused() {
    let ports = [port("x", 512, 1)];
    let op = Op::Conv1d(Conv1d::new(1, 2).dilated(1 << 40));
    let methods = vec![single_node_method(op, &ports, 8)];
    let weights = random_weights(&methods, 1);
    let refused = Model::new(header(Kind::Effect, methods), weights);
    assert!(
        matches!(refused, Err(ModelError::Limit { .. })),
        "{refused:?}"
    );
}

/// Another program may write a file at any time; a mapped file would end the process with SIGBUS.
#[test]
fn files_that_change_while_they_are_read_do_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.ondes");
    let model = untrained_instrument(1);
    let whole = file::serialize(&model).expect("it can be laid out");
    let capture = Generator::new(1)
        .classic(&[(1, 4, 1, vec![(3, 1), (3, 2)])], |_| {})
        .to_string()
        .into_bytes();
    std::fs::write(&path, &whole).expect("it is written");
    let done = AtomicBool::new(false);
    let (mut read, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = SplitMix64::new(1);
            let mut below = |bound: usize| (random.next_u64() >> 33) as usize % bound;
            while !done.load(Relaxed) {
                let mut change = || -> std::io::Result<()> {
                    let mut file = std::fs::OpenOptions::new().write(true).open(&path)?;
                    match below(4) {
                        0 => file.set_len(below(whole.len()) as u64)?,
                        1 => file
                            .write_all(&capture)
                            .and_then(|()| file.set_len(capture.len() as u64))?,
                        _ => file.write_all(&whole)?,
                    }
                    file.rewind()?;
                    file.write_all(&whole)?;
                    file.set_len(whole.len() as u64)
                };
                change().expect("it is changed");
            }
        });
        for _ in 0..2_000 {
            match file::read(&path) {
                Ok(found) => {
                    assert!(
                        found.content_hash() == model.content_hash()
                            || found.header().kind == Kind::Effect
                    );
                    read += 1;
                }
                Err(error) => {
                    let line = error.to_string();
                    assert!(line.contains("a.ondes: ") && !line.contains('\n'), "{line}");
                    refused += 1;
                }
            }
        }
        done.store(true, Relaxed);
    });
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}

#[test]
fn numbers_that_overflow_are_refused() {
    let model = untrained_instrument(1);
    let bytes = file::serialize(&model).expect("it can be laid out");
    let mut header = model.header().clone();
    let mut performance = header.performance.unwrap_or_default();
    performance.attack_ms = f32::INFINITY;
    header.performance = Some(performance);
    let refused = Model::new(header.clone(), model.weights().clone());
    assert!(
        matches!(refused, Err(ModelError::Header(reason)) if reason.contains("performance settings"))
    );
    header.performance = None;
    header.card.quality.push(Measure {
        name: "x".into(),
        unit: String::new(),
        value: 1e39,
        baseline: None,
    });
    let refused = Model::new(header, model.weights().clone());
    assert!(matches!(refused, Err(ModelError::Header(reason)) if reason.contains("card")));
    assert!(file::parse(&bytes).is_ok());
}
