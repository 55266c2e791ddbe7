//! Choice of MIDI ports and channels.

use serde::{Deserialize, Serialize};

/// Requested MIDI ports and channels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MidiChoice {
    /// Ports.
    pub ports: MidiPorts,
    /// Channels, one bit each, channel 1 the lowest. Clock, start and stop have no channel and
    /// always pass.
    pub channels: u16,
}

/// Ports by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MidiPorts {
    /// All present and future ports, except loopback ports of the system.
    #[default]
    All,
    /// Ports whose name contains one of these, now or later; case does not matter.
    Names(Vec<String>),
}

impl Default for MidiChoice {
    fn default() -> Self {
        Self {
            ports: MidiPorts::All,
            channels: u16::MAX,
        }
    }
}

impl MidiPorts {
    pub(crate) fn includes(&self, name: &str) -> bool {
        match self {
            // The loopback port would repeat all messages.
            Self::All => !name.contains("Midi Through"),
            Self::Names(names) => names.iter().any(|wanted| has(name, wanted)),
        }
    }
}

pub(crate) fn has(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_survives_serialisation() {
        let choice = MidiChoice {
            ports: MidiPorts::Names(vec!["Keystep".into()]),
            channels: 3,
        };
        let text = serde_json::to_string(&choice).unwrap();
        assert_eq!(text, r#"{"ports":{"names":["Keystep"]},"channels":3}"#);
        assert_eq!(serde_json::from_str::<MidiChoice>(&text).unwrap(), choice);
        assert_eq!(
            serde_json::from_str::<MidiChoice>("{}").unwrap(),
            MidiChoice::default()
        );
        assert!(
            choice.ports.includes("Arturia KEYSTEP:port 1")
                && !choice.ports.includes("Midi Through")
        );
    }
}
