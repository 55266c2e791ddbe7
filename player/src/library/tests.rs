use ondes_engine::model::export::torchscript::{Archive, Pickle};

use super::*;

#[test]
fn captures_are_found_among_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let capture = r#"{ "version": "0.5.4", "architecture": "Linear", "weights": [1.0],
        "config": { "receptive_field": 1, "bias": false } }"#;
    for (name, text) in [
        ("a.NAM", capture),
        ("b.json", capture),
        ("c.json", "{ \"theme\": 1 }"),
        ("d.txt", capture),
        ("e.nam", "{"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let found = files(folder.path())
        .into_iter()
        .filter_map(|path| Some((summary(&path)?.card.name.clone(), path)));
    let found: Vec<_> = found
        .map(|(name, path)| (name, path.file_name().unwrap().to_owned()))
        .collect();
    assert_eq!(
        found,
        [("a".into(), "a.NAM".into()), ("b".into(), "b.json".into())]
    );
    // A project finds it again by its hash.
    let path = folder.path().join("b.json");
    let reference = FileReference::to(&file::read(&path).unwrap(), Some(path.clone()));
    assert_eq!(reference.find().unwrap().1, Some(path));
}

#[test]
fn a_reference_that_knows_the_hash_of_a_program_is_no_consent() {
    trust::use_test_file();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("birds.ts");
    // Damaged, which shows only once it is opened.
    std::fs::write(&path, Archive::of(Pickle::default(), "3").finish()).unwrap();
    let program = program(&path).unwrap();
    assert_eq!(
        open(&path).unwrap_err(),
        LoadError::Untrusted(program.clone())
    );
    let (hash, name) = (program.hash.clone(), "Birds".into());
    let reference = FileReference {
        hash,
        name,
        path: Some(path.clone()),
        embedded: None,
    };
    let missing = reference.find().unwrap_err();
    assert_eq!(
        (missing.program.as_ref(), missing.searched.len()),
        (Some(&program), 0)
    );
    assert!(
        missing
            .to_string()
            .contains("birds.ts: a TorchScript program, which you have not allowed to run")
    );
    // Another content at the path is another model, even if that is allowed.
    let other = FileReference {
        hash: "0".repeat(64),
        ..reference.clone()
    };
    assert!(other.find().unwrap_err().searched[0].ends_with("birds.ts: another model"));
    // A refusal stays one; with consent the file is opened, and found damaged or in need of
    // libtorch.
    trust::remember(&program, false).unwrap();
    assert!(reference.find().unwrap_err().program.is_some());
    trust::remember(&program, true).unwrap();
    let missing = reference.find().unwrap_err();
    assert!(
        missing.program.is_none() && missing.searched[0].contains("birds.ts: "),
        "{missing}"
    );
    assert!(matches!(open(&path), Err(LoadError::Failed(_))));
    assert_eq!(
        other.find().unwrap_err().searched.len(),
        missing.searched.len()
    );
}

#[test]
fn a_bundled_model_is_found_by_its_name_alone() {
    for bundled in &BUNDLED {
        let reference = FileReference {
            name: bundled.name.into(),
            ..FileReference::default()
        };
        let (model, path) = reference.find().unwrap();
        assert_eq!(
            (model.content_hash(), path),
            (bundled.model().content_hash(), None)
        );
    }
    let other = FileReference {
        name: "Old Bell".into(),
        ..FileReference::default()
    };
    assert_eq!(other.find().unwrap_err().searched, ["the bundled models"]);
}

#[test]
fn smaller_sizes_do_not_make_it_another_model() {
    let mut held = 0;
    for bundled in &BUNDLED {
        let model = bundled.model();
        let header = model.header().without_variants();
        let mut weights = ondes_engine::model::Weights::default();
        model
            .weights()
            .used_by(&header.methods)
            .for_each(|(name, tensor)| weights.insert(name, tensor.clone()));
        let whole = Model::new(header, weights).unwrap();
        held += model.header().variants.len();
        // The first hash is of a file without variants, the second is what older versions saved.
        for hash in [whole.content_hash(), model.content_hash()] {
            let reference = FileReference {
                hash: hash.into(),
                name: "Another Name".into(),
                ..FileReference::default()
            };
            let (found, _) = reference.find().unwrap();
            assert_eq!(
                (found.content_hash(), reference.replacement_notice(&found)),
                (model.content_hash(), None)
            );
        }
        assert_eq!(FileReference::to(&model, None).hash, whole.content_hash());

        // The user's file with the same base hash is preferred to the bundled model.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.ondes");
        file::write(&whole, &path).unwrap();
        let mine = FileReference::to(&model, Some(path.clone()));
        let (found, there) = mine.find().unwrap();
        assert_eq!(
            (found.content_hash(), there),
            (whole.content_hash(), Some(path))
        );
    }
    assert!(held > 0, "bundled models hold smaller sizes");
}

#[test]
fn a_bundled_model_that_was_trained_anew_is_followed_by_its_successor() {
    let older = FileReference {
        hash: "0".repeat(64),
        name: BUNDLED[1].name.into(),
        ..FileReference::default()
    };
    let (model, path) = older.find().unwrap();
    assert_eq!(
        (model.content_hash(), path),
        (BUNDLED[1].model().content_hash(), None)
    );
    assert!(
        older
            .replacement_notice(&model)
            .is_some_and(|notice| notice.contains(BUNDLED[1].name))
    );
    for same in [
        FileReference::to(&model, None),
        FileReference {
            hash: String::new(),
            ..older.clone()
        },
    ] {
        assert_eq!(same.replacement_notice(&same.find().unwrap().0), None);
    }
    // A reference with a path is found by its hash only, not by the name.
    assert!(
        FileReference {
            path: Some("/nowhere/mine.ondes".into()),
            ..older
        }
        .find()
        .is_err()
    );
}

/// A capture of a wire without a name of its own.
const NAMELESS: &str = r#"{ "version": "0.5.4", "architecture": "Linear", "weights": [1.0], "sample_rate": 48000,
    "config": { "receptive_field": 1, "bias": false } }"#;

