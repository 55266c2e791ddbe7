//! Runs other programs, cargo among them, in the checkout.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context, bail, ensure};

/// Returns the checkout's folder. Cargo names it at run time: several checkouts may share one
/// folder of build output, so the path at build time may be another checkout's.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR")
            .unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        Path::new(&package)
            .parent()
            .expect("xtask is a folder of the checkout")
            .to_path_buf()
    });
    &ROOT
}

/// Returns `path` relative to the checkout, for messages.
pub fn from_root(path: &Path) -> std::path::Display<'_> {
    path.strip_prefix(root()).unwrap_or(path).display()
}

/// Returns the folder in the user's cache for what survives a clean checkout.
///
/// # Errors
/// Neither `XDG_CACHE_HOME` nor `HOME` is set.
pub fn cache() -> anyhow::Result<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let caches = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    Ok(caches
        .context("there is no folder for a cache: HOME is not set")?
        .join("ondes"))
}

/// Returns the folder of cargo's build output.
pub fn build_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns the cargo that runs this program, to be run in the checkout.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Runs a program with its output on the terminal.
///
/// # Errors
/// The program cannot be started, or fails.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{}: cannot be started", command_name(command)))?;
    ensure!(status.success(), "{}: {status}", command_name(command));
    Ok(())
}

/// Runs a program and returns its standard output; its standard error goes to the terminal.
///
/// # Errors
/// The program cannot be started, fails, or prints bytes that are not UTF-8.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("{}: cannot be started", command_name(command)))?;
    ensure!(
        output.status.success(),
        "{}: {}",
        command_name(command),
        output.status
    );
    String::from_utf8(output.stdout)
        .with_context(|| format!("{}: its output is not UTF-8", command_name(command)))
}

/// Returns `true` if the program can be run and succeeds. Discards its output.
pub fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Builds a program of the workspace and returns its path; `options` choose the profile and
/// features.
///
/// # Errors
/// The build fails.
pub fn build(package: &str, binary: &str, options: &[&str]) -> anyhow::Result<PathBuf> {
    let mut build = cargo();
    build.args([
        "build",
        "--package",
        package,
        "--bin",
        binary,
        "--message-format=json-render-diagnostics",
    ]);
    let messages = output(build.args(options))?;
    match executable(&messages, binary) {
        Some(path) => Ok(path.into()),
        None => bail!("cargo built {binary} without reporting its path"),
    }
}

/// Finds the path of a shared library among cargo's messages.
pub fn library(messages: &str, name: &str) -> Option<String> {
    let message = |line| serde_json::from_str::<serde_json::Value>(line).ok();
    let mut ours = messages
        .lines()
        .filter_map(message)
        .filter(|message| message["target"]["name"] == name);
    let shared = |file: &&serde_json::Value| {
        let path = Path::new(file.as_str().unwrap_or_default());
        path.extension()
            .is_some_and(|extension| extension == std::env::consts::DLL_EXTENSION)
    };
    ours.find_map(|message| {
        message["filenames"]
            .as_array()?
            .iter()
            .find(shared)?
            .as_str()
            .map(str::to_owned)
    })
}

/// Finds the path of an executable among cargo's messages, one JSON object per line.
pub fn executable(messages: &str, binary: &str) -> Option<String> {
    let message = |line| serde_json::from_str::<serde_json::Value>(line).ok();
    let mut ours = messages
        .lines()
        .filter_map(message)
        .filter(|message| message["target"]["name"] == binary);
    ours.find_map(|message| message["executable"].as_str().map(str::to_owned))
}

fn command_name(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let first = command
        .get_args()
        .next()
        .filter(|argument| !argument.to_string_lossy().starts_with('-'));
    let words = [Some(program), first].into_iter().flatten();
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_executable_among_cargo_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"ondes_engine"},"executable":null}
            not a message
            {"reason":"compiler-artifact","target":{"name":"ondes"},"executable":"/somewhere/release/ondes"}
            {"reason":"build-finished","success":true}"#;
        assert_eq!(
            executable(messages, "ondes").as_deref(),
            Some("/somewhere/release/ondes")
        );
        assert_eq!(executable(messages, "ondes_engine"), None);
    }

    #[test]
    fn finds_the_shared_library_among_cargo_messages() {
        let end = std::env::consts::DLL_EXTENSION;
        let messages = format!(
            r#"{{"reason":"compiler-artifact","target":{{"name":"some"}},"filenames":["/x/libsome.rlib","/x/libsome.{end}"]}}"#
        );
        assert_eq!(
            library(&messages, "some"),
            Some(format!("/x/libsome.{end}"))
        );
        assert_eq!(library(&messages, "other"), None);
    }

    #[test]
    fn a_failing_command_is_named() {
        let error = run(Command::new("false").arg("of course")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("false of course: exit status: 1"),
            "{error}"
        );
        assert!(
            run(&mut Command::new("no-such-program"))
                .unwrap_err()
                .to_string()
                .contains("cannot be started")
        );
    }
}
