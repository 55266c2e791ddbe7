//! The recorder, driven like an audio callback: the files contain what was pushed.

mod allocation;
mod common;
mod disk;
mod exact;
mod formats;
mod killed;
