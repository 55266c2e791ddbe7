//! Where the library and libtorch are looked for.

use std::ffi::OsString;
use std::path::PathBuf;

/// The version of libtorch that the library is made for.
pub const LIBTORCH_VERSION: &str = "2.11.0";
/// The variable that names the library.
pub const LIBRARY: &str = "ONDES_TORCH_LIBRARY";
/// The variable that names the folder of libtorch, as for building.
const LIBTORCH: &str = "LIBTORCH";

/// The value of a variable; none where it is empty.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn home(variable_name: &str, below: &str) -> Option<PathBuf> {
    variable(variable_name).map(PathBuf::from).or_else(|| Some(PathBuf::from(variable("HOME")?).join(below)))
}

/// The file of the library, as this system names it.
#[must_use]
pub fn library_file() -> String {
    file("ondes_torch")
}

/// The folder of the user's data that the library is installed in; none where nothing says where those are.
#[must_use]
pub fn installed() -> Option<PathBuf> {
    Some(home("XDG_DATA_HOME", ".local/share")?.join("ondes").join("torch"))
}

/// The folder that `ondes setup-torch` puts libtorch into; none where nothing says where the user's data are.
#[must_use]
pub fn libtorch_folder() -> Option<PathBuf> {
    Some(home("XDG_DATA_HOME", ".local/share")?.join("ondes").join(format!("libtorch-{LIBTORCH_VERSION}-cpu")))
}

/// Where the library may be, the likeliest first: the file that the environment names, and nothing else where it names one; beside
/// the program; beside the plugin; where it is installed.
#[must_use]
pub fn libraries() -> Vec<PathBuf> {
    if let Some(named) = variable(LIBRARY) {
        return vec![named.into()];
    }
    let beside = |file: Option<PathBuf>| file.and_then(|file| Some(file.parent()?.to_owned()));
    let mut folders = Vec::new();
    for folder in [beside(std::env::current_exe().ok()), beside(this_object()), installed()].into_iter().flatten() {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.into_iter().map(|folder| folder.join(library_file())).collect()
}

/// The file that this code was loaded from: in a host it is the plugin.
fn this_object() -> Option<PathBuf> {
    object_at(&std::fs::read_to_string("/proc/self/maps").ok()?, this_object as fn() -> _ as usize)
}

/// The file that is mapped at an address. A line of the table is `FROM-TO MODE OFFSET DEVICE INODE PATH` (proc_pid_maps(5)).
fn object_at(maps: &str, address: usize) -> Option<PathBuf> {
    let is_here = |line: &&str| {
        let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).unwrap_or_default();
        let bound = |digits| usize::from_str_radix(digits, 16).ok();
        bound(from).zip(bound(to)).is_some_and(|(from, to)| (from..to).contains(&address))
    };
    let path = maps.lines().find(is_here)?;
    Some(path[path.find('/')?..].into())
}

/// Where the libraries of libtorch may be, the likeliest first.
pub fn libtorch() -> Vec<PathBuf> {
    let named = variable(LIBTORCH).map(PathBuf::from);
    let cached =
        home("XDG_CACHE_HOME", ".cache").map(|cache| cache.join(format!("ondes/libtorch-{LIBTORCH_VERSION}-cpu")));
    [named, libtorch_folder(), cached].into_iter().flatten().map(|folder| folder.join("lib")).collect()
}

/// The folder of the libraries of libtorch that is taken.
#[must_use]
pub fn libtorch_found() -> Option<PathBuf> {
    libtorch().into_iter().find(|folder| folder.join(file("torch_cpu")).is_file())
}

/// How this system names a library.
pub fn file(name: &str) -> String {
    format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_the_one_that_is_mapped_where_the_code_is() {
        let maps = "7f00-7f10 r--p 00000000 00:00 1 /usr/lib/other.so\n7f10-7f20 r-xp 00000000 00:00 2   /a folder/Ondes.clap\n7f20-7f30 rw-p 00000000 00:00 0 \n";
        assert_eq!(object_at(maps, 0x7f1f), Some("/a folder/Ondes.clap".into()));
        assert_eq!([object_at(maps, 0x7f20), object_at(maps, 0x7f30), object_at("?", 0)], [None, None, None]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn in_a_program_the_object_is_the_program() {
        assert_eq!(this_object().unwrap(), std::env::current_exe().unwrap());
    }
}
