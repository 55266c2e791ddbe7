//! Rendering of a session: all tracks with their faders, and the master, as they are heard live.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use anyhow::{anyhow, bail, ensure};
use ondes_engine::instrument::MidiSettings;
use ondes_engine::model::Kind;
use ondes_engine::pipeline::ControlSource;
use ondes_engine::realtime::{LoadStatus, Setup};
use ondes_player::parameter::{BEND_RANGE, MPE};
use ondes_player::parameter_source::ParameterSource;
use ondes_player::product::Product;
use serde::Serialize;

use super::arguments::RenderArguments;
use super::midi_score::MidiScore;
use super::output_target::{OutputTarget, check_not_input};
use super::report::{InvalidOutput, amplitude_db, speed};
use super::sound_format::SoundFormat;
use super::wav_output::WavOutput;
use crate::executor_arguments::ResamplingArgument;
use crate::progress::RenderProgress;
use crate::rack::bounce::{Bounce, BouncedTrack, CHUNK, MAX_INPUTS};
use crate::rack::clip::Sound;
use crate::rack::session_file::TrackInput;
use crate::rack::{Mixer, SessionFile, Track, clip};
use crate::trust::refuse_untrusted;
use crate::{interrupt, memory, terminal};

/// Sample rate if neither the command line nor the session gives one, Hz.
const DEFAULT_RATE: u32 = 48_000;
/// Left and right.
const CHANNELS: usize = 2;

/// Results of a session render; `--json` prints exactly these fields.
#[derive(Serialize)]
struct SessionReport {
    /// Output file of the mix, or `-`.
    out: String,
    /// Session file.
    session: String,
    /// Length of the output, s.
    seconds: f64,
    /// Length of the output, frames.
    frames: u64,
    /// Sample rate of the output, Hz.
    sample_rate: u32,
    /// Bits per sample.
    bits: u16,
    /// Seconds of sound per second, reading and writing included.
    realtime_factor: f64,
    /// Largest sample, dB re full scale; null for silence.
    peak_db: Option<f64>,
    /// Integrated loudness, LUFS; null without `--normalize`, or if the sound is too short or soft.
    lufs: Option<f64>,
    /// True peak, dBTP; null without `--normalize`, and for silence.
    true_peak_db: Option<f64>,
    /// Gain of `--normalize`, dB; null without it.
    gain_db: Option<f64>,
    /// Largest reduction by the master's limiter, dB; 0 if it did not act.
    reduction_db: f64,
    /// Compensated latency, samples.
    latency_samples: usize,
    /// Block length, frames.
    block: u32,
    /// Threads that rendered tracks, at most.
    jobs: usize,
    /// Tracks, in order.
    tracks: Vec<TrackReport>,
    /// Peak memory of the program, bytes; null if the system does not report it.
    peak_memory_bytes: Option<u64>,
    /// Warnings, also printed on standard error.
    warnings: Vec<String>,
}

/// Results of a track.
#[derive(Serialize)]
struct TrackReport {
    /// Name of the track, or of its model.
    name: String,
    /// Stem file; null without `--stems`.
    out: Option<String>,
    /// Largest sample after the faders, dB re full scale; null for silence.
    peak_db: Option<f64>,
    /// Latency of the model, samples.
    latency_samples: usize,
    /// Blocks that are silent because the model computed NaN or infinity; null without any.
    invalid_output: Option<InvalidOutput>,
}

impl SessionReport {
    /// Formats the results for the terminal, in one line.
    fn line(&self) -> String {
        let peak = self
            .peak_db
            .map_or("silent".to_owned(), |peak| format!("peak {peak:.1} dB"));
        let loudness = self
            .lufs
            .map_or_else(String::new, |lufs| format!(", {lufs:.1} LUFS"));
        let limited = if self.reduction_db > 0.05 {
            format!(", limited by up to {:.1} dB", self.reduction_db)
        } else {
            String::new()
        };
        let stems = if self.tracks.iter().any(|track| track.out.is_some()) {
            ", each with a stem file"
        } else {
            ""
        };
        format!(
            "{}: {:.2} s at {} Hz, {}× real time, {peak}{loudness}{limited}, {} tracks{stems}",
            self.out,
            self.seconds,
            self.sample_rate,
            speed(self.realtime_factor),
            self.tracks.len(),
        )
    }
}

