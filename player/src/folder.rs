//! Files in the user's folders of models, cabinets and presets, subfolders included.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

/// Most folders within one another that are searched, the user's own included.
pub const MAX_DEPTH: usize = 8;
/// Most files and folders that are looked at below one of the user's folders.
pub const MAX_ENTRIES: usize = 50_000;

/// Lists the regular files in a folder and below it that `is_wanted` accepts, sorted by path. Links
/// are followed, each folder is read once, and those whose name begins with a dot are left out, as
/// are files that begin with `._`, which macOS puts beside others on foreign disks.
#[must_use]
pub fn files(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut read = HashSet::new();
    let is_searched = |entry: &DirEntry| {
        let name = entry.file_name().as_encoded_bytes();
        match (entry.file_type().is_dir(), entry.depth()) {
            (true, depth) => {
                (depth == 0 || !name.starts_with(b"."))
                    && entry
                        .path()
                        .canonicalize()
                        .is_ok_and(|path| read.insert(path))
            }
            (false, _) => !name.starts_with(b"._"),
        }
    };
    let walk = WalkDir::new(folder)
        .follow_links(true)
        .max_depth(MAX_DEPTH)
        .sort_by_file_name();
    let entries = walk
        .into_iter()
        .filter_entry(is_searched)
        .take(MAX_ENTRIES)
        .filter_map(Result::ok);
    let paths = entries
        .filter(|entry| entry.file_type().is_file())
        .map(DirEntry::into_path);
    let mut paths: Vec<PathBuf> = paths.filter(|path| is_wanted(path)).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subfolders_are_searched_and_hidden_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let deep = format!("{}deep.nam", "f/".repeat(MAX_DEPTH - 1));
        let too_deep = format!("{}deeper.nam", "f/".repeat(MAX_DEPTH));
        for path in [
            "b.nam",
            "a/c.nam",
            "a/._c.nam",
            ".git/d.nam",
            "a/text.txt",
            "folder.nam/e.nam",
            &deep,
            &too_deep,
        ] {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), "").unwrap();
        }
        let listed = |folder: &Path| {
            files(folder, |path| {
                path.extension().is_some_and(|end| end == "nam")
            })
        };
        let found = ["a/c.nam", "b.nam", &deep, "folder.nam/e.nam"].map(at);
        assert_eq!(listed(folder.path()), found);
        assert_eq!(listed(&at("nowhere")), Vec::<PathBuf>::new());
        // The user's own folder may be hidden.
        assert_eq!(listed(&at(".git")), [at(".git/d.nam")]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_once() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for name in ["a", "b", "c"] {
            std::fs::create_dir(at(name)).unwrap();
            std::fs::write(at(name).join("x.nam"), "").unwrap();
        }
        for one in ["a", "b", "c"] {
            symlink(folder.path(), at(one).join("up")).unwrap();
            for other in ["a", "b", "c"] {
                symlink(at(other), at(one).join(other)).unwrap();
            }
        }
        symlink("x.nam", at("a/link.nam")).unwrap();
        symlink("nowhere", at("a/dangling.nam")).unwrap();
        let found = files(folder.path(), |_| true);
        assert_eq!(found.len(), 4, "{found:?}");
        let outside = tempfile::tempdir().unwrap();
        symlink(folder.path(), outside.path().join("library")).unwrap();
        assert_eq!(files(outside.path(), |_| true).len(), 4);
    }
}
