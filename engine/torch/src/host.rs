//! Transfer of samples between CPU memory and a device.
//!
//! A GPU copies pinned memory asynchronously. Pinning takes long, so each port has pinned memory of
//! its own from the start. Input is queued before the step that reads it; only the output is waited
//! for.

use ondes_engine::model::Port;
use ondes_engine::torch::PrepareRequest;
use tch::{Device, Kind, Tensor};

/// CPU memory of one port, for transfers to and from the device.
pub struct PortMemory {
    /// `[value]`, f32.
    memory: Tensor,
    channels: usize,
    device: Device,
    kind: Kind,
}

impl PortMemory {
    /// Allocates memory for a port's values in the longest step of a request; `kind` is that of the
    /// tensors on the device.
    #[must_use]
    pub fn new(port: &Port, request: &PrepareRequest, device: Device, kind: Kind) -> Self {
        let frames = request.method.block / port.ratio * request.blocks;
        let values = request.streams * frames * port.channels;
        let memory = Tensor::zeros([values as i64], (Kind::Float, Device::Cpu));
        let pinned = if device.is_cuda() {
            memory.f_pin_memory(device).ok()
        } else {
            None
        };
        // Without pinned memory, a GPU copies ordinary memory.
        Self {
            memory: pinned.unwrap_or(memory),
            channels: port.channels,
            device,
            kind,
        }
    }

    /// Sends values `[stream][frame][channel]` to the device, as a tensor
    /// `[stream, channel, frame]`.
    ///
    /// # Errors
    /// Returns the reason in one line if there is not enough memory here or on the device.
    pub fn send(&mut self, values: &[f32], streams: usize) -> Result<Tensor, String> {
        let text = |error: tch::TchError| error.to_string();
        let memory = self.first(values.len())?;
        // SAFETY: the memory belongs to this port, is contiguous CPU memory of at least this
        // length, and overlaps no Rust slice. The device no longer reads it, since all earlier
        // input has led to output; after a failed step it may, but then the output is discarded.
        unsafe {
            std::ptr::copy_nonoverlapping(values.as_ptr(), memory.data_ptr().cast(), values.len())
        };
        // Copies on the CPU too, since a program may keep its input.
        let sent = memory
            .f_internal_to_copy((self.kind, self.device), true)
            .map_err(text)?;
        let frames = sent
            .f_view([streams as i64, -1, self.channels as i64])
            .map_err(text)?;
        frames.transpose(1, 2).f_contiguous().map_err(text)
    }

    /// Waits for a tensor `[stream, channel, frame]` and copies it to values
    /// `[stream][frame][channel]`.
    ///
    /// # Errors
    /// Returns the reason in one line if the number of values differs, or the device fails.
    pub fn receive(&mut self, tensor: &Tensor, values: &mut [f32]) -> Result<(), String> {
        let text = |error: tch::TchError| error.to_string();
        if tensor.numel() != values.len() {
            return Err(format!(
                "{} values were returned; expected {}",
                tensor.numel(),
                values.len()
            ));
        }
        let mut memory = self.first(values.len())?;
        memory
            .f_copy_(&tensor.transpose(1, 2).f_reshape([-1]).map_err(text)?)
            .map_err(text)?;
        memory.f_copy_data(values, values.len()).map_err(text)
    }

    /// Returns the first `values` values.
    fn first(&self, values: usize) -> Result<Tensor, String> {
        let capacity = self.memory.numel();
        if values > capacity {
            return Err(format!("{values} values exceed the prepared {capacity}"));
        }
        self.memory
            .f_narrow(0, 0, values as i64)
            .map_err(|error| error.to_string())
    }
}
