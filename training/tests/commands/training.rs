//! Corpora, training, resumption and evaluation from the command line.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{make_corpus, make_pair, refuse, run, succeed, train, write_config};
use ondes_engine::model::file;

#[test]
fn a_killed_run_goes_on_to_the_same_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let original = write_config(folder, "original");
    let table = succeed(&["fit", &original]);
    assert!(table.contains("multi-scale spectral distance"), "{table}");

    let log = std::fs::read_to_string(folder.join("original/metrics.jsonl")).expect("a log");
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object per line"))
        .collect();
    assert!(
        lines.iter().filter(|line| line["loss"].is_f64()).count() == 6,
        "{log}"
    );
    assert!(
        lines
            .iter()
            .filter(|line| line["validation"].is_f64())
            .count()
            == 9,
        "{log}"
    );

    let killed = write_config(folder, "killed");
    let mut child = train()
        .args(["fit", &killed])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let checkpoint = folder.join("killed/checkpoint.safetensors");
    let started = Instant::now();
    while !checkpoint.exists() {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "no checkpoint came"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert!(
        !folder.join("killed.ondes").exists(),
        "it was killed too late"
    );
    let output = run(&["fit", &killed, "--resume"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("resumed at step"),
        "{text}"
    );

    let read = |name: &str| file::read(&folder.join(name)).expect("a model");
    let (original, killed) = (read("original.ondes"), read("killed.ondes"));
    assert_eq!(original.weights(), killed.weights(), "bit-equal weights");
    assert_eq!(original.header(), killed.header());
    let card = &original.header().card;
    assert!(
        card.training
            .as_ref()
            .is_some_and(|training| training.steps > 0 && training.corpus_seconds > 10.0)
    );
    assert!(
        card.quality.len() >= 4 && card.quality.iter().all(|measure| measure.value.is_finite())
    );

    let model = folder.join("original.ondes").display().to_string();
    let data = folder.join("corpus").display().to_string();
    let cache = folder.join("cache").display().to_string();
    let picture = folder.join("picture.png").display().to_string();
    let json = succeed(&[
        "evaluate",
        &model,
        "--data",
        &data,
        "--cache",
        &cache,
        "--json",
        "--picture",
        &picture,
    ]);
    let size = png::Decoder::new(std::io::BufReader::new(
        std::fs::File::open(&picture).expect("it was drawn"),
    ))
    .read_info()
    .expect("a picture")
    .info()
    .size();
    assert_eq!(size, (1000, 720));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    for side in ["model", "baseline"] {
        assert!(
            json[side]["spectral_distance"]
                .as_f64()
                .is_some_and(|distance| distance > 0.0),
            "{json}"
        );
    }
    // The baseline must be in tune, since it is given the pitch.
    assert!(
        json["baseline"]["pitch_within_10_cents_percent"]
            .as_f64()
            .is_some_and(|share| share > 90.0),
        "{json}"
    );
}

#[test]
fn a_capture_is_made_stopped_resumed_and_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (dry, wet) = make_pair(folder);
    let path = |name: &str| folder.join(name).display().to_string();
    let (original, killed, nam) = (
        path("original.ondes"),
        path("killed.ondes"),
        path("original.nam"),
    );
    let options = [
        "capture", "--dry", &dry, "--wet", &wet, "--size", "nano", "--epochs", "8", "--window",
        "1024",
    ];
    let options = [
        &options[..],
        &["--name", "Green", "--type", "pedal", "--threads", "1"],
    ]
    .concat();
    let output = run(&[
        &options[..],
        &["--out", &original, "--nam", &nam, "--profile"],
    ]
    .concat());
    let [table, text] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
    assert!(
        output.status.success() && text.contains("x real time"),
        "{text}"
    );
    assert!(
        ["profile of", "\nbackward ", "memory peak"]
            .iter()
            .all(|part| text.contains(part)),
        "{text}"
    );
    assert!(
        table.contains("delayed by") && table.contains("held out"),
        "{table}"
    );

    let arguments = [&options[..], &["--out", &killed]].concat();
    let mut child = train()
        .args(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let checkpoint = folder.join("killed.checkpoint");
    let started = Instant::now();
    while !checkpoint.exists() {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "no checkpoint came"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert!(
        !folder.join("killed.ondes").exists(),
        "it was killed too late"
    );
    let output = run(&[&arguments[..], &["--resume"]].concat());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("after epoch"),
        "{text}"
    );
    assert!(!checkpoint.exists(), "what is done needs no checkpoint");

    let read = |name: &str| file::read(&folder.join(name)).expect("a model");
    let (ours, resumed, theirs) = (
        read("original.ondes"),
        read("killed.ondes"),
        read("original.nam"),
    );
    assert_eq!(ours.weights(), resumed.weights(), "bit-equal weights");
    assert_eq!(ours.header(), resumed.header());
    assert_eq!(ours.header().methods, theirs.header().methods);
    assert_eq!(ours.weights(), theirs.weights());
    let (card, foreign) = (&ours.header().card, &theirs.header().card);
    assert_eq!(
        (card.name.as_str(), &card.gear, &card.levels),
        ("Green", &foreign.gear, &foreign.levels)
    );
    assert!(
        card.levels
            .is_some_and(|levels| levels.loudness_db.is_some_and(|loudness| loudness < 0.0))
    );
    assert_eq!(card.quality.len(), 1);

    let json = succeed(&[
        "evaluate", &original, "--dry", &dry, "--wet", &wet, "--json",
    ]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        json["held_out"]["value"].as_f64(),
        Some(card.quality[0].value),
        "{json}"
    );
    assert!(
        json["all"]["value"]
            .as_f64()
            .is_some_and(|error| error < 1.0),
        "{json}"
    );

    let further = path("further.ondes");
    let base = [
        "capture", "--dry", &dry, "--wet", &wet, "--from", &nam, "--epochs", "1", "--out", &further,
    ];
    succeed(&base);
    assert_eq!(
        read("further.ondes").header().methods,
        ours.header().methods
    );

    // A shape that has no named size: its head has a larger gain.
    let text = std::fs::read_to_string(&nam).expect("it can be read");
    let mut foreign: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let scale = serde_json::json!(0.03);
    foreign["config"]["head_scale"] = scale.clone();
    *foreign["weights"]
        .as_array_mut()
        .and_then(|weights| weights.last_mut())
        .expect("there are weights") = scale;
    let foreign_nam = path("foreign.nam");
    std::fs::write(&foreign_nam, foreign.to_string()).expect("it can be written");
    let base = [
        "capture",
        "--dry",
        &dry,
        "--wet",
        &wet,
        "--from",
        &foreign_nam,
        "--epochs",
        "1",
        "--out",
        &further,
    ];
    succeed(&base);
    let (further, foreign) = (read("further.ondes"), read("foreign.nam"));
    assert_ne!(foreign.header().methods, ours.header().methods);
    assert_eq!(further.header().methods, foreign.header().methods);
    assert_ne!(further.weights(), foreign.weights());

    let out = path("out.nam");
    refuse(&[
        (
            vec![
                "capture",
                "--dry",
                &dry,
                "--wet",
                &wet,
                "--from",
                &foreign_nam,
                "--nam",
                &out,
            ],
            "has another shape",
        ),
        (
            vec!["capture", "--dry", &dry, "--wet", &nam],
            "original.nam",
        ),
        (
            vec!["capture", "--dry", &dry, "--wet", &wet, "--size", "huge"],
            "huge",
        ),
        (
            vec![
                "capture", "--dry", &dry, "--wet", &wet, "--size", "lite", "--from", &nam,
            ],
            "another shape",
        ),
        (
            vec![
                "capture", "--dry", &dry, "--wet", &wet, "--size", "lite", "--resume",
            ],
            "no checkpoint",
        ),
    ]);
}

#[test]
fn a_bundled_cabinet_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("again.wav");
    let line = succeed(&[
        "cabinet",
        "4x12-closed-back",
        "--out",
        &out.display().to_string(),
    ]);
    assert!(
        line.contains("four loud 12-inch drivers in a closed box"),
        "{line}"
    );
    let read = |path: &Path| -> Vec<i32> {
        let mut reader = hound::WavReader::open(path).expect("a WAV file");
        let format = reader.spec();
        assert_eq!(
            (format.sample_rate, format.channels, format.bits_per_sample),
            (48_000, 1, 24)
        );
        reader
            .samples()
            .map(|sample| sample.expect("a whole file"))
            .collect()
    };
    let bundled =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/cabinets/4x12-closed-back.wav");
    let (again, bundled) = (read(&out), read(&bundled));
    assert_eq!(again.len(), bundled.len());
    // Another machine's sine may differ in the last bit.
    assert!(
        again
            .iter()
            .zip(&bundled)
            .all(|(again, bundled)| (again - bundled).abs() <= 1)
    );
}

