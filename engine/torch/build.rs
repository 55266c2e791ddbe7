//! Builds what is written in C++, and lets the library and the tests of this package find libtorch
//! at run time.

use std::path::Path;

const SOURCES: [&str; 2] = ["src/ops/recurrence.cpp", "src/script/script.cpp"];

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    SOURCES
        .iter()
        .for_each(|source| println!("cargo:rerun-if-changed={source}"));
    let libtorch = std::env::var_os("LIBTORCH").unwrap_or_default();
    let libtorch = Path::new(&libtorch);
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").warnings(false).files(SOURCES);
    for headers in ["include", "include/torch/csrc/api/include"] {
        build.include(libtorch.join(headers));
    }
    build.compile("ondes_torch_cpp");
    println!("cargo:rerun-if-env-changed=ONDES_TORCH_RPATH");
    // The engine opens libtorch before the library; this is for what links it otherwise. What is
    // given away says where to look itself.
    let library = std::env::var("ONDES_TORCH_RPATH")
        .unwrap_or_else(|_| libtorch.join("lib").display().to_string());
    println!("cargo:rustc-link-arg=-Wl,-rpath,{library}");
}
