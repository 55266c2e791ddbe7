//! The rig of an instance: models, impulse responses and effects as blocks before and after its
//! model, as they are saved ([`block_state`] with what turns it, [`block_macros`], and [`branch_state`]) and on their way to the audio thread ([`handover`]);
//! and the [`scene`]s of their settings.

pub mod block_macros;
pub mod block_state;
pub mod branch_state;
pub mod handover;
mod model_block;
pub mod scene;