#[test]
fn mistakes_are_told_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir(folder.join("corpus")).expect("a folder");
    let config = write_config(folder, "empty");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    };
    let unknown = write("unknown.toml", "name = \"x\"\ncolour = 3\n");
    let broken = write("broken.toml", "name = \n");
    let noise = write("noise.ondes", "this is no model");
    let missing = folder.join("missing.toml").display().to_string();
    let corpus = folder.join("corpus").display().to_string();
    refuse(&[
        (vec!["fit", &missing], "missing.toml"),
        (vec!["fit", &unknown], "colour"),
        (vec!["fit", &broken], "broken.toml"),
        (vec!["fit", &config], "holds no audio"),
        (vec!["evaluate", &noise, "--data", &corpus], "noise.ondes"),
    ]);
    make_corpus(folder);
    let output = run(&["fit", &config, "--resume"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no checkpoint"));
}

/// Waits until a file exists and returns how long that took.
#[cfg(unix)]
fn wait_for(path: &Path, child: &mut std::process::Child) {
    let started = Instant::now();
    while !path.exists() {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "{} did not appear",
            path.display()
        );
        assert!(
            child.try_wait().expect("a process").is_none(),
            "it ended before {}",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    let kill = std::process::Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(kill.expect("kill starts").success());
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_checkpoint_and_model_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (dry, wet) = make_pair(folder);
    let path = |name: &str| folder.join(name).display().to_string();
    let base = [
        "capture",
        "--dry",
        &dry,
        "--wet",
        &wet,
        "--size",
        "lstm-4",
        "--epochs",
        "4",
        "--optimizer",
        "sam",
    ];
    let arguments = |out: &str| -> Vec<String> {
        base.iter()
            .copied()
            .chain(["--out", out])
            .map(str::to_owned)
            .collect()
    };
    let whole = path("whole.ondes");
    let output = train().args(arguments(&whole)).output().expect("it starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let out = path(&format!("stopped{name}.ondes"));
        let mut child = train()
            .args(arguments(&out))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        wait_for(&Path::new(&out).with_extension("checkpoint"), &mut child);
        signal(&child, name);
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains("--resume goes on"), "{text}");
        let stopped = file::read(Path::new(&out)).expect("the best model so far");
        let exported = path("exported.ondes");
        let checkpoint = Path::new(&out)
            .with_extension("checkpoint")
            .display()
            .to_string();
        let line = succeed(&["export", &checkpoint, "--out", &exported]);
        assert!(line.contains("validation loss"), "{line}");
        assert_eq!(
            file::read(Path::new(&exported)).expect("a model").weights(),
            stopped.weights()
        );
        let resumed = train()
            .args(arguments(&out))
            .arg("--resume")
            .output()
            .expect("it starts");
        assert!(
            resumed.status.success(),
            "{}",
            String::from_utf8_lossy(&resumed.stderr)
        );
        let (resumed, whole) = (file::read(Path::new(&out)), file::read(Path::new(&whole)));
        assert_eq!(
            resumed.expect("a model").weights(),
            whole.expect("a model").weights(),
            "{name}"
        );
    }
    // The log has each step once, and the report draws it.
    let chart = path("chart.png");
    let table = succeed(&[
        "report",
        &path("whole.metrics.jsonl"),
        &path("stopped-INT.metrics.jsonl"),
        "--chart",
        &chart,
    ]);
    assert!(
        table.contains("whole") && table.contains("stopped-INT"),
        "{table}"
    );
    let rows: Vec<&str> = table
        .lines()
        .skip(1)
        .take(2)
        .map(|line| line.split_whitespace().nth(2).unwrap_or(""))
        .collect();
    assert_eq!(rows[0], rows[1], "the same loss: {table}");
    assert!(
        std::fs::read(&chart)
            .expect("a chart")
            .starts_with(b"\x89PNG")
    );
    refuse(&[
        (vec!["report", &path("missing")], "missing"),
        (vec!["export", &dry], "damaged"),
        (
            vec![
                "capture", "--dry", &dry, "--wet", &wet, "--device", "cuda:99",
            ],
            "cuda:99",
        ),
        (
            vec!["capture", "--dry", &dry, "--wet", &wet, "--device", "tpu"],
            "cuda:N",
        ),
    ]);
}

#[cfg(unix)]
#[test]
fn a_kill_at_any_moment_leaves_a_checkpoint_that_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let config = write_config(folder, "killed");
    // A checkpoint after each step makes it likely that one is being written.
    let text = std::fs::read_to_string(&config).expect("a file");
    let text = text
        .replace("checkpoint_every = 5", "checkpoint_every = 1")
        .replace("steps = 60", "steps = 100000");
    std::fs::write(&config, text).expect("it can be written");
    let checkpoint = folder.join("killed/checkpoint.safetensors");
    for round in 0..8_u64 {
        let mut command = train();
        command
            .args(["fit", &config])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if round > 0 {
            command.arg("--resume");
        }
        let mut child = command.spawn().expect("it starts");
        wait_for(&checkpoint, &mut child);
        let before = std::fs::metadata(&checkpoint)
            .and_then(|file| file.modified())
            .expect("a time");
        let started = Instant::now();
        while std::fs::metadata(&checkpoint)
            .and_then(|file| file.modified())
            .expect("a time")
            == before
        {
            assert!(
                started.elapsed() < Duration::from_secs(300),
                "no further checkpoint came"
            );
        }
        std::thread::sleep(Duration::from_micros(700 * round));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let out = folder.join("exported.ondes").display().to_string();
        succeed(&["export", &checkpoint.display().to_string(), "--out", &out]);
        file::read(Path::new(&out)).expect("a model");
    }
}

