//! A method that libtorch has prepared, in this process or in another one.

use std::sync::Arc;

use super::description::ProgramDescription;
use super::library::{Library, TorchError};
use super::prepare_request::PrepareRequest;

/// A prepared method. The values of a port are `[stream][frame][channel]`, as many as the request
/// says for this number of streams and blocks.
pub trait PreparedMethod: Send {
    /// Computes a step.
    ///
    /// # Errors
    /// Returns [`TorchError`], one line, if the program or its device fails; the inputs are
    /// unchanged.
    fn run(
        &mut self,
        streams: &[usize],
        blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), TorchError>;

    /// Resets a stream's state and sets the seed of its noise.
    fn seed(&mut self, stream: usize, seed: u64);

    /// Returns the bytes of weights, states and buffers.
    fn bytes(&self) -> usize;

    /// Returns the device and, unless it is f32, the precision.
    fn device(&self) -> String;
}

/// Runs a TorchScript program, called `name` in errors, and describes it; in a process of its own
/// where there is one.
///
/// # Errors
/// Returns [`TorchError`] if the program fails or follows no known convention, or its process is
/// lost.
pub(super) fn describe(
    library: &Library,
    name: &str,
    program: &[u8],
) -> Result<ProgramDescription, TorchError> {
    #[cfg(target_os = "linux")]
    if super::process::is_used() {
        return super::process::describe(library, name, program);
    }
    let _ = name;
    library.describe(program)
}

/// Prepares a method of a TorchScript program, called `name` in errors; in a process of its own
/// where there is one.
///
/// # Errors
/// Returns [`TorchError`] if the method cannot be prepared, or the process is lost.
pub(super) fn prepare(
    library: &Arc<Library>,
    name: &str,
    request: &PrepareRequest,
    program: &[u8],
) -> Result<Box<dyn PreparedMethod>, TorchError> {
    #[cfg(target_os = "linux")]
    if super::process::is_used() {
        return Ok(Box::new(super::process::prepare(
            library, name, request, program,
        )?));
    }
    let _ = name;
    Ok(Box::new(library.prepare(request, program)?))
}
