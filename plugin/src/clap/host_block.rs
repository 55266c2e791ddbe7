//! A block as a host gives it: any number of channels and ports, null pointers, 64-bit samples, or
//! one buffer for several channels.

use std::cell::Cell;
use std::ptr::NonNull;
use std::slice;

use clap_sys::audio_buffer::clap_audio_buffer;
use clap_sys::process::clap_process;

use super::c_interface::FromHost;
use super::event::{HostInput, HostOutput};

/// A host's block.
pub(super) struct HostBlock<'a>(&'a clap_process);

impl FromHost for HostBlock<'_> {
    type Raw = *const clap_process;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { raw.as_ref() }.map(Self)
    }
}

impl<'a> HostBlock<'a> {
    /// Returns the host's structure.
    pub(super) fn as_raw(&self) -> &'a clap_process {
        self.0
    }

    /// Returns the input events.
    pub(super) fn input_events(&self) -> Option<HostInput<'a>> {
        // SAFETY: the list is null, or valid for this block.
        unsafe { HostInput::from_host(self.0.in_events) }
    }

    /// Returns the list for output events, if it takes any.
    pub(super) fn output_events(&self) -> Option<HostOutput<'a>> {
        // SAFETY: as above.
        unsafe { HostOutput::from_host(self.0.out_events) }.filter(|list| list.try_push.is_some())
    }

    /// Returns the input ports.
    pub(super) fn inputs(&self) -> impl Iterator<Item = HostPort<'a>> {
        self.ports(self.0.audio_inputs, self.0.audio_inputs_count)
    }

    /// Returns the output ports.
    pub(super) fn outputs(&self) -> impl Iterator<Item = HostPort<'a>> {
        self.ports(self.0.audio_outputs, self.0.audio_outputs_count)
    }

    fn ports(
        &self,
        ports: *const clap_audio_buffer,
        count: u32,
    ) -> impl Iterator<Item = HostPort<'a>> {
        let frames = self.0.frames_count as usize;
        let ports = if ports.is_null() {
            &[]
        } else {
            // SAFETY: not null, so that it is valid for that many ports.
            unsafe { slice::from_raw_parts(ports, count as usize) }
        };
        ports.iter().map(move |buffer| HostPort { buffer, frames })
    }
}

/// An audio port of a host's block.
pub(super) struct HostPort<'a> {
    buffer: &'a clap_audio_buffer,
    frames: usize,
}

/// Samples of one channel. Several channels may be the same memory.
#[derive(Clone, Copy)]
pub(super) enum Samples<'a> {
    F32(&'a [Cell<f32>]),
    F64(&'a [Cell<f64>]),
}

impl<'a> HostPort<'a> {
    /// Returns the number of channels.
    pub(super) fn channels(&self) -> usize {
        if self.buffer.data32.is_null() && self.buffer.data64.is_null() {
            0
        } else {
            self.buffer.channel_count as usize
        }
    }

    /// Returns a channel; `None` if the port has none of that index, or a null pointer.
    pub(super) fn channel(&self, index: usize) -> Option<Samples<'a>> {
        let clap_audio_buffer { data32, data64, .. } = *self.buffer;
        if index >= self.channels() {
            return None;
        }
        // SAFETY: one of the two is not null and has that many channels; each is null, or has the
        // block's samples, which nothing else changes during this block.
        unsafe {
            if data32.is_null() {
                let samples = NonNull::new(*data64.add(index))?.as_ptr().cast();
                Some(Samples::F64(slice::from_raw_parts(samples, self.frames)))
            } else {
                let samples = NonNull::new(*data32.add(index))?.as_ptr().cast();
                Some(Samples::F32(slice::from_raw_parts(samples, self.frames)))
            }
        }
    }
}

impl Samples<'_> {
    /// Returns the sample of that index.
    pub(super) fn get(self, index: usize) -> f32 {
        match self {
            Self::F32(samples) => samples[index].get(),
            Self::F64(samples) => samples[index].get() as f32,
        }
    }

    /// Writes samples from that index on.
    pub(super) fn write(self, start: usize, from: impl Iterator<Item = f32>) {
        match self {
            Self::F32(samples) => {
                { samples[start..].iter().zip(from) }.for_each(|(to, from)| to.set(from))
            }
            Self::F64(samples) => {
                { samples[start..].iter().zip(from) }.for_each(|(to, from)| to.set(from.into()))
            }
        }
    }
}
