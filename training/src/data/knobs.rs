//! Knobs of an instrument whose positions the recordings' names tell: vowel, articulation,
//! microphone.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use ondes_engine::model::{Control, Curve};
use serde::{Deserialize, Serialize};

/// Knob that the recordings have in known positions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedKnob {
    /// Position of each recording whose path below the folder contains this text.
    pub positions: BTreeMap<String, f32>,
    /// Position in which the model opens; by default the middle.
    pub default: Option<f32>,
    /// Unit.
    pub unit: String,
    /// Description, one sentence.
    pub description: String,
}

impl RecordedKnob {
    /// Returns the control of that name, from the lowest to the highest position.
    ///
    /// # Errors
    /// Returns an error that names the knob if all positions are the same, or the default is not
    /// between them.
    pub fn control(&self, name: &str) -> anyhow::Result<Control> {
        for (text, position) in &self.positions {
            ensure!(
                position.is_finite(),
                "knob.{name}.positions.{text} must be a number"
            );
        }
        let positions = || self.positions.values().copied();
        let (min, max) = (
            positions().fold(f32::INFINITY, f32::min),
            positions().fold(f32::NEG_INFINITY, f32::max),
        );
        ensure!(
            min < max,
            "knob.{name}.positions must have two different positions or more"
        );
        let control = Control {
            name: name.to_owned(),
            unit: self.unit.clone(),
            min,
            max,
            default: self.default.unwrap_or(f32::midpoint(min, max)),
            curve: Curve::Linear,
            description: self.description.clone(),
        };
        ensure!(
            control.is_valid(),
            "knob.{name}.default must be {min} to {max}"
        );
        Ok(control)
    }

    /// Returns the position in a recording.
    ///
    /// # Errors
    /// Returns an error that names the recording if its path tells no position, or several.
    fn position(&self, name: &str, recording: &str) -> anyhow::Result<f32> {
        let told: Vec<_> = self
            .positions
            .iter()
            .filter(|(text, _)| recording.contains(text.as_str()))
            .collect();
        match told[..] {
            [(_, position)] => Ok(*position),
            [] => bail!("{recording}: has none of the texts of knob.{name}.positions in its path"),
            [(first, _), (second, _), ..] => {
                bail!(
                    "{recording}: has both {first:?} and {second:?} of knob.{name}.positions in its path"
                )
            }
        }
    }
}

/// Returns the positions of all knobs in a recording, by the path of that.
///
/// # Errors
/// Returns an error that names the recording if its path does not tell one position of each knob.
pub fn positions(
    knobs: &BTreeMap<String, RecordedKnob>,
    recording: &str,
) -> anyhow::Result<BTreeMap<String, f32>> {
    knobs
        .iter()
        .map(|(name, knob)| Ok((name.clone(), knob.position(name, recording)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vowels() -> BTreeMap<String, RecordedKnob> {
        let text =
            "[vowel]\npositions = { \"-oh\" = 0.0, \"-ah\" = 1.0, \"-ih\" = 2.0 }\ndefault = 1.0";
        toml::from_str(text).expect("knobs")
    }

    #[test]
    fn paths_tell_positions() {
        let knobs = vowels();
        let at = |path| {
            positions(&knobs, path)
                .map(|positions| positions["vowel"])
                .map_err(|error| error.to_string())
        };
        assert_eq!(at("voice/sven-ah/41.flac"), Ok(1.0));
        assert_eq!(at("voice/sven-ih/41.flac"), Ok(2.0));
        let none = at("voice/sven/41.flac").unwrap_err();
        assert!(
            none.starts_with("voice/sven/41.flac: ") && none.contains("knob.vowel.positions"),
            "{none}"
        );
        let two = at("voice-oh/sven-ah/41.flac").unwrap_err();
        assert!(two.contains("\"-ah\"") && two.contains("\"-oh\""), "{two}");
    }

    #[test]
    fn controls_span_the_positions() {
        let mut vowel = vowels().remove("vowel").expect("a knob");
        let control = vowel.control("vowel").expect("a control");
        assert_eq!([control.min, control.default, control.max], [0.0, 1.0, 2.0]);
        vowel.default = Some(3.0);
        assert!(vowel.control("vowel").is_err());
        vowel.positions = BTreeMap::from([("-ah".into(), 1.0)]);
        assert!(vowel.control("vowel").is_err());
    }
}
