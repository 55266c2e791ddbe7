//! Runs TorchScript programs in a process of their own, so that one that crashes, exits or never
//! returns takes nothing else with it.
//!
//! The program `ondes-program-host` opens the library just as this process would, gives up its
//! rights, and then runs one TorchScript program: a [`ProgramProcess`]. All methods of a file share
//! it. For each of them a [`ProcessExecutor`] sends requests over a socket ([`protocol`]) and
//! passes samples through shared memory. The thread that steps a program waits for the answer,
//! which has a time limit; it is never an audio thread.
//!
//! A process that is lost is not started again here: the step fails with [`TorchError::Lost`], and
//! a session in real time builds its model anew.

mod executor;
mod program_process;
pub mod protocol;

use std::sync::{Arc, Mutex};

use super::description::ProgramDescription;
use super::error::TorchError;
use super::library::Library;
use super::library_paths;
use super::prepare_request::PrepareRequest;
use crate::sync::lock;

pub use executor::ProcessExecutor;
pub use program_process::ProgramProcess;

/// Process of the program that was described last, until a method is prepared: starting one takes a
/// second.
static DESCRIBED: Mutex<Option<Arc<ProgramProcess>>> = Mutex::new(None);

/// Value of the environment variable for the host that runs programs in this process.
const NO_HOST: &str = "none";

/// Returns true if programs have a process of their own: always, unless the environment says
/// otherwise.
pub(super) fn is_used() -> bool {
    library_paths::variable(library_paths::PROGRAM_HOST).is_none_or(|program| program != NO_HOST)
}

/// Runs a program, called `name` in errors, in a process of its own, and describes it.
///
/// # Errors
/// Returns [`TorchError`] if the process cannot be started or is lost, or the program fails or
/// follows no known convention.
pub fn describe(
    library: &Library,
    name: &str,
    program: &[u8],
) -> Result<ProgramDescription, TorchError> {
    let hash = blake3::hash(program).to_hex();
    let process = ProgramProcess::shared(library, &hash, name, program, false)?;
    let mut description: ProgramDescription = process
        .connect()?
        .ask(&protocol::Request::Describe, protocol::LOADING)?;
    description
        .notes
        .extend(process.missing_protection().iter().cloned());
    *lock(&DESCRIBED) = Some(process);
    Ok(description)
}

/// Prepares a method of a program, called `name` in errors, in the program's process.
///
/// # Errors
/// Returns [`TorchError`] if the process cannot be started or is lost, or the method cannot be
/// prepared.
pub fn prepare(
    library: &Library,
    name: &str,
    request: &PrepareRequest,
    program: &[u8],
) -> Result<ProcessExecutor, TorchError> {
    let uses_gpu = request.device != crate::executor::Device::Cpu;
    let process = ProgramProcess::shared(library, &request.hash, name, program, uses_gpu)?;
    let executor = ProcessExecutor::new(process.connect()?, request);
    drop(lock(&DESCRIBED).take());
    executor
}
