//! Pruning, distillation and comparison from the command line.

use std::io::Write;
use std::path::Path;

use crate::common::{make_corpus, make_pair, refuse, run, succeed, write_config};
use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::{Model, Op, file};
use ondes_engine::ops::{Conv1d, Gru, Linear, Lstm};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use serde_json::Value;

fn read(folder: &Path, name: &str) -> Model {
    file::read(&folder.join(name)).expect("a model")
}

/// Returns the units of the first recurrent layer of a method.
fn units(model: &Model, method: &str) -> usize {
    let nodes = &model.method(method).expect("a method").nodes;
    let units = nodes.iter().find_map(|node| match node.op {
        Op::Lstm(Lstm { hidden, .. }) | Op::Gru(Gru { hidden, .. }) => Some(hidden),
        _ => None,
    });
    units.expect("a recurrent layer")
}

fn rows(json: &str) -> Vec<Value> {
    serde_json::from_str(json).expect("a JSON array")
}

#[test]
fn a_capture_is_pruned_distilled_and_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (dry, wet) = make_pair(folder);
    let path = |name: &str| folder.join(name).display().to_string();
    let pair = ["--dry", &dry, "--wet", &wet];
    let learning = ["--epochs", "1", "--threads", "1"];
    let original = path("original.ondes");
    let capture = [
        "capture", "--size", "lstm-8", "--out", &original, "--name", "Green",
    ];
    succeed(&[&capture[..], &pair, &learning].concat());

    let half = path("half.ondes");
    let prune = |out: &str, further: &[&str]| {
        let arguments = [
            "prune", &original, "--ratio", "0.5", "--rounds", "2", "--out", out,
        ];
        succeed(&[&arguments[..], &pair, &learning, further].concat())
    };
    let text = prune(&half, &["--structured", "--schedule", "linear"]);
    assert!(
        text.contains("25 % pruned") && text.contains("50 % pruned"),
        "{text}"
    );
    assert!(text.contains("error-to-signal ratio"), "{text}");
    let narrow = read(folder, "half.ondes");
    assert_eq!(units(&narrow, "forward"), 4);
    assert_eq!(narrow.header().card.name, "Green, pruned 50 %");
    assert_eq!(narrow.header().card.quality.len(), 1);

    let text = prune(&path("sparse.ondes"), &[]);
    assert!(text.contains("is no faster"), "{text}");
    let sparse = read(folder, "sparse.ondes");
    assert_eq!(
        sparse.header().methods,
        read(folder, "original.ondes").header().methods
    );
    let (_, matrix) = sparse
        .weights()
        .iter()
        .find(|(name, _)| *name == "layer0.weight_hh")
        .expect("a matrix");
    let zeros = matrix
        .floats()
        .iter()
        .filter(|weight| **weight == 0.0)
        .count();
    assert_eq!(
        2 * zeros,
        matrix.floats().len(),
        "training left zeros alone, and nothing else is zero"
    );

    // A student as a variant of its teacher.
    let both = path("both.ondes");
    let distil = [
        "distill",
        &original,
        "--student",
        "lstm-3",
        "--own-seconds",
        "0",
        "--out",
        &both,
        "--add-variant",
        "light",
    ];
    succeed(&[&distil[..], &pair, &learning].concat());
    let sizes = read(folder, "both.ondes");
    let variant = sizes.header().variant(0.2).expect("a smaller size");
    assert_eq!(
        (
            variant.name.as_str(),
            units(&sizes, &variant.method),
            units(&sizes, "forward")
        ),
        ("light", 3, 8)
    );
    for size in [0.2, 1.0] {
        let options = PipelineOptions {
            size,
            ..PipelineOptions::default()
        };
        Pipeline::new(&sizes, &options).expect("it can be played");
    }
    // Variants are ordered by cost.
    let all = path("all.ondes");
    let distil = [
        "distill",
        &both,
        "--student",
        &half,
        "--own-seconds",
        "0",
        "--out",
        &all,
        "--add-variant",
        "balanced",
    ];
    succeed(&[&distil[..], &pair, &learning].concat());
    let sizes = read(folder, "all.ondes");
    let names: Vec<&str> = sizes
        .header()
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    assert_eq!(names, ["light", "balanced"]);

    let chart = path("chart.png");
    let compare = [
        "compare",
        &half,
        &all,
        "--blocks",
        "64,512",
        "--seconds",
        "0.5",
        "--chart",
        &chart,
    ];
    let table = succeed(&[&compare[..], &pair].concat());
    assert!(
        table.contains("all (light)") && table.contains("ns at 512") && table.contains('*'),
        "{table}"
    );
    assert!(
        std::fs::read(&chart)
            .expect("a file")
            .starts_with(b"\x89PNG")
    );
    let compared = rows(&succeed(&[&compare[..], &pair, &["--json"]].concat()));
    let names: Vec<&str> = compared
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    assert_eq!(names, ["half", "all (light)", "all (balanced)", "all"]);
    assert_eq!(compared[3]["speeds"][1]["block"], 512);
    assert!(compared.iter().any(|row| row["on_front"] == true));
    for row in &compared {
        assert!(
            row["speeds"][0]["ns_per_sample"]
                .as_f64()
                .is_some_and(|ns| ns > 0.0),
            "{row}"
        );
        assert!(
            row["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0),
            "{row}"
        );
    }
    // The variants equal the models that they were made of.
    assert_eq!(compared[0]["weights"], narrow.parameters());
    let evaluated: Value = serde_json::from_str(&succeed(
        &[&["evaluate", &half, "--json"], &pair[..]].concat(),
    ))
    .expect("JSON");
    assert_eq!(
        compared[0]["quality"][0]["value"],
        evaluated["held_out"]["value"]
    );

    let missing = path("missing.ondes");
    let out = path("out.ondes");
    refuse(&[
        (
            vec![
                "prune", &missing, "--ratio", "0.5", "--out", &out, "--dry", &dry, "--wet", &wet,
            ],
            "missing.ondes",
        ),
        (
            vec!["prune", &original, "--ratio", "0.5", "--out", &out],
            "--dry",
        ),
        (
            vec![
                "distill",
                &original,
                "--student",
                "huge",
                "--out",
                &out,
                "--dry",
                &dry,
                "--wet",
                &wet,
            ],
            "huge",
        ),
        (
            vec!["compare", &original, "--data", &path("none")],
            "original.ondes",
        ),
        (
            vec!["compare", &original, &missing, "--dry", &dry, "--wet", &wet],
            "missing.ondes",
        ),
        (vec!["compare", &original], "--data"),
    ]);
    for arguments in [
        vec!["prune", &original, "--ratio", "1", "--out", &out],
        vec!["prune", &original, "--ratio", "nan", "--out", &out],
        vec![
            "prune", &original, "--ratio", "0.5", "--out", &out, "--rounds", "0",
        ],
        vec![
            "compare", &original, "--dry", &dry, "--wet", &wet, "--blocks", "0",
        ],
    ] {
        assert_eq!(run(&arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert!(!Path::new(&out).exists());
}

#[test]
fn an_instrument_is_pruned_distilled_and_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let path = |name: &str| folder.join(name).display().to_string();
    let config = write_config(folder, "original");
    let mut knob = std::fs::OpenOptions::new()
        .append(true)
        .open(&config)
        .expect("the recipe");
    writeln!(knob, "[knob.colour]\npositions = {{ dark = 0.0, bright = 1.0 }}\n[recordings]\nheld_out_pitch = 3")
        .expect("it is written");
    for index in 1..=4 {
        let (sound, colour) = (
            format!("corpus/plucked-{index:04}.wav"),
            ["dark", "bright"][usize::from(index == 1)],
        );
        std::fs::rename(
            folder.join(sound),
            folder.join(format!("corpus/{colour}-{index}.wav")),
        )
        .expect("it is renamed");
    }
    succeed(&["fit", &config]);
    let (original, half, student) = (
        path("original.ondes"),
        path("half.ondes"),
        path("student.ondes"),
    );
    let work = path("original");
    let sound = ["--data", &path("corpus"), "--work", &work];
    let same_sound = ["--data", &config, "--work", &work];
    let learning = [
        "--steps",
        "4",
        "--batch",
        "2",
        "--clip-seconds",
        "0.25",
        "--threads",
        "1",
    ];
    let prune = [
        "prune",
        &original,
        "--ratio",
        "0.5",
        "--structured",
        "--schedule",
        "once",
        "--out",
        &half,
    ];
    succeed(
        &[
            &prune[..],
            &["--add-variant", "light"],
            &same_sound,
            &learning,
        ]
        .concat(),
    );
    let both = read(folder, "half.ondes");
    let colour = &both.header().controls[0];
    assert_eq!(
        (colour.name.as_str(), colour.min, colour.max),
        ("colour", 0.0, 1.0)
    );
    assert!(
        both.header()
            .card
            .quality
            .iter()
            .any(|measure| measure.name.contains("nearest"))
    );
    assert_eq!(
        [units(&both, "synth"), units(&both, "synth.light")],
        [12, 6]
    );
    assert_eq!(
        both.header().performance,
        read(folder, "original.ondes").header().performance
    );
    let sound_at = |size| {
        let mut pipeline = Pipeline::new(
            &both,
            &PipelineOptions {
                size,
                ..PipelineOptions::default()
            },
        )
        .expect("it plays");
        let kind = EventKind::NoteOn {
            channel: 0,
            key: 60,
            velocity: 0.8,
        };
        pipeline
            .handle(Event { at: 0, kind })
            .expect("there is room");
        let mut sound = vec![0.0; 9_600];
        pipeline.process(&[], &mut sound);
        sound
    };
    let (full, light) = (sound_at(1.0), sound_at(0.0));
    assert!(
        full != light && light.iter().any(|sample| sample.abs() > 1e-6),
        "both sizes sound, each by itself"
    );

    let recipe = folder.join("student.toml");
    let network = "[network]\nharmonics = 12\nnoise_bands = 9\ninput_units = 4\nrecurrent_units = 5\noutput_units = 4\nroom_seconds = 0.01\n";
    std::fs::write(&recipe, network).expect("it can be written");
    let recipe = recipe.display().to_string();
    let distil = [
        "distill",
        &original,
        "--student",
        &recipe,
        "--out",
        &student,
        "--name",
        "Small",
    ];
    succeed(&[&distil[..], &sound, &learning].concat());
    let small = read(folder, "student.ondes");
    assert_eq!(
        (units(&small, "synth"), small.header().card.name.as_str()),
        (5, "Small")
    );
    assert!(
        small
            .weights()
            .iter()
            .all(|(name, _)| !name.contains("distill"))
    );

    let cache = path("cache");
    let compare = [
        "compare", &original, &half, &student, "--data", &config, "--cache", &cache,
    ];
    let compared = rows(&succeed(
        &[
            &compare[..],
            &["--blocks", "64", "--seconds", "0.5", "--json"],
        ]
        .concat(),
    ));
    assert_eq!(
        compared.len(),
        4,
        "the original, the lighter size and the original beside it, and the student"
    );
    for row in &compared {
        assert_eq!(row["quality"][0]["name"], "multi-scale spectral distance");
        assert!(
            row["quality"][0]["value"]
                .as_f64()
                .is_some_and(|distance| distance > 0.0),
            "{row}"
        );
    }
    let work = |row: &Value| row["multiply_adds_per_second"].as_f64().expect("a number");
    let works: Vec<f64> = compared.iter().map(work).collect();
    assert!(
        works[2] == works[0] && works[1] < works[0] && works[3] < works[1],
        "{works:?}"
    );

    let (dry, out) = (path("corpus/missing.wav"), path("out.ondes"));
    refuse(&[
        (
            vec!["compare", &original, "--dry", &dry, "--wet", &dry],
            "original.ondes",
        ),
        (
            vec!["prune", &original, "--ratio", "0.5", "--out", &out],
            "--data",
        ),
        (
            vec![
                "distill",
                &original,
                "--student",
                &path("none.toml"),
                "--out",
                &out,
            ],
            "none.toml",
        ),
    ]);
}

#[test]
fn codecs_and_generators_are_pruned_and_distilled() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let path = |name: &str| folder.join(name).display().to_string();
    let recipe = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).expect("it can be written");
        path(name)
    };
    let training = "[training]\nsteps = 4\nbatch = 2\nclip_seconds = 0.2\nvalidate_every = 4\nvalidation_share = 0.3\n";
    let codec = "name = \"Codec\"\ndata = \"corpus\"\nout = \"codec.ondes\"\nwork = \"work\"\n[network]\nchannels = 8\n\
                 latents = 4\n";
    let codec = recipe("codec.toml", &format!("{codec}{training}"));
    succeed(&["codec", &codec]);
    let learning = ["--steps", "2", "--batch", "2", "--threads", "1", "--work"];
    let channels = |model: &Model, method: &str, node: &str| {
        let nodes = &model.method(method).expect("a method").nodes;
        nodes.iter().find_map(|own| match own.op {
            Op::Conv1d(Conv1d { outputs, .. }) | Op::Linear(Linear { outputs })
                if own.name == node =>
            {
                Some(outputs)
            }
            _ => None,
        })
    };
    let (original, half) = (path("codec.ondes"), path("half.ondes"));
    let prune = [
        "prune",
        &original,
        "--ratio",
        "0.5",
        "--structured",
        "--rounds",
        "2",
        "--data",
        &codec,
        "--out",
        &half,
    ];
    let text = succeed(&[&prune[..], &learning, &[&path("work")]].concat());
    assert!(text.contains("multi-scale spectral distance"), "{text}");
    let (before, after) = (read(folder, "codec.ondes"), read(folder, "half.ondes"));
    assert_eq!(channels(&before, "encode", "encoder.input"), Some(8));
    assert_eq!(channels(&after, "encode", "encoder.input"), Some(4));
    assert_eq!(
        channels(&after, "forward", "encoder.input"),
        Some(4),
        "all methods are pruned"
    );
    assert_eq!(
        after.method("encode").expect("a method").outputs,
        before.method("encode").expect("a method").outputs
    );
    let mut sound = vec![0.0; 9_600];
    Pipeline::new(&after, &PipelineOptions::default())
        .expect("it plays")
        .process(&[0.1; 9_600], &mut sound);
    assert!(sound.iter().any(|sample| sample.abs() > 1e-6));
    // It can be trained on, although no recipe makes its sizes.
    succeed(&[
        "codec",
        &half,
        "--data",
        &path("corpus"),
        "--out",
        &path("on.ondes"),
        "--minutes",
        "0.01",
    ]);

    let sparse = path("sparse.ondes");
    let prune = [
        "prune", &original, "--ratio", "0.5", "--rounds", "1", "--data", &codec, "--out", &sparse,
    ];
    succeed(&[&prune[..], &learning, &[&path("work")]].concat());
    let bank = |name: &str| {
        let model = read(folder, name);
        let (_, bank) = model
            .weights()
            .iter()
            .find(|(name, _)| *name == "filter_bank.analysis.weight")
            .expect("it");
        bank.floats().into_owned()
    };
    assert_eq!(
        bank("sparse.ondes"),
        bank("codec.ondes"),
        "what is not learnt is not pruned"
    );

    let small = recipe("small.toml", "[network]\nchannels = 4\nlatents = 4\n");
    let student = path("student.ondes");
    let distil = [
        "distill",
        &original,
        "--student",
        &small,
        "--data",
        &codec,
        "--out",
        &student,
    ];
    succeed(&[&distil[..], &learning, &[&path("work")]].concat());
    assert_eq!(
        channels(&read(folder, "student.ondes"), "decode", "decoder.input"),
        Some(32)
    );
    let other = recipe("other.toml", "[network]\nchannels = 4\nlatents = 3\n");
    let distil = [
        "distill",
        &original,
        "--student",
        &other,
        "--data",
        &codec,
        "--out",
        &student,
    ];
    let output = run(&[&distil[..], &learning, &[&path("work")]].concat());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && error.contains("the teacher has 4 latents"),
        "{error}"
    );

    let prior = "name = \"Generator\"\ncodec = \"codec.ondes\"\ndata = \"corpus\"\nout = \"prior.ondes\"\nwork = \"work\"\n\
                 [network]\nunits = 8\nlayers = 2\ncomponents = 2\ngroup = 4\n";
    let prior = recipe(
        "prior.toml",
        &format!("{prior}{}", training.replace("0.2", "1.0")),
    );
    succeed(&["prior", &prior]);
    let (original, half) = (path("prior.ondes"), path("half-prior.ondes"));
    let prune = [
        "prune",
        &original,
        "--ratio",
        "0.5",
        "--structured",
        "--rounds",
        "1",
        "--data",
        &prior,
        "--out",
        &half,
    ];
    let text = succeed(&[&prune[..], &learning, &[&path("work")]].concat());
    assert!(text.contains("log-likelihood"), "{text}");
    let (before, after) = (
        read(folder, "prior.ondes"),
        read(folder, "half-prior.ondes"),
    );
    assert_eq!([units(&before, "prior"), units(&after, "prior")], [8, 4]);
    assert_eq!(
        after.method("decode").expect("a method"),
        before.method("decode").expect("a method")
    );
    let small = recipe(
        "small-prior.toml",
        "[network]\nunits = 5\nlayers = 1\ncomponents = 2\ngroup = 4\n",
    );
    let distil = [
        "distill",
        &original,
        "--student",
        &small,
        "--data",
        &prior,
        "--out",
        &student,
    ];
    succeed(&[&distil[..], &learning, &[&path("work")]].concat());
    let student = read(folder, "student.ondes");
    assert_eq!(
        (units(&student, "prior"), &student.header().controls),
        (5, &before.header().controls)
    );
    for model in [&after, &student] {
        let mut sound = vec![0.0; 48_000];
        Pipeline::new(model, &PipelineOptions::default())
            .expect("it plays")
            .process(&[], &mut sound);
        assert!(sound.iter().any(|sample| *sample != 0.0));
    }
}
