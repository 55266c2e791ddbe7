//! A step of a run.

use std::time::Instant;

use anyhow::ensure;

use super::guard::{OutOfMemory, if_it_fits};
use super::options::ema_decay;
use super::pass::{Pass, effective_weights};
use super::precision::Precision;
use super::profile::{Part, synchronize};
use super::run::Trainer;
use super::task::Task;
use super::training_config::Length;
use crate::optimizer::{GradientKind, OptimizerStep};

/// Steps that are timed to convert minutes to steps, after some that are not.
const TIMED_STEPS: u32 = 4;
const UNTIMED_STEPS: u32 = 2;
/// Steps in a row with a gradient that is not finite, after which a run has diverged.
const MAX_SKIPPED: u64 = 10;

/// Training has left all finite numbers.
#[derive(Debug, thiserror::Error)]
#[error("training diverged at step {step}: {reason}")]
pub(super) struct Divergence {
    step: u64,
    reason: String,
}

impl Divergence {
    fn error(step: u64, reason: &str) -> anyhow::Error {
        let reason = reason.to_owned();
        Self { step, reason }.into()
    }
}

/// Loss of a step.
pub(super) struct StepLoss {
    pub(super) total: f64,
    pub(super) terms: Vec<(&'static str, f64)>,
    pub(super) gradient: f64,
    /// Time spent waiting for the batch.
    pub(super) data_seconds: f64,
}

impl<T: Task> Trainer<T> {
    /// Takes the next step.
    pub(super) fn step(&mut self, rate: f64) -> anyhow::Result<StepLoss> {
        let loss = self.learn(rate)?;
        self.task.finish_step();
        self.is_moving = false;
        Ok(loss)
    }

    /// Computes the gradient of the next batch and moves the weights.
    fn learn(&mut self, rate: f64) -> anyhow::Result<StepLoss> {
        let Self {
            task,
            options,
            device,
            weights,
            parameters,
            optimizer,
            ema,
            grids,
            progress,
            profile,
            ..
        } = self;
        let step = progress.step;
        let rows = task.rows(step);
        let own = options.own_rows(rows);
        ensure!(
            !own.is_empty(),
            "a batch of {rows} is too small for so many processes; use fewer"
        );
        let mut parts = options.training.accumulate.clamp(1, own.len());
        let mut loss = StepLoss {
            total: f64::NAN,
            terms: Vec::new(),
            gradient: 0.0,
            data_seconds: 0.0,
        };
        let mut cut = |task: &mut T, parts: usize| -> anyhow::Result<Vec<(f64, T::Batch)>> {
            let started = Instant::now();
            let part = |part: usize| {
                let range = own.start + part * own.len() / parts
                    ..own.start + (part + 1) * own.len() / parts;
                let share = range.len() as f64 / rows as f64;
                Ok((
                    share,
                    profile.measure(Part::Data, || task.batch(step, range, *device))?,
                ))
            };
            let batches = (0..parts).map(part).collect();
            loss.data_seconds += started.elapsed().as_secs_f64();
            batches
        };
        let mut batches = cut(task, parts)?;
        let with_terms = (step + 1).is_multiple_of(options.training.log_every);
        let precision = options.training.precision;
        let scale = if precision == Precision::F16 {
            progress.loss_scale.factor
        } else {
            1.0
        };
        let group = options.group.as_deref();
        // A block that is computed again adds its gradients in parts.
        let overlap = !options.training.checkpoint_activations;
        let (device, grids) = (*device, grids.as_ref());
        let pass = Pass {
            weights,
            grids,
            step,
            precision,
            device,
            scale,
            group,
            overlap,
            profile,
        };
        let total = loop {
            let computed = if_it_fits(|| {
                if !task.learns(step) {
                    pass.forward(task, &batches);
                    return Ok(None);
                }
                pass.gradient(
                    task,
                    &batches,
                    parameters,
                    with_terms.then_some(&mut loss.terms),
                )
                .map(Some)
            });
            match computed {
                Ok(computed) => break computed?,
                Err(missing) => {
                    batches.clear();
                    parts = more_parts(parts, own.len(), step, &missing)?;
                    options.training.accumulate = parts;
                    task.restart_step();
                    loss.terms.clear();
                    batches = cut(task, parts)?;
                }
            }
        };
        let Some((total, asked_to_stop)) = total else {
            return Ok(loss);
        };
        self.stop_requested = asked_to_stop;
        if !total.is_finite() {
            let effective = effective_weights(grids, weights);
            let node = batches
                .iter()
                .find_map(|(_, batch)| task.first_non_finite(&effective, batch));
            let place =
                node.map_or_else(String::new, |node| format!(", first in the layer {node:?}"));
            return Err(Divergence::error(
                step,
                &format!("the loss is {total}{place}"),
            ));
        }
        let norm = parameters.gradient_norm();
        (loss.total, loss.gradient) = (total, norm);
        if !norm.is_finite() {
            if precision == Precision::F16 && progress.loss_scale.overflowed() {
                return Ok(loss);
            }
            progress.skipped += 1;
            if progress.skipped >= MAX_SKIPPED {
                let layer = parameters
                    .gradient_norms()
                    .into_iter()
                    .find(|(_, norm)| !norm.is_finite());
                let layer = layer.map_or("all layers", |(name, _)| name);
                let reason = format!("the gradient of {layer:?} is not finite");
                return Err(Divergence::error(step, &reason));
            }
            return Ok(loss);
        }
        progress.skipped = 0;
        if precision == Precision::F16 {
            progress.loss_scale.succeeded();
        }
        parameters.clip(options.training.clip(), norm);
        let number = step + 1;
        let at = OptimizerStep {
            number,
            rate,
            weight_decay: options.training.weight_decay,
            clip: options.training.clip(),
        };
        self.is_moving = true;
        let moved = profile.measure(Part::Optimizer, || {
            optimizer.step(parameters, at, &mut |parameters, kind| {
                loop {
                    let computed = if_it_fits(|| match kind {
                        GradientKind::Loss => {
                            Ok(pass.gradient(task, &batches, parameters, None).map(drop)?)
                        }
                        GradientKind::CurvatureSample => {
                            pass.sampled_gradient(task, &batches, parameters)
                        }
                    });
                    match computed {
                        Ok(computed) => return computed,
                        Err(missing) => {
                            batches.clear();
                            parts = more_parts(parts, own.len(), step, &missing)?;
                            options.training.accumulate = parts;
                            batches = cut(task, parts)?;
                        }
                    }
                }
            })?;
            if let Some(ema) = ema {
                let _ = tch::no_grad(|| {
                    ema.lerp_(
                        parameters.values(),
                        1.0 - ema_decay(options.training.ema, number),
                    )
                });
            }
            anyhow::Ok(())
        });
        // Without the gradient that it asks for, an optimiser leaves everything as it was.
        self.is_moving = moved.is_ok();
        moved?;
        Ok(loss)
    }

