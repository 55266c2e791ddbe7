//! Target of a render: a file or standard output.

use std::path::{Path, PathBuf};

use anyhow::bail;

use super::sound_format::SoundFormat;
use crate::standard_input;

/// Value of `--out` for standard output.
const STANDARD_OUTPUT: &str = "-";

/// Target of a render.
#[derive(Debug, PartialEq, Eq)]
pub enum OutputTarget {
    /// File or device.
    File(PathBuf),
    /// Standard output.
    StandardOutput,
}

impl OutputTarget {
    /// Returns the target that `out` names, or else the default; `read` are the files to protect.
    ///
    /// # Errors
    /// Returns an error if the output is one of `read`.
    pub fn choose<'a>(
        out: Option<&Path>,
        default: impl FnOnce() -> PathBuf,
        read: impl IntoIterator<Item = &'a Path>,
    ) -> anyhow::Result<Self> {
        let out = match out {
            Some(out) if out.as_os_str() == STANDARD_OUTPUT => return Ok(Self::StandardOutput),
            Some(out) => out.to_path_buf(),
            None => default(),
        };
        check_not_input(&out, read)?;
        Ok(Self::File(out))
    }

    /// Returns the file format.
    pub fn format(&self) -> SoundFormat {
        match self {
            Self::File(path) => SoundFormat::from_path(path),
            Self::StandardOutput => SoundFormat::Wav,
        }
    }

    /// Returns the name as on the command line.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::StandardOutput => STANDARD_OUTPUT.to_owned(),
        }
    }
}

/// Checks that no input would be overwritten.
///
/// # Errors
/// Returns an error if `out` is one of `read`.
pub fn check_not_input<'a>(
    out: &Path,
    read: impl IntoIterator<Item = &'a Path>,
) -> anyhow::Result<()> {
    if read.into_iter().any(|path| is_same_file(path, out)) {
        bail!(
            "{}: output would overwrite an input; choose another --out",
            out.display()
        );
    }
    Ok(())
}

/// Returns whether both paths are the same existing file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Returns `SOURCE-MODEL.wav` from the stems of both names, with the ending of the format.
pub fn default_name(source: &Path, model: &Path, format: SoundFormat) -> PathBuf {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_os_string();
    let mut name = if standard_input::is_meant(source) {
        "input".into()
    } else {
        stem(source)
    };
    name.push("-");
    name.push(stem(model));
    PathBuf::from(name).with_added_extension(format.extension())
}
