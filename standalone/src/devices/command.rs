//! `ondes devices`: lists audio devices and MIDI ports.

use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use super::catalogue;
use super::device_info::{AudioDevice, AudioHost, DirectionInfo};
use super::midi::{self, MidiPort};
use crate::terminal::{self, sanitize};

const EXAMPLES: &str = "\
Examples:
  ondes devices
  ondes devices --json | jq -r '.midi.ports[].name'";

/// Lists sound systems with their devices, and MIDI ports
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct DevicesArguments {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct DeviceListing {
    audio: Vec<HostListing>,
    midi: MidiListing,
}

#[derive(Serialize)]
struct HostListing {
    #[serde(flatten)]
    host: AudioHost,
    devices: Vec<AudioDevice>,
    /// Reason why no devices are listed.
    #[serde(rename = "trouble")]
    error: Option<String>,
}

#[derive(Serialize)]
struct MidiListing {
    ports: Vec<MidiPort>,
    #[serde(rename = "troubles")]
    errors: Vec<String>,
}

/// Prints all devices and ports. An empty list is not an error.
///
/// # Errors
/// Returns an error if standard output cannot be written.
pub fn run(arguments: &DevicesArguments) -> anyhow::Result<()> {
    let listing = DeviceListing::take();
    if arguments.json {
        terminal::print(&serde_json::to_string_pretty(&listing)?)
    } else {
        terminal::print(listing.text().trim_end())
    }
}

impl DeviceListing {
    fn take() -> Self {
        let describe = |host: AudioHost| match catalogue::devices(Some(&host.name)) {
            Ok(devices) => HostListing {
                host,
                devices,
                error: None,
            },
            Err(error) => HostListing {
                host,
                devices: Vec::new(),
                error: Some(error),
            },
        };
        let audio = catalogue::hosts().into_iter().map(describe).collect();
        let (ports, errors) = midi::ports();
        Self {
            audio,
            midi: MidiListing { ports, errors },
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let mut line = |line: String| {
            let _ = writeln!(text, "{}", sanitize(&line));
        };
        for HostListing {
            host,
            devices,
            error,
        } in &self.audio
        {
            line(format!(
                "{}{}",
                host.name,
                if host.default { " (default)" } else { "" }
            ));
            match (devices.is_empty(), error) {
                (_, Some(error)) => line(format!("  {error}")),
                (true, None) => line("  no devices".into()),
                (false, None) => {}
            }
            for device in devices {
                let name = if device.name == device.id {
                    String::new()
                } else {
                    format!("  {}", device.name)
                };
                line(format!("  {}{name}", device.id));
                let directions = [("output", &device.output), ("input", &device.input)];
                for (word, direction) in directions
                    .into_iter()
                    .filter_map(|(word, direction)| Some((word, direction.as_ref()?)))
                {
                    line(format!("    {}", describe(word, direction)));
                }
            }
        }
        line("MIDI".into());
        if self.midi.ports.is_empty() {
            line("  no ports".into());
        }
        for port in &self.midi.ports {
            line(format!("  {}  {}", port.name, port.system));
        }
        for error in &self.midi.errors {
            line(format!("  {error}"));
        }
        text
    }
}

fn describe(word: &str, direction: &DirectionInfo) -> String {
    let default = if direction.default { " (default)" } else { "" };
    if direction.sample_rates.is_empty() {
        return format!("{word}{default}: busy");
    }
    let rates: Vec<String> = direction
        .sample_rates
        .iter()
        .map(|&rate| (f64::from(rate) / 1000.0).to_string())
        .collect();
    let channels = if direction.channels == 1 {
        "1 channel".into()
    } else {
        format!("up to {} channels", direction.channels)
    };
    format!("{word}{default}: {channels}; {} kHz", rates.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_printed_as_text() {
        let direction = |channels, default| {
            Some(DirectionInfo {
                channels,
                sample_rates: vec![44_100, 48_000],
                default,
            })
        };
        let card = AudioDevice {
            id: "hw:0".into(),
            name: "Card\n0".into(),
            output: direction(8, true),
            input: direction(1, false),
        };
        let busy = Some(DirectionInfo {
            channels: 0,
            sample_rates: Vec::new(),
            default: false,
        });
        let other = AudioDevice {
            id: "system".into(),
            name: "system".into(),
            output: busy,
            input: None,
        };
        let host = |name: &str, default| AudioHost {
            name: name.into(),
            available: true,
            default,
        };
        let error = Some("no JACK server is running".into());
        let listing = DeviceListing {
            audio: vec![
                HostListing {
                    host: host("ALSA", true),
                    devices: vec![card, other],
                    error: None,
                },
                HostListing {
                    host: host("JACK", false),
                    devices: Vec::new(),
                    error,
                },
            ],
            midi: MidiListing {
                ports: Vec::new(),
                errors: vec!["no sequencer".into()],
            },
        };
        let expected = "\
ALSA (default)
  hw:0  Card 0
    output (default): up to 8 channels; 44.1, 48 kHz
    input: 1 channel; 44.1, 48 kHz
  system
    output: busy
JACK
  no JACK server is running
MIDI
  no ports
  no sequencer
";
        assert_eq!(listing.text(), expected);
    }
}
