//! Answers the requests of one connection.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use ondes_engine::realtime::priority;
use ondes_engine::torch::process::protocol::{self, Layout, Prepared, Reply, Request};
use ondes_engine::torch::{Library, LibraryExecutor, PrepareRequest, PreparedMethod, step_values};
use ondes_kernels::FlushToZero;

/// A prepared method and its samples.
struct Method {
    executor: LibraryExecutor,
    request: PrepareRequest,
    layout: Layout,
    memory: File,
    /// `[port]`: buffers for the largest step.
    inputs: Vec<Vec<f32>>,
    outputs: Vec<Vec<f32>>,
}

/// Serves until the engine closes the connection, or breaks the protocol.
pub fn serve(socket: &UnixStream, library: &Arc<Library>, program: &[u8]) {
    // As on the engine's threads.
    let _flush = FlushToZero::on();
    // An error means that the engine has gone away.
    let _ = answer_all(socket, library, program);
}

fn answer_all(socket: &UnixStream, library: &Arc<Library>, program: &[u8]) -> io::Result<()> {
    let mut method: Option<Method> = None;
    let mut real_time = false;
    loop {
        match protocol::receive(socket, None)? {
            Request::Describe => {
                let description = library.describe(program).map_err(|error| error.to_string());
                protocol::send::<Reply<_>>(socket, &description)?;
            }
            Request::Prepare(request) => {
                let memory = File::from(protocol::receive_file(socket)?);
                let prepared = Method::new(library, *request, memory, program);
                let reply = prepared
                    .as_ref()
                    .map(Method::prepared)
                    .map_err(String::clone);
                method = prepared.ok();
                protocol::send::<Reply<_>>(socket, &reply)?;
            }
            Request::Seed { stream, seed } => {
                let reply = of(&mut method).map(|method| method.executor.seed(stream, seed));
                protocol::send::<Reply<_>>(socket, &reply)?;
            }
            Request::Run {
                streams,
                blocks,
                real_time: wanted,
            } => {
                if std::mem::replace(&mut real_time, wanted) != wanted {
                    priority::follow(wanted);
                }
                let reply = of(&mut method).and_then(|method| method.run(&streams, blocks));
                protocol::send::<Reply<_>>(socket, &reply)?;
            }
        }
    }
}

fn of(method: &mut Option<Method>) -> Result<&mut Method, String> {
    method
        .as_mut()
        .ok_or_else(|| "no method is prepared".into())
}

impl Method {
    fn new(
        library: &Arc<Library>,
        request: PrepareRequest,
        memory: File,
        program: &[u8],
    ) -> Result<Self, String> {
        let executor = library
            .prepare(&request, program)
            .map_err(|error| error.to_string())?;
        let layout = Layout::new(&request);
        let buffers = |ranges: &[std::ops::Range<usize>]| {
            ranges.iter().map(|range| vec![0.0; range.len()]).collect()
        };
        let (inputs, outputs) = (buffers(&layout.inputs), buffers(&layout.outputs));
        Ok(Self {
            executor,
            request,
            layout,
            memory,
            inputs,
            outputs,
        })
    }

    fn prepared(&self) -> Prepared {
        Prepared {
            device: self.executor.device(),
            bytes: self.executor.bytes(),
        }
    }

    fn run(&mut self, streams: &[usize], blocks: usize) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        let method = &self.request.method;
        let count = |port| step_values(port, method.block, streams.len(), blocks);
        let inputs = self.inputs.iter_mut().zip(&method.inputs);
        let inputs: Vec<&mut [f32]> = inputs
            .map(|(buffer, port)| &mut buffer[..count(port)])
            .collect();
        let outputs = self.outputs.iter_mut().zip(&method.outputs);
        let mut outputs: Vec<&mut [f32]> = outputs
            .map(|(buffer, port)| &mut buffer[..count(port)])
            .collect();
        let mut filled: Vec<&[f32]> = Vec::with_capacity(inputs.len());
        for (range, values) in self.layout.inputs.iter().zip(inputs) {
            protocol::read_values(&self.memory, range.start, values).map_err(text)?;
            filled.push(values);
        }
        self.executor
            .run(streams, blocks, &filled, &mut outputs)
            .map_err(|error| error.to_string())?;
        let mut ports = self.layout.outputs.iter().zip(&outputs);
        ports
            .try_for_each(|(range, values)| {
                protocol::write_values(&self.memory, range.start, values)
            })
            .map_err(text)
    }
}
