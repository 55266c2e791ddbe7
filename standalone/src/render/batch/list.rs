//! The files of a batch.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use ondes_engine::media::{FILE_ENDINGS, remove_abandoned};
use ondes_engine::pipeline::Source;

use super::super::arguments::RenderArguments;
use super::super::destination::is_same_file;

/// Endings of the names of MIDI files, in small letters.
const MIDI_ENDINGS: [&str; 3] = ["mid", "midi", "smf"];

/// Folders in folders that are looked into; links can make it endless.
const MOST_DEPTH: usize = 64;

/// A file to play and the WAV to make of it.
pub struct Entry {
    /// What is played.
    pub source: PathBuf,
    /// What is written.
    pub out: PathBuf,
}

/// All files of a batch, sorted by the names of what becomes of them.
pub struct List {
    entries: Vec<Entry>,
    out: PathBuf,
}

impl List {
    /// Finds the files that the command line names.
    ///
    /// # Errors
    /// When there is no folder to write to, nothing to read, or two files would become the same.
    pub fn gather(arguments: &RenderArguments) -> anyhow::Result<Self> {
        let sources = arguments.sources();
        let first = sources.first().map(|source| source.display());
        let Some(out) = arguments.out.clone().filter(|out| out.as_os_str() != "-") else {
            bail!(
                "{}: a batch needs a folder to write to, --out FOLDER",
                first.map_or_else(String::new, |name| name.to_string())
            );
        };
        if fs::metadata(&out).is_ok_and(|metadata| !metadata.is_dir()) {
            bail!("{}: is no folder, and a batch is written to one", out.display());
        }
        let finder = Finder { endings: endings(arguments.source()), out: out.canonicalize().ok() };
        let mut entries = Vec::new();
        for source in sources {
            if source.is_dir() {
                if finder.is_out(source) && arguments.source() == Source::Sound {
                    bail!("{}: is what is read, the output needs another folder", out.display());
                }
                finder.look_into(source, Path::new(""), 0, &mut |source, name| {
                    entries.push(Entry { source, out: out.join(name).with_extension("wav") });
                })?;
            } else {
                let name = source.file_name().ok_or_else(|| anyhow!("{}: names no file", source.display()))?;
                entries.push(Entry { source: source.to_owned(), out: out.join(name).with_extension("wav") });
            }
        }
        if let (true, Some(first)) = (entries.is_empty(), first) {
            bail!("{first}: holds no file to play ({})", finder.endings.join(", "));
        }
        entries.sort_by(|one, other| (&one.out, &one.source).cmp(&(&other.out, &other.source)));
        entries.dedup_by(|next, entry| next.out == entry.out && is_same_file(&next.source, &entry.source));
        if let Some([one, other]) = entries.array_windows().find(|[one, other]| one.out == other.out) {
            let (one, other, out) = (one.source.display(), other.source.display(), one.out.display());
            bail!("{other}: would become {out}, and so would {one}");
        }
        let read: HashSet<PathBuf> = entries.iter().filter_map(|entry| entry.source.canonicalize().ok()).collect();
        let model = arguments.model.canonicalize().ok();
        for entry in &entries {
            let is_read = |out: &PathBuf| read.contains(out) || model.as_ref() == Some(out);
            if entry.out.canonicalize().is_ok_and(|out| is_read(&out)) {
                bail!("{}: is what is read, the output needs another folder", entry.out.display());
            }
        }
        Ok(Self { entries, out })
    }

    /// All of them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The folder that they are written to.
    pub fn out(&self) -> &Path {
        &self.out
    }
}

/// Removes what an earlier run that was killed left unfinished of these files.
///
/// # Errors
/// When a folder cannot be read or a file not be removed.
pub fn tidy<'a>(entries: impl Iterator<Item = &'a Entry>) -> anyhow::Result<()> {
    let mut folders: HashMap<&Path, HashSet<&str>> = HashMap::new();
    for Entry { out, .. } in entries {
        if let (Some(folder), Some(name)) = (out.parent(), out.file_name().and_then(|name| name.to_str())) {
            folders.entry(folder).or_default().insert(name);
        }
    }
    for (folder, names) in folders {
        match remove_abandoned(folder, |name| names.contains(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                bail!("{}: cannot be tidied: {error}", folder.display());
            }
            _ => {}
        }
    }
    Ok(())
}

fn endings(source: Source) -> &'static [&'static str] {
    match source {
        Source::Notes => &MIDI_ENDINGS,
        Source::Sound => &FILE_ENDINGS,
    }
}

/// Looks for files in folders.
struct Finder {
    endings: &'static [&'static str],
    /// Where they are written to, if it is there: what an earlier run made is not to be played.
    out: Option<PathBuf>,
}

impl Finder {
    fn is_out(&self, folder: &Path) -> bool {
        self.out.is_some() && folder.canonicalize().ok() == self.out
    }

    /// Gives all files with such an ending that are not hidden, each with its name from the first folder on.
    fn look_into(
        &self,
        folder: &Path,
        name: &Path,
        depth: usize,
        give: &mut impl FnMut(PathBuf, PathBuf),
    ) -> anyhow::Result<()> {
        let unreadable = |error: io::Error| anyhow!("{}: cannot be read: {error}", folder.display());
        if depth > MOST_DEPTH {
            bail!("{}: is more than {MOST_DEPTH} folders deep", folder.display());
        }
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (path, name) = (entry.path(), name.join(entry.file_name()));
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if path.is_dir() {
                if !self.is_out(&path) {
                    self.look_into(&path, &name, depth + 1, give)?;
                }
            } else if self.takes(&path) {
                give(path, name);
            }
        }
        Ok(())
    }

    fn takes(&self, path: &Path) -> bool {
        let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
        ending.is_some_and(|ending| self.endings.contains(&ending.as_str()))
    }
}
