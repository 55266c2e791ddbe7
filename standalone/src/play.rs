//! `ondes play`: plays a model or a session on the audio devices, without a window.

mod played_time;
mod status_line;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::instrument::MidiFile;
use ondes_engine::model::Model;
use ondes_engine::pipeline::{ControlSource, PipelineOptions, build_playable};
use ondes_engine::realtime;
use ondes_engine::sync::lock;
use ondes_player::choice;
use ondes_player::macros::MACRO_COUNT;
use ondes_player::parameter::{DRIVER, Parameter, ParameterId, TRANSPOSE, TUNE};
use ondes_player::parameter_source::ParameterSource;
use ondes_player::product::Product;

use crate::argument_parsers::{SECONDS, TRANSPOSE as TRANSPOSE_RANGE, number_in};
use crate::audio_app::{AudioApp, OnOpened};
use crate::devices::{AudioStatus, Opened};
use crate::executor_arguments::{ExecutorArguments, ResamplingArgument};
use crate::io::{AudioChoice, MidiChoice, MidiPorts};
use crate::program_arguments::ProgramArguments;
use crate::rack::remaining_events::remaining_events;
use crate::rack::session_file::TrackInput;
use crate::rack::{MasterMeter, Mixer, SessionFile, Track, clip};
use crate::record::RecordingFormat;
use crate::render::midi_score::MidiScore;
use crate::terminal;
use crate::trust::refuse_untrusted;
use crate::tuning_arguments::TuningArguments;
use crate::{help, interrupt, open_model};
use played_time::PlayedTime;
use status_line::StatusLine;

const EXAMPLES: &str = "\
Examples:
  ondes play bowed
  ondes play wind --midi keystation --record take.wav
  ondes play plucked --midi song.mid
  ondes play bowed --input singing.wav --loop --host jack
  ondes play stage.ondes-session
  ondes play lead.ondes-preset";

/// Longest wait for the devices.
const OPEN_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest time to complete a recording after an interrupt.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the status is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Level below which the output counts as silent, and the length of silence after the last note
/// that ends playing, seconds.
const SILENCE_LEVEL: f32 = 1e-4;
const SILENCE_S: f64 = 0.5;
/// Longest tail after the last note, seconds: the longest cabinet and a reserve. Some models never
/// fall silent.
const MAX_TAIL_S: f64 = 12.0;

/// Plays a model, a preset or a session on the audio devices until Ctrl-C, or until its file is over
#[derive(Args)]
#[command(after_help = help::with_bundled(EXAMPLES))]
pub struct PlayArguments {
    /// Model file, a bundled model by its name, preset or session
    #[arg(value_name = "MODEL|PRESET|SESSION")]
    model: PathBuf,
    /// Run the TorchScript programs that the session names, this time only; run only what you trust
    #[arg(long)]
    trust: bool,
    /// Audio input for the model to follow or process: an input device, or a recording
    #[arg(long, value_name = "DEVICE|FILE")]
    input: Option<String>,
    /// Loop the recording of --input
    #[arg(long = "loop", requires = "input")]
    looped: bool,
    /// Notes: MIDI ports with this in their name, or a MIDI file [default: all ports]
    #[arg(long, value_name = "PORT|FILE")]
    midi: Option<String>,
    /// Sound system, such as jack or alsa [default: jack if its server runs, otherwise the
    /// system's]
    #[arg(long)]
    host: Option<String>,
    /// Output device, by name or identifier; `ondes devices` lists them [default: the system's]
    #[arg(long, value_name = "DEVICE")]
    output: Option<String>,
    /// Sample rate, 8000 to 384000 Hz [default: the device's]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(8_000..=384_000))]
    sample_rate: Option<u32>,
    /// Block length, 1 to 8192 frames [default: the device's]
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..=8_192))]
    block: Option<u32>,
    /// Conversion between the sample rates of device and model
    #[arg(long, value_enum, value_name = "METHOD", default_value_t)]
    resampling: ResamplingArgument,
    /// Record the output to this file, NAME.wav or NAME.flac
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Set a control of the model in its unit, or a parameter of Ondes by its id: gate, bass,
    /// middle, treble, oversampling, size, quality, mix, glide …, as in presets
    #[arg(long, value_name = "NAME=VALUE")]
    control: Vec<String>,
    /// Impulse response of a cabinet, up to 10 s (WAV, AIFF, FLAC …), or a bundled cabinet: 1x12,
    /// 2x12 or 4x12
    #[arg(long, value_name = "FILE|NAME")]
    cabinet: Option<PathBuf>,
    /// Tuning of an instrument.
    #[command(flatten)]
    tuning: TuningArguments,
    /// Transpose all notes, -24 to 24 semitones
    #[arg(
        long,
        value_name = "SEMITONES",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        value_parser = number_in(TRANSPOSE_RANGE)
    )]
    transpose: f32,
    /// Thread of the model: the audio callback (inline), or a worker thread with more latency but
    /// room for heavy models
    #[arg(long, value_enum, default_value_t = DriverArgument::Auto)]
    driver: DriverArgument,
    /// Method and settings of a TorchScript model.
    #[command(flatten)]
    program: ProgramArguments,
    /// Executor of the network.
    #[command(flatten)]
    executor: ExecutorArguments,
    /// Stop after this many seconds, up to a day [default: play until Ctrl-C, or to the end of a
    /// file]
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = number_in(SECONDS))]
    seconds: Option<f64>,
    /// Print warnings and errors only
    #[arg(short, long)]
    quiet: bool,
}