/// Renders a session as the command line asks.
///
/// # Errors
/// Returns an error that names the file and what is wrong with it. A failed render leaves no
/// output.
pub fn run(arguments: &RenderArguments) -> anyhow::Result<()> {
    check(arguments)?;
    arguments.check_format(true)?;
    let name = arguments.model.display();
    let session = SessionFile::read(&arguments.model).map_err(with_causes)?;
    ensure!(
        !session.tracks.is_empty(),
        "{name}: the session has no tracks"
    );
    if arguments.trust {
        session.allow_programs();
    }
    let recordings = session.tracks.iter().filter_map(|track| track.input.file());
    let read: Vec<&Path> = [arguments.model.as_path()]
        .into_iter()
        .chain(arguments.sources())
        .chain(recordings)
        .collect();
    let default = || {
        let stem = PathBuf::from(arguments.model.file_stem().unwrap_or_default());
        stem.with_added_extension(arguments.container().extension())
    };
    let target = OutputTarget::choose(arguments.out.as_deref(), default, read.iter().copied())?;
    let sample_rate = arguments
        .sample_rate
        .or(session.audio.sample_rate)
        .unwrap_or(DEFAULT_RATE);

    let mut mixer = Mixer::offline();
    let problems = mixer.restore(&session);
    refuse_untrusted(&mixer, &arguments.model)?;
    if let Some(problem) = problems.first() {
        bail!("{name}: {problem}");
    }
    let Material { input, length } = Material::load(arguments, &mut mixer, sample_rate)?;
    let setup = Setup {
        sample_rate,
        max_block: arguments.block as usize,
    };
    let rack = mixer
        .open(setup, None, Vec::new())
        .map_err(|error| anyhow!("{name}: {error:#}"))?;
    if let Some(error) = mixer.tracks().find_map(|(_, track)| track.error()) {
        bail!("{name}: {error}");
    }
    let length = session_length(arguments, &mixer, length, sample_rate)?;
    let stems = if arguments.stems {
        stem_targets(arguments, &target, &mixer, &read)?
    } else {
        Vec::new()
    };
    let progress = RenderProgress::of_sound(arguments.quiet);
    let mut warnings = mixer.notices();
    warnings.extend(unused_inputs(
        arguments,
        &mixer,
        input.as_ref().map_or(0, |input| input.channels.len()),
    ));
    warnings.iter().for_each(|warning| progress.warn(warning));
    let already_shown = warnings.len();

    let started_at = Instant::now();
    let mut render = SessionRender::create(
        arguments,
        Bounce::new(rack),
        Material { input, length },
        sample_rate,
        &target,
        &stems,
        &progress,
    )?;
    let mut tracks = render.track_reports(&mixer);
    let latency_samples = render.bounce.latency_samples();
    render.render_all(length, arguments.seconds.is_none())?;
    let elapsed = started_at.elapsed();
    let SessionRender {
        mix,
        stems: files,
        peaks,
        jobs,
        ..
    } = render;
    add_track_warnings(arguments, &mixer, sample_rate, &mut tracks, &mut warnings)?;
    for (track, peak) in tracks.iter_mut().zip(peaks) {
        track.peak_db = amplitude_db(peak);
    }
    for ((file, stem), track) in files.into_iter().zip(&stems).zip(&mut tracks) {
        let out = stem.name();
        warnings.extend(file.finish()?.warnings(&out, arguments));
        track.out = Some(out);
    }
    let written = mix.finish()?;
    let out = target.name();
    warnings.extend(written.warnings(&out, arguments));
    warnings[already_shown..]
        .iter()
        .for_each(|warning| progress.warn(warning));
    drop(progress);

    let seconds = written.frames as f64 / f64::from(sample_rate);
    let loudness = written.loudness.as_ref();
    let report = SessionReport {
        out,
        session: name.to_string(),
        seconds,
        frames: written.frames,
        sample_rate,
        bits: arguments.bits_of(&target).count().into(),
        realtime_factor: seconds / elapsed.as_secs_f64(),
        peak_db: amplitude_db(written.peak),
        lufs: loudness.and_then(|loudness| loudness.lufs),
        true_peak_db: loudness.and_then(|loudness| loudness.true_peak_db),
        gain_db: loudness.map(|loudness| loudness.gain_db),
        reduction_db: 0.0 - amplitude_db(mixer.meter.reduction()).unwrap_or_default(),
        latency_samples,
        block: arguments.block,
        jobs: jobs.min(tracks.len()),
        tracks,
        peak_memory_bytes: memory::peak_resident_bytes(),
        warnings,
    };
    if arguments.quiet {
        return Ok(());
    }
    let text = if arguments.json {
        serde_json::to_string(&report)?
    } else {
        report.line()
    };
    match target {
        OutputTarget::File(_) => terminal::print(&text),
        OutputTarget::StandardOutput => terminal::print_to_stderr(&text),
    }
}

