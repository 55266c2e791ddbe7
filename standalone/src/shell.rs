//! Shell completions and man pages.

mod bundled_names;

use anyhow::bail;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::terminal;

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  ondes completions bash > ~/.local/share/bash-completion/completions/ondes
  ondes completions zsh > ~/.zfunc/_ondes
  ondes completions fish > ~/.config/fish/completions/ondes.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  ondes man > ~/.local/share/man/man1/ondes.1
  ondes man render > ~/.local/share/man/man1/ondes-render.1
  ondes man render | man -l -";

/// Prints a script that completes the command line of ondes in a shell
#[derive(Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArguments {
    /// Shell to complete in
    pub shell: Shell,
}

/// Prints a man page of ondes, or of one of its commands
#[derive(Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArguments {
    /// Command, such as render
    pub command: Option<String>,
}

/// Prints a completion script.
///
/// # Errors
/// Returns an error if standard output cannot be written.
pub fn print_completions(
    arguments: &CompletionsArguments,
    mut program: Command,
) -> anyhow::Result<()> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, name, &mut script);
    let script = bundled_names::add(
        String::from_utf8_lossy(&script).trim_end(),
        arguments.shell,
        &program,
    );
    terminal::print(script.trim_end())
}

/// Prints a man page.
///
/// # Errors
/// Returns an error if there is no such command or standard output cannot be written.
pub fn print_man_page(arguments: &ManArguments, program: Command) -> anyhow::Result<()> {
    let mut program = program.disable_help_subcommand(true);
    // Gives the commands their full names.
    program.build();
    let command = match &arguments.command {
        None => program,
        Some(name) => match program.find_subcommand(name) {
            Some(command) => command.clone(),
            None => {
                let known: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
                bail!(
                    "man: unknown command {name:?}; available: {}",
                    known.join(", ")
                );
            }
        },
    };
    // The notes after the options are laid out in lines; as running text the examples would be
    // unreadable.
    let notes = command.get_after_help().map(ToString::to_string);
    let page = Man::new(command.after_help(None::<&str>))
        .source(concat!("ondes ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text)?;
    if let Some(notes) = notes {
        let mut section = Roff::new();
        section.control("SH", ["NOTES"]).control("nf", []);
        for line in notes.lines() {
            section.text([roman(line)]);
        }
        section.control("fi", []);
        section.to_writer(&mut text)?;
    }
    terminal::print(String::from_utf8_lossy(&text).trim_end())
}
