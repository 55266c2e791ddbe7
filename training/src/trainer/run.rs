//! The loop.

use std::time::Instant;

use anyhow::{Context, bail};
use ondes_engine::model::Model;
use ondes_torch::TorchWeights;
use tch::{Device, Tensor};

use super::callback::{Callback, StepReport, StopReason, ValidationReport};
use super::checkpoint::{self, Checkpoint, Progress};
use super::early_stopping::EarlyStopping;
use super::interrupt;
use super::metrics::MetricsLog;
use super::options::{Length, TrainerOptions, device};
use super::parameters::Parameters;
use super::precision::Precision;
use super::progress::ProgressDisplay;
use super::task::{Phase, Task, Validation, model_weights};
use super::tensorboard::TensorBoard;
use crate::fake_quantization::QuantizationGrids;
use crate::loss::Loss;
use crate::optimizer::{Optimizer, OptimizerStep};
use crate::schedule::ScheduleConfig;

/// Steps that are timed to convert minutes to steps, after some that are not.
const TIMED_STEPS: u32 = 4;
const UNTIMED_STEPS: u32 = 2;
/// Share of the last step in the mean loss.
const MEAN_SHARE: f64 = 0.02;
/// Steps in a row with a gradient that is not finite, after which a run has diverged.
const MAX_SKIPPED: u64 = 10;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// At its last step, or early because it was good enough or no longer improved.
    Finished,
    /// By Ctrl-C or SIGTERM; the checkpoint has been written.
    Interrupted,
}

/// Weights of a phase with their optimiser.
struct PhaseState {
    phase: Phase,
    parameters: Parameters,
    optimizer: Box<dyn Optimizer>,
    /// Weights with the lowest validation loss.
    best: Tensor,
    /// Mean of the weights over the last steps.
    ema: Option<Tensor>,
}

/// Loss of a step.
struct StepLoss {
    total: f64,
    terms: Vec<(&'static str, f64)>,
    gradient: f64,
}

/// Training run.
pub struct Trainer<T: Task> {
    task: T,
    options: TrainerOptions,
    device: Device,
    /// All weights; the trained ones are views of their phase's buffer.
    weights: TorchWeights,
    phases: Vec<PhaseState>,
    grids: Option<QuantizationGrids>,
    progress: Progress,
}

impl<T: Task> Trainer<T> {
    /// Prepares a run.
    ///
    /// # Errors
    /// Returns an error if a setting is out of range, the device cannot be used, or a trained weight does not exist.
    pub fn new(task: T, options: TrainerOptions) -> anyhow::Result<Self> {
        options.check()?;
        let device = device(&options.device)?;
        use_threads(options.threads);
        let mut weights = TorchWeights::new(task.initial().weights(), device);
        weights.0.extend(task.further_weights().into_iter().map(|(name, weight)| (name, weight.to_device(device))));
        let mut phases = Vec::new();
        for phase in task.phases() {
            let mut parameters = Parameters::new(&mut weights, &phase.trained)?;
            let values = tch::no_grad(|| parameters.values().copy());
            phases.push(PhaseState {
                optimizer: options.optimizer.build(&parameters),
                ema: (options.ema > 0.0).then(|| values.copy()),
                best: values,
                phase,
                parameters,
            });
        }
        let mut identity = options.identity()?;
        identity.extend(task.identity());
        let steps = match options.length {
            Length::Steps(steps) => steps,
            Length::Epochs(epochs) => epochs * task.epoch_steps().unwrap_or(1),
            Length::Minutes(_) => 0,
        };
        let progress = Progress { steps, identity, ..Progress::default() };
        Ok(Self { task, options, device, weights, phases, grids: None, progress })
    }

    /// Keeps weights of matrices that are zero now at zero.
    pub fn keep_zeros(&mut self) {
        self.phases.iter_mut().for_each(|state| state.parameters.keep_zeros());
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
        self.load(&Checkpoint::read(&path).with_context(|| path.display().to_string())?)
            .with_context(|| path.display().to_string())?;
        match self.task.epoch_steps() {
            Some(epoch) => eprintln!(
                "resumed at step {} of {}, after epoch {}",
                self.progress.step,
                self.progress.steps,
                self.progress.step / epoch
            ),
            None => eprintln!("resumed at step {} of {}", self.progress.step, self.progress.steps),
        }
        Ok(())
    }

