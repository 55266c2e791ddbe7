//! One instance of the instrument or the effect: parameters, presets, state and player, without a
//! window or a plugin framework. The plugin holds one, the app one per track.
//!
//! In reading order: [`parameter`] is the parameter table ([`parameter_docs`] documents it), with
//! [`value_format`] and [`choice`] for texts and options. A [`parameter_source`] supplies current
//! values, from the host's framework or a [`parameter_store`], and [`player_parameters`] is their
//! form for the audio thread. [`macros`] turn the [`model_controls`] of the loaded model.
//! [`player`] runs on the audio thread: it plays the engine's session, with [`tail_tracker`] and
//! [`sleep_state`] for silence, [`monitor`] for meters and [`tuner`] for the input of a tuner.
//! [`instance`] is what window, host and player share: the selection of a model ([`library`]) and a
//! [`cabinet`], blocks before and after it ([`rig`]), [`midi_bindings`] and [`compare_slots`]; a [`host_notifier`] tells a plugin's host
//! of changes. [`state`] is what projects save and [`preset`] what presets save, with
//! [`parameter_values`]; [`snapshot`] is the same in memory, and [`history`] undoes changes. Paths
//! in their files are as [`saved_path`] says; [`folder`] lists those in the user's folders.
//! [`trust`] remembers which TorchScript programs may run.
//!
//! # Playing an instance
//! [`InstanceHandle::new`](instance::InstanceHandle::new) creates one, and
//! [`set_parameter_source`](instance::InstanceHandle::set_parameter_source) connects it with its
//! parameters, such as a [`ParameterStore`](parameter_store::ParameterStore). Its
//! [`session`](instance::InstanceHandle::session) gives the audio thread a session for a sample
//! rate and a block size, which a [`Player`](player::Player) plays with the
//! [`player_parameters`](parameter_source::ParameterSource::player_parameters) of each block.
//! [`InstanceHandle::state`](instance::InstanceHandle::state) and
//! [`ParameterStore::values`](parameter_store::ParameterStore::values) are saved with a project.

#![forbid(unsafe_code)]

pub mod cabinet;
pub mod choice;
pub mod compare_slots;
pub mod folder;
pub mod history;
pub mod host_notifier;
pub mod instance;
pub mod library;
pub mod macros;
pub mod midi_bindings;
pub mod model_controls;
pub mod monitor;
pub mod parameter;
pub mod parameter_docs;
pub mod parameter_source;
pub mod parameter_store;
pub mod parameter_values;
pub mod player;
pub mod player_parameters;
pub mod preset;
pub mod product;
pub mod programs;
pub mod rig;
pub mod saved_path;
pub mod sleep_state;
pub mod snapshot;
pub mod state;
pub mod tail_tracker;
#[cfg(test)]
mod test_model;
pub mod trust;
pub mod tuner;
pub mod tuning;
pub mod value_format;
