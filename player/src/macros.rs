//! Macros: eight knobs that can be bound to any control of the model, and to settings of blocks.

use ondes_engine::model::KnobRange;
use ondes_engine::pipeline::ControlId;
pub use ondes_engine::rig::blocks::MACROS as MACRO_COUNT;

/// Position at which a macro leaves what it turns where that stands.
pub const MACRO_CENTRE: f32 = KnobRange::CENTRE;

/// Name of the control for the release time of notes, ms.
pub const RELEASE_CONTROL: ControlId = ControlId::new("release");

/// Controls of a model, as the audio thread sets them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControlMapping {
    /// Controls and ranges of the macros; `None` for a macro that turns no control.
    pub macros: [Option<(ControlId, KnobRange)>; MACRO_COUNT],
    /// Values of the latent knobs that were turned. A macro that turns the same control takes
    /// precedence.
    pub latents: Vec<(ControlId, f32)>,
    /// Number by which [`Session::active_model`](ondes_engine::realtime::Session::active_model)
    /// identifies the model.
    pub model: u64,
}
