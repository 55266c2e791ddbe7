//! Wheels from a server or a folder become a folder, whole or not at all.

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use common::{Server, content, recipe};
use ondes_libtorch::{Done, Error, Recipe, Source, Work, install};

fn plainly(recipe: &Recipe, folder: &Path, source: Source<'_>) -> Result<Done, Error> {
    install(recipe, folder, source, |_| Ok(()), &mut |_| {})
}

/// A server that has all wheels, and their recipe.
fn served() -> (Server, Recipe) {
    let server = Server::new();
    let (recipe, packed) = recipe(&server.address);
    let named = ["torch.whl", "nvidia.whl"].map(str::to_owned).into_iter().zip(packed);
    server.files.lock().unwrap().extend(named);
    (server, recipe)
}

/// What is in a folder, by names.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_wanted_is_fetched_once() {
    let (server, recipe) = served();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("data/libtorch-1.2.3");
    let mut seen = Vec::new();
    let finish = |made: &Path| {
        assert!(!place.exists(), "it has its name before it is whole");
        fs::write(made.join("lib/stub.so"), "stub").map_err(|reason| Error::Fault(reason.to_string()))
    };
    let done = install(&recipe, &place, Source::Network, finish, &mut |progress| {
        assert!(progress.done <= progress.all);
        seen.push((progress.work, progress.wheel.to_owned(), progress.done == progress.all));
    });
    assert_eq!(done.unwrap(), Done::Installed);
    for work in [Work::Fetching, Work::Checking, Work::Unpacking] {
        for wheel in ["torch.whl", "nvidia.whl"] {
            assert!(seen.contains(&(work, wheel.to_owned(), true)), "{work:?} {wheel}");
        }
    }
    let members = [
        ("lib/one.so", "torch/lib/one.so"),
        ("lib/two.so.13", "nvidia/lib/two.so.13"),
        ("include/a/b.h", "torch/include/a/b.h"),
        ("include/c.h", "torch/include/c.h"),
    ];
    for (file, member) in members {
        assert_eq!(fs::read_to_string(place.join(file)).unwrap(), content(member));
    }
    assert_eq!(names(&place.join("lib")), ["one.so", "stub.so", "two.so.13"]);
    assert_eq!(names(place.parent().unwrap()), ["libtorch-1.2.3", "libtorch-1.2.3.lock"]);

    assert_eq!(plainly(&recipe, &place, Source::Network).unwrap(), Done::AlreadyThere);
    assert_eq!(server.asked.lock().unwrap().len(), 2);

    // What is damaged later is made again.
    fs::write(place.join("lib/one.so"), "short").unwrap();
    assert!(recipe.fault(&place).unwrap().contains("one.so"));
    assert_eq!(plainly(&recipe, &place, Source::Network).unwrap(), Done::Installed);
    assert_eq!(recipe.fault(&place), None);
}

#[test]
fn one_that_was_cut_off_goes_on() {
    let (server, recipe) = served();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("libtorch");
    server.most.store(100, Ordering::Relaxed);
    let refused = plainly(&recipe, &place, Source::Network).unwrap_err();
    assert!(matches!(&refused, Error::Network { url, .. } if url.ends_with("torch.whl")), "{refused}");
    assert_eq!(refused.to_string().lines().count(), 1);
    assert!(!place.exists());
    server.most.store(usize::MAX, Ordering::Relaxed);
    assert_eq!(plainly(&recipe, &place, Source::Network).unwrap(), Done::Installed);
    assert_eq!(recipe.fault(&place), None);
    let asked = server.asked.lock().unwrap();
    assert!(asked[1].ends_with("from 100"), "{asked:?}");
}

#[test]
fn one_that_was_killed_leaves_nothing_that_looks_whole() {
    let (_server, recipe) = served();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("libtorch");
    // Killed while it unpacked the second wheel: nothing of ours runs after that.
    let killed = std::panic::catch_unwind(|| {
        install(&recipe, &place, Source::Network, |_| Ok(()), &mut |progress| {
            if progress.work == Work::Unpacking && progress.wheel == "nvidia.whl" {
                std::panic::resume_unwind(Box::new("killed"));
            }
        })
    });
    assert!(killed.is_err() && !place.exists());
    assert!(folder.path().join("libtorch.part/made/lib/one.so").exists(), "it was half done");
    assert_eq!(plainly(&recipe, &place, Source::Network).unwrap(), Done::Installed);
    assert_eq!(names(folder.path()), ["libtorch", "libtorch.lock"]);
}

