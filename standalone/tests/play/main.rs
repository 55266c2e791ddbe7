//! The rack, driven directly, and `ondes play` on a JACK server without hardware.

#![cfg(target_os = "linux")]

mod allocation;
#[path = "../commands/common.rs"]
#[allow(dead_code, reason = "it is made for the tests of the commands")]
mod common;
mod errors;
mod losses;
#[path = "../devices/peer.rs"]
#[allow(dead_code, reason = "it is made for the tests of the devices")]
mod peer;
mod program;
mod rack;
#[path = "../record/common.rs"]
#[allow(dead_code, reason = "it is made for the tests of the recorder")]
mod recording;
mod rendered;
mod same;
#[path = "../devices/server.rs"]
#[allow(dead_code, reason = "it is made for the tests of the devices")]
mod server;
mod session;
mod soak;
mod torch;
