//! One instrument or effect as a DAW or the app holds it: model, parameters, presets, state and player, without a user
//! interface.
//!
//! In reading order: [`parameter`] is the table of all parameters, with [`value_format`] for their texts and [`choice`]
//! for their options. A [`parameter_source`] holds the values: the host's plugin framework, or a [`parameter_store`].
//! [`macros`] turn the [`model_controls`] of whatever model is loaded. An [`instance`] is what all threads share, and
//! [`player`] is its part on the audio thread, with [`player_parameters`], [`tail_tracker`], [`sleep_state`] and
//! [`monitor`]. [`midi_bindings`] are learnt controllers. [`state`] is saved with a project, [`preset`] and
//! [`compare_slots`] hold sounds, [`library`] finds models again, and [`cabinet`] finds impulse responses.
//!
//! To hold an instance, create an [`InstanceHandle`](instance::InstanceHandle), give it a
//! [`ParameterSource`](parameter_source::ParameterSource), activate its session controller for a sample rate and block
//! length, and pass the session to a [`Player`](player::Player), which is called for every block.

#![forbid(unsafe_code)]

pub mod cabinet;
pub mod choice;
pub mod compare_slots;
pub mod instance;
pub mod library;
pub mod macros;
pub mod midi_bindings;
pub mod model_controls;
pub mod monitor;
mod on_built;
pub mod parameter;
pub mod parameter_source;
pub mod parameter_store;
pub mod parameter_values;
pub mod player;
pub mod player_parameters;
pub mod preset;
pub mod product;
pub mod sleep_state;
pub mod sound_snapshot;
pub mod state;
pub mod tail_tracker;
#[cfg(test)]
mod test_model;
pub mod value_format;
