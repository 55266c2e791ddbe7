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
    format!("{}ondes_torch{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// The folder of the user's data that the library is installed in; none where nothing says where those are.
#[must_use]
pub fn installed() -> Option<PathBuf> {
    Some(home("XDG_DATA_HOME", ".local/share")?.join("ondes").join("torch"))
}

/// Where the library may be, the likeliest first: the file that the environment names, and nothing else where it names one; beside
/// the program; where it is installed.
pub fn libraries() -> Vec<PathBuf> {
    if let Some(named) = variable(LIBRARY) {
        return vec![named.into()];
    }
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(|program| program.parent()).map(PathBuf::from);
    [beside, installed()].into_iter().flatten().map(|folder| folder.join(library_file())).collect()
}

/// Where the libraries of libtorch may be, the likeliest first.
pub fn libtorch() -> Vec<PathBuf> {
    let named = variable(LIBTORCH).map(PathBuf::from);
    let cached =
        home("XDG_CACHE_HOME", ".cache").map(|cache| cache.join(format!("ondes/libtorch-{LIBTORCH_VERSION}-cpu")));
    [named, cached].into_iter().flatten().map(|folder| folder.join("lib")).collect()
}