#[test]
fn a_capture_is_the_same_model_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let named = NAMELESS.replace(
        "\"version\"",
        "\"metadata\": { \"name\": \"Wire\", \"loudness\": -20 }, \"version\"",
    );
    let louder = NAMELESS.replace("[1.0]", "[2.0]");
    for (name, text) in [
        ("a.nam", NAMELESS),
        ("b.nam", NAMELESS),
        ("c.nam", &named),
        ("d.nam", &louder),
    ] {
        std::fs::write(at(name), text).unwrap();
    }
    file::write(&file::read(&at("a.nam")).unwrap(), &at("e.ondes")).unwrap();
    let hash = |name: &str| FileReference::to(&file::read(&at(name)).unwrap(), Some(at(name))).hash;
    assert!(
        ["b.nam", "c.nam", "e.ondes"]
            .iter()
            .all(|other| hash(other) == hash("a.nam"))
    );
    assert_ne!(hash("a.nam"), hash("d.nam"));

    // The file of a project is renamed into a subfolder of the user's folders.
    let reference = FileReference::to(&file::read(&at("a.nam")).unwrap(), Some(at("gone.nam")));
    let library = tempfile::tempdir().unwrap();
    let moved = library.path().join("amps/clean/moved.nam");
    std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
    std::fs::write(library.path().join("amps/other.nam"), &louder).unwrap();
    std::fs::rename(at("a.nam"), &moved).unwrap();
    let (found, path) = reference.find_in(&[library.path().to_owned()]).unwrap();
    assert_eq!(
        (found.header().card.name.as_str(), path),
        ("moved", Some(moved))
    );
    assert_eq!(reference.replacement_notice(&found), None);
}

