//! Presets in the host's browser. `discovery` lists them, `preset_load` loads one by merging it
//! into the plugin's saved [`state`]. `state_as_preset` accepts preset files where a host loads
//! presets as states (VST3).

#[allow(unsafe_code, reason = "implements the CLAP ABI")]
pub(crate) mod discovery;
pub(crate) mod preset_load;
pub mod state;
pub(crate) mod state_as_preset;
#[allow(unsafe_code, reason = "passes memory to C functions")]
mod streams;
