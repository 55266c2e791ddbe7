//! Text output of `ondes info`.

use ondes_engine::instrument::PlayMode;
use ondes_engine::model::program::{Setting, SettingKind};
use ondes_engine::model::{Control, Port, Variant};

use super::model_info::{MethodInfo, ModelInfo};
use crate::render::{note_name, speed};
use crate::terminal::sanitize;

/// Width of the first column.
const LABEL_WIDTH: usize = 13;

/// Formats all information in lines.
pub fn format(info: &ModelInfo) -> String {
    let mut text = InfoText::default();
    text.head(info);
    text.table("methods", info.methods.iter().map(method_row).collect());
    text.table(
        "variants",
        info.variants
            .iter()
            .map(|variant| variant_row(variant, info))
            .collect(),
    );
    text.table("controls", info.controls.iter().map(control_row).collect());
    text.table("settings", info.settings.iter().map(setting_row).collect());
    text.cost(info);
    text.provenance(info);
    text.row("hash", &info.content_hash);
    text.0
}

#[derive(Default)]
struct InfoText(String);

impl InfoText {
    /// Adds a line `label  value`, unless the value is empty.
    fn row(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            self.0
                .push_str(&format!("{label:LABEL_WIDTH$}{}\n", sanitize(value)));
        }
    }

    /// Adds rows with aligned columns; the label stands beside the first row.
    fn table(&mut self, label: &str, rows: Vec<Vec<String>>) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        };
        let widths: Vec<usize> = (0..columns)
            .map(|column| width(column).unwrap_or(0))
            .collect();
        for (index, row) in rows.iter().enumerate() {
            let cells = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            self.row(if index == 0 { label } else { "" }, line.trim_end());
        }
    }

    fn head(&mut self, info: &ModelInfo) {
        self.row("name", &info.name);
        self.row("kind", info.kind);
        self.row("description", &info.description);
        self.row("author", &info.author);
        self.row("licence", &info.licence);
        if let Some(gear) = &info.gear {
            let known = [&gear.make, &gear.model, &gear.kind, &gear.tone];
            let known: Vec<&str> = known
                .iter()
                .filter(|text| !text.is_empty())
                .map(|text| text.as_str())
                .collect();
            self.row("gear", &known.join(", "));
        }
        if let Some(levels) = &info.levels {
            let level = |what: &str, value: Option<f64>, unit: &str| {
                value.map(|value| format!("{what} {} {unit}", figure(value)))
            };
            let known = [
                level("input", levels.input_dbu, "dBu"),
                level("output", levels.output_dbu, "dBu"),
                level("loudness", levels.loudness_db, "dB"),
            ];
            self.row(
                "levels",
                &known.into_iter().flatten().collect::<Vec<_>>().join(", "),
            );
        }
        self.row(
            "file",
            &format!(
                "{}, {}, format {}",
                info.file,
                bytes(info.file_bytes),
                info.format
            ),
        );
        let oversampled = match info.oversampling {
            1 => String::new(),
            factor => format!(", oversampled by {factor}"),
        };
        self.row(
            "sample rate",
            &format!("{} Hz{oversampled}", info.sample_rate),
        );
        let stored = info.storage.iter().map(|stored| {
            let share = 100.0 * stored.weights as f64 / info.parameters.max(1) as f64;
            format!(
                "{share:.0} % {}, {}",
                stored.storage,
                bytes(stored.bytes as u64)
            )
        });
        let stored = stored.collect::<Vec<_>>().join("; ");
        self.row(
            "parameters",
            &format!("{} ({stored})", group_thousands(info.parameters)),
        );
        for (index, note) in info.program.iter().flatten().enumerate() {
            self.row(if index == 0 { "program" } else { "" }, note);
        }
        if let Some(performance) = &info.performance {
            let (low, high) = (
                note_name(performance.pitch_low),
                note_name(performance.pitch_high),
            );
            let voices = match (performance.mode, performance.polyphony) {
                (PlayMode::Mono, _) => "mono".to_owned(),
                (PlayMode::Legato, _) => "legato".to_owned(),
                (PlayMode::Poly, voices) => format!("{voices} voices"),
            };
            let attacks = match info.attacks {
                0 => String::new(),
                count => format!(", {count} recorded attacks"),
            };
            self.row("plays", &format!("{low} to {high}, {voices}{attacks}"));
        }
    }

    fn cost(&mut self, info: &ModelInfo) {
        let rows = info.cost.iter().map(|cost| {
            vec![
                cost.what.clone(),
                format!("{}× real time", speed(cost.realtime_factor)),
                format!("{:.0} ns/sample", cost.ns_per_sample),
                format!(
                    "latency {} samples ({:.1} ms)",
                    cost.latency_samples, cost.latency_ms
                ),
                bytes(cost.memory_bytes as u64),
                cost.executor.clone(),
            ]
        });
        self.table("on this CPU", rows.collect());
        let rows = info.cost.iter().map(|cost| {
            let at =
                |(rate, ms): (&u32, &f64)| format!("{ms:.1} at {} kHz", f64::from(*rate) / 1e3);
            vec![
                cost.what.clone(),
                cost.latency_ms_at
                    .iter()
                    .map(at)
                    .collect::<Vec<_>>()
                    .join(", "),
            ]
        });
        self.table("latency, ms", rows.collect());
        self.row(
            "real time",
            if info.holds_in_real_time {
                "yes"
            } else {
                "too slow on this machine"
            },
        );
    }

    fn provenance(&mut self, info: &ModelInfo) {
        if let Some(training) = &info.training {
            self.table(
                "training",
                vec![
                    vec![format!(
                        "{}, {} steps, seed {}",
                        training.tool,
                        group_thousands(training.steps as usize),
                        training.seed
                    )],
                    vec![format!(
                        "{:.1} minutes of {}",
                        training.corpus_seconds / 60.0,
                        training.corpus
                    )],
                    vec![format!(
                        "validation loss {}",
                        figure(training.validation_loss)
                    )],
                ],
            );
        }
        let heading = info
            .quality
            .iter()
            .any(|measure| measure.baseline.is_some())
            .then(|| {
                ["held-out sound", "model", "baseline"]
                    .map(str::to_owned)
                    .to_vec()
            });
        let rows = info.quality.iter().map(|measure| {
            let unit = |value: f64| {
                format!("{} {}", figure(value), measure.unit)
                    .trim_end()
                    .to_owned()
            };
            vec![
                measure.name.clone(),
                unit(measure.value),
                measure.baseline.map(unit).unwrap_or_default(),
            ]
        });
        self.table("quality", heading.into_iter().chain(rows).collect());
    }
}

