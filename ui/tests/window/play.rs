//! The control source, the keyboard under the pointer, and computer keys.

use egui::{Event, Key, Modifiers, Pos2, Role, pos2};
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_player::parameter::{CONTROL_INPUT, SOURCE};
use ondes_ui::{KnobCommand, PlayCommand, WindowCommand};

use super::fake::{Fake, Test, open};
use super::hands::{click, expect, press, row, settle};

fn down(key: u8, velocity: f32) -> WindowCommand {
    PlayCommand::KeyDown { key, velocity }.into()
}

fn up(key: u8) -> WindowCommand {
    PlayCommand::KeyUp { key }.into()
}

/// Returns a point on the keyboard: white keys to the right of C4, and depth towards the front.
fn at(test: &Test, whites: f32, depth: f32) -> Pos2 {
    let rect = test.get_by_label("Notes A3 A4").rect();
    let width = rect.width() / 52.0;
    pos2(
        rect.left() + (23.5 + whites) * width,
        rect.top() + depth * rect.height(),
    )
}

/// Returns the only key that was pressed, and its velocity.
fn struck(commands: &[WindowCommand]) -> (u8, f32) {
    match commands {
        [WindowCommand::Play(PlayCommand::KeyDown { key, velocity })] => (*key, *velocity),
        other => panic!("not one key: {other:?}"),
    }
}

fn with_keys() -> Test {
    let mut test = open(Fake::playing());
    click(&mut test, "Keys");
    test
}

fn tell(test: &mut Test, event: Event) -> Vec<WindowCommand> {
    test.event(event);
    settle(test);
    test.state_mut().commands()
}

fn key(test: &mut Test, key: Key, pressed: bool) -> Vec<WindowCommand> {
    let modifiers = Modifiers::NONE;
    tell(
        test,
        Event::Key {
            key,
            physical_key: None,
            pressed,
            repeat: false,
            modifiers,
        },
    )
}

#[test]
fn one_chooses_what_plays() {
    let mut test = open(Fake::playing());
    click(&mut test, "MIDI");
    assert!(test.state_mut().commands().is_empty(), "they do already");
    click(&mut test, "Side-chain");
    click(&mut test, "MIDI");
    let expected = [
        KnobCommand::SetParameter(SOURCE, 1.0).into(),
        KnobCommand::SetParameter(SOURCE, 0.0).into(),
    ];
    assert_eq!(test.state_mut().commands(), expected);
    test.state_mut().model.control_source = None;
    settle(&mut test);
    assert!(test.query_by_label("Side-chain").is_none());
    // An effect whose instrument the track controls.
    test.state_mut().model.follows_side_chain = Some(false);
    settle(&mut test);
    click(&mut test, "Track");
    click(&mut test, "Side-chain");
    expect(&mut test, [KnobCommand::SetParameter(CONTROL_INPUT, 1.0)]);
}

#[test]
fn the_pointer_plays_and_glides() {
    let mut test = open(Fake::playing());
    let (soft, hard, next) = (
        at(&test, 0.0, 0.1),
        at(&test, 0.0, 0.95),
        at(&test, 1.0, 0.95),
    );
    test.drag_at(soft);
    test.run_steps(2);
    let (key, velocity) = struck(&test.state_mut().commands());
    assert_eq!(key, 60);
    assert!(velocity > 0.1 && velocity < 0.25, "{velocity}");
    test.hover_at(hard);
    test.run_steps(2);
    assert!(test.state_mut().commands().is_empty(), "it is down already");
    test.hover_at(next);
    test.run_steps(2);
    let commands = test.state_mut().commands();
    assert_eq!(commands[0], up(60));
    let (key, velocity) = struck(&commands[1..]);
    assert_eq!(key, 62);
    assert!(velocity > 0.9 && velocity <= 1.0, "{velocity}");
    test.hover_at(pos2(300.0, 200.0));
    test.run_steps(2);
    assert_eq!(
        test.state_mut().commands(),
        [up(62)],
        "the pointer has left the keys"
    );
    test.drop_at(pos2(300.0, 200.0));
    settle(&mut test);
    assert!(test.state_mut().commands().is_empty());
}

