//! Commands that are interrupted by a signal, wherever they are, and batches that continue after
//! that.

#[cfg(target_os = "linux")]
use std::process::Command;
use std::process::{Child, Output, Stdio};

use crate::common::{Folder, json_lines, tone, write_wav};

const FILES: usize = 5;
const BATCH: [&str; 8] = [
    "render",
    "small.ondes",
    "--input",
    "takes",
    "--jobs",
    "2",
    "--out",
    "out",
];

/// Creates a folder with recordings long enough to be interrupted.
fn with_long_takes() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("takes")).expect("a folder is made");
    for index in 0..FILES {
        let take = tone(200.0 + 20.0 * index as f64, 30.0, 48_000);
        write_wav(&folder.path(&format!("takes/{index}.wav")), 48_000, 1, take);
    }
    folder
}

/// Returns the names of finished and of unfinished files.
fn results(folder: &Folder) -> (Vec<String>, Vec<String>) {
    if !folder.path("out").exists() {
        return Default::default();
    }
    folder
        .files_in("out")
        .into_iter()
        .partition(|name| !name.starts_with('.'))
}

/// Waits until at least one file is finished and another one is not.
fn wait_for_the_middle(folder: &Folder, child: &mut Child) {
    loop {
        let (finished, unfinished) = results(folder);
        if !finished.is_empty() && !unfinished.is_empty() {
            break;
        }
        assert!(
            child.try_wait().expect("it can be asked").is_none(),
            "it ended before it could be stopped"
        );
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn a_killed_batch_continues_to_the_same_result() {
    let folder = with_long_takes();
    let mut child = folder
        .command(&BATCH)
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    wait_for_the_middle(&folder, &mut child);
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
    let (finished, unfinished) = results(&folder);
    assert!(
        finished.len() < FILES && !unfinished.is_empty(),
        "{finished:?}, {unfinished:?}"
    );

    let (lines, summary) = folder.batch(&BATCH);
    assert_eq!(
        (lines.len(), summary["skipped"].as_u64()),
        (FILES, Some(finished.len() as u64))
    );
    assert_eq!(summary["rendered"], FILES - finished.len());
    let (whole, left) = results(&folder);
    assert_eq!((whole.len(), left.len()), (FILES, 0), "{left:?}");
    folder.batch(&[&BATCH[..7], &["uninterrupted"]].concat());
    for name in whole {
        let read = |folder_name: &str| {
            std::fs::read(folder.path(folder_name).join(&name)).expect("there is a file")
        };
        assert!(read("out") == read("uninterrupted"), "{name}");
    }
}

/// Later outputs are newer than the new model, although they were rendered with the old one.
#[test]
fn a_changed_model_outdates_all_outputs() {
    let folder = with_long_takes();
    let mut child = folder
        .command(&BATCH)
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    wait_for_the_middle(&folder, &mut child);
    let model = std::fs::read(folder.path("small.ondes")).expect("there is a model");
    std::fs::write(folder.path("small.ondes"), model).expect("the model is written");
    assert!(child.wait().expect("it ends").success());
    let (_, summary) = folder.batch(&BATCH);
    assert_eq!(
        (&summary["rendered"], &summary["skipped"]),
        (&FILES.into(), &0.into())
    );
    let (_, summary) = folder.batch(&BATCH);
    assert_eq!(summary["skipped"], FILES);
}

#[test]
fn a_closed_pipe_ends_a_batch() {
    let folder = with_long_takes();
    let mut child = folder
        .command(&BATCH)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr)
        ),
        (Some(0), "".into())
    );
    let (finished, unfinished) = results(&folder);
    assert!(
        (1..FILES).contains(&finished.len()) && unfinished.is_empty(),
        "{finished:?}, {unfinished:?}"
    );
}

/// Time for anything that happens at all.
#[cfg(target_os = "linux")]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Returns a command that runs the program in the folder; its signals are not ignored.
#[cfg(target_os = "linux")]
fn listening(folder: &Folder, arguments: &[&str]) -> Command {
    // The tests may run with signals ignored.
    let mut command = Command::new("env");
    command
        .args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_ondes")])
        .args(arguments);
    command
        .current_dir(folder.path("."))
        .stdin(Stdio::null())
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY");
    command
}

