//! A model that plays one file after the other, each into a WAV of its own.

use std::path::Path;
use std::time::Instant;

use anyhow::{anyhow, bail};
use ondes_engine::Kernels;
use ondes_engine::chain::{Chain, ImpulseFile, OutputLevel, Placement, Settings};
use ondes_engine::dsp::cabinet::Cabinet;
use ondes_engine::executor;
use ondes_engine::media::display_name;
use ondes_engine::model::card::Levels;
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{Pipeline, PipelineOptions, Source};

use super::arguments::RenderArguments;
use super::destination::{Destination, Place};
use super::music::Music;
use super::report::{Report, amplitude_db};
use super::stage::{Played, Stage};
use crate::memory;
use crate::progress::Progress;

/// A pipeline that has nothing to play any more or yet, for the next file at its rate, Hz.
pub type Spare = Option<(u32, Pipeline)>;

/// A model and how it is to play. Several threads may play with it at the same time.
#[derive(Clone, Copy)]
pub struct Player<'a> {
    /// The model.
    pub model: &'a Model,
    /// The rest.
    pub arguments: &'a RenderArguments,
}

impl<'a> Player<'a> {
    /// Looks whether the model can play like this at all: with the pipeline that this gives.
    ///
    /// # Errors
    /// When it cannot play what the command line asks for or has not the controls asked for.
    pub fn check(&self) -> anyhow::Result<Spare> {
        let sample_rate = self.arguments.sample_rate.unwrap_or(self.model.header().sample_rate);
        let pipeline = self.set_up(sample_rate)?;
        self.chain(sample_rate)?;
        Ok(Some((sample_rate, pipeline)))
    }

