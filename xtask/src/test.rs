//! All tests of all crates.

use crate::process::{cargo, run, works};
use crate::setup::setup;

/// Prepares what the tests need, libtorch among it, and runs them.
pub fn test() -> anyhow::Result<()> {
    setup(true)?;
    // No silent skips: when a test comes to need a GPU, this line says so where it is skipped.
    if works("nvidia-smi", &["--list-gpus"]) {
        println!("GPU: found, but no test uses one yet: all run on the CPU");
    } else {
        println!("GPU: none found, and no test needs one yet: nothing is skipped");
    }
    run(cargo().args(["test", "--workspace"]))
}