#[test]
fn every_wrong_field_of_a_configuration_is_named_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let config = write_config(folder, "wrong");
    let base = std::fs::read_to_string(&config).expect("a file");
    let (top, training) = base.split_once("[training]").expect("a table");
    let network = top.split_once("[network]").expect("a table").0;
    let cases = [
        ("network", "sample_rate = 10"),
        ("network", "hop = 1"),
        ("network", "harmonics = 0"),
        ("network", "noise_bands = 1"),
        ("network", "room_seconds = 99.0"),
        ("training", "steps = 0"),
        ("training", "minutes = -1.0"),
        ("training", "batch = 0"),
        ("training", "clip_seconds = 0.0"),
        ("training", "learning_rate = 0.0"),
        ("training", "warmup_steps = -1"),
        ("training", "weight_decay = -1.0"),
        ("training", "gradient_norm = -1.0"),
        ("training", "gradient_value = -1.0"),
        ("training", "accumulate = 0"),
        ("training", "ema = 1.0"),
        ("training", "validation_share = 2.0"),
        ("training", "validate_every = 0"),
        ("training", "checkpoint_every = 0"),
        ("training", "log_every = 0"),
        ("training", "patience = 0"),
        ("training", "device = \"tpu\""),
        ("optimizer", "name = \"newton\""),
        ("optimizer", "name = \"adam\"\nbeta1 = 2.0"),
        ("schedule", "name = \"steep\""),
        ("schedule", "name = \"cosine\"\ncycles = 0"),
        ("loss", "mel = -1.0"),
        ("loss", "colour = 1.0"),
        ("augmentation", "equalizer = 3.0"),
        ("augmentation", "noise = -50.0"),
        ("augmentation", "mix = 0.5"),
    ];
    make_corpus(folder);
    for (table, line) in cases {
        let text = match table {
            "network" => format!("{network}[network]\n{line}\n[training]{training}"),
            "training" => format!("{top}[training]\n{line}\n"),
            _ => format!("{base}\n[{table}]\n{line}\n"),
        };
        std::fs::write(&config, text).expect("it can be written");
        let field = line
            .lines()
            .last()
            .and_then(|line| line.split(" = ").next())
            .expect("a field");
        let named = match line {
            "name = \"newton\"" => "newton",
            "name = \"steep\"" => "steep",
            "device = \"tpu\"" => "tpu",
            // A negative number is none of steps: the line is named.
            "warmup_steps = -1" => "line",
            _ => field,
        };
        refuse(&[(vec!["fit", &config], named)]);
    }
}

