//! `ondes setup-torch`: installs libtorch for this user.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ondes_engine::files::{self, AtomicFile};
use ondes_engine::torch::{self, Library};
use ondes_libtorch::{
    Contents, Error, InstallOutcome, InstallProgress, InstallStep, Manifest, WheelSource,
};

use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  ondes setup-torch
  ondes setup-torch --from Downloads

To use an NVIDIA GPU, set LIBTORCH to PyTorch 2.11.0:
  pip install torch==2.11.0
  LIBTORCH=$(python3 -c 'import torch; print(torch.__path__[0])') ondes setup-torch";

/// Installs libtorch for the CPU and Ondes' library around it, which TorchScript models need.
///
/// Downloads 0.54 GB and keeps 0.46 GB in the user's data folder. An interrupted download is
/// resumed.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct SetupTorchArguments {
    /// Read the wheels from this folder instead of downloading them
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,
}

/// Installs what is missing and prints what was done.
///
/// # Errors
/// Returns an error if a part cannot be downloaded, found or written.
pub fn run(arguments: &SetupTorchArguments) -> anyhow::Result<()> {
    let library = install_part(&torch::library_file(), &torch::libraries())?;
    if cfg!(target_os = "linux") {
        install_part(torch::PROGRAM_HOST_FILE, &torch::program_hosts(&library))?;
    }
    terminal::print(&install_libtorch(arguments.from.as_deref())?)?;
    let library = Library::get()?;
    let gpus = match library.gpus {
        0 => "the CPU".to_owned(),
        1 => "the CPU and a GPU".into(),
        gpus => format!("the CPU and {gpus} GPUs"),
    };
    terminal::print(&format!(
        "TorchScript models can be played now, on {gpus}; `ondes info MODEL.ts` shows one"
    ))
}

/// Copies a part that came with this program to where plugins also look for it. Returns the path
/// where it was found.
fn install_part(file: &str, searched: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let Some(found) = searched.iter().find(|path| path.is_file()) else {
        let searched: Vec<String> = searched
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        bail!(
            "{file} is not beside this program: take it from the release, or run `cargo xtask install --torch` in a checkout; \
             searched: {}",
            searched.join(", ")
        )
    };
    let folder = torch::installed().context("no folder for user data: HOME is not set")?;
    let target = folder.join(file);
    let same = |a: &Path, b: &Path| Some(std::fs::read(a).ok()? == std::fs::read(b).ok()?);
    if same(found, &target) == Some(true) {
        terminal::print(&format!("{file}: already installed ({})", target.display()))?;
        return Ok(found.clone());
    }
    install_file(found, &target)
        .with_context(|| target.display().to_string())
        .map_err(|error| anyhow!("{error:#}"))?;
    terminal::print(&format!("{file}: {}", target.display()))?;
    Ok(found.clone())
}

/// Replaces a file atomically; a process that has the old one open keeps it.
fn install_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    let folder = to.parent().unwrap_or(to);
    std::fs::create_dir_all(folder)?;
    let mut copy = AtomicFile::create(to)?;
    std::io::copy(&mut files::open(from)?, &mut copy)?;
    // One of them is a program.
    std::fs::set_permissions(
        copy.temporary_path(),
        std::fs::metadata(from)?.permissions(),
    )?;
    Ok(copy.finish()?)
}

fn install_libtorch(from: Option<&Path>) -> anyhow::Result<String> {
    let version = torch::LIBTORCH_VERSION;
    let folder = torch::libtorch_folder().context("no folder for user data: HOME is not set")?;
    let manifest = Manifest::published(Contents::Runtime);
    // A damaged libtorch of ours is installed again; any other is left alone.
    if let Some(found) = torch::libtorch_found().filter(|found| *found != folder.join("lib")) {
        return Ok(format!(
            "libtorch {version}: already installed ({})",
            found.display()
        ));
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!(
            "libtorch is downloaded for Linux x86-64 only; set LIBTORCH to the folder of a libtorch {version}"
        );
    }
    let bar = WheelProgress::new();
    let source = from.map_or(WheelSource::Network, WheelSource::Folder);
    let outcome =
        ondes_libtorch::install(&manifest, &folder, source, |_| Ok(()), &mut |progress| {
            bar.show(progress)
        });
    let outcome = outcome.map_err(|error| match error {
        Error::Network { .. } => {
            anyhow!("{error}; --from FOLDER uses wheels that were downloaded otherwise")
        }
        error => error.into(),
    })?;
    drop(bar);
    Ok(match outcome {
        InstallOutcome::AlreadyThere => format!(
            "libtorch {version}: already installed ({})",
            folder.display()
        ),
        InstallOutcome::Installed => format!("libtorch {version}: {}", folder.display()),
    })
}

/// Progress bar of a wheel. Hidden if standard error is not a terminal; removed when dropped.
struct WheelProgress(ProgressBar);

impl WheelProgress {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template(
            "{msg:32!} {bar:32} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
        ) {
            bar.set_style(style);
        }
        Self(bar)
    }

    fn show(&self, progress: InstallProgress<'_>) {
        let work = match progress.step {
            InstallStep::Downloading => "fetching",
            InstallStep::Verifying => "checking",
            InstallStep::Unpacking => "unpacking",
        };
        let wheel = progress.wheel.split('-').next().unwrap_or_default();
        let message = format!("{work} {wheel}");
        if self.0.message() != message {
            self.0.reset();
            self.0.set_length(progress.total_bytes);
            self.0.set_message(message);
        }
        self.0.set_position(progress.done_bytes);
    }
}

impl Drop for WheelProgress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_downloaded_version_is_the_engines() {
        assert_eq!(torch::LIBTORCH_VERSION, ondes_libtorch::VERSION);
    }

    #[test]
    fn a_library_replaces_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (
            folder.path().join("new.so"),
            folder.path().join("torch/lib.so"),
        );
        for (content, mode) in [("first", 0o644), ("second", 0o755)] {
            std::fs::write(&from, content).unwrap();
            #[cfg(unix)]
            std::fs::set_permissions(&from, std::os::unix::fs::PermissionsExt::from_mode(mode))
                .unwrap();
            install_file(&from, &to).unwrap();
            assert_eq!(std::fs::read_to_string(&to).unwrap(), content);
            #[cfg(unix)]
            assert_eq!(
                std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&to).unwrap()) & 0o777,
                mode
            );
        }
        assert_eq!(std::fs::read_dir(to.parent().unwrap()).unwrap().count(), 1);
    }
}
