//! Cabinets for captures of amplifiers, and the tuner.

use std::f32::consts::TAU;
use std::sync::Arc;
use std::time::Duration;

use ondes_engine::model::{Gear, Model};
use ondes_player::cabinet::bundled::BUNDLED;
use ondes_player::instance::InstanceHandle;
use ondes_player::library::FileReference;
use ondes_player::parameter::{GATE, Parameter};
use ondes_ui::{CabinetCommand, HistoryCommand, TunerCommand, ViewModel};

use super::chain::{Track, amplifier, level, play, tone};

/// Returns the amplifier with this gear on its card.
fn captured(kind: &str, tone: &str) -> Arc<Model> {
    let model = amplifier();
    let mut header = model.header().clone();
    header.card.name = format!("{kind} {tone}");
    header.card.gear = Some(Gear {
        kind: kind.into(),
        tone: tone.into(),
        ..Gear::default()
    });
    Model::new(header, model.weights().clone()).unwrap().into()
}

fn load(instance: &Arc<InstanceHandle>, model: &Arc<Model>, audition: bool) {
    let model = model.clone();
    instance
        .load_model(audition, move || Ok((model, None)))
        .join()
        .unwrap();
}

fn cabinet(track: &Track) -> Option<String> {
    let cabinet = track.shared.read_state(|state| state.cabinet.clone());
    cabinet.map(|reference| reference.name)
}

fn is_automatic(track: &Track) -> bool {
    track.shared.read_state(|state| state.automatic_cabinet)
}

#[test]
fn an_amplifier_without_a_loudspeaker_gets_a_cabinet() {
    let mut track = Track::new();
    let name = |index: usize| Some(BUNDLED[index].name.to_owned());
    assert_eq!((cabinet(&track), is_automatic(&track)), (None, true));
    load(&track.shared, &captured("amp", "clean"), false);
    assert_eq!(cabinet(&track), name(0));
    let notice = track
        .shared
        .notice()
        .expect("a notice for the first capture");
    assert!(
        notice.contains("“amp clean”") && notice.contains(BUNDLED[0].name),
        "{notice}"
    );
    load(&track.shared, &captured("amp", "hi_gain"), false);
    assert_eq!((cabinet(&track), track.shared.notice()), (name(2), None));
    // A whole rig has its own, a pedal is played into something else.
    for kind in ["amp_cab", "pedal"] {
        load(&track.shared, &captured(kind, "hi_gain"), false);
        assert_eq!(cabinet(&track), None, "{kind}");
    }
    // An audition is heard with the cabinet and leaves nothing behind.
    load(&track.shared, &captured("amp", "crunch"), true);
    assert_eq!(cabinet(&track), name(1));
    assert_eq!(track.shared.state().cabinet, None);
    track.shared.end_audition();
    assert_eq!((cabinet(&track), is_automatic(&track)), (None, true));

    // Who chooses is not overruled, even with none.
    load(&track.shared, &captured("amp", "clean"), false);
    track.handle(CabinetCommand::Remove);
    load(&track.shared, &captured("amp", "hi_gain"), false);
    assert_eq!((cabinet(&track), is_automatic(&track)), (None, false));
    track.handle(CabinetCommand::LoadBundled(1));
    load(&track.shared, &captured("amp_cab", "hi_gain"), false);
    assert_eq!(cabinet(&track), name(1));
    track.handle(CabinetCommand::Automatic);
    assert_eq!(cabinet(&track), None);
    load(&track.shared, &captured("amp", "hi_gain"), false);
    assert_eq!(cabinet(&track), name(2));
    track.handle(HistoryCommand::Undo);
    assert_eq!(cabinet(&track), name(1));
}

