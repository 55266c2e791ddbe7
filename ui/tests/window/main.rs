//! The window in the hands of a user: pointer, keyboard, and those who see it through other means.

mod browser;
mod chain;
mod fake;
mod hands;
mod header;
mod knobs;
mod pad;
mod pictures;
mod play;
mod presets;
mod raster;
mod scenes;
mod whole;
