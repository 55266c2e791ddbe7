//! File names of recordings.

use std::path::{Path, PathBuf};

use jiff::Zoned;

use super::format::RecordingFormat;

/// Returns an unused path in `folder` for a recording that starts now, in local time:
/// `Ondes 2026-11-21 14.03.22.wav` for the title `Ondes`. If the name is taken, ` (2)` and so on
/// follows the time.
#[must_use]
pub fn take_name(folder: &Path, title: &str, format: RecordingFormat) -> PathBuf {
    free_paths(folder, &stamp(title, &Zoned::now()), &[""], format).remove(0)
}

/// Returns unused paths for tracks that are recorded together: `Ondes 2026-11-21 14.03.22 Bass.wav`
/// for the track `Bass`, without a suffix for an empty name. Tracks of the same name are numbered.
#[must_use]
pub fn take_names(
    folder: &Path,
    title: &str,
    tracks: &[&str],
    format: RecordingFormat,
) -> Vec<PathBuf> {
    free_paths(folder, &stamp(title, &Zoned::now()), tracks, format)
}

fn stamp(title: &str, now: &Zoned) -> String {
    // Some systems do not allow colons.
    format!("{} {}", sanitize(title), now.strftime("%Y-%m-%d %H.%M.%S"))
}

/// Returns the paths for the first of `stamp`, `stamp (2)` and so on for which no track has a file
/// yet.
fn free_paths(
    folder: &Path,
    stamp: &str,
    tracks: &[&str],
    format: RecordingFormat,
) -> Vec<PathBuf> {
    let mut suffixes: Vec<String> = Vec::new();
    for track in tracks {
        let name = if track.is_empty() {
            String::new()
        } else {
            format!(" {}", sanitize(track))
        };
        let mut suffix = name.clone();
        // Some file systems ignore case.
        let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
        for number in 2.. {
            if !suffixes.iter().any(|other| same(other, &suffix)) {
                break;
            }
            suffix = format!("{name} ({number})");
        }
        suffixes.push(suffix);
    }
    let paths = |stamp: &str| -> Vec<PathBuf> {
        suffixes
            .iter()
            .map(|suffix| folder.join(format!("{stamp}{suffix}.{}", format.extension())))
            .collect()
    };
    let mut found = paths(stamp);
    for number in 2.. {
        // A dangling link also takes a name.
        if !found.iter().any(|path| path.symlink_metadata().is_ok()) {
            break;
        }
        found = paths(&format!("{stamp} ({number})"));
    }
    found
}

/// Replaces the characters that some system does not allow in file names.
fn sanitize(name: &str) -> String {
    let shown = |c: char| {
        if c.is_control() || r#"/\:*?"<>|"#.contains(c) {
            '_'
        } else {
            c
        }
    };
    name.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_contain_the_time() {
        let now: Zoned = "2026-11-21T14:03:22.9+01:00[Europe/Paris]".parse().unwrap();
        assert_eq!(stamp("Ondes", &now), "Ondes 2026-11-21 14.03.22");
        let name = take_name(Path::new("x"), "Ondes", RecordingFormat::Float32);
        let name = name.strip_prefix("x").unwrap().to_str().unwrap();
        assert!(
            name.starts_with("Ondes 20") && name.ends_with(".wav") && name.len() == 29,
            "{name}"
        );
    }

    #[test]
    fn names_are_unused() {
        let folder = tempfile::tempdir().unwrap();
        let found = |tracks: &[&str]| -> Vec<String> {
            let paths = free_paths(folder.path(), "A 1", tracks, RecordingFormat::Flac);
            paths
                .iter()
                .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(found(&[""]), ["A 1.flac"]);
        fs::write(folder.path().join("A 1.flac"), "").unwrap();
        assert_eq!(found(&[""]), ["A 1 (2).flac"]);
        fs::write(folder.path().join("A 1 (2) Bass.flac"), "").unwrap();
        let tracks = ["", "Bass", "bass", "../up"];
        let expected = [
            "A 1 (3).flac",
            "A 1 (3) Bass.flac",
            "A 1 (3) bass (2).flac",
            "A 1 (3) .._up.flac",
        ];
        assert_eq!(found(&tracks), expected);
    }
}
