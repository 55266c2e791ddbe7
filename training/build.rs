//! Builds what is written in C++, and sets the run-time search path of libtorch.

use std::path::Path;

const SOURCES: [&str; 3] = ["src/trainer/autocast.cpp", "src/trainer/memory.cpp", "src/trainer/profiler.cpp"];

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    SOURCES.iter().for_each(|source| println!("cargo:rerun-if-changed={source}"));
    if let Some(libtorch) = std::env::var_os("LIBTORCH") {
        let libtorch = Path::new(&libtorch);
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .warnings(false)
            .files(SOURCES)
            .include(libtorch.join("include"))
            .include(libtorch.join("include/torch/csrc/api/include"))
            .compile("ondes_training_cpp");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", libtorch.join("lib").display());
    }
}
