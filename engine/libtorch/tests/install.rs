//! Installation from a server or a folder: complete, or not at all.

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use common::{Server, content, manifest};
use ondes_libtorch::{Error, InstallOutcome, InstallStep, Manifest, WheelSource, install};

fn install_quietly(
    manifest: &Manifest,
    folder: &Path,
    source: WheelSource<'_>,
) -> Result<InstallOutcome, Error> {
    install(manifest, folder, source, |_| Ok(()), &mut |_| {})
}

/// Returns a server with all wheels, and their manifest.
fn served() -> (Server, Manifest) {
    let server = Server::new();
    let (manifest, packed) = manifest(&server.address);
    let named = ["torch.whl", "nvidia.whl"]
        .map(str::to_owned)
        .into_iter()
        .zip(packed);
    server.files.lock().unwrap().extend(named);
    (server, manifest)
}

/// Returns the names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn required_members_are_downloaded_once() {
    let (server, manifest) = served();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("data/libtorch-1.2.3");
    let mut seen = Vec::new();
    let finish = |staged: &Path| {
        assert!(!target.exists(), "renamed before it is complete");
        fs::write(staged.join("lib/stub.so"), "stub")
            .map_err(|reason| Error::Incomplete(reason.to_string()))
    };
    let done = install(
        &manifest,
        &target,
        WheelSource::Network,
        finish,
        &mut |progress| {
            assert!(progress.done_bytes <= progress.total_bytes);
            seen.push((
                progress.step,
                progress.wheel.to_owned(),
                progress.done_bytes == progress.total_bytes,
            ));
        },
    );
    assert_eq!(done.unwrap(), InstallOutcome::Installed);
    for work in [
        InstallStep::Downloading,
        InstallStep::Verifying,
        InstallStep::Unpacking,
    ] {
        for wheel in ["torch.whl", "nvidia.whl"] {
            assert!(
                seen.contains(&(work, wheel.to_owned(), true)),
                "{work:?} {wheel}"
            );
        }
    }
    let members = [
        ("lib/one.so", "torch/lib/one.so"),
        ("lib/two.so.13", "nvidia/lib/two.so.13"),
        ("include/a/b.h", "torch/include/a/b.h"),
        ("include/c.h", "torch/include/c.h"),
    ];
    for (file, member) in members {
        assert_eq!(
            fs::read_to_string(target.join(file)).unwrap(),
            content(member)
        );
    }
    assert_eq!(
        names(&target.join("lib")),
        ["one.so", "stub.so", "two.so.13"]
    );
    assert_eq!(
        names(target.parent().unwrap()),
        ["libtorch-1.2.3", "libtorch-1.2.3.lock"]
    );

    assert_eq!(
        install_quietly(&manifest, &target, WheelSource::Network).unwrap(),
        InstallOutcome::AlreadyThere
    );
    assert_eq!(server.requests.lock().unwrap().len(), 2);

    // A damaged installation is replaced.
    fs::write(target.join("lib/one.so"), "short").unwrap();
    assert!(manifest.problem(&target).unwrap().contains("one.so"));
    assert_eq!(
        install_quietly(&manifest, &target, WheelSource::Network).unwrap(),
        InstallOutcome::Installed
    );
    assert_eq!(manifest.problem(&target), None);
}

#[test]
fn an_interrupted_download_resumes() {
    let (server, manifest) = served();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("libtorch");
    server.body_limit.store(100, Ordering::Relaxed);
    let refused = install_quietly(&manifest, &target, WheelSource::Network).unwrap_err();
    assert!(
        matches!(&refused, Error::Network { url, .. } if url.ends_with("torch.whl")),
        "{refused}"
    );
    assert_eq!(refused.to_string().lines().count(), 1);
    assert!(!target.exists());
    server.body_limit.store(usize::MAX, Ordering::Relaxed);
    assert_eq!(
        install_quietly(&manifest, &target, WheelSource::Network).unwrap(),
        InstallOutcome::Installed
    );
    assert_eq!(manifest.problem(&target), None);
    let requests = server.requests.lock().unwrap();
    assert!(requests[1].ends_with("from 100"), "{requests:?}");
}

#[test]
fn a_killed_installation_leaves_no_complete_folder() {
    let (_server, manifest) = served();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("libtorch");
    // Killed while unpacking the second wheel.
    let killed = std::panic::catch_unwind(|| {
        install(
            &manifest,
            &target,
            WheelSource::Network,
            |_| Ok(()),
            &mut |progress| {
                if progress.step == InstallStep::Unpacking && progress.wheel == "nvidia.whl" {
                    std::panic::resume_unwind(Box::new("killed"));
                }
            },
        )
    });
    assert!(killed.is_err() && !target.exists());
    assert!(
        folder
            .path()
            .join("libtorch.part/staged/lib/one.so")
            .exists(),
        "the first wheel was unpacked"
    );
    assert_eq!(
        install_quietly(&manifest, &target, WheelSource::Network).unwrap(),
        InstallOutcome::Installed
    );
    assert_eq!(names(folder.path()), ["libtorch", "libtorch.lock"]);
}

