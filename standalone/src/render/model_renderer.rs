//! Renders files with one model.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use ondes_engine::Kernels;
use ondes_engine::chain::{Chain, ChainSettings, ImpulseFile, OutputLevel, TonePosition};
use ondes_engine::dsp::cabinet::Cabinet;
use ondes_engine::executor;
use ondes_engine::instrument::{Event, KeyTuning, Performance};
use ondes_engine::media::display_name;
use ondes_engine::model::card::Levels;
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{ControlSource, InputChannels, Pipeline, PipelineOptions, Transport};

use super::arguments::RenderArguments;
use super::output_target::OutputTarget;
use super::pipeline_render::{FinishedRender, PipelineRender};
use super::prime::{LISTEN, Prime};
use super::report::{RenderReport, amplitude_db};
use super::source::RenderSource;
use super::wav_output::WavOutput;
use crate::progress::RenderProgress;
use crate::{memory, open_model};

/// Pipeline to be reused for the next file, with its sample rate in Hz and its channels.
pub type IdlePipeline = Option<((u32, InputChannels), Pipeline)>;

/// Model with the options of the command line. Several threads may render with it at once.
#[derive(Clone, Copy)]
pub struct ModelRenderer<'a> {
    /// The model.
    pub model: &'a Model,
    /// Options of the command line.
    pub arguments: &'a RenderArguments,
}

impl<'a> ModelRenderer<'a> {
    /// Checks that the model supports the options, and returns a pipeline for the first file.
    ///
    /// # Errors
    /// Returns an error if the model does not support an option or has no such control.
    pub fn check(&self) -> anyhow::Result<IdlePipeline> {
        let sample_rate = self
            .arguments
            .sample_rate
            .unwrap_or(self.model.header().sample_rate);
        let channels = self.arguments.channels();
        let pipeline = self.build_pipeline(sample_rate, channels)?;
        self.chain(sample_rate)?;
        Ok(Some(((sample_rate, channels), pipeline)))
    }

