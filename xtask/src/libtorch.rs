//! libtorch for the CPU, out of the published wheels.
//!
//! The wheel of torch holds the CUDA build. Its CPU half runs alone when two small CUDA libraries are beside it and a stub
//! stands in for `libtorch.so`, which would ask for the other half. What comes out is kept in the user's cache, for all
//! checkouts, and linked to `target/libtorch`, where `.cargo/config.toml` points the build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::process::{output, root, run, works};

/// The version that tch wants.
const VERSION: &str = "2.11.0";

/// One wheel of `libtorch-requirements.txt`.
struct Wheel {
    /// How its file's name begins.
    name: &'static str,
    /// What is taken out, as `MEMBER=PLACE` for `unpack_wheel.py`.
    members: &'static [&'static str],
}

const WHEELS: [Wheel; 3] = [
    Wheel {
        name: "torch-",
        members: &[
            "torch/include/=include/",
            "torch/lib/libc10.so=lib/libc10.so",
            "torch/lib/libgomp.so.1=lib/libgomp.so.1",
            "torch/lib/libtorch_cpu.so=lib/libtorch_cpu.so",
        ],
    },
    Wheel { name: "nvidia_cuda_runtime-", members: &["nvidia/cu13/lib/libcudart.so.13=lib/libcudart.so.13"] },
    Wheel { name: "nvidia_cuda_cupti-", members: &["nvidia/cu13/lib/libcupti.so.13=lib/libcupti.so.13"] },
];

/// Files that must be there, with their lengths where they are as published.
const KEY_FILES: [(&str, Option<u64>); 7] = [
    ("lib/libtorch_cpu.so", Some(451_209_129)),
    ("lib/libc10.so", Some(1_498_969)),
    ("lib/libgomp.so.1", Some(254_009)),
    ("lib/libcudart.so.13", Some(704_288)),
    ("lib/libcupti.so.13", Some(4_152_208)),
    ("lib/libtorch.so", None),
    ("include/torch/csrc/api/include/torch/torch.h", None),
];

/// What pip is to look for: always the same wheels, whatever Python asks. The NVIDIA wheels are made for older systems.
const PLATFORM: [&str; 12] = [
    "--only-binary=:all:",
    "--implementation=cp",
    "--python-version=3.11",
    "--abi=cp311",
    "--abi=abi3",
    "--abi=none",
    "--platform=manylinux_2_28_x86_64",
    "--platform=manylinux_2_25_x86_64",
    "--platform=manylinux_2_17_x86_64",
    "--platform=manylinux2014_x86_64",
    "--no-deps",
    "--require-hashes",
];

/// Whether there is nothing to fetch.
pub fn is_there() -> bool {
    chosen_by_user().is_some() || cache().is_ok_and(|folder| fault(&folder).is_none())
}

/// Makes `target/libtorch` lead to a libtorch, fetching it where there is none.
pub fn prepare() -> anyhow::Result<()> {
    if let Some(folder) = chosen_by_user() {
        let library = folder.join("lib/libtorch_cpu.so");
        ensure!(library.exists(), "LIBTORCH is set, but there is no {}", library.display());
        println!("libtorch: {} (from LIBTORCH; its version is checked when it is first built)", folder.display());
        return Ok(());
    }
    let folder = cache()?;
    match fault(&folder) {
        None => println!("libtorch {VERSION}: already there ({})", folder.display()),
        Some(fault) => {
            if folder.exists() {
                println!("libtorch: {fault}: made again");
            }
            fetch(&folder)?;
            println!("libtorch {VERSION}: {}", folder.display());
        }
    }
    link(&folder, &root().join("target/libtorch"))?;
    if let Some(package) = installed_with_cuda() {
        println!("PyTorch {VERSION} with CUDA is installed: LIBTORCH={package} builds for the GPU");
    }
    Ok(())
}

/// The folder that the environment names, unless it is the one that we make.
fn chosen_by_user() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("LIBTORCH").filter(|folder| !folder.is_empty())?);
    let ours = folder == root().join("target/libtorch") || cache().is_ok_and(|cache| folder == cache);
    (!ours).then_some(folder)
}

fn cache() -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let caches = caches.context("neither XDG_CACHE_HOME nor HOME is set: there is no place for libtorch")?;
    Ok(caches.join("ondes").join(format!("libtorch-{VERSION}-cpu")))
}