#[test]
fn keys_are_released_when_the_pointer_leaves_the_window() {
    let mut test = open(Fake::playing());
    let at = at(&test, 0.0, 0.9);
    test.drag_at(at);
    test.run_steps(2);
    assert_eq!(struck(&test.state_mut().commands()).0, 60);
    assert_eq!(tell(&mut test, Event::PointerGone), [up(60)]);
    assert!(
        tell(&mut test, Event::PointerMoved(at)).is_empty(),
        "it may have come up outside"
    );
    test.drop_at(at);
    settle(&mut test);
    test.drag_at(at);
    test.run_steps(2);
    assert_eq!(struck(&test.state_mut().commands()).0, 60);
}

#[test]
fn a_touch_between_two_frames_is_heard() {
    let mut test = open(Fake::playing());
    let at = at(&test, 0.0, 0.9);
    let button = |pressed| {
        let (button, modifiers) = (egui::PointerButton::Primary, Modifiers::NONE);
        Event::PointerButton {
            pos: at,
            button,
            pressed,
            modifiers,
        }
    };
    test.input_mut()
        .events
        .extend([Event::PointerMoved(at), button(true), button(false)]);
    settle(&mut test);
    let commands = test.state_mut().commands();
    assert_eq!(commands.len(), 2, "{commands:?}");
    assert_eq!((struck(&commands[..1]).0, &commands[1]), (60, &up(60)));
}

#[test]
fn keys_are_released_when_the_window_loses_the_focus() {
    let mut test = with_keys();
    key(&mut test, Key::G, true);
    test.drag_at(at(&test, 0.0, 0.95));
    test.run_steps(2);
    assert_eq!(struck(&test.state_mut().commands()).0, 60);
    assert_eq!(
        tell(&mut test, Event::WindowFocused(false)),
        [up(60), up(67)]
    );
    assert!(
        tell(&mut test, Event::WindowFocused(true)).is_empty(),
        "the pointer must come up before it plays again"
    );
    assert!(key(&mut test, Key::G, false).is_empty());
    test.drop_at(at(&test, 0.0, 0.95));
    settle(&mut test);
    test.drag_at(at(&test, 0.0, 0.95));
    test.run_steps(2);
    assert_eq!(struck(&test.state_mut().commands()).0, 60);
}

#[test]
fn keys_are_released_when_the_window_closes_or_cannot_play() {
    let mut test = with_keys();
    key(&mut test, Key::A, true);
    test.drag_at(at(&test, 1.0, 0.95));
    test.run_steps(2);
    test.state_mut().commands();
    assert_eq!(test.state_mut().window.close(), [up(62), up(60)]);
    assert!(test.state_mut().window.close().is_empty());

    let mut test = with_keys();
    key(&mut test, Key::A, true);
    test.state_mut().model.able = false;
    settle(&mut test);
    expect(&mut test, [up(60)]);
    test.drag_at(at(&test, 1.0, 0.95));
    settle(&mut test);
    assert!(
        test.state_mut().commands().is_empty(),
        "the keyboard only shows"
    );
    assert!(test.query_by_label("Keys").is_none());
}

