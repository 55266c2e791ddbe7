//! A method that a process steps.

use std::fs::File;
use std::io;
use std::time::Duration;

use super::program_process::Connection;
use super::protocol::{self, Layout, Prepared, Request};
use crate::executor::Device;
use crate::realtime::priority;
use crate::torch::error::TorchError;
use crate::torch::library_paths;
use crate::torch::prepare_request::PrepareRequest;
use crate::torch::prepared_method::PreparedMethod;

/// Longest time for a step, as a multiple of the sound that it makes.
const SOUND_FACTOR: f64 = 4.0;
/// Least time limit of a step in seconds: short sounds leave no time for a system that is busy.
const LEAST_LIMIT_S: f64 = 2.0;
/// Further time of the first step in seconds.
const FIRST_STEP_S: f64 = 10.0;
/// Environment variable for [`LEAST_LIMIT_S`].
const LIMIT_VARIABLE: &str = "ONDES_PROGRAM_LIMIT_S";

/// A prepared method of a program in its process.
pub struct ProcessExecutor {
    connection: Connection,
    memory: File,
    layout: Layout,
    prepared: Prepared,
    /// Seconds of sound in a block of each stream.
    block_s: f64,
    least_limit_s: f64,
    /// False until the first step is done.
    has_run: bool,
}

impl ProcessExecutor {
    /// Prepares the method of a request.
    ///
    /// # Errors
    /// Returns [`TorchError`] if the process is lost or the method cannot be prepared.
    pub fn new(connection: Connection, request: &PrepareRequest) -> Result<Self, TorchError> {
        let layout = Layout::new(request);
        let bytes = layout.values().saturating_mul(size_of::<f32>()) as u64;
        let memory = protocol::memory_file("ondes-samples", bytes)
            .map_err(|error| TorchError::Program(error.to_string()))?;
        let limit = if request.device == Device::Cpu {
            protocol::LOADING
        } else {
            protocol::LOADING_ON_GPU
        };
        let prepared = connection.ask_with(
            &Request::Prepare(Box::new(request.clone())),
            Some(&memory),
            limit,
        )?;
        let limit_s = library_paths::variable(LIMIT_VARIABLE)
            .and_then(|text| text.to_str()?.parse::<f64>().ok());
        Ok(Self {
            connection,
            memory,
            layout,
            prepared,
            block_s: request.method.block as f64 / f64::from(request.sample_rate),
            least_limit_s: limit_s
                .filter(|limit| (0.01..=3_600.0).contains(limit))
                .unwrap_or(LEAST_LIMIT_S),
            has_run: false,
        })
    }

    /// Returns the time limit of the next step.
    fn limit(&self, blocks: usize) -> Duration {
        let sound_s = self.block_s * blocks as f64;
        let first_s = if self.has_run { 0.0 } else { FIRST_STEP_S };
        Duration::from_secs_f64((SOUND_FACTOR * sound_s).max(self.least_limit_s) + first_s)
    }
}

impl PreparedMethod for ProcessExecutor {
    fn run(
        &mut self,
        streams: &[usize],
        blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), TorchError> {
        let connection = &self.connection;
        let lost = |error: io::Error| connection.lose(&error, Duration::ZERO);
        for (range, values) in self.layout.inputs.iter().zip(inputs) {
            protocol::write_values(&self.memory, range.start, values).map_err(lost)?;
        }
        let request = Request::Run {
            streams: streams.to_vec(),
            blocks,
            real_time: priority::is_real_time(),
        };
        connection.ask::<()>(&request, self.limit(blocks))?;
        self.has_run = true;
        for (range, values) in self.layout.outputs.iter().zip(outputs) {
            protocol::read_values(&self.memory, range.start, values).map_err(lost)?;
        }
        Ok(())
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        // An error here comes again in the next step, which reports it.
        let _ = self
            .connection
            .ask::<()>(&Request::Seed { stream, seed }, self.limit(1));
    }

    fn bytes(&self) -> usize {
        self.prepared.bytes + self.layout.values() * size_of::<f32>()
    }

    fn device(&self) -> String {
        self.prepared.device.clone()
    }
}
