//! Command line of `ondes render`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use ondes_engine::chain::{Calibration, ChainSettings};
use ondes_engine::instrument::{KeyTuning, MidiSettings};
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{ControlSource, InputChannels};
use ondes_player::choice;
use ondes_player::parameter::{
    BEND_RANGE, BLOCK_DC, CHANNELS, GATE, MPE, OUTPUT_LEVEL, OVERSAMPLING, REVERB, REVERB_TIME,
    SIZE, TONE, TONE_GAINS,
};

use super::output_target::{OutputTarget, check_not_input};
use super::parameter_arguments::ParameterArguments;
use super::shard::Shard;
use super::sound_format::{BitDepth, SoundFormat};
use crate::argument_parsers::{SECONDS, TRANSPOSE, number_in, parse_control};
use crate::executor_arguments::{ExecutorArguments, ResamplingArgument};
use crate::program_arguments::ProgramArguments;
use crate::rack::{SessionFile, session_file};
use crate::tuning_arguments::TuningArguments;
use crate::{help, memory};

const EXAMPLES: &str = "\
Examples:
  Play a MIDI file:
    ondes render bowed.ondes --midi song.mid --out song.wav
  Play one track of it, an octave down, with less room, for a CD:
    ondes render plucked.ondes --midi song.mid --track Bass --transpose -12 \\
      --control room=0.3 --sample-rate 44100 --bits 16
  Let an instrument follow a recording; the result is aligned with it:
    ondes render wind.ondes --input singing.flac --out whistle.wav
  Send a recording through an effect with more drive, or through a codec with its second latent inverted:
    ondes render amp.ondes --input guitar.wav --control drive=2 --out amp.wav
    ondes render voice.ondes --input speech.wav --control latent2.scale=-1
  Let a generator go on from a recorded bar, in time with it:
    ondes render drums --prime bar.wav --tempo 120 --seconds 30
  Send the left channel of a stereo recording through the capture of a pedal:
    ondes render drive.nam --input take.wav --channels left --out driven.wav
  Add a gate, tone controls and a cabinet to the capture of an amplifier:
    ondes render amp.ondes --input guitar.wav --gate -60 --treble 3 --cabinet v30.wav
  Drive a capture from an interface that clips at 12.2 dBu, in a smaller size, at a common loudness:
    ondes render amp.nam --input guitar.wav --interface-dbu 12.2 --size 0.5 --output-level normalized
  Send what another program plays through a capture, to a FLAC file, in silence:
    ffmpeg -i take.m4a -f wav - | ondes render fuzz --input - -o fuzz.flac --quiet
  Listen at once, and write the results to a file:
    ondes render bowed.ondes --midi song.mid --json --out - 2>results.json | aplay
  Render a folder of recordings, as loud as a podcast; repeat the command to continue after an interruption:
    ondes render wind.ondes --input takes --out whistles --normalize -16
  Render several files and folders, two at a time, with one JSON object per file:
    ondes render bowed.ondes --midi songs extra/*.mid --out rendered --jobs 2 --json
  Render the third of eight parts of a batch, in a cluster's job array:
    ondes render wind.ondes --input takes --out whistles --shard 3/8
  Run a TorchScript model for nn~ on libtorch, on the CPU:
    ondes render rave.ts --input speech.wav --control latent1.offset=2 --device cpu
  Send a recording through a preset, with all blocks of its rig:
    ondes render lead.ondes-preset --input guitar.wav --out lead.wav
  Render a session, and each of its tracks to a file of its own:
    ondes render stage.ondes-session --midi song.mid --out song.wav --stems

A stereo recording through an effect or a codec gives a stereo file, unless --channels says otherwise; the output of
an instrument is mono. It lasts as long as the notes or the recording, plus the time that reverb and
release take to fade out. Latency is compensated.

A folder, several files, --jobs, --shard or --force make it a batch: --out is a folder, subfolders are mirrored
and every file becomes NAME.wav, or NAME.flac with --format flac. Outputs that are newer than their source and the model
are skipped. Files that
fail are listed at the end.

A session is saved by the app. It is rendered as it is heard live, in stereo: tracks with their models, parameters,
faders and recordings, and the master with its limiter. --midi plays on all tracks that play notes, by their MIDI
channels; --input takes the place of the audio device. All tracks are aligned. --jobs does not change the sound;
--block changes when mapped MIDI controllers are applied. A preset is rendered as a session of one track. The stems add up to the mix before its limiter.";

/// Renders MIDI files or recordings through a model, a preset or a session to WAV or FLAC files
#[derive(Args)]
#[command(after_help = help::with_bundled(EXAMPLES))]
pub struct RenderArguments {
    /// Model, preset or session: NAME.ondes, a bundled model by its name, a capture of another program, a
    /// TorchScript model (.ts, .nm; its code is executed), NAME.ondes-preset, or NAME.ondes-session
    #[arg(value_name = "MODEL|PRESET|SESSION")]
    pub model: PathBuf,
    /// Run the TorchScript programs that the session names, this time only; run only what you trust
    #[arg(long)]
    pub trust: bool,
    /// More files and folders for the option before, --midi or --input; MODEL must come before it
    pub more: Vec<PathBuf>,
    /// MIDI file to play on an instrument, a folder of them, or - for standard input
    #[arg(long, value_name = "FILE|FOLDER")]
    pub midi: Vec<PathBuf>,
    /// Recording for an instrument to follow in pitch and loudness, or to send through an effect or
    /// codec (WAV, AIFF, FLAC, MP3, Ogg, M4A …), a folder of them, or - for standard input
    #[arg(long, value_name = "FILE|FOLDER")]
    pub input: Vec<PathBuf>,
    /// WAV or FLAC file to write, - for standard output (WAV), or the folder of a batch [default:
    /// SOURCE-MODEL.wav in the current folder]
    #[arg(short, long, value_name = "FILE|FOLDER")]
    pub out: Option<PathBuf>,
    /// File format of the output [default: that of the ending of --out, .wav or .flac; else WAV]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<SoundFormat>,
    /// Sample rate of the output, 1000 to 768000 Hz [default: that of the recording; with --midi
    /// that of the model]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1_000..=768_000))]
    pub sample_rate: Option<u32>,
    /// Conversion between the sample rates of output and model
    #[arg(long, value_enum, value_name = "METHOD", default_value_t)]
    pub resampling: ResamplingArgument,
    /// Bits per sample: 16 or 24 (integers), or 32 (floating point, not in FLAC) [default: 32; 24
    /// in FLAC]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub bits: Option<BitDepth>,
    /// Normalize the output to this EBU R 128 loudness, -70 to 0 LUFS, with a true peak of at most
    /// -1 dBTP
    #[arg(long, value_name = "LUFS", allow_negative_numbers = true, value_parser = number_in(-70.0..=0.0))]
    pub normalize: Option<f64>,
    /// Block length, 1 to 65536 samples; it does not change the sound
    #[arg(long, value_name = "SAMPLES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub block: u32,
    /// Set a control of the model, such as room=0.5; `ondes info MODEL` lists the controls
    #[arg(long = "control", value_name = "NAME=VALUE", value_parser = parse_control)]
    pub controls: Vec<(String, f32)>,
    /// Parameters of the plugin and the app.
    #[command(flatten)]
    pub parameters: ParameterArguments,
    /// Method and settings of a TorchScript model.
    #[command(flatten)]
    pub program: ProgramArguments,
    /// Executor of the network.
    #[command(flatten)]
    pub executor_arguments: ExecutorArguments,
    /// Cabinet and interface of a capture.
    #[command(flatten)]
    pub chain: ChainArguments,
    /// Tuning of an instrument.
    #[command(flatten)]
    pub tuning: TuningArguments,
    /// Transpose all notes, -24 to 24 semitones
    #[arg(
        long,
        value_name = "SEMITONES",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        value_parser = number_in(TRANSPOSE)
    )]
    pub transpose: f32,
    /// Tempo of a song that begins with the first sample, 20 to 400 beats a minute, for models that
    /// follow one
    #[arg(long, value_name = "BPM", value_parser = number_in(20.0_f32..=400.0))]
    pub tempo: Option<f32>,
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
    /// Length in seconds, up to a day: of a session [default: until everything has faded out], or
    /// of what a model with a prior generates
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = number_in(SECONDS))]
    pub seconds: Option<f64>,
    /// Recording that a model with a prior goes on from, as dense and as loud; with --seconds. The
    /// result begins where it ends, and a song of --tempo where it begins
    #[arg(long, value_name = "FILE", requires = "seconds", conflicts_with_all = ["midi", "input"])]
    pub prime: Option<PathBuf>,
    /// Files of a batch, or tracks of a session, to render in parallel [default: one per core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Part I of N of a batch: every N-th file, from the I-th on
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Render files of a batch again that are up to date; needed when only options have changed
    #[arg(long)]
    pub force: bool,
    /// Most memory for decoded sound, such as 512M or 4G: the recordings of a session's tracks and
    /// its --input, which are held whole; other sources are streamed [default: half of the
    /// machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = memory::parse_size)]
    pub memory: Option<u64>,
    /// Print one JSON object, with --out - on standard error; for a batch one line per file and a
    /// summary
    #[arg(long)]
    pub json: bool,
    /// Print warnings and errors only
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// Parts of the signal chain that are no parameters.
#[derive(Args)]
#[command(next_help_heading = "Cabinet and interface")]
pub struct ChainArguments {
    /// Impulse response of a cabinet, up to 10 s (WAV, AIFF, FLAC …); two channels are averaged. Or
    /// a bundled cabinet: 1x12, 2x12 or 4x12
    #[arg(long, value_name = "FILE|NAME")]
    pub cabinet: Option<PathBuf>,
    /// Level of a full-scale sine at the interface that made the recording, -60 to 60 dBu; drives a
    /// model with a calibrated input at its true level
    #[arg(long, value_name = "DBU", allow_negative_numbers = true, value_parser = number_in(-60.0_f32..=60.0))]
    pub interface_dbu: Option<f32>,
}

impl RenderArguments {
    /// Returns whether any option of the signal chain differs from its default.
    pub fn has_chain(&self) -> bool {
        self.chain.cabinet.is_some()
            || self.chain_settings() != ChainSettings::default()
            || self.calibration() != Calibration::default()
    }

    /// Returns the settings with which MIDI files are decoded.
    pub fn midi_settings(&self) -> MidiSettings {
        MidiSettings {
            bend_range_semitones: Some(self.parameters.value(BEND_RANGE)),
            zone: choice::mpe_zone(self.parameters.value(MPE)),
        }
    }

    /// Returns the tuning of the instrument.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn key_tuning(&self) -> anyhow::Result<Option<KeyTuning>> {
        self.tuning
            .files()
            .map(|files| files.read().map_err(|error| anyhow!("{error}")))
            .transpose()
    }

    /// Returns the calibration of levels.
    pub fn calibration(&self) -> Calibration {
        let output = choice::output_level(self.parameters.value(OUTPUT_LEVEL));
        Calibration {
            interface_dbu: self.chain.interface_dbu,
            output,
        }
    }

    /// Returns the settings of the chain, without the gains that depend on the model.
    pub fn chain_settings(&self) -> ChainSettings {
        ChainSettings {
            gate_db: self.parameters.given(GATE),
            tone: TONE_GAINS.map(|gain| self.parameters.value(gain)),
            tone_position: choice::tone_position(self.parameters.value(TONE)),
            block_dc: self.parameters.value(BLOCK_DC) > 0.5,
            reverb: [REVERB, REVERB_TIME].map(|id| self.parameters.value(id)),
            ..ChainSettings::default()
        }
    }

    /// Returns the channels of a recording that the model processes.
    pub fn channels(&self) -> InputChannels {
        choice::channels(self.parameters.value(CHANNELS))
    }

    /// Returns the oversampling factor of an effect's network: 1, 2, 4 or 8; `None` for that of the
    /// model.
    pub fn oversampling(&self) -> Option<usize> {
        choice::oversampling(self.parameters.value(OVERSAMPLING))
    }

    /// Returns the size of a model with smaller variants, 0 … 1.
    pub fn size(&self) -> f32 {
        self.parameters.value(SIZE)
    }

    /// Returns whether a session or a preset is to be rendered, by the extension.
    pub fn is_session(&self) -> bool {
        SessionFile::is_readable(&self.model)
    }

    /// Checks that exactly one source is given for a model.
    ///
    /// # Errors
    /// Returns an error without a source, with two, or with options that are for sessions only.
    pub fn check_model(&self) -> anyhow::Result<()> {
        let name = self.model.display();
        ensure!(
            !self.stems,
            "--stems needs a session, NAME.{}; {name} is a model",
            session_file::EXTENSION
        );
        let is_driven = !(self.midi.is_empty() && self.input.is_empty());
        if is_driven && self.seconds.is_some() {
            bail!(
                "--seconds needs a session, NAME.{}, or a model that generates without --midi and --input",
                session_file::EXTENSION
            );
        }
        ensure!(
            self.midi.is_empty() || self.input.is_empty(),
            "{name}: takes --midi or --input, not both"
        );
        Ok(())
    }

    /// Checks that a model has what it plays: notes, sound, or the length of what it generates.
    ///
    /// # Errors
    /// Returns an error that names the options that the model takes.
    pub fn check_source(&self, model: &Model) -> anyhow::Result<()> {
        if self.seconds.is_some() || !(self.midi.is_empty() && self.input.is_empty()) {
            return Ok(());
        }
        let header = model.header();
        let needed = match header.kind {
            _ if header.method("prior").is_some() => {
                "--seconds to play on its own, or --midi or --input"
            }
            Kind::Instrument | Kind::Generator => "--midi or --input",
            Kind::Effect | Kind::Codec => "--input",
        };
        bail!("{}: needs {needed}", self.model.display())
    }

    /// Checks the output's format and sample format before anything is rendered. `is_file` is false
    /// for the folder of a batch.
    ///
    /// # Errors
    /// Returns an error for an ending that is not written, or a format that does not hold the bits
    /// or the stream.
    pub fn check_format(&self, is_file: bool) -> anyhow::Result<()> {
        let out = self.out.as_deref().filter(|_| is_file);
        if out.is_some_and(|out| out.as_os_str() == "-") {
            ensure!(
                self.format != Some(SoundFormat::Flac),
                "--format flac needs a file; standard output is WAV"
            );
        } else if let Some(out) = out {
            check_not_input(
                out,
                self.sources().into_iter().chain([self.model.as_path()]),
            )?;
            SoundFormat::check(out, self.format)?;
        }
        let format = out.map_or_else(|| self.container(), SoundFormat::from_path);
        let is_float = format == SoundFormat::Flac && self.bits == Some(BitDepth::Float32);
        ensure!(
            !is_float,
            "FLAC holds integers; give --bits 16 or --bits 24"
        );
        Ok(())
    }

    /// Returns the format of files that the command names itself.
    pub fn container(&self) -> SoundFormat {
        self.format.unwrap_or_default()
    }

    /// Returns the sample format of an output.
    pub fn bits_of(&self, target: &OutputTarget) -> BitDepth {
        self.bits
            .unwrap_or_else(|| BitDepth::usual(target.format()))
    }

    /// Returns the length in seconds of what the model is to generate without a source.
    pub fn generated_seconds(&self) -> Option<f64> {
        self.seconds
            .filter(|_| self.midi.is_empty() && self.input.is_empty())
    }

    /// Returns the source of an instrument's pitch.
    pub fn source(&self) -> ControlSource {
        if self.midi.is_empty() {
            ControlSource::AudioInput
        } else {
            ControlSource::Notes
        }
    }

    /// Returns all files and folders to play.
    pub fn sources(&self) -> Vec<&Path> {
        [&self.midi, &self.input, &self.more]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect()
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
