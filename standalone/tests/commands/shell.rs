//! Completions and man pages.

use ondes_player::library::{BUNDLED, BundledModel};

use crate::common::Folder;

fn printed(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(arguments);
    assert_eq!(
        (output.status.code(), output.stderr.len()),
        (Some(0), 0),
        "{arguments:?}"
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn completions_know_commands_and_options() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&folder, &["completions", shell]);
        for word in [
            "render",
            "info",
            "bench",
            "import",
            "export",
            "completions",
            "normalize",
            "shard",
            "stems",
        ] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(folder.run(&["completions", "tcsh"]).status.code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn bash_completes() {
    let folder = Folder::new();
    std::fs::write(
        folder.path("ondes.bash"),
        printed(&folder, &["completions", "bash"]),
    )
    .expect("the file is written");
    let script = "source ./ondes.bash; COMP_WORDS=(ondes render --nor); COMP_CWORD=2; \
                  _ondes ondes --nor render; echo \"${COMPREPLY[@]}\"";
    let output = std::process::Command::new("bash")
        .args(["-c", script])
        .current_dir(folder.path("."))
        .output();
    assert_eq!(
        String::from_utf8_lossy(&output.expect("bash starts").stdout).trim(),
        "--normalize"
    );
    let complete = |words: &str, at: usize| {
        let script = format!(
            "source ./ondes.bash; COMP_WORDS=({words}); COMP_CWORD={at}; \
             _ondes_bundled ondes \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let output = std::process::Command::new("bash")
            .args(["-c", &script])
            .current_dir(folder.path("."))
            .output();
        String::from_utf8_lossy(&output.expect("bash starts").stdout)
            .trim()
            .to_owned()
    };
    assert_eq!(complete("ondes info viol", 2), "violin");
    assert_eq!(complete("ondes render vio", 2), "violin");
    assert_eq!(
        complete("ondes bench s", 2),
        "saxophone silicon-fuzz strings small.ondes",
        "files, too"
    );
    assert_eq!(complete("ondes render fuzz --cabinet 4", 4), "4x12");
    assert_eq!(complete("ondes render --nor", 2), "--normalize");
}

/// Help, completions and the book list what is bundled, from the tables of models and cabinets.
#[test]
fn bundled_names_are_listed() {
    let folder = Folder::new();
    let names: Vec<String> = BUNDLED.iter().map(BundledModel::short_name).collect();
    let helps = ["render", "info", "bench", "import", "export", "play"]
        .map(|command| vec![command, "--help"]);
    let scripts = ["bash", "zsh", "fish"].map(|shell| vec!["completions", shell]);
    for arguments in helps.iter().chain(&scripts) {
        let text = printed(&folder, arguments);
        assert!(
            names.iter().all(|name| text.contains(name.as_str())),
            "{arguments:?}: {text}"
        );
    }
    let render = printed(&folder, &["render", "--help"]);
    assert!(render.contains("Bundled cabinets: 1x12, 2x12, 4x12"));
    let page = format!("{}/../docs/src/command-line.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(page).expect("there is a page");
    for name in &names {
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/src/command-line.md does not list {name}"
        );
    }
}

#[test]
fn man_pages_have_options_and_examples() {
    let folder = Folder::new();
    let page = printed(&folder, &["man"]);
    assert!(page.contains(".TH ondes 1") && page.contains("ondes\\-render(1)"));
    let page = printed(&folder, &["man", "render"]);
    assert!(
        page.contains(".TH ondes\\-render 1") || page.contains(".TH ondes-render 1"),
        "{page}"
    );
    assert!(page.contains("\\-\\-normalize"));
    let notes = page
        .split_once(".SH NOTES\n.nf\n")
        .expect("there are notes")
        .1;
    assert!(
        notes.contains("\n    ondes render bowed.ondes \\-\\-midi song.mid \\-\\-out song.wav\n"),
        "{notes}"
    );
    folder.refuses(&["man", "sing"], &["unknown command \"sing\"", "render"]);
}

#[test]
fn every_help_has_examples() {
    let folder = Folder::new();
    for command in [
        &[][..],
        &["render"],
        &["info"],
        &["bench"],
        &["import"],
        &["export"],
        &["play"],
        &["trust"],
        &["completions"],
        &["man"],
    ] {
        let help = printed(&folder, &[command, &["--help"]].concat());
        assert!(help.contains("Examples:\n"), "{command:?}");
    }
}