/// Puts an error and its causes in one line, since the program prints an error without its sources.
fn with_causes(error: anyhow::Error) -> anyhow::Error {
    anyhow!("{error:#}")
}

/// Sound in place of the device's input, and the length of the material of the command line.
struct Material {
    input: Option<Sound>,
    /// Length of the input or of the MIDI file, whichever is longer, frames.
    length: u64,
}

impl Material {
    /// Schedules the MIDI file on all tracks and decodes the input.
    fn load(
        arguments: &RenderArguments,
        mixer: &mut Mixer,
        sample_rate: u32,
    ) -> anyhow::Result<Self> {
        let mut length = 0;
        if let Some(midi) = arguments.midi.first() {
            let score = MidiScore::read(midi, None, None, &MidiSettings::default())?;
            score
                .damage()
                .iter()
                .for_each(|damage| terminal::warn(damage));
            length = score.end(sample_rate);
            mixer.set_scores(|settings| score.track_events(settings, sample_rate))?;
        }
        let input = match arguments.input.first() {
            Some(input) => Some(clip::decode(input, sample_rate, MAX_INPUTS).map_err(with_causes)?),
            None => None,
        };
        let length = length.max(input.as_ref().map_or(0, Sound::frames) as u64);
        Ok(Self { input, length })
    }
}

/// Returns the length of the render in frames, without tail: `--seconds`, or the longest of
/// material and recordings.
fn session_length(
    arguments: &RenderArguments,
    mixer: &Mixer,
    material_length: u64,
    sample_rate: u32,
) -> anyhow::Result<u64> {
    if let Some(seconds) = arguments.seconds {
        return Ok((seconds * f64::from(sample_rate)).round() as u64);
    }
    let clips = mixer.tracks().filter_map(|(_, track)| track.clip());
    let length = clips
        .map(|clip| clip.frames() as u64)
        .fold(material_length, u64::max);
    let name = arguments.model.display();
    ensure!(
        length > 0,
        "{name}: the session has no recording that sets its length; give --midi, --input or --seconds"
    );
    Ok(length)
}

/// Adds warnings about tracks after the render, and their invalid output to their reports.
///
/// # Errors
/// Returns an error if a track has failed.
fn add_track_warnings(
    arguments: &RenderArguments,
    mixer: &Mixer,
    sample_rate: u32,
    reports: &mut [TrackReport],
    warnings: &mut Vec<String>,
) -> anyhow::Result<()> {
    let name = arguments.model.display();
    for ((slot, track), report) in mixer.tracks().zip(reports) {
        let number = slot + 1;
        if let LoadStatus::Failed(reason) = track.instance.status() {
            bail!("{name}: track {number}: {reason}");
        }
        let session = &track.instance.session;
        if let Some(invalid) = session.health().and_then(|health| health.invalid_output) {
            let first = invalid
                .first_sample
                .saturating_sub(report.latency_samples as u64);
            let first_second = first as f64 / f64::from(sample_rate);
            let invalid = InvalidOutput {
                first_second,
                samples: invalid.samples,
            };
            warnings.push(format!("{name}: track {number}: {}", invalid.warning()));
            report.invalid_output = Some(invalid);
        } else if let Some(warning) = session.warning()
            && !warnings.iter().any(|shown| shown.ends_with(&warning))
        {
            warnings.push(format!("{name}: track {number}: {warning}"));
        }
    }
    Ok(())
}

/// Refuses options that do not apply to a session.
fn check(arguments: &RenderArguments) -> anyhow::Result<()> {
    let name = arguments.model.display();
    let [executor, device, precision] = arguments.executor_arguments.given_options();
    let [method, settings] = arguments.program.given_options();
    let of_models = [
        executor,
        device,
        precision,
        method,
        settings,
        ("--control", !arguments.controls.is_empty()),
        ("--oversampling", arguments.oversampling().is_some()),
        (
            "--resampling",
            arguments.resampling != ResamplingArgument::default(),
        ),
        ("--size", arguments.size() < 1.0),
        (
            "gate, tone, cabinet, reverb or levels",
            arguments.has_chain(),
        ),
        (
            "--bend-range",
            arguments.parameters.given(BEND_RANGE).is_some(),
        ),
        ("--mpe", arguments.parameters.given(MPE).is_some()),
        ("--tuning", arguments.tuning.files().is_some()),
        ("--transpose", arguments.transpose != 0.0),
        ("--voices", arguments.voices.is_some()),
        ("--seed", arguments.seed != 0),
        ("--track", arguments.track.is_some()),
        ("--channel", arguments.channel.is_some()),
    ];
    if let Some((option, _)) = of_models.iter().find(|(_, given_options)| *given_options) {
        bail!("{option} is for a model; {name} sets it for each track");
    }
    let of_batches = [
        ("--shard", arguments.shard.is_some()),
        ("--force", arguments.force),
    ];
    if let Some((option, _)) = of_batches.iter().find(|(_, given_options)| *given_options) {
        bail!("{option} is for a batch; {name} is a session");
    }
    let many = !arguments.more.is_empty() || arguments.midi.len() > 1 || arguments.input.len() > 1;
    ensure!(
        !many,
        "{name}: a session takes at most one file for --midi and one for --input"
    );
    ensure!(
        !(arguments.stems && arguments.normalize.is_some()),
        "--stems cannot be combined with --normalize: the stems would not add up to the mix"
    );
    Ok(())
}

