//! Training by several processes from the command line.

use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{make_corpus, succeed, train, write_config};
use ondes_engine::model::file;

/// Returns the validation losses of a log.
fn validations(log: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(log).expect("a log");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line"));
    lines
        .filter_map(|line| line["validation"].as_f64())
        .collect()
}

#[test]
fn several_processes_train_one_instrument() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    succeed(&["fit", &write_config(folder, "one"), "--workers", "1"]);
    let output = train()
        .args(["fit", &write_config(folder, "two"), "--workers", "2"])
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert_eq!(
        text.matches("weights, 60 steps").count(),
        1,
        "only the first process prints: {text}"
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout)
            .matches("written")
            .count(),
        1
    );
    file::read(&folder.join("two.ondes")).expect("a model");
    let losses = |name: &str| validations(&folder.join(name).join("metrics.jsonl"));
    let (one, two) = (losses("one"), losses("two"));
    assert_eq!(one.len(), two.len());
    // Sums in another order differ in the last bits, which the first steps of AdamW enlarge: it
    // moves weights whose gradient is next to zero as far as others.
    assert!(
        one.iter()
            .zip(&two)
            .all(|(one, two)| (one / two - 1.0).abs() < 0.05),
        "{one:?} {two:?}"
    );
}

/// Starts a long run of three processes and waits for a new checkpoint.
#[cfg(target_os = "linux")]
fn start(config: &str, checkpoint: &Path) -> Child {
    let mut command = train();
    command
        .args(["fit", config, "--workers", "3"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if checkpoint.exists() {
        command.arg("--resume");
    }
    let written = || {
        std::fs::metadata(checkpoint)
            .and_then(|file| file.modified())
            .ok()
    };
    let (before, started) = (written(), Instant::now());
    let mut child = command.spawn().expect("it starts");
    while written() == before {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "no checkpoint came"
        );
        assert!(
            child.try_wait().expect("it can be asked").is_none(),
            "{}",
            stderr(child.wait_with_output())
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn stderr(output: std::io::Result<Output>) -> String {
    String::from_utf8_lossy(&output.expect("it ends").stderr).into_owned()
}

/// Returns the process of a rank that a launcher has started.
#[cfg(target_os = "linux")]
fn process(launcher: &Child, rank: usize) -> u32 {
    let processes = std::fs::read_dir("/proc")
        .expect("Linux")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_wanted = |id: &u32| {
        let read = |name: &str| std::fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        let status = String::from_utf8_lossy(&read("status")).into_owned();
        let environment = String::from_utf8_lossy(&read("environ")).into_owned();
        status.contains(&format!("PPid:\t{}\n", launcher.id()))
            && environment
                .split('\0')
                .any(|text| text == format!("RANK={rank}"))
    };
    let mut found = processes.filter(is_wanted);
    found.next().expect("the process runs")
}

#[cfg(target_os = "linux")]
fn kill(id: u32, signal: &str) {
    let kill = std::process::Command::new("kill")
        .args([signal, &id.to_string()])
        .status();
    assert!(kill.expect("kill starts").success());
}

#[cfg(target_os = "linux")]
#[test]
fn a_lost_process_ends_all_with_a_line_and_a_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let config = write_config(folder, "lost");
    let text = std::fs::read_to_string(&config).expect("a file");
    let text = text
        .replace("steps = 60", "steps = 100000")
        .replace("batch = 2", "batch = 3");
    std::fs::write(&config, text).expect("it can be written");
    let checkpoint = folder.join("lost/checkpoint.safetensors");
    let step = || {
        let out = folder.join("exported.ondes").display().to_string();
        let line = succeed(&[
            "export",
            &checkpoint.display().to_string(),
            "--last",
            "--out",
            &out,
        ]);
        line.rsplit_once("step ")
            .and_then(|(_, step)| step.trim().parse::<u64>().ok())
            .expect("a step")
    };
    let mut before = 0;
    // Any process may go, the first too.
    for lost in [2, 0, 1] {
        let child = start(&config, &checkpoint);
        kill(process(&child, lost), "-KILL");
        let started = Instant::now();
        let output = child.wait_with_output().expect("it ends");
        assert!(
            started.elapsed() < Duration::from_secs(15),
            "the others wait"
        );
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains(&format!("process {lost} ended by a signal")),
            "{text}"
        );
        let told = text.matches("another process of the run has gone").count();
        assert_eq!(told, usize::from(lost != 0), "{text}");
        let after = step();
        assert!(after > before, "{after} after {before}");
        before = after;
    }
    // A signal to the launcher reaches all.
    let child = start(&config, &checkpoint);
    kill(child.id(), "-TERM");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(143), "{text}");
    assert!(
        text.contains("--resume goes on") && step() > before,
        "{text}"
    );
    file::read(&folder.join("lost.ondes")).expect("the best model so far");
}

#[test]
fn wrong_places_and_missing_processes_are_told_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let config = write_config(folder, "alone");
    let refused = |variables: &[(&str, &str)], named: &str| {
        let mut command = train();
        command
            .args(["fit", &config])
            .envs(variables.iter().copied())
            .env("ONDES_GROUP_TIMEOUT_S", "2");
        let output = command.output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains(named) && text.trim().lines().count() == 1,
            "{named}: {text}"
        );
    };
    refused(
        &[("RANK", "a"), ("WORLD_SIZE", "2")],
        "the variable RANK is \"a\", not a number",
    );
    refused(&[("RANK", "0"), ("WORLD_SIZE", "2")], "MASTER_ADDR");
    let place = |rank| {
        [
            ("RANK", rank),
            ("WORLD_SIZE", "2"),
            ("MASTER_ADDR", "127.0.0.1"),
            ("MASTER_PORT", "1"),
        ]
    };
    refused(
        &place("1"),
        "process 1 of 2 cannot meet the others at 127.0.0.1:1",
    );
}
