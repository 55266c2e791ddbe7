//! Unsupported files are refused with one line that names the field.

use ondes_engine::model::{Kind, Levels, file, import};
use serde_json::{Value, json};

use super::generate::Generator;

fn refused(file: &Value) -> String {
    match import::parse(file.to_string().as_bytes()) {
        Ok(_) => panic!("it is read"),
        Err(fault) => fault.to_string(),
    }
}

fn plain() -> Value {
    Generator::new(1).classic(&[(1, 4, 1, vec![(3, 1), (3, 2)])], |_| {})
}

/// Returns the error for a plain WaveNet with one value replaced.
fn changed(pointer: &str, value: Value) -> String {
    let mut file = plain();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    file.pointer_mut(parent).expect("it is there")[name] = value;
    refused(&file)
}

#[test]
fn versions_and_architectures() {
    assert_eq!(
        changed("/version", json!("0.8.0")),
        "version: 0.8.0 is not supported; supported are 0.5 to 0.7"
    );
    assert_eq!(
        changed("/version", json!("1.0.0")),
        "version: 1.0.0 is not supported; supported are 0.5 to 0.7"
    );
    assert_eq!(
        changed("/version", json!("new")),
        "version: \"new\" is not a version such as 0.7.0"
    );
    assert_eq!(
        changed("/architecture", json!("Trans\nformer")),
        "architecture: unknown architecture \"Trans\\nformer\""
    );
    let mut file = plain();
    for (version, notes) in [("0.5.9", 0), ("0.6.3", 0), ("0.7.0", 0), ("0.7.2", 1)] {
        file["version"] = json!(version);
        assert_eq!(
            import::parse(file.to_string().as_bytes())
                .expect("it is read")
                .notes
                .len(),
            notes,
            "{version}"
        );
    }
}

#[test]
fn fields() {
    for (pointer, value, said) in [
        (
            "/config/layers/0/channels",
            json!(0),
            "config.layers[0].channels: expected a positive integer",
        ),
        ("/config/layers/0/channels", json!(5), "weights: only "),
        (
            "/config/layers/0/channels",
            json!(3),
            "but the architecture needs",
        ),
        (
            "/config/layers/0/input_size",
            json!(2),
            "config.layers[0].input_size: is 2, but there are 1 input channels",
        ),
        (
            "/config/layers/0/activation",
            json!("Swoosh"),
            "config.layers[0].activation: unknown activation \"Swoosh\"",
        ),
        (
            "/config/layers/0/gating_mode",
            json!("half"),
            "config.layers[0].gating_mode: unknown mode \"half\"",
        ),
        (
            "/config/layers/0/packing",
            json!({ "a": 1 }),
            "config.layers[0]: unknown field \"packing\"",
        ),
        (
            "/config/layers/0/groups_input",
            json!(3),
            "4 and 4 channels are not divisible by 3 groups",
        ),
        (
            "/config/layers/0/dilations",
            json!([]),
            "config.layers[0].dilations: is empty",
        ),
        (
            "/config/layers/0/dilations",
            json!([1, 2, 4]),
            "config.layers[0].kernel_sizes: expected 3 items, one for each layer, found 2",
        ),
        (
            "/config/layers/0/dilations",
            json!([1, 1_u64 << 62]),
            "more than the limit",
        ),
        ("/config/layers", json!([]), "config.layers: is empty"),
        ("/sample_rate", json!(7), "sample rate 7 Hz is out of range"),
        (
            "/weights",
            json!([1, "2"]),
            "weights: expected a list of numbers only",
        ),
    ] {
        let found = changed(pointer, value);
        assert!(
            found.contains(said) && !found.contains('\n'),
            "{pointer}: {found}"
        );
    }
    let nothing = refused(&json!({ "midi": true }));
    assert!(nothing.contains("state_dict"), "{nothing}");
    let mut keras = Generator::new(2).keras();
    keras["layers"][0]["type"] = json!("conv3d");
    assert_eq!(
        refused(&keras),
        "layers[0].type: unknown layer type \"conv3d\""
    );
    keras["layers"] = json!([]);
    assert_eq!(refused(&keras), "layers: is empty");
    for seed in 0..20 {
        let mut keras = Generator::new(seed).keras();
        keras["layers"][0]["shape"] = json!([null, null, 777]);
        let line = refused(&keras);
        assert!(
            line.starts_with("layers[0].shape[2]: is 777, but the weights have "),
            "{line}"
        );
    }
    let empty = json!({ "in_shape": [null, null, 1], "layers": [] });
    assert_eq!(refused(&empty), "layers: is empty");
    let mut proteus = Generator::new(2).proteus();
    proteus["state_dict"]["lin.bias"] = json!([0.0, 1.0]);
    assert_eq!(refused(&proteus), "state_dict.lin.bias: expected 1 numbers");
}

