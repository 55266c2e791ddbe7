//! `ondes`: plays neural instruments.
//!
//! It reads the command line; what it calls is in the library.
//!
//! Every error is a whole line in itself, `PATH: reason`; here it gets the program's name in front and exit code 2, or 130
//! where somebody interrupted.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory, Parser, Subcommand};
use ondes::devices::command as devices;
use ondes::{bench, import, info, interrupt, play, render, setup_torch, shell, terminal, window};

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
  ondes setup-torch
  ondes completions bash > ~/.local/share/bash-completion/completions/ondes";

/// Plays neural instruments. Without a command it opens its window.
#[derive(Parser)]
#[command(name = "ondes", version, about, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Play(Box<play::PlayArguments>),
    Render(Box<render::RenderArguments>),
    Info(info::InfoArguments),
    Bench(bench::BenchArguments),
    Import(import::ImportArguments),
    Devices(devices::DevicesArguments),
    SetupTorch(setup_torch::SetupTorchArguments),
    Completions(shell::CompletionsArguments),
    Man(shell::ManArguments),
}

/// Exit code of every failure; clap's for a wrong command line is the same.
const FAILURE: u8 = 2;

fn main() -> ExitCode {
    let started = Instant::now();
    let result = match Arguments::parse().command {
        None => window::run(),
        Some(Command::Play(arguments)) => play::run(&arguments),
        Some(Command::Render(arguments)) => render::run(&arguments, started),
        Some(Command::Info(arguments)) => info::run(&arguments),
        Some(Command::Bench(arguments)) => bench::run(&arguments),
        Some(Command::Import(arguments)) => import::run(&arguments),
        Some(Command::Devices(arguments)) => devices::run(&arguments),
        Some(Command::SetupTorch(arguments)) => setup_torch::run(&arguments),
        Some(Command::Completions(arguments)) => shell::complete(&arguments, Arguments::command()),
        Some(Command::Man(arguments)) => shell::explain(&arguments, Arguments::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads what we print has enough of it.
        Err(error) if terminal::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&error);
            ExitCode::from(if error.is::<interrupt::Interrupted>() { interrupt::EXIT_CODE } else { FAILURE })
        }
    }
}
