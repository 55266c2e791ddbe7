//! Starting other programs, and where things are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context, bail, ensure};

/// The checkout's folder, which cargo names when it runs us: a folder of build output may serve several checkouts, so the one
/// in which we were built may be another.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        Path::new(&package).parent().expect("xtask is a folder of the checkout").to_path_buf()
    });
    &ROOT
}

/// A file as it is named from the checkout's folder.
pub fn from_root(path: &Path) -> std::path::Display<'_> {
    path.strip_prefix(root()).unwrap_or(path).display()
}

/// The cargo that runs us, in the checkout's folder.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Runs a program that says itself what it does.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{}: cannot be started", name(command)))?;
    ensure!(status.success(), "{}: {status}", name(command));
    Ok(())
}

/// Runs a program for what it prints; its complaints go to our standard error.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("{}: cannot be started", name(command)))?;
    ensure!(output.status.success(), "{}: {}", name(command), output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{}: printed what is not text", name(command)))
}

/// Whether a program is there and ends well; it is not heard.
pub fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Builds one of the workspace's programs optimised and says where it is.
pub fn build(package: &str, binary: &str) -> anyhow::Result<PathBuf> {
    let arguments = ["build", "--release", "--package", package, "--bin", binary];
    let messages = output(cargo().args(arguments).arg("--message-format=json-render-diagnostics"))?;
    match executable(&messages, binary) {
        Some(path) => Ok(path.into()),
        None => bail!("cargo built {binary}, but does not say where it is"),
    }
}

/// The path of a shared object among cargo's messages.
pub fn library(messages: &str, name: &str) -> Option<String> {
    let message = |line| serde_json::from_str::<serde_json::Value>(line).ok();
    let mut ours = messages.lines().filter_map(message).filter(|message| message["target"]["name"] == name);
    let shared = |file: &&serde_json::Value| {
        let path = Path::new(file.as_str().unwrap_or_default());
        path.extension().is_some_and(|extension| extension == std::env::consts::DLL_EXTENSION)
    };
    ours.find_map(|message| message["filenames"].as_array()?.iter().find(shared)?.as_str().map(str::to_owned))
}

/// The path of an executable among cargo's messages, one JSON object to a line.
fn executable(messages: &str, binary: &str) -> Option<String> {
    let message = |line| serde_json::from_str::<serde_json::Value>(line).ok();
    let mut ours = messages.lines().filter_map(message).filter(|message| message["target"]["name"] == binary);
    ours.find_map(|message| message["executable"].as_str().map(str::to_owned))
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let first = command.get_args().next().filter(|argument| !argument.to_string_lossy().starts_with('-'));
    let words = [Some(program), first].into_iter().flatten();
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_executable_among_the_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"ondes_engine"},"executable":null}
            not a message
            {"reason":"compiler-artifact","target":{"name":"ondes"},"executable":"/somewhere/release/ondes"}
            {"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages, "ondes").as_deref(), Some("/somewhere/release/ondes"));
        assert_eq!(executable(messages, "ondes_engine"), None);
    }

    #[test]
    fn finds_the_shared_object_among_the_messages() {
        let end = std::env::consts::DLL_EXTENSION;
        let messages = format!(
            r#"{{"reason":"compiler-artifact","target":{{"name":"some"}},"filenames":["/x/libsome.rlib","/x/libsome.{end}"]}}"#
        );
        assert_eq!(library(&messages, "some"), Some(format!("/x/libsome.{end}")));
        assert_eq!(library(&messages, "other"), None);
    }

    #[test]
    fn failure_is_named() {
        let error = run(Command::new("false").arg("of course")).unwrap_err();
        assert!(error.to_string().starts_with("false of course: exit status: 1"), "{error}");
        assert!(run(&mut Command::new("no-such-program")).unwrap_err().to_string().contains("cannot be started"));
    }
}
