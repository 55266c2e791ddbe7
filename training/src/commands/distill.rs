//! `ondes-train distill`: trains a small student of a large model.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use ondes_engine::model::{Kind, file};
use ondes_training::compression::distill::{distillation_pair, student};
use ondes_training::compression::fine_tune::FineTuneMode;
use ondes_training::compression::variants;
use ondes_training::trainer::interrupt;

use crate::commands::output_options::{OutputOptions, write_report};
use crate::commands::sound_options::{FineTuneOptions, SoundOptions};
use ondes_training::value_parser;

/// Options of `distill`.
#[derive(Args)]
pub struct DistillArguments {
    /// Instrument, capture, codec or generator to learn from.
    teacher: PathBuf,
    /// Student: a TOML file whose table `network` gives the sizes of an instrument, a codec or a
    /// generator, as for `fit`, `codec` and `prior`; the size of a capture, such as nano or lstm-8;
    /// or a model file, such as a pruned one, which keeps its weights.
    #[arg(long)]
    student: String,
    #[command(flatten)]
    sound: SoundOptions,
    /// Length of the generated signal that a capture renders for its student, seconds: 30 to 1200,
    /// or 0 for none, which needs a pair.
    #[arg(long, default_value_t = 180.0, value_parser = signal_seconds)]
    own_seconds: f64,
    /// Weight of the teacher's output against the recording of the pair, 0 to 1.
    #[arg(long, default_value_t = 0.5, value_parser = value_parser::fraction)]
    teacher_share: f64,
    /// Weight of the feature-matching loss; with codecs, of the distance of the latents.
    #[arg(long, default_value_t = 0.1, value_parser = value_parser::non_negative)]
    features: f64,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    training: FineTuneOptions,
}

fn signal_seconds(text: &str) -> Result<f64, String> {
    let fits = |seconds: f64| seconds == 0.0 || (30.0..=1_200.0).contains(&seconds);
    value_parser::in_range(text, fits, "must be 30 to 1200 seconds, or 0 for none")
}

/// Trains the student, measures it and writes it.
pub fn run(options: &DistillArguments) -> anyhow::Result<()> {
    let teacher = file::read(&options.teacher)?;
    let named = || options.teacher.display().to_string();
    options.output.check(&teacher)?;
    let student = student(&options.student, &teacher, options.training.seed())?;
    let pair = options.sound.pair(&teacher)?;
    let training_pair = match teacher.header().kind {
        Kind::Effect => {
            ensure!(
                pair.is_some() || options.own_seconds > 0.0,
                "--own-seconds is 0 and there is no pair; use --dry and --wet"
            );
            let (seconds, share) = (options.own_seconds, options.teacher_share);
            Some(distillation_pair(&teacher, pair.as_ref(), seconds, share).with_context(named)?)
        }
        _ => None,
    };
    println!(
        "training a student of {} weights from a teacher of {}",
        student.parameters(),
        variants::without_variants(&teacher)?.parameters()
    );
    let out = options.output.out();
    let job = options
        .training
        .job(&student, &options.sound, training_pair.as_ref(), out, true)
        .with_context(named)?;
    let mode = FineTuneMode {
        teacher: Some((&teacher, options.features)),
        ..FineTuneMode::default()
    };
    interrupt::install()?;
    let trained = job
        .run(&student, mode)
        .and_then(|trained| job.completed(trained))
        .with_context(named)?;
    // Without a pair, the student is measured on the end of the teacher's output.
    write_report(&trained, &teacher, "distilled", &options.output, &job)
}
