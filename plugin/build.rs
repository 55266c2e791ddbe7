//! Builds the VST3 wrapper, and links the shared object so that it stays in memory once a host has
//! loaded it.
//!
//! The wrapper's sources are those of the crate `clap-wrapper`, with the corrections in
//! `clap-wrapper.patch`. The crate is a build dependency without features, which compiles nothing;
//! it brings the sources.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use diffy::patch_set::{FileOperation, ParseOptions, PatchSet};

const PATCH: &str = "clap-wrapper.patch";
/// Symbols that this crate exports itself; the wrapper's get a prefix.
const ENTRY_POINTS: [&str; 7] = [
    "GetPluginFactory",
    "ModuleEntry",
    "ModuleExit",
    "InitDll",
    "ExitDll",
    "bundleEntry",
    "bundleExit",
];
/// Folders of the VST3 SDK of which every file is compiled.
const SDK_FOLDERS: [&str; 4] = [
    "base/source",
    "base/thread/source",
    "pluginterfaces/base",
    "public.sdk/source/common",
];
/// Other files of the VST3 SDK, in `public.sdk/source`.
const SDK_FILES: [&str; 11] = [
    "main/pluginfactory.cpp",
    "main/moduleinit.cpp",
    "vst/vstinitiids.cpp",
    "vst/vstnoteexpressiontypes.cpp",
    "vst/vstaudioeffect.cpp",
    "vst/vstcomponent.cpp",
    "vst/vstsinglecomponenteffect.cpp",
    "vst/vstcomponentbase.cpp",
    "vst/vstbus.cpp",
    "vst/vstparameters.cpp",
    "vst/utility/stringconvert.cpp",
];
/// Files of the wrapper.
const WRAPPER_FILES: [&str; 10] = [
    "clap_proxy.cpp",
    "detail/clap/fsutil.cpp",
    "detail/shared/sha1.cpp",
    "wrapasvst3_export_entry.cpp",
    "wrapasvst3.cpp",
    "wrapasvst3_entry.cpp",
    "detail/vst3/parameter.cpp",
    "detail/vst3/plugview.cpp",
    "detail/vst3/process.cpp",
    "detail/vst3/categories.cpp",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={PATCH}");
    // The engine's loader and worker threads live as long as the process; their code must stay
    // mapped when a host closes the file after a scan.
    if env::var("CARGO_CFG_TARGET_OS")? == "linux" {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    let external = wrapper_crate()?.join("external");
    let wrapper = PathBuf::from(env::var("OUT_DIR")?).join("clap-wrapper");
    if wrapper.exists() {
        fs::remove_dir_all(&wrapper)?;
    }
    copy_folder(&external.join("clap-wrapper/src"), &wrapper.join("src"))?;
    apply_patch(&fs::read_to_string(PATCH)?, &wrapper)?;
    compile(&external, &wrapper)
}

/// Returns the folder of the crate `clap-wrapper`, as Cargo unpacked it.
fn wrapper_crate() -> Result<PathBuf, Box<dyn Error>> {
    let output = Command::new(env::var("CARGO")?)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            &env::var("TARGET")?,
        ])
        .arg("--manifest-path")
        .arg(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.toml"))
        .output()?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata lists no packages")?;
    let package = packages
        .iter()
        .find(|package| package["name"] == "clap-wrapper");
    let manifest = package
        .and_then(|package| package["manifest_path"].as_str())
        .ok_or("clap-wrapper is missing")?;
    Ok(Path::new(manifest)
        .parent()
        .ok_or("clap-wrapper has no folder")?
        .to_owned())
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else {
            // Written anew rather than copied, since files in the registry may be read-only.
            fs::write(target, fs::read(path)?)?;
        }
    }
    Ok(())
}

/// Applies a patch to the files below `folder`. Fails if it does not fit, as after an update of the
/// crate.
fn apply_patch(patch: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut files = 0;
    for file in PatchSet::parse(patch, ParseOptions::gitdiff()) {
        let file = file?;
        let FileOperation::Modify { modified, .. } = file.operation().strip_prefix(1) else {
            return Err(format!("{PATCH}: only changes of files are supported").into());
        };
        let path = folder.join(modified.as_ref());
        let text = file.patch().as_text().ok_or("a binary patch")?;
        let changed = diffy::apply(&fs::read_to_string(&path)?, text);
        fs::write(
            &path,
            changed.map_err(|error| format!("{PATCH} does not fit {}: {error}", path.display()))?,
        )?;
        files += 1;
    }
    if files == 0 {
        Err(format!("{PATCH} is empty").into())
    } else {
        Ok(())
    }
}

/// Compiles as the crate's own build script does.
fn compile(external: &Path, wrapper: &Path) -> Result<(), Box<dyn Error>> {
    let (sdk, source) = (external.join("vst3sdk"), wrapper.join("src"));
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .warnings(false)
        .flag_if_supported("/utf-8")
        .flag_if_supported("/EHsc");
    build.include(external.join("clap/include"));
    for folder in ["include", "libs/fmt", "libs/psl"] {
        build.include(external.join("clap-wrapper").join(folder));
    }
    build
        .include(&source)
        .include(&sdk)
        .include(sdk.join("public.sdk"))
        .include(sdk.join("pluginterfaces"));
    for symbol in ENTRY_POINTS {
        build.define(symbol, format!("clap_wrapper_{symbol}").as_str());
    }
    build.define("CLAP_WRAPPER_VERSION", "\"0.14.0\"");
    build
        .define("CLAP_WRAPPER_BUILD_FOR_VST3", "1")
        .define("STATICALLY_LINKED_CLAP_ENTRY", "1");
    build.define(
        if env::var("DEBUG")? == "true" {
            "DEVELOPMENT"
        } else {
            "RELEASE"
        },
        "1",
    );
    for folder in SDK_FOLDERS {
        add_folder(&mut build, &sdk.join(folder))?;
    }
    build.files(SDK_FILES.map(|file| sdk.join("public.sdk/source").join(file)));
    build.files(WRAPPER_FILES.map(|file| source.join(file)));
    let (main, own, libraries): (_, &[&str], &[&str]) =
        match env::var("CARGO_CFG_TARGET_OS")?.as_str() {
            "macos" => {
                build
                    .define("MAC", None)
                    .define("MACOS_USE_GHC_FILESYSTEM", None);
                build.include(external.join("filesystem/include"));
                let frameworks = &["framework=CoreFoundation", "framework=Foundation"];
                (
                    "macmain.cpp",
                    &["detail/os/macos.mm", "detail/clap/mac_helpers.mm"],
                    frameworks,
                )
            }
            "windows" => {
                build.define("WIN", None);
                (
                    "dllmain.cpp",
                    &["detail/os/windows.cpp"],
                    &["Shell32", "user32", "ole32"],
                )
            }
            "linux" => {
                build.define("LIN", None);
                ("linuxmain.cpp", &["detail/os/linux.cpp"], &[])
            }
            other => return Err(format!("there is no VST3 for {other}").into()),
        };
    build
        .file(sdk.join("public.sdk/source/main").join(main))
        .files(own.iter().map(|file| source.join(file)));
    for library in libraries {
        println!("cargo::rustc-link-lib={library}");
    }
    build.try_compile("clap_wrapper_vst3")?;
    Ok(())
}

/// Adds all C++ files of a folder and of those in it, in a stable order.
fn add_folder(build: &mut cc::Build, folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut paths = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add_folder(build, &path)?;
        } else if path.extension().is_some_and(|extension| extension == "cpp") {
            build.file(path);
        }
    }
    Ok(())
}
