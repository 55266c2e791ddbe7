//! A session rendered: all tracks with their faders, and the master, as they are heard live.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use anyhow::{anyhow, bail, ensure};
use ondes_engine::pipeline::Source;
use ondes_engine::realtime::Setup;
use ondes_processor::board::Board;
use serde::Serialize;

use super::arguments::RenderArguments;
use super::destination::{Destination, Place, check_unlike};
use super::report::amplitude_db;
use super::score::Score;
use crate::progress::Progress;
use crate::rack::bounce::{Bounce, CHUNK, MOST_INPUTS};
use crate::rack::saved::Input;
use crate::rack::{Console, SessionFile, Track, clip};
use crate::{interrupt, memory, terminal};

/// Where neither the command line nor the session says anything, Hz.
const USUAL_RATE: u32 = 48_000;
/// Left and right.
const CHANNELS: usize = 2;

/// The figures of a session; `--json` prints exactly this.
#[derive(Serialize)]
struct Report {
    /// The mix, or `-`.
    out: String,
    /// The session file.
    session: String,
    /// Length of the sound, s.
    seconds: f64,
    /// Length of the sound, frames.
    frames: u64,
    /// Rate of the sound, Hz.
    sample_rate: u32,
    /// Bits per sample.
    bits: u16,
    /// Seconds of sound made in a second, reading and writing included.
    realtime_factor: f64,
    /// The largest sample, dB of full scale; null for silence.
    peak_db: Option<f64>,
    /// Integrated loudness after EBU R128, LUFS; null without `--normalize`, and for what has none.
    lufs: Option<f64>,
    /// True peak after EBU R128, dBTP; null without `--normalize`, and for silence.
    true_peak_db: Option<f64>,
    /// What `--normalize` made it louder by, dB; null without.
    gain_db: Option<f64>,
    /// The most that the master's limiter made it softer by, dB; 0 where it had nothing to do.
    reduction_db: f64,
    /// Latency that was compensated.
    latency_samples: usize,
    /// Frames rendered at a time.
    block: u32,
    /// Threads that played tracks, at most.
    jobs: usize,
    /// The tracks, in order.
    tracks: Vec<TrackReport>,
    /// The most memory that the program ever had, bytes; null where the system does not tell.
    peak_memory_bytes: Option<u64>,
    /// What was also said on standard error.
    warnings: Vec<String>,
}

/// The figures of a track.
#[derive(Serialize)]
struct TrackReport {
    /// Its name, or that of its model.
    name: String,
    /// The file with it alone; null without `--stems`.
    out: Option<String>,
    /// Its largest sample after the faders, dB of full scale; null for silence.
    peak_db: Option<f64>,
    /// Samples by which its model is late.
    latency_samples: usize,
}

impl Report {
    /// One line for a person.
    fn line(&self) -> String {
        let peak = self.peak_db.map_or("silent".to_owned(), |peak| format!("peak {peak:.1} dB"));
        let loudness = self.lufs.map_or_else(String::new, |lufs| format!(", {lufs:.1} LUFS"));
        let limited = if self.reduction_db > 0.05 {
            format!(", limited by up to {:.1} dB", self.reduction_db)
        } else {
            String::new()
        };
        let stems =
            if self.tracks.iter().any(|track| track.out.is_some()) { ", each in a file of its own" } else { "" };
        format!(
            "{}: {:.2} s at {} Hz, {:.0}× real time, {peak}{loudness}{limited}, {} tracks{stems}",
            self.out,
            self.seconds,
            self.sample_rate,
            self.realtime_factor,
            self.tracks.len(),
        )
    }
}

