//! `ondes render`: an instrument plays a MIDI file, or re-plays a recording, into a WAV.
//!
//! [`arguments`] is the command line; [`score`] and [`recording`] are what is played, [`destination`] where it goes, [`stage`]
//! where it is played; [`report`] is what is said about it.

mod arguments;
mod destination;
mod recording;
mod report;
mod score;
mod stage;

use std::time::Instant;

use anyhow::anyhow;
use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{Pipeline, PipelineError, PipelineOptions, Source};

pub use arguments::RenderArguments;
pub use score::note_name;

use crate::progress::Progress;
use crate::{memory, terminal};
use destination::{Destination, Place};
use recording::Recording;
use report::{Report, amplitude_db};
use score::Score;
use stage::{Played, Stage};

/// What drives the instrument.
enum Music {
    Score(Score),
    Recording(Box<Recording>, String),
}

impl Music {
    fn open(arguments: &RenderArguments) -> anyhow::Result<Self> {
        match (&arguments.midi, &arguments.input) {
            (Some(midi), _) => Ok(Self::Score(Score::read(midi, arguments.track.as_deref(), arguments.channel)?)),
            (None, Some(input)) => {
                let recording = Recording::open(input, arguments.sample_rate)?;
                Ok(Self::Recording(Box::new(recording), input.display().to_string()))
            }
            (None, None) => Err(anyhow!("either --midi or --input is needed")),
        }
    }

    /// The rate of the output when none is asked for, Hz.
    fn natural_rate(&self, model: &Model) -> u32 {
        match self {
            Self::Score(_) => model.header().sample_rate,
            Self::Recording(recording, _) => recording.sample_rate(),
        }
    }

    fn source(&self) -> Source {
        match self {
            Self::Score(_) => Source::Notes,
            Self::Recording(..) => Source::Sound,
        }
    }

    /// About how many samples there will be at that rate in Hz, latency and room left out.
    fn length(&self, sample_rate: u32) -> Option<u64> {
        match self {
            Self::Score(score) => Some(score.end(sample_rate)),
            Self::Recording(recording, _) => {
                let scale = f64::from(sample_rate) / f64::from(recording.sample_rate());
                recording.frames().map(|frames| (frames as f64 * scale) as u64)
            }
        }
    }
}

/// Renders as the command line says; `started` is when the program was.
///
/// # Errors
/// One line that names the file and what is wrong with it. No output is left then.
pub fn run(arguments: &RenderArguments, started: Instant) -> anyhow::Result<()> {
    let model = file::read(&arguments.model)?;
    let mut music = Music::open(arguments)?;
    let place = Place::choose(arguments)?;
    let sample_rate = arguments.sample_rate.unwrap_or_else(|| music.natural_rate(&model));
    let pipeline = set_up(&model, arguments, music.source(), sample_rate)
        .map_err(|error| anyhow!("{}: {error}", arguments.model.display()))?;
    let performance = model.header().performance.unwrap_or_default();
    let (mut warnings, notes, notes_outside) = match &music {
        Music::Score(score) => (
            score.warnings(&performance, arguments.transpose),
            score.notes(),
            score.notes_outside(&performance, arguments.transpose),
        ),
        Music::Recording(..) => (Vec::new(), 0, 0),
    };
    for warning in &warnings {
        terminal::warn(warning);
    }
    let warned = warnings.len();

    let latency = pipeline.latency_samples();
    let rest = (latency + pipeline.tail_samples()) as u64;
    let progress = Progress::new(music.length(sample_rate).map(|length| length + rest), sample_rate);
    let destination = Destination::create(&place, sample_rate, arguments.bits, latency)?;
    let stage = Stage::new(pipeline, destination, progress, sample_rate, arguments.block as usize);
    let begun = Instant::now();
    let played = match &mut music {
        Music::Score(score) => stage.play(score.events(sample_rate))?,
        Music::Recording(recording, _) => stage.follow(recording)?,
    };
    let elapsed = begun.elapsed();
    let Played { pipeline, destination, in_pipeline, first_sample } = played;
    let (frames, peak) = (destination.frames(), destination.peak());
    destination.finish()?;

    if let Music::Recording(recording, name) = &music {
        warnings.extend(recording.warnings().into_iter().map(|warning| format!("{name}: {warning}")));
    }
    let out = place.name();
    if arguments.bits.clips() && peak > 1.0 {
        let over = amplitude_db(peak).unwrap_or_default();
        warnings
            .push(format!("{out}: clipped, the sound is {over:.1} dB too loud for integers; --bits 32 keeps it whole"));
    }
    match pipeline.notes_dropped() {
        0 => {}
        dropped => warnings.push(format!("{out}: {dropped} notes found no voice; --voices gives more")),
    }
    match pipeline.samples_missing() {
        0 => {}
        missing => warnings.push(format!("{out}: {missing} samples are silent by a mistake in this program")),
    }
    for warning in &warnings[warned..] {
        terminal::warn(warning);
    }

    let seconds = frames as f64 / f64::from(sample_rate);
    let report = Report {
        out,
        model: arguments.model.display().to_string(),
        instrument: model.header().card.name.clone(),
        seconds,
        frames,
        sample_rate,
        bits: arguments.bits.count(),
        realtime_factor: seconds / elapsed.as_secs_f64(),
        ns_per_sample: 1e9 * in_pipeline.as_secs_f64() / frames.max(1) as f64,
        peak_db: amplitude_db(peak),
        latency_samples: latency,
        executor: pipeline.executor(),
        block: arguments.block,
        notes,
        notes_outside,
        notes_dropped: pipeline.notes_dropped(),
        start_ms: first_sample.map(|first| 1e3 * (first - started).as_secs_f64()),
        memory_bytes: pipeline.bytes(),
        peak_memory_bytes: memory::peak_resident_bytes(),
        warnings,
    };
    let text = if arguments.json { serde_json::to_string(&report)? } else { report.line() };
    match place {
        Place::File(_) => terminal::print(&text),
        Place::StandardOutput => terminal::print_aside(&text),
    }
}

/// The pipeline, with all knobs turned.
fn set_up(
    model: &Model,
    arguments: &RenderArguments,
    source: Source,
    sample_rate: u32,
) -> Result<Pipeline, PipelineError> {
    let options = PipelineOptions {
        sample_rate,
        source,
        voices: arguments.voices.map(usize::from),
        transpose: arguments.transpose,
        seed: arguments.seed,
        ..Default::default()
    };
    let mut pipeline = Pipeline::new(model, &options)?;
    for (name, value) in &arguments.controls {
        pipeline.set_control(name, *value)?;
    }
    Ok(pipeline)
}