/// Why a folder is not the libtorch that we make.
fn fault(folder: &Path) -> Option<String> {
    // Written last, so that it stands for a whole.
    let version = fs::read_to_string(folder.join("build-version")).unwrap_or_default();
    if version.trim() != VERSION {
        return Some(format!("{}: not a whole libtorch {VERSION}", folder.display()));
    }
    let wrong = |&&(file, length): &&(&str, Option<u64>)| {
        let found = fs::metadata(folder.join(file)).map_or(0, |metadata| metadata.len());
        found == 0 || length.is_some_and(|length| length != found)
    };
    let (file, _) = KEY_FILES.iter().find(wrong)?;
    Some(format!("{}: missing or not as published", folder.join(file).display()))
}

fn fetch(folder: &Path) -> anyhow::Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!(
            "libtorch is fetched for Linux on x86-64 only: put a libtorch {VERSION} somewhere and set LIBTORCH to it"
        );
    }
    let parent = folder.parent().context("the cache has a folder")?;
    fs::create_dir_all(parent).with_context(|| format!("{}: cannot be made", parent.display()))?;
    let work = parent.join(format!("libtorch-{VERSION}-cpu.{}.part", std::process::id()));
    let made = make(&work).and_then(|()| put(&work, folder));
    if work.exists() {
        let cleared = fs::remove_dir_all(&work).with_context(|| format!("{}: cannot be removed", work.display()));
        return made.and(cleared);
    }
    made
}

/// Makes a libtorch in a new folder.
fn make(work: &Path) -> anyhow::Result<()> {
    let download = work.join("download");
    fs::create_dir_all(&download).with_context(|| format!("{}: cannot be made", download.display()))?;
    println!("libtorch {VERSION}: fetching 0.55 GB, once");
    let requirements = work.join("requirements.txt");
    fs::write(&requirements, include_str!("../libtorch-requirements.txt"))?;
    let mut pip = pip(work)?;
    pip.args(["download", "--no-cache-dir", "--disable-pip-version-check"]).args(PLATFORM);
    if std::env::var_os("CI").is_some() {
        pip.args(["--progress-bar", "off"]);
    }
    run(pip.arg("--dest").arg(&download).arg("--requirement").arg(&requirements))?;
    for wheel in WHEELS {
        let file = find(&download, wheel.name)?;
        let mut python = Command::new("python3");
        python.args(["-I", "-c", include_str!("unpack_wheel.py")]).arg(&file).arg(work).args(wheel.members);
        run(&mut python)?;
        fs::remove_file(file)?;
    }
    fs::remove_dir_all(download)?;
    fs::remove_file(requirements)?;
    stub(&work.join("lib"))?;
    fs::write(work.join("build-version"), VERSION)?;
    fault(work).map_or(Ok(()), |fault| bail!(fault))
}

/// pip itself, or one of its own in a virtual environment below `work`.
fn pip(work: &Path) -> anyhow::Result<Command> {
    let mut python = Command::new("python3");
    if !works("python3", &["-m", "pip", "--version"]) {
        let environment = work.join("download").join("environment");
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        python = Command::new(environment.join("bin/python3"));
    }
    python.args(["-m", "pip"]);
    Ok(python)
}

fn find(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let is_it = |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name));
    let mut paths = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(is_it).with_context(|| format!("pip fetched no file that begins with {name}"))
}

/// The published `libtorch.so` asks for the CUDA half; this one does not.
fn stub(library: &Path) -> anyhow::Result<()> {
    let arguments = ["-shared", "-o", "libtorch.so", "-Wl,-soname,libtorch.so", "-Wl,--no-as-needed", "-L."];
    let libraries = ["-l:libtorch_cpu.so", "-Wl,-rpath,$ORIGIN"];
    run(Command::new("cc").current_dir(library).args(arguments).args(libraries))
}

/// Puts a whole folder in its place at once.
fn put(work: &Path, folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        // Another run may have been faster.
        if fault(folder).is_none() {
            return Ok(());
        }
        fs::remove_dir_all(folder).with_context(|| format!("{}: cannot be replaced", folder.display()))?;
    }
    fs::rename(work, folder).with_context(|| format!("{}: cannot be made", folder.display()))
}

fn link(folder: &Path, link: &Path) -> anyhow::Result<()> {
    if fs::read_link(link).is_ok_and(|leads_to| leads_to == folder) {
        return Ok(());
    }
    if link.is_dir() && !link.is_symlink() {
        println!("libtorch: {} is a folder of its own and is used as it is", link.display());
        return Ok(());
    }
    let parent = link.parent().context("the link is in a folder")?;
    fs::create_dir_all(parent).with_context(|| format!("{}: cannot be made", parent.display()))?;
    if link.is_symlink() {
        fs::remove_file(link).with_context(|| format!("{}: cannot be replaced", link.display()))?;
    }
    symlink(folder, link).with_context(|| format!("{}: cannot be made", link.display()))
}

