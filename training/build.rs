//! Builds what is written in C++, and sets the run-time search path of libtorch.

use std::path::Path;

const SOURCES: [&str; 4] = [
    "src/data/upload.cpp",
    "src/trainer/autocast.cpp",
    "src/trainer/memory.cpp",
    "src/trainer/profiler.cpp",
];
/// Needs headers of Gloo, which libtorch does not bring: those that it includes lead to our
/// declarations.
const DISTRIBUTED: [&str; 2] = ["src/distributed/c10d.cpp", "src/distributed/gloo.h"];
const GLOO_HEADERS: [&str; 5] = [
    "algorithm.h",
    "common/error.h",
    "context.h",
    "rendezvous/store.h",
    "transport/device.h",
];

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    SOURCES
        .iter()
        .chain(&DISTRIBUTED)
        .for_each(|source| println!("cargo:rerun-if-changed={source}"));
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
        compile_distributed(libtorch);
        // Not through the checkout: an installed copy does not need it.
        let library = libtorch.join("lib");
        let library = library.canonicalize().unwrap_or(library);
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", library.display());
    }
}

fn compile_distributed(libtorch: &Path) {
    let headers = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("headers");
    let ours = std::env::current_dir()
        .expect("the folder of the crate")
        .join(DISTRIBUTED[1]);
    for header in GLOO_HEADERS {
        let path = headers.join("gloo").join(header);
        std::fs::create_dir_all(path.parent().expect("it has one"))
            .expect("the folder can be created");
        std::fs::write(&path, format!("#include \"{}\"\n", ours.display()))
            .expect("the header can be written");
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .warnings(false)
        .define("USE_DISTRIBUTED", None)
        .define("USE_C10D_GLOO", None)
        .file(DISTRIBUTED[0])
        .include(&headers)
        .include(libtorch.join("include"))
        .include(libtorch.join("include/torch/csrc/api/include"))
        .compile("ondes_training_c10d");
}
