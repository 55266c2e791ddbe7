//! Tests of the plugin's window in a host's X11 window. They do nothing without a display, such as
//! Xvfb.
//!
//! They are a process of their own, so that the lock of [`parent_window::display`] excludes all
//! other tests.

#![cfg(target_os = "linux")]

mod clap;
mod file_drop;
mod parent_window;
mod vst3;

#[path = "../host/mod.rs"]
mod host;
#[path = "../vst3_module/mod.rs"]
mod vst3_module;
