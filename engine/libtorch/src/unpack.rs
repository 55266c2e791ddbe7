//! Extracts members of a wheel, which is a ZIP file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path};

use zip::ZipArchive;

use crate::manifest::Wheel;
use crate::{Error, InstallProgress, InstallStep};

/// Extracts [`Wheel::members`] into `folder`.
///
/// # Errors
/// Returns [`Error::Wheel`] if the wheel is damaged or lacks a member, [`Error::File`] if a file
/// cannot be read or written.
pub(crate) fn unpack(
    wheel: &Wheel,
    path: &Path,
    folder: &Path,
    progress: &mut dyn FnMut(InstallProgress<'_>),
) -> Result<(), Error> {
    let damaged = |reason: String| Error::Wheel {
        path: path.into(),
        reason,
    };
    let file = File::open(path).map_err(Error::at(path))?;
    let mut archive = ZipArchive::new(file).map_err(|error| damaged(error.to_string()))?;
    let names: Vec<String> = archive.file_names().map(str::to_owned).collect();
    let mut extracted: Vec<(String, String)> = Vec::new();
    for (member, target) in &wheel.members {
        let before = extracted.len();
        if member.ends_with('/') {
            let inside = names.iter().filter(|name| !name.ends_with('/'));
            let inside = inside.filter_map(|name| {
                Some((
                    name.clone(),
                    format!("{target}{}", name.strip_prefix(member)?),
                ))
            });
            extracted.extend(inside);
        } else if names.contains(member) {
            extracted.push((member.clone(), target.clone()));
        }
        if extracted.len() == before {
            return Err(damaged(format!("member {member} is missing")));
        }
    }
    let total = wheel.bytes;
    let mut done = 0;
    for (member, relative) in extracted {
        let relative = Path::new(&relative);
        if !relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            return Err(damaged(format!(
                "{member}: target path is outside of the folder"
            )));
        }
        let target = folder.join(relative);
        let at = Error::at(&target);
        fs::create_dir_all(target.parent().unwrap_or(folder)).map_err(&at)?;
        let mut entry = archive
            .by_name(&member)
            .map_err(|error| damaged(format!("{member}: {error}")))?;
        let mut out = File::create(&target).map_err(&at)?;
        done += entry.compressed_size();
        let (expected, mut buffer, mut written) = (entry.size(), vec![0; 1 << 16], 0);
        loop {
            let count = entry
                .read(&mut buffer)
                .map_err(|error| damaged(format!("{member}: {error}")))?;
            if count == 0 {
                break;
            }
            io::Write::write_all(&mut out, &buffer[..count]).map_err(&at)?;
            written += count as u64;
        }
        if written != expected {
            return Err(damaged(format!(
                "{member}: {written} bytes, expected {expected}"
            )));
        }
        // Everything must be on disk before the folder is renamed.
        out.sync_all().map_err(&at)?;
        progress(InstallProgress {
            step: InstallStep::Unpacking,
            wheel: wheel.file(),
            done_bytes: done.min(total),
            total_bytes: total,
        });
    }
    progress(InstallProgress {
        step: InstallStep::Unpacking,
        wheel: wheel.file(),
        done_bytes: total,
        total_bytes: total,
    });
    Ok(())
}
