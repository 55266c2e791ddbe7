//! `ondes-train quantize`: compresses a model.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use ondes_engine::dsp::resample::resample;
use ondes_engine::media::read_mono;
use ondes_engine::model::compression::{ScaleFit, Scaling, WeightPrecision};
use ondes_engine::model::{Kind, Model, file};
use ondes_training::compression::fine_tune::FineTuneMode;
use ondes_training::compression::quantize::compression_loss::CompressionLoss;
use ondes_training::compression::quantize::reference::CalibrationSound;
use ondes_training::compression::quantize::report::CompressionReport;
use ondes_training::compression::quantize::search::{QuantizeOptions, compress};
use ondes_training::data::audio_files;
use ondes_training::evaluate::feature_rate;
use ondes_training::evaluate::measured::open_measured;
use ondes_training::tasks::capture::pair::Pair;
use ondes_training::tasks::capture::signal;
use ondes_training::trainer::interrupt;

use crate::commands::sound_options::{FineTuneOptions, SoundOptions};
use crate::commands::write_model::create_parent;
use ondes_training::value_parser;

/// Longest sound to measure the loss on, seconds.
const MAX_SECONDS: f64 = 120.0;
/// Default bound on the loss of instruments.
const INSTRUMENT_LOSS: f64 = 0.05;
/// Default bound on the loss of other models.
const CAPTURE_LOSS: f64 = 0.5;

/// Options of `quantize`.
#[derive(Args)]
pub struct QuantizeArguments {
    /// Trained model.
    model: PathBuf,
    /// Model file to write.
    #[arg(long)]
    out: PathBuf,
    /// Bits per weight.
    #[arg(long, default_value = "8", value_parser = ["8", "16"])]
    bits: String,
    /// Uses bfloat16 for 16 bits: the range of 32-bit floats with 8 bits of precision.
    #[arg(long)]
    bf16: bool,
    /// Folder of audio to measure the loss on: recordings for an instrument to resynthesise, sounds
    /// to process with an effect. Without it, an instrument plays notes, and an effect processes
    /// generated playing.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dry", "wet"])]
    calibrate: Option<PathBuf>,
    /// Signal that was played into a capture's device, to measure the loss on.
    #[arg(long, requires = "wet")]
    dry: Option<PathBuf>,
    /// Recording at the device's output.
    #[arg(long, requires = "dry")]
    wet: Option<PathBuf>,
    /// Largest relative increase of the error; the layers that do most harm stay in more bits until
    /// it is met [default: 0.05 for instruments, else 0.5].
    #[arg(long, value_parser = value_parser::non_negative)]
    max_loss: Option<f64>,
    /// Stores weights in 8 bits, but computes with 32-bit floats.
    #[arg(long)]
    weights_only: bool,
    /// One scale per weight tensor rather than per output: slightly smaller and less exact.
    #[arg(long)]
    per_tensor: bool,
    /// Asymmetric quantization with a zero point, which suits one-sided weights; computed with
    /// 32-bit floats.
    #[arg(long, requires = "weights_only")]
    asymmetric: bool,
    /// Layer to leave in 32 bits; may be given more than once.
    #[arg(long, value_name = "LAYER")]
    skip: Vec<String>,
    /// Computation of the scales: from the largest weight, or with the least squared error.
    #[arg(long, default_value = "least-squares", value_parser = ["peak", "least-squares"])]
    scales: String,
    /// Trains with rounded weights first, so that less is lost: an instrument from `--data`, a
    /// capture from its pair.
    #[arg(long)]
    aware: bool,
    /// Folder of training audio for an instrument with `--aware`.
    #[arg(long, value_name = "DIR", requires = "aware", conflicts_with_all = ["dry", "wet"])]
    data: Option<PathBuf>,
    /// Folder for analysed audio [default: a temporary folder].
    #[arg(long)]
    cache: Option<PathBuf>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    training: FineTuneOptions,
}