/// Thread that runs a model.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DriverArgument {
    Auto,
    Inline,
    Worker,
}

impl From<DriverArgument> for realtime::Driver {
    fn from(driver: DriverArgument) -> Self {
        match driver {
            DriverArgument::Auto => Self::Auto,
            DriverArgument::Inline => Self::Inline,
            DriverArgument::Worker => Self::Worker { latency: None },
        }
    }
}

/// Finite material that is played.
#[derive(Clone)]
enum Playback {
    Notes(Arc<MidiScore>),
    Recording,
}

/// Mixer, devices and material that the command line asks for.
struct Prepared {
    mixer: Mixer,
    audio: AudioChoice,
    midi: MidiChoice,
    playback: Option<Playback>,
}

/// Plays until it is interrupted or the material is over.
///
/// # Errors
/// Returns an error that names what cannot be played, or the device.
pub fn run(arguments: &PlayArguments) -> anyhow::Result<()> {
    // The program prints an error without its sources.
    play(arguments).map_err(|error| anyhow!("{error:#}"))
}

fn play(arguments: &PlayArguments) -> anyhow::Result<()> {
    let record = arguments
        .record
        .as_deref()
        .map(|path| Ok::<_, anyhow::Error>((path, format(path)?)))
        .transpose()?;
    let Prepared {
        mixer,
        audio,
        midi,
        playback,
    } = prepare(arguments)?;
    let meter = mixer.meter.clone();
    let played = Arc::new(Mutex::new(PlayedTime::default()));
    let on_opened = on_opened(playback.clone(), meter.clone(), played.clone());
    let app = AudioApp::with_recording(mixer, audio, midi, on_opened, record);
    let opened = wait_for_devices(&app)?;
    if !is_session(&arguments.model) {
        // The status line warns of the tracks of a session.
        let error = app
            .mixer()
            .tracks()
            .find_map(|(_, track)| track.error().map(str::to_owned));
        error.map_or(Ok(()), |error| bail!("{error}"))?;
    }
    // From here on interrupts are noticed at once, and the recording is completed.
    interrupt::allow(FINISH_TIMEOUT);
    app.mixer()
        .notices()
        .iter()
        .for_each(|notice| terminal::warn(notice));
    let shown_warnings = app
        .mixer()
        .tracks()
        .filter_map(|(_, track)| track.instance.notice())
        .collect();
    let mut line = StatusLine::new(&opened, shown_warnings, arguments.quiet);
    let failure = play_until_over(
        arguments.seconds,
        &app,
        playback.as_ref(),
        &meter,
        &played,
        &mut line,
    );
    let shown_recording_error = line.finish();
    match app.dropouts() {
        0 => {}
        dropouts => terminal::warn(&format!("{dropouts} dropouts; a larger --block helps")),
    }
    let status = app.stop();
    match (failure, status.error) {
        (Some(failure), _) => bail!("{failure}"),
        // It was printed when it happened.
        (None, Some(error)) if shown_recording_error.as_ref() == Some(&error) => {
            bail!("the recording is incomplete")
        }
        (None, Some(error)) => bail!("{error}"),
        (None, None) => {}
    }
    if status.dropped > 0 {
        terminal::warn(&format!(
            "the disk was too slow: {} frames of the recording are silence",
            status.dropped
        ));
    }
    Ok(())
}

