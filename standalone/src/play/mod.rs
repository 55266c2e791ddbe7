//! `ondes play`: plays a model or a session on the sound card, without a window.

mod line;
mod played;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use ondes_engine::instrument::EventKind;
use ondes_engine::model::Model;
use ondes_engine::pipeline::{PipelineOptions, Source};
use ondes_engine::realtime::{self, Patch};
use ondes_engine::wish::Wish;
use ondes_processor::board::Board;
use ondes_processor::choice;
use ondes_processor::library::{BUNDLED, Found};
use ondes_processor::macros::MACROS;
use ondes_processor::parameter::{DRIVER, Parameter, TRANSPOSE};
use ondes_processor::preset::Product;
use ondes_ui::KnobId;

use crate::devices::{AudioChoice, MidiChoice, MidiPorts, Opened, Status};
use crate::rack::saved::{self, Input};
use crate::rack::{Console, SessionFile, clip, score};
use crate::record::Format;
use crate::render::Score;
use crate::rig::{Begin, Rig};
use crate::running::RunningArguments;
use crate::terminal;
use crate::{interrupt, opening};
use line::Line;
use played::Played;

const EXAMPLES: &str = "\
Examples:
  ondes play bowed
  ondes play wind --midi keystation --record take.wav
  ondes play plucked --midi song.mid
  ondes play bowed --input singing.wav --loop --host jack
  ondes play stage.ondes-session";

/// How long devices may take to open.
const PATIENCE: Duration = Duration::from_secs(15);
/// Between two looks at how things are.
const LOOK: Duration = Duration::from_millis(100);
/// After the last note it is listened on until it is as quiet as this, for so long.
const QUIET: f32 = 1e-4;
const QUIET_S: f64 = 0.5;
/// Or for so long: the longest cabinet, and some time to spare. There are models that hum for ever.
const RINGING_S: f64 = 12.0;
/// Endings of MIDI files.
const MIDI_FILES: [&str; 2] = ["mid", "midi"];

/// Plays a model or a session on the sound card. Ctrl-C ends it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct PlayArguments {
    /// A model's file, the name of a bundled one (bowed, plucked, wind), or a session
    #[arg(value_name = "MODEL|SESSION")]
    model: PathBuf,
    /// What the model follows instead of notes: a device that records, or a recording
    #[arg(long, value_name = "DEVICE|FILE")]
    input: Option<String>,
    /// Plays the recording again and again
    #[arg(long = "loop", requires = "input")]
    looped: bool,
    /// What plays the notes: MIDI ports with this in their name, or a MIDI file; all ports where nothing is said
    #[arg(long, value_name = "PORT|FILE")]
    midi: Option<String>,
    /// The sound system, such as jack or alsa
    #[arg(long)]
    host: Option<String>,
    /// The device that plays
    #[arg(long, value_name = "DEVICE")]
    output: Option<String>,
    /// Hz
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(8_000..=384_000))]
    rate: Option<u32>,
    /// Frames in a block
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..=8_192))]
    block: Option<u32>,
    /// Records what is heard; WAV, or FLAC by the ending
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Turns a control of the model, in its unit, or a knob of Ondes by its name: gate, bass, middle, treble, oversampling, size,
    /// quality, mix, glide, … as in presets
    #[arg(long, value_name = "NAME=VALUE")]
    control: Vec<String>,
    /// Impulse response of a cabinet to play through, of up to 10 s
    #[arg(long, value_name = "FILE")]
    cabinet: Option<PathBuf>,
    /// Shifts all pitches, semitones (-24 to 24)
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-24..=24))]
    transpose: i32,
    /// Where the model runs: in the audio callback, or on a thread of its own, which is later but bears heavy models
    #[arg(long, value_enum, default_value_t = Driver::Auto)]
    driver: Driver,
    /// What runs the network.
    #[command(flatten)]
    running: RunningArguments,
    /// Ends after so many seconds
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
}

/// Where a model may run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Driver {
    Auto,
    Inline,
    Worker,
}

impl From<Driver> for realtime::Driver {
    fn from(driver: Driver) -> Self {
        match driver {
            Driver::Auto => Self::Auto,
            Driver::Inline => Self::Inline,
            Driver::Worker => Self::Worker { latency: None },
        }
    }
}

/// What is to be played besides what comes from devices.
#[derive(Clone)]
enum Piece {
    Notes(Arc<Score>),
    Recording,
}

/// Plays until somebody asks to stop, or a piece is over.
///
/// # Errors
/// One line with what cannot be played, or on what.
pub fn run(arguments: &PlayArguments) -> anyhow::Result<()> {
    // Errors are printed without the reasons behind them.
    play(arguments).map_err(|error| anyhow!("{error:#}"))
}

