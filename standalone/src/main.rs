//! `ondes`: plays neural instruments.
//!
//! Parses the command line and calls the library. Each error is one complete line, `PATH: reason`;
//! the program prints it behind its own name and exits with code 2, or with 130 after Ctrl-C and
//! 143 after SIGTERM.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory, Parser, Subcommand};
#[cfg(feature = "download")]
use ondes::setup_torch;
use ondes::{bench, error_report, export, import, info, interrupt, render, shell, terminal, trust};
#[cfg(feature = "devices")]
use ondes::{devices::command as devices, play};
use ondes_engine::panics::install_hook;

const EXAMPLES: &str = "\
Examples:
  ondes
  ondes info bowed.ondes
  ondes bench bowed.ondes --block 64
  ondes render bowed.ondes --midi song.mid
  ondes render bowed.ondes --input singing.flac --transpose -12 --out cello.wav
  ondes render wind.ondes --midi song.mid --track Melody --control room=0.5 --out - | aplay
  ondes render wind.ondes --input takes --out whistles --normalize -16
  ondes render stage.ondes-session --midi song.mid --stems
  ondes import amp.nam
  ondes export strings --to nn~
  ondes setup-torch
  ondes completions bash > ~/.local/share/bash-completion/completions/ondes";

/// Plays and renders neural instruments and effects. Without a command it opens its window.
#[derive(Parser)]
#[command(name = "ondes", version, about, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "devices")]
    Play(Box<play::PlayArguments>),
    Render(Box<render::RenderArguments>),
    Info(info::InfoArguments),
    Bench(bench::BenchArguments),
    Import(import::ImportArguments),
    Export(export::ExportArguments),
    Trust(trust::TrustArguments),
    #[cfg(feature = "devices")]
    Devices(devices::DevicesArguments),
    #[cfg(feature = "download")]
    SetupTorch(setup_torch::SetupTorchArguments),
    Completions(shell::CompletionsArguments),
    Man(shell::ManArguments),
}

/// Exit code of every failure; clap exits with the same code after a wrong command line.
const FAILURE: u8 = 2;

fn main() -> ExitCode {
    let started = Instant::now();
    install_hook();
    interrupt::listen();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(wrong) => return refuse(&wrong),
    };
    let json = arguments.command.as_ref().and_then(Command::json);
    let result = terminal::contain_panic(|| run(arguments, started));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe: not an error.
        Err(error) if terminal::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // A batch has printed its summary, which is the last object.
            let json = json.filter(|_| {
                !error.is::<interrupt::Interrupted>() && !error.is::<render::FailedFiles>()
            });
            match json.map(|stream| print_json(stream, &error.to_string())) {
                Some(Ok(JsonStream::Error)) => {}
                _ => terminal::print_error(&error),
            }
            ExitCode::from(if error.is::<interrupt::Interrupted>() {
                interrupt::exit_code()
            } else {
                FAILURE
            })
        }
    }
}

/// Stream that a command prints its JSON to.
#[derive(Clone, Copy)]
enum JsonStream {
    Output,
    Error,
}

impl Command {
    /// Returns the stream for JSON; `None` without `--json`.
    fn json(&self) -> Option<JsonStream> {
        let wanted = match self {
            Self::Render(arguments)
                if arguments
                    .out
                    .as_deref()
                    .is_some_and(|out| out.as_os_str() == "-") =>
            {
                return arguments.json.then_some(JsonStream::Error);
            }
            Self::Render(arguments) => arguments.json,
            Self::Info(arguments) => arguments.json,
            Self::Bench(arguments) => arguments.json,
            #[cfg(feature = "devices")]
            Self::Devices(arguments) => arguments.json,
            _ => false,
        };
        wanted.then_some(JsonStream::Output)
    }
}

/// Prints an error as a JSON object where the results would be printed; on standard output, a line
/// for people follows on standard error.
fn print_json(stream: JsonStream, message: &str) -> anyhow::Result<JsonStream> {
    let text = error_report::to_json(message, std::env::args())?;
    match stream {
        JsonStream::Output => terminal::print(&text)?,
        JsonStream::Error => terminal::print_to_stderr(&text)?,
    }
    Ok(stream)
}

/// Prints what is wrong with the command line, or the help that it asks for.
fn refuse(wrong: &clap::Error) -> ExitCode {
    if wrong.use_stderr() && std::env::args().any(|argument| argument == "--json") {
        let text = wrong.to_string();
        let reason = text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        // Without standard output the message and the exit code are all that is left.
        drop(print_json(JsonStream::Output, reason));
    }
    drop(wrong.print());
    ExitCode::from(u8::try_from(wrong.exit_code()).unwrap_or(FAILURE))
}

/// Runs the command; `started` is the start of the program.
fn run(arguments: Arguments, started: Instant) -> anyhow::Result<()> {
    match arguments.command {
        None => open_window(),
        #[cfg(feature = "devices")]
        Some(Command::Play(arguments)) => play::run(&arguments),
        Some(Command::Render(arguments)) => render::run(&arguments, started),
        Some(Command::Info(arguments)) => info::run(&arguments),
        Some(Command::Bench(arguments)) => bench::run(&arguments),
        Some(Command::Import(arguments)) => import::run(&arguments),
        Some(Command::Export(arguments)) => export::run(&arguments),
        Some(Command::Trust(arguments)) => trust::run(&arguments),
        #[cfg(feature = "devices")]
        Some(Command::Devices(arguments)) => devices::run(&arguments),
        #[cfg(feature = "download")]
        Some(Command::SetupTorch(arguments)) => setup_torch::run(&arguments),
        Some(Command::Completions(arguments)) => {
            shell::print_completions(&arguments, Arguments::command())
        }
        Some(Command::Man(arguments)) => shell::print_man_page(&arguments, Arguments::command()),
    }
}

#[cfg(feature = "app")]
fn open_window() -> anyhow::Result<()> {
    ondes::window::run()
}

#[cfg(not(feature = "app"))]
fn open_window() -> anyhow::Result<()> {
    anyhow::bail!("this program was built without its window; name a command (ondes --help)")
}
