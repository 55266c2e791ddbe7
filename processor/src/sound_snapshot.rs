//! Everything that is heard of an instance, in memory.

use crate::instance::SelectionSnapshot;
use crate::parameter_values::ParameterValues;

/// Everything that is heard: the values of the parameters, and the model with its macro bindings and cabinet.
#[derive(Clone)]
pub struct SoundSnapshot {
    /// Parameter values by id; parameters that are not named keep their values.
    pub values: ParameterValues,
    /// Model, macro bindings, latent knobs and cabinet.
    pub selection: SelectionSnapshot,
}
