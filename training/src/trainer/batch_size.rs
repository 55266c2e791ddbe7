//! The largest batch that fits into memory.

use super::guard::{OutOfMemory, if_it_fits};
use super::pass::Pass;
use super::run::Trainer;
use super::task::Task;

/// Largest batch that is chosen.
const MAX_BATCH: usize = 4096;

impl<T: Task> Trainer<T> {
    /// Chooses the largest batch whose first step fits into memory: powers of two, then the middle
    /// of the last two.
    ///
    /// # Errors
    /// Returns an error if not even a batch of one fits.
    pub(super) fn choose_batch(&mut self) -> anyhow::Result<()> {
        let mut fits = 0;
        // Each process computes a row at least.
        let mut rows = self
            .options
            .group
            .as_ref()
            .map_or(1, |group| group.size().next_power_of_two());
        let mut reason = String::new();
        while rows <= MAX_BATCH && self.fits(rows, &mut reason)? {
            fits = rows;
            rows *= 2;
        }
        if fits == 0 {
            return Err(OutOfMemory::new("a step of one row", &reason).into());
        }
        if fits > 2 && rows <= MAX_BATCH && self.fits(fits + fits / 2, &mut reason)? {
            fits += fits / 2;
        }
        self.set_batch(fits)?;
        eprintln!("batch: {fits}, the largest that fits");
        Ok(())
    }

    /// Tells whether a step with so many rows fits into memory, or gives the reason. Larger batches
    /// than the data has rows do not.
    fn fits(&mut self, rows: usize, reason: &mut String) -> anyhow::Result<bool> {
        self.set_batch(rows)?;
        // Recurrent state is brought up to date by the first step without learning.
        let step = (0..2).find(|step| self.task.learns(*step)).unwrap_or(0);
        if self.task.rows(step) < rows {
            return Ok(false);
        }
        let Self {
            task,
            options,
            device,
            weights,
            parameters,
            grids,
            profile,
            ..
        } = self;
        let gradient = if_it_fits(|| -> anyhow::Result<_> {
            let batches = [(1.0, task.batch(step, options.own_rows(rows), *device)?)];
            let (precision, grids) = (options.training.precision, grids.as_ref());
            let (scale, group, overlap) = (1.0, None, false);
            let pass = Pass {
                weights,
                grids,
                step,
                precision,
                device: *device,
                scale,
                group,
                overlap,
                profile,
            };
            Ok(pass.own_gradient(task, &batches, parameters, None))
        });
        let fits = match gradient {
            Ok(gradient) => gradient.map(|_| true)?,
            Err(missing) => {
                *reason = missing;
                false
            }
        };
        parameters.clear_gradients();
        task.restart_step();
        let Some(group) = &options.group else {
            return Ok(fits);
        };
        Ok(group.sums(&[f64::from(u8::from(fits))])?[0] as usize == group.size())
    }
}
