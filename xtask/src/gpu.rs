//! What a machine with a GPU can check, and no other.

use crate::bundle::build_torch;
use crate::process::{cargo, root, run, works};

/// Runs the example `gpu_check` of `ondes-tests` with the library around libtorch. Without a GPU there is nothing to do.
pub fn check(device: &str, seconds: &str) -> anyhow::Result<()> {
    if device != "cpu" && !works("nvidia-smi", &["--list-gpus"]) {
        println!(
            "gpu-check: this machine has no GPU of NVIDIA's, and so nothing was checked (--device cpu runs the list there)"
        );
        return Ok(());
    }
    let library = build_torch(None)?;
    let mut example = cargo();
    example.args(["run", "--release", "--package", "ondes-tests", "--example", "gpu_check", "--"]);
    example.args(["--device", device, "--seconds", seconds, "--report"]).arg(root().join("target/gpu-check/report.md"));
    run(example.env("ONDES_TORCH_LIBRARY", library))
}
