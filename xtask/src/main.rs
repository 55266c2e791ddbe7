//! `cargo xtask`: what is done around the code.
//!
//! [`setup`] installs what is missing, [`libtorch`] is its larger half. [`demo`] plays the piece of [`compose`] and the
//! recording of [`phrase`], puts the parts together with [`mix`] and draws them with [`picture`], which stands on
//! [`ondes_canvas`] and [`mel`]. [`bundle`] makes the plugin ready for DAWs. [`gpu`] checks libtorch on a GPU. [`train`] makes
//! the bundled models again and [`mod@test`] runs all tests. [`process`] is how each of them starts other programs.

#![forbid(unsafe_code)]

mod bundle;
mod compose;
mod demo;
mod gpu;
mod libtorch;
mod mel;
mod mix;
mod phrase;
mod picture;
mod process;
mod setup;
mod test;
mod train;
mod vst3_presets;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Set-up, demo, training and tests of Ondes.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Installs what building needs and this machine lacks.
    Setup {
        /// Prepares what only training and the tests need too: Xvfb, Ardour, jackd, and libtorch, which downloads 0.55 GB once
        /// and keeps 0.5 GB.
        #[arg(long)]
        torch: bool,
    },
    /// Renders the bundled piece with the bundled instruments to `target/demo`, with a picture.
    Demo,
    /// Makes the plugin's bundles in `target/bundled`: CLAP and VST3.
    Bundle {
        /// The app, too, and beside both the library that plays TorchScript models; needs libtorch, which `setup --torch`
        /// prepares. Where it is unpacked, `ondes setup-torch` fetches a libtorch.
        #[arg(long)]
        torch: bool,
    },
    /// Makes the plugin's bundles and puts them, and its presets for VST3 hosts, where DAWs look, for this user.
    Install {
        /// Makes the library that plays TorchScript models instead, and puts it where plugin and app look; needs libtorch, which
        /// `setup --torch` prepares.
        #[arg(long)]
        torch: bool,
    },
    /// Runs all tests of all crates.
    Test,
    /// Checks what libtorch computes on a GPU, measures it, and writes `target/gpu-check/report.md`; needs libtorch with CUDA.
    GpuCheck {
        /// Where to compute: cuda:N, or cpu, which goes through the same list.
        #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
        device: String,
        /// Seconds that are measured for each number of sessions and each hop.
        #[arg(long, value_name = "S", default_value = "10")]
        seconds: String,
    },
    /// Makes bundled models again: corpora or circuits, then training.
    Train {
        /// Which.
        #[arg(value_parser = train::choices())]
        name: String,
        /// Trains for so many steps (of a capture: epochs) instead of the recipe's, into `target/training` instead of
        /// `assets/models`.
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        steps: Option<u64>,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Setup { torch } => setup::setup(torch),
        Command::Demo => demo::demo(),
        Command::Bundle { torch: false } => bundle::bundle().map(drop),
        Command::Bundle { torch: true } => bundle::bundle_with_torch(),
        Command::Install { torch: true } => bundle::install_torch(),
        Command::Install { torch: false } => bundle::install(),
        Command::Test => test::test(),
        Command::GpuCheck { device, seconds } => gpu::check(&device, &seconds),
        Command::Train { name, steps } => train::train(&name, steps),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
