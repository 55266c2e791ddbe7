//! The recorder, driven as an audio callback drives it: what was pushed is in the files.

mod allocation;
mod common;
mod disk;
mod exact;
mod formats;
mod killed;