    fn load(&mut self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        checkpoint.progress.check_identity(&self.progress.identity)?;
        for state in &mut self.phases {
            let PhaseState { phase, parameters, optimizer, best, ema } = state;
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
                parameters.fill(buffer, section(&format!("optimizer/{}/{name}", phase.name)))?;
            }
        }
        let state = checkpoint.names("task/")?.into_iter().map(|name| {
            let tensor = checkpoint.tensor(&format!("task/{name}"))?.to_device(self.device);
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
        let mut tensors = Vec::new();
        for state in &mut self.phases {
            let PhaseState { phase, parameters, optimizer, best, ema } = state;
            let values = parameters.values().shallow_clone();
            let mut add = |section: &str, flat: &Tensor| {
                tensors.extend(
                    parameters.split(flat).into_iter().map(|(name, tensor)| (format!("{section}/{name}"), tensor)),
                );
            };
            add("weights", &values);
            add("best", best);
            ema.iter().for_each(|ema| add("ema", ema));
            for (name, buffer) in optimizer.state() {
                add(&format!("optimizer/{}/{name}", phase.name), buffer);
            }
        }
        tensors.extend(self.task.state().into_iter().map(|(name, tensor)| (format!("task/{name}"), tensor)));
        self.progress.card = self.progress.best.map(|(loss, steps)| self.task.card(steps, loss));
        checkpoint::write(&self.options.files.checkpoint, &self.progress, self.task.initial(), &tensors)
    }

    /// Trains to the last step. Writes a log and checkpoints.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written or training diverges.
    pub fn run(&mut self) -> anyhow::Result<Outcome> {
        for path in [&self.options.files.checkpoint, &self.options.files.metrics] {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            if let Some(folder) = folder {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
            }
        }
        if self.progress.steps == 0 {
            self.progress.steps = self.steps_in_time()?;
        }
        let epoch = self.task.epoch_steps();
        let trained: i64 = self.phases.iter().map(|state| state.parameters.count()).sum();
        eprintln!(
            "{}: {:.0} s of sound, {trained} weights, {} on {:?}",
            self.task.describe(),
            self.task.seconds(),
            match epoch {
                Some(epoch) => format!("{} epochs of {epoch} steps", self.progress.steps.div_ceil(epoch)),
                None => format!("{} steps", self.progress.steps),
            },
            self.device
        );
        let mut callbacks = self.callbacks()?;
        let outcome = self.run_steps(&mut callbacks);
        callbacks.iter_mut().try_for_each(|callback| callback.finished())?;
        let reason = outcome?;
        match reason {
            Some(Stop::Interrupt) => {
                eprintln!("stopped after step {}; --resume goes on", self.progress.step);
                Ok(Outcome::Interrupted)
            }
            Some(Stop::Early(reason)) => {
                eprintln!("stopped after step {}: {reason}", self.progress.step);
                Ok(Outcome::Finished)
            }
            None => Ok(Outcome::Finished),
        }
    }

    fn callbacks(&self) -> anyhow::Result<Vec<Box<dyn Callback>>> {
        let Self { options, progress, .. } = self;
        let epoch = self.task.epoch_steps().map(|steps| (steps, self.task.seconds()));
        let mut callbacks: Vec<Box<dyn Callback>> = vec![
            Box::new(ProgressDisplay::new(progress.step, progress.steps, epoch)?),
            Box::new(MetricsLog::new(&options.files.metrics, progress.step, options.log_every)?),
            Box::new(EarlyStopping::new(options.patience, options.stop_at, progress.waited)),
        ];
        if let Some(folder) = &options.files.tensorboard {
            callbacks.push(Box::new(TensorBoard::new(folder, options.log_every)?));
        }
        Ok(callbacks)
    }

    fn run_steps(&mut self, callbacks: &mut [Box<dyn Callback>]) -> anyhow::Result<Option<Stop>> {
        let epoch = self.task.epoch_steps();
        let every = |chosen: Option<u64>| chosen.or(epoch).unwrap_or(self.progress.steps).max(1);
        let (validate_every, checkpoint_every) =
            (every(self.options.validate_every), every(self.options.checkpoint_every));
        while self.progress.step < self.progress.steps {
            let started = Instant::now();
            let rate = self.learning_rate();
            let loss = self.step(rate)?;
            self.progress.step += 1;
            let step = self.progress.step;
            if !loss.total.is_nan() {
                let mean = self.progress.mean_loss.map_or(loss.total, |mean| mean + MEAN_SHARE * (loss.total - mean));
                self.progress.mean_loss = Some(mean);
            }
            let phases: Vec<_> = self.phases.iter().map(|state| (state.phase.name, &state.parameters)).collect();
            let report = StepReport {
                step,
                loss: loss.total,
                terms: &loss.terms,
                gradient: loss.gradient,
                rate,
                mean_loss: self.progress.mean_loss.unwrap_or(f64::NAN),
                seconds: started.elapsed().as_secs_f64(),
                phases: &phases,
            };
            callbacks.iter_mut().try_for_each(|callback| callback.step_done(&report))?;
            let done = step == self.progress.steps;
            let mut stop = None;
            if done || step.is_multiple_of(validate_every) {
                stop = self.validate(rate, callbacks)?.map(Stop::Early);
            }
            if stop.is_none() && interrupt::requested() && !done {
                stop = Some(Stop::Interrupt);
            }
            if done || stop.is_some() || step.is_multiple_of(checkpoint_every) {
                self.save()?;
            }
            if stop.is_some() {
                return Ok(stop);
            }
        }
        Ok(None)
    }

    /// Returns the learning rate of the next step.
    fn learning_rate(&self) -> f64 {
        let Self { options, progress, .. } = self;
        let share = options.schedule.share(progress.step, progress.steps, options.warmup_steps, &progress.plateau);
        options.learning_rate * share
    }

    /// Computes the gradient of the next batch and moves the weights.
    fn step(&mut self, rate: f64) -> anyhow::Result<StepLoss> {
        let Self { task, options, device, weights, phases, grids, progress } = self;
        let step = progress.step;
        let rows = task.rows(step);
        let parts = options.accumulate.clamp(1, rows.max(1));
        let batches: Vec<(f64, T::Batch)> = (0..parts)
            .map(|part| {
                let range = part * rows / parts..(part + 1) * rows / parts;
                (range.len() as f64 / rows as f64, task.batch(step, range, *device))
            })
            .collect();
        let mut sum = StepLoss { total: f64::NAN, terms: Vec::new(), gradient: 0.0 };
        let with_terms = (step + 1).is_multiple_of(options.log_every);
        for (index, state) in phases.iter_mut().enumerate() {
            let PhaseState { parameters, optimizer, ema, .. } = state;
            let precision = options.precision;
            let scale = if precision == Precision::F16 { progress.loss_scale.factor } else { 1.0 };
            let pass = Pass {
                index,
                weights,
                grids: grids.as_ref(),
                batches: &batches,
                step,
                precision,
                device: *device,
                scale,
            };
            if !task.learns(step) {
                pass.forward(task);
                continue;
            }
            let total = pass.gradient(task, parameters, with_terms.then_some(&mut sum.terms));
            if !total.is_finite() {
                let effective = effective_weights(grids.as_ref(), weights);
                let node = batches.iter().find_map(|(_, batch)| task.first_non_finite(&effective, batch));
                bail!(
                    "training diverged at step {step}: the loss is {total}{}; use a lower learning rate, and resume \
                     or export the last checkpoint",
                    node.map_or_else(String::new, |node| format!(", first in the layer {node:?}"))
                );
            }
            let norm = parameters.gradient_norm();
            sum.total = if sum.total.is_nan() { total } else { sum.total + total };
            sum.gradient = sum.gradient.hypot(norm);
            if !norm.is_finite() {
                if precision == Precision::F16 && progress.loss_scale.overflowed() {
                    continue;
                }
                progress.skipped += 1;
                if progress.skipped >= MAX_SKIPPED {
                    let layer = parameters.gradient_norms().into_iter().find(|(_, norm)| !norm.is_finite());
                    bail!(
                        "training diverged at step {step}: the gradient of {:?} is not finite; use a lower learning rate",
                        layer.map_or("all layers", |(name, _)| name)
                    );
                }
                continue;
            }
            progress.skipped = 0;
            if precision == Precision::F16 {
                progress.loss_scale.succeeded();
            }
            parameters.clip(options.clip, norm);
            let number = step + 1;
            let at = OptimizerStep { number, rate, weight_decay: options.weight_decay, clip: options.clip };
            optimizer.step(parameters, at, &mut |parameters| {
                pass.gradient(task, parameters, None);
                Ok(())
            })?;
            if let Some(ema) = ema {
                let _ = tch::no_grad(|| ema.lerp_(parameters.values(), 1.0 - options.ema));
            }
        }
        task.finish_step();
        Ok(sum)
    }

    /// Validates the weights and keeps them if they are the best so far.
    fn validate(&mut self, rate: f64, callbacks: &mut [Box<dyn Callback>]) -> anyhow::Result<StopReason> {
        let validation = self.measure()?;
        let step = self.progress.step;
        let is_best = self.progress.best.is_none_or(|(best, _)| validation.loss < best);
        if is_best {
            self.progress.best = Some((validation.loss, step));
            self.progress.waited = 0;
            for state in &mut self.phases {
                let PhaseState { parameters, best, ema, .. } = state;
                tch::no_grad(|| best.copy_(ema.as_ref().unwrap_or(&*parameters.values())));
            }
        } else {
            self.progress.waited += 1;
        }
        if let ScheduleConfig::Plateau(plateau) = &self.options.schedule {
            self.progress.plateau.validated(plateau, validation.loss);
        }
        let report = ValidationReport {
            step,
            validation: &validation,
            is_best,
            mean_loss: self.progress.mean_loss.unwrap_or(f64::NAN),
            rate,
            sample_rate: self.task.sample_rate(),
        };
        let mut stop = None;
        for callback in callbacks {
            stop = callback.validated(&report)?.or(stop);
        }
        Ok(stop)
    }

    /// Measures the current weights, or their mean, on the validation sound.
    fn measure(&mut self) -> anyhow::Result<Validation> {
        let averaged = self.phases.iter().map(|state| state.ema.as_ref().map(Tensor::shallow_clone)).collect();
        let weights = self.weights_with(averaged);
        tch::no_grad(|| self.task.validate(&effective_weights(self.grids.as_ref(), &weights), self.device))
    }

    /// Returns the weights with those of a phase replaced by a flat buffer.
    fn weights_with(&self, flats: Vec<Option<Tensor>>) -> TorchWeights {
        let mut weights = self.weights.shallow_clone();
        for (state, flat) in self.phases.iter().zip(flats) {
            if let Some(flat) = flat {
                weights.0.extend(state.parameters.split(&flat));
            }
        }
        weights
    }

    /// Returns the best model so far, with the run's data on its card. Before the first validation, the current weights
    /// are measured.
    ///
    /// # Errors
    /// Returns an error if the weights are not finite.
    pub fn model(&mut self) -> anyhow::Result<Model> {
        let (loss, steps) = match self.progress.best {
            Some(best) => best,
            None => (self.measure()?.loss, self.progress.step),
        };
        let flats = match self.progress.best {
            Some(_) => self.phases.iter().map(|state| Some(state.best.shallow_clone())).collect(),
            None => self.phases.iter().map(|state| state.ema.as_ref().map(Tensor::shallow_clone)).collect(),
        };
        let weights = effective_weights(self.grids.as_ref(), &self.weights_with(flats));
        let initial = self.task.initial();
        let mut header = initial.header().clone();
        header.card.training = Some(self.task.card(steps, loss));
        Ok(Model::new(header, model_weights(initial, &weights)?)?)
    }

    /// Returns the number of steps that fit into the given minutes: whole epochs, at least one. Timing changes nothing.
    fn steps_in_time(&mut self) -> anyhow::Result<u64> {
        let Length::Minutes(minutes) = self.options.length else { return Ok(1) };
        let before: Vec<Tensor> =
            self.phases.iter_mut().map(|state| tch::no_grad(|| state.parameters.values().copy())).collect();
        let (task_state, progress) = (self.task.state(), self.progress.clone());
        let mut started = Instant::now();
        for step in 0..UNTIMED_STEPS + TIMED_STEPS {
            if step == UNTIMED_STEPS {
                self.synchronize();
                started = Instant::now();
            }
            self.step(self.options.learning_rate * 1e-3)?;
            self.progress.step += 1;
        }
        self.synchronize();
        let pace = started.elapsed().as_secs_f64() / f64::from(TIMED_STEPS);
        for (state, before) in self.phases.iter_mut().zip(before) {
            tch::no_grad(|| state.parameters.values().copy_(&before));
            state.ema.iter_mut().for_each(|ema| tch::no_grad(|| ema.copy_(&before)));
            state.optimizer = self.options.optimizer.build(&state.parameters);
        }
        self.task.set_state(task_state);
        self.progress = progress;
        let steps = (60.0 * minutes / pace) as u64;
        let epoch = self.task.epoch_steps().unwrap_or(1).max(1);
        Ok((steps / epoch).max(1) * epoch)
    }

    /// Waits until the device has done what it was given.
    fn synchronize(&self) {
        if let Device::Cuda(index) = self.device {
            tch::Cuda::synchronize(index as i64);
        }
    }
}

/// Reason why a run stops before its last step.
enum Stop {
    Early(String),
    Interrupt,
}

/// Gradient of a phase's loss at the current weights.
struct Pass<'a, B> {
    index: usize,
    weights: &'a TorchWeights,
    grids: Option<&'a QuantizationGrids>,
    /// Parts of the batch with their share of its rows.
    batches: &'a [(f64, B)],
    step: u64,
    precision: Precision,
    device: Device,
    /// Factor of the loss during the backward pass.
    scale: f64,
}

impl<B> Pass<'_, B> {
    fn loss<T: Task<Batch = B>>(&self, task: &mut T, batch: &B) -> Loss {
        let weights = effective_weights(self.grids, self.weights);
        self.precision.run(self.device, || task.loss(self.index, &weights, batch, self.step))
    }

