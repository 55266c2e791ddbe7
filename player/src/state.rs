//! State of an instance as saved in projects and presets, besides the values of a project's
//! parameters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ondes_engine::dsp::resample::Resampling;
use ondes_engine::executor::{self, ExecutorSelection};
use ondes_engine::model::Model;
use ondes_engine::model::program::ProgramOptions;
use ondes_engine::torch;
use serde::{Deserialize, Serialize};

use crate::library::FileReference;
use crate::parameter_values::{ParameterValues, finite};
use crate::preset::location::PresetLocation;
use crate::programs::{ProgramChange, ProgramChoice};
use crate::rig::block_state::BlockState;
use crate::rig::branch_state::{self, BranchState};
use crate::rig::scene::Scenes;
use crate::tuning::TuningFiles;

/// Version of the format. Later versions only add fields, so that older ones can read their files.
pub const VERSION: u32 = 1;

/// State of an instance besides its parameters, as saved in projects and presets. All fields are
/// optional in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceState {
    /// Version of the format.
    pub version: u32,
    /// The model.
    pub model: FileReference,
    /// Names of the controls that the macros are bound to; `None` for the model's first controls in
    /// their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub macros: Option<Vec<Option<String>>>,
    /// Values of a codec's latent knobs that are not at their defaults, by control name such as
    /// `latent1.scale`, in the control's unit. They belong to the model and are cleared when
    /// another one is loaded.
    #[serde(skip_serializing_if = "ParameterValues::is_empty")]
    pub latents: ParameterValues,
    /// Method and settings that were chosen of a TorchScript program.
    #[serde(
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "ProgramOptions::is_default"
    )]
    pub program: ProgramOptions,
    /// The cabinet's impulse response, if any; its hash is that of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cabinet: Option<FileReference>,
    /// True if a model that is loaded brings the bundled cabinet that suits it, or none; false once
    /// the user has chosen. Restoring a state never changes its cabinet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automatic_cabinet: bool,
    /// Blocks before and after the model, in their order.
    #[serde(
        alias = "effects",
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub blocks: Vec<BlockState>,
    /// Settings of the two branches of the blocks.
    #[serde(
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "branch_state::are_default"
    )]
    pub branches: [BranchState; 2],
    /// Scenes of the rig.
    #[serde(
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "Scenes::is_default"
    )]
    pub scenes: Scenes,
    /// Files of the tuning; `None` in equal temperament.
    #[serde(
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub tuning: Option<TuningFiles>,
    /// True if the model and the cabinet's file are embedded in the project.
    pub embed: bool,
    /// Requested executor. Kept even if this machine or this model does not support it, since
    /// another may.
    #[serde(
        rename = "running",
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "ExecutorSelection::is_default"
    )]
    pub executor: ExecutorSelection,
    /// Method of rate conversion, where the model's sample rate is not the host's.
    #[serde(
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "Resampling::is_default"
    )]
    pub resampling: Resampling,
    /// Ids of the parameters that the window's pad turns, horizontally and vertically; `None` for
    /// the first two macros.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad: Option<[String; 2]>,
    /// The preset that was loaded or saved last; `None` once another model is loaded.
    #[serde(
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub preset: Option<PresetLocation>,
    /// MIDI controllers, 0 … 119, by the id of the parameter that they turn. While an instance
    /// lives [`MidiBindings`](crate::midi_bindings::MidiBindings) holds them.
    #[serde(rename = "controllers", skip_serializing_if = "BTreeMap::is_empty")]
    pub midi_controllers: BTreeMap<String, u8>,
    /// Choices of MIDI program changes.
    #[serde(
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub programs: Vec<ProgramChange>,
    /// Scale and theme of the window.
    #[serde(
        rename = "look",
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "WindowSettings::is_default"
    )]
    pub window: WindowSettings,
    /// Slots A and B; `None` if only slot A was ever used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<CompareState>,
}

impl InstanceState {
    /// Returns the state without the settings that belong to the project, not to the sound.
    #[must_use]
    pub fn sound_only(self) -> Self {
        Self {
            window: WindowSettings::default(),
            pad: None,
            tuning: None,
            executor: ExecutorSelection::default(),
            resampling: Resampling::default(),
            compare: None,
            midi_controllers: BTreeMap::new(),
            programs: Vec::new(),
            ..self
        }
    }

