//! Tunings that are dropped on the window, shown and removed.

use ondes_ui::{FileCommand, PlayCommand, ViewModel};

use super::chain::Track;

#[test]
fn a_tuning_is_opened_named_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("just.scl");
    std::fs::write(
        &path,
        "! just.scl\n!\nJust intonation\n 3\n!\n 5/4\n 3/2\n 2/1\n",
    )
    .expect("a file");
    let mut track = Track::new();
    let shown = |track: &mut Track| {
        track.view_model.refresh();
        track
            .view_model
            .view()
            .knobs
            .tuning
            .map(|tuning| (tuning.name.to_owned(), tuning.problem.map(str::to_owned)))
    };
    assert_eq!(shown(&mut track), None);
    track.handle(FileCommand::Open(path.clone()));
    assert_eq!(shown(&mut track), Some(("just".into(), None)));

    // A project opened where the file is missing keeps its name and says so.
    let saved = track.shared.state();
    std::fs::remove_file(&path).expect("a file");
    track.shared.restore_state(saved);
    let (name, problem) = shown(&mut track).expect("a tuning");
    assert!(name == "just" && problem.is_some_and(|problem| problem.contains("just.scl")));
    track.handle(PlayCommand::RemoveTuning);
    assert_eq!(shown(&mut track), None);
}
