//! Blocks as saved in projects and presets.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ondes_engine::chain::ImpulseFile;
use ondes_engine::effects::{EffectKind, EffectParameter, effect};
use ondes_engine::executor;
use ondes_engine::model::Model;
use ondes_engine::rig::blocks::{LEVELS_DB, Side};
use ondes_engine::rig::branches::Lane;
use serde::{Deserialize, Serialize};

use super::branch_state::Branch;
use super::model_block;
use crate::cabinet;
use crate::cabinet::bundled::BUNDLED;
use crate::library::{self, FileReference};
use crate::parameter_values::nearest;

/// Id of the kind of blocks that are models.
pub const MODEL: &str = "model";
/// Id of the kind of blocks that are impulse responses.
pub const RESPONSE: &str = "response";

/// A block as saved. All fields but its kind are optional in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockState {
    /// [`MODEL`], [`RESPONSE`], or the id of an [effect](EffectKind::id). Unknown ones, such as of a
    /// later version, are kept and not heard.
    #[serde(alias = "effect")]
    pub block: String,
    /// The file of a model or an impulse response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileReference>,
    /// Content of the file, once it has been [read](Self::find).
    #[serde(skip)]
    pub content: Content,
    /// True if it is between the input and the model, false if it is after it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub before: bool,
    /// Branch that it is in. Neighbours in branches stand between the same split and mix; there is
    /// one split in a rig, and what is in branches elsewhere is not.
    #[serde(
        deserialize_with = "executor::value_or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub branch: Option<Branch>,
    /// True if the sound passes it unchanged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub off: bool,
    /// Share of the block beside the dry sound, 0 to 1; `None` for the default of its kind.
    #[serde(deserialize_with = "nearest", skip_serializing_if = "Option::is_none")]
    pub mix: Option<f32>,
    /// Level of both, dB, within [`LEVELS_DB`].
    #[serde(deserialize_with = "nearest", skip_serializing_if = "is_zero")]
    pub level: f32,
    /// Values of parameters that are not at their defaults, by id.
    #[serde(
        deserialize_with = "nearest",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub values: BTreeMap<String, f32>,
    /// Numbers, from 1, of the macros that turn settings, by their [ids](super::block_macros).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub macros: BTreeMap<String, usize>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(value: &f32) -> bool {
    *value == 0.0
}

/// Content of a block's file.
#[derive(Clone, Default)]
pub enum Content {
    /// Not read yet, or there is no file.
    #[default]
    Unread,
    /// A model with its parameters.
    Model(Arc<Model>, Arc<[EffectParameter]>),
    /// An impulse response.
    Response(Arc<ImpulseFile>),
    /// Not found, or of no use in a block; the reason in one line.
    Missing(Arc<str>),
}

/// Reads the files of all blocks, as [`BlockState::find`] does, and puts those before the model first.
pub(crate) fn find_all(blocks: &mut [BlockState]) {
    blocks.iter_mut().for_each(BlockState::find);
    blocks.sort_by_key(|block| !block.before);
}

/// The reference to the file says what is in it.
impl PartialEq for Content {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Unread => "Unread",
            Self::Model(..) => "Model",
            Self::Response(_) => "Response",
            Self::Missing(_) => "Missing",
        })
    }
}

/// Kind of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockKind<'a> {
    /// Name.
    pub name: &'a str,
    /// Description, one sentence.
    pub description: &'a str,
    /// Parameters, in the order of their values.
    pub parameters: &'a [EffectParameter],
    /// Share of the block beside the dry sound, 0 to 1, by default.
    pub mix: f32,
}

impl BlockState {
    /// Returns an effect with its defaults, after the model.
    #[must_use]
    pub fn of_effect(kind: &EffectKind) -> Self {
        Self {
            block: kind.id.into(),
            ..Self::default()
        }
    }

    /// Returns a block after the model, [`MODEL`] or [`RESPONSE`], of the file at a path, or of what
    /// is bundled under a name. Its file is yet to be [read](Self::find).
    #[must_use]
    pub fn of_file(block: &str, name: &str, path: Option<&Path>) -> Self {
        let file = FileReference {
            name: name.into(),
            path: path.map(Path::to_owned),
            ..FileReference::default()
        };
        Self {
            block: block.into(),
            file: Some(file),
            ..Self::default()
        }
    }

