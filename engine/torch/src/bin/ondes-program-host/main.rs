//! Runs one TorchScript program for the engine, in a process without network, without write access
//! and without the right to start others. `ondes_engine::torch::process` starts it and tells how
//! they talk.
//!
//! It does not link libtorch but opens the library as the engine does.

#[cfg(target_os = "linux")]
mod connection;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod sandbox;

#[cfg(target_os = "linux")]
fn main() {
    if let Err(error) = host::run() {
        eprintln!("ondes-program-host: {error}; the engine of Ondes starts this program");
        std::process::exit(2);
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("ondes-program-host: for Linux only");
    std::process::exit(2);
}