/// Loads the model or session, and selects devices and material.
fn prepare(arguments: &PlayArguments) -> anyhow::Result<Prepared> {
    let mut mixer = Mixer::new(|| {});
    let mut audio = AudioChoice {
        host: arguments.host.clone(),
        output: arguments.output.clone(),
        sample_rate: arguments.sample_rate,
        block: arguments.block,
        ..AudioChoice::default()
    };
    let mut midi = MidiChoice::default();
    let mut playback = None;
    if is_session(&arguments.model) {
        check_session_options(arguments)?;
        let session = SessionFile::read(&arguments.model)?;
        if arguments.trust {
            session.allow_programs();
        }
        let problems = mixer.restore(&session);
        refuse_untrusted(&mixer, &arguments.model)?;
        problems.iter().for_each(|problem| terminal::warn(problem));
        (audio, midi) = (with_session_defaults(audio, &session.audio), session.midi);
    } else {
        playback = add_model_track(&mut mixer, arguments, &mut audio)?;
    }
    match &arguments.midi {
        Some(file) if has_extension(Path::new(file), &MidiFile::EXTENSIONS) => {
            ensure!(
                arguments.input.is_none(),
                "{file}: a model that follows --input plays no notes; leave out one of them"
            );
            let settings = mixer
                .tracks()
                .next()
                .map(|(_, track)| track.parameters.player_parameters().midi);
            let score =
                MidiScore::read(Path::new(file), None, None, &settings.unwrap_or_default())?;
            score
                .damage()
                .iter()
                .for_each(|damage| terminal::warn(damage));
            playback = Some(Playback::Notes(Arc::new(score)));
        }
        Some(port) => midi.ports = MidiPorts::Names(vec![port.clone()]),
        None => {}
    }
    Ok(Prepared {
        mixer,
        audio,
        midi,
        playback,
    })
}

fn is_session(path: &Path) -> bool {
    SessionFile::is_readable(path)
}

/// Refuses options that a session sets for each of its tracks.
fn check_session_options(arguments: &PlayArguments) -> anyhow::Result<()> {
    let [executor, device, precision] = arguments.executor.given_options();
    let [method, settings] = arguments.program.given_options();
    let model_options = [
        executor,
        device,
        precision,
        method,
        settings,
        (
            "--resampling",
            arguments.resampling != ResamplingArgument::default(),
        ),
        ("--input", arguments.input.is_some()),
        ("--control", !arguments.control.is_empty()),
        ("--cabinet", arguments.cabinet.is_some()),
        ("--tuning", arguments.tuning.files().is_some()),
        ("--transpose", arguments.transpose != 0.0),
        ("--driver", arguments.driver != DriverArgument::Auto),
    ];
    match model_options.iter().find(|(_, given)| *given) {
        Some((option, _)) => bail!(
            "{option} is for a model; {} sets it for each track",
            arguments.model.display()
        ),
        None => Ok(()),
    }
}

/// Waits until the devices are open and the recording is ready.
fn wait_for_devices(app: &AudioApp) -> anyhow::Result<Opened> {
    let opened = match app.settled(OPEN_TIMEOUT) {
        AudioStatus::Playing(opened) => opened,
        AudioStatus::Failed(reason) => bail!("{reason}"),
        AudioStatus::Lost { device, reason, .. } => bail!("{device}: {reason}"),
        AudioStatus::Opening => bail!("the sound system does not answer"),
    };
    match app.recording().error {
        Some(error) => bail!("{error}"),
        None => Ok(opened),
    }
}

