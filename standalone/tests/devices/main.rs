//! Sound and MIDI through servers that need no hardware: JACK with its dummy driver, and ALSA that
//! plays into it.
//!
//! JACK's library knows one server for a whole process, by a variable. So each test runs in a
//! process of its own, with a server of its own: see [`server::alone`].

#![cfg(target_os = "linux")]

mod allocation;
mod alsa;
mod audio;
mod command;
mod midi;
mod peer;
mod server;
mod window;
