//! Channels of the audio ports: each may have one or two, and the side-chain none.

use std::sync::Mutex;

use clap_sys::id::clap_id;
use nice_plug::prelude::{AudioIOLayout, Plugin};
use ondes_engine::sync::lock;

/// Most channels of a port.
pub(super) const MAX_CHANNELS: usize = 2;

/// Channels of each port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortLayout {
    /// Main input; an instrument has none.
    pub(super) input: u32,
    /// Side-chain.
    pub(super) side_chain: u32,
    /// Main output.
    pub(super) output: u32,
}

impl PortLayout {
    fn new(layout: &AudioIOLayout) -> Self {
        Self {
            input: layout.main_input_channels.map_or(0, Into::into),
            side_chain: layout
                .aux_input_ports
                .first()
                .copied()
                .map_or(0, Into::into),
            output: layout.main_output_channels.map_or(0, Into::into),
        }
    }

    /// Returns the channels of a port; `None` if the index is too large.
    pub(super) fn channels(&mut self, is_input: bool, index: u32) -> Option<&mut u32> {
        match (is_input, index) {
            (true, 0) if self.input > 0 => Some(&mut self.input),
            (true, 0) if self.input == 0 => Some(&mut self.side_chain),
            (true, 1) if self.input > 0 => Some(&mut self.side_chain),
            (false, 0) => Some(&mut self.output),
            _ => None,
        }
    }

    /// Returns the number of inputs or outputs.
    pub(super) fn count(self, is_input: bool) -> u32 {
        if is_input {
            1 + u32::from(self.input > 0)
        } else {
            1
        }
    }

    /// Returns this with a port of that many channels; `None` if the port cannot have them.
    pub(super) fn with(mut self, is_input: bool, index: u32, channels: u32) -> Option<Self> {
        let is_side_chain = is_input && index == self.count(true) - 1;
        let port = self.channels(is_input, index)?;
        *port = channels;
        ((1..=MAX_CHANNELS as u32).contains(&channels) || channels == 0 && is_side_chain)
            .then_some(self)
    }
}

/// Layouts of one instance.
pub(super) struct AudioPorts {
    /// The framework's layouts; configurations refer to them by their index.
    pub(super) offered: Vec<PortLayout>,
    announced: Mutex<PortLayout>,
}

impl AudioPorts {
    /// Announces the first layout of a plugin.
    pub(super) fn new<P: Plugin>() -> Self {
        let offered: Vec<PortLayout> = P::AUDIO_IO_LAYOUTS.iter().map(PortLayout::new).collect();
        let announced = Mutex::new(offered[0]);
        Self { offered, announced }
    }

    /// Returns the layout that the host knows.
    pub(super) fn announced(&self) -> PortLayout {
        *lock(&self.announced)
    }

    /// Announces a layout.
    pub(super) fn announce(&self, layout: PortLayout) {
        *lock(&self.announced) = layout;
    }

    /// Returns index and ports of the framework's layout that plays the announced one: that with
    /// the same main input, or, for an instrument, with the same side-chain; then with the same
    /// output.
    pub(super) fn nearest(&self) -> (clap_id, PortLayout) {
        let PortLayout {
            input,
            side_chain,
            output,
        } = self.announced();
        let differs = |layout: &PortLayout| {
            let input = if input > 0 {
                layout.input != input
            } else {
                layout.side_chain != side_chain
            };
            (input, layout.output != output)
        };
        let mut indexed = (0..)
            .zip(&self.offered)
            .map(|(index, layout)| (index, *layout));
        let first = indexed.next().unwrap_or((0, self.announced()));
        // The first of several equally near ones.
        indexed.fold(first, |best, next| {
            if differs(&next.1) < differs(&best.1) {
                next
            } else {
                best
            }
        })
    }
}
