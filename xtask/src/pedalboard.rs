//! Plays the VST3 in pedalboard, a host for Python that is made with JUCE.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::process::{build_folder, cache, root, run};

/// Folder of the script and of its requirements, in the checkout.
const SCRIPTS: &str = "plugin/tests/pedalboard";

/// Compares the VST3 in pedalboard with `ondes render`, as the tests have built them. Downloads 22
/// MB the first time.
///
/// # Errors
/// pedalboard cannot be installed, or the sounds differ.
pub fn check() -> anyhow::Result<()> {
    let scripts = root().join(SCRIPTS);
    let packages = cache()?.join("pedalboard");
    install(&packages, &scripts.join("requirements.txt"))?;
    let folder = root().join("target/pedalboard");
    let bundle = pack(&folder)?;
    let ondes = build_folder().join("debug/ondes");
    let mut python = Command::new("python3");
    python
        .arg(scripts.join("check.py"))
        .args([&ondes, &bundle, &folder]);
    run(python
        .env("PYTHONPATH", &packages)
        .env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Installs the packages into a folder of their own, unless they are there and can be used.
fn install(packages: &Path, requirements: &Path) -> anyhow::Result<()> {
    let wanted =
        fs::read_to_string(requirements).with_context(|| requirements.display().to_string())?;
    let stamp = packages.join("made-from.txt");
    let mut import = Command::new("python3");
    import
        .args(["-c", "import pedalboard"])
        .env("PYTHONPATH", packages);
    let is_made = fs::read_to_string(&stamp).is_ok_and(|made| made == wanted);
    if is_made && import.output().is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    if packages.exists() {
        fs::remove_dir_all(packages).with_context(|| packages.display().to_string())?;
    }
    println!("installing pedalboard into {}", packages.display());
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--target",
    ])
    .arg(packages);
    run(pip.arg("--requirement").arg(requirements))?;
    fs::write(&stamp, wanted).with_context(|| stamp.display().to_string())
}

/// Packs the VST3 that the tests have built, for this machine; returns its path.
fn pack(folder: &Path) -> anyhow::Result<PathBuf> {
    let object = build_folder().join("debug/deps/libondes_plugin.so");
    let bundle = folder.join("Ondes.vst3");
    let inside = bundle.join(format!("Contents/{}-linux", std::env::consts::ARCH));
    fs::create_dir_all(&inside).with_context(|| inside.display().to_string())?;
    let target = inside.join("Ondes.so");
    fs::copy(object, &target).with_context(|| target.display().to_string())?;
    Ok(bundle)
}