    /// Renders a file to a WAV; `started` is the start of the waiting time. Reuses the pipeline of
    /// the file before, if there is one, and leaves its own. Returns the rest of the work: waiting
    /// for the disk, and the report.
    ///
    /// # Errors
    /// Returns an error that names the file and what is wrong with it, now or from the rest of the
    /// work. A failed render leaves no output.
    pub fn play<'b>(
        self,
        source: &'b Path,
        target: OutputTarget,
        progress: &'b RenderProgress,
        started: Instant,
        idle: &mut IdlePipeline,
    ) -> anyhow::Result<impl FnOnce() -> anyhow::Result<RenderReport> + Send + use<'a, 'b>> {
        let Self { model, arguments } = self;
        let mut source_reader = RenderSource::open(source, arguments, model)?;
        let sample_rate = arguments
            .sample_rate
            .unwrap_or_else(|| source_reader.natural_rate(model));
        let chain = self.chain(sample_rate)?;
        let channels = source_reader.channels(arguments);
        let mut pipeline = self.reuse_or_build_pipeline(idle, sample_rate, channels)?;
        if let RenderSource::Generated(_, Some(prime)) = &source_reader {
            self.apply_measured(prime, &mut pipeline)?;
        }
        let output_channels = if chain.is_stereo() {
            2
        } else {
            pipeline.channels()
        };
        let mut warnings = self.warnings(&source_reader);
        warnings.iter().for_each(|warning| progress.warn(warning));
        let already_shown = warnings.len();

        let latency = pipeline.latency_samples();
        let rest = (latency + pipeline.tail_samples() + chain.tail_samples()) as u64;
        let expected = source_reader
            .length(sample_rate)
            .map(|length| length + rest);
        let output = WavOutput::create(
            &target,
            sample_rate,
            output_channels,
            arguments,
            latency,
            expected,
        )?;
        progress.expect(expected, sample_rate);
        let render = PipelineRender::new(
            pipeline,
            chain,
            output,
            progress,
            sample_rate,
            arguments.block as usize,
        );
        let started_at = Instant::now();
        let played = self.perform(render, &mut source_reader, sample_rate)?;
        let FinishedRender {
            pipeline,
            output,
            in_pipeline,
            first_sample,
            invalid_output,
        } = played;
        let elapsed = started_at.elapsed();
        let (notes, notes_outside) = self.note_counts(&source_reader);
        let (notes_dropped, samples_missing) =
            (pipeline.notes_dropped(), pipeline.samples_missing());
        let (executor, memory_bytes) = (pipeline.executor(), pipeline.bytes());
        *idle = Some(((sample_rate, channels), pipeline));
        if let Some(notice) = executor::take_warning() {
            warnings.push(format!("{}: {notice}", arguments.model.display()));
        }
        let invalid = invalid_output
            .map(|invalid| format!("{}: {}", arguments.model.display(), invalid.warning()));
        warnings.extend(invalid);
        if let RenderSource::Recording(recording) = &source_reader {
            let name = source.display();
            warnings.extend(
                recording
                    .warnings()
                    .into_iter()
                    .map(|warning| format!("{name}: {warning}")),
            );
        }
        Ok(move || {
            let written = output.finish()?;
            let out = target.name();
            warnings.extend(written.warnings(&out, arguments));
            let loudness = &written.loudness;
            match notes_dropped {
                0 => {}
                dropped => warnings.push(format!(
                    "{out}: {dropped} notes had no free voice; raise --voices"
                )),
            }
            match samples_missing {
                0 => {}
                missing => warnings.push(format!(
                    "{out}: {missing} samples are missing; please report this bug"
                )),
            }
            warnings[already_shown..]
                .iter()
                .for_each(|warning| progress.warn(warning));

            let frames = written.frames;
            let seconds = frames as f64 / f64::from(sample_rate);
            Ok(RenderReport {
                out,
                model: arguments.model.display().to_string(),
                instrument: model.header().card.name.clone(),
                seconds,
                frames,
                sample_rate,
                channels: output_channels,
                bits: arguments.bits_of(&target).count().into(),
                realtime_factor: seconds / elapsed.as_secs_f64(),
                ns_per_sample: 1e9 * in_pipeline.as_secs_f64() / frames.max(1) as f64,
                peak_db: amplitude_db(written.peak),
                lufs: loudness.as_ref().and_then(|loudness| loudness.lufs),
                true_peak_db: loudness.as_ref().and_then(|loudness| loudness.true_peak_db),
                gain_db: loudness.as_ref().map(|loudness| loudness.gain_db),
                latency_samples: latency,
                executor,
                block: arguments.block,
                notes,
                notes_outside,
                notes_dropped,
                invalid_output,
                start_ms: first_sample.map(|first| 1e3 * (first - started).as_secs_f64()),
                memory_bytes,
                peak_memory_bytes: memory::peak_resident_bytes(),
                warnings,
            })
        })
    }

    /// Returns what the user should know before the model plays.
    fn warnings(&self, source: &RenderSource) -> Vec<String> {
        let Self { model, arguments } = self;
        let mut warnings = match source {
            RenderSource::Midi(score) => {
                score.warnings(performance(model).as_ref(), arguments.transpose)
            }
            RenderSource::Recording(_) | RenderSource::Generated(..) => Vec::new(),
        };
        let untold = arguments.calibration().missing_levels(self.levels());
        warnings.extend(untold.map(|reason| {
            format!(
                "{}: level not calibrated: {reason}",
                arguments.model.display()
            )
        }));
        warnings
    }

    /// Returns the number of notes, and of those outside of the model's range.
    fn note_counts(&self, source: &RenderSource) -> (usize, usize) {
        match source {
            RenderSource::Midi(score) => (
                score.notes(),
                score.notes_outside(performance(self.model).as_ref(), self.arguments.transpose),
            ),
            RenderSource::Recording(_) | RenderSource::Generated(..) => (0, 0),
        }
    }

    /// Plays a source to its end.
    fn perform<'b>(
        &self,
        render: PipelineRender<'b>,
        source: &mut RenderSource,
        sample_rate: u32,
    ) -> anyhow::Result<FinishedRender> {
        let arguments = self.arguments;
        match source {
            RenderSource::Midi(score) => {
                let tempos = if arguments.tempo.is_some() {
                    &[]
                } else {
                    score.tempos()
                };
                let tuning = arguments.key_tuning()?;
                let tuning = tuning
                    .iter()
                    .flat_map(KeyTuning::events)
                    .map(|kind| Event { at: 0, kind });
                render.play(tuning.chain(score.events(sample_rate)), tempos)
            }
            RenderSource::Recording(recording) => render.play_recording(recording),
            RenderSource::Generated(seconds, prime) => {
                let samples = (*seconds * f64::from(sample_rate)).ceil() as u64;
                let primed = match prime {
                    Some(prime) => render.prime(&mut prime.recording, self.position_of(LISTEN)),
                    None => Ok(render),
                };
                primed
                    .with_context(|| arguments.model.display().to_string())?
                    .generate(samples)
            }
        }
    }

    /// Restarts the idle pipeline if it has the sample rate in Hz and the channels, otherwise
    /// builds a new one.
    fn reuse_or_build_pipeline(
        &self,
        idle: &mut IdlePipeline,
        sample_rate: u32,
        channels: InputChannels,
    ) -> anyhow::Result<Pipeline> {
        match idle
            .take()
            .filter(|(built_for, _)| *built_for == (sample_rate, channels))
        {
            Some((_, mut pipeline)) => {
                pipeline.restart();
                self.apply_controls(pipeline)
            }
            None => self.build_pipeline(sample_rate, channels),
        }
    }

    /// Returns where the command line sets a control, else its default.
    fn position_of(&self, name: &str) -> f32 {
        let set = self
            .arguments
            .controls
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value);
        let control = self
            .model
            .header()
            .controls
            .iter()
            .find(|control| control.name == name);
        set.or_else(|| Some(control?.default)).unwrap_or_default()
    }

    /// Sets the controls that a recording tells and the command line does not.
    fn apply_measured(&self, prime: &Prime, pipeline: &mut Pipeline) -> anyhow::Result<()> {
        let is_set = |name: &str| {
            self.arguments
                .controls
                .iter()
                .any(|(known, _)| known == name)
        };
        for control in self
            .model
            .header()
            .controls
            .iter()
            .filter(|control| !is_set(&control.name))
        {
            if let Some(value) = prime.measured(control) {
                pipeline.set_control(&control.name, value)?;
            }
        }
        Ok(())
    }

    /// Returns the levels of the model in the size that plays.
    fn levels(&self) -> Levels {
        self.model.header().levels(self.arguments.size())
    }

    /// Builds the signal chain around the model with its settings.
    fn chain(&self, sample_rate: u32) -> anyhow::Result<Chain> {
        let arguments = self.arguments;
        let calibration = arguments.calibration();
        let settings = ChainSettings {
            gains_db: calibration.gains_db(self.levels()),
            ..arguments.chain_settings()
        };
        if settings.tone_position == TonePosition::Before
            && self.arguments.source() == ControlSource::Notes
        {
            bail!("--tone before filters the input and needs --input");
        }
        if calibration.output == OutputLevel::Calibrated && calibration.interface_dbu.is_none() {
            bail!("--output-level calibrated needs --interface-dbu");
        }
        let mut chain = Chain::new(sample_rate, self.arguments.block as usize);
        chain.set(&settings);
        if let Some(path) = &arguments.chain.cabinet {
            let file = match open_model::bundled_cabinet(path)? {
                Some(bundled) => bundled.file(),
                None => ImpulseFile::read(path)?.into(),
            };
            let cabinet = Cabinet::new(&file.response, sample_rate, Kernels::detect());
            let cabinet = cabinet.map_err(|error| anyhow!("{}: {error}", display_name(path)))?;
            drop(chain.cabinet_slot().replace(Box::new(cabinet)));
        }
        chain.reset();
        Ok(chain)
    }

    /// Builds the pipeline and sets its controls.
    fn build_pipeline(
        &self,
        sample_rate: u32,
        channels: InputChannels,
    ) -> anyhow::Result<Pipeline> {
        let Self { model, arguments } = *self;
        let kind = model.header().kind;
        let plays_notes = matches!(kind, Kind::Instrument | Kind::Generator);
        if !plays_notes && arguments.source() == ControlSource::Notes {
            let (file, kind) = (arguments.model.display(), kind.name());
            bail!(
                "{file}: only instruments and generators play notes, this model is of kind {kind}; give it --input"
            );
        }
        if arguments.generated_seconds().is_some() && model.header().method("prior").is_none() {
            bail!(
                "{}: needs --midi or --input; only models with a prior generate without them",
                arguments.model.display()
            );
        }
        if kind != Kind::Effect && arguments.oversampling().is_some_and(|factor| factor > 1) {
            let (file, kind) = (arguments.model.display(), kind.name());
            bail!("{file}: only effects can be oversampled, this model is of kind {kind}");
        }
        if arguments.size() < 1.0 && model.header().variants.is_empty() {
            bail!(
                "{}: the model has no smaller variants; leave out --size",
                arguments.model.display()
            );
        }
        let executor = arguments.executor_arguments.selection_for(model);
        let executor =
            executor.map_err(|error| anyhow!("{}: {error}", arguments.model.display()))?;
        let options = PipelineOptions {
            sample_rate,
            resampling: arguments.resampling.into(),
            channels,
            source: arguments.source(),
            voices: arguments.voices.map(usize::from),
            transpose: arguments.transpose,
            seed: arguments.seed,
            oversampling: arguments.oversampling(),
            size: arguments.size(),
            executor,
            ..Default::default()
        };
        let made = Pipeline::new(model, &options);
        self.apply_controls(
            made.map_err(|error| anyhow!("{}: {error}", arguments.model.display()))?,
        )
    }

    /// Sets the controls of the command line, and starts its song.
    fn apply_controls(&self, mut pipeline: Pipeline) -> anyhow::Result<Pipeline> {
        let Self { arguments, .. } = *self;
        let applied = arguments
            .controls
            .iter()
            .try_for_each(|(name, value)| pipeline.set_control(name, *value));
        applied.map_err(|error| anyhow!("{}: {error}", arguments.model.display()))?;
        if let Some(tempo) = arguments.tempo {
            let song = Transport {
                tempo,
                position: 0.0,
                playing: true,
            };
            let started = pipeline.set_transport(song);
            started.map_err(|error| anyhow!("{}: {error}", arguments.model.display()))?;
        }
        Ok(pipeline)
    }
}

/// Returns how an instrument is played; `None` for other models.
fn performance(model: &Model) -> Option<Performance> {
    let header = model.header();
    (header.kind == Kind::Instrument).then(|| header.performance.unwrap_or_default())
}