fn play(arguments: &PlayArguments) -> anyhow::Result<()> {
    interrupt::listen();
    let record = arguments.record.as_deref().map(|path| Ok::<_, anyhow::Error>((path, format(path)?))).transpose()?;
    let mut console = Console::new(|| {});
    let mut audio = AudioChoice {
        host: arguments.host.clone(),
        output: arguments.output.clone(),
        sample_rate: arguments.rate,
        block: arguments.block,
        ..AudioChoice::default()
    };
    let mut midi = MidiChoice::default();
    let mut piece = None;
    if arguments.model.extension().is_some_and(|ending| ending == saved::ENDING) {
        let [executor, device, precision] = arguments.running.given();
        let of_models = [
            executor,
            device,
            precision,
            ("--input", arguments.input.is_some()),
            ("--control", !arguments.control.is_empty()),
            ("--cabinet", arguments.cabinet.is_some()),
            ("--transpose", arguments.transpose != 0),
            ("--driver", arguments.driver != Driver::Auto),
        ];
        if let Some((option, _)) = of_models.iter().find(|(_, given)| *given) {
            bail!("{option} is for a model; {} says that for each of its tracks", arguments.model.display());
        }
        let session = SessionFile::read(&arguments.model)?;
        console.restore(&session).iter().for_each(|problem| terminal::warn(problem));
        (audio, midi) = (devices(audio, &session.audio), session.midi);
    } else {
        piece = single(&mut console, arguments, &mut audio)?;
    }
    match &arguments.midi {
        Some(midi_file) if ends_with(Path::new(midi_file), &MIDI_FILES) => {
            ensure!(arguments.input.is_none(), "{midi_file}: a model that follows an input plays no notes");
            piece = Some(Piece::Notes(Arc::new(Score::read(Path::new(midi_file), None, None)?)));
        }
        Some(port) => midi.ports = MidiPorts::Names(vec![port.clone()]),
        None => {}
    }
    let meter = console.meter.clone();
    let played = Arc::new(Mutex::new(Played::default()));
    let beginning = beginning(piece.clone(), meter.clone(), played.clone());
    let rig = Rig::recorded(console, audio, midi, beginning, record);
    let opened = match rig.settled(PATIENCE) {
        Status::Playing(opened) => opened,
        Status::Failed(reason) => bail!("{reason}"),
        Status::Lost { device, reason, .. } => bail!("{device}: {reason}"),
        Status::Opening => bail!("the sound system does not answer"),
    };
    if let Some(fault) = rig.console().tracks().find_map(|(_, track)| track.fault()) {
        bail!("{fault}");
    }
    if let Some(error) = rig.recording().error {
        bail!("{error}");
    }
    rig.console().notices().iter().for_each(|notice| terminal::warn(notice));
    let told = rig.console().tracks().filter_map(|(_, track)| track.shared.notice()).collect();
    let mut line = Line::new(&opened, told);
    let begun = Instant::now();
    let (mut ended_at, mut quiet_since) = (None, None);
    let mut failure = None;
    while !interrupt::requested() {
        std::thread::sleep(LOOK);
        let peaks = meter.peaks();
        let status = rig.status();
        line.show(&rig, &status, peaks);
        if let Status::Failed(reason) = status {
            failure = Some(reason);
            break;
        }
        if arguments.seconds.is_some_and(|seconds| begun.elapsed().as_secs_f64() >= seconds) {
            break;
        }
        let played_s = lock(&played).seconds(meter.frames());
        if piece.as_ref().is_some_and(|piece| ended(piece, &rig, played_s)) {
            let quiet = peaks.iter().all(|peak| *peak < QUIET);
            let since = *quiet_since.get_or_insert(played_s);
            if !quiet {
                quiet_since = Some(played_s);
            }
            if quiet && played_s - since > QUIET_S || played_s - *ended_at.get_or_insert(played_s) > RINGING_S {
                break;
            }
        }
    }
    drop(line);
    match rig.misses() {
        0 => {}
        misses => terminal::warn(&format!("sound came too late {misses} times; a larger --block helps")),
    }
    let status = rig.stop();
    if let Some(reason) = failure {
        bail!("{reason}");
    }
    if let Some(error) = status.error {
        bail!("{error}");
    }
    if status.dropped > 0 {
        terminal::warn(&format!("the disk was too slow: {} frames of the recording are silence", status.dropped));
    }
    Ok(())
}