/// Hashes that earlier versions saved, when the card was a part of them.
#[test]
fn projects_of_earlier_versions_find_their_models() {
    let folder = tempfile::tempdir().unwrap();
    let linear = |gain: &str, metadata: &str| {
        format!(
            r#"{{"version": "0.7.0", "architecture": "Linear", "config": {{"receptive_field": 1, "bias": false}},
                "weights": [{gain}], "sample_rate": 48000, "metadata": {{{metadata}}}}}"#
        )
    };
    let container = format!(
        r#"{{"version": "0.7.0", "architecture": "SlimmableContainer", "sample_rate": 48000, "weights": [], "config":
            {{"submodels": [{{"max_value": 0.5, "model": {}}}, {{"max_value": 1.0, "model": {}}}]}}}}"#,
        linear("0.5", r#""loudness": -24.0"#),
        linear(
            "1.0",
            r#""name": "Wire", "modeled_by": "Me", "gear_type": "pedal", "loudness": "-18.0", "input_level_dbu": 12.5,
                "training": {"validation_esr": 0.0037}"#
        )
    );
    let proteus = r#"{"model_data": {"model": "SimpleRNN", "input_size": 1, "skip": 1, "output_size": 1,
        "unit_type": "LSTM", "num_layers": 1, "hidden_size": 1, "bias_fl": true}, "sample_rate": 48000, "state_dict": {
        "rec.weight_ih_l0": [[0.5],[0.5],[0.5],[0.5]], "rec.weight_hh_l0": [[0.1],[0.1],[0.1],[0.1]],
        "rec.bias_ih_l0": [0,0,0,0], "rec.bias_hh_l0": [0,0,0,0], "lin.weight": [[1.0]], "lin.bias": [0.0]}}"#;
    let aida = r#"{"in_shape": [null, null, 1], "layers": [{"type": "dense", "activation": "",
        "shape": [null, null, 1], "weights": [[[1.0]], [0.0]]}],
        "metadata": {"name": "Wire", "description": "Nothing at all.", "samplerate": "44100", "author": "Me"}}"#;
    let cases = [
        (
            "nameless",
            NAMELESS,
            "a80cafe812b3df3e630faccff399d57500ce61daba152277ed78ed9c482927f4",
        ),
        (
            "container",
            &container,
            "d6a02473f798012b8d2196226d264721abf3a793fa6330f1bad1fca4020446a1",
        ),
        (
            "proteus",
            proteus,
            "0214b8eda856086c60d8f0053b6708c8a55bcd00401a6605812c6bc0989d3fbf",
        ),
        (
            "Wire",
            aida,
            "cb508bcde61abb9c4b7c926586de06ba3cac42bacbb0a59dff28feafc94a891c",
        ),
    ];
    for (name, text, hash) in cases {
        let reference = FileReference {
            hash: hash.into(),
            name: name.into(),
            ..FileReference::default()
        };
        // Both under the name of then and, which earlier versions took for another model, under
        // another one.
        for now in [name, "renamed"] {
            let path = folder.path().join(format!("{now}.nam"));
            std::fs::write(&path, text).unwrap();
            let at_path = FileReference {
                path: Some(path.clone()),
                ..reference.clone()
            };
            let (found, there) = at_path
                .find()
                .unwrap_or_else(|missing| panic!("{name} as {now}: {missing}"));
            assert_eq!(
                (there, at_path.replacement_notice(&found)),
                (Some(path.clone()), None)
            );
            let searched = reference
                .find_in(&[folder.path().to_owned()])
                .map(|(_, path)| path);
            assert_eq!(searched, Some(Some(path.clone())), "{name} as {now}");
            assert_eq!(FileReference::to(&found, None).hash, found.base_hash());
            std::fs::remove_file(path).unwrap();
        }
        // Another model is none of them.
        let path = folder.path().join("other.nam");
        std::fs::write(&path, NAMELESS.replace("[1.0]", "[0.75]")).unwrap();
        assert!(
            FileReference {
                path: Some(path.clone()),
                ..reference.clone()
            }
            .find()
            .is_err()
        );
        std::fs::remove_file(path).unwrap();
    }
    for (bundled, hash) in [
        (
            "Wind",
            "dfc0f4b5831c50bb4a2aa9927e724d9e1282c7e73271477609bf16a30ee985c9",
        ),
        (
            "Violin",
            "9a64f82dbad95a4d79b442feda877bb0e57ca432496b4b458c80842c52839140",
        ),
    ] {
        let reference = FileReference {
            hash: hash.into(),
            name: "Old Name".into(),
            ..FileReference::default()
        };
        let (found, path) = reference.find().unwrap();
        assert_eq!((found.header().card.name.as_str(), path), (bundled, None));
        assert_eq!(reference.replacement_notice(&found), None);
    }
}

#[test]
fn a_path_or_a_bundled_name_is_enough() {
    trust::use_test_file();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wire.nam");
    std::fs::write(&path, NAMELESS).unwrap();
    let only = |path: &Path| FileReference {
        path: Some(path.to_owned()),
        ..FileReference::default()
    };
    let (found, there) = only(&path).find().unwrap();
    assert_eq!(
        (found.header().card.name.as_str(), there),
        ("wire", Some(path))
    );
    let missing = only(&folder.path().join("none.nam")).find().unwrap_err();
    assert!(
        missing.name == "none" && missing.searched[0].contains("none.nam: "),
        "{missing}"
    );
    let program = folder.path().join("birds.ts");
    std::fs::write(&program, Archive::of(Pickle::default(), "9").finish()).unwrap();
    assert_eq!(
        only(&program)
            .find()
            .unwrap_err()
            .program
            .map(|program| program.path),
        Some(program)
    );
    for name in ["fuzz", "FUZZ", "Fuzz"] {
        let reference = FileReference {
            name: name.into(),
            ..FileReference::default()
        };
        assert_eq!(reference.find().unwrap().0.header().card.name, "Fuzz");
        let older = FileReference {
            hash: "0".repeat(64),
            ..reference
        };
        assert_eq!(older.find().unwrap().0.header().card.name, "Fuzz");
    }
}