#[test]
fn computer_keys_play_once_they_may() {
    let mut test = open(Fake::playing());
    assert!(
        key(&mut test, Key::A, true).is_empty(),
        "off until asked for"
    );
    key(&mut test, Key::A, false);
    click(&mut test, "Keys");
    let row = "AWSEDFTGYHUJKOLP"
        .chars()
        .map(|name| Key::from_name(&name.to_string()).expect("a letter"));
    for (n, one) in row.chain([Key::Semicolon]).enumerate() {
        let played = 60 + n as u8;
        assert_eq!(key(&mut test, one, true), [down(played, 0.8)]);
        assert!(key(&mut test, one, true).is_empty(), "it repeats");
        assert_eq!(key(&mut test, one, false), [up(played)]);
    }
    press(&mut test, Key::X);
    press(&mut test, Key::C);
    press(&mut test, Key::C);
    assert!(test.query_by_label("Keys from C5, velocity 60 %").is_some());
    assert_eq!(key(&mut test, Key::W, true), [down(73, 0.6)]);
    press(&mut test, Key::Z);
    press(&mut test, Key::Z);
    press(&mut test, Key::V);
    assert_eq!(
        key(&mut test, Key::W, false),
        [up(73)],
        "it plays what it played when it went down"
    );
    assert_eq!(key(&mut test, Key::W, true), [down(49, 0.7)]);
    click(&mut test, "Keys");
    assert_eq!(
        test.state_mut().commands(),
        [up(49)],
        "nothing hangs when they are off again"
    );
}

#[test]
fn computer_keys_stay_within_midi() {
    let mut test = with_keys();
    for _ in 0..12 {
        press(&mut test, Key::X);
        press(&mut test, Key::V);
    }
    assert_eq!(key(&mut test, Key::G, true), [down(127, 1.0)]);
    assert!(
        key(&mut test, Key::Y, true).is_empty(),
        "there is no key 128"
    );
    for _ in 0..12 {
        press(&mut test, Key::Z);
        press(&mut test, Key::C);
    }
    assert_eq!(key(&mut test, Key::A, true), [down(0, 0.1)]);
}

#[test]
fn typing_does_not_play() {
    let mut test = with_keys();
    assert_eq!(key(&mut test, Key::D, true), [down(64, 0.8)]);
    test.get_by_label("Search models").focus();
    settle(&mut test);
    assert!(key(&mut test, Key::A, true).is_empty());
    assert_eq!(
        key(&mut test, Key::D, false),
        [up(64)],
        "what was down comes up all the same"
    );
}

#[test]
fn letters_are_music_and_nothing_else() {
    let mut test = with_keys();
    row(&test, "Cello").click();
    settle(&mut test);
    assert!(row(&test, "Cello").is_focused());
    test.state_mut().commands();
    assert_eq!(
        key(&mut test, Key::F, true),
        [down(65, 0.8)],
        "and no favourite"
    );
    // Keys with a modifier are commands, whichever key is reported on release.
    test.event(Event::ModifiersChanged(Modifiers::SHIFT));
    settle(&mut test);
    expect(&mut test, [up(65)]);
    test.event(Event::ModifiersChanged(Modifiers::NONE));
    test.key_press_modifiers(Modifiers::COMMAND, Key::F);
    settle(&mut test);
    assert!(test.state_mut().commands().is_empty());
    assert!(test.get_by_label("Search models").is_focused());
}

#[test]
fn a_key_that_two_hold_sounds_once() {
    let mut test = with_keys();
    assert_eq!(key(&mut test, Key::A, true).len(), 1);
    test.drag_at(at(&test, 0.0, 0.95));
    test.run_steps(2);
    assert!(test.state_mut().commands().is_empty(), "it is down already");
    assert!(
        key(&mut test, Key::A, false).is_empty(),
        "the pointer still holds it"
    );
    test.drop_at(at(&test, 0.0, 0.95));
    settle(&mut test);
    expect(&mut test, [up(60)]);
}

#[test]
fn the_keys_are_a_stop_of_the_keyboard() {
    let mut test = open(Fake::playing());
    test.get_by_role_and_label(Role::Button, "Keys").focus();
    settle(&mut test);
    press(&mut test, Key::Enter);
    assert_eq!(key(&mut test, Key::A, true).len(), 1);
    assert!(
        test.get_by_label("Keys")
            .accesskit_node()
            .toggled()
            .is_some()
    );
}