/// Updates the status line until playing ends. Returns the error of devices that have failed.
fn play_until_over(
    seconds: Option<f64>,
    app: &AudioApp,
    playback: Option<&Playback>,
    meter: &MasterMeter,
    played: &Mutex<PlayedTime>,
    line: &mut StatusLine,
) -> Option<String> {
    let started = Instant::now();
    let mut tail = Tail::default();
    while !interrupt::requested() {
        std::thread::sleep(POLL_INTERVAL);
        let peaks = meter.peaks();
        let status = app.status();
        line.show(app, &status, peaks);
        if let AudioStatus::Failed(reason) = status {
            return Some(reason);
        }
        if seconds.is_some_and(|seconds| started.elapsed().as_secs_f64() >= seconds) {
            return None;
        }
        let played_s = lock(played).seconds(meter.frames());
        if playback.is_some_and(|playback| is_over(playback, app, played_s))
            && tail.has_faded(played_s, peaks)
        {
            return None;
        }
    }
    None
}

/// Sound after the end of the material.
#[derive(Default)]
struct Tail {
    /// Time of the end, s.
    started_s: Option<f64>,
    /// Time since which the output is silent, s.
    silent_since_s: Option<f64>,
}

impl Tail {
    /// Returns whether the output has been silent for long enough, or the tail has lasted too long.
    fn has_faded(&mut self, played_s: f64, peaks: [f32; 2]) -> bool {
        let silent = peaks.iter().all(|peak| *peak < SILENCE_LEVEL);
        let since = *self.silent_since_s.get_or_insert(played_s);
        if !silent {
            self.silent_since_s = Some(played_s);
        }
        silent && played_s - since > SILENCE_S
            || played_s - *self.started_s.get_or_insert(played_s) > MAX_TAIL_S
    }
}

/// Adds a track with the model of the command line.
fn add_model_track(
    mixer: &mut Mixer,
    arguments: &PlayArguments,
    audio: &mut AudioChoice,
) -> anyhow::Result<Option<Playback>> {
    let product = if arguments.input.is_some() {
        Product::Effect
    } else {
        Product::Instrument
    };
    let found = open_model::find(&arguments.model)?;
    let with_path = || arguments.model.display().to_string();
    let executor = executor_selection(arguments, &found.0).with_context(with_path)?;
    let program = arguments
        .program
        .options(&found.0)
        .with_context(with_path)?;
    let slot = mixer.add(product)?;
    let track = mixer.track(slot).context("the track is gone")?;
    let instance = track.instance.clone();
    instance.set_executor(executor);
    instance.set_resampling(arguments.resampling.into());
    // What is played is what was asked for, as with `ondes render`.
    instance.set_automatic_cabinet(false);
    // The model is loaded already; the thread ends at once.
    drop(instance.load_model(false, move || Ok(found)).join());
    instance
        .set_program_options(program)
        .with_context(with_path)?;
    for setting in &arguments.control {
        set_control(track, setting)?;
    }
    instance
        .set_tuning(arguments.tuning.files())
        .map_err(|reason| anyhow!("{reason}"))?;
    if let Some(path) = &arguments.cabinet {
        match open_model::bundled_cabinet(path)? {
            Some(bundled) => instance.choose_bundled_cabinet(bundled),
            None => drop(instance.load_cabinet(path.clone()).join()),
        }
        if let Some(missing) = instance.missing_cabinet() {
            bail!("{}", missing.searched.join(", "));
        }
    }
    instance.set_oversampling(track.parameters.oversampling());
    instance.apply_requested_variant();
    let semitones = arguments.transpose.round();
    track.parameters.set_value(TRANSPOSE, semitones);
    track
        .parameters
        .set_value(TUNE, 100.0 * (arguments.transpose - semitones));
    if let Some(driver) = choice::driver_value(arguments.driver.into()) {
        track.parameters.set_value(DRIVER, driver);
    }
    let Some(input) = &arguments.input else {
        return Ok(None);
    };
    let path = Path::new(input);
    // A name with such an extension is a file, not a device.
    if has_extension(path, &clip::EXTENSIONS) {
        path.metadata().with_context(|| input.clone())?;
    }
    if path.is_file() {
        mixer.set_input(
            slot,
            TrackInput::File {
                path: path.into(),
                looped: arguments.looped,
            },
        )?;
        return Ok((!arguments.looped).then_some(Playback::Recording));
    }
    audio.input = Some(input.clone());
    mixer.set_input(slot, TrackInput::Channels { first: 0, count: 1 })?;
    Ok(None)
}

