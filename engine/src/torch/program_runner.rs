//! Runs TorchScript programs in processes of their own, where there are such.

use std::sync::Arc;

use super::description::ProgramDescription;
use super::error::TorchError;
use super::library::Library;
use super::prepare_request::PrepareRequest;
use super::prepared_method::PreparedMethod;

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