#[test]
fn saved_projects_keep_their_sound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("head.ondes");
    ondes_engine::model::file::write(&captured("amp", "hi_gain"), &path).unwrap();
    let head = captured("amp", "hi_gain");
    // As projects were saved before there were bundled cabinets.
    let track = Track::new();
    let mut state = track.shared.state();
    state.model = FileReference::to(&head, Some(path.clone()));
    let text = serde_json::to_string(&state)
        .unwrap()
        .replace("\"automatic_cabinet\":true,", "");
    assert!(!text.contains("automatic_cabinet"), "{text}");
    track
        .shared
        .restore_state(serde_json::from_str(&text).unwrap());
    assert_eq!((cabinet(&track), is_automatic(&track)), (None, false));
    track.shared.reload();
    assert_eq!(cabinet(&track), None);

    // A new one comes back with its cabinet, named in the file, and plays the same.
    let track = Track::new();
    let (from, model) = (path.clone(), head.clone());
    track
        .shared
        .load_model(false, move || Ok((model, Some(from))))
        .join()
        .unwrap();
    let heard = play(&track, &mut track.player(), tone);
    let text = track.save();
    assert!(text.contains(BUNDLED[2].name), "{text}");
    let again = Track::new();
    again.restore(&text);
    assert_eq!(
        (cabinet(&again), is_automatic(&again)),
        (cabinet(&track), true)
    );
    assert!(
        play(&again, &mut again.player(), tone) == heard,
        "it sounds another way"
    );
}

#[test]
fn a_bundled_cabinet_is_heard() {
    let mut track = Track::new();
    let mut player = track.player();
    let bright = |n: usize| 0.1 * (TAU * 12_000.0 * n as f32 / 48_000.0).sin();
    let plain = level(&play(&track, &mut player, bright)[0]);
    track.handle(CabinetCommand::LoadBundled(2));
    play(&track, &mut player, bright);
    let dark = level(&play(&track, &mut player, bright)[0]);
    assert!(dark < 0.1 * plain && dark > 0.0, "{dark} of {plain}");
}

#[test]
fn the_tuner_reads_the_input_and_mutes_the_output() {
    let mut track = Track::new();
    let mut player = track.player();
    let string = |n: usize| 0.05 * (TAU * 82.0 * n as f32 / 48_000.0).sin();
    let plain = level(&play(&track, &mut player, string)[0]);
    track.handle(TunerCommand::SetReference(442.0));
    track.handle(TunerCommand::Mute(true));
    assert!(
        level(&play(&track, &mut player, string)[0]) > 0.9 * plain,
        "it is closed"
    );
    track.settle();
    track.handle(TunerCommand::Open(true));
    // The gate would close at this level; the tuner stands before it.
    track.turn(GATE, -20.0);
    let muted = play(&track, &mut player, string);
    assert_eq!(level(&muted[0]), 0.0);
    assert!(
        muted[0]
            .windows(2)
            .all(|pair| (pair[0] - pair[1]).abs() < 0.01),
        "it clicks"
    );
    assert_eq!(
        track.view_model.refresh(),
        Some(Duration::from_millis(33)),
        "it goes on looking"
    );
    let tuner = track.view_model.view().tuner;
    let hz = tuner.pitch_hz.expect("a note");
    assert!(
        (hz - 82.0).abs() < 0.02 && tuner.available && tuner.reference_hz == 442.0,
        "{tuner:?}"
    );
    track.turn(GATE, Parameter::get(GATE).unwrap().default());
    // Nobody listens to a tuner while the host renders.
    track.shared.session.set_non_realtime(true);
    assert!(level(&play(&track, &mut player, string)[0]) > 0.9 * plain);
    track.shared.session.set_non_realtime(false);
    assert_eq!(level(&play(&track, &mut player, string)[0]), 0.0);
    // A window that closes takes the tuner with it.
    let Track {
        view_model,
        window,
        store,
        ..
    } = &mut track;
    ondes_ui::view_model::close(view_model, window, &**store);
    assert!(level(&play(&track, &mut player, string)[0]) > 0.9 * plain);
}