fn method_row(method: &MethodInfo) -> Vec<String> {
    let ports = |ports: &[Port]| ports.iter().map(port).collect::<Vec<_>>().join(", ");
    vec![
        method.name.clone(),
        format!("{} → {}", ports(&method.inputs), ports(&method.outputs)),
        format!(
            "latency {} samples ({:.1} ms)",
            method.latency_samples, method.latency_ms
        ),
        match method.nodes {
            // A TorchScript model does not report its operations.
            0 => String::new(),
            _ => format!(
                "{:.1} M multiply-adds/s",
                1e-6 * method.multiply_adds_per_second
            ),
        },
        labels(&method.input_labels, &method.output_labels),
    ]
}

/// Formats the names of input and output channels, if there are any.
fn labels(inputs: &[String], outputs: &[String]) -> String {
    let names = |labels: &[String]| labels.join(", ");
    if inputs.is_empty() && outputs.is_empty() {
        String::new()
    } else {
        format!("{} → {}", names(inputs), names(outputs))
    }
}

/// Formats a variant with its share of the whole model's arithmetic.
fn variant_row(variant: &Variant, info: &ModelInfo) -> Vec<String> {
    let cost = |name: &str| {
        info.methods
            .iter()
            .find(|method| method.name == name)
            .map(|m| m.multiply_adds_per_second)
    };
    let whole = cost("forward").or_else(|| cost("synth"));
    let share = cost(&variant.method)
        .zip(whole)
        .map(|(own, whole)| own / whole);
    let share = share
        .map(|share| format!("{:.0} % of the arithmetic", 100.0 * share))
        .unwrap_or_default();
    vec![
        variant.name.clone(),
        format!("below {}", figure(variant.up_to.into())),
        share,
    ]
}

/// Formats a port: name, channels if several, ratio if it is not audio.
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
    let [min, max, default] =
        [control.min, control.max, control.default].map(|value| figure(value.into()));
    let range = format!("{min} to {max} {}", control.unit);
    vec![
        control.name.clone(),
        range.trim_end().to_owned(),
        format!("default {default}"),
        control.description.clone(),
    ]
}

fn setting_row(setting: &Setting) -> Vec<String> {
    let kind = match setting.kind {
        SettingKind::Text(1) => "text".into(),
        SettingKind::Text(values) => format!("{values} values"),
        SettingKind::Sound(_) => "sound file".into(),
    };
    let default = if setting.value.is_empty() {
        String::new()
    } else {
        format!("default {}", setting.value)
    };
    vec![setting.name.clone(), kind, default]
}

/// Formats a figure with at most three digits after the point; a small one with three digits that
/// are not 0.
fn figure(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        0.0 => return "0".to_owned(),
        small if small < 1e-6 => return format!("{value:.2e}"),
        small if small < 0.1 => format!(
            "{value:.digits$}",
            digits = (2.0 - small.log10().floor()) as usize
        ),
        _ => format!("{value:.3}"),
    };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Formats a number of bytes with a decimal unit.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Formats a number in groups of three digits.
fn group_thousands(number: usize) -> String {
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
    use super::{bytes, figure, group_thousands};

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [0, 12, 123, 1_234, 1_234_567].map(group_thousands),
            ["0", "12", "123", "1 234", "1 234 567"]
        );
        assert_eq!(
            [12, 1_234, 3_456_789].map(bytes),
            ["12 bytes", "1.2 kB", "3.5 MB"]
        );
        let figures = [
            0.0,
            -12.049_386_978_149_414,
            12.2,
            0.5,
            1.0,
            20_000.0,
            0.003_712_3,
            -0.05,
            4.56e-9,
        ];
        let texts = [
            "0", "-12.049", "12.2", "0.5", "1", "20000", "0.00371", "-0.05", "4.56e-9",
        ];
        assert_eq!(figures.map(figure), texts);
    }
}
