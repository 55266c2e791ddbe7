//! Builds the book and the API documentation.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::markdown;
use crate::process::{build_folder, cache, cargo, from_root, root, run, works};
use crate::setup::{Purpose, setup};

/// The release of mdBook that is installed where none is found.
const MDBOOK_VERSION: &str = "0.5.4";

/// Checks links, anchors and the table of contents.
///
/// # Errors
/// Lists broken links.
pub fn check() -> anyhow::Result<()> {
    let [files, links] = markdown::check(root())?;
    println!("documentation: {links} links in {files} files resolve");
    Ok(())
}

/// Builds the API documentation into `target/doc` and the book into `target/doc/book`.
///
/// # Errors
/// A link is broken, mdBook cannot be installed, or rustdoc or mdBook fails.
pub fn build() -> anyhow::Result<()> {
    check()?;
    setup(Purpose::Building)?;
    let mut rustdoc = cargo();
    rustdoc
        .args(["doc", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    // Crates that link libtorch are documented only where it is installed.
    if std::env::var_os("LIBTORCH").is_some_and(|folder| root().join(folder).join("lib").is_dir()) {
        rustdoc.arg("--workspace");
    }
    run(&mut rustdoc)?;
    let folder = build_folder().join("doc");
    let book = folder.join("book");
    run(Command::new(mdbook()?)
        .arg("build")
        .arg("--dest-dir")
        .arg(&book)
        .arg(root().join("docs")))?;
    println!("book: {}", from_root(&book.join("index.html")));
    println!(
        "API:  {}",
        from_root(&folder.join("ondes_engine/index.html"))
    );
    Ok(())
}

/// Returns the mdBook program: the installed one, or one of our own in the user's cache, which
/// takes minutes to build once.
fn mdbook() -> anyhow::Result<PathBuf> {
    if works("mdbook", &["--version"]) {
        return Ok("mdbook".into());
    }
    let tools = cache()
        .context("mdbook is not installed")?
        .join(format!("mdbook-{MDBOOK_VERSION}"));
    let program = tools
        .join("bin")
        .join(format!("mdbook{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        println!("mdBook {MDBOOK_VERSION}: building it, once");
        let mut install = cargo();
        install.args(["install", "mdbook", "--locked", "--version", MDBOOK_VERSION]);
        // Without its development server.
        run(install
            .args(["--no-default-features", "--features", "search", "--root"])
            .arg(&tools))?;
    }
    Ok(program)
}