/// Renders a session as the command line says.
///
/// # Errors
/// One line that names the file and what is wrong with it. No output is left of what failed.
pub fn run(arguments: &RenderArguments) -> anyhow::Result<()> {
    check(arguments)?;
    let name = arguments.model.display();
    // Errors are printed without the reasons behind them.
    let whole = |error: anyhow::Error| anyhow!("{error:#}");
    let session = SessionFile::read(&arguments.model).map_err(whole)?;
    ensure!(!session.tracks.is_empty(), "{name}: there are no tracks in it");
    let (midi, input) = (arguments.midi.first().map(PathBuf::as_path), arguments.input.first().map(PathBuf::as_path));
    let recordings: Vec<&Path> = session.tracks.iter().filter_map(|track| track.input.file()).collect();
    let read =
        || [Some(arguments.model.as_path()), midi, input].into_iter().flatten().chain(recordings.iter().copied());
    let default = || PathBuf::from(arguments.model.file_stem().unwrap_or_default()).with_added_extension("wav");
    let place = Place::choose_unlike(arguments, default, read())?;
    let sample_rate = arguments.sample_rate.or(session.audio.sample_rate).unwrap_or(USUAL_RATE);

    let mut console = Console::offline();
    if let Some(problem) = console.restore(&session).first() {
        bail!("{name}: {problem}");
    }
    let mut length = 0;
    if let Some(midi) = midi {
        let score = Score::read(midi, None, None)?;
        length = score.end(sample_rate);
        let events: Vec<_> = score.events(sample_rate).map(|event| (event.at, event.kind)).collect();
        let places: Vec<usize> = console.tracks().map(|(place, _)| place).collect();
        places.into_iter().for_each(|place| console.set_score(place, events.clone()));
    }
    let input = match input {
        Some(input) => clip::decode(input, sample_rate, MOST_INPUTS).map_err(whole)?,
        None => Vec::new(),
    };
    length = length.max(input.first().map_or(0, Vec::len) as u64);
    let setup = Setup { sample_rate, max_block: arguments.block as usize };
    let rack = console.open(setup, None, Vec::new()).map_err(|error| anyhow!("{name}: {error:#}"))?;
    if let Some(fault) = console.tracks().find_map(|(_, track)| track.fault()) {
        bail!("{name}: {fault}");
    }
    let clips = console.tracks().filter_map(|(_, track)| track.clip());
    length = clips.map(|clip| clip.frames() as u64).fold(length, u64::max);
    if length == 0 && arguments.seconds.is_none() {
        bail!("{name}: there is no recording in it to say how long it is; give it --midi, --input or --seconds");
    }
    let stems = if arguments.stems { stems(arguments, &place, &console, read)? } else { Vec::new() };
    let progress = Progress::of_sound();
    let mut warnings = console.notices();
    warnings.extend(unheard(arguments, &console, input.len()));
    warnings.iter().for_each(|warning| progress.warn(warning));
    let warned = warnings.len();

    let jobs = arguments.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let length = arguments.seconds.map_or(length, |seconds| (seconds * f64::from(sample_rate)).round() as u64);
    let begun = Instant::now();
    let bounce = Bounce::new(rack);
    let tracks = bounce.tracks().iter().map(|bounced| {
        let name = console.track(bounced.place).map(Track::title).unwrap_or_default();
        TrackReport { name, out: None, peak_db: None, latency_samples: bounced.latency_samples() }
    });
    let mut tracks: Vec<TrackReport> = tracks.collect();
    let latency_samples = bounce.latency_samples();
    let mix = Destination::create(&place, sample_rate, CHANNELS, arguments, latency_samples)?;
    let late = bounce.tracks_latency_samples();
    let files = stems.iter().map(|stem| Destination::create(stem, sample_rate, CHANNELS, arguments, late));
    let files = files.collect::<anyhow::Result<Vec<_>>>()?;
    let peaks = vec![0.0; tracks.len()];
    let mut stage =
        Stage { bounce, input, position: 0, jobs, sample_rate, mix, stems: files, peaks, progress: &progress };
    progress.expect(Some(length + latency_samples as u64), sample_rate);
    stage.advance(length, None)?;
    let tail = if arguments.seconds.is_some() { 0 } else { stage.bounce.tail_samples() as u64 };
    stage.advance(length + tail + latency_samples as u64, Some(length + tail))?;
    let elapsed = begun.elapsed();
    let Stage { mix, stems: files, peaks, .. } = stage;
    for (place, track) in console.tracks() {
        if let Some(health) = track.shared.remote.health().filter(|health| health.faults > 0) {
            warnings.push(format!("{name}: track {}: {} blocks were no numbers", place + 1, health.faults));
        }
        let notice = track.shared.remote.notice();
        if let Some(notice) = notice.filter(|notice| !warnings.iter().any(|said| said.ends_with(notice))) {
            warnings.push(format!("{name}: track {}: {notice}", place + 1));
        }
        if let ondes_engine::realtime::Status::Failed(reason) = track.shared.remote.status() {
            bail!("{name}: track {}: {reason}", place + 1);
        }
    }
    for (track, peak) in tracks.iter_mut().zip(peaks) {
        track.peak_db = amplitude_db(peak);
    }
    for ((file, stem), track) in files.into_iter().zip(&stems).zip(&mut tracks) {
        let out = stem.name();
        warnings.extend(file.finish()?.warnings(&out, arguments));
        track.out = Some(out);
    }
    let written = mix.finish()?;
    let out = place.name();
    warnings.extend(written.warnings(&out, arguments));
    warnings[warned..].iter().for_each(|warning| progress.warn(warning));
    drop(progress);

    let seconds = written.frames as f64 / f64::from(sample_rate);
    let loudness = written.loudness.as_ref();
    let report = Report {
        out,
        session: name.to_string(),
        seconds,
        frames: written.frames,
        sample_rate,
        bits: arguments.bits.count(),
        realtime_factor: seconds / elapsed.as_secs_f64(),
        peak_db: amplitude_db(written.peak),
        lufs: loudness.and_then(|loudness| loudness.lufs),
        true_peak_db: loudness.and_then(|loudness| loudness.true_peak_db),
        gain_db: loudness.map(|loudness| loudness.gain_db),
        reduction_db: 0.0 - amplitude_db(console.meter.reduction()).unwrap_or_default(),
        latency_samples,
        block: arguments.block,
        jobs: jobs.min(tracks.len()),
        tracks,
        peak_memory_bytes: memory::peak_resident_bytes(),
        warnings,
    };
    let text = if arguments.json { serde_json::to_string(&report)? } else { report.line() };
    match place {
        Place::File(_) => terminal::print(&text),
        Place::StandardOutput => terminal::print_aside(&text),
    }
}

