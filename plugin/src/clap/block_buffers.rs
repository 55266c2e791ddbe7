//! Buffers between the host's and the framework's: a host may give any number of channels, leave
//! out ports, and pass null pointers, 64-bit samples, or one buffer for several channels. The
//! framework requires what was announced.

use std::ptr::null_mut;

use clap_sys::audio_buffer::clap_audio_buffer;
use clap_sys::process::clap_process;

use super::audio_ports::PortLayout;

/// Longest block that is processed in one piece, in samples; longer ones are split.
pub const MAX_PIECE: u32 = 65_536;
/// Highest channel of a host's port that is written.
const MAX_CHANNELS: usize = 64;

/// One piece of a block, as the framework gets it. Allocates only on construction.
pub struct BlockBuffers {
    /// Channels that are processed in place, `[channel][frame]`: the output, and before it the main
    /// input.
    main: Vec<Vec<f32>>,
    main_inputs: usize,
    /// `[channel][frame]`
    side_chain: Vec<Vec<f32>>,
    /// Pointers to `main` and `side_chain`, which `inputs` and `outputs` point to.
    main_pointers: Vec<*mut f32>,
    side_chain_pointers: Vec<*mut f32>,
    inputs: Vec<clap_audio_buffer>,
    outputs: Vec<clap_audio_buffer>,
    capacity: usize,
}

// SAFETY: the pointers lead to buffers that this owns, and whose addresses stay the same.
unsafe impl Send for BlockBuffers {}

impl BlockBuffers {
    /// Creates buffers for pieces of up to `capacity` samples of a framework's layout.
    #[must_use]
    pub fn new(layout: PortLayout, capacity: usize) -> Self {
        let channels = |count: u32| vec![vec![0.0; capacity]; count as usize];
        let (mut main, mut side_chain) = (channels(layout.output), channels(layout.side_chain));
        let pointers = |channels: &mut Vec<Vec<f32>>| {
            channels.iter_mut().map(Vec::as_mut_ptr).collect::<Vec<_>>()
        };
        let (mut main_pointers, mut side_chain_pointers) =
            (pointers(&mut main), pointers(&mut side_chain));
        let port = |pointers: &mut Vec<*mut f32>, channel_count| clap_audio_buffer {
            data32: pointers.as_mut_ptr(),
            data64: null_mut(),
            channel_count,
            latency: 0,
            constant_mask: 0,
        };
        let main_input = (layout.input > 0).then(|| port(&mut main_pointers, layout.input));
        let inputs = main_input
            .into_iter()
            .chain([port(&mut side_chain_pointers, layout.side_chain)])
            .collect();
        let outputs = vec![port(&mut main_pointers, layout.output)];
        let main_inputs = layout.input as usize;
        Self {
            main,
            main_inputs,
            side_chain,
            main_pointers,
            side_chain_pointers,
            inputs,
            outputs,
            capacity,
        }
    }

    /// Returns the longest piece, in samples.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Reads `frames` samples of a host's block, from sample `start` on. What is missing is silent;
    /// a port with one channel feeds all channels of ours, and one channel of ours gets the mean of
    /// two.
    ///
    /// # Safety
    /// The host's pointers are null or valid for the block.
    pub unsafe fn read(&mut self, block: &clap_process, start: usize, frames: usize) {
        let count = if block.audio_inputs.is_null() {
            0
        } else {
            block.audio_inputs_count as usize
        };
        let port = |index: usize| {
            if index < count {
                // SAFETY: guaranteed by the caller; the index is below the number of ports.
                unsafe { HostPort::new(&*block.audio_inputs.add(index)) }
            } else {
                HostPort::default()
            }
        };
        let has_main = self.main_inputs > 0;
        if has_main {
            // SAFETY: guaranteed by the caller.
            unsafe { port(0).read(&mut self.main[..self.main_inputs], start, frames) };
        }
        self.main[self.main_inputs..]
            .iter_mut()
            .for_each(|channel| channel[..frames].fill(0.0));
        // SAFETY: guaranteed by the caller.
        unsafe { port(usize::from(has_main)).read(&mut self.side_chain, start, frames) };
    }

    /// Returns the host's block with this piece in the place of its audio.
    #[must_use]
    pub fn piece(&mut self, block: &clap_process, frames: usize) -> clap_process {
        debug_assert!(self.main_pointers.len() == self.main.len());
        debug_assert!(self.side_chain_pointers.len() == self.side_chain.len());
        clap_process {
            frames_count: frames as u32,
            audio_inputs: self.inputs.as_ptr(),
            audio_outputs: self.outputs.as_mut_ptr(),
            audio_inputs_count: self.inputs.len() as u32,
            audio_outputs_count: self.outputs.len() as u32,
            ..*block
        }
    }

    /// Writes the piece to a host's block, from sample `start` on. A port with one channel gets the
    /// mean of two; one channel of ours feeds two; channels and ports beyond are silent.
    ///
    /// # Safety
    /// As for [`read`](Self::read).
    pub unsafe fn write(&self, block: &clap_process, start: usize, frames: usize) {
        let count = if block.audio_outputs.is_null() {
            0
        } else {
            block.audio_outputs_count as usize
        };
        for index in 0..count {
            // SAFETY: guaranteed by the caller; the index is below the number of ports.
            let port = unsafe { HostPort::new(&*block.audio_outputs.add(index)) };
            let channels: &[Vec<f32>] = if index == 0 { &self.main } else { &[] };
            // SAFETY: guaranteed by the caller.
            unsafe { port.write(channels, start, frames) };
        }
    }
}

