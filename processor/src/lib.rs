//! One instrument or effect as its player has it in hand: its model, its knobs, its presets, and what a window shows of
//! it. Whoever holds it, a DAW through the plugin or the app, knows how sound gets in and out; here it is known what is
//! played.
//!
//! In reading order: [`parameter`] is the table of all that can be turned, [`text`] how its values are said, [`choice`]
//! what some of them choose between. A [`board`] is where they all stand, the holder's own or a [`panel`] of ours.
//! [`macros`] are eight of them that turn whatever [`controls`] a model has, and [`player`] is what the audio thread does
//! with them around the engine's session: [`ringing`] says how long that sounds by itself, [`rest`] tells the holder.
//! [`shared`] is what a window, a state and the player have in common: [`controllers`] is what MIDI turns, [`state`] what
//! is saved with a project, [`preset`] what is kept of a sound, [`library`] finds models again, [`cabinet`]
//! does so with impulse responses and brings them to the audio thread, and [`desk`] is what a
//! window shows; [`dialog`] asks for files.
//!
//! # Holding one
//! [`InstanceHandle::new`](shared::Shared::new) begins it, and [`InstanceHandle::listen_to`](shared::Shared::listen_to) tells it of its
//! board, such as a new [`ParameterStore`](panel::Panel). For sound, [`InstanceHandle::remote`](shared::Shared::remote) gives a session
//! for a rate and a block, and a [`Player`](player::Player) plays it, told by [`ParameterSource::knobs`](board::Board::knobs) at
//! each block where everything stands. A [`Desk`](desk::Desk) shows it in an [`ondes_ui::Window`] with [`desk::show`].
//! What is saved is [`InstanceHandle::saved`](shared::Shared::saved) and [`ParameterStore::saved`](panel::Panel::saved).

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
