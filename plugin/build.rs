//! Keeps the shared object in memory once a host has loaded it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The engine's loader and worker threads live as long as the process: their code must not be unmapped when a host
    // that scanned us lets go of the file.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
