//! The command `quantize`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use ondes_engine::dsp::resample::resample;
use ondes_engine::media::read_mono;
use ondes_engine::model::compression::{ScaleFit, Precision, Scaling};
use ondes_engine::model::{Kind, Model, file};
use ondes_training::capture::pair::Pair;
use ondes_training::capture::signal;
use ondes_training::dataset::{audio_files, hear};
use ondes_training::evaluate::feature_rate;
use ondes_training::quantise::report::Report;
use ondes_training::quantise::search::{Bounds, compress};
use ondes_training::quantise::yardstick::{Material, Yardstick};
use ondes_training::tune::Manner;

use crate::sound_options::{Learning, Sound};

/// Sound that is measured on at most, seconds.
const MOST_SECONDS: f64 = 120.0;
/// What instruments may lose unless somebody says otherwise.
const INSTRUMENT_LOSS: f64 = 0.05;
/// What captures and others may lose: their error may grow by half.
const CAPTURE_LOSS: f64 = 0.5;

/// Options of `quantize`.
#[derive(Args)]
pub struct Quantise {
    /// The model, with weights as they were trained.
    model: PathBuf,
    /// Model file to write.
    #[arg(long)]
    out: PathBuf,
    /// Bits of a weight, 8 or 16.
    #[arg(long, default_value = "8", value_parser = ["8", "16"])]
    bits: String,
    /// 16 bits are the upper half of 32: 8 bits of precision, and the range of 32-bit floats.
    #[arg(long)]
    bf16: bool,
    /// Folder of audio to measure the loss on: recordings for an instrument to replay, sounds to go through an effect. Without
    /// it an instrument plays notes, and an effect hears some seconds of made-up playing.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dry", "wet"])]
    calibrate: Option<PathBuf>,
    /// What was played into a capture's device, to measure the loss on.
    #[arg(long, requires = "wet")]
    dry: Option<PathBuf>,
    /// What was recorded at its output.
    #[arg(long, requires = "dry")]
    wet: Option<PathBuf>,
    /// The error may grow by this share; layers that do most harm stay in more bits until it does not. 0.05 for instruments,
    /// else 0.5.
    #[arg(long, value_parser = share)]
    max_loss: Option<f64>,
    /// Stores weights in eight bits, but computes with 32-bit floats.
    #[arg(long)]
    weights_only: bool,
    /// One scale for a whole weight rather than for each output: a little smaller, and less exact.
    #[arg(long)]
    per_tensor: bool,
    /// 0 may be any byte, so that weights that lie to one side of it use all of them; computed with 32-bit floats.
    #[arg(long, requires = "weights_only")]
    asymmetric: bool,
    /// Leaves a layer as it is; may be given more than once.
    #[arg(long, value_name = "LAYER")]
    skip: Vec<String>,
    /// How scales are found: the largest weight is the largest byte, or the squares of the errors are least.
    #[arg(long, default_value = "least-squares", value_parser = ["peak", "least-squares"])]
    scales: String,
    /// Trains the model on for a while with its weights rounded, so that rounding loses less: an instrument from `--data`, a
    /// capture from its pair.
    #[arg(long)]
    aware: bool,
    /// Folder of audio that an instrument learns from with `--aware`.
    #[arg(long, value_name = "DIR", requires = "aware", conflicts_with_all = ["dry", "wet"])]
    data: Option<PathBuf>,
    /// Folder in which what was heard is kept; by default one of the system's temporary folders.
    #[arg(long)]
    cache: Option<PathBuf>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    learning: Learning,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if share >= 0.0 && share.is_finite() { Ok(share) } else { Err("must be 0 or above".into()) }
}

