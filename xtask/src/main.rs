//! `cargo xtask`: tasks around the code.
//!
//! [`setup`] installs what building needs. [`demo`] renders the bundled session and draws it:
//! [`sound`] reads the audio, [`picture`] draws it with [`ondes_canvas`]. [`bundle`] packs the
//! plugin for DAWs, with [`vst3_presets`] and the licences of what it contains ([`notices`]).
//! [`docs`] builds the book and checks every link with [`markdown`], [`pictures`] draws the window
//! for it. [`train`] makes the bundled models again, [`mod@test`] runs all tests, among them those
//! of [`pedalboard`] and the counts of [`instructions`], [`exporters`] those with models of other
//! projects' exporters, [`fuzz`] reads damaged files, [`conformance`] compares with other programs,
//! [`gpu`] checks libtorch on a GPU. All of them run other programs through [`process`].

#![forbid(unsafe_code)]

mod bundle;
mod conformance;
mod demo;
mod docs;
mod exporters;
mod fuzz;
mod gpu;
mod instructions;
mod markdown;
mod notices;
mod pedalboard;
mod picture;
mod pictures;
mod process;
mod setup;
mod sound;
mod test;
mod train;
mod vst3_presets;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::setup::Purpose;

/// Set-up, demo, documentation, training and tests of Ondes.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Installs the packages that building needs.
    Setup {
        /// Prepares training instead: a compiler and libtorch (downloads 0.55 GB once, keeps 0.5
        /// GB).
        #[arg(long)]
        torch: bool,
        /// Prepares everything that tests need: also Xvfb, Ardour, jackd, valgrind and pip (0.7
        /// GB).
        #[arg(long)]
        tests: bool,
    },
    /// Renders the bundled piece with the bundled instruments into `target/demo`, and draws it.
    Demo,
    /// Builds the plugin and packs it into `target/bundled`, as CLAP and VST3.
    Bundle {
        /// Also packs the app, and the library that plays TorchScript models beside both. Downloads
        /// libtorch once. Users then run `ondes setup-torch` to download libtorch.
        #[arg(long)]
        torch: bool,
    },
    /// Builds the plugin and installs it, with its presets for VST3 hosts, for this user.
    Install {
        /// Builds and installs the library that plays TorchScript models instead. Downloads
        /// libtorch once.
        #[arg(long)]
        torch: bool,
    },
    /// Builds the book and the API documentation into `target/doc`; installs mdBook if it is
    /// missing.
    Docs {
        /// Only checks links, anchors and the table of contents.
        #[arg(long)]
        check: bool,
    },
    /// Draws all pictures of the window again, for the book and for tests.
    Pictures,
    /// Runs all tests of all crates.
    Test {
        /// Instead plays models made by the published exporters of nn~, RAVE and Neutone against
        /// PyTorch, and starts NCCL. Downloads 3 GB once and keeps 5 GB.
        #[arg(long)]
        exporters: bool,
    },
    /// Counts the instructions of the engine's hot paths in valgrind, and fails if one takes over
    /// 2 % more than `engine/benches/instructions.txt` says.
    Instructions {
        /// Writes the counts to that file instead.
        #[arg(long)]
        accept: bool,
    },
    /// Compares how Ondes and other programs read the files of `tests/conformance`, and writes
    /// `docs/src/formats.md`. Installs these programs if they are missing.
    Conformance,
    /// Reads damaged and malicious files of all formats; `cargo test` reads the first thousands.
    Fuzz(fuzz::Extent),
    /// Plays the app's tracks and the plugins with everything at once, as fast as it goes;
    /// `cargo test` plays two minutes.
    Soak {
        /// Minutes of sound.
        #[arg(long, value_name = "N", default_value_t = 60.0)]
        minutes: f64,
        /// Seed of the actions: another one gives others.
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// Checks and measures libtorch on a GPU, and writes `target/gpu-check/report.md`. Needs a
    /// libtorch with CUDA.
    GpuCheck {
        /// Device to check: cuda:N, or cpu for a trial run.
        #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
        device: String,
        /// Seconds to measure for each number of sessions and each hop.
        #[arg(long, value_name = "S", default_value = "10")]
        seconds: String,
    },
    /// Trains bundled models again, from corpora or circuits.
    Train {
        /// Model to train, or `all`.
        #[arg(value_parser = train::choices())]
        name: String,
        /// Trial: trains for this many steps (captures: epochs) and writes to `target/training`
        /// instead of `assets/models`.
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        steps: Option<u64>,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Setup { torch, tests } => setup::setup(match (tests, torch) {
            (true, _) => Purpose::Testing,
            (false, true) => Purpose::Training,
            (false, false) => Purpose::Building,
        }),
        Command::Demo => demo::demo(),
        Command::Bundle { torch: false } => bundle::bundle().map(drop),
        Command::Bundle { torch: true } => bundle::bundle_with_torch(),
        Command::Install { torch: true } => bundle::install_torch(),
        Command::Install { torch: false } => bundle::install(),
        Command::Docs { check: true } => docs::check(),
        Command::Docs { check: false } => docs::build(),
        Command::Pictures => pictures::draw(),
        Command::Test { exporters: false } => test::test(),
        Command::Test { exporters: true } => exporters::test(),
        Command::Instructions { accept } => instructions::check(accept),
        Command::Conformance => conformance::compare(),
        Command::Fuzz(extent) => fuzz::fuzz(&extent),
        Command::Soak { minutes, seed } => test::soak(minutes, seed),
        Command::GpuCheck { device, seconds } => gpu::check(&device, &seconds),
        Command::Train { name, steps } => train::train(&name, steps),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
