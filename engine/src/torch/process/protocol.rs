//! Messages between the engine and the program `ondes-program-host`.
//!
//! The host's standard input is a socket. The engine sends [`Start`] and the program's bytes as a
//! file; the host answers with [`Started`]. From then on the engine sends one socket for each
//! connection. On a connection, every [`Request`] gets one [`Reply`]. [`Request::Prepare`] is
//! followed by a file of shared memory for the samples of all steps, as [`Layout`] says. The host
//! ends when the engine closes its socket.
//!
//! Messages are JSON after their length in four bytes. Neither side trusts lengths or offsets of
//! the other.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, send as send_bytes, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::model::Port;
use crate::torch::prepare_request::{PrepareRequest, step_values};

/// Time limit for starting the host, which reads libtorch from disk.
pub const STARTING: Duration = Duration::from_secs(60);
/// Time limit for describing a program or preparing a method on the CPU.
pub const LOADING: Duration = Duration::from_secs(30);
/// The same on a GPU, which tries its algorithms.
pub const LOADING_ON_GPU: Duration = Duration::from_secs(180);
/// Longest message in bytes.
const MAX_MESSAGE: usize = 1 << 26;

/// First message to the host.
#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    /// Version of the interface; another one is refused.
    pub version: u32,
    /// File of the library.
    pub library: PathBuf,
    /// True if the program may use a GPU.
    pub uses_gpu: bool,
}

/// The host's answer, after it has opened the library and given up its rights.
#[derive(Debug, Serialize, Deserialize)]
pub struct Started {
    /// Protection that this system lacks, one line each, for the user.
    pub missing_protection: Vec<String>,
}

/// Request on a connection.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Describes the program; the reply is a [`crate::torch::description::ProgramDescription`].
    Describe,
    /// Prepares a method; the reply is [`Prepared`].
    Prepare(Box<PrepareRequest>),
    /// Resets a stream's state and sets the seed of its noise.
    Seed {
        /// Index of the stream.
        stream: usize,
        /// Seed of its noise.
        seed: u64,
    },
    /// Computes a step from and to the shared memory.
    Run {
        /// Streams, in this order.
        streams: Vec<usize>,
        /// Blocks of each.
        blocks: usize,
        /// True if the engine's thread has real-time priority, which the host's then asks for, too.
        real_time: bool,
    },
}

/// Answer to [`Request::Prepare`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Prepared {
    /// Device and, unless it is f32, precision.
    pub device: String,
    /// Bytes of weights and states.
    pub bytes: usize,
}

/// Answer to a request; the reason of a failure in one line.
pub type Reply<T> = Result<T, String>;

/// Offsets of the ports in the shared memory, in values of 4 bytes; each has room for the longest
/// step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// `[port]`
    pub inputs: Vec<Range<usize>>,
    /// `[port]`
    pub outputs: Vec<Range<usize>>,
}

impl Layout {
    /// Returns the layout for a request.
    #[must_use]
    pub fn new(request: &PrepareRequest) -> Self {
        let mut end = 0_usize;
        let mut range = |port: &Port| {
            let values = step_values(port, request.method.block, request.streams, request.blocks);
            let start = end;
            end = end.saturating_add(values);
            start..end
        };
        let inputs = request.method.inputs.iter().map(&mut range).collect();
        Self {
            inputs,
            outputs: request.method.outputs.iter().map(&mut range).collect(),
        }
    }

    /// Returns the number of values of all ports.
    #[must_use]
    pub fn values(&self) -> usize {
        self.inputs
            .iter()
            .chain(&self.outputs)
            .map(|range| range.end)
            .max()
            .unwrap_or(0)
    }
}

