//! The set list.

use anyhow::Context as _;
use ondes_player::library::FileReference;

use super::AppState;

impl AppState {
    /// Adds the model of the selected track to the set list.
    pub(super) fn add_to_set_list(&mut self) -> anyhow::Result<()> {
        let Some(selected) = &self.selected else {
            return Ok(());
        };
        selected
            .instance
            .model()
            .context("the track has no model yet")?;
        let reference = selected.instance.state().model;
        self.app.mixer().set_list.push(FileReference {
            embedded: None,
            ..reference
        });
        Ok(())
    }

    /// Loads a model of the set list on the selected track.
    pub(super) fn play_from_set_list(&mut self, index: usize) {
        let reference = self.app.mixer().set_list.get(index).cloned();
        if let Some((reference, selected)) = reference.zip(self.selected.as_ref()) {
            self.app.mixer().request_model(selected.slot, reference);
        }
    }

    /// Swaps two entries of the set list, if both exist.
    pub(super) fn swap_in_set_list(&mut self, other: Option<usize>, index: usize) {
        let list = &mut self.app.mixer().set_list;
        if let Some(other) = other.filter(|other| index.max(*other) < list.len()) {
            list.swap(other, index);
        }
    }
}
