//! `ondes-train circuit`: plays a sound through a simulated circuit, or writes everything for a capture
//! of its knobs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use ondes_engine::dsp::level::peak;
use ondes_engine::media::{WavBits, read_mono};
use ondes_engine::model::Gear;
use ondes_physical_models::circuits::{self, Circuit, Positions, SCALE};
use ondes_training::tasks::capture::config::{CardConfig, KnobConfig, PairConfig};
use ondes_training::tasks::capture::knob_positions::knob_positions;
use ondes_training::tasks::capture::signal;
use ondes_training::value_parser;
use rayon::prelude::*;
use serde::Serialize;

use crate::commands::capture::write_wav;

/// Peak below which a take is too quiet to learn from.
const QUIET: f32 = 0.003;
/// Takes that may be too quiet for one that is not.
const MOST_TRIES: usize = 4;

/// Options of `circuit`.
#[derive(Args)]
pub struct CircuitArguments {
    /// Circuit.
    #[arg(value_parser = PossibleValuesParser::new(circuits::names()))]
    name: String,
    /// Audio file to process; several channels are mixed to mono.
    #[arg(long = "in", value_name = "DRY", required_unless_present = "recipe")]
    input: Option<PathBuf>,
    /// WAV file to write: the same sample rate, mono, 32-bit float.
    #[arg(long, value_name = "WET", required_unless_present = "recipe")]
    out: Option<PathBuf>,
    /// Position of a knob, 0 to 10; repeat for several. Others stay at their defaults.
    #[arg(long = "knob", value_name = "NAME=POSITION", value_parser = setting)]
    knobs: Vec<(String, f64)>,
    /// Writes takes at many positions of the knobs into this folder instead, with the recipe NAME.toml
    /// for `ondes-train capture`.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["input", "out", "knobs"])]
    recipe: Option<PathBuf>,
    /// Takes of the recipe, the first with the knobs at their defaults.
    #[arg(long, default_value_t = 24, requires = "recipe", value_parser = clap::value_parser!(u16).range(2..=1_000))]
    positions: u16,
    /// Length of each take, seconds, 10 to 1200.
    #[arg(long, default_value_t = 20.0, requires = "recipe", value_parser = seconds)]
    seconds: f64,
    /// Seed of the positions and of what is played.
    #[arg(long, default_value_t = 0, requires = "recipe", value_parser = clap::value_parser!(u64).range(..1_000))]
    seed: u64,
}

fn seconds(text: &str) -> Result<f64, String> {
    value_parser::in_range(
        text,
        |seconds| (10.0..=1_200.0).contains(&seconds),
        "must be 10 to 1200 seconds",
    )
}

fn setting(text: &str) -> Result<(String, f64), String> {
    let (name, position) = text
        .split_once('=')
        .ok_or("use NAME=POSITION, such as Drive=5")?;
    let position = position
        .parse()
        .map_err(|_| format!("{position:?} is no number"))?;
    Ok((name.to_owned(), position))
}

/// Lists the circuits with their knobs, for the help of the command.
pub fn list() -> String {
    let mut text = "Circuits, and the default positions of their knobs:".to_owned();
    for circuit in &circuits::ALL {
        text += &format!(
            "\n  {:15} {} {}.",
            circuit.name,
            circuit.description,
            shown(circuit, circuit.defaults())
        );
    }
    text
}

/// Returns the positions of a circuit's knobs in words.
fn shown(circuit: &Circuit, positions: Positions) -> String {
    let knobs: Vec<_> = circuit
        .shown(positions)
        .map(|(name, number)| format!("{name} {number}"))
        .collect();
    knobs.join(", ")
}

/// Processes a file with a circuit, or writes the takes and the recipe of a capture.
pub fn run(options: &CircuitArguments) -> anyhow::Result<()> {
    let circuit = circuits::circuit(&options.name)?;
    if let Some(folder) = &options.recipe {
        return write_recipe(&circuit, folder, options);
    }
    let (input, out) = options
        .input
        .as_ref()
        .zip(options.out.as_ref())
        .context("use --in and --out, or --recipe")?;
    let settings = options
        .knobs
        .iter()
        .map(|(name, number)| (name.as_str(), *number));
    let positions = circuit.positions(settings)?;
    let (dry, rate) = read_mono(input)?;
    let wet = circuit
        .play(positions, &dry, f64::from(rate))
        .with_context(|| options.name.clone())?;
    write_wav(out, &wet, rate, WavBits::Float32)?;
    println!(
        "{}: {} {}, {:.1} s",
        out.display(),
        circuit.description,
        shown(&circuit, positions),
        wet.len() as f64 / f64::from(rate)
    );
    Ok(())
}

