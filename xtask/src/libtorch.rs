//! libtorch for building and for training.
//!
//! [`ondes_libtorch`] fetches it, with its headers; for linkers a stub stands in for `libtorch.so`. What comes out is kept in the
//! user's cache, for all checkouts, and linked to `target/libtorch`, where `.cargo/config.toml` points the build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use ondes_libtorch::{Content, Progress, Recipe, Source, VERSION};

use crate::process::{output, root, run, works};

/// Makes `target/libtorch` lead to a libtorch, fetching it where there is none.
pub fn prepare() -> anyhow::Result<()> {
    if let Some(folder) = chosen_by_user() {
        let library = folder.join("lib/libtorch_cpu.so");
        ensure!(library.exists(), "LIBTORCH is set, but there is no {}", library.display());
        println!("libtorch: {} (from LIBTORCH; its version is checked when it is first built)", folder.display());
        return Ok(());
    }
    let folder = cache()?;
    match recipe().fault(&folder) {
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

fn recipe() -> Recipe {
    // The stub is ours, and made last.
    let mut recipe = Recipe::published(Content::Building);
    recipe.files.push(("lib/libtorch.so".into(), None));
    recipe
}

fn fetch(folder: &Path) -> anyhow::Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!(
            "libtorch is fetched for Linux on x86-64 only: put a libtorch {VERSION} somewhere and set LIBTORCH to it"
        );
    }
    let recipe = recipe();
    println!("libtorch {VERSION}: fetching {:.2} GB, once", recipe.bytes() as f64 / 1e9);
    let mut said = None;
    let mut say = |progress: Progress<'_>| {
        // A line for every quarter of a wheel.
        let now = Some((progress.work, progress.wheel.to_owned(), 4 * progress.done / progress.all.max(1)));
        if progress.all > 50_000_000 && said != now {
            println!("{:?} {}: {} %", progress.work, progress.wheel, 100 * progress.done / progress.all);
            said = now;
        }
    };
    ondes_libtorch::install(&recipe, folder, Source::Network, stub, &mut say)?;
    Ok(())
}

/// The published `libtorch.so` asks for the CUDA half; this one does not. Only linkers want it.
fn stub(folder: &Path) -> Result<(), ondes_libtorch::Error> {
    let arguments = ["-shared", "-o", "libtorch.so", "-Wl,-soname,libtorch.so", "-Wl,--no-as-needed", "-L."];
    let libraries = ["-l:libtorch_cpu.so", "-Wl,-rpath,$ORIGIN"];
    let made = run(Command::new("cc").current_dir(folder.join("lib")).args(arguments).args(libraries));
    made.map_err(|error| ondes_libtorch::Error::Fault(format!("{error:#}")))
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
}