/// Compresses a model and writes it.
pub fn quantise(options: &Quantise) -> anyhow::Result<()> {
    let named = || options.model.display().to_string();
    let model = file::read(&options.model)?;
    let precision = match (options.bits.as_str(), options.bf16, options.weights_only) {
        ("16", true, _) => Precision::Bf16,
        ("16", false, _) => Precision::F16,
        (_, true, _) => bail!("--bf16 goes with --bits 16"),
        (_, false, true) => Precision::Stored8,
        _ => Precision::Computed8,
    };
    let fit = if options.scales == "peak" { ScaleFit::Peak } else { ScaleFit::LeastSquares };
    let scaling = Scaling { fit, per_tensor: options.per_tensor, asymmetric: options.asymmetric };
    let usual = if model.header().kind == Kind::Instrument { INSTRUMENT_LOSS } else { CAPTURE_LOSS };
    let max_loss = options.max_loss.unwrap_or(usual);
    let yardstick = Yardstick::new(&model, material(&model, options)?).with_context(named)?;
    let bounds = Bounds { precision, scaling, skip: options.skip.clone(), max_loss };
    let tuned = if options.aware { Some(tuned(&model, options, &bounds).with_context(named)?) } else { None };
    let mut compressed = compress(tuned.as_ref().unwrap_or(&model), &yardstick, &bounds).with_context(named)?;
    let mut header = compressed.model.header().clone();
    header.card.quality.push(Yardstick::measure(compressed.loss));
    compressed.model = Model::new(header, compressed.model.weights().clone())?;
    let report = Report::new(&model, &compressed, max_loss, yardstick.describe())?;
    if let Some(folder) = options.out.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    }
    file::write(&compressed.model, &options.out)?;
    if options.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{}\n{}: written", report.table(), options.out.display());
    }
    Ok(())
}

/// The model trained on with its weights rounded as they will be stored.
fn tuned(model: &Model, options: &Quantise, bounds: &Bounds) -> anyhow::Result<Model> {
    ensure!(options.bits == "8", "--aware is for eight bits: sixteen lose next to nothing");
    ensure!(
        model.weights().are_f32(),
        "some of its weights are in fewer bits already; start from the model as it was trained"
    );
    let Quantise { data, dry, wet, learning, out, .. } = options;
    let sound = Sound { data: data.clone(), dry: dry.clone(), wet: wet.clone() };
    let pair = sound.pair(model)?;
    let course = learning.course(model, &sound, pair.as_ref(), out, false)?;
    let is_skipped = |layer: &str| bounds.skip.iter().any(|skipped| skipped == layer);
    let stored =
        model.compressed(bounds.scaling, |layer| if is_skipped(layer) { Precision::F32 } else { bounds.precision })?;
    course.tune(model, Manner { stored_as: Some(&stored), ..Manner::default() })
}

/// What the loss is measured on.
fn material(model: &Model, options: &Quantise) -> anyhow::Result<Material> {
    let rate = model.header().sample_rate;
    if let (Some(dry), Some(wet)) = (&options.dry, &options.wet) {
        if model.header().kind != Kind::Effect {
            bail!("{}: --dry and --wet are for captures", options.model.display());
        }
        return Ok(Material::Pair(Box::new(Pair::read(dry, wet, rate)?)));
    }
    match (&options.calibrate, model.header().kind) {
        (Some(folder), Kind::Instrument) => {
            let cache = options.cache.clone().unwrap_or_else(|| std::env::temp_dir().join("ondes-features"));
            let mut files = hear(folder, &cache, feature_rate(model)?)?;
            let mut seconds = 0.0;
            files.retain(|file| {
                let wanted = seconds < MOST_SECONDS;
                seconds += file.seconds();
                wanted
            });
            Ok(Material::Recordings(files))
        }
        (Some(folder), _) => Ok(Material::Sounds(sounds(folder, rate)?)),
        (None, Kind::Instrument) => Ok(Material::Notes),
        (None, _) => Ok(Material::Sounds(vec![resample(&signal::standard(), signal::RATE, rate)?])),
    }
}

/// The sounds of a folder at a rate, as long as may be.
fn sounds(folder: &Path, rate: u32) -> anyhow::Result<Vec<Vec<f32>>> {
    let (mut sounds, mut left) = (Vec::new(), (MOST_SECONDS * f64::from(rate)) as usize);
    for path in audio_files(folder)? {
        let (sound, own_rate) = read_mono(&path)?;
        let mut sound = resample(&sound, own_rate, rate)?;
        sound.truncate(left);
        left -= sound.len();
        sounds.push(sound);
        if left == 0 {
            break;
        }
    }
    Ok(sounds)
}
