//! Captures. Their answers are what they make of a short signal, after the silence that players
//! begin with.

use std::collections::BTreeMap;
use std::path::Path;

use ondes_engine::Kernels;
use ondes_engine::executor::Execute;
use ondes_engine::model::{Model, file};
use ondes_engine::native::Executor;
use serde::Deserialize;
use serde_json::{Value, json};

/// Largest relative error (RMS) of a right output.
const MAX_ERROR: f64 = 1e-5;
/// The same for other programs.
const MAX_ERROR_OF_OTHERS: f64 = 1e-3;

/// Right answer for a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Name of the file.
    pub file: String,
    group: String,
    /// Oddity.
    pub what: String,
    /// Reason why other programs read it otherwise.
    why: Option<String>,
    /// Result of NAM's own trainer, from when the file was made.
    trainer: Option<String>,
    /// Part of the error.
    refused: Option<String>,
    /// Sample rate, Hz.
    rate: Option<u32>,
    output: Option<Vec<f32>>,
    /// Output of the smaller networks, by the names of their methods.
    #[serde(default)]
    methods: BTreeMap<String, Vec<f32>>,
    /// Part of a remark to the user; `None` if there must be none.
    note: Option<String>,
}

/// Capture as Ondes reads it.
pub struct Capture {
    rate: u32,
    outputs: BTreeMap<String, Vec<f32>>,
    notes: Vec<String>,
}

/// Reads the signal that all captures play.
///
/// # Panics
/// If it is missing or not valid.
#[must_use]
pub fn input(folder: &Path) -> Vec<f32> {
    let text = std::fs::read_to_string(folder.join("input.json")).expect("input.json");
    serde_json::from_str(&text).expect("the input is a list of numbers")
}

/// Reads a file with Ondes and plays the signal with all of its methods.
///
/// # Errors
/// Returns the message of the reader.
pub fn play(path: &Path, input: &[f32]) -> Result<Capture, String> {
    let opened = file::open(path).map_err(|error| error.to_string())?;
    let model = opened.model;
    let methods = model.header().methods.iter();
    let outputs = methods
        .map(|method| (method.name.clone(), run(&model, &method.name, input)))
        .collect();
    Ok(Capture {
        rate: model.header().sample_rate,
        outputs,
        notes: opened.notes,
    })
}

fn run(model: &Model, method: &str, input: &[f32]) -> Vec<f32> {
    let controls = &model.header().controls;
    let mut executor = Executor::new(model, method, Kernels::detect(), 1, input.len())
        .expect("a model that was read");
    executor.begin(&[0], input.len());
    executor.input(0).copy_from_slice(input);
    for (port, control) in controls.iter().enumerate() {
        executor.input(port + 1).fill(control.default);
    }
    executor.run();
    executor.output(0).to_vec()
}

/// Returns the relative error (RMS); infinite if an output is.
fn error(found: &[f32], expected: &[f32]) -> f64 {
    if found.len() != expected.len() || found.iter().any(|sample| !sample.is_finite()) {
        return f64::INFINITY;
    }
    let square = |x: f32| f64::from(x) * f64::from(x);
    let difference: f64 = found.iter().zip(expected).map(|(a, b)| square(a - b)).sum();
    let level: f64 = expected.iter().map(|sample| square(*sample)).sum();
    (difference / level.max(1e-20)).sqrt()
}

impl Answer {
    /// Checks what Ondes made of the file.
    ///
    /// # Errors
    /// Says what differs.
    pub fn check(&self, found: Result<Capture, String>) -> Result<(), String> {
        let capture = match (found, &self.refused) {
            (Err(message), Some(reason))
                if message.contains(reason.as_str()) && !message.contains('\n') =>
            {
                return Ok(());
            }
            (Err(message), _) => return Err(message),
            (Ok(_), Some(reason)) => return Err(format!("plays; expected: {reason}")),
            (Ok(capture), None) => capture,
        };
        if Some(capture.rate) != self.rate {
            return Err(format!("{} Hz, expected {:?}", capture.rate, self.rate));
        }
        let expected: BTreeMap<&str, &Vec<f32>> = self
            .output
            .iter()
            .map(|output| ("forward", output))
            .chain(
                self.methods
                    .iter()
                    .map(|(name, output)| (name.as_str(), output)),
            )
            .collect();
        if !expected
            .keys()
            .copied()
            .eq(capture.outputs.keys().map(String::as_str))
        {
            return Err(format!(
                "methods {:?}, expected {:?}",
                capture.outputs.keys(),
                expected.keys()
            ));
        }
        for (name, output) in expected {
            let error = error(&capture.outputs[name], output);
            if error > MAX_ERROR {
                return Err(format!("{name}: error {error:e}"));
            }
        }
        match &self.note {
            None if !capture.notes.is_empty() => {
                Err(format!("unexpected remarks {:?}", capture.notes))
            }
            Some(note)
                if !capture
                    .notes
                    .iter()
                    .any(|found| found.contains(note.as_str())) =>
            {
                Err(format!("remarks {:?}, expected {note:?}", capture.notes))
            }
            _ => Ok(()),
        }
    }
}

/// Reads a file as Ondes and compares the output of another player, or its error. Returns a line of
/// the table as JSON: name, group, oddity, what each reader makes of it, and why they differ.
#[must_use]
pub fn compare(folder: &Path, answer: &Answer, player: Option<Result<Vec<f32>, String>>) -> Value {
    let describe = |output: &[f32], allowed: f64| match &answer.output {
        Some(expected) if error(output, expected) <= allowed => "exact",
        Some(_) => "other sound",
        None => "plays",
    };
    let ours = match play(&folder.join(&answer.file), &input(folder)) {
        Err(message) => super::refusal(&message),
        Ok(capture) => {
            let warned = if capture.notes.is_empty() {
                ""
            } else {
                ", with a remark"
            };
            format!(
                "{}{warned}",
                describe(&capture.outputs["forward"], MAX_ERROR)
            )
        }
    };
    let player = match player {
        None => "".to_owned(),
        Some(Err(_)) => "refuses".to_owned(),
        Some(Ok(output)) => describe(&output, MAX_ERROR_OF_OTHERS).to_owned(),
    };
    let trainer = answer.trainer.clone().unwrap_or_default();
    let readers = [ours, trainer, player];
    json!({ "file": answer.file, "group": answer.group, "what": answer.what, "readers": readers, "why": answer.why })
}
