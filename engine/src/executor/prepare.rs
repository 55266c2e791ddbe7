//! Builds the executor of a method, with fallbacks.

use ondes_kernels::Kernels;

use super::feedback::FeedbackExecutor;
use super::method_executor::MethodExecutor;
use super::selection::{Backend, Device, ExecutorSelection, Precision};
use super::warning::push_warning;
use crate::model::{Method, Model, ModelError};
use crate::native;
use crate::torch::{FallbackExecutor, Library, TorchExecutor};

/// Executor, device and fallback with which a model's methods are prepared.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorOptions {
    /// Executor, device and precision.
    pub selection: ExecutorSelection,
    /// Arithmetic of the native executor.
    pub kernels: Kernels,
    /// Uses an available executor, with a [warning](super::take_warning), where the selected one
    /// cannot be had.
    pub allow_fallback: bool,
}

impl ExecutorOptions {
    /// Prepares a method for up to `streams` streams and up to `blocks` blocks a step.
    ///
    /// # Errors
    /// Returns [`ModelError`] if the model has no such method or cannot be run like this.
    pub fn prepare(
        &self,
        model: &Model,
        method: &Method,
        streams: usize,
        blocks: usize,
    ) -> Result<MethodExecutor, ModelError> {
        if method.feedback().next().is_none() {
            return self.prepare_open(model, method, streams, blocks);
        }
        let block = self.prepare_open(model, method, streams, 1)?;
        Ok(Box::new(FeedbackExecutor::new(
            block, method, streams, blocks,
        )?))
    }

    /// Prepares a method whose outputs are not fed back.
    fn prepare_open(
        &self,
        model: &Model,
        method: &Method,
        streams: usize,
        blocks: usize,
    ) -> Result<MethodExecutor, ModelError> {
        if self.selection.backend != Backend::Torch && model.program().is_none() {
            return self.prepare_native(model, method, streams, blocks);
        }
        let error = match self.prepare_torch(model, method, streams, blocks) {
            Err(error) if self.allow_fallback => error,
            result => return result,
        };
        let fallback = match model.program() {
            Some(_) => {
                let any_device = Self {
                    selection: ExecutorSelection::default(),
                    ..*self
                };
                any_device.prepare_torch(model, method, streams, blocks)
            }
            None => self.prepare_native(model, method, streams, blocks),
        };
        let Ok(fallback) = fallback else {
            return Err(error);
        };
        let selection = ExecutorSelection {
            backend: Backend::Torch,
            ..self.selection
        };
        push_warning(&format!(
            "running on {} instead of {selection}: {error}",
            fallback.name()
        ));
        Ok(fallback)
    }

    fn prepare_torch(
        &self,
        model: &Model,
        method: &Method,
        streams: usize,
        blocks: usize,
    ) -> Result<MethodExecutor, ModelError> {
        let ExecutorSelection {
            device: selected,
            precision,
            ..
        } = self.selection;
        let device = match selected {
            Device::Auto if Library::get()?.gpus > 0 => Device::Cuda(0),
            Device::Auto => Device::Cpu,
            device => device,
        };
        let on = |device, precision| {
            TorchExecutor::new(model, method, device, precision, streams, blocks)
        };
        if device == Device::Cpu {
            return Ok(Box::new(on(device, precision)?));
        }
        // Built now: when the GPU fails there is no time for it. In f32, since half precision is
        // slow on many CPUs.
        let spare = match model.program() {
            Some(_) => {
                on(Device::Cpu, Precision::F32).map(|spare| Box::new(spare) as MethodExecutor)
            }
            None => self.prepare_native(model, method, streams, blocks),
        };
        match (on(device, precision), spare) {
            (Ok(primary), Ok(spare)) => {
                let sample_rate = model.header().sample_rate;
                let executor =
                    FallbackExecutor::new(primary, spare, method, sample_rate, streams, blocks);
                Ok(Box::new(executor))
            }
            (Ok(primary), Err(_)) => Ok(Box::new(primary)),
            // With `Device::Auto`, a failing GPU falls back to the CPU.
            (Err(error), Ok(spare)) if selected == Device::Auto && precision == Precision::F32 => {
                push_warning(&format!(
                    "{device} cannot be used ({error}); running on {}",
                    spare.name()
                ));
                Ok(spare)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn prepare_native(
        &self,
        model: &Model,
        method: &Method,
        streams: usize,
        blocks: usize,
    ) -> Result<MethodExecutor, ModelError> {
        let executor = native::Executor::new(model, &method.name, self.kernels, streams, blocks)?;
        Ok(Box::new(executor))
    }
}
