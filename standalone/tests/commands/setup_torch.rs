//! `ondes setup-torch`, as far as it works without downloading half a gigabyte.

use std::fs::File;
use std::process::{Command, Output};

use crate::common::{Folder, assert_refused, library};

/// Returns a command for a new user; its proxy does not exist.
fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = folder.command(arguments);
    command
        .env_remove("LIBTORCH")
        .env("HTTPS_PROXY", "http://127.0.0.1:1");
    command
        .env("XDG_DATA_HOME", folder.path("data"))
        .env("XDG_CACHE_HOME", folder.path("cache"));
    command.env("ONDES_TORCH_LIBRARY", folder.path("libondes_torch.so"));
    command.env("ONDES_PROGRAM_HOST", folder.path("ondes-program-host"));
    command
}

fn run(mut command: Command) -> Output {
    command.output().expect("the program starts")
}

#[test]
fn without_the_library_nothing_is_downloaded() {
    let folder = Folder::new();
    let refused = run(command(&folder, &["setup-torch"]));
    assert_refused(
        &refused,
        &[
            "is not beside this program",
            "cargo xtask install --torch",
            "libondes_torch.so",
        ],
    );
    assert!(!folder.path("data").exists());
}

#[test]
fn failed_installs_are_reported_and_leave_nothing() {
    let folder = Folder::new();
    std::fs::write(folder.path("libondes_torch.so"), "a library").expect("it can be written");
    let without_host = run(command(&folder, &["setup-torch"]));
    let said = String::from_utf8_lossy(&without_host.stderr).into_owned();
    assert!(
        said.contains("ondes-program-host is not beside this program") && said.lines().count() == 1,
        "{said}"
    );
    std::fs::write(folder.path("ondes-program-host"), "a program").expect("it can be written");
    let without_network = run(command(&folder, &["setup-torch"]));
    let said = String::from_utf8_lossy(&without_network.stderr).into_owned();
    assert_eq!(without_network.status.code(), Some(2), "{said}");
    assert!(
        said.contains("https://") && said.contains("torch-2.11.0") && said.contains("--from"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    // Both parts are copied to where plugins look for them, once.
    for (file, content) in [
        ("libondes_torch.so", "a library"),
        ("ondes-program-host", "a program"),
    ] {
        let file = folder.path("data/ondes/torch").join(file);
        assert_eq!(
            std::fs::read_to_string(file).expect("it was copied"),
            content
        );
    }

    let wheels = folder.path("wheels");
    std::fs::create_dir(&wheels).expect("it can be made");
    let from = |words: &[&str]| {
        let refused = run(command(&folder, &["setup-torch", "--from", "wheels"]));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(
            (refused.status.code(), said.lines().count()),
            (Some(2), 1),
            "{said}"
        );
        assert!(
            words.iter().all(|word| said.contains(word)),
            "{words:?} in {said}"
        );
        assert!(String::from_utf8_lossy(&refused.stdout).contains("already installed"));
    };
    from(&["wheels: torch-2.11.0-", "is missing", "https://"]);
    let wheel = &ondes_libtorch::Manifest::published(ondes_libtorch::Contents::Runtime).wheels[0];
    let path = wheels.join(wheel.file());
    std::fs::write(&path, "cut off").expect("it can be written");
    from(&[
        wheel.file(),
        "7 bytes, but the published wheel has 530604548",
    ]);
    // A sparse file of the right length.
    File::create(&path)
        .and_then(|file| file.set_len(wheel.bytes))
        .expect("it can be written");
    from(&[wheel.file(), "SHA-256", &wheel.sha256]);
    assert!(!folder.path("data/ondes/libtorch-2.11.0-cpu").exists());
}

#[test]
fn an_existing_install_is_kept() {
    let (Some(library), Some(libtorch)) = (library(), std::env::var_os("LIBTORCH")) else {
        return;
    };
    let folder = Folder::new();
    let mut command = command(&folder, &["setup-torch"]);
    let done = run({
        command
            .env("ONDES_TORCH_LIBRARY", library)
            .env("LIBTORCH", libtorch)
            .env_remove("ONDES_PROGRAM_HOST");
        command
    });
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(
        said.contains("libtorch 2.11.0: already installed")
            && said.contains("can be played now, on the CPU"),
        "{said}"
    );
    for file in ["libondes_torch.so", "ondes-program-host"] {
        assert!(
            folder.path("data/ondes/torch").join(file).is_file(),
            "{file}"
        );
    }
}