/// Numbers that are finite, but not in 32 bits.
#[test]
fn numbers_that_overflow() {
    for (pointer, reason) in [
        ("/weights/3", "NaN or an infinity"),
        ("/weights", "NaN or an infinity"),
        ("/sample_rate", "a sample rate"),
    ] {
        let mut file = plain();
        match pointer {
            "/weights" => {
                *file["weights"]
                    .as_array_mut()
                    .expect("a list")
                    .last_mut()
                    .expect("a weight") = json!(1e39)
            }
            other => *file.pointer_mut(other).expect("it is there") = json!(1e39),
        }
        let line = refused(&file);
        assert!(
            line.contains(reason) || line.contains("not finite"),
            "{pointer}: {line}"
        );
    }
    let mut keras = Generator::new(2).keras();
    keras["in_gain"] = json!(1e39);
    assert!(refused(&keras).contains("not finite"));
    let mut file = plain();
    file["metadata"] = json!({ "loudness": 1e39 });
    let model = import::parse(file.to_string().as_bytes())
        .expect("metadata do not affect the sound")
        .model;
    assert_eq!(model.header().card.levels, None);
}

#[test]
fn containers_do_not_lie_in_containers() {
    let inner = Generator::new(1).container(2);
    let mut outer = Generator::new(2).container(2);
    outer["config"]["submodels"][0]["model"] = inner;
    assert_eq!(
        refused(&outer),
        "config.submodels[0].model.architecture: a container cannot be part of another model"
    );
    let mut deep = plain();
    for _ in 0..8 {
        let mut around = plain();
        around["config"]["condition_dsp"] = deep;
        deep = around;
    }
    assert!(refused(&deep).contains("too deeply"));
}

#[test]
fn the_card_says_what_the_file_says() {
    let mut file = plain();
    file["metadata"] = json!({
        "name": "Loud One", "modeled_by": "Somebody", "gear_make": "Acme", "gear_model": "Model 4", "gear_type": "amp",
        "tone_type": "hi_gain", "loudness": -19.5, "gain": null, "input_level_dbu": 12.0, "output_level_dbu": null,
        "training": { "validation_esr": 0.0125 }, "date": { "year": 2026 },
    });
    let model = import::parse(file.to_string().as_bytes())
        .expect("it is read")
        .model;
    let card = &model.header().card;
    assert_eq!(
        (card.name.as_str(), card.author.as_str()),
        ("Loud One", "Somebody")
    );
    let gear = card.gear.as_ref().expect("gear");
    assert_eq!(
        [&gear.make, &gear.model, &gear.kind, &gear.tone],
        ["Acme", "Model 4", "amp", "hi_gain"]
    );
    let levels = Levels {
        input_dbu: Some(12.0),
        output_dbu: None,
        loudness_db: Some(-19.5),
    };
    assert_eq!(card.levels, Some(levels));
    assert_eq!(card.quality[0].value, 0.0125);
    assert_eq!(model.header().kind, Kind::Effect);
    // It stays what it is in our own format.
    let bytes = file::serialize(&model).expect("it can be laid out");
    assert_eq!(file::parse(&bytes).expect("it can be read"), model);
}

