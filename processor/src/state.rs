//! What is saved with a project, besides the parameters.

use std::collections::BTreeMap;

use ondes_engine::wish::{self, Wish};
use serde::{Deserialize, Serialize};

use crate::library::Reference;
use crate::preset::values::Values;

/// Version of what is written; later versions only add fields, so that what they write can be read here too.
pub const VERSION: u32 = 1;

/// Which model and cabinet, what the macros turn on it, and how its latents are bent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Saved {
    /// The version that wrote this.
    pub version: u32,
    /// The model.
    pub model: Reference,
    /// Names of the controls that the macros turn; none for the first ones of the model's list, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub macros: Option<Vec<Option<String>>>,
    /// Where the knobs of a codec's latents stand, by the names of their controls, such as `latent1.scale`, in the controls'
    /// own units; those that are not named stand at their defaults. They are the model's: another one begins without.
    #[serde(skip_serializing_if = "Values::is_empty")]
    pub latents: Values,
    /// The impulse response of the cabinet, if there is one; its hash is that of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cabinet: Option<Reference>,
    /// Whether the model, and the cabinet's file, are saved with the project.
    pub embed: bool,
    /// What is to run the network, also where this machine or this model cannot: another may.
    #[serde(deserialize_with = "wish::read", skip_serializing_if = "Wish::is_default")]
    pub running: Wish,
    /// Ids of the parameters that the window's pad turns, across and up; none for the first two macros.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad: Option<[String; 2]>,
    /// MIDI controllers, 0 … 119, by the ids of the parameters that they turn. Only here between a project and
    /// [`Controllers`](crate::controllers::Controllers), which knows them while an instance lives.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub controllers: BTreeMap<String, u8>,
    /// How the window looks.
    #[serde(skip_serializing_if = "Look::is_default")]
    pub look: Look,
    /// The slots A and B; none where only A was ever used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<Slots>,
}

/// Everything that is heard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sound {
    /// Where the parameters stand.
    pub parameters: Values,
    /// The model, what macros turn and how latents are bent; its look and its slots mean nothing.
    pub selection: Box<Saved>,
}

/// The slots A and B.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slots {
    /// Whether B is heard, which is what the rest of the project says.
    pub b_is_heard: bool,
    /// What the other one holds, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<Sound>,
}

/// How the window looks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Look {
    /// Size of its contents, 1 is 100 %.
    pub scale: f32,
    /// Its colours.
    pub theme: Theme,
}

/// The window's colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// Light on dark.
    Dark,
    /// Dark on light.
    Light,
    /// As the rest of the system, as far as it tells; also what a later version may have named.
    #[default]
    #[serde(other)]
    System,
}

impl Default for Look {
    fn default() -> Self {
        Self { scale: 1.0, theme: Theme::default() }
    }
}

impl Look {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::executor::{Backend, Device, Precision};

    use super::*;
    use crate::preset::values::Value;

    #[test]
    fn what_is_to_run_the_network_is_saved_and_older_projects_are_as_they_were() {
        let running = Wish { executor: Backend::Torch, device: Device::Cuda(0), precision: Precision::F16 };
        let saved = Saved { running, ..Saved::default() };
        let text = serde_json::to_string(&saved).unwrap();
        assert!(text.contains(r#""running":{"executor":"torch","device":"cuda:0","precision":"f16"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Saved>(&text).unwrap(), saved);
        let plain = serde_json::to_string(&Saved::default()).unwrap();
        assert!(!plain.contains("running"));
        assert_eq!(serde_json::from_str::<Saved>(&plain).unwrap().running, Wish::default());
        let later = r#"{ "model": { "hash": "x" }, "running": { "executor": "abacus", "device": 7 } }"#;
        let later: Saved = serde_json::from_str(later).unwrap();
        assert_eq!((later.model.hash.as_str(), later.running), ("x", Wish::default()));
        // Nor does something else in its place cost the model.
        for nonsense in ["null", "7", "\"torch\"", "[]"] {
            let text = format!(r#"{{ "model": {{ "hash": "x" }}, "running": {nonsense} }}"#);
            let saved: Saved = serde_json::from_str(&text).unwrap();
            assert_eq!((saved.model.hash.as_str(), saved.running), ("x", Wish::default()), "{nonsense}");
        }
    }

    #[test]
    fn the_look_is_saved_and_colours_of_a_later_version_do_no_harm() {
        let saved = Saved { look: Look { scale: 1.5, theme: Theme::Light }, ..Saved::default() };
        let text = serde_json::to_string(&saved).unwrap();
        assert_eq!(serde_json::from_str::<Saved>(&text).unwrap(), saved);
        assert!(!serde_json::to_string(&Saved::default()).unwrap().contains("look"));
        let later: Saved = serde_json::from_str(r#"{ "look": { "theme": "plaid" } }"#).unwrap();
        assert_eq!(later.look, Look::default());
    }

    #[test]
    fn slots_are_saved_and_nonsense_in_them_does_not_cost_the_model() {
        let parameters =
            [("mix".to_owned(), Value::Number(0.3)), ("driver".to_owned(), Value::Choice("worker".into()))];
        let other = Sound { parameters: parameters.into(), selection: Box::default() };
        let saved = Saved { compare: Some(Slots { b_is_heard: true, other: Some(other) }), ..Saved::default() };
        let text = serde_json::to_string(&saved).unwrap();
        assert_eq!(serde_json::from_str::<Saved>(&text).unwrap(), saved);
        assert!(!serde_json::to_string(&Saved::default()).unwrap().contains("compare"));
        let later = r#"{ "model": { "hash": "x" }, "compare": { "other": { "parameters": { "mix": [null] } } } }"#;
        assert_eq!(serde_json::from_str::<Saved>(later).unwrap().model.hash, "x");
    }
}
