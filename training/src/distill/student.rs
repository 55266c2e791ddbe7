//! Who learns from a teacher.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use ondes_engine::model::{Kind, Model, Weights, file};
use serde::Deserialize;

use crate::capture::architecture::Architecture;
use crate::config::{Config, NetworkConfig, TrainingConfig};
use crate::network;

/// What is read of a student's configuration: a recipe of `fit` will do.
#[derive(Deserialize)]
struct Recipe {
    #[serde(default)]
    network: NetworkConfig,
}

/// The student of a teacher: a model file that goes on from its own weights; a size by name, for a capture; or a TOML file whose
/// table `network` says how wide an instrument is.
///
/// # Errors
/// When there is no such file or size, or it could not take the teacher's place.
pub fn student(description: &str, teacher: &Model, seed: u64) -> anyhow::Result<Model> {
    let header = teacher.header();
    let path = Path::new(description);
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let student = if file::EXTENSIONS.contains(&extension) {
        file::read(path)?
    } else {
        match header.kind {
            Kind::Effect => Architecture::named(description)?.untrained(seed, header.sample_rate)?,
            Kind::Instrument => instrument(path, teacher, seed)?,
            _ => bail!("only instruments and captures can be distilled"),
        }
    };
    let (own, theirs) = (student.header(), header);
    ensure!(
        own.kind == theirs.kind && own.sample_rate == theirs.sample_rate,
        "{description}: cannot take the teacher's place: it is of another kind or rate"
    );
    let mut header = own.clone();
    header.card = theirs.card.clone();
    header.card.quality.clear();
    Ok(Model::new(header, student.weights().clone())?)
}

fn instrument(path: &Path, teacher: &Model, seed: u64) -> anyhow::Result<Model> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
    let Recipe { network } =
        toml::from_str(&text).map_err(|error| anyhow::anyhow!("{name}: {}", error.message().replace('\n', " ")))?;
    let config = Config {
        name: String::new(),
        description: String::new(),
        author: String::new(),
        licence: String::new(),
        data: ".".into(),
        held_out: None,
        out: ".".into(),
        work: ".".into(),
        seed,
        network,
        training: TrainingConfig::default(),
        performance: teacher.header().performance.unwrap_or_default(),
    };
    config.check().with_context(|| name.to_string())?;
    let student = network::untrained(&config)?;
    let mut header = student.header().clone();
    // Other knobs would be other parameters of the player.
    header.controls.clone_from(&teacher.header().controls);
    inherit(&Model::new(header, student.weights().clone())?, teacher)
}

/// The student with those of its teacher's weights that fit: the room, the level of each partial.
///
/// # Errors
/// When the student is no model, which it was before.
pub fn inherit(student: &Model, teacher: &Model) -> anyhow::Result<Model> {
    let mut weights = Weights::default();
    for (name, own) in student.weights().iter() {
        let theirs = teacher.weights().iter().find(|(other, tensor)| *other == name && tensor.shape() == own.shape());
        weights.insert(name, theirs.map_or(own, |(_, tensor)| tensor).clone());
    }
    Ok(Model::new(student.header().clone(), weights)?)
}