/// A port as the host gives it.
#[derive(Clone, Copy, Default)]
struct HostPort {
    samples: Samples,
    channels: usize,
}

/// Channel pointers of a host's port; not null.
#[derive(Clone, Copy, Default)]
enum Samples {
    #[default]
    None,
    F32(*const *mut f32),
    F64(*const *mut f64),
}

/// One channel of a host's port; not null.
#[derive(Clone, Copy)]
enum Channel {
    F32(*mut f32),
    F64(*mut f64),
}

impl HostPort {
    fn new(buffer: &clap_audio_buffer) -> Self {
        let samples = match (buffer.data32.is_null(), buffer.data64.is_null()) {
            (false, _) => Samples::F32(buffer.data32),
            (true, false) => Samples::F64(buffer.data64),
            (true, true) => Samples::None,
        };
        Self {
            samples,
            channels: if matches!(samples, Samples::None) {
                0
            } else {
                buffer.channel_count as usize
            },
        }
    }

    /// Returns a channel; `None` if the port has none of that index, or a null pointer.
    ///
    /// # Safety
    /// The port has as many pointers as channels.
    unsafe fn channel(&self, index: usize) -> Option<Channel> {
        if index >= self.channels {
            return None;
        }
        // SAFETY: guaranteed by the caller.
        let channel = unsafe {
            match self.samples {
                Samples::None => return None,
                Samples::F32(channels) => Channel::F32(*channels.add(index)),
                Samples::F64(channels) => Channel::F64(*channels.add(index)),
            }
        };
        let is_null = match channel {
            Channel::F32(samples) => samples.is_null(),
            Channel::F64(samples) => samples.is_null(),
        };
        (!is_null).then_some(channel)
    }

    /// # Safety
    /// The port's pointers are null or valid for `start + frames` samples, here and below.
    unsafe fn read(&self, to: &mut [Vec<f32>], start: usize, frames: usize) {
        let single = self.channels == 1;
        let fold = to.len() == 1 && self.channels > 1;
        for (index, to) in to.iter_mut().enumerate() {
            let to = &mut to[..frames];
            // SAFETY: guaranteed by the caller.
            match unsafe { self.channel(if single { 0 } else { index }) } {
                // SAFETY: guaranteed by the caller.
                Some(channel) => unsafe { channel.read(to, start) },
                None => to.fill(0.0),
            }
            if fold {
                // SAFETY: guaranteed by the caller.
                let right = unsafe { self.channel(1) };
                for (frame, sample) in to.iter_mut().enumerate() {
                    // SAFETY: guaranteed by the caller.
                    *sample = mean(
                        *sample,
                        right.map_or(0.0, |right| unsafe { right.sample(start + frame) }),
                    );
                }
            }
        }
    }

    /// # Safety
    /// As above; nothing else accesses the samples.
    unsafe fn write(&self, from: &[Vec<f32>], start: usize, frames: usize) {
        for index in 0..self.channels.min(MAX_CHANNELS) {
            // SAFETY: guaranteed by the caller.
            let Some(channel) = (unsafe { self.channel(index) }) else {
                continue;
            };
            // SAFETY: guaranteed by the caller.
            unsafe {
                match from {
                    [left, right] if self.channels == 1 => {
                        channel.write(
                            left[..frames]
                                .iter()
                                .zip(right)
                                .map(|(left, right)| mean(*left, *right)),
                            start,
                        );
                    }
                    [single] if index < 2 => channel.write(single[..frames].iter().copied(), start),
                    _ => match from.get(index) {
                        Some(from) => channel.write(from[..frames].iter().copied(), start),
                        None => channel.write(std::iter::repeat_n(0.0, frames), start),
                    },
                }
            }
        }
    }
}

/// Returns the mean, which of two equal samples is that sample, to the bit.
fn mean(one: f32, other: f32) -> f32 {
    0.5 * one + 0.5 * other
}

impl Channel {
    /// # Safety
    /// The channel has more samples than `index`.
    unsafe fn sample(self, index: usize) -> f32 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self {
                Self::F32(samples) => *samples.add(index),
                Self::F64(samples) => *samples.add(index) as f32,
            }
        }
    }

    /// # Safety
    /// The channel has `start` samples before those that are read.
    unsafe fn read(self, to: &mut [f32], start: usize) {
        for (index, to) in to.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            *to = unsafe { self.sample(start + index) };
        }
    }

    /// # Safety
    /// The channel has room for the samples from `start` on, and nothing else accesses it.
    unsafe fn write(self, from: impl Iterator<Item = f32>, start: usize) {
        for (index, sample) in from.enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe {
                match self {
                    Self::F32(samples) => *samples.add(start + index) = sample,
                    Self::F64(samples) => *samples.add(start + index) = sample.into(),
                }
            }
        }
    }
}
