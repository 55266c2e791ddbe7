//! The command line of `ondes render`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use ondes_engine::chain::{Calibration, OutputLevel, Placement, Settings};
use ondes_engine::dsp::tone::MOST_DB;
use ondes_engine::media::WavBits;
use ondes_engine::pipeline::Source;

use super::batch::Shard;
use crate::rack::saved;
use crate::running::RunningArguments;

/// A day.
const MOST_SECONDS: f64 = 86_400.0;

const EXAMPLES: &str = "\
Examples:
  Play a MIDI file:
    ondes render bowed.ondes --midi song.mid --out song.wav
  Only one track of it, an octave down, with less room, ready for a CD:
    ondes render plucked.ondes --midi song.mid --track Bass --transpose -12 \\
      --control room=0.3 --sample-rate 44100 --bits 16
  Re-play a recording; the result lies exactly under the recording:
    ondes render wind.ondes --input singing.flac --out whistle.wav
  Send a recording through an effect, driven harder, or through a codec with its second latent turned over:
    ondes render amp.ondes --input guitar.wav --control drive=2 --out amp.wav
    ondes render voice.ondes --input speech.wav --control latent2.scale=-1
  A capture of an amplifier with what belongs around it:
    ondes render amp.ondes --input guitar.wav --gate -60 --treble 3 --cabinet v30.wav
  One that is driven by an interface which clips at 12.2 dBu, in a smaller size, as loud as all captures:
    ondes render amp.nam --input guitar.wav --interface-dbu 12.2 --size 0.5 --output-level normalised
  Straight to the ears, and the figures to a file:
    ondes render bowed.ondes --midi song.mid --json --out - 2>figures.json | aplay
  A folder of recordings, as loud as a podcast; the same again goes on where it was stopped:
    ondes render wind.ondes --input takes --out whistles --normalize -16
  Several files and folders, two at a time, one JSON object per file:
    ondes render bowed.ondes --midi songs extra/*.mid --out rendered --jobs 2 --json
  The third of eight parts of a batch, in a cluster's job array:
    ondes render wind.ondes --input takes --out whistles --shard 3/8
  A TorchScript model for nn~, which runs on libtorch, on its CPU half:
    ondes render rave.ts --input speech.wav --control latent1.offset=2 --device cpu
  A session with all its tracks, each of them in a file of its own besides:
    ondes render stage.ondes-session --midi song.mid --out song.wav --stems

The sound is mono. It is as long as the notes sound, or as long as the recording, and as the room or what
rings on then takes to fade. Latency is compensated.

With a folder, several files, --jobs, --shard or --force it is a batch: --out is a folder, in which folders
are mirrored and every file becomes NAME.wav. What is there already and newer than its source and the model
is skipped. Files that fail are listed at the end.

A session is what ondes and ondes play save and play: its tracks with their models, knobs, faders and recordings, through
the master with its limiter, in stereo, as they are heard live. --midi plays the tracks that are played by notes, each by
its MIDI channels, and --input stands for the sound card. The tracks are aligned. --jobs are threads here, and change
nothing about the sound; --block changes when controllers that turn knobs are looked at. The tracks of --stems, NAME-TRACK.wav,
add up to the mix before its limiter.";

/// Plays an instrument from a MIDI file, or a recording with an instrument, an effect or a codec, into a WAV file; or many; or a
/// session.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct RenderArguments {
    /// The model file, NAME.ondes, a capture of another program or a TorchScript model (.ts, .nm), which is a program and is
    /// run, or a session, NAME.ondes-session
    #[arg(value_name = "MODEL|SESSION")]
    pub model: PathBuf,
    /// More of what --midi or --input names first; the model comes before them
    pub more: Vec<PathBuf>,
    /// Notes to play: a Standard MIDI File, or a folder of them
    #[arg(long, value_name = "FILE|FOLDER")]
    pub midi: Vec<PathBuf>,
    /// Recording whose pitch and loudness an instrument follows, or that goes through an effect or a codec: WAV, AIFF, FLAC,
    /// MP3, Ogg, M4A, …, or a folder of them
    #[arg(long, value_name = "FILE|FOLDER")]
    pub input: Vec<PathBuf>,
    /// WAV file to write, or - for standard output [default: SOURCE-MODEL.wav in the current folder]; in a batch the folder
    #[arg(long, value_name = "FILE.wav|FOLDER")]
    pub out: Option<PathBuf>,
    /// Sample rate of the output [default: that of the recording, or of the model with --midi]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1_000..=768_000))]
    pub sample_rate: Option<u32>,
    /// Bits per sample, 16, 24 or 32: 16 and 24 are integers, 32 is floating point
    #[arg(long, value_enum, default_value_t = Bits::Float32, hide_possible_values = true)]
    pub bits: Bits,
    /// Brings the whole to a loudness after EBU R128, -70 to 0 LUFS, with no true peak above -1 dBTP; measured on what came out
    #[arg(long, value_name = "LUFS", allow_negative_numbers = true, value_parser = parse_loudness)]
    pub normalize: Option<f64>,
    /// Samples rendered at a time; it changes nothing about the sound
    #[arg(long, value_name = "SAMPLES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub block: u32,
    /// Turns a control of the model, such as room=0.5; `ondes info MODEL` lists them
    #[arg(long = "control", value_name = "NAME=VALUE", value_parser = parse_control)]
    pub controls: Vec<(String, f32)>,
    /// Runs an effect's network at 1, 2 or 4 times its rate: its overtones fold less, for as many times the work
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_oversampling)]
    pub oversampling: u8,
    /// Size of a model that holds smaller variants of itself, 0 to 1; 1 is the whole. `ondes info MODEL` lists them
    #[arg(long, value_name = "SIZE", default_value_t = 1.0, allow_negative_numbers = true, value_parser = parse_size)]
    pub size: f32,
    /// What runs the network.
    #[command(flatten)]
    pub running: RunningArguments,
    /// What stands before and after the model.
    #[command(flatten)]
    pub chain: ChainArguments,
    /// Shifts all pitches, -96 to 96 semitones
    #[arg(
        long,
        value_name = "SEMITONES",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        value_parser = parse_transpose
    )]
    pub transpose: f32,
    /// Another seed, other noise and other small variations; the same seed, the same sound
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Notes at once, 1 to 64 [default: what the model says]
    #[arg(long, value_name = "N", conflicts_with = "input", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub voices: Option<u8>,
    /// Plays one track of the MIDI file only, by its name or its number, counted from 1
    #[arg(long, value_name = "N|NAME", conflicts_with_all = ["input", "channel"])]
    pub track: Option<String>,
    /// Plays one channel of the MIDI file only, 1 to 16
    #[arg(long, value_name = "N", conflicts_with = "input", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub channel: Option<u8>,
    /// Writes each track of a session beside the mix, after its fader: NAME-TRACK.wav
    #[arg(long)]
    pub stems: bool,
    /// Ends a session after so many seconds [default: when all that it plays is over and has faded]; or plays a model with a prior
    /// on its own for so long
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// In a batch, files rendered at the same time; in a session, tracks [default: one for each core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// In a batch, the I-th of N parts: of all files, in order, every N-th from the I-th on
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// In a batch, renders again what is there already; needed when only options have changed
    #[arg(long)]
    pub force: bool,
    /// Prints one JSON object with what came out; with --out - on standard error. In a batch one a line for each file, as
    /// they are done, and one for the whole
    #[arg(long)]
    pub json: bool,
}

/// What stands before and after the model.
#[derive(Args)]
#[command(next_help_heading = "Gate, tone, cabinet, levels")]
pub struct ChainArguments {
    /// Keeps what is softer than this peak of the recording from the model, -90 to -20 dB
    #[arg(long, value_name = "DB", allow_negative_numbers = true, conflicts_with = "midi", value_parser = parse_gate)]
    pub gate: Option<f32>,
    /// Bass, -12 to 12 dB
    #[arg(long, value_name = "DB", default_value_t = 0.0, allow_negative_numbers = true, value_parser = parse_tone)]
    pub bass: f32,
    /// Middle, -12 to 12 dB
    #[arg(long, value_name = "DB", default_value_t = 0.0, allow_negative_numbers = true, value_parser = parse_tone)]
    pub middle: f32,
    /// Treble, -12 to 12 dB
    #[arg(long, value_name = "DB", default_value_t = 0.0, allow_negative_numbers = true, value_parser = parse_tone)]
    pub treble: f32,
    /// Where bass, middle and treble are turned: before the model, where a recording comes in, or after it
    #[arg(long, value_enum, default_value_t = Tone::After)]
    pub tone: Tone,
    /// Takes away what the model adds to all samples alike
    #[arg(long)]
    pub block_dc: bool,
    /// Impulse response of a cabinet, of up to 10 s: WAV, AIFF, FLAC, …; of two channels the mean
    #[arg(long, value_name = "FILE")]
    pub cabinet: Option<PathBuf>,
    /// Level of a sine of full scale at the interface that made the recording, -60 to 60 dBu: the model is driven as its gear was,
    /// where its card tells its input level
    #[arg(long, value_name = "DBU", allow_negative_numbers = true, value_parser = parse_dbu)]
    pub interface_dbu: Option<f32>,
    /// How loud the model's output is made, by what its card tells; --normalize goes by the loudness of the file instead
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Level::Raw)]
    pub output_level: Level,
}

/// How loud the output of a model is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// As the model makes it
    Raw,
    /// By the loudness on the card, which is brought to -18 dB
    Normalised,
    /// As many volts at the interface's output as at the gear's; needs --interface-dbu
    Calibrated,
}

/// Where a tone control stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tone {
    /// Before the model
    Before,
    /// After the model
    After,
}

impl ChainArguments {
    /// Whether any of it is asked for.
    pub fn is_given(&self) -> bool {
        self.cabinet.is_some() || self.settings() != Settings::default() || self.calibration() != Calibration::default()
    }

    /// What is asked for of levels.
    pub fn calibration(&self) -> Calibration {
        let output = match self.output_level {
            Level::Raw => OutputLevel::Raw,
            Level::Normalised => OutputLevel::Normalised,
            Level::Calibrated => OutputLevel::Calibrated,
        };
        Calibration { interface_dbu: self.interface_dbu, output }
    }

    /// Where the knobs of the chain stand, but for gains that depend on the model.
    pub fn settings(&self) -> Settings {
        Settings {
            gate_db: self.gate,
            tone: [self.bass, self.middle, self.treble],
            placement: match self.tone {
                Tone::Before => Placement::Before,
                Tone::After => Placement::After,
            },
            block_dc: self.block_dc,
            ..Settings::default()
        }
    }
}

impl RenderArguments {
    /// Whether a session is to be rendered, by its name.
    pub fn is_session(&self) -> bool {
        self.model.extension().is_some_and(|ending| ending == saved::ENDING)
    }

    /// Sees to it that there is one kind of thing to be played with a model.
    ///
    /// # Errors
    /// When there is none or are two, or with what is for sessions only.
    pub fn check_model(&self) -> anyhow::Result<()> {
        let name = self.model.display();
        ensure!(!self.stems, "--stems is for a session, NAME.{}; {name} is a model", saved::ENDING);
        let is_driven = !(self.midi.is_empty() && self.input.is_empty());
        if is_driven && self.seconds.is_some() {
            bail!(
                "--seconds is for a session, NAME.{}, or for a model that plays on its own, without --midi and --input",
                saved::ENDING
            );
        }
        ensure!(is_driven || self.seconds.is_some(), "{name}: needs --midi or --input to be played");
        ensure!(
            self.midi.is_empty() || self.input.is_empty(),
            "{name}: is played by --midi or by --input, not by both"
        );
        Ok(())
    }

    /// For how long the model is to play on its own, seconds.
    pub fn alone(&self) -> Option<f64> {
        self.seconds.filter(|_| self.midi.is_empty() && self.input.is_empty())
    }

    /// What drives the instrument.
    pub fn source(&self) -> Source {
        if self.midi.is_empty() { Source::Sound } else { Source::Notes }
    }

    /// All files and folders that are to be played.
    pub fn sources(&self) -> Vec<&Path> {
        [&self.midi, &self.input, &self.more].into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// The source, if it is only one file and nothing asks for a batch.
    pub fn single(&self) -> Option<&Path> {
        let of_a_batch = self.jobs.is_some() || self.shard.is_some() || self.force;
        match self.sources()[..] {
            [source] if !of_a_batch && !source.is_dir() => Some(source),
            _ => None,
        }
    }
}

/// How samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bits {
    /// 16-bit integers, dithered
    #[value(name = "16")]
    Int16,
    /// 24-bit integers
    #[value(name = "24")]
    Int24,
    /// 32-bit floating point
    #[value(name = "32")]
    Float32,
}

impl Bits {
    /// How many.
    pub fn count(self) -> u16 {
        match self {
            Self::Int16 => 16,
            Self::Int24 => 24,
            Self::Float32 => 32,
        }
    }

    /// Whether samples beyond −1 to 1 are cut off.
    pub fn clips(self) -> bool {
        self != Self::Float32
    }

    /// The same for the writer.
    pub fn wav(self) -> WavBits {
        match self {
            Self::Int16 => WavBits::Int16,
            Self::Int24 => WavBits::Int24,
            Self::Float32 => WavBits::Float32,
        }
    }
}

fn parse_control(text: &str) -> Result<(String, f32), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let value: f32 = value.trim().parse().map_err(|_| format!("{value:?} is not a number"))?;
    Ok((name.trim().to_owned(), value))
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= MOST_SECONDS => Ok(seconds),
        _ => Err(format!("expected a number above 0, up to {MOST_SECONDS}")),
    }
}

fn parse_transpose(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(semitones) if (-96.0..=96.0).contains(&semitones) => Ok(semitones),
        _ => Err("expected a number from -96 to 96".into()),
    }
}

fn parse_oversampling(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(factor @ (1 | 2 | 4)) => Ok(factor),
        _ => Err("expected 1, 2 or 4".into()),
    }
}

/// A size of a model, 0 to 1.
pub fn parse_size(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(size) if (0.0..=1.0).contains(&size) => Ok(size),
        _ => Err("expected a number from 0 to 1".into()),
    }
}

fn parse_dbu(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(dbu) if (-60.0..=60.0).contains(&dbu) => Ok(dbu),
        _ => Err("expected a number from -60 to 60".into()),
    }
}

fn parse_gate(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(db) if (-90.0..=-20.0).contains(&db) => Ok(db),
        _ => Err("expected a number from -90 to -20".into()),
    }
}

fn parse_tone(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(db) if (-MOST_DB..=MOST_DB).contains(&db) => Ok(db),
        _ => Err(format!("expected a number from -{MOST_DB} to {MOST_DB}")),
    }
}

fn parse_loudness(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(lufs) if (-70.0..=0.0).contains(&lufs) => Ok(lufs),
        _ => Err("expected a number from -70 to 0".into()),
    }
}