/// Compresses a model and writes it.
pub fn run(options: &QuantizeArguments) -> anyhow::Result<()> {
    let named = || options.model.display().to_string();
    let model = file::read(&options.model)?;
    let precision = match (options.bits.as_str(), options.bf16, options.weights_only) {
        ("16", true, _) => WeightPrecision::Bf16,
        ("16", false, _) => WeightPrecision::F16,
        (_, true, _) => bail!("--bf16 needs --bits 16"),
        (_, false, true) => WeightPrecision::Stored8,
        _ => WeightPrecision::Computed8,
    };
    let fit = if options.scales == "peak" {
        ScaleFit::Peak
    } else {
        ScaleFit::LeastSquares
    };
    let scaling = Scaling {
        fit,
        per_tensor: options.per_tensor,
        asymmetric: options.asymmetric,
    };
    let default = if model.header().kind == Kind::Instrument {
        INSTRUMENT_LOSS
    } else {
        CAPTURE_LOSS
    };
    let max_loss = options.max_loss.unwrap_or(default);
    let loss =
        CompressionLoss::new(&model, calibration_sound(&model, options)?).with_context(named)?;
    let quantize_options = QuantizeOptions {
        precision,
        scaling,
        skip: options.skip.clone(),
        max_loss,
    };
    let aware = if options.aware {
        Some(train_rounded(&model, options, &quantize_options).with_context(named)?)
    } else {
        None
    };
    let mut compressed =
        compress(aware.as_ref().unwrap_or(&model), &loss, &quantize_options).with_context(named)?;
    let mut header = compressed.model.header().clone();
    header
        .card
        .quality
        .push(CompressionLoss::measure(compressed.loss));
    compressed.model = compressed.model.with_header(header)?;
    let report = CompressionReport::new(&model, &compressed, max_loss, loss.describe())?;
    create_parent(&options.out)?;
    file::write(&compressed.model, &options.out)?;
    if options.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{}\n{}: written", report.table(), options.out.display());
    }
    Ok(())
}

/// Trains a model with its weights rounded as they will be stored.
fn train_rounded(
    model: &Model,
    options: &QuantizeArguments,
    quantize_options: &QuantizeOptions,
) -> anyhow::Result<Model> {
    ensure!(
        options.bits == "8",
        "--aware needs --bits 8; 16 bits lose next to nothing"
    );
    ensure!(
        model.weights().are_f32(),
        "the model is compressed already; start from the trained model"
    );
    let QuantizeArguments {
        data,
        dry,
        wet,
        training,
        out,
        ..
    } = options;
    let sound = SoundOptions {
        data: data.clone(),
        dry: dry.clone(),
        wet: wet.clone(),
    };
    let pair = sound.pair(model)?;
    let job = training.job(model, &sound, pair.as_ref(), out, false)?;
    let is_skipped = |layer: &str| quantize_options.skip.iter().any(|skipped| skipped == layer);
    let stored = model.compressed(quantize_options.scaling, |layer| {
        if is_skipped(layer) {
            WeightPrecision::F32
        } else {
            quantize_options.precision
        }
    })?;
    interrupt::install()?;
    job.run(
        model,
        FineTuneMode {
            quantized: Some(&stored),
            ..FineTuneMode::default()
        },
    )
}

/// Selects the sound to measure the loss on.
fn calibration_sound(
    model: &Model,
    options: &QuantizeArguments,
) -> anyhow::Result<CalibrationSound> {
    let rate = model.header().sample_rate;
    if let (Some(dry), Some(wet)) = (&options.dry, &options.wet) {
        if model.header().kind != Kind::Effect {
            bail!(
                "{}: --dry and --wet are for captures",
                options.model.display()
            );
        }
        return Ok(CalibrationSound::Pair(Box::new(Pair::read(
            dry, wet, rate,
        )?)));
    }
    match (&options.calibrate, model.header().kind) {
        (Some(folder), Kind::Instrument) => {
            let cache = options
                .cache
                .clone()
                .unwrap_or_else(|| std::env::temp_dir().join("ondes-features"));
            let (measured, learnt) =
                open_measured(folder, &cache, feature_rate(model)?, model.header().kind)?;
            let (mut files, mut seconds) = (Vec::new(), 0.0);
            for file in learnt.unwrap_or(measured).features() {
                let file = file?;
                seconds += file.seconds();
                files.push(file);
                if seconds >= MAX_SECONDS {
                    break;
                }
            }
            Ok(CalibrationSound::Recordings(files))
        }
        (Some(folder), _) => Ok(CalibrationSound::Sounds(sounds(folder, rate)?)),
        (None, Kind::Instrument) => Ok(CalibrationSound::Notes),
        (None, _) => Ok(CalibrationSound::Sounds(vec![resample(
            &signal::standard(),
            signal::RATE,
            rate,
        )?])),
    }
}

/// Reads the sounds of a folder at a sample rate, up to the longest total length.
fn sounds(folder: &Path, rate: u32) -> anyhow::Result<Vec<Vec<f32>>> {
    let (mut sounds, mut remaining) = (Vec::new(), (MAX_SECONDS * f64::from(rate)) as usize);
    for path in audio_files(folder)? {
        let (sound, own_rate) = read_mono(&path)?;
        let mut sound = resample(&sound, own_rate, rate)?;
        sound.truncate(remaining);
        remaining -= sound.len();
        sounds.push(sound);
        if remaining == 0 {
            break;
        }
    }
    Ok(sounds)
}
