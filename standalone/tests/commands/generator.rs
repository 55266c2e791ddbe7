//! The bundled generator: by itself at a tempo, and by keys.

use crate::common::Folder;

#[test]
fn drums_play_at_a_tempo_and_the_same_for_the_same_seed() {
    let folder = Folder::new();
    let render = |out: &str, options: &[&str]| {
        let report = folder.json(&[&["render", "drums", "--seconds", "3", "--out", out], options].concat());
        assert_eq!((report["channels"].as_u64(), report["frames"].as_u64()), (Some(1), Some(144_000)), "{report}");
        std::fs::read(folder.path(out)).expect("it was written")
    };
    let slow = render("slow.wav", &["--tempo", "90"]);
    assert!(slow == render("again.wav", &["--tempo", "90"]));
    assert!(slow != render("fast.wav", &["--tempo", "120"]));
    assert!(slow != render("other.wav", &["--tempo", "90", "--seed", "1"]));
}
