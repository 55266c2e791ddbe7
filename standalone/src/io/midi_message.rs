//! A MIDI message with its time of arrival.

use std::time::Instant;

/// Longest system-exclusive message that is understood, with its first and last byte: a reset.
const MAX_SYS_EX: usize = 12;

/// MIDI message of up to three bytes, or a short system-exclusive message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MidiMessage {
    /// Time of arrival.
    pub at: Instant,
    bytes: [u8; MAX_SYS_EX],
    length: u8,
}

impl MidiMessage {
    /// Creates a message of a status byte and up to two data bytes, or a whole system-exclusive
    /// message of up to 12 bytes; `None` for anything else.
    pub fn new(at: Instant, message: &[u8]) -> Option<Self> {
        let is_short = match *message.first()? {
            0xF0 => message.len() <= MAX_SYS_EX && message.last() == Some(&0xF7),
            0xF7 | ..0x80 => false,
            _ => message.len() <= 3,
        };
        if !is_short {
            return None;
        }
        let mut bytes = [0; MAX_SYS_EX];
        bytes[..message.len()].copy_from_slice(message);
        Some(Self {
            at,
            bytes,
            length: message.len() as u8,
        })
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
