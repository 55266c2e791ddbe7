//! Every control of the app has a tooltip, which assistive technology reads as well.

use std::sync::Arc;

use egui::Role;
use egui_kittest::kittest::{NodeT, Queryable};
use ondes::rack::session_file::TrackInput;
use ondes::window::view::{ClipView, Prompt};

use super::fake_app::{Test, click, open, playing};

const ROLES: [Role; 6] = [
    Role::Button,
    Role::CheckBox,
    Role::ComboBox,
    Role::Meter,
    Role::Slider,
    Role::TextInput,
];

/// Fails if a control has no tooltip.
fn check(test: &Test, place: &str) {
    let nodes: Vec<_> = ROLES
        .into_iter()
        .flat_map(|role| test.query_all_by_role(role))
        .collect();
    assert!(nodes.len() > 30, "{place}: the window is drawn");
    let silent = nodes.iter().filter(|node| {
        node.accesskit_node()
            .description()
            .is_none_or(|text| text.is_empty())
    });
    let silent: Vec<_> = silent.map(|node| node.accesskit_node().label()).collect();
    assert_eq!(silent, [None; 0], "{place}");
}

#[test]
fn every_control_has_a_tooltip() {
    let mut view = playing();
    view.problems.push("/songs/old.wav: no such file".into());
    view.prompt = Some(Prompt::Quit { unsaved: true });
    view.tracks[0].input = TrackInput::File {
        path: "/songs/voice.wav".into(),
        looped: true,
    };
    let waveform: Arc<[f32]> = vec![0.5; 64].into();
    view.tracks[0].clip = Some(ClipView {
        waveform,
        position: 0.4,
        length_s: 92.5,
        playing: true,
    });
    let mut test = open(view);
    check(&test, "a prompt and a recording");
    test.state_mut().view.prompt = Some(Prompt::RecoverAutosave);
    test.run_steps(4);
    for (button, place) in [
        ("Recording settings", "recording settings"),
        ("Devices", "devices"),
        ("Open…", "path of a session"),
    ] {
        click(&mut test, button);
        check(&test, place);
    }
}
