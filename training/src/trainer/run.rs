//! The loop.

use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use ondes_engine::model::Model;
use ondes_torch::TorchWeights;
use tch::{Device, Tensor};

use super::callback::{Callback, StepReport, StopReason, ValidationReport};
use super::checkpoint::{self, Checkpoint, Progress};
use super::early_stopping::EarlyStopping;
use super::guard::{OutOfMemory, with_fewer_rows};
use super::kept;
use super::memory;
use super::metrics::MetricsLog;
use super::options::{TrainerOptions, device};
use super::parameters::Parameters;
use super::pass::effective_weights;
use super::profile::{Part, Profile, synchronize};
use super::progress::ProgressDisplay;
use super::step::Divergence;
use super::task::{Task, Validation, model_weights};
use super::tensorboard::TensorBoard;
use super::training_config::Length;
use crate::compression::fake_quantization::QuantizationGrids;
use crate::distributed::GroupError;
use crate::optimizer::Optimizer;
use crate::schedule::ScheduleConfig;

/// Share of the last step in the mean loss.
const MEAN_SHARE: f64 = 0.02;
/// Most recoveries of a run that diverges, and the factor of the learning rate at each.
pub(super) const MAX_RECOVERIES: i32 = 4;
const RECOVERED_RATE: f64 = 0.5;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// At its last step, or early because it was good enough or no longer improved.
    Finished,
    /// By Ctrl-C or SIGTERM; the checkpoint has been written.
    Interrupted,
}

/// Training run.
pub struct Trainer<T: Task> {
    pub(super) task: T,
    pub(super) options: TrainerOptions,
    pub(super) device: Device,
    /// All weights; the trained ones are views of the buffer of `parameters`.
    pub(super) weights: TorchWeights,
    pub(super) parameters: Parameters,
    pub(super) optimizer: Box<dyn Optimizer>,
    /// Weights with the lowest validation loss.
    best: Tensor,
    /// Mean of the weights over the last steps.
    pub(super) ema: Option<Tensor>,
    pub(super) grids: Option<QuantizationGrids>,
    pub(super) progress: Progress,
    pub(super) profile: Rc<Profile>,
    /// A signal has reached this process or another one.
    pub(super) stop_requested: bool,
    /// The optimiser moves the weights, which are no state to go on from.
    pub(super) is_moving: bool,
    /// Rows that a validation computes at once; fewer after memory was missing.
    validation_rows: Option<usize>,
}

impl<T: Task> Trainer<T> {
    /// Prepares a run.
    ///
    /// # Errors
    /// Returns an error if a setting is out of range, the device cannot be used, or a trained
    /// weight does not exist.
    pub fn new(task: T, options: TrainerOptions) -> anyhow::Result<Self> {
        options.check()?;
        let device = device(&options.training.device)?;
        use_threads(options.training.threads);
        if matches!(device, Device::Cuda(_)) {
            // The batches of a run have few shapes, so that it pays to time all algorithms of cuDNN
            // once.
            tch::Cuda::cudnn_set_benchmark(true);
        }
        options.bound_memory()?;
        let mut task = task;
        if let Some(group) = &options.group {
            task.set_process(group.rank(), group.size());
        }
        if options.training.checkpoint_activations {
            task.checkpoint_activations();
        }
        let mut weights = TorchWeights::new(task.initial().weights(), device);
        let further = task.further_weights().into_iter().flatten();
        weights
            .0
            .extend(further.map(|(name, weight)| (name.clone(), weight.to_device(device))));
        let mut parameters = Parameters::new(&mut weights, &task.trained())?;
        let values = tch::no_grad(|| parameters.values().copy());
        if let Some(group) = &options.group {
            parameters.set_group(group.clone());
        }
        let mut trainer = Self {
            task,
            device,
            weights,
            optimizer: options.optimizer.build(&parameters),
            ema: (options.training.ema > 0.0).then(|| values.copy()),
            best: values,
            parameters,
            options,
            grids: None,
            progress: Progress::default(),
            profile: Rc::default(),
            stop_requested: false,
            is_moving: false,
            validation_rows: None,
        };
        trainer.set_identity()?;
        Ok(trainer)
    }

    /// Sets the length of the run and what its mathematics depends on, from the options and the
    /// task.
    fn set_identity(&mut self) -> anyhow::Result<()> {
        self.progress.identity = self.options.identity()?;
        self.progress.identity.extend(self.task.identity());
        self.progress.steps = match self.options.length {
            Length::Steps(steps) => steps,
            Length::Epochs(epochs) => epochs * self.task.epoch_steps().unwrap_or(1),
            Length::Minutes(_) => 0,
        };
        Ok(())
    }

