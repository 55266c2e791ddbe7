//! Builds what is written in C++, and sets the run-time search path of libtorch.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    println!("cargo:rerun-if-changed=src/trainer/autocast.cpp");
    if let Some(libtorch) = std::env::var_os("LIBTORCH") {
        let libtorch = Path::new(&libtorch);
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .warnings(false)
            .file("src/trainer/autocast.cpp")
            .include(libtorch.join("include"))
            .compile("ondes_autocast");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", libtorch.join("lib").display());
    }
}
