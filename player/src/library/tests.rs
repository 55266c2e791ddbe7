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
    std::fs::write(&path, Archive::new(Pickle::default(), "3").finish()).unwrap();
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
        let whole = Model::new(header, weights)
            .and_then(|model| model.with_attacks(bundled.model().attacks().cloned()))
            .unwrap();
        held += model.header().variants.len();
        // The first hash is of a file without smaller sizes, the second of that with all.
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
    std::fs::write(&program, Archive::new(Pickle::default(), "9").finish()).unwrap();
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
