//! Samples on their way to a device and back.
//!
//! A GPU fetches by itself, while the CPU goes on, what lies in memory that the system never moves (is pinned). Such memory takes
//! long to get, so each port has its own from when the method is made. What is sent is queued before the step that reads it, and
//! nothing waits but for what comes back.

use ondes_engine::model::Port;
use ondes_engine::torch::Order;
use tch::{Device, Kind, Tensor};

/// The memory of one port on the side of the CPU.
pub struct Host {
    /// `[value]`, f32.
    memory: Tensor,
    channels: usize,
    device: Device,
    kind: Kind,
}

impl Host {
    /// Room for what passes a port of an order's method in its longest step. Tensors for the device are of that kind.
    #[must_use]
    pub fn new(port: &Port, order: &Order, device: Device, kind: Kind) -> Self {
        let frames = order.method.block / port.ratio * order.blocks;
        let values = order.streams * frames * port.channels;
        let memory = Tensor::zeros([values as i64], (Kind::Float, Device::Cpu));
        let pinned = if device.is_cuda() { memory.f_pin_memory(device).ok() } else { None };
        // Where the system has none to pin, a GPU fetches from any.
        Self { memory: pinned.unwrap_or(memory), channels: port.channels, device, kind }
    }

    /// Sends `[stream][frame][channel]`; on the device it is a tensor `[stream, channel, frame]`.
    ///
    /// # Errors
    /// One line: there is no room for it, here or there.
    pub fn send(&mut self, values: &[f32], streams: usize) -> Result<Tensor, String> {
        let told = |error: tch::TchError| error.to_string();
        let memory = self.part(values.len())?;
        // SAFETY: the memory is ours, lies on the side of the CPU without gaps, and has been found long enough; no slice of Rust's
        // lies there. The device does not read it any more, since whatever was sent before has come back as a step's result; after
        // a step that failed it may, and then nobody hears what it makes of that.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), memory.data_ptr().cast(), values.len()) };
        // A copy also on the CPU: a program may keep what it is given.
        let sent = memory.f_internal_to_copy((self.kind, self.device), true).map_err(told)?;
        let frames = sent.f_view([streams as i64, -1, self.channels as i64]).map_err(told)?;
        frames.transpose(1, 2).f_contiguous().map_err(told)
    }

    /// Waits for a tensor `[stream, channel, frame]` and fills `[stream][frame][channel]` with it.
    ///
    /// # Errors
    /// One line: there are more or fewer values than are due, or the device broke down.
    pub fn receive(&mut self, tensor: &Tensor, values: &mut [f32]) -> Result<(), String> {
        let told = |error: tch::TchError| error.to_string();
        if tensor.numel() != values.len() {
            return Err(format!("{} values where {} are due", tensor.numel(), values.len()));
        }
        let mut memory = self.part(values.len())?;
        memory.f_copy_(&tensor.transpose(1, 2).f_reshape([-1]).map_err(told)?).map_err(told)?;
        memory.f_copy_data(values, values.len()).map_err(told)
    }

    /// The first so many values.
    fn part(&self, values: usize) -> Result<Tensor, String> {
        let room = self.memory.numel();
        if values > room {
            return Err(format!("{values} values where there is room for {room}"));
        }
        self.memory.f_narrow(0, 0, values as i64).map_err(|error| error.to_string())
    }
}