    /// Returns the model as the program's options choose it. If they do not fit, such as without a
    /// sound file, returns the model as it is with the reason.
    pub(crate) fn with_program_options(&self, model: Arc<Model>) -> (Arc<Model>, Option<String>) {
        if self.program.is_default() {
            return (model, None);
        }
        match torch::with_options(&model, &self.program) {
            Ok(chosen) => (chosen.into(), None),
            Err(reason) => (model, Some(reason.to_string())),
        }
    }

    /// Replaces all paths, those in the other slot included.
    pub fn map_paths(&mut self, map: &impl Fn(&Path) -> PathBuf) {
        self.program
            .sounds
            .values_mut()
            .for_each(|path| *path = map(path));
        let of_blocks = self
            .blocks
            .iter_mut()
            .filter_map(|block| block.file.as_mut());
        let files = std::iter::once(&mut self.model)
            .chain(&mut self.cabinet)
            .chain(of_blocks);
        files
            .filter_map(|file| file.path.as_mut())
            .for_each(|path| *path = map(path));
        self.tuning
            .iter_mut()
            .flat_map(TuningFiles::paths_mut)
            .for_each(|path| *path = map(path));
        let of_programs = self.programs.iter_mut();
        let of_programs = of_programs.filter_map(|program| match &mut program.choice {
            ProgramChoice::Preset(location) => Some(location),
            ProgramChoice::Scene(_) => None,
        });
        for location in self.preset.iter_mut().chain(of_programs) {
            if let PresetLocation::File(path) = location {
                *path = map(path);
            }
        }
        if let Some(other) = self
            .compare
            .as_mut()
            .and_then(|compare| compare.other.as_mut())
        {
            other.selection.map_paths(map);
        }
    }
}

/// Everything that is heard, as saved in presets and slots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SoundState {
    /// Parameter values.
    pub parameters: ParameterValues,
    /// Model, macro bindings, latent knobs and cabinet; fields that belong to a project are
    /// ignored.
    pub selection: Box<InstanceState>,
}

/// Slots A and B, as saved in projects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompareState {
    /// True if slot B is active. The active slot's sound is the rest of the project.
    #[serde(rename = "b_is_heard")]
    pub b_is_active: bool,
    /// Sound in the other slot, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<SoundState>,
}

/// Scale and theme of the window, and its tuner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowSettings {
    /// Scale of the contents; 1 is 100 %.
    #[serde(deserialize_with = "finite")]
    pub scale: f32,
    /// Colour theme.
    pub theme: WindowTheme,
    /// Tuner.
    #[serde(skip_serializing_if = "TunerSettings::is_default")]
    pub tuner: TunerSettings,
}

/// Settings of the tuner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TunerSettings {
    /// Frequency of A4, Hz.
    #[serde(deserialize_with = "finite")]
    pub reference_hz: f32,
    /// True if the output is muted while the tuner is open.
    pub mute: bool,
}

impl Default for TunerSettings {
    fn default() -> Self {
        Self {
            reference_hz: 440.0,
            mute: false,
        }
    }
}

impl TunerSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Colour theme of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowTheme {
    /// Light on dark.
    Dark,
    /// Dark on light.
    Light,
    /// The system's preference, where it is known. Stands for unknown themes as well.
    #[default]
    #[serde(other)]
    System,
}

impl Default for WindowSettings {
    fn default() -> Self {
        Self {
            scale: 1.0,
            theme: WindowTheme::default(),
            tuner: TunerSettings::default(),
        }
    }
}

