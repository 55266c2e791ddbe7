//! The window in the hands of a user: pointer, keyboard, and those who see it through other means.

mod deeds;
mod fake;
mod pictures;
mod raster;
