//! The window in the hands of a user, without devices: what is drawn is plain data, what is done comes out as commands.

mod deeds;
mod fake;
mod learn;
mod pictures;
#[path = "../../../ui/tests/window/raster.rs"]
mod raster;