impl WindowSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::executor::{Backend, Device, Precision};

    use super::*;
    use crate::parameter_values::ParameterValue;

    #[test]
    fn the_rate_conversion_is_saved_and_invalid_ones_are_ignored() {
        let saved = InstanceState {
            resampling: Resampling::LinearPhase,
            ..InstanceState::default()
        };
        let text = serde_json::to_string(&saved).unwrap();
        assert!(text.contains(r#""resampling":"linear-phase""#), "{text}");
        assert_eq!(
            serde_json::from_str::<InstanceState>(&text)
                .unwrap()
                .resampling,
            Resampling::LinearPhase
        );
        assert!(
            !serde_json::to_string(&InstanceState::default())
                .unwrap()
                .contains("resampling")
        );
        let later = r#"{ "model": { "hash": "x" }, "resampling": "clairvoyant" }"#;
        let later = serde_json::from_str::<InstanceState>(later).unwrap();
        assert_eq!(
            (later.model.hash.as_str(), later.resampling),
            ("x", Resampling::LowLatency)
        );
    }

    #[test]
    fn the_executor_is_saved_and_invalid_ones_are_ignored() {
        let executor = ExecutorSelection {
            backend: Backend::Torch,
            device: Device::Cuda(0),
            precision: Precision::F16,
        };
        let saved = InstanceState {
            executor,
            ..InstanceState::default()
        };
        let text = serde_json::to_string(&saved).unwrap();
        assert!(
            text.contains(r#""running":{"executor":"torch","device":"cuda:0","precision":"f16"}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<InstanceState>(&text).unwrap(), saved);
        let plain = serde_json::to_string(&InstanceState::default()).unwrap();
        assert!(!plain.contains("running"));
        assert_eq!(
            serde_json::from_str::<InstanceState>(&plain)
                .unwrap()
                .executor,
            ExecutorSelection::default()
        );
        let later =
            r#"{ "model": { "hash": "x" }, "running": { "executor": "abacus", "device": 7 } }"#;
        let later: InstanceState = serde_json::from_str(later).unwrap();
        assert_eq!(
            (later.model.hash.as_str(), later.executor),
            ("x", ExecutorSelection::default())
        );
        // A value of another type does not lose the model either.
        for nonsense in ["null", "7", "\"torch\"", "[]"] {
            let text = format!(r#"{{ "model": {{ "hash": "x" }}, "running": {nonsense} }}"#);
            let saved: InstanceState = serde_json::from_str(&text).unwrap();
            assert_eq!(
                (saved.model.hash.as_str(), saved.executor),
                ("x", ExecutorSelection::default()),
                "{nonsense}"
            );
        }
    }

    #[test]
    fn window_settings_are_saved_and_unknown_themes_are_ignored() {
        let saved = InstanceState {
            window: WindowSettings {
                scale: 1.5,
                theme: WindowTheme::Light,
                tuner: TunerSettings {
                    reference_hz: 442.0,
                    mute: true,
                },
            },
            ..InstanceState::default()
        };
        let text = serde_json::to_string(&saved).unwrap();
        assert_eq!(serde_json::from_str::<InstanceState>(&text).unwrap(), saved);
        assert!(
            !serde_json::to_string(&InstanceState::default())
                .unwrap()
                .contains("look")
        );
        // A scale beyond the range of its type gives the default, and does not lose the model.
        let far: InstanceState =
            serde_json::from_str(r#"{ "model": { "hash": "x" }, "look": { "scale": 1e39 } }"#)
                .unwrap();
        assert_eq!(
            (far.model.hash.as_str(), far.window),
            ("x", WindowSettings::default())
        );
        let later: InstanceState =
            serde_json::from_str(r#"{ "look": { "theme": "plaid" } }"#).unwrap();
        assert_eq!(later.window, WindowSettings::default());
    }

    #[test]
    fn slots_are_saved_and_invalid_ones_do_not_lose_the_model() {
        let parameters = [
            ("mix".to_owned(), ParameterValue::Number(0.3)),
            ("driver".to_owned(), ParameterValue::Choice("worker".into())),
        ];
        let other = SoundState {
            parameters: parameters.into(),
            selection: Box::default(),
        };
        let saved = InstanceState {
            compare: Some(CompareState {
                b_is_active: true,
                other: Some(other),
            }),
            ..InstanceState::default()
        };
        let text = serde_json::to_string(&saved).unwrap();
        assert_eq!(serde_json::from_str::<InstanceState>(&text).unwrap(), saved);
        assert!(
            !serde_json::to_string(&InstanceState::default())
                .unwrap()
                .contains("compare")
        );
        let later = r#"{ "model": { "hash": "x" }, "compare": { "other": { "parameters": { "mix": [null] } } } }"#;
        assert_eq!(
            serde_json::from_str::<InstanceState>(later)
                .unwrap()
                .model
                .hash,
            "x"
        );
    }
}