/// Programs write numbers as strings, and names as numbers; what is of no use is left out.
#[test]
fn metadata_of_other_types_are_read_or_left_out() {
    let mut file = plain();
    file["metadata"] = json!({
        "name": 5150, "modeled_by": null, "gear_make": ["Acme"], "gear_type": "", "loudness": "-19.5",
        "input_level_dbu": "loud", "output_level_dbu": { "dbu": 4 }, "validation_esr": "0.02",
    });
    let parse = |file: &Value| import::parse(file.to_string().as_bytes()).expect("it is read");
    let model = parse(&file).model;
    let card = &model.header().card;
    assert_eq!(
        (card.name.as_str(), card.author.as_str(), &card.gear),
        ("5150", "", &None)
    );
    assert_eq!(
        card.levels,
        Some(Levels {
            loudness_db: Some(-19.5),
            ..Levels::default()
        })
    );
    assert_eq!(card.quality[0].value, 0.02);
    for metadata in [
        json!(null),
        json!("none"),
        json!([]),
        json!(7),
        json!({ "training": 1 }),
    ] {
        file["metadata"] = metadata;
        assert_eq!(parse(&file).model.header().card.levels, None);
    }
    for (rate, heard) in [
        (json!("44100"), 44_100),
        (json!(0), 48_000),
        (json!(-1), 48_000),
        (json!(null), 48_000),
    ] {
        file["sample_rate"] = rate;
        let read = parse(&file);
        assert_eq!(read.model.header().sample_rate, heard);
        assert_eq!(
            read.notes.len(),
            usize::from(file["sample_rate"].as_i64().is_some_and(|rate| rate <= 0))
        );
    }
    for rate in [
        json!("fast"),
        json!(-44_100),
        json!(44_100.5),
        json!([48_000]),
    ] {
        file["sample_rate"] = rate;
        assert!(
            refused(&file).contains("sample_rate: expected a sample rate in Hz"),
            "{file}"
        );
    }
}

/// Each size of a container has metadata of its own.
#[test]
fn a_container_keeps_the_metadata_of_its_models() {
    let mut file = Generator::new(3).container(2);
    let model = |index: usize| format!("/config/submodels/{index}/model/metadata");
    file["metadata"] = json!(null);
    for (index, metadata) in [
        json!({ "loudness": -24.0, "output_level_dbu": 2.0 }),
        json!({ "name": "Two Sizes", "gear_type": "amp", "loudness": -18.0, "input_level_dbu": 12.5 }),
    ]
    .into_iter()
    .enumerate()
    {
        let path = model(index);
        let (parent, _) = path.rsplit_once('/').expect("a path");
        file.pointer_mut(parent).expect("it is there")["metadata"] = metadata;
    }
    let header = import::parse(file.to_string().as_bytes())
        .expect("it is read")
        .model
        .header()
        .clone();
    assert_eq!(header.card.name, "Two Sizes");
    assert_eq!(
        header.card.gear.as_ref().map(|gear| gear.kind.as_str()),
        Some("amp")
    );
    let whole = Levels {
        input_dbu: Some(12.5),
        output_dbu: None,
        loudness_db: Some(-18.0),
    };
    assert_eq!(
        (header.card.levels, header.levels(1.0)),
        (Some(whole), whole)
    );
    let small = Levels {
        input_dbu: Some(12.5),
        output_dbu: Some(2.0),
        loudness_db: Some(-24.0),
    };
    assert_eq!(header.levels(0.0), small);
    // Those of the container itself come first.
    file["metadata"] = json!({ "name": "Whole", "loudness": -17.0 });
    let header = import::parse(file.to_string().as_bytes())
        .expect("it is read")
        .model
        .header()
        .clone();
    assert_eq!(
        (header.card.name.as_str(), header.levels(1.0).loudness_db),
        ("Whole", Some(-17.0))
    );
    assert_eq!(
        (header.levels(1.0).input_dbu, header.levels(0.0).loudness_db),
        (Some(12.5), Some(-24.0))
    );
}

#[test]
fn a_file_is_what_it_holds_not_what_it_is_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("My Amp.txt");
    std::fs::write(&path, format!("\u{feff}\n  {}", plain())).expect("it can be written");
    let read = file::open(&path).expect("it is read");
    assert_eq!(
        (read.model.header().card.name.as_str(), read.notes.len()),
        ("My Amp", 0)
    );
    assert_eq!(file::read(&path).expect("it is read"), read.model);
    std::fs::write(&path, "{\"version\": ").expect("it can be written");
    let error = file::read(&path).expect_err("it is cut off").to_string();
    assert!(
        error.contains("My Amp.txt: cut off: its JSON ends at line 1") && !error.contains('\n'),
        "{error}"
    );
}