/// Returns the stem files beside the mix, `NAME-TRACK.wav` in its format; a number is added to
/// equal names.
fn stem_targets(
    arguments: &RenderArguments,
    mix: &OutputTarget,
    mixer: &Mixer,
    read: &[&Path],
) -> anyhow::Result<Vec<OutputTarget>> {
    let OutputTarget::File(mix) = mix else {
        bail!(
            "{}: --stems writes files beside the mix and needs a file as --out",
            arguments.model.display()
        );
    };
    let stem = mix.file_stem().unwrap_or_default().to_string_lossy();
    let mut used_names = BTreeSet::new();
    let mut targets = Vec::new();
    for (slot, track) in mixer.tracks() {
        let mut name = file_name(&track.title());
        if name.is_empty() {
            name = format!("Track {}", slot + 1);
        }
        let numbered = (2..).map(|number: u32| format!("{name} {number}"));
        let unused = |name: &String| !used_names.contains(&name.to_lowercase());
        // There are always more numbers than tracks.
        let Some(name) = std::iter::once(name.clone()).chain(numbered).find(unused) else {
            continue;
        };
        used_names.insert(name.to_lowercase());
        let path = mix.with_file_name(format!(
            "{stem}-{name}.{}",
            SoundFormat::from_path(mix).extension()
        ));
        check_not_input(&path, read.iter().copied())?;
        targets.push(OutputTarget::File(path));
    }
    Ok(targets)
}

/// Makes a title usable as a part of a file name on all systems.
fn file_name(title: &str) -> String {
    let shown = |c: char| {
        if c.is_control() || r#"/\:*?"<>|"#.contains(c) {
            '_'
        } else {
            c
        }
    };
    title.trim().chars().map(shown).take(64).collect()
}

/// Returns warnings about tracks without an input and files that no track plays.
fn unused_inputs(arguments: &RenderArguments, mixer: &Mixer, inputs: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    let (mut notes, mut channels) = (false, false);
    for (slot, track) in mixer.tracks() {
        let by_notes = track.parameters.control_source() == ControlSource::Notes
            && !track.instance.audio.uses_audio_input();
        let title = terminal::sanitize(&track.title()).into_owned();
        let mut warn =
            |reason: &str| warnings.push(format!("track {} ({title}): {reason}", slot + 1));
        // Notes begin and end a generator, which also plays without.
        let is_generator = track
            .instance
            .model()
            .is_some_and(|model| model.header().kind == Kind::Generator);
        notes |= by_notes || is_generator && track.instance.product == Product::Instrument;
        if by_notes && arguments.midi.is_empty() {
            warn("it plays notes; give them with --midi");
        }
        if let TrackInput::Channels { first, .. } = track.input() {
            channels = true;
            if !by_notes && inputs == 0 {
                warn("its input is the audio device; without --input it is silent");
            } else if *first >= inputs && inputs > 0 {
                warn("its input channel does not exist in --input");
            }
        }
    }
    if let Some(midi) = arguments.midi.first().filter(|_| !notes) {
        warnings.push(format!("{}: no track plays notes", midi.display()));
    }
    if let Some(input) = arguments.input.first().filter(|_| !channels) {
        warnings.push(format!(
            "{}: no track has the audio device as its input",
            input.display()
        ));
    }
    warnings
}

/// Offline render of a session and its outputs.
struct SessionRender<'a> {
    bounce: Bounce,
    /// Sound in place of the device's input.
    input: Option<Sound>,
    /// Frames rendered so far, latency included.
    position: u64,
    jobs: usize,
    sample_rate: u32,
    mix: WavOutput,
    stems: Vec<WavOutput>,
    /// Largest sample of each track.
    peaks: Vec<f32>,
    progress: &'a RenderProgress,
}

