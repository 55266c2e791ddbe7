//! Students for distillation.

use std::path::Path;

use anyhow::{Context, ensure};
use ondes_engine::files;
use ondes_engine::model::{Control, Kind, Model, Weights, file};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::tasks::capture::architecture::Architecture;
use crate::tasks::codec::config::CodecNetworkConfig;
use crate::tasks::codec::principal::with_own_latents;
use crate::tasks::codec::{self, CodecConfig};
use crate::tasks::generator::calibration::uncalibrated;
use crate::tasks::generator::config::PriorNetworkConfig;
use crate::tasks::generator::{self, PriorConfig};
use crate::tasks::instrument::config::{Config, NetworkConfig, StatedPerformance};
use crate::tasks::instrument::network;
use crate::trainer::recipe_file::MAX_BYTES;

/// Part of a recipe that a student needs.
#[derive(Deserialize)]
#[serde(bound(deserialize = "N: DeserializeOwned + Default"))]
struct Recipe<N> {
    #[serde(default)]
    network: N,
}

/// Makes the student of a teacher from a description: a model file, which keeps its weights; for a
/// capture, the name of an [`Architecture`]; for others, a TOML file whose table `network` gives
/// the sizes.
///
/// # Errors
/// Returns an error if there is no such file or size, or its kind or sample rate differs from the
/// teacher's.
pub fn student(description: &str, teacher: &Model, seed: u64) -> anyhow::Result<Model> {
    let header = teacher.header();
    let path = Path::new(description);
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    let student = if file::EXTENSIONS.contains(&extension) {
        file::read(path)?
    } else {
        match header.kind {
            Kind::Effect => {
                Architecture::named(description)?.untrained(seed, header.sample_rate)?
            }
            Kind::Instrument => instrument(path, teacher, seed)?,
            Kind::Codec => codec(path, seed)?,
            Kind::Generator => generator(path, teacher, seed)?,
        }
    };
    let student_header = student.header();
    ensure!(
        student_header.kind == header.kind && student_header.sample_rate == header.sample_rate,
        "{description}: its kind or sample rate differs from the teacher's"
    );
    let mut student_header = student_header.clone();
    student_header.card = header.card.clone();
    student_header.card.quality.clear();
    Ok(student.with_header(student_header)?)
}

/// Reads the table `network` of a recipe.
fn network_of<N: DeserializeOwned + Default>(path: &Path) -> anyhow::Result<N> {
    let name = path.display();
    let text = files::read_to_string(path, MAX_BYTES)
        .with_context(|| format!("{name}: cannot be read"))?;
    let recipe: Recipe<N> = toml::from_str(&text)
        .map_err(|error| anyhow::anyhow!("{name}: {}", error.message().replace('\n', " ")))?;
    Ok(recipe.network)
}

/// Makes an untrained codec in the form for playing, without variances.
fn codec(path: &Path, seed: u64) -> anyhow::Result<Model> {
    let network: CodecNetworkConfig = network_of(path)?;
    let config = CodecConfig {
        seed,
        ..CodecConfig::new(network, Path::new("."), Path::new("student.ondes"))?
    };
    config.check().with_context(|| path.display().to_string())?;
    with_own_latents(&codec::network::untrained(&config)?)
}

/// Makes an untrained generator with the codec, the inputs and the knobs of a teacher.
fn generator(path: &Path, teacher: &Model, seed: u64) -> anyhow::Result<Model> {
    let network: PriorNetworkConfig = network_of(path)?;
    network
        .check()
        .with_context(|| path.display().to_string())?;
    let config = PriorConfig::new(Path::new("."), Path::new("student.ondes"))?;
    generator::network::untrained_like(
        &uncalibrated(teacher)?,
        &PriorConfig {
            seed,
            network,
            ..config
        },
    )
}

fn instrument(path: &Path, teacher: &Model, seed: u64) -> anyhow::Result<Model> {
    let name = path.display();
    let network: NetworkConfig = network_of(path)?;
    let performance = teacher.header().performance.unwrap_or_default();
    let config = Config {
        seed,
        network,
        performance: StatedPerformance::all(&performance)?,
        ..Config::new(".".into(), ".".into(), ".".into())
    };
    config.check().with_context(|| name.to_string())?;
    let student = network::untrained_with_knobs(&config, &knobs(teacher))?;
    let mut header = student.header().clone();
    // Other controls would be other parameters in the player.
    header.controls.clone_from(&teacher.header().controls);
    inherit(&student.with_header(header)?, teacher)
}

/// Returns the controls that the teacher's network reads, besides the noise, which every instrument
/// has.
fn knobs(teacher: &Model) -> Vec<Control> {
    let header = teacher.header();
    let read = |name: &str| {
        name != "noise"
            && header
                .method("synth")
                .is_some_and(|synth| synth.input(name).is_some())
    };
    header
        .controls
        .iter()
        .filter(|control| read(&control.name))
        .cloned()
        .collect()
}

/// Copies the teacher's weights of equal name and shape to the student: the room and the level
/// curves.
///
/// # Errors
/// Returns an error if the result is invalid, which cannot happen for a valid student.
pub fn inherit(student: &Model, teacher: &Model) -> anyhow::Result<Model> {
    let mut weights = Weights::default();
    for (name, own) in student.weights().iter() {
        let theirs = teacher
            .weights()
            .iter()
            .find(|(other, tensor)| *other == name && tensor.shape() == own.shape());
        weights.insert(name, theirs.map_or(own, |(_, tensor)| tensor).clone());
    }
    Ok(Model::new(student.header().clone(), weights)?)
}
