//! The facts, laid out for a person.

use ondes_engine::instrument::PlayMode;
use ondes_engine::model::{Control, Port, Variant};

use super::facts::{Facts, MethodFacts};
use crate::render::note_name;
use crate::terminal::plain;

/// Width of the first column.
const LABELS: usize = 13;

/// Several lines.
pub fn lay_out(facts: &Facts) -> String {
    let mut text = Text::default();
    text.head(facts);
    text.table("methods", facts.methods.iter().map(method_row).collect());
    text.table("variants", facts.variants.iter().map(|variant| variant_row(variant, facts)).collect());
    text.table("controls", facts.controls.iter().map(control_row).collect());
    text.cost(facts);
    text.provenance(facts);
    text.row("hash", &facts.content_hash);
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    /// `label  value`; without a value there is no such line.
    fn row(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            self.0.push_str(&format!("{label:LABELS$}{}\n", plain(value)));
        }
    }

    /// Columns as wide as their widest cell, the label beside the first row.
    fn table(&mut self, label: &str, rows: Vec<Vec<String>>) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for (index, row) in rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            self.row(if index == 0 { label } else { "" }, line.trim_end());
        }
    }

    fn head(&mut self, facts: &Facts) {
        self.row("name", &facts.name);
        self.row("kind", facts.kind);
        self.row("description", &facts.description);
        self.row("author", &facts.author);
        self.row("licence", &facts.licence);
        if let Some(gear) = &facts.gear {
            let known = [&gear.make, &gear.model, &gear.kind, &gear.tone];
            let known: Vec<&str> = known.iter().filter(|text| !text.is_empty()).map(|text| text.as_str()).collect();
            self.row("gear", &known.join(", "));
        }
        if let Some(levels) = &facts.levels {
            let level =
                |what: &str, value: Option<f64>, unit: &str| value.map(|value| format!("{what} {value} {unit}"));
            let known = [
                level("input", levels.input_dbu, "dBu"),
                level("output", levels.output_dbu, "dBu"),
                level("loudness", levels.loudness_db, "dB"),
            ];
            self.row("levels", &known.into_iter().flatten().collect::<Vec<_>>().join(", "));
        }
        self.row("file", &format!("{}, {}, format {}", facts.file, bytes(facts.file_bytes), facts.format));
        self.row("sample rate", &format!("{} Hz", facts.sample_rate));
        let stored = facts.storage.iter().map(|stored| {
            let share = 100.0 * stored.weights as f64 / facts.parameters.max(1) as f64;
            format!("{share:.0} % {}, {}", stored.storage, bytes(stored.bytes as u64))
        });
        let stored = stored.collect::<Vec<_>>().join("; ");
        self.row("parameters", &format!("{} ({stored})", grouped(facts.parameters)));
        for (index, note) in facts.program.iter().flatten().enumerate() {
            self.row(if index == 0 { "program" } else { "" }, note);
        }
        if let Some(performance) = &facts.performance {
            let (low, high) = (note_name(performance.pitch_low), note_name(performance.pitch_high));
            let voices = match (performance.mode, performance.polyphony) {
                (PlayMode::Mono, _) => "mono".to_owned(),
                (PlayMode::Legato, _) => "legato".to_owned(),
                (PlayMode::Poly, voices) => format!("{voices} voices"),
            };
            self.row("plays", &format!("{low} to {high}, {voices}"));
        }
    }

    fn cost(&mut self, facts: &Facts) {
        let rows = facts.cost.iter().map(|cost| {
            vec![
                cost.what.clone(),
                format!("{:.0}× real time", cost.realtime_factor),
                format!("{:.0} ns/sample", cost.ns_per_sample),
                format!("latency {} samples ({:.1} ms)", cost.latency_samples, cost.latency_ms),
                bytes(cost.memory_bytes as u64),
                cost.executor.clone(),
            ]
        });
        self.table("on this CPU", rows.collect());
        self.row("real time", if facts.holds_in_real_time { "holds here" } else { "too heavy to hold here" });
    }

    fn provenance(&mut self, facts: &Facts) {
        if let Some(training) = &facts.training {
            self.table(
                "training",
                vec![
                    vec![format!(
                        "{}, {} steps, seed {}",
                        training.tool,
                        grouped(training.steps as usize),
                        training.seed
                    )],
                    vec![format!("{:.1} minutes of {}", training.corpus_seconds / 60.0, training.corpus)],
                    vec![format!("validation loss {:.4}", training.validation_loss)],
                ],
            );
        }
        let heading = facts
            .quality
            .iter()
            .any(|measure| measure.baseline.is_some())
            .then(|| ["held-out sound", "model", "baseline"].map(str::to_owned).to_vec());
        let rows = facts.quality.iter().map(|measure| {
            let unit = |value: f64| format!("{value:.3} {}", measure.unit).trim_end().to_owned();
            vec![measure.name.clone(), unit(measure.value), measure.baseline.map(unit).unwrap_or_default()]
        });
        self.table("quality", heading.into_iter().chain(rows).collect());
    }
}

fn method_row(method: &MethodFacts) -> Vec<String> {
    let ports = |ports: &[Port]| ports.iter().map(port).collect::<Vec<_>>().join(", ");
    vec![
        method.name.clone(),
        format!("{} → {}", ports(&method.inputs), ports(&method.outputs)),
        format!("latency {} samples ({:.1} ms)", method.latency_samples, method.latency_ms),
        match method.nodes {
            // A program does not tell.
            0 => String::new(),
            _ => format!("{:.1} M multiply-adds/s", 1e-6 * method.multiply_adds_per_second),
        },
        labels(&method.input_labels, &method.output_labels),
    ]
}

/// What channels are called, where they are.
fn labels(inputs: &[String], outputs: &[String]) -> String {
    let names = |labels: &[String]| labels.join(", ");
    if inputs.is_empty() && outputs.is_empty() {
        String::new()
    } else {
        format!("{} → {}", names(inputs), names(outputs))
    }
}

/// A variant and what it costs beside the whole.
fn variant_row(variant: &Variant, facts: &Facts) -> Vec<String> {
    let cost = |name: &str| facts.methods.iter().find(|method| method.name == name).map(|m| m.multiply_adds_per_second);
    let whole = cost("forward").or_else(|| cost("synth"));
    let share = cost(&variant.method).zip(whole).map(|(own, whole)| own / whole);
    let share = share.map(|share| format!("{:.0} % of the arithmetic", 100.0 * share)).unwrap_or_default();
    vec![variant.name.clone(), format!("below {}", variant.up_to), share]
}

/// `NAME`, its channels where there are several, its ratio where it is not audio.
fn port(port: &Port) -> String {
    let mut text = port.name.clone();
    if port.channels > 1 {
        text.push_str(&format!(" [{}]", port.channels));
    }
    if port.ratio > 1 {
        text.push_str(&format!(" /{}", port.ratio));
    }
    text
}

fn control_row(control: &Control) -> Vec<String> {
    let range = format!("{} to {} {}", control.min, control.max, control.unit);
    vec![
        control.name.clone(),
        range.trim_end().to_owned(),
        format!("default {}", control.default),
        control.description.clone(),
    ]
}

/// A size as a person reads it.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// A number with its thousands apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for group in digits.as_bytes()[first..].chunks(3) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.extend(group.iter().map(|&digit| char::from(digit)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{bytes, grouped};

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 12, 123, 1_234, 1_234_567].map(grouped), ["0", "12", "123", "1 234", "1 234 567"]);
        assert_eq!([12, 1_234, 3_456_789].map(bytes), ["12 bytes", "1.2 kB", "3.5 MB"]);
    }
}
