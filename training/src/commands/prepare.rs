//! `ondes-train prepare`: analyses folders of recordings once, for any number of runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ondes_training::data::{
    DataFormat, FeatureRate, PrepareOptions, Recordings, SoundFormat, prepare,
};

/// Options of `prepare`.
#[derive(Args)]
pub struct PrepareArguments {
    /// Folders of audio.
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Folder of the dataset; what is in it already is not analysed again.
    #[arg(long, value_name = "DATASET")]
    out: PathBuf,
    /// Sample rate, Hz.
    #[arg(long, default_value_t = 48_000, value_parser = clap::value_parser!(u32).range(8_000..=192_000))]
    sample_rate: u32,
    /// Samples per control frame.
    #[arg(long, default_value_t = 192, value_parser = clap::value_parser!(u16).range(16..=4_096))]
    hop: u16,
    /// Sample format; i16 and f16 take half the space, and i16 compresses best.
    #[arg(long, value_enum, default_value = "f32")]
    format: FormatArgument,
    /// Size of a file of the dataset, MB.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4_096))]
    shard_mb: u16,
    /// Attenuates what is below this frequency, such as rumble, Hz.
    #[arg(long, default_value_t = 30, value_name = "HZ", value_parser = clap::value_parser!(u16).range(0..=500))]
    high_pass: u16,
    /// Reads all that is there and repairs what is damaged.
    #[arg(long)]
    check: bool,
}

/// Sample format.
#[derive(Clone, Copy, ValueEnum)]
enum FormatArgument {
    F32,
    F16,
    I16,
}

/// Prepares the dataset.
pub fn run(arguments: &PrepareArguments) -> anyhow::Result<()> {
    let sound = match arguments.format {
        FormatArgument::F32 => SoundFormat::F32,
        FormatArgument::F16 => SoundFormat::F16,
        FormatArgument::I16 => SoundFormat::I16,
    };
    let rate = FeatureRate {
        sample_rate: arguments.sample_rate,
        hop: usize::from(arguments.hop),
    };
    let options = PrepareOptions {
        shard_bytes: u64::from(arguments.shard_mb) << 20,
        check: arguments.check,
        ..PrepareOptions::new(DataFormat {
            rate,
            sound,
            high_pass: arguments.high_pass,
        })
    };
    let summary = prepare(&arguments.folders, &arguments.out, &options)?;
    println!(
        "{}: {} recordings, {:.1} minutes, {} analysed now, {} dropped",
        arguments.out.display(),
        summary.recordings,
        Recordings::open(&arguments.out)?.seconds() / 60.0,
        summary.analysed,
        summary.dropped
    );
    Ok(())
}
