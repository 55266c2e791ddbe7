//! Packs and installs the plugin for DAWs, and the library around libtorch for plugin and app.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::process::{build, cargo, executable, from_root, library, output, root};
use crate::setup::{Purpose, setup};
use crate::{notices, vst3_presets};

/// Names of the bundles.
const BUNDLES: [&str; 2] = ["Ondes.clap", "Ondes.vst3"];

/// Returns the paths of the shared library within the folder of bundles, for CLAP and for VST3.
fn library_paths(system: &str, processor: &str) -> [String; 2] {
    match system {
        "macos" => ["clap", "vst3"].map(|format| format!("Ondes.{format}/Contents/MacOS/Ondes")),
        "windows" => {
            let processor = if processor == "aarch64" {
                "arm64"
            } else {
                processor
            };
            [
                "Ondes.clap".into(),
                format!("Ondes.vst3/Contents/{processor}-win/Ondes.vst3"),
            ]
        }
        _ => [
            "Ondes.clap".into(),
            format!("Ondes.vst3/Contents/{processor}-linux/Ondes.so"),
        ],
    }
}

/// Folder of presets for VST3 hosts, beside the bundles.
const PRESETS: &str = "VST3 Presets";

/// Builds the plugin and packs it into `target/bundled`, with its presets for VST3 hosts. Returns
/// that folder.
///
/// # Errors
/// A package is missing and cannot be installed, the build fails, or a file cannot be written.
pub fn bundle() -> anyhow::Result<PathBuf> {
    setup(Purpose::Building)?;
    let arguments = ["build", "--release", "--package", "ondes-plugin", "--lib"];
    // A DAW has no use for symbol names.
    let mut build = cargo();
    build
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    let messages = output(&mut build)?;
    let Some(object) = library(&messages, "ondes_plugin") else {
        bail!("cargo built the plugin without reporting its path")
    };
    let folder = root().join("target/bundled");
    for name in BUNDLES {
        remove(&folder.join(name))?;
    }
    for path in library_paths(std::env::consts::OS, std::env::consts::ARCH) {
        let target = folder.join(path);
        copy(Path::new(&object), &target)?;
        if cfg!(target_os = "macos") {
            write_info_plist(&target)?;
        }
        if let Some(contents) = target.ancestors().find(|above| above.ends_with("Contents")) {
            notices::write(
                &["ondes-plugin"],
                &contents.join("Resources").join(notices::FILE),
            )?;
        }
    }
    // A CLAP may be a single file.
    notices::write(&["ondes-plugin"], &folder.join(notices::FILE))?;
    let presets = folder.join(PRESETS);
    remove(&presets)?;
    vst3_presets::write(&root().join("assets/presets"), &presets)?;
    for name in BUNDLES.into_iter().chain([PRESETS, notices::FILE]) {
        println!("bundled: {}", from_root(&folder.join(name)));
    }
    Ok(folder)
}

/// Packs the plugin and installs it, with its presets for VST3 hosts, in this user's folders.
///
/// # Errors
/// As [`bundle`], or this user has no such folders.
pub fn install() -> anyhow::Result<()> {
    let folder = bundle()?;
    let system = std::env::consts::OS;
    let Some((targets, home)) = plugin_folders(system).zip(vst3_presets::folder(system)) else {
        bail!("the folder for this user's plugins cannot be found")
    };
    for (name, target) in BUNDLES.iter().zip(targets) {
        let target = target.join(name);
        remove(&target)?;
        copy_all(&folder.join(name), &target)?;
        println!("installed: {}", target.display());
    }
    copy_all(&folder.join(PRESETS), &home)?;
    println!("installed: presets for VST3 hosts in {}", home.display());
    Ok(())
}

/// Packs plugin, app and the library around libtorch for machines without a checkout;
/// `ondes setup-torch` adds libtorch there.
///
/// # Errors
/// As [`bundle`].
pub fn bundle_with_torch() -> anyhow::Result<()> {
    let folder = bundle()?;
    setup(Purpose::Training)?;
    let app = build("ondes", "ondes", &["--release"])?;
    // Not a path of this machine: the engine opens libtorch before this library, by its full path.
    let parts = build_torch(Some("$ORIGIN"))?;
    let [_, vst3] = library_paths(std::env::consts::OS, std::env::consts::ARCH);
    let vst3 = folder.join(vst3);
    let beside_vst3 = vst3.parent().unwrap_or(&folder);
    let mut copies = vec![(
        &app,
        folder.join(format!("ondes{}", std::env::consts::EXE_SUFFIX)),
    )];
    for part in &parts {
        let name = part.file_name().unwrap_or_default();
        copies.extend([folder.as_path(), beside_vst3].map(|folder| (part, folder.join(name))));
    }
    for (from, to) in copies {
        remove(&to)?;
        copy(from, &to)?;
        println!("bundled: {}", from_root(&to));
    }
    notices::write(
        &["ondes-plugin", "ondes", "ondes-torch"],
        &folder.join(notices::FILE),
    )
}

