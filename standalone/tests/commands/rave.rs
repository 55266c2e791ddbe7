//! `ondes import` of RAVE exports.

use std::path::{Path, PathBuf};

use ondes_engine::model::import::rave::import;
use ondes_engine::model::{Tensor, file};
use ondes_engine::pipeline::{Pipeline, PipelineOptions, latent_count};
use ondes_tests::rave::Recipe;
use ondes_tests::rave::script::{Attribute, Module};

use crate::common::Folder;

/// Writes an export to `model.ts`; returns its path and the latencies of `encode` and `decode`.
fn export(folder: &Folder, recipe: &Recipe) -> (PathBuf, [usize; 2]) {
    let path = folder.path("model.ts");
    let (module, latencies) = recipe.export(1);
    module.save(&path);
    (path, latencies)
}

#[test]
fn an_export_becomes_a_codec_that_plays() {
    let recipe = Recipe {
        noise: true,
        ..Recipe::v2().small()
    };
    let folder = Folder::new();
    let (path, latencies) = export(&folder, &recipe);
    let output = folder.run(&["import", "model.ts"]);
    let summary = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{summary}");
    assert!(
        summary.contains(
            "RAVE v2, 16 bands, ratios 4\u{b7}4\u{b7}4\u{b7}2, capacity 6, 4 of 12 latents"
        ),
        "{summary}"
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim_end(),
        "model.ondes"
    );

    let model = file::read(&folder.path("model.ondes")).expect("a model file");
    let header = model.header();
    assert_eq!(
        (header.kind.name(), header.sample_rate, latent_count(header)),
        ("codec", 44_100, recipe.seen)
    );
    assert_eq!(header.card.name, "model");
    assert!(
        header
            .card
            .description
            .contains("imported from model.ts, BLAKE3 "),
        "{}",
        header.card.description
    );
    let options = PipelineOptions {
        sample_rate: 44_100,
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(&model, &options).expect("a playable model");
    assert_eq!(
        pipeline.latency_samples(),
        latencies[0] + latencies[1] + recipe.ratio() - 1
    );
    let input: Vec<f32> = (0..12 * recipe.ratio())
        .map(|n| 0.5 * (n as f32 * 0.1).sin())
        .collect();
    let mut sound = vec![f32::NAN; input.len()];
    pipeline.process(&input, &mut sound);
    assert!(sound.iter().all(|sample| sample.is_finite()));
    assert!(sound.iter().any(|sample| sample.abs() > 1e-3), "silence");

    let output = folder.run(&[
        "import",
        "model.ts",
        "-o",
        "named.ondes",
        "--name",
        "Vintage",
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        file::read(&folder.path("named.ondes"))
            .expect("a model file")
            .header()
            .card
            .name,
        "Vintage"
    );
    let mut bytes = std::fs::read(&path).expect("the export");
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&path, bytes).expect("a damaged export");
    folder.refuses(
        &["import", "model.ts", "-o", "bad.ondes"],
        &["model.ts: a ZIP archive that is damaged or cut off"],
    );
}

/// Returns the error of an import, which names the file.
fn import_error(path: &Path) -> String {
    let error = import(path, None)
        .map(|import| import.configuration)
        .expect_err("the import fails")
        .to_string();
    assert!(
        error.starts_with(&path.display().to_string()) && error.lines().count() == 1,
        "{error}"
    );
    error
}

#[test]
fn unsupported_exports_are_refused_with_the_module() {
    let folder = Folder::new();
    let path = folder.path("bad.ts");
    let recipe = Recipe::v2().small();
    let refused = |change: &dyn Fn(Module) -> Module, expected: &str| {
        change(recipe.export(1).0).save(&path);
        let error = import_error(&path);
        assert!(error.contains(expected), "{error:?} has no {expected:?}");
    };
    refused(&|root| root.with("pqmf", None), "no module \"pqmf\"");
    refused(
        &|root| root.with("n_channels", Some(Attribute::Int(2))),
        "1 of 2 channels",
    );
    refused(
        &|root| root.with("input_mode", Some(Attribute::Text("mel"))),
        "an input_mode of \"mel\"",
    );
    refused(
        &|root| {
            root.with(
                "encode_params",
                Some(Attribute::Counts(vec![1, 1, 99, 2048])),
            )
        },
        "99 of 12 latents",
    );
    refused(
        &|root| root.with("latent_mean", Some(Attribute::None)),
        "no tensor \"latent_mean\"",
    );
    let within = |path: &'static [&'static str], change: fn(Module) -> Module| {
        move |mut root: Module| {
            let module = path
                .iter()
                .fold(&mut root, |module, name| module.child(name));
            *module = change(module.clone());
            root
        }
    };
    let unit = &["encoder", "encoder", "net", "1"];
    refused(
        &within(unit, |module| module.called("Recurrent")),
        "encoder.encoder.net.1 (Recurrent): this kind of module",
    );
    refused(
        &within(&["encoder"], |module| module.called("DiscreteEncoder")),
        "encoder (DiscreteEncoder)",
    );
    let first = &["encoder", "encoder", "net", "0"];
    refused(
        &within(first, |module| module.with("weight", None)),
        "net.0 (CachedConv1d): it has no tensor \"weight\"",
    );
    let short = |module: Module| {
        module.with(
            "weight",
            Some(Attribute::Parameter(Tensor::new(
                &[6, 15, 7],
                vec![0.0; 630],
            ))),
        )
    };
    refused(
        &within(first, short),
        "takes 15 channels in 1 groups and is given 16",
    );
    let cache = &["decoder", "net", "0", "cache"];
    refused(
        &within(cache, |module| {
            module.with("padding", Some(Attribute::Int(-3)))
        }),
        "its padding is -3",
    );
    refused(
        &within(cache, |module| {
            module.with("padding", Some(Attribute::Int(1 << 30)))
        }),
        "its padding is longer",
    );
    let nan = |module: Module| {
        module.with(
            "weight",
            Some(Attribute::Parameter(Tensor::new(
                &[6, 16, 7],
                vec![f32::NAN; 672],
            ))),
        )
    };
    refused(&within(first, nan), "holds a NaN");
}

#[test]
fn damaged_exports_are_refused() {
    let folder = Folder::new();
    let (path, _) = export(&folder, &Recipe::v2().small());
    let bytes = std::fs::read(&path).expect("the export");
    let bad = folder.path("bad.ts");
    for content in [&b""[..], b"RIFF....WAVE", &bytes[..bytes.len() / 2]] {
        std::fs::write(&bad, content).expect("a damaged export");
        assert!(import_error(&bad).contains("not a TorchScript archive"));
    }
    std::fs::remove_file(&bad).expect("the damaged export");
    assert!(import_error(&bad).contains("No such file"));
    // One wrong bit gives an error or a model, never a panic. The pickle lies at the front.
    let front = bytes.len().min(60_000);
    let mut imported = 0;
    for round in 0..150 {
        let mut bytes = bytes.clone();
        bytes[round * 7_919 % front] ^= 1 << (round % 8);
        std::fs::write(&bad, bytes).expect("a damaged export");
        imported += usize::from(import(&bad, None).is_ok());
    }
    assert!(imported < 150, "no checksum found an error");
}
