//! Checks libtorch on a GPU.

use crate::bundle::build_torch;
use crate::process::{cargo, root, run, works};

/// Runs the example `gpu_check` of `ondes-tests` with the library around libtorch. Does nothing on
/// a machine without a GPU.
///
/// # Errors
/// The library cannot be built, or a check fails.
pub fn check(device: &str, seconds: &str) -> anyhow::Result<()> {
    if device != "cpu" && !works("nvidia-smi", &["--list-gpus"]) {
        println!(
            "gpu-check: no NVIDIA GPU found, nothing checked; --device cpu runs the same checks on the CPU"
        );
        return Ok(());
    }
    let parts = build_torch(None)?;
    let mut example = cargo();
    example.args([
        "run",
        "--release",
        "--package",
        "ondes-tests",
        "--example",
        "gpu_check",
        "--",
    ]);
    example
        .args(["--device", device, "--seconds", seconds, "--report"])
        .arg(root().join("target/gpu-check/report.md"));
    run(example.env("ONDES_TORCH_LIBRARY", &parts[0]))
}