/// Refuses what makes no sense for a session.
fn check(arguments: &RenderArguments) -> anyhow::Result<()> {
    let name = arguments.model.display();
    let [executor, device, precision] = arguments.running.given();
    let of_models = [
        executor,
        device,
        precision,
        ("--control", !arguments.controls.is_empty()),
        ("--oversampling", arguments.oversampling != 1),
        ("--size", arguments.size < 1.0),
        ("gate, tone, cabinet or levels", arguments.chain.is_given()),
        ("--transpose", arguments.transpose != 0.0),
        ("--voices", arguments.voices.is_some()),
        ("--seed", arguments.seed != 0),
        ("--track", arguments.track.is_some()),
        ("--channel", arguments.channel.is_some()),
    ];
    if let Some((option, _)) = of_models.iter().find(|(_, given)| *given) {
        bail!("{option} is for a model; {name} says that for each of its tracks");
    }
    let of_batches = [("--shard", arguments.shard.is_some()), ("--force", arguments.force)];
    if let Some((option, _)) = of_batches.iter().find(|(_, given)| *given) {
        bail!("{option} is for many files; {name} is one session");
    }
    let many = !arguments.more.is_empty() || arguments.midi.len() > 1 || arguments.input.len() > 1;
    ensure!(!many, "{name}: a session is rendered with one file for --midi and one for --input");
    ensure!(
        !(arguments.stems && arguments.normalize.is_some()),
        "--stems and --normalize do not go together: the sum of the tracks would not be the mix"
    );
    Ok(())
}

/// Where each track goes: beside the mix, `NAME-TRACK.wav`, with a number where two would have the same name.
fn stems<'a, I: Iterator<Item = &'a Path>>(
    arguments: &RenderArguments,
    mix: &Place,
    console: &Console,
    read: impl Fn() -> I,
) -> anyhow::Result<Vec<Place>> {
    let Place::File(mix) = mix else {
        bail!("{}: --stems writes files beside the mix, and - is no file", arguments.model.display());
    };
    let stem = mix.file_stem().unwrap_or_default().to_string_lossy();
    let mut taken = BTreeSet::new();
    let mut places = Vec::new();
    for (place, track) in console.tracks() {
        let mut name = file_name(&track.title());
        if name.is_empty() {
            name = format!("Track {}", place + 1);
        }
        let numbered = (2..).map(|number: u32| format!("{name} {number}"));
        let free = |name: &String| !taken.contains(&name.to_lowercase());
        // There are always more numbers than tracks.
        let Some(name) = std::iter::once(name.clone()).chain(numbered).find(free) else { continue };
        taken.insert(name.to_lowercase());
        let path = mix.with_file_name(format!("{stem}-{name}.wav"));
        check_unlike(&path, read())?;
        places.push(Place::File(path));
    }
    Ok(places)
}

