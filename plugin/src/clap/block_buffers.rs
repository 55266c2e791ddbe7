//! Buffers between the host's and the framework's, which requires what was announced.

use std::ptr::null_mut;

use clap_sys::audio_buffer::clap_audio_buffer;
use clap_sys::process::clap_process;

use super::host_block::{HostBlock, HostPort};
use super::port_layout::{MAX_CHANNELS, PortLayout};

/// Longest block that is processed in one piece, in samples; longer ones are split.
pub(super) const MAX_PIECE: u32 = 65_536;
/// Highest channel of a host's port that is written.
const MAX_HOST_CHANNELS: usize = 64;

/// Audio of one piece of a block, as the framework gets it. Allocates only on construction.
pub(super) struct BlockBuffers {
    /// Channels that are processed in place, `[channel][frame]`: the output, and before it the main
    /// input.
    main: Vec<Vec<f32>>,
    main_inputs: usize,
    /// `[channel][frame]`
    side_chain: Vec<Vec<f32>>,
    capacity: usize,
}

impl BlockBuffers {
    /// Creates buffers for pieces of up to `capacity` samples of a framework's layout.
    pub(super) fn new(layout: PortLayout, capacity: usize) -> Self {
        let channels = |count: u32| vec![vec![0.0; capacity]; count as usize];
        Self {
            main: channels(layout.output),
            main_inputs: layout.input as usize,
            side_chain: channels(layout.side_chain),
            capacity,
        }
    }

    /// Returns the longest piece, in samples.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Reads `frames` samples of a host's block, from sample `start` on. What is missing is silent;
    /// a port with one channel feeds all channels of ours, and one channel of ours gets the mean of
    /// two.
    pub(super) fn read(&mut self, block: &HostBlock<'_>, start: usize, frames: usize) {
        let mut ports = block.inputs();
        let (inputs, outputs) = self.main.split_at_mut(self.main_inputs);
        if !inputs.is_empty() {
            read(ports.next(), inputs, start, frames);
        }
        { outputs.iter_mut() }.for_each(|channel| channel[..frames].fill(0.0));
        read(ports.next(), &mut self.side_chain, start, frames);
    }

    /// Calls `process` with the host's block, with this piece in the place of its audio.
    pub(super) fn process_piece<R>(
        &mut self,
        block: &clap_process,
        frames: usize,
        process: impl FnOnce(clap_process) -> R,
    ) -> R {
        let [mut main, mut side_chain] = [[null_mut(); MAX_CHANNELS]; 2];
        let port = |pointers: &mut [*mut f32], channels: &mut [Vec<f32>], count| {
            for (pointer, channel) in pointers.iter_mut().zip(channels) {
                *pointer = channel.as_mut_ptr();
            }
            clap_audio_buffer {
                data32: pointers.as_mut_ptr(),
                data64: null_mut(),
                channel_count: count as u32,
                latency: 0,
                constant_mask: 0,
            }
        };
        let (outputs, side_chains) = (self.main.len(), self.side_chain.len());
        let mut output = port(&mut main, &mut self.main, outputs);
        let side_chain_input = port(&mut side_chain, &mut self.side_chain, side_chains);
        let main_input = clap_audio_buffer {
            channel_count: self.main_inputs as u32,
            ..output
        };
        let with_main = [main_input, side_chain_input];
        let inputs = if self.main_inputs > 0 {
            &with_main[..]
        } else {
            &with_main[1..]
        };
        process(clap_process {
            frames_count: frames as u32,
            audio_inputs: inputs.as_ptr(),
            audio_outputs: &raw mut output,
            audio_inputs_count: inputs.len() as u32,
            audio_outputs_count: 1,
            ..*block
        })
    }

    /// Writes the piece to a host's block, from sample `start` on. A port with one channel gets the
    /// mean of two; one channel of ours feeds two; channels and ports beyond are silent.
    pub(super) fn write(&self, block: &HostBlock<'_>, start: usize, frames: usize) {
        for (index, port) in block.outputs().enumerate() {
            let channels: &[Vec<f32>] = if index == 0 { &self.main } else { &[] };
            write(&port, channels, start, frames);
        }
    }
}

fn read(port: Option<HostPort<'_>>, to: &mut [Vec<f32>], start: usize, frames: usize) {
    let channels = port.as_ref().map_or(0, HostPort::channels);
    let channel = |index: usize| port.as_ref().and_then(|port| port.channel(index));
    let fold = to.len() == 1 && channels > 1;
    for (index, to) in to.iter_mut().enumerate() {
        let from = channel(if channels == 1 { 0 } else { index });
        let right = channel(1);
        for (frame, to) in (start..).zip(&mut to[..frames]) {
            *to = from.map_or(0.0, |from| from.get(frame));
            if fold {
                *to = mean(*to, right.map_or(0.0, |right| right.get(frame)));
            }
        }
    }
}

fn write(port: &HostPort<'_>, from: &[Vec<f32>], start: usize, frames: usize) {
    for index in 0..port.channels().min(MAX_HOST_CHANNELS) {
        let Some(channel) = port.channel(index) else {
            continue;
        };
        match from {
            [left, right] if port.channels() == 1 => {
                let both = left[..frames].iter().zip(right);
                channel.write(start, both.map(|(left, right)| mean(*left, *right)));
            }
            [single] if index < 2 => channel.write(start, single[..frames].iter().copied()),
            _ => match from.get(index) {
                Some(from) => channel.write(start, from[..frames].iter().copied()),
                None => channel.write(start, std::iter::repeat_n(0.0, frames)),
            },
        }
    }
}

/// Returns the mean, which of two equal samples is that sample, to the bit.
fn mean(one: f32, other: f32) -> f32 {
    0.5 * one + 0.5 * other
}