/// Sets a control of the model or a parameter of Ondes, `NAME=VALUE`.
fn set_control(track: &Track, setting: &str) -> anyhow::Result<()> {
    let (name, value) = setting
        .split_once('=')
        .with_context(|| format!("--control {setting}: expected NAME=VALUE"))?;
    let instance = &track.instance;
    let bound = (0..MACRO_COUNT)
        .filter_map(|index| Some((instance.macro_control(index)?, ParameterId(index as u32))));
    let bound: Vec<(String, ParameterId)> = bound.collect();
    let control = bound
        .iter()
        .find(|(control, _)| control == name)
        .map(|(_, id)| *id);
    let Some(id) = control.or_else(|| Parameter::find(name)) else {
        let known: Vec<&str> = bound
            .iter()
            .map(|(control, _)| control.as_str())
            .chain(["and Ondes parameters"])
            .collect();
        bail!(
            "--control {setting}: unknown control {name:?}; available: {}",
            known.join(", ")
        );
    };
    let position = instance
        .parse_value(id, value)
        .with_context(|| format!("--control {setting}: {value:?} is not a value of {name}"))?;
    track.parameters.set_value(
        id,
        Parameter::get(id).map_or(position, |parameter| parameter.denormalize(position)),
    );
    Ok(())
}

/// Returns the executor selection. One given on the command line must work; there is no fallback.
fn executor_selection(
    arguments: &PlayArguments,
    model: &Arc<Model>,
) -> anyhow::Result<ExecutorSelection> {
    let executor = arguments.executor.selection_for(model)?;
    if arguments
        .executor
        .given_options()
        .iter()
        .any(|(_, given)| *given)
    {
        let options = PipelineOptions {
            source: ControlSource::AudioInput,
            executor,
            ..PipelineOptions::default()
        };
        build_playable(model, &options)?;
    }
    Ok(executor)
}

/// Combines the choice of the command line with that of the session.
fn with_session_defaults(here: AudioChoice, session: &AudioChoice) -> AudioChoice {
    let session = session.clone();
    AudioChoice {
        host: here.host.or(session.host),
        output: here.output.or(session.output),
        sample_rate: here.sample_rate.or(session.sample_rate),
        block: here.block.or(session.block),
        ..session
    }
}

/// Schedules the events, or those that are left, each time devices were opened.
fn on_opened(
    playback: Option<Playback>,
    meter: Arc<MasterMeter>,
    played: Arc<Mutex<PlayedTime>>,
) -> OnOpened {
    Box::new(move |mixer: &mut Mixer, opened: &Opened| {
        let before_s = {
            let mut played = lock(&played);
            played.begin(meter.restart(), opened.sample_rate)
        };
        let Some(Playback::Notes(score)) = &playback else {
            return Ok(());
        };
        let rate = f64::from(opened.sample_rate);
        let done = (before_s * rate) as u64;
        mixer.set_scores(|settings| {
            let events = score.track_events(settings, opened.sample_rate)?;
            Ok(remaining_events(events, done)
                .into_iter()
                .map(|(at, kind)| (at - done, kind))
                .collect())
        })
    })
}

/// Returns whether the material is over after `played_s` seconds of sound.
fn is_over(playback: &Playback, app: &AudioApp, played_s: f64) -> bool {
    match playback {
        Playback::Notes(score) => score.end(1_000) as f64 / 1e3 < played_s,
        Playback::Recording => app
            .mixer()
            .track(0)
            .and_then(|track| track.clip().cloned())
            .is_none_or(|clip| !clip.is_playing()),
    }
}

/// Returns the format of a recording by its extension.
fn format(path: &Path) -> anyhow::Result<RecordingFormat> {
    // A regular file is kept, and the recording gets a number.
    let is_special = path.metadata().is_ok_and(|metadata| !metadata.is_file());
    ensure!(
        !is_special,
        "{}: not a regular file; choose another --record",
        path.display()
    );
    if has_extension(path, &["flac"]) {
        return Ok(RecordingFormat::Flac);
    }
    ensure!(
        has_extension(path, &["wav", "wave"]),
        "{}: recordings are written as .wav or .flac; give --record a name with one of these endings",
        path.display()
    );
    Ok(RecordingFormat::Float32)
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|found| {
        extensions
            .iter()
            .any(|extension| found.eq_ignore_ascii_case(extension))
    })
}
