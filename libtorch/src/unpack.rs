//! Taking members out of a wheel, which is a ZIP file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path};

use zip::ZipArchive;

use crate::recipe::Wheel;
use crate::{Error, Progress, Work};

/// Puts the members that a wheel is fetched for into a folder, and nothing else.
///
/// # Errors
/// [`Error::Wheel`] where it is damaged or has no such member, [`Error::File`] where something cannot be read or written.
pub(crate) fn unpack(
    wheel: &Wheel,
    path: &Path,
    folder: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), Error> {
    let damaged = |reason: String| Error::Wheel { path: path.into(), reason };
    let file = File::open(path).map_err(Error::at(path))?;
    let mut archive = ZipArchive::new(file).map_err(|error| damaged(error.to_string()))?;
    let names: Vec<String> = archive.file_names().map(str::to_owned).collect();
    let mut wanted: Vec<(String, String)> = Vec::new();
    for (member, place) in &wheel.members {
        let before = wanted.len();
        if member.ends_with('/') {
            let below = names.iter().filter(|name| !name.ends_with('/'));
            let below = below.filter_map(|name| Some((name.clone(), format!("{place}{}", name.strip_prefix(member)?))));
            wanted.extend(below);
        } else if names.contains(member) {
            wanted.push((member.clone(), place.clone()));
        }
        if wanted.len() == before {
            return Err(damaged(format!("has no {member}")));
        }
    }
    let all = wheel.bytes;
    let mut done = 0;
    for (member, place) in wanted {
        let place = Path::new(&place);
        if !place.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(damaged(format!("{member}: leads out of the folder")));
        }
        let target = folder.join(place);
        let at = Error::at(&target);
        fs::create_dir_all(target.parent().unwrap_or(folder)).map_err(&at)?;
        let mut entry = archive.by_name(&member).map_err(|error| damaged(format!("{member}: {error}")))?;
        let mut out = File::create(&target).map_err(&at)?;
        done += entry.compressed_size();
        let (expected, mut piece, mut written) = (entry.size(), vec![0; 1 << 16], 0);
        loop {
            let count = entry.read(&mut piece).map_err(|error| damaged(format!("{member}: {error}")))?;
            if count == 0 {
                break;
            }
            io::Write::write_all(&mut out, &piece[..count]).map_err(&at)?;
            written += count as u64;
        }
        if written != expected {
            return Err(damaged(format!("{member}: has {written} bytes where {expected} are due")));
        }
        // Before the folder gets its name, all of it is on the disk.
        out.sync_all().map_err(&at)?;
        progress(Progress { work: Work::Unpacking, wheel: wheel.file(), done: done.min(all), all });
    }
    progress(Progress { work: Work::Unpacking, wheel: wheel.file(), done: all, all });
    Ok(())
}
