//! Scenes: up to eight settings of a rig, to change between on stage.

use serde::{Deserialize, Serialize};

use super::block_state::BlockState;
use super::branch_state::BranchState;
use crate::library::FileReference;
use crate::parameter_values::ParameterValues;

/// Number of scenes.
pub const SCENES: usize = 8;

/// Scenes as saved. All share the model and the blocks, and differ in their settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scenes {
    /// The scene that is heard, from 0; its settings are those of the instance itself, and what is
    /// kept of it in `list` is its name.
    pub active: usize,
    /// The scenes; at most [`SCENES`].
    pub list: Vec<Option<Scene>>,
}

/// A scene as saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scene {
    /// Name; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Values of the parameters that belong to the sound.
    pub parameters: ParameterValues,
    /// Settings of the blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockState>,
    /// Settings of the two branches; `None` leaves them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branches: Option<[BranchState; 2]>,
}

impl Scenes {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns a scene; `None` if it was never heard.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Scene> {
        self.list.get(index)?.as_ref()
    }

    /// Returns whether there is more than the one that is heard.
    #[must_use]
    pub fn are_used(&self) -> bool {
        let others = self.list.iter().enumerate();
        others
            .filter(|(index, scene)| *index != self.active && scene.is_some())
            .count()
            > 0
    }

    /// Returns the scene that is some steps on from the one that is heard, or back, among those that
    /// are used; after the last comes the first.
    #[must_use]
    pub fn beside(&self, steps: i32) -> usize {
        let is_used = |index: &usize| self.get(*index).is_some() || *index == self.active;
        let used: Vec<usize> = (0..SCENES).filter(is_used).collect();
        let place = used.iter().position(|index| *index == self.active);
        let next = (place.unwrap_or_default() as i32 + steps).rem_euclid(used.len().max(1) as i32);
        used.get(next as usize).copied().unwrap_or_default()
    }

    /// Names the scene that is heard.
    pub fn rename(&mut self, name: String) {
        self.active_mut().name = name;
    }

    /// Keeps the settings of the scene that is heard, and goes to another one. Returns the settings
    /// to apply; `None` if nothing is known of it, so that it becomes a copy.
    pub(crate) fn go_to(&mut self, index: usize, now: Scene) -> Option<Scene> {
        let active = self.active_mut();
        *active = Scene {
            name: std::mem::take(&mut active.name),
            ..now
        };
        self.active = index;
        let known = self.get(index).cloned();
        // It has a place from now on.
        self.active_mut();
        known.filter(|scene| !scene.parameters.is_empty())
    }

    fn active_mut(&mut self) -> &mut Scene {
        self.active = self.active.min(SCENES - 1);
        self.list.truncate(SCENES);
        if self.list.len() <= self.active {
            self.list.resize(self.active + 1, None);
        }
        self.list[self.active].get_or_insert_default()
    }
}

impl Scene {
    /// Takes a scene of these values, blocks and branches.
    pub(crate) fn new(
        parameters: ParameterValues,
        blocks: &[BlockState],
        branches: [BranchState; 2],
    ) -> Self {
        // What is in the files, and where they are, belongs to the rig.
        let blocks = blocks.iter().map(|block| BlockState {
            content: Default::default(),
            file: block.file.as_ref().map(|file| FileReference {
                path: None,
                embedded: None,
                ..file.clone()
            }),
            ..block.clone()
        });
        Self {
            name: String::new(),
            parameters,
            blocks: blocks.collect(),
            branches: Some(branches),
        }
    }

    /// Gives blocks the settings of those that they were in the scene: the first chorus those of the
    /// first chorus. What the scene does not know stays as it is.
    pub(crate) fn apply(&self, blocks: &mut [BlockState]) {
        let mut known: Vec<&BlockState> = self.blocks.iter().collect();
        for block in blocks {
            let Some(place) = known.iter().position(|known| known.is_same_as(block)) else {
                continue;
            };
            let known = known.remove(place);
            (block.off, block.mix, block.level) = (known.off, known.mix, known.level);
            block.values.clone_from(&known.values);
        }
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::effects::effect;

    use super::super::block_state::MODEL;
    use super::*;
    use crate::parameter_values::ParameterValue;

    fn block(id: &str, level: f32) -> BlockState {
        BlockState {
            level,
            ..BlockState::of_effect(effect(id).unwrap())
        }
    }

    fn scene(mix: f32, blocks: &[BlockState]) -> Scene {
        let mix = ("mix".to_owned(), ParameterValue::Number(mix));
        Scene::new([mix].into(), blocks, Default::default())
    }

    #[test]
    fn scenes_keep_what_was_heard_and_new_ones_are_copies() {
        let mut scenes = Scenes::default();
        assert!(scenes.is_default() && !scenes.are_used());
        scenes.rename("Verse".into());
        assert_eq!(scenes.go_to(2, scene(0.1, &[])), None);
        assert!(scenes.are_used());
        let verse = scenes.go_to(0, scene(0.9, &[])).unwrap();
        assert_eq!(
            (verse.name.as_str(), &verse),
            (
                "Verse",
                &Scene {
                    name: "Verse".into(),
                    ..scene(0.1, &[])
                }
            )
        );
        assert_eq!(scenes.go_to(2, scene(0.2, &[])), Some(scene(0.9, &[])));
        assert_eq!(
            scenes.get(0).unwrap().parameters,
            scene(0.2, &[]).parameters
        );
        let saved = serde_json::to_string(&scenes).unwrap();
        assert_eq!(serde_json::from_str::<Scenes>(&saved).unwrap(), scenes);
        let hostile: Scenes =
            serde_json::from_str(r#"{"active":999999999,"list":[null]}"#).unwrap();
        let mut hostile = hostile;
        assert_eq!(hostile.go_to(1, scene(0.1, &[])), None);
        assert!(hostile.list.len() <= SCENES && hostile.active == 1);
    }

    #[test]
    fn steps_go_round_the_scenes_that_are_used() {
        let mut scenes = Scenes::default();
        assert_eq!([1, -1].map(|steps| scenes.beside(steps)), [0, 0]);
        for index in [2, 5] {
            scenes.go_to(index, scene(0.1, &[]));
        }
        assert_eq!(
            [1, 2, 3, -1, -4, i32::MIN].map(|steps| scenes.beside(steps)),
            [0, 2, 5, 2, 2, 0]
        );
    }

    #[test]
    fn blocks_get_the_settings_of_their_kind_wherever_they_are() {
        let then = scene(
            1.0,
            &[
                block("delay", -1.0),
                block("chorus", -2.0),
                block("delay", -3.0),
            ],
        );
        let mut now = [
            block("chorus", 0.0),
            block("limiter", 5.0),
            block("delay", 0.0),
            block("delay", 0.0),
            block("delay", 7.0),
        ];
        then.apply(&mut now);
        assert_eq!(now.map(|block| block.level), [-2.0, 5.0, -1.0, -3.0, 7.0]);

        // People write names, and a block that was read has a hash.
        let named = |name: &str, level| BlockState {
            level,
            ..BlockState::of_file(MODEL, name, None)
        };
        let mut read = [named("Fuzz", 0.0), named("Triode", 0.0)];
        read.iter_mut().for_each(BlockState::find);
        scene(1.0, &[named("triode", 3.0)]).apply(&mut read);
        assert_eq!(read.map(|block| block.level), [0.0, 3.0]);
    }
}