#[test]
fn progress_is_printed_without_a_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let config = write_config(folder, "slow");
    let text = std::fs::read_to_string(&config).expect("a file");
    // No validation before the end.
    let text = text
        .replace("validate_every = 7", "validate_every = 100000")
        .replace("steps = 60", "minutes = 0.25");
    std::fs::write(&config, text).expect("it can be written");
    let output = run(&["fit", &config, "--tensorboard", "--patience", "5"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(
        text.lines()
            .any(|line| line.starts_with("step") && line.contains("s/step")),
        "{text}"
    );
    let events = std::fs::read_dir(folder.join("slow/tensorboard"))
        .expect("a folder")
        .count();
    assert_eq!(events, 1);
}

#[test]
fn steps_are_timed_with_the_chosen_optimizers() {
    let size = [
        "--weights",
        "0.01,0.02",
        "--batch",
        "2",
        "--seconds",
        "0.01",
        "--threads",
        "1",
    ];
    let table = succeed(&[&["bench", "--optimizer", "sgd,sophia"][..], &size].concat());
    let lines: Vec<&str> = table
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .collect();
    assert_eq!(lines[0], "| weights | batch | sgd | sophia |", "{table}");
    assert!(
        lines.len() == 4 && lines[3].starts_with("| 0.02 M | 2 |"),
        "{table}"
    );
    let milliseconds = succeed(&["bench", "--network", "nano", "--seconds", "0.01"]);
    assert!(
        milliseconds
            .trim()
            .parse::<f64>()
            .is_ok_and(|time| time > 0.0),
        "{milliseconds}"
    );

    for (arguments, named) in [
        (&["bench", "--weights", "1000"][..], "400 million"),
        (&["bench", "--network", "gru", "--batch", "4"], "--batch"),
        (&["fit", "--profile", "cello.toml"], "must end in .json"),
    ] {
        let output = run(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && message.contains(named),
            "{arguments:?}: {message}"
        );
    }
}

#[test]
fn a_capture_with_knobs_is_described_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (dry, wet) = make_pair(folder);
    let path = |name: &str| folder.join(name).display().to_string();
    let quiet = path("quiet.wav");
    let mut reader = hound::WavReader::open(&wet).expect("a WAV file");
    let format = reader.spec();
    let mut writer = hound::WavWriter::create(&quiet, format).expect("a file");
    for sample in reader.samples::<f32>() {
        writer
            .write_sample(0.3 * sample.expect("a whole file"))
            .expect("it can be written");
    }
    writer.finalize().expect("it can be written");
    let config = path("amp.toml");
    let text = r#"
        size = "lstm-4"
        nam = "amp.nam"
        [[pair]]
        dry = "dry.wav"
        wet = "quiet.wav"
        knobs = { Volume = 2 }
        [[pair]]
        dry = "dry.wav"
        wet = "wet.wav"
        knobs = { Volume = 8 }
        [knob.Volume]
        min = 0
        max = 10
        [training]
        epochs = 2
        batch = "auto"
        memory = "2G"
        [loss]
        esr = 1.0
        mel = 0.1
        [card]
        name = "Blue"
        [card.gear]
        type = "amp"
    "#;
    std::fs::write(&config, text).expect("it can be written");
    let output = run(&["capture", &config]);
    let [table, messages] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
    assert!(
        output.status.success() && messages.contains("quiet.wav and 1 more"),
        "{messages}"
    );
    assert!(messages.contains("the largest that fits"), "{messages}");
    assert!(
        table.contains("the format has no knobs: Volume at 5"),
        "{table}"
    );
    let model = file::read(Path::new(&path("amp.ondes"))).expect("a model");
    let control = &model.header().controls[0];
    assert_eq!(
        (
            control.name.as_str(),
            control.min,
            control.max,
            control.default
        ),
        ("Volume", 0.0, 10.0, 5.0)
    );
    assert_eq!(model.header().card.name, "Blue");
    assert!(
        file::read(Path::new(&path("amp.nam")))
            .expect("a model")
            .header()
            .controls
            .is_empty()
    );
    // Tools that know one pair use the default positions.
    succeed(&["evaluate", &path("amp.ondes"), "--dry", &dry, "--wet", &wet]);

    for (old, new, named) in [
        (
            "knobs = { Volume = 8 }",
            "",
            "pair 2: the position of knob \"Volume\" is missing",
        ),
        (
            "knobs = { Volume = 8 }",
            "knobs = { Volume = 2 }",
            "at 2 in all pairs",
        ),
        (
            "knobs = { Volume = 8 }",
            "knobs = { Volume = 80 }",
            "outside 0 to 10",
        ),
        ("[knob.Volume]", "[knob.Bass]", "knob.Bass"),
        ("wet = \"quiet.wav\"", "wet = \"silent.wav\"", "silent.wav"),
        ("esr = 1.0", "esr = -1.0", "loss.esr"),
        ("lstm-4", "huge", "huge"),
        ("\"auto\"", "\"all\"", "batch"),
        ("2G", "many", "memory"),
    ] {
        std::fs::write(&config, text.replacen(old, new, 1)).expect("it can be written");
        refuse(&[(vec!["capture", &config], named)]);
    }
    refuse(&[(
        vec!["capture", "--dry", &dry, "--dry", &dry, "--wet", &wet],
        "2 --dry and 1 --wet",
    )]);

    let both = path("both.ondes");
    succeed(&[
        "capture", "--dry", &dry, "--wet", &wet, "--wet", &quiet, "--size", "lstm-2", "--epochs",
        "1", "--out", &both,
    ]);
    assert!(
        file::read(Path::new(&both))
            .expect("a model")
            .header()
            .controls
            .is_empty()
    );
}

