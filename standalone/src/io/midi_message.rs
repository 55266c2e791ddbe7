//! A MIDI message with its time of arrival.

use std::time::Instant;

/// MIDI message of up to three bytes. System-exclusive messages are not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MidiMessage {
    /// Time of arrival.
    pub at: Instant,
    bytes: [u8; 3],
    length: u8,
}

impl MidiMessage {
    /// Creates a message of a status byte and up to two data bytes; `None` for anything else.
    pub fn new(at: Instant, message: &[u8]) -> Option<Self> {
        let status = *message.first()?;
        if message.len() > 3 || status < 0x80 || status == 0xF0 || status == 0xF7 {
            return None;
        }
        let mut bytes = [0; 3];
        bytes[..message.len()].copy_from_slice(message);
        Some(Self { at, bytes, length: message.len() as u8 })
    }

    /// Returns status and data bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns the channel, 0 … 15; `None` for system messages.
    pub fn channel(&self) -> Option<u8> {
        (self.bytes[0] < 0xF0).then_some(self.bytes[0] & 0x0F)
    }
}
