//! MIDI from JACK as the thread sees it that connects ports.

use super::jack_midi::MidiClient;
use super::midi_link::{JackMidi, MidiLink};
use crate::io::MidiChoice;

/// MIDI from JACK as the thread sees it that connects ports.
#[derive(Default)]
pub(super) struct JackMidiInput {
    /// Client for MIDI only.
    separate: Option<MidiClient>,
}

impl JackMidiInput {
    /// Closes a client of its own if the server is gone: while a client of the old server exists,
    /// JACK's library does not find a new server.
    pub fn close_if_gone(&mut self) {
        self.separate.take_if(|midi| midi.is_gone());
    }

    /// Removes all connections, for another choice of ports.
    pub fn disconnect(&mut self, link: &MidiLink) {
        self.separate = None;
        if let JackMidi::Shared(midi) = &mut *link.jack() {
            midi.disconnect();
        }
    }

    /// Connects new ports and returns the names of all connected ones. With `mirrored` the system's
    /// MIDI is connected directly, and "all ports" excludes JACK's mirrors of hardware ports.
    pub fn update_connections(
        &mut self,
        choice: &MidiChoice,
        link: &MidiLink,
        mirrored: bool,
    ) -> Result<Vec<String>, String> {
        let mut jack = link.jack();
        if !matches!(*jack, JackMidi::Separate) {
            self.separate = None;
        }
        match &mut *jack {
            JackMidi::Opening => Ok(Vec::new()),
            JackMidi::Failed(reason) => Err(reason.clone()),
            JackMidi::Shared(midi) => Ok(midi.update_connections(choice, mirrored)),
            JackMidi::Separate => {
                // The audio devices may be switched meanwhile.
                drop(jack);
                let midi = match &mut self.separate {
                    Some(midi) => midi,
                    none => none.insert(MidiClient::open_separate(&link.queues)?),
                };
                Ok(midi.update_connections(choice, mirrored))
            }
        }
    }
}
