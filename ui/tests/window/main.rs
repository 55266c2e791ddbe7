//! The window under a user's pointer, keyboard and assistive technology.

mod browser;
mod chain;
mod consent;
mod fake;
mod geometry;
mod hands;
mod header;
mod knobs;
mod pad;
mod pictures;
mod play;
mod presets;
mod raster;
mod rig;
mod scenes;
mod sizes;
mod tooltips;
mod tuner;
mod undo;
mod whole;
