//! A rig: models, impulse responses and [effects](crate::effects) as blocks one after the other.
//!
//! [`blocks`] plays them, and lets them come, go and move; [`model_effect`] and [`response_effect`]
//! make an effect of a model and of an impulse response. Neighbours may be in two [`branches`].

pub mod blocks;
pub mod branches;
pub mod model_effect;
pub mod response_effect;
