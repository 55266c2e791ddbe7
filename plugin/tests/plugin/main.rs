//! Tests of the built shared object in CLAP and VST3 hosts, without a window.

#[cfg(target_os = "linux")]
mod ardour;
mod behaviour;
mod buses;
mod codec;
mod fuzz;
mod generator;
mod host_parameters;
mod midi_learn;
mod model_size;
mod parameters;
mod play_modes;
mod presets;
mod stereo;
mod tail;
mod validator;
#[cfg(target_os = "linux")]
mod vst3;
#[cfg(target_os = "linux")]
mod vst3_orders;
#[cfg(target_os = "linux")]
mod vst3_parameters;

#[path = "../host/mod.rs"]
mod host;
#[path = "../../../player/src/test_model.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod test_model;
#[cfg(target_os = "linux")]
#[path = "../vst3_module/mod.rs"]
mod vst3_module;