/// Builds the library around libtorch, and on Linux the program in which TorchScript programs run;
/// returns their paths in this order. `rpath` is the library's search path for libtorch, by default
/// the one that it was built with.
///
/// # Errors
/// The build fails.
pub fn build_torch(rpath: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
    let mut build = cargo();
    build.args([
        "build",
        "--release",
        "--package",
        "ondes-torch",
        "--lib",
        "--bins",
    ]);
    build.envs(rpath.map(|rpath| ("ONDES_TORCH_RPATH", rpath)));
    let messages = output(build.arg("--message-format=json-render-diagnostics"))?;
    let host = cfg!(target_os = "linux").then(|| executable(&messages, PROGRAM_HOST_FILE));
    let parts = std::iter::once(library(&messages, "ondes_torch")).chain(host);
    let path = |part: Option<String>| {
        part.map(PathBuf::from)
            .context("cargo built a file without reporting its path")
    };
    parts.map(path).collect()
}

/// Builds the library around libtorch and the program for TorchScript programs, and installs them
/// in this user's folder.
///
/// # Errors
/// The build fails, or this user has no such folder.
pub fn install_torch() -> anyhow::Result<()> {
    setup(Purpose::Training)?;
    let parts = build_torch(None)?;
    let Some(folder) = installed_torch() else {
        bail!("the folder for this user's data cannot be found; set HOME")
    };
    for part in parts {
        let target = folder.join(part.file_name().unwrap_or_default());
        // Not overwritten but replaced: a program that has it open keeps the old file.
        remove(&target)?;
        copy(&part, &target)?;
        println!("installed: {}", target.display());
    }
    Ok(())
}

/// File name of the program in which TorchScript programs run.
const PROGRAM_HOST_FILE: &str = "ondes-program-host";

/// Returns the folder in which the engine looks for this user's library around libtorch.
fn installed_torch() -> Option<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let data =
        variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")))?;
    Some(data.join("ondes/torch"))
}

/// Returns this user's folders for CLAP and for VST3 plugins.
fn plugin_folders(system: &str) -> Option<[PathBuf; 2]> {
    let below = |variable: &str, paths: [&str; 2]| {
        let home = PathBuf::from(std::env::var_os(variable)?);
        Some(paths.map(|path| home.join(path)))
    };
    match system {
        "macos" => below(
            "HOME",
            ["Library/Audio/Plug-Ins/CLAP", "Library/Audio/Plug-Ins/VST3"],
        ),
        "windows" => below(
            "LOCALAPPDATA",
            ["Programs/Common/CLAP", "Programs/Common/VST3"],
        ),
        _ => below("HOME", [".clap", ".vst3"]),
    }
}

/// Writes the `Info.plist` that macOS needs, beside the folder of the bundle's shared library.
fn write_info_plist(object: &Path) -> anyhow::Result<()> {
    let Some(contents) = object.ancestors().nth(2) else {
        return Ok(());
    };
    let list = contents.join("Info.plist");
    let keys = [
        ("CFBundleExecutable", "Ondes"),
        ("CFBundleIdentifier", "org.ondes.plugin"),
        ("CFBundleName", "Ondes"),
        ("CFBundlePackageType", "BNDL"),
        ("CFBundleVersion", env!("CARGO_PKG_VERSION")),
    ];
    let keys: String = keys
        .map(|(key, value)| format!("<key>{key}</key><string>{value}</string>"))
        .concat();
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>{keys}</dict></plist>\n"
    );
    std::fs::write(&list, text).with_context(|| list.display().to_string())
}

fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(_) => return Ok(()),
    };
    removed.with_context(|| format!("{}: cannot be replaced", path.display()))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let folder = to.parent().unwrap_or(to);
    let copied = std::fs::create_dir_all(folder).and_then(|()| std::fs::copy(from, to));
    copied
        .map(drop)
        .with_context(|| format!("{}: cannot be written", to.display()))
}

/// Copies a file, or a folder with its contents.
fn copy_all(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !from.is_dir() {
        return copy(from, to);
    }
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let name = entry?.file_name();
        copy_all(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_have_the_layout_of_each_system() {
        assert_eq!(
            library_paths("linux", "x86_64"),
            ["Ondes.clap", "Ondes.vst3/Contents/x86_64-linux/Ondes.so"]
        );
        assert_eq!(
            library_paths("windows", "x86_64")[1],
            "Ondes.vst3/Contents/x86_64-win/Ondes.vst3"
        );
        assert_eq!(
            library_paths("macos", "aarch64")[0],
            "Ondes.clap/Contents/MacOS/Ondes"
        );
    }

    #[test]
    fn the_library_is_installed_where_the_engine_looks() {
        assert_eq!(installed_torch(), ondes_engine::torch::installed());
        assert_eq!(PROGRAM_HOST_FILE, ondes_engine::torch::PROGRAM_HOST_FILE);
    }

    #[test]
    fn a_bundle_replaces_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::create_dir_all(from.join("Contents")).unwrap();
        std::fs::write(from.join("Contents/Ondes.so"), "object").unwrap();
        copy_all(&from, &to).unwrap();
        assert_eq!(
            std::fs::read(to.join("Contents/Ondes.so")).unwrap(),
            b"object"
        );
        remove(&to).unwrap();
        assert!(!to.exists());
        remove(&to).unwrap();
    }
}
