//! Links the shared object so that it stays in memory once a host has loaded it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The engine's loader and worker threads live as long as the process; their code must stay mapped when a host closes
    // the file after a scan.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