impl<'a> SessionRender<'a> {
    /// Creates the output files; `length` of the material is that of the render, without tail.
    fn create(
        arguments: &RenderArguments,
        bounce: Bounce,
        Material { input, length }: Material,
        sample_rate: u32,
        target: &OutputTarget,
        stems: &[OutputTarget],
        progress: &'a RenderProgress,
    ) -> anyhow::Result<Self> {
        let frames = Some(length + bounce.tail_samples() as u64);
        let create = |target, latency| {
            WavOutput::create(target, sample_rate, CHANNELS, arguments, latency, frames)
        };
        let mix = create(target, bounce.latency_samples())?;
        let stems = stems
            .iter()
            .map(|stem| create(stem, bounce.tracks_latency_samples()));
        let stems = stems.collect::<anyhow::Result<Vec<_>>>()?;
        let peaks = vec![0.0; bounce.tracks().len()];
        let jobs = arguments
            .jobs
            .or_else(|| thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get);
        Ok(Self {
            bounce,
            input,
            position: 0,
            jobs,
            sample_rate,
            mix,
            stems,
            peaks,
            progress,
        })
    }

    /// Returns reports of the tracks with names and latencies.
    fn track_reports(&self, mixer: &Mixer) -> Vec<TrackReport> {
        let report = |bounced: &BouncedTrack| {
            let name = mixer
                .track(bounced.slot)
                .map(Track::title)
                .unwrap_or_default();
            TrackReport {
                name,
                out: None,
                peak_db: None,
                latency_samples: bounced.latency_samples(),
                invalid_output: None,
            }
        };
        self.bounce.tracks().iter().map(report).collect()
    }

    /// Renders `length` frames, and the tail if `with_tail` is set.
    fn render_all(&mut self, length: u64, with_tail: bool) -> anyhow::Result<()> {
        let latency = self.bounce.latency_samples() as u64;
        self.progress
            .expect(Some(length + latency), self.sample_rate);
        self.advance(length, None)?;
        let tail = if with_tail {
            self.bounce.tail_samples() as u64
        } else {
            0
        };
        self.advance(length + tail + latency, Some(length + tail))
    }

    /// Renders up to frame `target`; stems end at `end`, once that is known.
    fn advance(&mut self, target: u64, end: Option<u64>) -> anyhow::Result<()> {
        // Silence follows the recording.
        let silence = [0.0; CHUNK];
        let input = self.input.take();
        let channels = input
            .as_ref()
            .map_or([].as_slice(), |input| &input.channels);
        let length = input.as_ref().map_or(0, Sound::frames) as u64;
        while self.position < target {
            interrupt::check()?;
            let start = self.position;
            let until = if start < length {
                target.min(length)
            } else {
                target
            };
            let frames = (until - start).min(CHUNK as u64) as usize;
            let range = start as usize..start as usize + frames;
            let block = channels
                .iter()
                .map(|channel| channel.get(range.clone()).unwrap_or(&silence[..frames]));
            let block: Vec<&[f32]> = block.collect();
            self.play(frames, &block, end)?;
        }
        self.input = input;
        Ok(())
    }

    fn play(&mut self, frames: usize, input: &[&[f32]], end: Option<u64>) -> anyhow::Result<()> {
        let Self { bounce, mix, .. } = self;
        bounce.play(frames, input, self.jobs, |sound| mix.write(&sound))?;
        let gains = bounce.master_gains();
        let mut stems = self.stems.iter_mut();
        for (track, peak) in bounce.tracks().iter().zip(&mut self.peaks) {
            let mut faded = track.sound(frames).map(<[f32]>::to_vec);
            for (channel, gain) in faded.iter_mut().zip(gains) {
                channel.iter_mut().for_each(|sample| *sample *= gain);
                *peak = channel
                    .iter()
                    .fold(*peak, |peak, sample| peak.max(sample.abs()));
            }
            if let Some(stem) = stems.next() {
                let latency_left = stem.latency_left() as u64;
                let left = end.map_or(u64::MAX, |end| latency_left + end - stem.frames().min(end));
                let count = left.min(frames as u64) as usize;
                stem.write(&faded.each_ref().map(|channel| &channel[..count]))?;
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
    fn titles_become_valid_file_names() {
        assert_eq!(file_name(" Lead/Solo: \"A\"\n2 "), "Lead_Solo_ _A__2");
        assert_eq!(file_name(&"é".repeat(99)).chars().count(), 64);
    }
}
