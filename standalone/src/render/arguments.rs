//! Command line of `ondes render`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use ondes_engine::chain::{Calibration, ChainSettings, OutputLevel, TonePosition};
use ondes_engine::dsp::tone::MAX_GAIN_DB;
use ondes_engine::media::WavBits;
use ondes_engine::pipeline::ControlSource;

use super::shard::Shard;
use crate::argument_parsers::{SIZE, TRANSPOSE, number_in, parse_seconds};
use crate::executor_arguments::ExecutorArguments;
use crate::rack::session_file;

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
    ondes render amp.nam --input guitar.wav --interface-dbu 12.2 --size 0.5 --output-level normalized
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

/// Renders MIDI files or recordings through a model, or a session, to WAV files
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct RenderArguments {
    /// Model or session to render: NAME.ondes, a capture of another program, a TorchScript model (.ts, .nm; its code is
    /// executed), or NAME.ondes-session
    #[arg(value_name = "MODEL|SESSION")]
    pub model: PathBuf,
    /// More files and folders for the option before, --midi or --input; MODEL must come before it
    pub more: Vec<PathBuf>,
    /// MIDI file to play on an instrument, or a folder of them
    #[arg(long, value_name = "FILE|FOLDER")]
    pub midi: Vec<PathBuf>,
    /// Recording for an instrument to follow in pitch and loudness, or to send through an effect or codec (WAV, AIFF,
    /// FLAC, MP3, Ogg, M4A …), or a folder of them
    #[arg(long, value_name = "FILE|FOLDER")]
    pub input: Vec<PathBuf>,
    /// WAV file to write, - for standard output, or the folder of a batch [default: SOURCE-MODEL.wav in the current
    /// folder]
    #[arg(long, value_name = "FILE.wav|FOLDER")]
    pub out: Option<PathBuf>,
    /// Sample rate of the output, 1000 to 768000 Hz [default: that of the recording; with --midi that of the model]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1_000..=768_000))]
    pub sample_rate: Option<u32>,
    /// Bits per sample: 16 or 24 (integers), or 32 (floating point)
    #[arg(long, value_enum, default_value_t = BitDepth::Float32, hide_possible_values = true)]
    pub bits: BitDepth,
    /// Normalize the output to this EBU R 128 loudness, -70 to 0 LUFS, with a true peak of at most -1 dBTP
    #[arg(long, value_name = "LUFS", allow_negative_numbers = true, value_parser = number_in(-70.0..=0.0))]
    pub normalize: Option<f64>,
    /// Block length, 1 to 65536 samples; it does not change the sound
    #[arg(long, value_name = "SAMPLES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub block: u32,
    /// Set a control of the model, such as room=0.5; `ondes info MODEL` lists the controls
    #[arg(long = "control", value_name = "NAME=VALUE", value_parser = parse_control)]
    pub controls: Vec<(String, f32)>,
    /// Oversampling of an effect's network: 1, 2 or 4. Less aliasing, for that many times the computation
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_oversampling)]
    pub oversampling: u8,
    /// Size of a model with smaller variants, 0 to 1; 1 is the whole model. `ondes info MODEL` lists the variants
    #[arg(long, value_name = "SIZE", default_value_t = 1.0, allow_negative_numbers = true, value_parser = number_in(SIZE))]
    pub size: f32,
    /// Executor of the network.
    #[command(flatten)]
    pub executor_arguments: ExecutorArguments,
    /// Signal chain around the model.
    #[command(flatten)]
    pub chain: ChainArguments,
    /// Transpose all notes, -24 to 24 semitones
    #[arg(
        long,
        value_name = "SEMITONES",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        value_parser = number_in(TRANSPOSE)
    )]
    pub transpose: f32,
    /// Seed of noise and other random variations; the same seed gives the same sound
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Polyphony of an instrument, 1 to 64 voices [default: the model's]
    #[arg(long, value_name = "N", conflicts_with = "input", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub voices: Option<u8>,
    /// Play only this track of the MIDI file, by name or by number from 1
    #[arg(long, value_name = "N|NAME", conflicts_with_all = ["input", "channel"])]
    pub track: Option<String>,
    /// Play only this channel of the MIDI file, 1 to 16
    #[arg(long, value_name = "N", conflicts_with = "input", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub channel: Option<u8>,
    /// Also write each track of a session after its fader, as NAME-TRACK.wav
    #[arg(long)]
    pub stems: bool,
    /// Length in seconds, up to a day: of a session [default: until everything has faded out], or of what a model with
    /// a prior generates
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Files of a batch, or tracks of a session, to render in parallel [default: one per core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Part I of N of a batch: every N-th file, from the I-th on
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Render files of a batch again that are up to date; needed when only options have changed
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object, with --out - on standard error; for a batch one line per file and a summary
    #[arg(long)]
    pub json: bool,
}

/// Signal chain around the model: gate, tone, cabinet, levels.
#[derive(Args)]
#[command(next_help_heading = "Gate, tone, cabinet, levels")]
pub struct ChainArguments {
    /// Threshold of the noise gate before the model, a peak of -90 to -20 dB [default: no gate]
    #[arg(long, value_name = "DB", allow_negative_numbers = true, conflicts_with = "midi", value_parser = number_in(-90.0..=-20.0))]
    pub gate: Option<f32>,
    /// Bass, -12 to 12 dB
    #[arg(long, value_name = "DB", default_value_t = 0.0, allow_negative_numbers = true, value_parser = number_in(-MAX_GAIN_DB..=MAX_GAIN_DB))]
    pub bass: f32,
    /// Middle, -12 to 12 dB
    #[arg(long, value_name = "DB", default_value_t = 0.0, allow_negative_numbers = true, value_parser = number_in(-MAX_GAIN_DB..=MAX_GAIN_DB))]
    pub middle: f32,
    /// Treble, -12 to 12 dB
    #[arg(long, value_name = "DB", default_value_t = 0.0, allow_negative_numbers = true, value_parser = number_in(-MAX_GAIN_DB..=MAX_GAIN_DB))]
    pub treble: f32,
    /// Position of bass, middle and treble: before the model (only with --input) or after it
    #[arg(long, value_enum, default_value_t = TonePlacement::After)]
    pub tone: TonePlacement,
    /// Remove the DC offset of the model's output
    #[arg(long)]
    pub block_dc: bool,
    /// Impulse response of a cabinet, up to 10 s (WAV, AIFF, FLAC …); two channels are averaged
    #[arg(long, value_name = "FILE")]
    pub cabinet: Option<PathBuf>,
    /// Level of a full-scale sine at the interface that made the recording, -60 to 60 dBu; drives a model with a
    /// calibrated input at its true level
    #[arg(long, value_name = "DBU", allow_negative_numbers = true, value_parser = number_in(-60.0..=60.0))]
    pub interface_dbu: Option<f32>,
    /// Output level of the model, from the levels on its card; --normalize measures the output instead
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = OutputLevelArgument::Raw)]
    pub output_level: OutputLevelArgument,
}