/// One track with one model.
fn single(console: &mut Console, arguments: &PlayArguments, audio: &mut AudioChoice) -> anyhow::Result<Option<Piece>> {
    let product = if arguments.input.is_some() { Product::Effect } else { Product::Instrument };
    let found = find(&arguments.model)?;
    let wish = running(arguments, &found.0).with_context(|| arguments.model.display().to_string())?;
    let place = console.add(product)?;
    let track = console.track(place).context("the track is gone")?;
    let shared = track.shared.clone();
    shared.set_running(wish);
    // Its thread ends with what it has found, which is here already.
    drop(shared.fetch(false, move || Ok(found)).join());
    for turn in &arguments.control {
        let (name, value) = turn.split_once('=').with_context(|| format!("--control {turn}: expected NAME=VALUE"))?;
        let mut macros = (0..MACROS).map(|index| (shared.bound(index), KnobId(index as u32)));
        let of_model = macros.clone().find(|(bound, _)| bound.as_deref() == Some(name)).map(|(_, knob)| knob);
        let Some(knob) = of_model.or_else(|| Parameter::named(name)) else {
            let known: Vec<String> = macros.by_ref().filter_map(|(bound, _)| bound).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            bail!("--control {turn}: the model has no control {name:?}, it has {known}; nor has Ondes");
        };
        let position = shared.parse(knob, value).with_context(|| format!("--control {turn}: that is no value"))?;
        track.panel.put(knob, Parameter::of(knob).map_or(position, |parameter| parameter.value(position)));
    }
    if let Some(path) = &arguments.cabinet {
        drop(shared.fetch_cabinet(path.clone()).join());
        if let Some(missing) = shared.missing_cabinet() {
            bail!("{}", missing.looked.join(", "));
        }
    }
    shared.set_oversampling(track.panel.oversampling());
    shared.settle();
    track.panel.put(TRANSPOSE, arguments.transpose as f32);
    if let Some(driver) = choice::of_driver(arguments.driver.into()) {
        track.panel.put(DRIVER, driver);
    }
    let Some(input) = &arguments.input else { return Ok(None) };
    let path = Path::new(input);
    // What ends so is no device.
    if ends_with(path, &clip::ENDINGS) {
        path.metadata().with_context(|| input.clone())?;
    }
    if path.is_file() {
        console.set_input(place, Input::File { path: path.into(), looped: arguments.looped })?;
        return Ok((!arguments.looped).then_some(Piece::Recording));
    }
    audio.input = Some(input.clone());
    console.set_input(place, Input::Channels { first: 0, count: 1 })?;
    Ok(None)
}

/// What is to run the network: where it was chosen here and not in a project, it is that or nothing.
fn running(arguments: &PlayArguments, model: &Arc<Model>) -> anyhow::Result<Wish> {
    let wish = arguments.running.of(model)?;
    if arguments.running.given().iter().any(|(_, given)| *given) {
        let options = PipelineOptions { source: Source::Sound, wish, ..PipelineOptions::default() };
        Patch::new(model.clone(), options)?;
    }
    Ok(wish)
}

/// The model of that file, or the bundled one of that name.
///
/// # Errors
/// When there is neither.
pub(crate) fn find(model: &Path) -> anyhow::Result<Found> {
    let name = model.to_string_lossy();
    let bundled = BUNDLED.iter().find(|bundled| bundled.name.eq_ignore_ascii_case(&name));
    match bundled.filter(|_| !model.is_file()) {
        Some(bundled) => Ok((bundled.model(), None)),
        // No path but a name.
        None if model.extension().is_none() && model.components().count() == 1 && !model.exists() => {
            let known: Vec<String> = BUNDLED.iter().map(|bundled| bundled.name.to_lowercase()).collect();
            bail!("{name}: there is no such file, and the bundled models are {}", known.join(", "))
        }
        None => {
            let found = opening::open(model)?;
            Ok((Arc::new(found), Some(model.into())))
        }
    }
}

/// What was said here, else what the session says.
fn devices(here: AudioChoice, session: &AudioChoice) -> AudioChoice {
    let session = session.clone();
    AudioChoice {
        host: here.host.or(session.host),
        output: here.output.or(session.output),
        sample_rate: here.sample_rate.or(session.sample_rate),
        block: here.block.or(session.block),
        ..session
    }
}

/// Tells the console what to play whenever the sound begins; where it has begun before, what is left of it.
fn beginning(piece: Option<Piece>, meter: Arc<crate::rack::Meter>, played: Arc<Mutex<Played>>) -> Begin {
    Box::new(move |console: &mut Console, opened: &Opened| {
        let before_s = {
            let mut played = lock(&played);
            played.begin(meter.restart(), opened.sample_rate)
        };
        let Some(Piece::Notes(score)) = &piece else { return Ok(()) };
        let rate = f64::from(opened.sample_rate);
        let done = (before_s * rate) as u64;
        let events = score.events(opened.sample_rate).map(|event| (event.at, event.kind));
        let left: Vec<(u64, EventKind)> =
            score::rest(events, done).into_iter().map(|(at, kind)| (at - done, kind)).collect();
        let places: Vec<usize> = console.tracks().map(|(place, _)| place).collect();
        places.into_iter().for_each(|place| console.set_score(place, left.clone()));
        Ok(())
    })
}

/// Whether all that was to be played has been played after so many seconds of sound.
fn ended(piece: &Piece, rig: &Rig, played_s: f64) -> bool {
    match piece {
        Piece::Notes(score) => score.end(1_000) as f64 / 1e3 < played_s,
        Piece::Recording => {
            rig.console().track(0).and_then(|track| track.clip().cloned()).is_none_or(|clip| !clip.is_playing())
        }
    }
}

/// Nothing that is kept here is half done when a thread panics.
fn lock(played: &Mutex<Played>) -> std::sync::MutexGuard<'_, Played> {
    played.lock().unwrap_or_else(PoisonError::into_inner)
}

fn format(path: &Path) -> anyhow::Result<Format> {
    if ends_with(path, &["flac"]) {
        return Ok(Format::Flac);
    }
    ensure!(ends_with(path, &["wav"]), "{}: recordings end with .wav or .flac", path.display());
    Ok(Format::Float32)
}

fn ends_with(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|ending| endings.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}
