//! Methods and settings of a TorchScript program.

use std::path::PathBuf;

use ondes_engine::model::program::ProgramOptions;
use ondes_engine::model::{Kind, Model};
use ondes_engine::torch;

use super::InstanceViewModel;
use crate::view::MethodChoice;

/// Returns the methods to choose from; none for models that are no programs.
pub(super) fn method_choices(model: &Model) -> Vec<MethodChoice> {
    let Some(program) = model.program() else {
        return Vec::new();
    };
    let header = program.original.as_deref().unwrap_or(model).header();
    let whole = match header.kind {
        Kind::Codec => Some("encode and decode"),
        Kind::Generator => Some("prior and decode"),
        Kind::Effect | Kind::Instrument => None,
    };
    let whole = whole.map(|name| MethodChoice {
        name: name.into(),
        method: None,
    });
    let original = program.original.as_deref().unwrap_or(model);
    let played = original
        .program()
        .and_then(|program| program.calls.get("forward"))
        .map(|call| call.method.as_str());
    // What an effect plays by itself is no choice.
    let chosen = |name: &str| (whole.is_some() || played != Some(name)).then(|| name.to_owned());
    let methods = torch::method_names(model).into_iter();
    let methods: Vec<MethodChoice> = methods
        .map(|name| MethodChoice {
            name: name.into(),
            method: chosen(name),
        })
        .collect();
    whole.into_iter().chain(methods).collect()
}

impl InstanceViewModel {
    /// Chooses the sound of a setting, by its index.
    pub(super) fn set_program_sound(&mut self, index: usize, path: PathBuf) {
        let model = self.instance.model();
        let Some(program) = model.as_ref().and_then(|model| model.program()) else {
            return;
        };
        let Some(setting) = program.settings.get(index) else {
            return;
        };
        let mut options: ProgramOptions = program.options.clone();
        options.sounds.insert(setting.name.clone(), path);
        self.set_program(&setting.name, options);
    }

    /// Sets method and settings; `label` names the step of undo.
    pub(super) fn set_program(&mut self, label: &str, options: ProgramOptions) {
        // The instance shows the reason of a failure.
        self.record_change(label, |this| {
            drop(this.instance.set_program_options(options))
        });
    }
}
