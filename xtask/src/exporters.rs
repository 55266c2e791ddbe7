//! Tests with packages of other projects: installs pinned versions of the published exporters into
//! the user's cache, exports small models with random weights, and plays these against PyTorch.
//! Starts NCCL with PyTorch's libtorch for NVIDIA GPUs, too.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::process::{cache, cargo, root, run};
use crate::setup::{Purpose, setup};

/// Folder of the scripts and of the lists of packages, in the checkout.
const SCRIPTS: &str = "engine/torch/tests/exporters";
/// Files there that decide what is installed, and what is exported besides each script.
const REQUIREMENTS: [&str; 2] = ["requirements.txt", "requirements-alone.txt"];
const SHARED_SCRIPT: &str = "reference.py";

/// Models of one package.
struct Exporter {
    /// Folder of the exports, as the tests name it.
    name: &'static str,
    script: &'static str,
    /// Version of the package nn-tilde to export with.
    nn_tilde: &'static str,
}

const EXPORTERS: [Exporter; 5] = [
    Exporter {
        name: "nn-tilde-1.5.2",
        script: "nn_tilde_models.py",
        nn_tilde: "1.5.2",
    },
    Exporter {
        name: "nn-tilde-1.6.0",
        script: "nn_tilde_models.py",
        nn_tilde: "1.6.0",
    },
    Exporter {
        name: "rave",
        script: "rave_models.py",
        nn_tilde: "1.5.2",
    },
    Exporter {
        name: "msprior-1.1.3",
        script: "msprior_models.py",
        nn_tilde: "1.5.2",
    },
    Exporter {
        name: "neutone-sdk-1.5.2",
        script: "neutone_models.py",
        nn_tilde: "1.5.2",
    },
];

/// Runs the tests that need exports. Downloads 3 GB the first time.
///
/// # Errors
/// A package cannot be installed, an export fails, or a test does.
pub fn test() -> anyhow::Result<()> {
    setup(Purpose::Testing)?;
    let folder = cache()?.join("exporters");
    install(&folder)?;
    for exporter in &EXPORTERS {
        export(&folder, exporter)?;
    }
    let mut test = cargo();
    test.args([
        "test",
        "--workspace",
        "--test",
        "programs",
        "--test",
        "import_rave",
    ]);
    test.args([
        "--",
        "--ignored",
        "--nocapture",
        "of_nn_tilde",
        "of_the_package",
        "of_msprior",
        "of_neutone",
    ]);
    run(test.env("ONDES_EXPORTS", folder.join("exports")))?;
    test_nccl(&folder.join("packages"))
}

/// Runs the test of sums on GPUs with PyTorch's libtorch, which has NCCL; without a GPU it gets as
/// far as NCCL's refusal.
fn test_nccl(packages: &Path) -> anyhow::Result<()> {
    let torch = packages.join("torch/lib");
    let mut folders = vec![torch.clone()];
    let nvidia = packages.join("nvidia");
    for package in fs::read_dir(&nvidia).with_context(|| nvidia.display().to_string())? {
        folders.push(package?.path().join("lib"));
    }
    let set = |name: &str, value: &OsStr| format!("{name}={}", value.display());
    let variables = [
        set("LD_LIBRARY_PATH", &std::env::join_paths(folders)?),
        set("LD_PRELOAD", torch.join("libtorch_cuda.so").as_os_str()),
    ];
    let runner = format!(
        "target.'cfg(all())'.runner=['env','{}']",
        variables.join("','")
    );
    let mut test = cargo();
    run(test.args([
        "test",
        "--workspace",
        "--lib",
        "--config",
        &runner,
        "gpus_add_up",
    ]))
}

/// Installs the packages, unless the cache has them.
fn install(folder: &Path) -> anyhow::Result<()> {
    let packages = folder.join("packages");
    unless_done(&packages, &REQUIREMENTS, || {
        println!(
            "installing PyTorch and the exporters into {}",
            folder.display()
        );
        let pip = |folder: &Path, arguments: &[&str]| {
            let mut pip = Command::new("python3");
            pip.current_dir(root().join(SCRIPTS))
                .args(["-m", "pip", "install", "--quiet", "--target"])
                .arg(folder);
            run(pip.args(arguments))
        };
        pip(&packages, &["-r", REQUIREMENTS[0]])?;
        pip(&packages, &["--no-deps", "-r", REQUIREMENTS[1]])?;
        for version in ["1.5.2", "1.6.0"] {
            let package = format!("nn-tilde=={version}");
            pip(
                &folder.join(format!("nn-tilde-{version}")),
                &["--no-deps", "--upgrade", &package],
            )?;
        }
        Ok(())
    })
}

/// Exports the models of a package, unless the cache has them.
fn export(
    folder: &Path,
    Exporter {
        name,
        script,
        nn_tilde,
    }: &Exporter,
) -> anyhow::Result<()> {
    let exports = folder.join("exports").join(name);
    unless_done(
        &exports,
        &[REQUIREMENTS[0], REQUIREMENTS[1], SHARED_SCRIPT, script],
        || {
            println!("exporting with {name}");
            let paths = [
                folder.join(format!("nn-tilde-{nn_tilde}")),
                folder.join("packages"),
            ];
            let mut python = Command::new("python3");
            python.arg(root().join(SCRIPTS).join(script)).arg(&exports);
            python
                .env("PYTHONPATH", std::env::join_paths(paths)?)
                .env("PYTHONDONTWRITEBYTECODE", "1");
            run(python.env("PYTHONWARNINGS", "ignore"))
        },
    )
}

/// Makes the content of a folder anew, unless it was made from these files.
fn unless_done(
    folder: &Path,
    files: &[&str],
    make: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let read = |file: &&str| {
        let path = root().join(SCRIPTS).join(file);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let made_from = files.iter().map(read).collect::<anyhow::Result<String>>()?;
    let stamp = folder.join("made-from.txt");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == made_from) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    make()?;
    fs::write(&stamp, made_from).with_context(|| stamp.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_lists_are_in_the_checkout() {
        for file in EXPORTERS
            .iter()
            .map(|exporter| exporter.script)
            .chain(REQUIREMENTS)
            .chain([SHARED_SCRIPT])
        {
            assert!(root().join(SCRIPTS).join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn content_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("content");
        let mut made = 0;
        for _ in 0..2 {
            unless_done(&folder, &[SHARED_SCRIPT], || {
                made += 1;
                fs::create_dir_all(&folder).map_err(anyhow::Error::from)
            })
            .unwrap();
        }
        assert_eq!(made, 1);
        fs::write(folder.join("made-from.txt"), "an older script").unwrap();
        unless_done(&folder, &[SHARED_SCRIPT], || {
            made += 1;
            fs::create_dir_all(&folder).map_err(anyhow::Error::from)
        })
        .unwrap();
        assert_eq!(made, 2);
    }
}
