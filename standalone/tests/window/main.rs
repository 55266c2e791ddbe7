//! The window without devices: plain data to draw, commands as the result.

mod book;
mod commands;
mod fake_app;
#[path = "../../../ui/tests/window/geometry.rs"]
mod geometry;
mod learn;
mod pictures;
#[path = "../../../ui/tests/window/raster.rs"]
mod raster;
mod sizes;
mod tooltips;
