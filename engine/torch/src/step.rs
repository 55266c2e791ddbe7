//! What the library steps, and how samples become tensors.

use tch::{Device, Kind, Tensor};

/// A method at work for several streams.
pub trait Step: Send {
    /// Steps `blocks` blocks of those streams; one slice for each port, `[stream][frame][channel]`.
    ///
    /// # Errors
    /// One line: it breaks down.
    fn run(
        &mut self,
        streams: &[usize],
        blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), String>;

    /// Forgets all that a stream has heard and gives its noise another seed.
    fn seed(&mut self, stream: usize, seed: u64);

    /// Bytes of weights and states.
    fn bytes(&self) -> usize;

    /// Where it computes and, where it is not in f32, in what.
    fn device(&self) -> String;
}

/// `[stream][frame][channel]` as a tensor `[stream, channel, frame]`.
pub fn from_frames(values: &[f32], streams: usize, channels: usize) -> Tensor {
    Tensor::from_slice(values).view([streams as i64, -1, channels as i64]).transpose(1, 2).contiguous()
}

/// A tensor `[stream, channel, frame]` as `[stream][frame][channel]`.
///
/// # Errors
/// One line: there are more or fewer values than are due.
pub fn to_frames(tensor: &Tensor, values: &mut [f32]) -> Result<(), String> {
    let flat = tensor.transpose(1, 2).to_device(Device::Cpu).to_kind(Kind::Float).contiguous();
    if flat.numel() != values.len() {
        return Err(format!("{} values where {} are due", flat.numel(), values.len()));
    }
    flat.f_copy_data(values, values.len()).map_err(|error| error.to_string())
}
