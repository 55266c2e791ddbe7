//! `ondes-train distill`: a small student learns from a large teacher.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use ondes_engine::model::{Kind, file};
use ondes_training::distill::{student, taught_pair};
use ondes_training::tune::Manner;
use ondes_training::variants;

use crate::number;
use crate::smaller::{Keeping, finish};
use crate::sound_options::{Learning, Sound};

/// Options of `distill`.
#[derive(Args)]
pub struct Distill {
    /// The instrument or capture to learn from.
    teacher: PathBuf,
    /// The student: a TOML file whose table `network` says how wide an instrument is, as for `fit`; the name of a capture's
    /// size, such as nano or lstm-8; or a model file, such as a pruned one, which goes on from its own weights.
    #[arg(long)]
    student: String,
    #[command(flatten)]
    sound: Sound,
    /// Length of the signal that a capture plays to its student besides, or instead where there is no pair, 0 or 30 to 1200.
    #[arg(long, default_value_t = 180.0, value_parser = own_signal)]
    own_seconds: f64,
    /// How much the teacher's output counts against the recording, 0 to 1, of a pair.
    #[arg(long, default_value_t = 0.5, value_parser = number::share)]
    teacher_share: f64,
    /// How much what goes on inside of the teacher counts.
    #[arg(long, default_value_t = 0.1, value_parser = number::not_negative)]
    features: f64,
    #[command(flatten)]
    keeping: Keeping,
    #[command(flatten)]
    learning: Learning,
}

fn own_signal(text: &str) -> Result<f64, String> {
    let fits = |seconds: f64| seconds == 0.0 || (30.0..=1_200.0).contains(&seconds);
    number::within(text, fits, "a signal is 30 to 1200 seconds long; 0 is none")
}

/// Distils, measures and writes.
pub fn run(options: &Distill) -> anyhow::Result<()> {
    let teacher = file::read(&options.teacher)?;
    let named = || options.teacher.display().to_string();
    options.keeping.check(&teacher)?;
    let student = student(&options.student, &teacher, options.learning.seed())?;
    let pair = options.sound.pair(&teacher)?;
    let taught = match teacher.header().kind {
        Kind::Effect => {
            ensure!(pair.is_some() || options.own_seconds > 0.0, "without a pair --own-seconds cannot be 0");
            let (seconds, share) = (options.own_seconds, options.teacher_share);
            Some(taught_pair(&teacher, pair.as_ref(), seconds, share).with_context(named)?)
        }
        _ => None,
    };
    println!("{} weights learn from {}", student.parameters(), variants::alone(&teacher)?.parameters());
    let out = options.keeping.out();
    let course = options.learning.course(&student, &options.sound, taught.as_ref(), out, true).with_context(named)?;
    let manner = Manner { teacher: Some((&teacher, options.features)), ..Manner::default() };
    let learnt = course.tune(&student, manner).with_context(named)?;
    // Without a pair, what measures is the end of what the teacher plays.
    finish(&learnt, &teacher, "distilled", &options.keeping, &course)
}
