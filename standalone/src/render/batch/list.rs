//! Files of a batch.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use ondes_engine::files::remove_abandoned;
use ondes_engine::instrument::MidiFile;
use ondes_engine::media::FILE_EXTENSIONS;
use ondes_engine::pipeline::ControlSource;

use crate::render::arguments::RenderArguments;
use crate::render::output_target::is_same_file;
use crate::standard_input;

/// Largest depth of nested folders.
const MAX_DEPTH: usize = 64;

/// File to render and the WAV to write.
pub struct BatchEntry {
    /// Source file.
    pub source: PathBuf,
    /// Output file.
    pub out: PathBuf,
}

/// All files of a batch, sorted by output name.
pub struct BatchList {
    entries: Vec<BatchEntry>,
    out: PathBuf,
}

impl BatchList {
    /// Finds the files that the command line names.
    ///
    /// # Errors
    /// Returns an error if there is no output folder, there are no sources, or two sources have the
    /// same output.
    pub fn gather(arguments: &RenderArguments) -> anyhow::Result<Self> {
        let sources = arguments.sources();
        let first = sources.first().map(|source| source.display());
        let Some(out) = arguments.out.clone().filter(|out| out.as_os_str() != "-") else {
            bail!(
                "{}: a batch needs an output folder, --out FOLDER",
                first.map_or_else(String::new, |name| name.to_string())
            );
        };
        if fs::metadata(&out).is_ok_and(|metadata| !metadata.is_dir()) {
            bail!(
                "{}: not a folder; a batch needs a folder as --out",
                out.display()
            );
        }
        let finder = FileFinder {
            extensions: extensions(arguments.source()),
            out: out.canonicalize().ok(),
        };
        let mut entries = Vec::new();
        let format = arguments.container().extension();
        for source in sources {
            if standard_input::is_meant(source) {
                bail!("-: standard input cannot be part of a batch");
            }
            if source.is_dir() {
                if finder.is_out(source) && arguments.source() == ControlSource::AudioInput {
                    bail!(
                        "{}: input and output folder are the same; choose another --out",
                        out.display()
                    );
                }
                finder.visit(
                    source,
                    Path::new(""),
                    &mut Vec::new(),
                    &mut |source, name| {
                        entries.push(BatchEntry {
                            source,
                            out: out.join(name).with_extension(format),
                        });
                    },
                )?;
            } else {
                let name = source
                    .file_name()
                    .ok_or_else(|| anyhow!("{}: not a file name", source.display()))?;
                entries.push(BatchEntry {
                    source: source.to_owned(),
                    out: out.join(name).with_extension(format),
                });
            }
        }
        if let (true, Some(first)) = (entries.is_empty(), first) {
            bail!(
                "{first}: contains no matching file ({})",
                finder.extensions.join(", ")
            );
        }
        entries.sort_by(|one, other| (&one.out, &one.source).cmp(&(&other.out, &other.source)));
        entries.dedup_by(|next, entry| {
            next.out == entry.out && is_same_file(&next.source, &entry.source)
        });
        if let Some([one, other]) = entries
            .array_windows()
            .find(|[one, other]| one.out == other.out)
        {
            let (one, other, out) = (
                one.source.display(),
                other.source.display(),
                one.out.display(),
            );
            bail!("{other}: has the same output as {one}, {out}");
        }
        let read: HashSet<PathBuf> = entries
            .iter()
            .filter_map(|entry| entry.source.canonicalize().ok())
            .collect();
        let model = arguments.model.canonicalize().ok();
        for entry in &entries {
            let is_read = |out: &PathBuf| read.contains(out) || model.as_ref() == Some(out);
            if entry.out.canonicalize().is_ok_and(|out| is_read(&out)) {
                bail!(
                    "{}: output would overwrite an input; choose another --out",
                    entry.out.display()
                );
            }
        }
        Ok(Self { entries, out })
    }

    /// Returns all files.
    pub fn entries(&self) -> &[BatchEntry] {
        &self.entries
    }

    /// Returns the output folder.
    pub fn out(&self) -> &Path {
        &self.out
    }
}

/// Removes unfinished files that a killed batch has left for these entries.
///
/// # Errors
/// Returns an error if a folder cannot be read or a file cannot be removed.
pub fn remove_abandoned_files<'a>(
    entries: impl Iterator<Item = &'a BatchEntry>,
) -> anyhow::Result<()> {
    let mut folders: HashMap<&Path, HashSet<&str>> = HashMap::new();
    for BatchEntry { out, .. } in entries {
        if let (Some(folder), Some(name)) =
            (out.parent(), out.file_name().and_then(|name| name.to_str()))
        {
            folders.entry(folder).or_default().insert(name);
        }
    }
    for (folder, names) in folders {
        match remove_abandoned(folder, |name| names.contains(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                bail!(
                    "{}: unfinished files cannot be removed: {error}",
                    folder.display()
                );
            }
            _ => {}
        }
    }
    Ok(())
}

fn extensions(source: ControlSource) -> &'static [&'static str] {
    match source {
        ControlSource::Notes => &MidiFile::EXTENSIONS,
        ControlSource::AudioInput => &FILE_EXTENSIONS,
    }
}

/// Search for files in folders.
struct FileFinder {
    extensions: &'static [&'static str],
    /// Existing output folder, which is skipped.
    out: Option<PathBuf>,
}

impl FileFinder {
    fn is_out(&self, folder: &Path) -> bool {
        self.out.is_some() && folder.canonicalize().ok() == self.out
    }

    /// Passes each matching, visible file to `found`, with its name relative to the first folder. A
    /// link that leads back to one of the folders `above` it is not followed.
    fn visit(
        &self,
        folder: &Path,
        name: &Path,
        above: &mut Vec<PathBuf>,
        found: &mut impl FnMut(PathBuf, PathBuf),
    ) -> anyhow::Result<()> {
        let unreadable =
            |error: io::Error| anyhow!("{}: cannot be read: {error}", folder.display());
        if above.len() > MAX_DEPTH {
            bail!(
                "{}: nested deeper than {MAX_DEPTH} folders",
                folder.display()
            );
        }
        let here = folder.canonicalize().map_err(unreadable)?;
        if above.contains(&here) {
            return Ok(());
        }
        above.push(here);
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (path, name) = (entry.path(), name.join(entry.file_name()));
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if path.is_dir() {
                if !self.is_out(&path) {
                    self.visit(&path, &name, above, found)?;
                }
            } else if self.matches_extension(&path) {
                found(path, name);
            }
        }
        above.pop();
        Ok(())
    }

    fn matches_extension(&self, path: &Path) -> bool {
        let extension = path
            .extension()
            .and_then(|extension| extension.to_str())
            .map(str::to_lowercase);
        extension.is_some_and(|extension| self.extensions.contains(&extension.as_str()))
    }
}
