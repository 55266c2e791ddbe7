//! Folds and sweeps of all kinds of recipes.

use std::path::Path;

use ondes_training::tasks::codec::{CodecConfig, network};
use serde_json::Value;

use crate::common::{make_corpus, make_pair, run, succeed, train, write_config};

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

/// Writes the recipe of a tiny codec; returns its path.
fn codec_recipe(folder: &Path) -> String {
    let path = folder.join("codec.toml");
    let text = "name = \"Tiny codec\"\ndata = \"corpus\"\nout = \"codec.ondes\"\nwork = \"codec\"\n[network]\nchannels = 4\n\
                latents = 4\n[training]\nsteps = 4\nbatch = 2\nclip_seconds = 0.2\nvalidate_every = 2\n\
                validation_share = 0.3\n";
    std::fs::write(&path, text).expect("it can be written");
    path.display().to_string()
}

#[test]
fn codecs_generators_and_captures_are_swept() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let recipe = codec_recipe(folder);
    // The second value of each fails, and cannot be the best.
    let swept = |recipe: &str, further: &[&str]| {
        let sweep = [
            "sweep",
            recipe,
            "--vary",
            "training.learning_rate=1e-3,7",
            "--jobs",
            "2",
        ];
        let table = succeed(&[&sweep[..], further].concat());
        assert!(
            table.contains(" finished ") && table.contains(" failed "),
            "{table}"
        );
        assert!(
            table.contains("training.learning_rate must be above 0, up to 1"),
            "{table}"
        );
        let best = table
            .lines()
            .last()
            .expect("a line")
            .strip_prefix("best: ")
            .expect(&table)
            .to_owned();
        assert!(
            Path::new(&best).exists() && best.contains("trial001"),
            "{best}"
        );
    };
    swept(&recipe, &[]);
    let results = json(&folder.join("codec.sweep/results.json"));
    assert_eq!(
        (&results[0]["status"], &results[1]["status"]),
        (&"finished".into(), &"failed".into())
    );
    // All trials share what was analysed once, in the recipe's own work folder.
    assert!(
        folder.join("codec/features").is_dir()
            && !folder.join("codec.sweep/trial001/features").exists()
    );

    let codec = network::untrained(&CodecConfig::read(Path::new(&recipe)).expect("a recipe"))
        .expect("a codec");
    ondes_engine::model::file::write(&codec, &folder.join("codec.ondes"))
        .expect("it can be written");
    let prior = folder.join("prior.toml");
    let text = "name = \"Tiny generator\"\ncodec = \"codec.ondes\"\ndata = \"corpus\"\nout = \"prior.ondes\"\nwork = \"codec\"\n\
                [network]\nunits = 8\nlayers = 1\ncomponents = 2\ngroup = 4\n[training]\nsteps = 3\nbatch = 2\n\
                validation_share = 0.3\n";
    std::fs::write(&prior, text).expect("it can be written");
    swept(&prior.display().to_string(), &[]);

    let (dry, wet) = make_pair(folder);
    let capture = folder.join("capture.toml");
    let text = format!(
        "size = \"lstm-3\"\n[[pair]]\ndry = \"{dry}\"\nwet = \"{wet}\"\n[training]\nepochs = 1\n"
    );
    std::fs::write(&capture, text).expect("it can be written");
    swept(&capture.display().to_string(), &[]);

    // Without one that ends, there is no best, and all reasons are told.
    let output = run(&[
        "sweep",
        &recipe,
        "--work",
        &folder.join("none").display().to_string(),
        "--vary",
        "colour=1,2",
    ]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = error.trim().lines().last().unwrap_or_default();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        last.contains("no trial has ended: ") && last.contains("unknown field `colour`"),
        "{error}"
    );
    assert!(!String::from_utf8_lossy(&output.stdout).contains("best"));
}

#[test]
fn figures_of_folds_have_mean_and_deviation() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let config = write_config(folder, "tiny");
    let text = std::fs::read_to_string(&config)
        .expect("a recipe")
        .replace("steps = 60", "steps = 6");
    std::fs::write(&config, text).expect("it can be written");
    let printed = succeed(&[
        "fit", &config, "--folds", "2", "--jobs", "2", "--ema", "0.5",
    ]);
    assert!(
        printed.contains("2 of 2 folds by recording") && printed.contains("deviation"),
        "{printed}"
    );
    assert!(
        printed.contains("validation loss") && printed.contains("multi-scale spectral distance"),
        "{printed}"
    );
    let report = json(&folder.join("tiny.folds.json"));
    let figure = &report["figures"][0];
    let values: Vec<f64> = figure["values"]
        .as_array()
        .expect("values")
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    assert!(
        values.len() == 2 && values[0] != values[1],
        "each fold is validated on other recordings: {values:?}"
    );
    let mean = f64::midpoint(values[0], values[1]);
    assert!(
        (figure["mean"].as_f64().expect("a number") - mean).abs() < 1e-9,
        "{figure}"
    );
    let deviation = (values[0] - values[1]).abs() / 2.0_f64.sqrt();
    assert!(
        (figure["deviation"].as_f64().expect("a number") - deviation).abs() < 1e-9,
        "{figure}"
    );
    assert!(
        !folder.join("tiny.ondes").exists(),
        "folds are not the model"
    );
    // A fold is a setting of the recipe.
    let fold =
        std::fs::read_to_string(folder.join("tiny.folds/fold02/trial.toml")).expect("a recipe");
    assert!(
        fold.contains("fold = \"2/2\"") && fold.contains("fold_by = \"recording\""),
        "{fold}"
    );

    let pitches = succeed(&[
        "sweep",
        &config,
        "--vary",
        "seed=1,2",
        "--folds",
        "2",
        "--folds-by",
        "pitch",
    ]);
    assert!(
        pitches
            .lines()
            .filter(|line| line.contains(" finished "))
            .count()
            == 2,
        "{pitches}"
    );
    assert!(
        pitches
            .lines()
            .last()
            .expect("a line")
            .starts_with("best: seed "),
        "{pitches}"
    );

    let output = run(&["fit", &config, "--folds", "900", "--jobs", "1"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error
            .trim()
            .lines()
            .last()
            .is_some_and(|line| line.contains("recordings for 900 folds")),
        "{error}"
    );
}

#[cfg(unix)]
#[test]
fn warnings_run_a_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let config = write_config(folder, "tiny");
    let out = folder.join("alerts");
    let command = format!("echo $ONDES_ALERT $ONDES_STEP >> {}", out.display());
    let fit = [
        "fit",
        &config,
        "--alert",
        "gradient_norm=1e-6",
        "--alert",
        "memory=1M",
        "--on-alert",
        &command,
    ];
    let output = train().args(fit).output().expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    assert!(
        error.contains("warning: step 1: the norm of the gradient is "),
        "{error}"
    );
    assert!(
        error.contains("warning: step 10: the process takes "),
        "{error}"
    );
    let mut lines: Vec<String> = std::fs::read_to_string(&out)
        .expect("it ran")
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(lines, ["gradient_norm 1", "memory 10"]);
    let log = std::fs::read_to_string(folder.join("tiny/metrics.jsonl")).expect("a log");
    assert_eq!(
        log.lines()
            .filter(|line| line.contains("\"alert\""))
            .count(),
        2,
        "{log}"
    );

    let output = run(&["fit", &config, "--alert", "colour=1"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && error.contains("colour"),
        "{error}"
    );
}