    /// Plays a file into a WAV; `started` is when the waiting for it began. Takes the pipeline of the file before, where there is
    /// one, and leaves its own when it has played. Gives what is left to do then: to wait for the disk, and to tell of it.
    ///
    /// # Errors
    /// One line that names the file and what is wrong with it, now or in the end. No output is left then.
    pub fn play<'b>(
        self,
        source: &'b Path,
        place: Place,
        progress: &'b Progress,
        started: Instant,
        spare: &mut Spare,
    ) -> anyhow::Result<impl FnOnce() -> anyhow::Result<Report> + Send + use<'a, 'b>> {
        let Self { model, arguments } = self;
        let mut music = Music::open(source, arguments)?;
        let sample_rate = arguments.sample_rate.unwrap_or_else(|| music.natural_rate(model));
        let chain = self.chain(sample_rate)?;
        let pipeline = match spare.take().filter(|(rate, _)| *rate == sample_rate) {
            Some((_, mut pipeline)) => {
                pipeline.restart();
                self.turn(pipeline)?
            }
            None => self.set_up(sample_rate)?,
        };
        let performance = model.header().performance.unwrap_or_default();
        let (mut warnings, notes, notes_outside) = match &music {
            Music::Score(score) => (
                score.warnings(&performance, arguments.transpose),
                score.notes(),
                score.notes_outside(&performance, arguments.transpose),
            ),
            Music::Recording(_) | Music::Alone(_) => (Vec::new(), 0, 0),
        };
        let untold = arguments.chain.calibration().untold(self.levels());
        warnings
            .extend(untold.map(|reason| format!("{}: a level stays as it is: {reason}", arguments.model.display())));
        warnings.iter().for_each(|warning| progress.warn(warning));
        let warned = warnings.len();

        let latency = pipeline.latency_samples();
        let rest = (latency + pipeline.tail_samples() + chain.tail_samples()) as u64;
        let destination = Destination::create(&place, sample_rate, 1, arguments, latency)?;
        progress.expect(music.length(sample_rate).map(|length| length + rest), sample_rate);
        let stage = Stage::new(pipeline, chain, destination, progress, sample_rate, arguments.block as usize);
        let begun = Instant::now();
        let played = match &mut music {
            Music::Score(score) => stage.play(score.events(sample_rate))?,
            Music::Recording(recording) => stage.follow(recording)?,
            Music::Alone(seconds) => stage.alone((*seconds * f64::from(sample_rate)).ceil() as u64)?,
        };
        let Played { pipeline, destination, in_pipeline, first_sample } = played;
        let elapsed = begun.elapsed();
        let (notes_dropped, samples_missing) = (pipeline.notes_dropped(), pipeline.samples_missing());
        let (executor, memory_bytes) = (pipeline.executor(), pipeline.bytes());
        *spare = Some((sample_rate, pipeline));
        if let Some(notice) = executor::noticed() {
            warnings.push(format!("{}: {notice}", arguments.model.display()));
        }
        if let Music::Recording(recording) = &music {
            let name = source.display();
            warnings.extend(recording.warnings().into_iter().map(|warning| format!("{name}: {warning}")));
        }
        Ok(move || {
            let written = destination.finish()?;
            let out = place.name();
            warnings.extend(written.warnings(&out, arguments));
            let loudness = &written.loudness;
            match notes_dropped {
                0 => {}
                dropped => warnings.push(format!("{out}: {dropped} notes found no voice; --voices gives more")),
            }
            match samples_missing {
                0 => {}
                missing => warnings.push(format!("{out}: {missing} samples are silent by a mistake in this program")),
            }
            warnings[warned..].iter().for_each(|warning| progress.warn(warning));

            let frames = written.frames;
            let seconds = frames as f64 / f64::from(sample_rate);
            Ok(Report {
                out,
                model: arguments.model.display().to_string(),
                instrument: model.header().card.name.clone(),
                seconds,
                frames,
                sample_rate,
                bits: arguments.bits.count(),
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
                start_ms: first_sample.map(|first| 1e3 * (first - started).as_secs_f64()),
                memory_bytes,
                peak_memory_bytes: memory::peak_resident_bytes(),
                warnings,
            })
        })
    }

    /// What the model's card tells of its levels.
    fn levels(&self) -> Levels {
        self.model.header().card.levels.unwrap_or_default()
    }

    /// What stands around the pipeline, with all knobs turned.
    fn chain(&self, sample_rate: u32) -> anyhow::Result<Chain> {
        let arguments = &self.arguments.chain;
        let calibration = arguments.calibration();
        let settings = Settings { gains_db: calibration.gains_db(self.levels()), ..arguments.settings() };
        if settings.placement == Placement::Before && self.arguments.source() == Source::Notes {
            bail!("--tone before changes what comes in, and with --midi nothing does");
        }
        if calibration.output == OutputLevel::Calibrated && calibration.interface_dbu.is_none() {
            bail!("--output-level calibrated needs --interface-dbu");
        }
        let mut chain = Chain::new(sample_rate, self.arguments.block as usize);
        chain.set(&settings);
        if let Some(path) = &arguments.cabinet {
            let response = ImpulseFile::read(path)?.response.to_mono();
            let cabinet = Cabinet::new(&response, sample_rate, Kernels::detect());
            let cabinet = cabinet.map_err(|error| anyhow!("{}: {error}", display_name(path)))?;
            drop(chain.cabinet().change(Box::new(cabinet)));
        }
        chain.reset();
        Ok(chain)
    }

    /// The pipeline, with all knobs turned.
    fn set_up(&self, sample_rate: u32) -> anyhow::Result<Pipeline> {
        let Self { model, arguments } = *self;
        let kind = model.header().kind;
        if kind != Kind::Instrument && arguments.source() == Source::Notes {
            let (file, kind) = (arguments.model.display(), kind.name());
            bail!("{file}: the model is of kind {kind}; only instruments play notes, give it a sound with --input");
        }
        if arguments.alone().is_some() && model.header().method("prior").is_none() {
            bail!("{}: needs --midi or --input; only models with a prior play on their own", arguments.model.display());
        }
        if kind != Kind::Effect && arguments.oversampling > 1 {
            let (file, kind) = (arguments.model.display(), kind.name());
            bail!("{file}: the model is of kind {kind}; only effects are oversampled");
        }
        if arguments.size < 1.0 && model.header().variants.is_empty() {
            bail!("{}: the model has only one size", arguments.model.display());
        }
        let wish = arguments.running.of(model);
        let wish = wish.map_err(|error| anyhow!("{}: {error}", arguments.model.display()))?;
        let options = PipelineOptions {
            sample_rate,
            source: arguments.source(),
            voices: arguments.voices.map(usize::from),
            transpose: arguments.transpose,
            seed: arguments.seed,
            oversampling: arguments.oversampling.into(),
            size: arguments.size,
            wish,
            ..Default::default()
        };
        let made = Pipeline::new(model, &options);
        self.turn(made.map_err(|error| anyhow!("{}: {error}", arguments.model.display()))?)
    }

    /// The same pipeline with all knobs turned.
    fn turn(&self, mut pipeline: Pipeline) -> anyhow::Result<Pipeline> {
        let Self { arguments, .. } = *self;
        let turned = arguments.controls.iter().try_for_each(|(name, value)| pipeline.set_control(name, *value));
        turned.map_err(|error| anyhow!("{}: {error}", arguments.model.display()))?;
        Ok(pipeline)
    }
}