    /// Changes the number of rows per batch, before the first step.
    pub(super) fn set_batch(&mut self, rows: usize) -> anyhow::Result<()> {
        self.task.set_batch(rows);
        self.set_identity()
    }

    /// Keeps weights of matrices that are zero now at zero.
    pub fn keep_zeros(&mut self) {
        self.parameters.keep_zeros();
    }

    /// Rounds the weights to these grids in every step, and in the result.
    pub fn round_to(&mut self, grids: QuantizationGrids) {
        self.grids = Some(grids);
    }

    /// Returns the task.
    #[must_use]
    pub fn task(&self) -> &T {
        &self.task
    }

    /// Returns the progress.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Resumes from the last checkpoint.
    ///
    /// # Errors
    /// Returns an error if there is none, or names the field that changes the mathematics.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        let path = self.options.files.checkpoint.clone();
        let read = |path| Checkpoint::read(path).with_context(|| path.display().to_string());
        let checkpoint = match &self.options.group {
            None => read(&path)?,
            // Only the first process needs to see the file.
            Some(group) if group.rank() == 0 => {
                let checkpoint = read(&path)?;
                group.bytes_of_first(checkpoint.bytes())?;
                checkpoint
            }
            Some(group) => Checkpoint::parse(group.bytes_of_first(&[])?)?,
        };
        if let (true, Some(rows)) = (self.options.auto_batch(), checkpoint.progress.batch()) {
            self.set_batch(rows)?;
        }
        self.load(&checkpoint)
            .with_context(|| path.display().to_string())?;
        match self.task.epoch_steps() {
            Some(epoch) => eprintln!(
                "resumed at step {} of {}, after epoch {}",
                self.progress.step,
                self.progress.steps,
                self.progress.step / epoch
            ),
            None => eprintln!(
                "resumed at step {} of {}",
                self.progress.step, self.progress.steps
            ),
        }
        Ok(())
    }

    fn load(&mut self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        checkpoint
            .progress
            .check_identity(&self.progress.identity)?;
        let Self {
            parameters,
            optimizer,
            best,
            ema,
            ..
        } = self;
        let values = parameters.values().shallow_clone();
        let section = |section: &str| {
            let section = section.to_owned();
            move |name: &str| checkpoint.tensor(&format!("{section}/{name}"))
        };
        parameters.fill(&values, section("weights"))?;
        parameters.fill(best, section("best"))?;
        if let Some(ema) = ema {
            parameters.fill(ema, section("ema"))?;
        }
        for (name, buffer) in optimizer.state() {
            parameters.fill(buffer, section(&format!("optimizer/{name}")))?;
        }
        let state = checkpoint.names("task/")?.into_iter().map(|name| {
            let tensor = checkpoint
                .tensor(&format!("task/{name}"))?
                .to_device(self.device);
            anyhow::Ok((name, tensor))
        });
        self.task.set_state(state.collect::<Result<_, _>>()?);
        let steps = self.progress.steps;
        self.progress = checkpoint.progress.clone();
        // A run may be made longer, but minutes are those that were measured at its start.
        if steps > 0 {
            self.progress.steps = steps;
        }
        Ok(())
    }

    /// Writes a checkpoint.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn save(&mut self) -> anyhow::Result<()> {
        let state = self.gathered_state()?;
        self.save_with(state)
    }

    /// Writes a checkpoint with the state of the task.
    fn save_with(&mut self, state: Vec<(String, Tensor)>) -> anyhow::Result<()> {
        if !self.options.is_first() {
            return Ok(());
        }
        let mut tensors = Vec::new();
        let Self {
            parameters,
            optimizer,
            best,
            ema,
            ..
        } = self;
        let values = parameters.values().shallow_clone();
        let mut add = |section: &str, flat: &Tensor| {
            tensors.extend(
                parameters
                    .split(flat)
                    .into_iter()
                    .map(|(name, tensor)| (format!("{section}/{name}"), tensor)),
            );
        };
        add("weights", &values);
        add("best", best);
        ema.iter().for_each(|ema| add("ema", ema));
        for (name, buffer) in optimizer.state() {
            add(&format!("optimizer/{name}"), buffer);
        }
        tensors.extend(
            state
                .into_iter()
                .map(|(name, tensor)| (format!("task/{name}"), tensor)),
        );
        self.progress.card = self
            .progress
            .best
            .map(|(loss, steps)| self.task.info().card(steps, loss));
        checkpoint::write(
            &self.options.files.checkpoint,
            &self.progress,
            self.task.initial(),
            &tensors,
        )
    }

    /// Trains to the last step. Writes a log and checkpoints.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written or training diverges.
    pub fn run(&mut self) -> anyhow::Result<Outcome> {
        for path in [&self.options.files.checkpoint, &self.options.files.metrics] {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            if let Some(folder) = folder {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
            }
        }
        if self.options.auto_batch() && self.progress.step == 0 {
            self.choose_batch()?;
        }
        if self.progress.steps == 0 {
            self.progress.steps = self.steps_in_time()?;
        }
        let epoch = self.task.epoch_steps();
        let trained = self.parameters.count();
        let info = self.task.info();
        eprintln!(
            "{}: {:.0} s of sound, {trained} weights, {} on {:?}",
            info.name,
            info.seconds,
            match epoch {
                Some(epoch) => format!(
                    "{} epochs of {epoch} steps",
                    self.progress.steps.div_ceil(epoch)
                ),
                None => format!("{} steps", self.progress.steps),
            },
            self.device
        );
        let mut callbacks = self.callbacks()?;
        if let Some(options) = &self.options.training.profile {
            self.profile = Rc::new(Profile::new(options, self.device)?);
        }
        let outcome = self.run_steps(&mut callbacks);
        let outcome = outcome.map_err(|error| self.kept(error));
        callbacks
            .iter_mut()
            .try_for_each(|callback| callback.finished())?;
        if let Some(report) = self.profile.finish(self.task.loader_stats())? {
            eprintln!("{}", report.text());
        }
        let reason = outcome?;
        match reason {
            Some(Stop::Interrupt) => {
                eprintln!("stopped after step {}", self.progress.step);
                Ok(Outcome::Interrupted)
            }
            Some(Stop::Early(reason)) => {
                eprintln!("stopped after step {}: {reason}", self.progress.step);
                Ok(Outcome::Finished)
            }
            None => Ok(Outcome::Finished),
        }
    }

    /// Writes a checkpoint of the last complete step after an out-of-memory or network error;
    /// returns the error, which then names the checkpoint.
    fn kept(&mut self, mut error: anyhow::Error) -> anyhow::Error {
        let missing = error.downcast_mut::<OutOfMemory>();
        // A state whose other rows have gone with a process, or are not asked for, is no state to
        // go on from.
        let is_whole =
            self.task.state().is_empty() || missing.is_some() && self.options.group.is_none();
        if self.is_moving || !is_whole || !self.options.is_first() {
            return error;
        }
        if let Some(missing) = missing {
            missing.kept = Some((self.progress.step, self.options.files.checkpoint.clone()));
        } else if !error.is::<GroupError>() {
            return error;
        }
        match self.save_with(self.task.state()) {
            Ok(()) => error,
            Err(unwritten) => unwritten.context(format!("{error:#}")),
        }
    }

    /// Trains one step without callbacks, validation or checkpoints, for benches. Returns the loss.
    ///
    /// # Errors
    /// Returns an error if training diverges.
    pub fn advance(&mut self) -> anyhow::Result<f64> {
        let loss = self.step(self.learning_rate())?;
        self.progress.step += 1;
        synchronize(self.device);
        Ok(loss.total)
    }

    /// Returns the trained weights, with the gradients of the last step.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn callbacks(&self) -> anyhow::Result<Vec<Box<dyn Callback>>> {
        let Self {
            options, progress, ..
        } = self;
        if !options.is_first() {
            return Ok(Vec::new());
        }
        let seconds = self.task.info().seconds;
        let epoch = self.task.epoch_steps().map(|steps| (steps, seconds));
        let mut callbacks: Vec<Box<dyn Callback>> = vec![
            Box::new(ProgressDisplay::new(progress.step, progress.steps, epoch)?),
            Box::new(MetricsLog::new(progress.step, options)?),
            Box::new(EarlyStopping::new(
                options.training.patience,
                options.training.stop_at,
                progress.waited,
            )),
        ];
        if options.training.tensorboard {
            let folder = options.files.metrics.with_file_name("tensorboard");
            callbacks.push(Box::new(TensorBoard::new(
                &folder,
                options.training.log_every,
            )?));
        }
        Ok(callbacks)
    }

    fn run_steps(&mut self, callbacks: &mut [Box<dyn Callback>]) -> anyhow::Result<Option<Stop>> {
        let epoch = self.task.epoch_steps();
        let every = |chosen: Option<u64>| chosen.or(epoch).unwrap_or(self.progress.steps).max(1);
        let (validate_every, checkpoint_every) = (
            every(self.options.training.validate_every),
            every(self.options.training.checkpoint_every),
        );
        while self.progress.step < self.progress.steps {
            let started = Instant::now();
            let rate = self.learning_rate();
            let loss = match self.step(rate) {
                Err(error) if error.is::<Divergence>() => {
                    self.recover(error)?;
                    continue;
                }
                loss => loss?,
            };
            self.progress.step += 1;
            let step = self.progress.step;
            if !loss.total.is_nan() {
                let mean = self
                    .progress
                    .mean_loss
                    .map_or(loss.total, |mean| mean + MEAN_SHARE * (loss.total - mean));
                self.progress.mean_loss = Some(mean);
            }
            let report = StepReport {
                step,
                loss: loss.total,
                terms: &loss.terms,
                gradient: loss.gradient,
                rate,
                mean_loss: self.progress.mean_loss.unwrap_or(f64::NAN),
                seconds: started.elapsed().as_secs_f64(),
                data_seconds: loss.data_seconds,
                rows: self.task.rows(step - 1),
                loader: &|| self.task.loader_stats(),
                parameters: &self.parameters,
            };
            self.profile.measure(Part::Callbacks, || {
                callbacks
                    .iter_mut()
                    .try_for_each(|callback| callback.step_done(&report))
            })?;
            self.profile.step_done()?;
            memory::adjust();
            let done = step == self.progress.steps;
            let profile = self.profile.clone();
            let stop = profile.measure(Part::Between, || {
                let mut stop = None;
                if done || step.is_multiple_of(validate_every) {
                    stop = self.validate(rate, callbacks)?.map(Stop::Early);
                }
                if stop.is_none() && self.stop_requested && !done {
                    stop = Some(Stop::Interrupt);
                }
                let keeps = self.progress.kept.iter().any(|(_, kept)| *kept == step);
                if done || stop.is_some() || keeps || step.is_multiple_of(checkpoint_every) {
                    self.save()?;
                }
                if keeps && self.options.is_first() {
                    kept::keep(&self.options.files.checkpoint, &self.progress.kept, step)?;
                }
                anyhow::Ok(stop)
            })?;
            if stop.is_some() {
                return Ok(stop);
            }
        }
        Ok(None)
    }

    /// Goes on from the best weights so far at half the learning rate, as somebody would who finds a
    /// run that has diverged.
    ///
    /// # Errors
    /// Returns the error, with advice, before the first validation and if it has happened too often.
    fn recover(&mut self, error: anyhow::Error) -> anyhow::Result<()> {
        let has_best = self.progress.best.is_some_and(|(loss, _)| loss.is_finite());
        if !has_best || self.progress.recoveries == MAX_RECOVERIES {
            let advice = "use a lower learning rate, and resume or export the last checkpoint";
            return Err(anyhow!("{error}; {advice}"));
        }
        self.progress.recoveries += 1;
        self.progress.skipped = 0;
        tch::no_grad(|| self.parameters.values().copy_(&self.best));
        if let Some(ema) = &mut self.ema {
            tch::no_grad(|| ema.copy_(&self.best));
        }
        self.optimizer = self.options.optimizer.build(&self.parameters);
        self.task.restart_step();
        self.task.set_state(Vec::new());
        eprintln!(
            "{error}; going on from the best weights so far, with {} of the learning rate",
            RECOVERED_RATE.powi(self.progress.recoveries)
        );
        Ok(())
    }

    /// Returns the learning rate of the next step.
    fn learning_rate(&self) -> f64 {
        let Self {
            options, progress, ..
        } = self;
        let share = options.schedule.share(
            progress.step,
            progress.steps,
            options.training.warmup_steps,
            &progress.plateau,
        );
        options.training.learning_rate * share * RECOVERED_RATE.powi(progress.recoveries)
    }

    /// Returns the whole state of the task, of which each process has its rows.
    fn gathered_state(&self) -> anyhow::Result<Vec<(String, Tensor)>> {
        let state = self.task.state();
        let Some(group) = &self.options.group else {
            return Ok(state);
        };
        let rows = self.task.rows(self.progress.step.saturating_sub(1));
        let own = group.rows(rows);
        let gather = |(name, tensor): (String, Tensor)| {
            let mut shape = tensor.size();
            if shape[1] == rows as i64 {
                return Ok((name, tensor));
            }
            shape[1] = rows as i64;
            let mut whole = Tensor::zeros(shape.as_slice(), (tensor.kind(), tensor.device()));
            whole
                .narrow(1, own.start as i64, own.len() as i64)
                .copy_(&tensor);
            group.sum(&mut whole)?;
            Ok((name, whole))
        };
        state.into_iter().map(gather).collect()
    }

    /// Returns numbers of the first process.
    pub(super) fn numbers_of_first<const N: usize>(
        &self,
        numbers: [f64; N],
    ) -> anyhow::Result<[f64; N]> {
        let Some(group) = &self.options.group else {
            return Ok(numbers);
        };
        let own = if group.rank() == 0 { numbers } else { [0.0; N] };
        let sums = group.sums(&own)?;
        Ok(std::array::from_fn(|index| sums[index]))
    }

    /// Validates the weights and keeps them if they are the best so far.
    fn validate(
        &mut self,
        rate: f64,
        callbacks: &mut [Box<dyn Callback>],
    ) -> anyhow::Result<StopReason> {
        let validation = if self.options.is_first() {
            Some(self.validation()?)
        } else {
            None
        };
        let [loss] = self.numbers_of_first([validation
            .as_ref()
            .map_or(0.0, |validation| validation.loss)])?;
        let step = self.progress.step;
        let is_best = self
            .progress
            .best
            .is_none_or(|(best, _)| loss < best || best.is_nan());
        if is_best {
            self.progress.best = Some((loss, step));
            self.progress.waited = 0;
            let Self {
                parameters,
                best,
                ema,
                ..
            } = self;
            tch::no_grad(|| best.copy_(ema.as_ref().unwrap_or(&*parameters.values())));
        } else {
            self.progress.waited += 1;
        }
        kept::add(
            &mut self.progress.kept,
            loss,
            step,
            self.options.training.keep_best,
        );
        if let ScheduleConfig::Plateau(plateau) = &self.options.schedule {
            self.progress.plateau.validated(plateau, loss);
        }
        let mut stop = None;
        if let Some(validation) = &validation {
            let report = ValidationReport {
                step,
                validation,
                is_best,
                mean_loss: self.progress.mean_loss.unwrap_or(f64::NAN),
                rate,
                sample_rate: self.task.sample_rate(),
            };
            for callback in callbacks {
                stop = callback.validated(&report)?.or(stop);
            }
        }
        let [stops] = self.numbers_of_first([f64::from(u8::from(stop.is_some()))])?;
        Ok(stop.or_else(|| (stops > 0.0).then(|| "the first process has stopped".to_owned())))
    }

    /// Measures the current weights, or their mean, on the validation sound.
    fn validation(&mut self) -> anyhow::Result<Validation> {
        let weights = self.weights_with(self.ema.as_ref());
        let weights = effective_weights(self.grids.as_ref(), &weights);
        let rows = self
            .validation_rows
            .unwrap_or_else(|| self.task.validation_rows());
        let (rows, validation) = with_fewer_rows("the validation", rows, |rows| {
            tch::no_grad(|| self.task.validate(&weights, self.device, rows))
        })?;
        self.validation_rows = Some(rows);
        Ok(validation)
    }

    /// Returns the weights with the trained ones replaced by a flat buffer, if there is one.
    fn weights_with(&self, flat: Option<&Tensor>) -> TorchWeights {
        let mut weights = self.weights.shallow_clone();
        weights.0.extend(
            flat.map(|flat| self.parameters.split(flat))
                .into_iter()
                .flatten(),
        );
        weights
    }

    /// Returns the best model so far, with the run's data on its card. Before the first validation,
    /// the current weights are measured.
    ///
    /// # Errors
    /// Returns an error if the weights are not finite.
    pub fn model(&mut self) -> anyhow::Result<Model> {
        let (loss, steps) = match self.progress.best {
            Some(best) => best,
            None => (self.validation()?.loss, self.progress.step),
        };
        let flat = if self.progress.best.is_some() {
            Some(&self.best)
        } else {
            self.ema.as_ref()
        };
        let weights = effective_weights(self.grids.as_ref(), &self.weights_with(flat));
        let initial = self.task.initial();
        let mut header = initial.header().clone();
        header.card.training = Some(self.task.info().card(steps, loss));
        Ok(Model::new(header, model_weights(initial, &weights)?)?)
    }
}

/// Reason why a run stops before its last step.
enum Stop {
    Early(String),
    Interrupt,
}

/// Sets the number of threads; 0 selects that of the start.
fn use_threads(threads: i32) {
    static DEFAULT: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    let default = *DEFAULT.get_or_init(tch::get_num_threads);
    tch::set_num_threads(if threads > 0 { threads } else { default });
}