/// Creates a file in memory of `bytes` bytes, whose length nobody can change.
///
/// # Errors
/// Returns the system's error, such as a lack of memory.
pub fn memory_file(name: &str, bytes: u64) -> io::Result<File> {
    let file = File::from(memfd_create(
        name,
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?);
    file.set_len(bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Writes values to shared memory.
///
/// # Errors
/// Returns an error if they exceed the memory.
pub fn write_values(memory: &File, offset: usize, values: &[f32]) -> io::Result<()> {
    memory.write_all_at(bytemuck::cast_slice(values), byte_offset(offset)?)
}

/// Reads values from shared memory.
///
/// # Errors
/// Returns an error if they exceed the memory.
pub fn read_values(memory: &File, offset: usize, values: &mut [f32]) -> io::Result<()> {
    memory.read_exact_at(bytemuck::cast_slice_mut(values), byte_offset(offset)?)
}

fn byte_offset(offset: usize) -> io::Result<u64> {
    offset
        .checked_mul(size_of::<f32>())
        .map(|bytes| bytes as u64)
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Sends a message.
///
/// # Errors
/// Returns an error if the other side is gone.
pub fn send<T: Serialize>(socket: &UnixStream, message: &T) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    let frame = [&length.to_le_bytes()[..], &text].concat();
    let mut rest = &frame[..];
    while !rest.is_empty() {
        // Not `write`: a host that does not ignore SIGPIPE would die of it.
        match send_bytes(socket, rest, SendFlags::NOSIGNAL) {
            Ok(sent) => rest = &rest[sent..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Receives a message, within a time limit if there is one.
///
/// # Errors
/// Returns [`io::ErrorKind::TimedOut`], an error if the other side is gone, or
/// [`io::ErrorKind::InvalidData`].
pub fn receive<T: DeserializeOwned>(socket: &UnixStream, limit: Option<Duration>) -> io::Result<T> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut length = [0; 4];
    read_until(socket, &mut length, deadline)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_MESSAGE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    read_until(socket, &mut text, deadline)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Fills `bytes` before the deadline.
fn read_until(
    mut socket: &UnixStream,
    bytes: &mut [u8],
    deadline: Option<Instant>,
) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        if let Some(deadline) = deadline {
            // At least one look: after a stop, the answer may be there although the time is over.
            let left = deadline
                .saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1));
            socket.set_read_timeout(Some(left))?;
        }
        match socket.read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends a file or socket.
///
/// # Errors
/// Returns an error if the other side is gone.
pub fn send_file(socket: &UnixStream, file: impl AsFd) -> io::Result<()> {
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(
        socket,
        &[IoSlice::new(&[0])],
        &mut message,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives a file or socket.
///
/// # Errors
/// Returns [`io::ErrorKind::UnexpectedEof`] if the other side is gone, or
/// [`io::ErrorKind::InvalidData`].
pub fn receive_file(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut messages = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut messages,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let files = messages.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    files
        .flatten()
        .next()
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn files_and_messages_arrive_in_order() {
        let (here, there) = UnixStream::pair().unwrap();
        let memory = memory_file("test", 12).unwrap();
        assert!(
            memory.set_len(8).is_err() && memory.set_len(16).is_err(),
            "its length is sealed"
        );
        send(
            &here,
            &Request::Seed {
                stream: 3,
                seed: u64::MAX,
            },
        )
        .unwrap();
        send_file(&here, &memory).unwrap();
        send(&here, &Request::Describe).unwrap();
        assert!(matches!(
            receive(&there, None).unwrap(),
            Request::Seed {
                stream: 3,
                seed: u64::MAX
            }
        ));
        let received = File::from(receive_file(&there).unwrap());
        assert_ne!(received.as_raw_fd(), memory.as_raw_fd());
        assert!(matches!(receive(&there, None).unwrap(), Request::Describe));
        write_values(&received, 1, &[0.5, -1.0]).unwrap();
        let mut values = [9.0; 3];
        read_values(&memory, 0, &mut values).unwrap();
        assert_eq!(values, [0.0, 0.5, -1.0]);
        assert!(write_values(&memory, 2, &[1.0, 1.0]).is_err());
        assert!(read_values(&memory, usize::MAX, &mut values).is_err());
    }

    #[test]
    fn silence_ends_and_nonsense_are_errors() {
        let (here, there) = UnixStream::pair().unwrap();
        let kind = |limit_ms| {
            receive::<Request>(&there, Some(Duration::from_millis(limit_ms)))
                .unwrap_err()
                .kind()
        };
        assert_eq!(kind(10), io::ErrorKind::TimedOut);
        send(&here, &"nonsense").unwrap();
        assert_eq!(kind(1_000), io::ErrorKind::InvalidData);
        send_bytes(&here, &[0xff; 4], SendFlags::empty()).unwrap();
        assert_eq!(kind(1_000), io::ErrorKind::InvalidData);
        send_bytes(&here, &[1, 0], SendFlags::empty()).unwrap();
        drop(here);
        assert_eq!(kind(1_000), io::ErrorKind::UnexpectedEof);
        assert_eq!(
            receive_file(&there).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert!(send(&there, &Request::Describe).is_err(), "and no signal");
    }
}
