//! Programs that crash, never return, take all memory or try to get out: nothing but their own
//! process is lost.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ondes_engine::model::Model;
use ondes_engine::panics::contain;
use ondes_engine::pipeline::Pipeline;
use ondes_engine::realtime::{Driver, LoadStatus, PlayableModel};
use ondes_engine::torch;
use ondes_tests::fake_model::{Host, Wave, wait_until};
use ondes_tests::torchscript::{Class, Value};

use crate::{RATE, options};

/// Condition of a program for loud input.
const LOUD: &str = "bool(torch.gt(torch.max(torch.abs(x)), 0.5))";

/// Opens an effect whose body runs `lines` when its input is loud, and passes other input.
fn open(folder: &Path, name: &str, statement: &str, lines: &[&str]) -> Model {
    let path = folder.join(format!("{name}.ts"));
    let first = format!("{statement} {LOUD}:");
    let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
    let body: Vec<&str> = std::iter::once(first.as_str())
        .chain(lines.iter().map(String::as_str))
        .chain(["return x"])
        .collect();
    // A text of its own, so that each test has a process of its own.
    let class = Class::default()
        .with("sr", Value::Int(44_100))
        .with("title", Value::Text(name.into()));
    std::fs::write(&path, class.nn("forward", [1, 1, 1, 1], &body).bytes())
        .expect("it can be written");
    torch::open(&path).expect("silence is harmless").model
}

/// Plays soft and then loud input, and returns the reason of the failure.
fn failure(model: &Model) -> String {
    let mut pipeline = Pipeline::new(model, &options(1)).expect("it plays");
    let mut output = vec![0.0; 1_024];
    pipeline.process(&[0.25; 1_024], &mut output);
    assert!(
        (output[1_000] - 0.25).abs() < 1e-6,
        "it passes soft sounds: {}",
        output[1_000]
    );
    contain(|| pipeline.process(&[0.9; 1_024], &mut output)).expect_err("loud sounds are too much")
}

/// Returns the processes that run the program of this name.
fn processes(name: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("Linux has it").flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let runs = |number: &u32| {
        // Empty for one that has ended.
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
        words[0].ends_with(b"ondes-program-host") && words.get(1) == Some(&name.as_bytes())
    };
    entries.filter_map(number).filter(runs).collect()
}

fn kill(process: u32) {
    assert!(
        Command::new("kill")
            .args(["-9", &process.to_string()])
            .status()
            .expect("there is kill")
            .success()
    );
}

#[test]
fn a_crash_ends_only_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    // Writes far outside of its tensor.
    let wild = [
        "rows = torch.mul(torch.add(torch.arange(2), 1), 1099511627776)",
        "x = torch.add(x, torch.max(torch._convert_indices_from_csr_to_coo(rows, rows)))",
    ];
    let model = open(folder.path(), "wild", "if", &wild);
    for _ in 0..2 {
        // The second time in a new process.
        let reason = failure(&model);
        assert_eq!(
            reason,
            "wild: the program crashed (signal 11, invalid memory access)"
        );
    }
    assert_eq!(processes("wild"), [0; 0]);
}

#[test]
fn an_error_leaves_the_process_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = open(folder.path(), "raises", "if", &["x = torch.view(x, [7])"]);
    assert!(
        failure(&model).starts_with("RuntimeError: shape '[7]' is invalid"),
        "{}",
        failure(&model)
    );
    let pipeline = Pipeline::new(&model, &options(1)).expect("it plays");
    assert_eq!(processes("raises").len(), 1);
    drop(pipeline);
    assert_eq!(processes("raises"), [0; 0]);
}

#[test]
fn a_program_that_never_returns_is_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = open(folder.path(), "endless", "while", &["x = torch.add(x, 1.)"]);
    assert_eq!(
        failure(&model),
        "endless: the program did not answer within 2 s and was stopped"
    );
    assert_eq!(processes("endless"), [0; 0]);
}

#[test]
fn memory_is_limited() {
    let folder = tempfile::tempdir().expect("a folder");
    // A gigabyte at a time, which is not touched.
    let lines = [
        "y = torch.empty([268435456])",
        "kept = torch.append(kept, y)",
    ];
    let path = folder.path().join("greedy.ts");
    let head = [
        "kept = annotate(List[Tensor], [])".to_owned(),
        format!("while {LOUD}:"),
    ];
    let lines = lines.map(|line| format!("  {line}"));
    let body: Vec<&str> = head
        .iter()
        .chain(&lines)
        .map(String::as_str)
        .chain(["return x"])
        .collect();
    std::fs::write(
        &path,
        Class::default().nn("forward", [1, 1, 1, 1], &body).bytes(),
    )
    .expect("it can be written");
    let model = torch::open(&path).expect("silence is harmless").model;
    let reason = failure(&model);
    assert!(reason.contains("can't allocate memory"), "{reason}");
}

#[test]
fn files_cannot_be_read_or_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let (secret, new) = (folder.path().join("secret"), folder.path().join("new"));
    std::fs::write(&secret, [63; 4_096]).expect("it can be written");
    for (name, file, shared) in [
        ("writer", &new, "True"),
        ("changer", &secret, "True"),
        ("reader", &secret, "False"),
    ] {
        let line = format!(
            "x = torch.add(x, torch.max(torch.from_file({:?}, {shared}, 256)))",
            file.display()
        );
        let model = open(folder.path(), name, "if", &[&line]);
        let mut pipeline = Pipeline::new(&model, &options(1)).expect("it plays");
        let mut output = vec![0.0; 1_024];
        let read = contain(|| pipeline.process(&[0.9; 1_024], &mut output));
        let notes = &model.program().expect("it is one").notes;
        if name == "reader" && notes.iter().any(|note| note.contains("Landlock")) {
            eprintln!("not shown here: this kernel has no Landlock");
            continue;
        }
        let reason = read.expect_err("files are not for programs");
        assert!(
            reason.contains("ermi") && reason.contains(&file.display().to_string()),
            "{name}: {reason}"
        );
    }
    assert!(!new.exists());
    assert_eq!(std::fs::read(&secret).expect("it is there"), [63; 4_096]);
}