#[test]
fn a_sweep_prints_the_best_trial_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let config = write_config(folder, "swept");
    let arguments = [
        "sweep",
        &config,
        "--vary",
        "training.learning_rate=1e-9,2e-3",
        "--vary",
        "training.steps=6,14",
    ];
    let table = succeed(&arguments);
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows.len(), 6, "{table}");
    assert!(
        rows[1].contains("training.learning_rate 0.002, training.steps 14"),
        "{table}"
    );
    assert!(
        rows[1].contains("finished") && rows[5].starts_with("best: "),
        "{table}"
    );
    let best = rows[5].trim_start_matches("best: ");
    file::read(Path::new(best)).expect("a model");
    // What is done is not done again; what is not, is.
    std::fs::remove_file(folder.join("swept.sweep/trial002/result.json")).expect("a file");
    let written = |trial: &str| {
        let path = folder.join("swept.sweep").join(trial).join("model.ondes");
        std::fs::metadata(path)
            .and_then(|file| file.modified())
            .expect("a model")
    };
    let before = [written("trial001"), written("trial002")];
    assert_eq!(succeed(&arguments), table);
    let after = [written("trial001"), written("trial002")];
    assert!(
        before[0] == after[0] && before[1] < after[1],
        "{before:?}, {after:?}"
    );
    let last = folder
        .join("swept.sweep/trial002/checkpoint.safetensors")
        .display()
        .to_string();
    let out = folder.join("last.ondes").display().to_string();
    assert!(succeed(&["export", &last, "--last", "--out", &out]).contains("step 14"));

    refuse(&[
        (
            vec!["sweep", &config, "--vary", "training.batch=2..4"],
            "--random",
        ),
        (
            vec!["sweep", "missing.toml", "--vary", "training.batch=2,4"],
            "missing.toml",
        ),
    ]);
    let message = fail(&[
        "sweep",
        &config,
        "--vary",
        "network.colour=1",
        "--work",
        &out.replace(".ondes", ""),
    ]);
    assert!(
        message.contains("colour") && message.contains("no trial has ended"),
        "{message}"
    );
}

/// Runs a command that fails; returns its standard error.
fn fail(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).expect("text")
}
