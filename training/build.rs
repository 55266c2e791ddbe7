//! Sets the run-time search path of libtorch.

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    if let Some(libtorch) = std::env::var_os("LIBTORCH") {
        let library = std::path::Path::new(&libtorch).join("lib");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", library.display());
    }
}