/// Sends the program a signal when `ready` returns, and returns its output; it must end in time.
#[cfg(target_os = "linux")]
fn interrupt(mut command: Command, signal: &str, ready: impl FnOnce(&mut Child)) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    ready(&mut child);
    let mut kill = Command::new("kill");
    assert!(
        kill.args([&format!("-{signal}"), &child.id().to_string()])
            .status()
            .expect("it is sent")
            .success()
    );
    let since = std::time::Instant::now();
    while child.try_wait().expect("it can be asked").is_none() {
        if since.elapsed() > PATIENCE {
            child.kill().expect("it is killed");
            panic!(
                "it goes on: {}",
                String::from_utf8_lossy(&child.wait_with_output().expect("it ends").stderr)
            );
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.wait_with_output().expect("it ends")
}

#[cfg(target_os = "linux")]
fn assert_interrupted(output: &Output, code: i32) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &*errors),
        (Some(code), "ondes: interrupted\n")
    );
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_batch_leaves_only_complete_files() {
    let folder = with_long_takes();
    let output = interrupt(
        listening(&folder, &[&BATCH[..], &["--json"]].concat()),
        "INT",
        |child| {
            wait_for_the_middle(&folder, child);
        },
    );
    assert_interrupted(&output, 130);
    let (lines, summary) = json_lines(&output.stdout);
    let (finished, unfinished) = results(&folder);
    assert_eq!(
        (lines.len(), unfinished.len()),
        (finished.len(), 0),
        "{unfinished:?}"
    );
    assert_eq!(
        (&summary["interrupted"], &summary["failed"]),
        (&true.into(), &0.into())
    );
    assert!(finished.len() < FILES);
    let (_, summary) = folder.batch(&BATCH);
    assert_eq!(
        (&summary["skipped"], &summary["interrupted"]),
        (&finished.len().into(), &false.into())
    );
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_render_leaves_nothing() {
    let folder = with_long_takes();
    let render = [
        "render",
        "small.ondes",
        "--input",
        "takes/0.wav",
        "--out",
        "x.wav",
    ];
    let before = folder.files();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let output = interrupt(listening(&folder, &render), signal, |child| {
            while folder.files() == before {
                assert!(
                    child.try_wait().expect("it can be asked").is_none(),
                    "it ended before it could be stopped"
                );
            }
        });
        assert_interrupted(&output, code);
        assert_eq!((output.stdout.len(), folder.files()), (0, before.clone()));
    }
}

/// A command that cannot notice the interrupt is ended by force.
#[cfg(target_os = "linux")]
#[test]
fn a_render_whose_output_nobody_reads_ends() {
    let folder = with_long_takes();
    let render = [
        "render",
        "small.ondes",
        "--input",
        "takes/0.wav",
        "--normalize",
        "-16",
        "--out",
        "-",
    ];
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let output = interrupt(listening(&folder, &render), signal, |child| {
            let mut first = [0; 4096];
            std::io::Read::read_exact(child.stdout.as_mut().expect("there is one"), &mut first)
                .expect("it renders");
            // It fills the pipe and waits.
            std::thread::sleep(std::time::Duration::from_millis(500));
        });
        assert_interrupted(&output, code);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_long_measurement_ends() {
    let folder = Folder::new();
    let bench = ["bench", "small.ondes", "--seconds", "3600"];
    let wait = |_: &mut Child| std::thread::sleep(std::time::Duration::from_millis(500));
    assert_interrupted(&interrupt(listening(&folder, &bench), "INT", wait), 130);
    assert_interrupted(&interrupt(listening(&folder, &bench), "TERM", wait), 143);
}

#[cfg(all(target_os = "linux", feature = "download"))]
#[test]
fn a_download_that_does_not_answer_ends() {
    let folder = Folder::new();
    std::fs::write(folder.path("library.so"), "a library").expect("it can be written");
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        // A proxy that accepts and says nothing.
        let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = format!("http://{}", proxy.local_addr().expect("it has one"));
        let mut command = listening(&folder, &["setup-torch"]);
        command
            .env_remove("LIBTORCH")
            .env("HTTPS_PROXY", address)
            .env_remove("NO_PROXY")
            .env_remove("no_proxy");
        command
            .env("XDG_DATA_HOME", folder.path("data"))
            .env("XDG_CACHE_HOME", folder.path("cache"));
        command.env("ONDES_TORCH_LIBRARY", folder.path("library.so"));
        let mut connection = None;
        let output = interrupt(command, signal, |_| {
            connection = Some(proxy.accept().expect("it downloads"))
        });
        assert_interrupted(&output, code);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_never_returns_ends() {
    let Some(library) = crate::common::library() else {
        return;
    };
    let folder = Folder::new();
    let body = [
        "while bool(torch.gt(torch.max(torch.abs(x)), 0.5)):",
        "  x = torch.add(x, 1.)",
        "return x",
    ];
    let class = ondes_tests::torchscript::Class::default()
        .with("sr", ondes_tests::torchscript::Value::Int(44_100))
        .nn("forward", [1, 1, 1, 1], &body);
    std::fs::write(folder.path("endless.ts"), class.bytes()).expect("the file is written");
    write_wav(
        &folder.path("loud.wav"),
        44_100,
        1,
        std::iter::repeat_n(0.9, 44_100),
    );
    let before = folder.files();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut command = listening(
            &folder,
            &[
                "render",
                "endless.ts",
                "--input",
                "loud.wav",
                "--device",
                "cpu",
            ],
        );
        command.env("ONDES_TORCH_LIBRARY", &library);
        let output = interrupt(command, signal, |_| {
            // The output is created, and the first step begins.
            while folder.files() == before {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            std::thread::sleep(std::time::Duration::from_millis(300));
        });
        assert_interrupted(&output, code);
        assert_eq!(folder.files(), before);
    }
}
