use std::fs;

use tempfile::TempDir;

use super::*;

fn names(folder: &TempDir) -> Vec<String> {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder.path()).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn reading_stops_at_the_limit() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, [7; 100]).unwrap();
    assert_eq!(read(&path, 100).unwrap(), [7; 100]);
    let error = read(&path, 99).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            io::ErrorKind::FileTooLarge,
            "100 bytes; at most 99 are supported".into()
        )
    );
    assert_eq!(
        read(&folder.path().join("b"), 99).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    fs::write(&path, [0xff]).unwrap();
    assert_eq!(
        read_to_string(&path, 99).unwrap_err().kind(),
        io::ErrorKind::InvalidData
    );
}

#[test]
fn a_file_is_written_at_once_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a");
    write(&path, b"one").unwrap();
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one");
    drop(file);
    assert_eq!(
        (fs::read(&path).unwrap(), names(&folder)),
        (b"one".to_vec(), vec!["a".to_owned()])
    );
    assert_eq!(
        write_new(&path, b"two").unwrap_err().kind(),
        io::ErrorKind::AlreadyExists
    );
    write(&path, b"two").unwrap();
    write_new(&folder.path().join("b"), b"new").unwrap();
    let long = folder.path().join("x".repeat(255));
    write(&long, b"long").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(names(&folder).len(), 3, "nothing is left behind");
    assert!(write(Path::new(""), b"").is_err());
    assert!(write(&folder.path().join("none/a"), b"").is_err());
}

#[test]
fn abandoned_files_are_removed() {
    let folder = TempDir::new().unwrap();
    let kept = [
        "b",
        ".a.part",
        ".a.1234567.part",
        ".a.1234-678.part",
        ".c.12345678.part",
        "a.12345678.part",
    ];
    for name in kept.iter().chain(&[".a.12345678.part", ".a.abCD0123.part"]) {
        fs::write(folder.path().join(name), "left").unwrap();
    }
    let path = folder.path().join("a");
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(
        remove_abandoned(folder.path(), |name| name == "a").unwrap(),
        2
    );
    // The file that is being written still exists and can be completed.
    assert_eq!(names(&folder).len(), kept.len() + 1);
    file.finish().unwrap();
    let mut expected: Vec<String> = kept
        .iter()
        .chain(&["a"])
        .map(|&name| name.to_owned())
        .collect();
    expected.sort();
    assert_eq!(names(&folder), expected);
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Paths that are no regular files, with the word for them.
    fn others(folder: &TempDir) -> Vec<(PathBuf, &'static str)> {
        let at = |name: &str| folder.path().join(name);
        assert!(
            std::process::Command::new("mkfifo")
                .arg(at("pipe"))
                .status()
                .unwrap()
                .success()
        );
        drop(UnixListener::bind(at("socket")).unwrap());
        symlink(at("pipe"), at("link")).unwrap();
        vec![
            (at("pipe"), "a pipe"),
            (at("link"), "a pipe"),
            (at("socket"), "a socket"),
            (folder.path().to_owned(), "a folder"),
            ("/dev/zero".into(), "a device"),
            ("/dev/full".into(), "a device"),
        ]
    }

    #[test]
    fn only_regular_files_are_read_and_replaced() {
        let folder = TempDir::new().unwrap();
        for (path, kind) in others(&folder) {
            let before = fs::metadata(&path).unwrap();
            for error in [
                open(&path).unwrap_err(),
                write(&path, b"x").unwrap_err(),
                write_new(&path, b"x").unwrap_err(),
            ] {
                let expected = format!("not a regular file, but {kind}");
                assert_eq!(
                    (error.kind(), error.to_string()),
                    (io::ErrorKind::InvalidInput, expected),
                    "{path:?}"
                );
            }
            assert_eq!(fs::metadata(&path).unwrap().file_type(), before.file_type());
        }
        assert_eq!(names(&folder), ["link", "pipe", "socket"]);
        assert!(
            fs::metadata("/dev/full")
                .unwrap()
                .file_type()
                .is_char_device()
        );
    }

    /// A pipe that takes the place of a file between the check and the opening is not waited for.
    #[test]
    fn opening_never_waits() {
        let folder = TempDir::new().unwrap();
        let (file, pipe, name) = (
            folder.path().join("file"),
            folder.path().join("pipe"),
            folder.path().join("name"),
        );
        fs::write(&file, "x").unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let stop = std::sync::atomic::AtomicBool::new(false);
        fs::hard_link(&file, &name).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut turn = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let next = folder.path().join("next");
                    fs::hard_link([&file, &pipe][turn % 2], &next).unwrap();
                    fs::rename(&next, &name).unwrap();
                    // A link to the file that has the name already is left where it is.
                    drop(fs::remove_file(&next));
                    turn += 1;
                }
            });
            // On a busy machine the other thread may start after many openings.
            let (mut opened, mut refused) = (0, 0);
            while opened < 10_000 || refused < 1_000 {
                match open(&name) {
                    Ok(_) => opened += 1,
                    Err(_) => refused += 1,
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn links_stay_and_lead_to_the_new_file() {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("deep")).unwrap();
        let (target, link, chain) = (
            folder.path().join("deep/target"),
            folder.path().join("link"),
            folder.path().join("chain"),
        );
        fs::write(&target, "before").unwrap();
        symlink("deep/target", &link).unwrap();
        symlink("link", &chain).unwrap();
        write(&chain, b"after").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"after");
        assert!(
            fs::symlink_metadata(&link).unwrap().is_symlink()
                && fs::symlink_metadata(&chain).unwrap().is_symlink()
        );
        assert!(!fs::symlink_metadata(&target).unwrap().is_symlink());
        let dangling = folder.path().join("dangling");
        symlink("nowhere", &dangling).unwrap();
        let error = write(&dangling, b"x").unwrap_err().to_string();
        assert_eq!(error, "not a regular file, but a link to a missing file");
    }

    #[test]
    fn permissions_are_those_of_the_old_file_or_usual_ones() {
        let folder = TempDir::new().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        let (usual, path) = (folder.path().join("usual"), folder.path().join("a"));
        fs::write(&usual, "").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(mode(&path), mode(&usual));
        for permissions in [0o600, 0o640, 0o755, 0o444] {
            fs::set_permissions(&path, fs::Permissions::from_mode(permissions)).unwrap();
            write(&path, b"newer").unwrap();
            assert_eq!(mode(&path), permissions);
        }
    }
}
