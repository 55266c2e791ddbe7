//! Draws the pictures of the window again: those of the book and of the README, and those that
//! tests compare with.

use crate::process::{cargo, run};

/// Runs the tests that draw, which write what has changed. They need no display and no GPU.
///
/// # Errors
/// A test fails.
pub fn draw() -> anyhow::Result<()> {
    let tests = [
        ("ondes-ui", "pictures"),
        ("ondes", "pictures"),
        ("ondes", "book"),
    ];
    for (package, filter) in tests {
        let arguments = ["test", "--package", package, "--test", "window", filter];
        run(cargo().args(arguments).env("UPDATE_SNAPSHOTS", "1"))?;
    }
    println!(
        "docs/src/img, ui/tests/snapshots and standalone/tests/snapshots show the window as it is now"
    );
    Ok(())
}
