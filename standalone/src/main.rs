//! `ondes`: plays neural instruments.
//!
//! Read it in this order: [`render`] (a MIDI file or a recording becomes a WAV), [`info`] (a model's card), then what both
//! use: [`terminal`], [`progress`] and [`memory`].
//!
//! Every error is a whole line in itself, `PATH: reason`; here it gets the program's name in front and exit code 2.

#![forbid(unsafe_code)]

mod info;
mod memory;
mod progress;
mod render;
mod terminal;

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  ondes info bowed.ondes
  ondes render bowed.ondes --midi song.mid
  ondes render bowed.ondes --input singing.flac --transpose -12 --out cello.wav
  ondes render wind.ondes --midi song.mid --track Melody --control room=0.5 --out - | aplay";

/// Plays neural instruments.
#[derive(Parser)]
#[command(name = "ondes", version, about, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Render(render::RenderArguments),
    Info(info::InfoArguments),
}

/// Exit code of every failure; clap's for a wrong command line is the same.
const FAILURE: u8 = 2;

fn main() -> ExitCode {
    let started = Instant::now();
    let result = match Arguments::parse().command {
        Command::Render(arguments) => render::run(&arguments, started),
        Command::Info(arguments) => info::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads what we print has enough of it.
        Err(error) if terminal::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&error);
            ExitCode::from(FAILURE)
        }
    }
}