#[cfg(unix)]
use std::os::unix::fs::symlink;

#[cfg(not(unix))]
fn symlink(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The folder of an installed PyTorch of our version that has CUDA, looked for without starting it.
fn installed_with_cuda() -> Option<String> {
    const SEARCH: &str = "import importlib.util, importlib.metadata, pathlib
spec = importlib.util.find_spec('torch')
folder = pathlib.Path(spec.origin).parent if spec and spec.origin else None
if folder and (folder / 'lib/libtorch_cuda.so').exists():
    print(importlib.metadata.version('torch').split('+')[0], folder)";
    if !works("python3", &["--version"]) {
        return None;
    }
    let found = output(Command::new("python3").args(["-c", SEARCH])).ok()?;
    let (version, folder) = found.trim().split_once(' ')?;
    (version == VERSION).then(|| folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_pin_each_wheel_and_our_version() {
        let text = include_str!("../libtorch-requirements.txt");
        let pins: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(pins.len(), WHEELS.len());
        for (pin, wheel) in pins.iter().zip(WHEELS) {
            let (requirement, hash) = pin.split_once(" --hash=sha256:").unwrap();
            assert!(hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()));
            let (name, version) = requirement.split_once("==").unwrap();
            assert_eq!(name.replace('-', "_") + "-", wheel.name);
            assert!(name != "torch" || version == VERSION);
        }
    }

    #[test]
    fn every_key_file_comes_from_somewhere() {
        let places = || WHEELS.iter().flat_map(|wheel| wheel.members).map(|member| member.split_once('=').unwrap().1);
        for (file, _) in KEY_FILES {
            let unpacked =
                places().any(|place| if place.ends_with('/') { file.starts_with(place) } else { file == place });
            assert!(unpacked || file == "lib/libtorch.so", "{file}");
        }
    }

    #[test]
    fn a_half_made_folder_is_not_taken_for_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        assert!(fault(folder.path()).unwrap().contains("not a whole"));
        fs::write(folder.path().join("build-version"), "2.10.0\n").unwrap();
        assert!(fault(folder.path()).unwrap().contains("not a whole"));
        fs::write(folder.path().join("build-version"), "2.11.0\n").unwrap();
        assert!(fault(folder.path()).unwrap().contains("libtorch_cpu.so"));
        fs::create_dir_all(folder.path().join("lib")).unwrap();
        fs::write(folder.path().join("lib/libtorch_cpu.so"), "short").unwrap();
        assert!(fault(folder.path()).unwrap().contains("not as published"));
    }

    #[cfg(unix)]
    #[test]
    fn the_link_follows_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        let place = folder.path().join("target/libtorch");
        for target in [&old, &new, &new] {
            link(target, &place).unwrap();
            assert_eq!(&fs::read_link(&place).unwrap(), target);
        }
        fs::remove_file(&place).unwrap();
        fs::create_dir(&place).unwrap();
        link(&new, &place).unwrap();
        assert!(place.is_dir() && !place.is_symlink());
    }

    #[test]
    fn unpacks_only_what_is_asked_for() {
        if !works("python3", &["--version"]) {
            println!("there is no python3 here, and so nothing to test");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let pack = "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as z:\n for n in sys.argv[2:]: z.writestr(n, n)";
        let wheel = folder.path().join("a.whl");
        let members = ["torch/lib/one.so", "torch/lib/two.so", "torch/include/a/b.h", "torch/include/c.h"];
        run(Command::new("python3").args(["-c", pack]).arg(&wheel).args(members)).unwrap();
        let unpack = |wanted: &[&str]| {
            let mut python = Command::new("python3");
            python.args(["-I", "-c", include_str!("unpack_wheel.py")]).arg(&wheel).arg(folder.path()).args(wanted);
            run(&mut python)
        };
        unpack(&["torch/include/=include/", "torch/lib/one.so=lib/one.so"]).unwrap();
        for (file, content) in [("lib/one.so", members[0]), ("include/a/b.h", members[2]), ("include/c.h", members[3])]
        {
            assert_eq!(fs::read_to_string(folder.path().join(file)).unwrap(), content);
        }
        assert!(!folder.path().join("lib/two.so").exists());
        assert!(unpack(&["torch/lib/three.so=lib/three.so"]).is_err());
    }
}
