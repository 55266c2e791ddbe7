//! MIDI program changes: the bank they are in, and what they choose.

use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::preset::location::PresetLocation;

/// Number of banks.
pub const BANKS: u16 = 1 << 14;
/// Number of programs of a bank.
pub const PROGRAMS: u8 = 128;
/// Controllers that choose the bank: its upper and its lower seven bits.
const UPPER: u8 = 0;
const LOWER: u8 = 32;

/// Number of a program change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProgramNumber {
    /// Bank, 0 to 16,383: controller 0 times 128, and controller 32.
    #[serde(default, skip_serializing_if = "is_first")]
    pub bank: u16,
    /// Program, 0 to 127.
    pub program: u8,
}

impl ProgramNumber {
    /// Returns the next one, in the next bank after the last of a bank; after all comes the first.
    #[must_use]
    pub fn next(self) -> Self {
        match self.program + 1 {
            program if program < PROGRAMS => Self { program, ..self },
            _ => Self {
                bank: (self.bank + 1) % BANKS,
                program: 0,
            },
        }
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_first(bank: &u16) -> bool {
    *bank == 0
}

/// A program change and what it chooses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramChange {
    /// Its number.
    #[serde(flatten)]
    pub number: ProgramNumber,
    /// Scene or preset that it chooses.
    #[serde(flatten)]
    pub choice: ProgramChoice,
}

/// Choice of a program change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramChoice {
    /// A scene, from 1.
    Scene(usize),
    /// A preset.
    Preset(PresetLocation),
}

/// Banks of the MIDI channels, as they were chosen last. Wait-free.
#[derive(Debug, Default)]
pub struct MidiBanks([AtomicU16; 16]);

impl MidiBanks {
    /// Follows a MIDI message; returns its channel and its number if it is a program change.
    pub fn follow(&self, message: &[u8]) -> Option<(u8, ProgramNumber)> {
        let (&status, data) = message.split_first()?;
        let channel = status & 0x0F;
        let bank = &self.0[usize::from(channel)];
        match (status & 0xF0, data) {
            (0xB0, &[UPPER, value, ..]) => {
                bank.store(
                    bank.load(Relaxed) & 0x7F | u16::from(value & 0x7F) << 7,
                    Relaxed,
                );
            }
            (0xB0, &[LOWER, value, ..]) => {
                bank.store(
                    bank.load(Relaxed) & !0x7F | u16::from(value & 0x7F),
                    Relaxed,
                );
            }
            (0xC0, &[program, ..]) if program < PROGRAMS => {
                let bank = bank.load(Relaxed);
                return Some((channel, ProgramNumber { bank, program }));
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banks_belong_to_channels() {
        let banks = MidiBanks::default();
        for message in [
            &[0xB2, 0, 1][..],
            &[0xB2, 32, 5],
            &[0xB3, 32, 7],
            &[0xB2, 7, 100],
            &[0xC2],
            &[],
            &[0xC2, 200],
        ] {
            assert_eq!(banks.follow(message), None);
        }
        let number = |bank, program| ProgramNumber { bank, program };
        assert_eq!(banks.follow(&[0xC2, 9]), Some((2, number(133, 9))));
        assert_eq!(banks.follow(&[0xC3, 0, 0]), Some((3, number(7, 0))));
        assert_eq!(banks.follow(&[0xC4, 127]), Some((4, number(0, 127))));
        assert_eq!(number(0, 127).next(), number(1, 0));
        assert_eq!(number(BANKS - 1, 127).next(), number(0, 0));
    }

    #[test]
    fn programs_are_written_as_people_write_them() {
        let text = r#"[{"program":5,"preset":{"factory":"loop-station"}},{"bank":2,"program":0,"scene":3}]"#;
        let read: Vec<ProgramChange> = serde_json::from_str(text).unwrap();
        assert_eq!(read[1].choice, ProgramChoice::Scene(3));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