    /// Reads the file of a model or an impulse response, unless that is done. May take long. The
    /// reference then has its identity, and no embedded copy.
    pub fn find(&mut self) {
        let Some(file) = &mut self.file else {
            if [MODEL, RESPONSE].contains(&self.block.as_str()) {
                self.content = Content::Missing(format!("this {} has no file", self.block).into());
            }
            return;
        };
        let is_read = matches!(self.content, Content::Model(..) | Content::Response(_));
        let found = match self.block.as_str() {
            MODEL if !is_read => {
                file.find()
                    .map_err(|missing| missing.to_string())
                    .and_then(|(model, path)| {
                        let parameters = model_block::parameters(&model)?;
                        *file = FileReference::to(&model, path);
                        Ok(Content::Model(model, parameters.into()))
                    })
            }
            RESPONSE if !is_read => cabinet::find(file)
                .map_err(|missing| missing.describe("impulse response"))
                .map(|(response, path)| {
                    let bundled = BUNDLED
                        .iter()
                        .find(|bundled| path.is_none() && bundled.file().hash == response.hash);
                    let name = bundled.map_or_else(|| file.shown_name(), |known| known.name.into());
                    *file = FileReference {
                        name,
                        ..cabinet::reference(&response, path)
                    };
                    Content::Response(response)
                }),
            _ => return,
        };
        self.content = found.unwrap_or_else(|reason| Content::Missing(reason.into()));
    }

    /// Embeds its file, so that it can be saved with it, or removes an embedded copy. A copy of a
    /// file that is missing may be the only one left, and is kept.
    pub fn embed(&mut self, embed: bool) {
        let Some(file) = &mut self.file else { return };
        match (&self.content, embed) {
            (Content::Model(model, _), true) => {
                file.embedded = library::is_embeddable(model)
                    .then(|| library::to_base64(model))
                    .flatten();
            }
            (Content::Response(response), true) => file.embedded = cabinet::to_base64(response),
            (_, true) => {}
            (_, false) => file.embedded = None,
        }
    }