/// A name that all systems take for a part of a file's name.
fn file_name(title: &str) -> String {
    let shown = |c: char| if c.is_control() || r#"/\:*?"<>|"#.contains(c) { '_' } else { c };
    title.trim().chars().map(shown).take(64).collect()
}

/// What a user should know of tracks that have nothing to play, and of files that nobody hears.
fn unheard(arguments: &RenderArguments, console: &Console, inputs: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    let (mut notes, mut channels) = (false, false);
    for (place, track) in console.tracks() {
        let by_notes = track.panel.source() == Source::Notes && !track.shared.hears_input();
        let title = terminal::plain(&track.title()).into_owned();
        let mut warn = |reason: &str| warnings.push(format!("track {} ({title}): {reason}", place + 1));
        notes |= by_notes;
        if by_notes && arguments.midi.is_empty() {
            warn("it is played by notes, and there are none without --midi");
        }
        if let Input::Channels { first, .. } = track.input() {
            channels = true;
            if !by_notes && inputs == 0 {
                warn("it listens to the sound card, in whose place there is silence without --input");
            } else if *first >= inputs && inputs > 0 {
                warn("it listens to a channel that --input does not have");
            }
        }
    }
    if let Some(midi) = arguments.midi.first().filter(|_| !notes) {
        warnings.push(format!("{}: no track is played by notes", midi.display()));
    }
    if let Some(input) = arguments.input.first().filter(|_| !channels) {
        warnings.push(format!("{}: no track listens to the sound card", input.display()));
    }
    warnings
}

/// A bounce and where it goes.
struct Stage<'a> {
    bounce: Bounce,
    /// `[channel][frame]`: what is heard instead of the sound card.
    input: Vec<Vec<f32>>,
    /// Frames played so far, latency included.
    position: u64,
    jobs: usize,
    sample_rate: u32,
    mix: Destination,
    stems: Vec<Destination>,
    /// The largest sample of each track.
    peaks: Vec<f32>,
    progress: &'a Progress,
}

impl Stage<'_> {
    /// Plays up to a frame; files are no longer than `end`, once that is known.
    fn advance(&mut self, target: u64, end: Option<u64>) -> anyhow::Result<()> {
        // After the recording there is silence.
        let silence = [0.0; CHUNK];
        let input = std::mem::take(&mut self.input);
        let length = input.first().map_or(0, Vec::len) as u64;
        while self.position < target {
            interrupt::check()?;
            let start = self.position;
            let until = if start < length { target.min(length) } else { target };
            let frames = (until - start).min(CHUNK as u64) as usize;
            let heard = |channel: usize| {
                if start < length { &input[channel][start as usize..][..frames] } else { &silence[..frames] }
            };
            let heard: Vec<&[f32]> = (0..input.len()).map(heard).collect();
            self.play(frames, &heard, end)?;
        }
        self.input = input;
        Ok(())
    }

    fn play(&mut self, frames: usize, input: &[&[f32]], end: Option<u64>) -> anyhow::Result<()> {
        let Self { bounce, mix, .. } = self;
        bounce.play(frames, input, self.jobs, |sound| mix.take(&sound))?;
        let gains = bounce.master_gains();
        let mut stems = self.stems.iter_mut();
        for (track, peak) in bounce.tracks().iter().zip(&mut self.peaks) {
            let mut faded = track.sound(frames).map(<[f32]>::to_vec);
            for (channel, gain) in faded.iter_mut().zip(gains) {
                channel.iter_mut().for_each(|sample| *sample *= gain);
                *peak = channel.iter().fold(*peak, |peak, sample| peak.max(sample.abs()));
            }
            if let Some(stem) = stems.next() {
                let ahead = stem.ahead() as u64;
                let left = end.map_or(u64::MAX, |end| ahead + end - stem.frames().min(end));
                let count = left.min(frames as u64) as usize;
                stem.take(&faded.each_ref().map(|channel| &channel[..count]))?;
            }
        }
        self.position += frames as u64;
        self.progress.advance(frames as u64, self.sample_rate);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_title_becomes_a_part_of_a_name() {
        assert_eq!(file_name(" Lead/Solo: \"A\"\n2 "), "Lead_Solo_ _A__2");
        assert_eq!(file_name(&"é".repeat(99)).chars().count(), 64);
    }
}
