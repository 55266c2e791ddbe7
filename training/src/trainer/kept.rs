//! Checkpoints with the lowest validation losses, beside the last one.

use std::path::{Path, PathBuf};

use anyhow::Context;
use ondes_engine::files::AtomicFile;

/// Adds a validated step to the `count` best, lowest loss first.
pub(super) fn add(kept: &mut Vec<(f64, u64)>, loss: f64, step: u64, count: usize) {
    kept.push((loss, step));
    kept.sort_by(|a, b| a.0.total_cmp(&b.0));
    kept.truncate(count);
}

/// Returns the name of a kept checkpoint.
fn path(checkpoint: &Path, step: u64) -> PathBuf {
    let ending = checkpoint.extension().map_or_else(String::new, |ending| {
        format!(".{}", ending.to_string_lossy())
    });
    let stem = checkpoint.file_stem().unwrap_or_default().to_string_lossy();
    checkpoint.with_file_name(format!("{stem}-step{step}{ending}"))
}

/// Copies the last checkpoint and removes those that are no longer among the best.
///
/// # Errors
/// Returns an error if a file cannot be written or removed.
pub(super) fn keep(checkpoint: &Path, kept: &[(f64, u64)], step: u64) -> anyhow::Result<()> {
    let own = path(checkpoint, step);
    let copied = || -> anyhow::Result<()> {
        let file = AtomicFile::create(&own)?;
        std::fs::copy(checkpoint, file.temporary_path())?;
        Ok(file.finish()?)
    };
    copied().with_context(|| format!("{}: cannot be written", own.display()))?;
    let known: Vec<PathBuf> = kept
        .iter()
        .map(|(_, step)| path(checkpoint, *step))
        .collect();
    let stem = format!(
        "{}-step",
        checkpoint.file_stem().unwrap_or_default().to_string_lossy()
    );
    let folder = checkpoint
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        let is_step = text
            .strip_prefix(&stem)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let old = checkpoint.with_file_name(&name);
        if is_step && old.extension() == checkpoint.extension() && !known.contains(&old) {
            std::fs::remove_file(&old)
                .with_context(|| format!("{}: cannot be removed", old.display()))?;
        }
    }
    Ok(())
}