#[test]
fn another_content_is_refused_and_fetched_anew() {
    let (server, recipe) = served();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("libtorch");
    let right = server.files.lock().unwrap()[1].1.clone();
    server.files.lock().unwrap()[1].1[40] ^= 1;
    let refused = plainly(&recipe, &place, Source::Network).unwrap_err();
    assert!(matches!(&refused, Error::Hash { path, .. } if path.ends_with("nvidia.whl")), "{refused}");
    assert!(!place.exists());
    server.files.lock().unwrap()[1].1 = right;
    assert_eq!(plainly(&recipe, &place, Source::Network).unwrap(), Done::Installed);
    // The first wheel was right, and is not fetched twice.
    let asked = server.asked.lock().unwrap();
    assert_eq!(asked.iter().filter(|line| line.contains("torch.whl")).count(), 1, "{asked:?}");
}

#[test]
fn no_network_and_no_file_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("libtorch");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (recipe, _) = recipe(&format!("http://{nobody}"));
    let refused = plainly(&recipe, &place, Source::Network).unwrap_err().to_string();
    assert!(refused.starts_with(&format!("http://{nobody}/torch.whl: ")) && refused.lines().count() == 1, "{refused}");
    let (server, recipe) = served();
    server.files.lock().unwrap().clear();
    let refused = plainly(&recipe, &place, Source::Network).unwrap_err().to_string();
    assert!(refused.ends_with("torch.whl: the answer is 404"), "{refused}");
    assert!(!place.exists());
}

#[test]
fn wheels_of_a_folder_are_checked_too() {
    let folder = tempfile::tempdir().unwrap();
    let (given, place) = (folder.path().join("given"), folder.path().join("libtorch"));
    fs::create_dir(&given).unwrap();
    let (recipe, packed) = recipe("https://nowhere.invalid");
    let from = || plainly(&recipe, &place, Source::Folder(&given));
    let refused = from().unwrap_err().to_string();
    assert!(refused.contains("torch.whl") && refused.contains("https://nowhere.invalid/torch.whl"), "{refused}");

    fs::write(given.join("nvidia.whl"), &packed[1]).unwrap();
    fs::write(given.join("torch.whl"), &packed[0][..packed[0].len() - 1]).unwrap();
    assert!(matches!(from().unwrap_err(), Error::Length { path, .. } if path.ends_with("torch.whl")));
    let mut other = packed[0].clone();
    other[40] ^= 1;
    fs::write(given.join("torch.whl"), &other).unwrap();
    assert!(matches!(from().unwrap_err(), Error::Hash { path, .. } if path.ends_with("torch.whl")));
    assert!(!place.exists() && given.join("torch.whl").exists(), "what is somebody's own stays");

    fs::write(given.join("torch.whl"), &packed[0]).unwrap();
    assert_eq!(from().unwrap(), Done::Installed);
    assert_eq!(names(&given), ["nvidia.whl", "torch.whl"]);
    assert_eq!(fs::read_to_string(place.join("lib/one.so")).unwrap(), content("torch/lib/one.so"));
}

#[test]
fn wheels_without_what_is_wanted_are_refused() {
    let (_server, recipe) = served();
    let folder = tempfile::tempdir().unwrap();
    let with = |member: &str, place: &str| {
        let mut recipe = recipe.clone();
        recipe.wheels[0].members = vec![(member.into(), place.into())];
        plainly(&recipe, &folder.path().join("libtorch"), Source::Network).unwrap_err().to_string()
    };
    assert!(with("torch/lib/three.so", "lib/three.so").ends_with("has no torch/lib/three.so"));
    assert!(with("torch/lib/one.so", "../one.so").ends_with("leads out of the folder"));
    assert!(with("torch/lib/one.so", "lib/other.so").contains("lib/one.so: missing"));
    assert!(!folder.path().join("libtorch").exists() && !folder.path().join("one.so").exists());
}