#[test]
fn a_session_starts_a_lost_program_again_three_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = Arc::new(open(folder.path(), "victim", "if", &["x = torch.neg(x)"]));
    let playable = PlayableModel::new(model, options(1)).expect("it plays");
    let mut host = Host::new(
        playable,
        Driver::Worker {
            latency: Some(4_096),
        },
        256,
    );
    host.controller.set_non_realtime(false);
    host.input = Some(Wave {
        frequency: 0.01,
        peak: 0.4,
    });
    let mut play_until = |what: &str, happened: &dyn Fn(&Host) -> bool| {
        let begun = Instant::now();
        while !happened(&host) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "timed out waiting until {what}"
            );
            host.play(1);
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let is_heard = |host: &Host| {
        host.output
            .iter()
            .rev()
            .take(256)
            .any(|sample| sample.abs() > 0.1)
    };
    for restart in 0..3 {
        play_until("it is heard", &is_heard);
        let before = processes("victim");
        assert_eq!(before.len(), 1);
        kill(before[0]);
        play_until("it is started again", &|_| {
            processes("victim")
                .iter()
                .any(|process| !before.contains(process))
        });
        play_until("that is said", &|host| {
            host.controller.status() == LoadStatus::Ready && host.controller.warning().is_some()
        });
        play_until("the fade is over", &|host| {
            host.now() as usize > (restart + 1) * 48_000
        });
    }
    play_until("it is heard", &is_heard);
    kill(processes("victim")[0]);
    play_until("it stays silent", &|host| {
        matches!(host.controller.status(), LoadStatus::Failed(_))
    });
    let warning = host.controller.warning().expect("it was said");
    assert!(
        warning.contains("victim: the program crashed (signal 9")
            && warning.ends_with("; it was started again"),
        "{warning}"
    );
    let LoadStatus::Failed(reason) = host.controller.status() else {
        unreachable!("it was just seen")
    };
    assert!(
        reason.starts_with("the model failed: victim: the program crashed")
            && reason.contains("stays silent"),
        "{reason}"
    );
    // Sound goes on: silence in this session, nothing else.
    host.play(20);
    assert!(
        host.output
            .iter()
            .rev()
            .take(256)
            .all(|sample| *sample == 0.0)
    );
    wait_until("nothing is left", || processes("victim").is_empty());
}

/// Environment variable with the folder of a child.
const FOLDER: &str = "ONDES_TEST_FOLDER";

#[test]
#[ignore = "started by the next test"]
fn child_that_waits_for_an_endless_program() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let model = open(
        Path::new(&folder),
        "orphan",
        "while",
        &["x = torch.add(x, 1.)"],
    );
    let mut pipeline = Pipeline::new(&model, &options(1)).expect("it plays");
    println!("\nplaying");
    // The first step may take longer.
    let _ = contain(|| pipeline.process(&[0.9; 1_024], &mut [0.0; 1_024]));
}

#[test]
fn a_program_ends_with_its_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut engine = Command::new(std::env::current_exe().expect("we are a program"))
        .args([
            "--exact",
            "process::child_that_waits_for_an_endless_program",
            "--ignored",
            "--nocapture",
        ])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(engine.stdout.take().expect("it has one")).lines();
    assert!(
        lines.map_while(Result::ok).any(|line| line == "playing"),
        "it plays"
    );
    // In the middle of the endless step.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(processes("orphan").len(), 1);
    engine
        .kill()
        .and_then(|()| engine.wait())
        .expect("it is ours");
    wait_until("the program has ended", || processes("orphan").is_empty());
}

#[test]
fn the_process_has_no_rights_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = open(folder.path(), "powerless", "if", &["x = torch.neg(x)"]);
    let _pipeline = Pipeline::new(&model, &options(1)).expect("it plays");
    let [process] = processes("powerless")[..] else {
        panic!("there is one")
    };
    let at = |file: &str| PathBuf::from(format!("/proc/{process}/{file}"));
    // Of each thread, those that libtorch has started included.
    for thread in std::fs::read_dir(at("task")).expect("it runs").flatten() {
        let status = std::fs::read_to_string(thread.path().join("status")).expect("it runs");
        assert!(
            status.contains("NoNewPrivs:\t1\n") && status.contains("Seccomp:\t2\n"),
            "{status}"
        );
    }
    let limits = std::fs::read_to_string(at("limits")).expect("it runs");
    let limit = |name: &str| {
        limits
            .lines()
            .find(|line| line.starts_with(name))
            .map(str::to_owned)
            .unwrap_or_default()
    };
    assert!(limit("Max core file size").contains(" 0 "), "{limits}");
    assert!(limit("Max data size").contains(" 8589934592 "), "{limits}");
    assert_eq!(
        std::fs::read_to_string(at("oom_score_adj"))
            .expect("it runs")
            .trim(),
        "1000"
    );
    assert_eq!(model.header().sample_rate, RATE);
}