#[test]
fn a_wrong_hash_is_refused_and_downloaded_again() {
    let (server, manifest) = served();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("libtorch");
    let right = server.files.lock().unwrap()[1].1.clone();
    server.files.lock().unwrap()[1].1[40] ^= 1;
    let refused = install_quietly(&manifest, &target, WheelSource::Network).unwrap_err();
    assert!(
        matches!(&refused, Error::Hash { path, .. } if path.ends_with("nvidia.whl")),
        "{refused}"
    );
    assert!(!target.exists());
    server.files.lock().unwrap()[1].1 = right;
    assert_eq!(
        install_quietly(&manifest, &target, WheelSource::Network).unwrap(),
        InstallOutcome::Installed
    );
    // The first wheel was valid and is not downloaded again.
    let requests = server.requests.lock().unwrap();
    assert_eq!(
        requests
            .iter()
            .filter(|line| line.contains("torch.whl"))
            .count(),
        1,
        "{requests:?}"
    );
}

#[test]
fn network_failure_and_missing_file_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("libtorch");
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (manifest, _) = manifest(&format!("http://{closed}"));
    let refused = install_quietly(&manifest, &target, WheelSource::Network)
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with(&format!("http://{closed}/torch.whl: "))
            && refused.lines().count() == 1,
        "{refused}"
    );
    let (server, manifest) = served();
    server.files.lock().unwrap().clear();
    let refused = install_quietly(&manifest, &target, WheelSource::Network)
        .unwrap_err()
        .to_string();
    assert!(
        refused.ends_with("torch.whl: HTTP status 404; expected 200 or 206"),
        "{refused}"
    );
    assert!(!target.exists());
}

#[test]
fn wheels_of_a_folder_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let (wheels, target) = (folder.path().join("wheels"), folder.path().join("libtorch"));
    fs::create_dir(&wheels).unwrap();
    let (manifest, packed) = manifest("https://nowhere.invalid");
    let from = || install_quietly(&manifest, &target, WheelSource::Folder(&wheels));
    let refused = from().unwrap_err().to_string();
    assert!(
        refused.contains("torch.whl") && refused.contains("https://nowhere.invalid/torch.whl"),
        "{refused}"
    );

    fs::write(wheels.join("nvidia.whl"), &packed[1]).unwrap();
    fs::write(wheels.join("torch.whl"), &packed[0][..packed[0].len() - 1]).unwrap();
    assert!(
        matches!(from().unwrap_err(), Error::Length { path, .. } if path.ends_with("torch.whl"))
    );
    let mut other = packed[0].clone();
    other[40] ^= 1;
    fs::write(wheels.join("torch.whl"), &other).unwrap();
    assert!(matches!(from().unwrap_err(), Error::Hash { path, .. } if path.ends_with("torch.whl")));
    assert!(
        !target.exists() && wheels.join("torch.whl").exists(),
        "the user's file is kept"
    );

    fs::write(wheels.join("torch.whl"), &packed[0]).unwrap();
    assert_eq!(from().unwrap(), InstallOutcome::Installed);
    assert_eq!(names(&wheels), ["nvidia.whl", "torch.whl"]);
    assert_eq!(
        fs::read_to_string(target.join("lib/one.so")).unwrap(),
        content("torch/lib/one.so")
    );
}

#[test]
fn wheels_without_a_required_member_are_refused() {
    let (_server, manifest) = served();
    let folder = tempfile::tempdir().unwrap();
    let with = |member: &str, target: &str| {
        let mut manifest = manifest.clone();
        manifest.wheels[0].members = vec![(member.into(), target.into())];
        install_quietly(
            &manifest,
            &folder.path().join("libtorch"),
            WheelSource::Network,
        )
        .unwrap_err()
        .to_string()
    };
    assert!(
        with("torch/lib/three.so", "lib/three.so")
            .ends_with("member torch/lib/three.so is missing")
    );
    assert!(
        with("torch/lib/one.so", "../one.so").ends_with("target path is outside of the folder")
    );
    assert!(with("torch/lib/one.so", "lib/other.so").contains("lib/one.so: missing"));
    assert!(!folder.path().join("libtorch").exists() && !folder.path().join("one.so").exists());
}
