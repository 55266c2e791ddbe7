//! The window without devices: plain data to draw, commands as the result.

mod commands;
mod fake_app;
mod learn;
mod pictures;
#[path = "../../../ui/tests/window/raster.rs"]
mod raster;
mod tooltips;
