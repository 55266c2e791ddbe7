//! `ondes devices`: what sound can be played on and what MIDI can come from.

use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use super::catalogue::{self, Device, Host, Side};
use super::midi::{self, MidiPort};
use crate::terminal::{self, plain};

const EXAMPLES: &str = "\
Examples:
  ondes devices
  ondes devices --json | jq -r '.midi.ports[].name'";

/// Lists sound systems with their devices, and MIDI ports.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct DevicesArguments {
    /// Prints one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Inventory {
    audio: Vec<HostInventory>,
    midi: MidiInventory,
}

#[derive(Serialize)]
struct HostInventory {
    #[serde(flatten)]
    host: Host,
    devices: Vec<Device>,
    /// Why there are none to see.
    trouble: Option<String>,
}

#[derive(Serialize)]
struct MidiInventory {
    ports: Vec<MidiPort>,
    troubles: Vec<String>,
}

/// Prints what there is. That there is nothing is no failure.
///
/// # Errors
/// When standard output does not take it.
pub fn run(arguments: &DevicesArguments) -> anyhow::Result<()> {
    let inventory = Inventory::take();
    if arguments.json {
        terminal::print(&serde_json::to_string_pretty(&inventory)?)
    } else {
        terminal::print(inventory.text().trim_end())
    }
}

impl Inventory {
    fn take() -> Self {
        let describe = |host: Host| match catalogue::devices(Some(&host.name)) {
            Ok(devices) => HostInventory { host, devices, trouble: None },
            Err(trouble) => HostInventory { host, devices: Vec::new(), trouble: Some(trouble) },
        };
        let audio = catalogue::hosts().into_iter().map(describe).collect();
        let (ports, troubles) = midi::ports();
        Self { audio, midi: MidiInventory { ports, troubles } }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let mut line = |line: String| {
            let _ = writeln!(text, "{}", plain(&line));
        };
        for HostInventory { host, devices, trouble } in &self.audio {
            line(format!("{}{}", host.name, if host.default { " (default)" } else { "" }));
            match (devices.is_empty(), trouble) {
                (_, Some(trouble)) => line(format!("  {trouble}")),
                (true, None) => line("  no devices".into()),
                (false, None) => {}
            }
            for device in devices {
                let name = if device.name == device.id { String::new() } else { format!("  {}", device.name) };
                line(format!("  {}{name}", device.id));
                let sides = [("output", &device.output), ("input", &device.input)];
                for (word, side) in sides.into_iter().filter_map(|(word, side)| Some((word, side.as_ref()?))) {
                    line(format!("    {}", describe(word, side)));
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
        for trouble in &self.midi.troubles {
            line(format!("  {trouble}"));
        }
        text
    }
}

fn describe(word: &str, side: &Side) -> String {
    let default = if side.default { " (default)" } else { "" };
    if side.sample_rates.is_empty() {
        return format!("{word}{default}: busy");
    }
    let rates: Vec<String> = side.sample_rates.iter().map(|&rate| (f64::from(rate) / 1000.0).to_string()).collect();
    let channels = if side.channels == 1 { "1 channel".into() } else { format!("up to {} channels", side.channels) };
    format!("{word}{default}: {channels}; {} kHz", rates.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_is_told_in_words() {
        let side = |channels, default| Some(Side { channels, sample_rates: vec![44_100, 48_000], default });
        let card = Device { id: "hw:0".into(), name: "Card\n0".into(), output: side(8, true), input: side(1, false) };
        let busy = Some(Side { channels: 0, sample_rates: Vec::new(), default: false });
        let other = Device { id: "system".into(), name: "system".into(), output: busy, input: None };
        let host = |name: &str, default| Host { name: name.into(), available: true, default };
        let trouble = Some("no JACK server is running".into());
        let inventory = Inventory {
            audio: vec![
                HostInventory { host: host("ALSA", true), devices: vec![card, other], trouble: None },
                HostInventory { host: host("JACK", false), devices: Vec::new(), trouble },
            ],
            midi: MidiInventory { ports: Vec::new(), troubles: vec!["no sequencer".into()] },
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
        assert_eq!(inventory.text(), expected);
    }
}
