//! The pages for the voice, latents and the pad.

use egui::accesskit::Toggled;
use egui::{Event, Key, Modifiers, Role, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_player::parameter::ParameterId;
use ondes_ui::{KnobCommand, WindowCommand};

use super::fake::{Fake, Test, open};
use super::hands::{BRIGHTNESS, choose, click, expect, one_gesture, press, settle, slider};

const VOICES: ParameterId = ParameterId(52);
const BODY: ParameterId = ParameterId(4);

#[test]
fn a_knob_with_names_is_a_drop_down() {
    let mut test = open(Fake::playing());
    click(&mut test, "Voice");
    assert!(
        test.query_by_role_and_label(Role::Slider, "Voices")
            .is_none()
    );
    let value = |test: &Test| test.get_by_role_and_label(Role::ComboBox, "Voices").value();
    assert_eq!(value(&test).as_deref(), Some("Mono"));
    choose(&mut test, Role::ComboBox, "Voices");
    click(&mut test, "Legato");
    assert_eq!(one_gesture(&test.state_mut().commands(), VOICES), 1.0);
    assert_eq!(value(&test).as_deref(), Some("Legato"));
    assert!(test.query_by_label("Poly").is_none(), "it closes");

    test.get_by_role_and_label(Role::ComboBox, "Voices").focus();
    settle(&mut test);
    press(&mut test, Key::ArrowUp);
    assert_eq!(one_gesture(&test.state_mut().commands(), VOICES), 0.5);
    press(&mut test, Key::ArrowUp);
    test.state_mut().commands();
    press(&mut test, Key::ArrowUp);
    assert!(
        test.state_mut().commands().is_empty(),
        "there is nothing above the first"
    );
    assert!(
        test.get_by_role_and_label(Role::ComboBox, "Voices")
            .is_focused()
    );

    test.get_by_role_and_label(Role::ComboBox, "Voices")
        .click_secondary();
    settle(&mut test);
    click(&mut test, "MIDI learn");
    expect(&mut test, [KnobCommand::LearnMidi(VOICES)]);
}

#[test]
fn latents_have_a_page_where_there_are_some() {
    let test = open(Fake::playing());
    assert!(test.query_by_label("Latents").is_none());
    let mut test = open(Fake::bending());
    click(&mut test, "Latents");
    let (scale, hold) = (ParameterId(220), ParameterId(222));
    slider(&test, "Latent 2 scale").focus();
    settle(&mut test);
    press(&mut test, Key::End);
    assert_eq!(one_gesture(&test.state_mut().commands(), scale), 1.0);
    click(&mut test, "Latent 2 hold");
    assert_eq!(one_gesture(&test.state_mut().commands(), hold), 1.0);
    assert_eq!(
        test.get_by_label("Latent 2 hold")
            .accesskit_node()
            .toggled(),
        Some(Toggled::True)
    );
    click(&mut test, "Latent 2 hold");
    assert_eq!(one_gesture(&test.state_mut().commands(), hold), 0.0);
    assert_eq!(
        test.get_by_label("Latent 2 now").value().as_deref(),
        Some("-0.26")
    );
    test.state_mut().model.latents[1].value = f32::NAN;
    test.state_mut().model.latents[0].value = -7.0;
    settle(&mut test);
    assert_eq!(
        test.get_by_label("Latent 1 now").value().as_deref(),
        Some("-1.00")
    );
    test.render().expect("a picture");
    test.state_mut().model.latents.clear();
    settle(&mut test);
    assert!(
        test.query_by_role_and_label(Role::Slider, "Brightness")
            .is_some(),
        "back to the macros"
    );
}

#[test]
fn a_latent_is_typed_at() {
    let mut test = open(Fake::bending());
    click(&mut test, "Latents");
    slider(&test, "Latent 1 offset").focus();
    settle(&mut test);
    press(&mut test, Key::Enter);
    test.get_by_label("Latent 1 offset value").type_text("25 %");
    settle(&mut test);
    press(&mut test, Key::Enter);
    assert_eq!(
        one_gesture(&test.state_mut().commands(), ParameterId(211)),
        0.25
    );
}

fn on_the_pad() -> Test {
    let mut test = open(Fake::playing());
    choose(&mut test, Role::Button, "Pad");
    // Long enough that the next click is not a double click.
    test.run_steps(60);
    test
}

#[test]
fn the_pad_turns_two_knobs_in_one_gesture_each() {
    let mut test = on_the_pad();
    let pad = test.get_by_role_and_label(Role::Group, "Pad").rect();
    test.drag_at(pad.center());
    test.run_steps(2);
    for way in 1..=4 {
        test.hover_at(pad.center() + vec2(20.0, -10.0) * way as f32);
        test.step();
    }
    test.drop_at(pad.center() + vec2(80.0, -40.0));
    settle(&mut test);
    let commands = test.state_mut().commands();
    assert_eq!(
        commands[..2],
        [
            KnobCommand::BeginGesture(BRIGHTNESS).into(),
            KnobCommand::BeginGesture(BODY).into()
        ]
    );
    assert_eq!(
        commands[commands.len() - 2..],
        [
            KnobCommand::EndGesture(BRIGHTNESS).into(),
            KnobCommand::EndGesture(BODY).into()
        ]
    );
    let sets = &commands[2..commands.len() - 2];
    assert!(
        sets.len() > 4
            && sets
                .iter()
                .all(|command| matches!(command, WindowCommand::Knob(KnobCommand::Set(..)))),
        "{commands:?}"
    );
    let (x, y) = (
        test.state_mut().model.value(BRIGHTNESS),
        test.state_mut().model.value(BODY),
    );
    let inner = pad.shrink(9.0);
    assert!((x - (0.5 + 80.0 / inner.width())).abs() < 0.01, "{x}");
    assert!(
        (y - (0.5 + 40.0 / inner.height())).abs() < 0.01,
        "upwards is more: {y}"
    );
}

#[test]
fn gestures_on_the_pad_end_when_the_window_closes() {
    let held = |test: &mut Test| {
        let pad = test.get_by_role_and_label(Role::Group, "Pad").rect();
        test.drag_at(pad.center());
        test.run_steps(2);
        let commands = test.state_mut().commands();
        assert_eq!(
            commands
                .iter()
                .filter(|command| matches!(
                    command,
                    WindowCommand::Knob(KnobCommand::BeginGesture(_))
                ))
                .count(),
            2,
            "{commands:?}"
        );
    };
    let ends = [
        KnobCommand::EndGesture(BRIGHTNESS).into(),
        KnobCommand::EndGesture(BODY).into(),
    ];
    let mut test = on_the_pad();
    held(&mut test);
    assert_eq!(test.state_mut().window.close(), ends);
    assert!(test.state_mut().window.close().is_empty());
}

#[test]
fn the_pad_is_reset_by_a_double_click() {
    let mut test = on_the_pad();
    let at = test
        .get_by_role_and_label(Role::Group, "Pad")
        .rect()
        .center()
        + vec2(60.0, 30.0);
    for _ in 0..2 {
        test.drag_at(at);
        test.event(Event::PointerButton {
            pos: at,
            button: egui::PointerButton::Primary,
            pressed: false,
            modifiers: Modifiers::NONE,
        });
    }
    settle(&mut test);
    assert_eq!(test.state_mut().model.value(BRIGHTNESS), 0.5);
    assert_eq!(test.state_mut().model.value(BODY), 0.5);
    let mut open = Vec::new();
    for command in test.state_mut().commands() {
        match command {
            WindowCommand::Knob(KnobCommand::BeginGesture(id)) => {
                assert!(!open.contains(&id), "begun twice");
                open.push(id);
            }
            WindowCommand::Knob(KnobCommand::Set(id, _)) => {
                assert!(open.contains(&id), "set outside of a gesture")
            }
            WindowCommand::Knob(KnobCommand::EndGesture(id)) => open.retain(|one| *one != id),
            other => panic!("{other:?}"),
        }
    }
    assert!(open.is_empty(), "{open:?} still held");
}

#[test]
fn arrows_move_the_pad() {
    let mut test = on_the_pad();
    test.get_by_role_and_label(Role::Group, "Pad").focus();
    settle(&mut test);
    press(&mut test, Key::ArrowRight);
    let x = one_gesture(&test.state_mut().commands(), BRIGHTNESS);
    assert!((x - 0.63).abs() < 1e-4, "{x}");
    test.key_press_modifiers(Modifiers::SHIFT, Key::ArrowDown);
    settle(&mut test);
    let y = one_gesture(&test.state_mut().commands(), BODY);
    assert!((y - 0.739).abs() < 1e-4, "{y}");
    let pad = test.get_by_role_and_label(Role::Group, "Pad");
    assert!(pad.is_focused());
    assert_eq!(pad.value().as_deref(), Some("Brightness 63 %, Body 74 %"));
    press(&mut test, Key::Delete);
    assert_eq!(test.state_mut().commands().len(), 6, "both are reset");
}

#[test]
fn the_pad_turns_what_is_chosen() {
    let mut test = open(Fake::bending());
    choose(&mut test, Role::Button, "Pad");
    choose(&mut test, Role::ComboBox, "Pad vertically");
    click(&mut test, "Bow noise");
    expect(
        &mut test,
        [KnobCommand::SetPad(ParameterId(211), ParameterId(1))],
    );
    choose(&mut test, Role::ComboBox, "Pad horizontally");
    click(&mut test, "Bow noise");
    let swapped = [KnobCommand::SetPad(ParameterId(1), ParameterId(211)).into()];
    assert_eq!(
        test.state_mut().commands(),
        swapped,
        "never the same in both places"
    );

    // What an model says may be anything: of equal knobs one is turned, and of none none.
    for pad in [
        (BRIGHTNESS, BRIGHTNESS),
        (ParameterId(900), ParameterId(901)),
    ] {
        test.state_mut().model.pad = pad;
        settle(&mut test);
        let at = test
            .get_by_role_and_label(Role::Group, "Pad")
            .rect()
            .center();
        test.drag_at(at);
        test.run_steps(2);
        test.drop_at(at);
        settle(&mut test);
        let commands = test.state_mut().commands();
        let begun = commands
            .iter()
            .filter(|command| matches!(command, WindowCommand::Knob(KnobCommand::BeginGesture(_))))
            .count();
        let ended = commands
            .iter()
            .filter(|command| matches!(command, WindowCommand::Knob(KnobCommand::EndGesture(_))))
            .count();
        assert_eq!(
            (begun, ended),
            if pad.0 == BRIGHTNESS { (1, 1) } else { (0, 0) },
            "{commands:?}"
        );
    }
}
