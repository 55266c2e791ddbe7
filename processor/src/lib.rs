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
//! [`Shared::new`](shared::Shared::new) begins it, and [`Shared::listen_to`](shared::Shared::listen_to) tells it of its
//! board, such as a new [`Panel`](panel::Panel). For sound, [`Shared::remote`](shared::Shared::remote) gives a session
//! for a rate and a block, and a [`Player`](player::Player) plays it, told by [`Board::knobs`](board::Board::knobs) at
//! each block where everything stands. A [`Desk`](desk::Desk) shows it in an [`ondes_ui::Window`] with [`desk::show`].
//! What is saved is [`Shared::saved`](shared::Shared::saved) and [`Panel::saved`](panel::Panel::saved).

#![forbid(unsafe_code)]

pub mod board;
pub mod cabinet;
pub mod choice;
pub mod controllers;
pub mod controls;
pub mod desk;
pub mod dialog;
pub mod library;
pub mod macros;
pub mod panel;
pub mod parameter;
pub mod player;
pub mod preset;
pub mod rest;
mod retold;
pub mod ringing;
pub mod shared;
pub mod state;
#[cfg(test)]
mod tests;
pub mod text;
