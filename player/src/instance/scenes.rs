//! Changing between scenes.

use std::sync::atomic::Ordering::Relaxed;

use super::InstanceHandle;
use super::sound::{apply_values, values};
use crate::parameter::{Parameter, ParameterScope, SCENE};
use crate::parameter_source::{ParameterSetter, ParameterSource};
use crate::rig::scene::{Scene, Scenes};

impl InstanceHandle {
    /// Returns the scenes.
    #[must_use]
    pub fn scenes(&self) -> Scenes {
        self.read_state(|state| state.scenes.clone())
    }

    /// Names the scene that is heard.
    pub fn rename_scene(&self, name: String) {
        self.inner().state.scenes.rename(name);
        self.host_notifier.mark_state_changed();
    }

    /// Goes to the scene that the parameter [`SCENE`] asks for, if it has changed, whoever has
    /// changed it: the host, a MIDI controller or the window. Else the parameter follows the scene,
    /// such as that of a preset. Takes steps to the scenes beside it, which pedals ask for. Not for
    /// the audio thread.
    pub fn follow_scene(&self, source: &dyn ParameterSource, setter: &impl ParameterSetter) {
        let asked = source.scene();
        let active = self.read_state(|state| state.scenes.active);
        let steps = self.audio.scene_steps.swap(0, Relaxed);
        if steps != 0 {
            let beside = self.read_state(|state| state.scenes.beside(steps));
            if beside != active {
                self.go_to_scene(beside, source, setter);
                self.show_scene(beside, setter);
            }
            return;
        }
        if self.audio.scene.swap(asked, Relaxed) != asked {
            if asked != active {
                self.go_to_scene(asked, source, setter);
            }
        } else if asked != active {
            self.show_scene(active, setter);
        }
    }

    /// Sets the parameter to the scene that is heard.
    fn show_scene(&self, active: usize, setter: &impl ParameterSetter) {
        self.audio.scene.store(active, Relaxed);
        set_scene(setter, active);
    }

    fn go_to_scene(
        &self,
        index: usize,
        source: &dyn ParameterSource,
        setter: &impl ParameterSetter,
    ) {
        let values = values(source, |scope| scope == ParameterScope::Sound);
        let mut blocks = self.blocks();
        let now = Scene::new(values, &blocks, self.branches());
        let scene = self.inner().state.scenes.go_to(index, now);
        if let Some(scene) = scene {
            scene.apply(&mut blocks);
            self.set_blocks(blocks);
            if let Some(branches) = scene.branches {
                self.set_branches(branches);
            }
            apply_values(source, setter, &scene.parameters);
        }
        self.host_notifier.mark_state_changed();
    }
}

/// Sets the parameter to a scene, from 0.
pub(super) fn set_scene(setter: &impl ParameterSetter, scene: usize) {
    if let Some(parameter) = Parameter::get(SCENE) {
        setter.begin_gesture(SCENE);
        setter.set_normalized(SCENE, parameter.normalize(scene as f32 + 1.0));
        setter.end_gesture(SCENE);
    }
}
