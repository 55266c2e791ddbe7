//! Search paths of the library and of libtorch.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Version of libtorch that the library is built for.
pub const LIBTORCH_VERSION: &str = "2.11.0";
/// Environment variable for the library's file.
pub const LIBRARY: &str = "ONDES_TORCH_LIBRARY";
/// File name of the program in which TorchScript programs run.
pub const PROGRAM_HOST_FILE: &str = "ondes-program-host";
/// Environment variable for that program's file.
pub const PROGRAM_HOST: &str = "ONDES_PROGRAM_HOST";
/// Environment variable for libtorch's folder, also used for building.
const LIBTORCH: &str = "LIBTORCH";

/// Returns the value of an environment variable; `None` if it is unset or empty.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn user_folder(variable_name: &str, below: &str) -> Option<PathBuf> {
    variable(variable_name)
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(below)))
}

/// Returns the file name of the library on this system.
#[must_use]
pub fn library_file() -> String {
    file("ondes_torch")
}

/// Returns the folder in the user's data directory that the library is installed in; `None` without
/// such a directory.
#[must_use]
pub fn installed() -> Option<PathBuf> {
    Some(
        user_folder("XDG_DATA_HOME", ".local/share")?
            .join("ondes")
            .join("torch"),
    )
}

/// Returns the folder that `ondes setup-torch` installs libtorch into; `None` without a user's data
/// directory.
#[must_use]
pub fn libtorch_folder() -> Option<PathBuf> {
    Some(
        user_folder("XDG_DATA_HOME", ".local/share")?
            .join("ondes")
            .join(format!("libtorch-{LIBTORCH_VERSION}-cpu")),
    )
}

/// Lists the candidates for the library's file: the one that the environment names, alone; else in
/// the program's folder, in the plugin's folder, and in the installation folder.
#[must_use]
pub fn libraries() -> Vec<PathBuf> {
    if let Some(named) = variable(LIBRARY) {
        return vec![named.into()];
    }
    in_folders(&own_folders(), &library_file())
}

/// Lists the candidates for the program in which TorchScript programs run: the one that the
/// environment names, alone; else beside the library, then where the library is searched, too.
#[must_use]
pub fn program_hosts(library: &Path) -> Vec<PathBuf> {
    if let Some(named) = variable(PROGRAM_HOST) {
        return vec![named.into()];
    }
    // In cargo's folders, programs are in the folder above libraries.
    let of_library = library.ancestors().skip(1).take(2).map(Path::to_path_buf);
    in_folders(
        &of_library.chain(own_folders()).collect::<Vec<_>>(),
        PROGRAM_HOST_FILE,
    )
}

/// Lists the program's folder, the plugin's, and the installation folder.
fn own_folders() -> Vec<PathBuf> {
    let beside = |file: Option<PathBuf>| file.and_then(|file| Some(file.parent()?.to_owned()));
    [
        beside(std::env::current_exe().ok()),
        beside(this_object()),
        installed(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Lists the file in each of the folders, once.
fn in_folders(folders: &[PathBuf], file: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for path in folders.iter().map(|folder| folder.join(file)) {
        if !files.contains(&path) {
            files.push(path);
        }
    }
    files
}

/// Returns the file that this code was loaded from: in a host, the plugin.
fn this_object() -> Option<PathBuf> {
    object_at(
        &std::fs::read_to_string("/proc/self/maps").ok()?,
        this_object as fn() -> _ as usize,
    )
}

/// Returns the file that is mapped at an address. A line of the table is
/// `FROM-TO MODE OFFSET DEVICE INODE PATH` (proc_pid_maps(5)).
fn object_at(maps: &str, address: usize) -> Option<PathBuf> {
    let is_here = |line: &&str| {
        let (from, to) = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'))
            .unwrap_or_default();
        let bound = |digits| usize::from_str_radix(digits, 16).ok();
        bound(from)
            .zip(bound(to))
            .is_some_and(|(from, to)| (from..to).contains(&address))
    };
    let path = maps.lines().find(is_here)?;
    Some(path[path.find('/')?..].into())
}

/// Lists the candidates for the folder of libtorch's libraries.
pub fn libtorch() -> Vec<PathBuf> {
    let named = variable(LIBTORCH).map(PathBuf::from);
    let cached = user_folder("XDG_CACHE_HOME", ".cache")
        .map(|cache| cache.join(format!("ondes/libtorch-{LIBTORCH_VERSION}-cpu")));
    [named, libtorch_folder(), cached]
        .into_iter()
        .flatten()
        .map(|folder| folder.join("lib"))
        .collect()
}

/// Returns the first candidate that holds libtorch's libraries.
#[must_use]
pub fn libtorch_found() -> Option<PathBuf> {
    libtorch()
        .into_iter()
        .find(|folder| folder.join(file("torch_cpu")).is_file())
}

/// Returns the file name of a library on this system.
pub fn file(name: &str) -> String {
    format!(
        "{}{name}{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_found_by_its_mapped_address() {
        let maps = "7f00-7f10 r--p 00000000 00:00 1 /usr/lib/other.so\n7f10-7f20 r-xp 00000000 00:00 2   /a folder/Ondes.clap\n7f20-7f30 rw-p 00000000 00:00 0 \n";
        assert_eq!(object_at(maps, 0x7f1f), Some("/a folder/Ondes.clap".into()));
        assert_eq!(
            [
                object_at(maps, 0x7f20),
                object_at(maps, 0x7f30),
                object_at("?", 0)
            ],
            [None, None, None]
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_object_of_a_program_is_the_program() {
        assert_eq!(this_object().unwrap(), std::env::current_exe().unwrap());
    }
}