    /// Computes forward only, which brings the task's state up to date.
    fn forward<T: Task<Batch = B>>(&self, task: &mut T) {
        tch::no_grad(|| self.batches.iter().for_each(|(_, batch)| drop(self.loss(task, batch))));
    }

    /// Computes forward and backward; returns the loss and adds its terms.
    fn gradient<T: Task<Batch = B>>(
        &self,
        task: &mut T,
        parameters: &mut Parameters,
        mut terms: Option<&mut Vec<(&'static str, f64)>>,
    ) -> f64 {
        parameters.clear_gradients();
        let mut total = 0.0;
        for (share, batch) in self.batches {
            let loss = self.loss(task, batch);
            (&loss.total * (share * self.scale)).backward();
            total += share * loss.total.double_value(&[]);
            if let Some(terms) = &mut terms {
                add_terms(terms, &loss.terms, *share);
            }
        }
        parameters.collect_gradients();
        if self.scale != 1.0 {
            let _ = tch::no_grad(|| parameters.gradients().g_mul_scalar_(1.0 / self.scale));
        }
        total
    }
}

/// Returns the weights that the network computes with.
fn effective_weights(grids: Option<&QuantizationGrids>, weights: &TorchWeights) -> TorchWeights {
    grids.map_or_else(|| weights.shallow_clone(), |grids| grids.rounded(weights))
}

/// Adds the terms of a part of a batch.
fn add_terms(sums: &mut Vec<(&'static str, f64)>, terms: &[(&'static str, Tensor)], share: f64) {
    for (name, term) in terms {
        let value = share * term.double_value(&[]);
        match sums.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += value,
            None => sums.push((name, value)),
        }
    }
}

/// Sets the number of threads; 0 selects that of the start.
fn use_threads(threads: i32) {
    static DEFAULT: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    let default = *DEFAULT.get_or_init(tch::get_num_threads);
    tch::set_num_threads(if threads > 0 { threads } else { default });
}
