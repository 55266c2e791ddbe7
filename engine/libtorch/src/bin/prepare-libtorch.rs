//! Prepares libtorch for building and training: what `cargo xtask setup --torch` runs, in the
//! checkout's folder.
//!
//! [`ondes_libtorch`] downloads it with its headers into the user's cache, for all checkouts; a
//! stub replaces `libtorch.so` for linkers. `target/libtorch` links there, and `.cargo/config.toml`
//! points the build at that link.
//!
//! It is a program of its own because `cargo xtask` would otherwise build a network stack before
//! anything else.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail, ensure};
use ondes_libtorch::{Contents, InstallProgress, Manifest, VERSION, WheelSource};

/// The link in the checkout that the build follows.
const LINK: &str = "target/libtorch";

fn main() -> ExitCode {
    match prepare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("prepare-libtorch: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Links `target/libtorch` to an installation; downloads libtorch if it is not installed.
fn prepare() -> anyhow::Result<()> {
    let link = std::env::current_dir()
        .context("the current folder cannot be found")?
        .join(LINK);
    if let Some(folder) = chosen_by_user(&link) {
        let library = folder.join("lib/libtorch_cpu.so");
        ensure!(
            library.exists(),
            "LIBTORCH is set, but {} does not exist",
            library.display()
        );
        println!(
            "libtorch: {} (from LIBTORCH; the first build checks its version)",
            folder.display()
        );
        return Ok(());
    }
    let folder = cache_folder()?;
    match manifest().problem(&folder) {
        None => println!("libtorch {VERSION}: already there ({})", folder.display()),
        Some(problem) => {
            if folder.exists() {
                println!("libtorch: {problem}; replacing it");
            }
            download(&folder)?;
            println!("libtorch {VERSION}: {}", folder.display());
        }
    }
    update_link(&folder, &link)?;
    if let Some(package) = installed_with_cuda() {
        println!("PyTorch {VERSION} with CUDA is installed: LIBTORCH={package} builds for the GPU");
    }
    Ok(())
}

/// Returns the folder in `LIBTORCH`, unless it is the one that this program prepares.
fn chosen_by_user(link: &Path) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("LIBTORCH").filter(|folder| !folder.is_empty())?);
    let is_ours = folder == link || cache_folder().is_ok_and(|cache| folder == cache);
    (!is_ours).then_some(folder)
}

fn cache_folder() -> anyhow::Result<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let caches = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let caches = caches
        .context("neither XDG_CACHE_HOME nor HOME is set, so there is no folder for libtorch")?;
    Ok(caches.join("ondes").join(format!("libtorch-{VERSION}-cpu")))
}

fn manifest() -> Manifest {
    let mut manifest = Manifest::published(Contents::Development);
    // The stub is written last.
    manifest.files.push(("lib/libtorch.so".into(), None));
    manifest
}

fn download(folder: &Path) -> anyhow::Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!(
            "libtorch is downloaded for Linux on x86-64 only; install libtorch {VERSION} and set LIBTORCH to its folder"
        );
    }
    let manifest = manifest();
    println!(
        "libtorch {VERSION}: downloading {:.2} GB, once",
        manifest.bytes() as f64 / 1e9
    );
    let mut printed = None;
    let mut print = |progress: InstallProgress<'_>| {
        // One line per quarter of a large wheel.
        let quarter = Some((
            progress.step,
            progress.wheel.to_owned(),
            4 * progress.done_bytes / progress.total_bytes.max(1),
        ));
        if progress.total_bytes > 50_000_000 && printed != quarter {
            println!(
                "{:?} {}: {} %",
                progress.step,
                progress.wheel,
                100 * progress.done_bytes / progress.total_bytes
            );
            printed = quarter;
        }
    };
    ondes_libtorch::install(
        &manifest,
        folder,
        WheelSource::Network,
        write_stub,
        &mut print,
    )?;
    Ok(())
}

/// Writes a `libtorch.so` for linkers. The published one depends on the CUDA libraries; this one
/// does not.
fn write_stub(folder: &Path) -> Result<(), ondes_libtorch::Error> {
    let arguments = [
        "-shared",
        "-o",
        "libtorch.so",
        "-Wl,-soname,libtorch.so",
        "-Wl,--no-as-needed",
        "-L.",
    ];
    let libraries = ["-l:libtorch_cpu.so", "-Wl,-rpath,$ORIGIN"];
    let status = Command::new("cc")
        .current_dir(folder.join("lib"))
        .args(arguments)
        .args(libraries)
        .status();
    let fault = |reason: String| {
        ondes_libtorch::Error::Incomplete(format!("cc cannot link libtorch.so: {reason}"))
    };
    let status = status.map_err(|error| fault(error.to_string()))?;
    if status.success() {
        Ok(())
    } else {
        Err(fault(status.to_string()))
    }
}

fn update_link(folder: &Path, link: &Path) -> anyhow::Result<()> {
    if fs::read_link(link).is_ok_and(|target| target == folder) {
        return Ok(());
    }
    if link.is_dir() && !link.is_symlink() {
        println!(
            "libtorch: {} is a folder, not a link, and is used as it is",
            link.display()
        );
        return Ok(());
    }
    let parent = link.parent().context("the link has no parent folder")?;
    fs::create_dir_all(parent)
        .with_context(|| format!("{}: cannot be created", parent.display()))?;
    if link.is_symlink() {
        fs::remove_file(link).with_context(|| format!("{}: cannot be replaced", link.display()))?;
    }
    symlink(folder, link).with_context(|| format!("{}: cannot be created", link.display()))
}

#[cfg(unix)]
use std::os::unix::fs::symlink;

#[cfg(not(unix))]
fn symlink(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Returns the folder of an installed PyTorch of our version with CUDA; Python only searches for it
/// and does not import it.
fn installed_with_cuda() -> Option<String> {
    const SEARCH: &str = "import importlib.util, importlib.metadata, pathlib
spec = importlib.util.find_spec('torch')
folder = pathlib.Path(spec.origin).parent if spec and spec.origin else None
if folder and (folder / 'lib/libtorch_cuda.so').exists():
    print(importlib.metadata.version('torch').split('+')[0], folder)";
    let output = Command::new("python3")
        .args(["-c", SEARCH])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let found = String::from_utf8(output.stdout).ok()?;
    let (version, folder) = found.trim().split_once(' ')?;
    (version == VERSION).then(|| folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_link_follows_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        let link = folder.path().join("target/libtorch");
        for target in [&old, &new, &new] {
            update_link(target, &link).unwrap();
            assert_eq!(&fs::read_link(&link).unwrap(), target);
        }
        fs::remove_file(&link).unwrap();
        fs::create_dir(&link).unwrap();
        update_link(&new, &link).unwrap();
        assert!(link.is_dir() && !link.is_symlink());
    }
}
