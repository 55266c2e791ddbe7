//! `ondes trust`: which TorchScript programs may run.

use std::path::{Path, PathBuf, absolute};

use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};
use ondes_player::library;
use ondes_player::trust::{self, Answer};

use crate::rack::Mixer;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  ondes trust list
  ondes trust add birds.ts
  ondes trust remove birds.ts";

/// Lists and changes which TorchScript programs may run when a session, preset or project names
/// them.
///
/// A program is code of other people, so the window of app and plugin asks once per file. The
/// answers are remembered by the content of the file.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct TrustArguments {
    #[command(subcommand)]
    command: TrustCommand,
}

#[derive(Subcommand)]
enum TrustCommand {
    /// List the answers: allowed or refused, hash, file
    List,
    /// Allow programs without asking
    Add {
        /// TorchScript programs
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Forget answers, so that the window asks again
    Remove {
        /// Files, or hashes as `list` prints them
        #[arg(required = true, value_name = "FILE|HASH")]
        programs: Vec<String>,
    },
}

/// Lists or changes the answers.
///
/// # Errors
/// Returns an error if a file is no program, there is no answer for it, or the answers cannot be
/// written.
pub fn run(arguments: &TrustArguments) -> anyhow::Result<()> {
    match &arguments.command {
        TrustCommand::List => trust::answers().iter().try_for_each(|(hash, answer)| {
            let word = if answer.run { "allowed" } else { "refused" };
            terminal::print(&terminal::sanitize(&format!(
                "{word} {hash} {}",
                answer.path.display()
            )))
        }),
        TrustCommand::Add { files } => files.iter().try_for_each(|file| add(file)),
        TrustCommand::Remove { programs } => {
            programs.iter().try_for_each(|program| remove(program))
        }
    }
}

fn add(file: &Path) -> anyhow::Result<()> {
    let mut program = library::program(file).map_err(|error| anyhow!("{error}"))?;
    program.path = absolute(file).unwrap_or(program.path);
    trust::remember(&program, true).map_err(not_saved)
}

fn remove(program: &str) -> anyhow::Result<()> {
    let path = absolute(program).ok();
    let content = library::program(Path::new(program)).ok();
    let answers = trust::answers();
    let is_named = |(hash, answer): &(&String, &Answer)| {
        [
            Some(program),
            content.as_ref().map(|content| content.hash.as_str()),
        ]
        .contains(&Some(hash.as_str()))
            || Some(&answer.path) == path.as_ref()
    };
    let named: Vec<&String> = answers
        .iter()
        .filter(is_named)
        .map(|(hash, _)| hash)
        .collect();
    if named.is_empty() {
        bail!("{program}: no answer is remembered for it; see `ondes trust list`");
    }
    named
        .into_iter()
        .try_for_each(|hash| trust::forget(hash).map_err(not_saved))
}

fn not_saved(error: std::io::Error) -> anyhow::Error {
    anyhow!("the answers cannot be saved: {error}")
}

/// Refuses a session with a program that may not run.
///
/// # Errors
/// Returns an error that names the session and the program.
pub(crate) fn refuse_untrusted(mixer: &Mixer, session: &Path) -> anyhow::Result<()> {
    match mixer
        .tracks()
        .find_map(|(_, track)| track.instance.untrusted_program())
    {
        Some(program) => bail!(
            "{}: {program}; give --trust to run the programs of this session",
            session.display()
        ),
        None => Ok(()),
    }
}
