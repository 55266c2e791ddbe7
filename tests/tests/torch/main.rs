//! libtorch that is missing, broken or fails while it plays. No test needs a real one.

#![cfg(target_os = "linux")]

mod fallback;
mod library;