    /// Returns the number of steps that fit into the given minutes: whole epochs, at least one.
    /// Timing changes nothing.
    pub(super) fn steps_in_time(&mut self) -> anyhow::Result<u64> {
        let Length::Minutes(minutes) = self.options.length else {
            return Ok(1);
        };
        let before = tch::no_grad(|| self.parameters.values().copy());
        let (task_state, progress) = (self.task.state(), self.progress.clone());
        let mut started = Instant::now();
        for step in 0..UNTIMED_STEPS + TIMED_STEPS {
            if step == UNTIMED_STEPS {
                synchronize(self.device);
                started = Instant::now();
            }
            self.step(self.options.training.learning_rate * 1e-3)?;
            self.progress.step += 1;
        }
        synchronize(self.device);
        let pace = started.elapsed().as_secs_f64() / f64::from(TIMED_STEPS);
        tch::no_grad(|| self.parameters.values().copy_(&before));
        self.ema
            .iter_mut()
            .for_each(|ema| tch::no_grad(|| ema.copy_(&before)));
        self.optimizer = self.options.optimizer.build(&self.parameters);
        self.task.set_state(task_state);
        self.progress = progress;
        let [steps] = self.numbers_of_first([60.0 * minutes / pace])?;
        let steps = steps as u64;
        let epoch = self.task.epoch_steps().unwrap_or(1).max(1);
        Ok((steps / epoch).max(1) * epoch)
    }
}

/// Returns the number of parts of a batch of `rows` rows after `parts` of them did not fit, and
/// says so.
fn more_parts(parts: usize, rows: usize, step: u64, missing: &str) -> Result<usize, OutOfMemory> {
    if parts >= rows {
        return Err(OutOfMemory::new("a step of one row at a time", missing));
    }
    let more = (2 * parts).min(rows);
    eprintln!("out of memory at step {step}: batches are computed in {more} parts from now on");
    Ok(more)
}
