//! Controls of models.

use ondes_engine::model::{Control, Model};

/// Returns the control of that name.
pub(crate) fn control<'a>(model: &'a Model, name: &str) -> Option<&'a Control> {
    let controls = &model.header().controls;
    controls.iter().find(|control| control.name == name)
}
