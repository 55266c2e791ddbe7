//! All tests of all crates.

use std::path::PathBuf;

use crate::process::{cargo, root, run, works};
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
    run(cargo().args(["test", "--workspace"]))?;
    interleavings()
}

/// Tries all orders in which threads can meet in the engine's own lock-free code, with loom. It replaces the atomics, so that
/// everything is built anew, beside what else is built.
fn interleavings() -> anyhow::Result<()> {
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let mut test = cargo();
    test.args(["test", "--package", "ondes-engine", "--lib", "loom_tests"]);
    run(test.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", built.join("loom")))
}