    /// Returns what it is; `None` if that is unknown, or its file is missing.
    #[must_use]
    pub fn kind(&self) -> Option<BlockKind<'_>> {
        let file = self.file.as_ref().map_or("", |file| &file.name);
        match &self.content {
            Content::Model(model, parameters) => Some(BlockKind {
                name: file,
                description: &model.header().card.description,
                parameters,
                mix: 1.0,
            }),
            Content::Response(_) => Some(BlockKind {
                name: file,
                description: "An impulse response, such as of a cabinet or a room",
                parameters: &[],
                mix: 1.0,
            }),
            Content::Unread => effect(&self.block).map(|kind| BlockKind {
                name: kind.name,
                description: kind.description,
                parameters: kind.parameters,
                mix: kind.mix,
            }),
            Content::Missing(_) => None,
        }
    }

    /// Returns the name to show, whether or not it is known.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match (self.kind(), &self.file) {
            (Some(kind), _) => kind.name.into(),
            (None, Some(file)) => file.shown_name().into(),
            (None, None) => self.block.as_str().into(),
        }
    }

    /// Returns why it is not heard, if it is not; one line.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        let unknown = "this version does not know the block; it is kept and not heard";
        let is_unknown = self.kind().is_none();
        self.missing().or(is_unknown.then_some(unknown))
    }

    /// Returns why its file is missing, or of no use, if so; one line.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        match &self.content {
            Content::Missing(reason) => Some(reason),
            _ => None,
        }
    }

    /// Returns its share beside the dry sound.
    #[must_use]
    pub fn mix(&self) -> f32 {
        let default = self.kind().map_or(1.0, |kind| kind.mix);
        self.mix
            .filter(|mix| !mix.is_nan())
            .map_or(default, |mix| mix.clamp(0.0, 1.0))
    }

    /// Returns its level, dB.
    #[must_use]
    pub fn level_db(&self) -> f32 {
        match self.level.is_nan() {
            true => 0.0,
            false => self.level.clamp(LEVELS_DB[0], LEVELS_DB[1]),
        }
    }

    /// Returns the value of a parameter; in range.
    #[must_use]
    pub fn value(&self, parameter: &EffectParameter) -> f32 {
        let value = self.values.get(&*parameter.id);
        value.map_or(parameter.default, |value| parameter.nearest(*value))
    }

    /// Sets the value of a parameter.
    pub fn set_value(&mut self, parameter: &EffectParameter, value: f32) {
        self.values
            .insert(parameter.id.clone().into_owned(), parameter.nearest(value));
    }

    /// Returns the values of all parameters, in their order.
    #[must_use]
    pub fn all_values(&self) -> Vec<f32> {
        let kind = self.kind();
        let parameters = kind.map_or(&[][..], |kind| kind.parameters);
        parameters
            .iter()
            .map(|parameter| self.value(parameter))
            .collect()
    }

    /// Returns whether it is of the same kind, and of the same file, with other settings perhaps.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let is_same_file = match (&self.file, &other.file) {
            (Some(file), Some(other)) if file.hash.is_empty() || other.hash.is_empty() => {
                file.name.eq_ignore_ascii_case(&other.name)
            }
            (Some(file), Some(other)) => file.hash == other.hash,
            (file, other) => file.is_none() && other.is_none(),
        };
        self.block == other.block && is_same_file
    }

    pub(super) fn lane(&self) -> Lane {
        match self.branch {
            None => Lane::Whole,
            Some(Branch::A) => Lane::First,
            Some(Branch::B) => Lane::Second,
        }
    }

    pub(super) fn side(&self) -> Side {
        match self.before {
            true => Side::Before,
            false => Side::After,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::branch_state::BranchState;
    use super::*;

    #[test]
    fn blocks_are_saved_with_what_is_not_at_its_default() {
        let kind = effect("delay").unwrap();
        let mut delay = BlockState::of_effect(kind);
        assert_eq!(
            serde_json::to_string(&delay).unwrap(),
            r#"{"block":"delay"}"#
        );
        delay.set_value(&kind.parameters[0], 1e9);
        (delay.before, delay.off, delay.mix) = (true, true, Some(0.7));
        let saved = serde_json::to_string(&delay).unwrap();
        assert_eq!(
            saved,
            r#"{"block":"delay","before":true,"off":true,"mix":0.7,"values":{"time":2000.0}}"#
        );
        assert_eq!(serde_json::from_str::<BlockState>(&saved).unwrap(), delay);
        let odd: BlockState = serde_json::from_str(
            r#"{"effect":"delay","mix":7,"level":1e9,"values":{"time":-3,"no":1}}"#,
        )
        .unwrap();
        assert_eq!((odd.mix(), odd.level_db()), (1.0, 24.0));
        assert_eq!(odd.value(&kind.parameters[0]), 1.0);
    }

    #[test]
    fn files_are_found_or_missing_with_a_reason() {
        let mut model = BlockState::of_file(MODEL, "triode", None);
        model.find();
        assert_eq!(model.name(), "Triode");
        assert!(model.problem().is_none() && !model.file.as_ref().unwrap().hash.is_empty());
        let mut again: BlockState =
            serde_json::from_str(&serde_json::to_string(&model).unwrap()).unwrap();
        assert!(again.kind().is_none());
        again.find();
        assert_eq!(again, model);
        assert_eq!(again.all_values(), model.all_values());

        let mut response = BlockState::of_file(RESPONSE, "4x12", None);
        response.find();
        let kind = response.kind().unwrap();
        assert_eq!(
            (kind.name, kind.parameters.len()),
            ("Ondes 4x12 closed back", 0)
        );

        let problem = |mut state: BlockState| {
            state.find();
            assert!(state.kind().is_none());
            state.problem().unwrap_or_default().to_owned()
        };
        let of_file = |block: &str, name: &str| problem(BlockState::of_file(block, name, None));
        assert!(of_file(MODEL, "Violin").contains("instrument"));
        assert!(of_file(MODEL, "nothing").contains("is missing"));
        assert!(of_file(RESPONSE, "nothing").contains("is missing"));
        let bare = |block: &str| {
            problem(BlockState {
                block: block.into(),
                ..BlockState::default()
            })
        };
        assert!(bare(MODEL).contains("no file"));
        assert!(bare("granulator").contains("does not know"));
    }

    #[test]
    fn those_before_the_model_come_first() {
        let at = |id: &str, before| BlockState {
            before,
            ..BlockState::of_effect(effect(id).unwrap())
        };
        let mut blocks = [at("delay", false), at("gate", true), at("reverb", false)];
        find_all(&mut blocks);
        assert_eq!(blocks.map(|block| block.block), ["gate", "delay", "reverb"]);
    }

    #[test]
    fn files_are_embedded_and_found_in_the_project() {
        let mut model = BlockState::of_file(MODEL, "triode", None);
        model.find();
        model.embed(true);
        let file = model.file.as_mut().unwrap();
        assert!(
            file.embedded
                .as_ref()
                .is_some_and(|text| text.len() > 1_000)
        );
        model.embed(false);
        assert!(model.file.unwrap().embedded.is_none());
    }

    #[test]
    fn numbers_that_are_too_large_can_be_saved_again() {
        // Lists of blocks are read in two steps, of which the first knows larger numbers.
        let state = serde_json::json!({
            "block": "delay", "mix": -9e99, "level": -4e82, "values": { "time": 1e300 }
        });
        let read: BlockState = serde_json::from_value(state).unwrap();
        assert_eq!((read.mix(), read.level_db()), (0.0, LEVELS_DB[0]));
        let saved = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<BlockState>(&saved).unwrap(), read);
        let state = serde_json::json!({ "delay": 1e99 });
        let branch: BranchState = serde_json::from_value(state).unwrap();
        let saved = serde_json::to_string(&branch).unwrap();
        assert_eq!(serde_json::from_str::<BranchState>(&saved).unwrap(), branch);
    }
}