/// Recipe of a capture with knobs: those sections of `CaptureConfig` that a circuit knows.
#[derive(Serialize)]
struct Recipe {
    card: CardConfig,
    knob: BTreeMap<String, KnobConfig>,
    pair: Vec<PairConfig>,
}

/// Signal, and what a circuit makes of it with its knobs at these positions.
struct Take {
    positions: Positions,
    dry: Vec<f32>,
    wet: Vec<f32>,
}

/// Writes takes of a circuit and the recipe that lists them.
fn write_recipe(
    circuit: &Circuit,
    folder: &Path,
    options: &CircuitArguments,
) -> anyhow::Result<()> {
    let count = usize::from(options.positions);
    let mut pairs = Vec::new();
    let mut tried = 0;
    while pairs.len() < count {
        ensure!(
            tried < MOST_TRIES * count,
            "{} is silent at most positions",
            circuit.name
        );
        let next = tried..tried + count - pairs.len();
        tried = next.end;
        let takes: Vec<Take> = next
            .into_par_iter()
            .map(|number| take(circuit, options, number))
            .collect::<anyhow::Result<_>>()?;
        for take in takes.iter().filter(|take| peak(&take.wet) >= QUIET) {
            pairs.push(write_take(circuit, folder, pairs.len(), take)?);
        }
    }
    let knob = |knob: &circuits::Knob| {
        let config = KnobConfig {
            min: Some(0.0),
            max: Some(SCALE as f32),
            default: Some((SCALE * knob.default) as f32),
            description: knob.description.to_owned(),
            ..KnobConfig::default()
        };
        (knob.name.to_owned(), config)
    };
    let recipe = Recipe {
        card: CardConfig {
            name: circuit.title.to_owned(),
            description: circuit.description.to_owned(),
            gear: Gear {
                kind: circuit.kind.to_owned(),
                tone: circuit.tone.to_owned(),
                ..Gear::default()
            },
            ..CardConfig::default()
        },
        knob: circuit.knobs.iter().map(knob).collect(),
        pair: pairs,
    };
    let path = folder.join(circuit.name).with_extension("toml");
    std::fs::write(&path, toml::to_string(&recipe)?)
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    println!(
        "{}: {} takes of {} s; train it with ondes-train capture",
        path.display(),
        recipe.pair.len(),
        options.seconds
    );
    Ok(())
}

/// Plays a take; number 0 has the knobs at their defaults.
fn take(circuit: &Circuit, options: &CircuitArguments, number: usize) -> anyhow::Result<Take> {
    let mut positions = circuit.defaults();
    if number > 0 {
        let chosen = knob_positions(circuit.knobs.len(), options.seed, number);
        positions
            .iter_mut()
            .zip(chosen)
            .for_each(|(position, chosen)| *position = chosen);
    }
    let part = number + 1_000 * options.seed as usize;
    let dry = signal::part(options.seconds, part);
    let wet = circuit
        .play(positions, &dry, f64::from(signal::RATE))
        .with_context(|| format!("{} at {}", circuit.name, shown(circuit, positions)))?;
    Ok(Take {
        positions,
        dry,
        wet,
    })
}

/// Writes both files of a take; returns its entry in the recipe.
fn write_take(
    circuit: &Circuit,
    folder: &Path,
    number: usize,
    take: &Take,
) -> anyhow::Result<PairConfig> {
    let file = |end: &str| PathBuf::from(format!("{}-{number:02}-{end}.wav", circuit.name));
    let (dry, wet) = (file("dry"), file("wet"));
    write_wav(
        &folder.join(&dry),
        &take.dry,
        signal::RATE,
        WavBits::Float32,
    )?;
    write_wav(
        &folder.join(&wet),
        &take.wet,
        signal::RATE,
        WavBits::Float32,
    )?;
    let knobs = circuit
        .shown(take.positions)
        .map(|(name, number)| (name.to_owned(), number as f32));
    Ok(PairConfig {
        dry,
        wet,
        flip: false,
        knobs: knobs.collect(),
    })
}