/// Output level of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputLevelArgument {
    /// As the model produces it
    Raw,
    /// The loudness on the card, brought to -18 dB
    #[value(alias = "normalised")]
    Normalized,
    /// The same voltage at the interface's output as at the gear's; needs --interface-dbu
    Calibrated,
}

/// Position of the tone controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TonePlacement {
    /// Before the model
    Before,
    /// After the model
    After,
}

impl ChainArguments {
    /// Returns whether any option differs from its default.
    pub fn is_given(&self) -> bool {
        self.cabinet.is_some()
            || self.settings() != ChainSettings::default()
            || self.calibration() != Calibration::default()
    }

    /// Returns the calibration of levels.
    pub fn calibration(&self) -> Calibration {
        let output = match self.output_level {
            OutputLevelArgument::Raw => OutputLevel::Raw,
            OutputLevelArgument::Normalized => OutputLevel::Normalised,
            OutputLevelArgument::Calibrated => OutputLevel::Calibrated,
        };
        Calibration { interface_dbu: self.interface_dbu, output }
    }

    /// Returns the settings of the chain, without the gains that depend on the model.
    pub fn settings(&self) -> ChainSettings {
        ChainSettings {
            gate_db: self.gate,
            tone: [self.bass, self.middle, self.treble],
            tone_position: match self.tone {
                TonePlacement::Before => TonePosition::Before,
                TonePlacement::After => TonePosition::After,
            },
            block_dc: self.block_dc,
            ..ChainSettings::default()
        }
    }
}

impl RenderArguments {
    /// Returns whether a session is to be rendered, by the extension.
    pub fn is_session(&self) -> bool {
        self.model.extension().is_some_and(|ending| ending == saved::ENDING)
    }

    /// Checks that exactly one source is given for a model.
    ///
    /// # Errors
    ///
    /// Returns an error without a source, with two, or with options that are for sessions only.
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

    /// Returns the length in seconds of what the model is to generate without a source.
    pub fn generated_seconds(&self) -> Option<f64> {
        self.seconds.filter(|_| self.midi.is_empty() && self.input.is_empty())
    }

    /// Returns the source of an instrument's pitch.
    pub fn source(&self) -> ControlSource {
        if self.midi.is_empty() { ControlSource::AudioInput } else { ControlSource::Notes }
    }

    /// Returns all files and folders to play.
    pub fn sources(&self) -> Vec<&Path> {
        [&self.midi, &self.input, &self.more].into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// Returns the source if it is a single file and no option asks for a batch.
    pub fn single(&self) -> Option<&Path> {
        let of_a_batch = self.jobs.is_some() || self.shard.is_some() || self.force;
        match self.sources()[..] {
            [source] if !of_a_batch && !source.is_dir() => Some(source),
            _ => None,
        }
    }
}

/// Sample format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BitDepth {
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

impl BitDepth {
    /// Returns the number of bits.
    pub fn count(self) -> u16 {
        match self {
            Self::Int16 => 16,
            Self::Int24 => 24,
            Self::Float32 => 32,
        }
    }

    /// Returns whether samples beyond −1 … 1 are clipped.
    pub fn clips(self) -> bool {
        self != Self::Float32
    }

    /// Converts to the format of the WAV writer.
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

fn parse_oversampling(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(factor @ (1 | 2 | 4)) => Ok(factor),
        _ => Err("expected 1, 2 or 4".into()),
    }
}
