//! Knobs and all ways to turn them.

use egui::{Key, Modifiers, MouseWheelSource, MouseWheelUnit, Role, TouchPhase, vec2};
use egui_kittest::kittest::Queryable;
use ondes_player::midi_bindings::MidiBinding;
use ondes_player::parameter::ParameterId;
use ondes_ui::{KnobCommand, PlayCommand};

use super::fake::{Fake, INPUT, MIX, Test, open};
use super::hands::{
    BRIGHTNESS, choose, click, expect, long_gesture, one_gesture, press, settle, slider,
};

#[test]
fn a_macro_is_bound_by_its_menu() {
    let mut test = open(Fake::playing());
    slider(&test, "Body").click_secondary();
    settle(&mut test);
    choose(&mut test, Role::Button, "Attack");
    expect(&mut test, [KnobCommand::BindMacro(4, Some(5))]);
    assert_eq!(
        test.get_all_by_role_and_label(Role::Slider, "Attack")
            .count(),
        2
    );

    slider(&test, "Brightness").click_secondary();
    settle(&mut test);
    click(&mut test, "Unbind");
    expect(&mut test, [KnobCommand::BindMacro(0, None)]);
}

#[test]
fn a_tuning_is_shown_and_removed() {
    let mut fake = Fake::playing();
    fake.tuning = Some("just".into());
    let mut test = open(fake);
    click(&mut test, "Voice");
    assert!(test.query_by_label("just").is_some());
    click(&mut test, "Remove");
    expect(&mut test, [PlayCommand::RemoveTuning]);
    settle(&mut test);
    assert!(test.query_by_label("Tuning").is_none());
}

#[test]
fn midi_is_learned_and_forgotten() {
    let mut test = open(Fake::playing());
    slider(&test, "Brightness").click_secondary();
    settle(&mut test);
    click(&mut test, "MIDI learn");
    expect(&mut test, [KnobCommand::LearnMidi(BRIGHTNESS)]);
    test.state_mut().model.macros[0].knob.midi = Some(MidiBinding::Learning);
    slider(&test, "Brightness").click_secondary();
    settle(&mut test);
    click(&mut test, "Stop MIDI learn");
    expect(&mut test, [KnobCommand::ForgetMidi(BRIGHTNESS)]);
    slider(&test, "Vibrato").click_secondary();
    settle(&mut test);
    click(&mut test, "Forget MIDI controller 1");
    expect(&mut test, [KnobCommand::ForgetMidi(ParameterId(2))]);
    test.state_mut().model.macros[0].knob.midi = None;
    slider(&test, "Brightness").click_secondary();
    settle(&mut test);
    assert!(test.query_by_label("Reset").is_some() && test.query_by_label("MIDI learn").is_none());
}

#[test]
fn the_menu_opens_without_a_mouse() {
    let mut test = open(Fake::playing());
    slider(&test, "Body").focus();
    settle(&mut test);
    test.key_press_modifiers(Modifiers::SHIFT, Key::F10);
    settle(&mut test);
    assert!(test.get_by_label("Reset").is_focused());
    press(&mut test, Key::Enter);
    assert_eq!(
        one_gesture(&test.state_mut().commands(), ParameterId(4)),
        0.5
    );
    assert!(test.query_by_label("Reset").is_none(), "it closes");
    assert!(
        slider(&test, "Body").is_focused(),
        "and the keyboard is back at the knob"
    );
}

#[test]
fn a_value_is_typed_with_its_unit() {
    let mut test = open(Fake::playing());
    slider(&test, "Gain in").focus();
    settle(&mut test);
    press(&mut test, Key::Enter);
    let field = test.get_by_label("Gain in value");
    assert!(field.is_focused());
    // The old text is selected and replaced.
    field.type_text("-6 dB");
    settle(&mut test);
    press(&mut test, Key::Enter);
    let value = one_gesture(&test.state_mut().commands(), INPUT);
    assert!((value - 42.0 / 60.0).abs() < 1e-6, "{value}");
    assert_eq!(slider(&test, "Gain in").value().as_deref(), Some("-6.0 dB"));
    assert!(
        slider(&test, "Gain in").is_focused(),
        "the keyboard is back at the knob"
    );
}

#[test]
fn invalid_text_is_refused() {
    let mut test = open(Fake::playing());
    slider(&test, "Gain in").focus();
    settle(&mut test);
    press(&mut test, Key::Enter);
    for nonsense in ["loud", "NaN dB", "inf"] {
        test.key_press_modifiers(Modifiers::COMMAND, Key::A);
        settle(&mut test);
        test.get_by_label("Gain in value").type_text(nonsense);
        settle(&mut test);
        press(&mut test, Key::Enter);
        assert!(test.state_mut().commands().is_empty(), "{nonsense}");
        assert!(
            test.get_by_label("Gain in value").is_focused(),
            "{nonsense} stays to be put right"
        );
    }
    press(&mut test, Key::Escape);
    assert!(test.query_by_label("Gain in value").is_none());
    assert!(test.state_mut().commands().is_empty());
    assert_eq!(test.state_mut().model.value(INPUT), 0.8);
}

#[test]
fn a_knob_is_dragged_in_one_gesture() {
    let drag = |modifiers: Modifiers| {
        let mut test = open(Fake::playing());
        let from = slider(&test, "Mix").rect().center();
        test.event(egui::Event::ModifiersChanged(modifiers));
        test.drag_at(from);
        settle(&mut test);
        for way in 1..=8 {
            test.hover_at(from + vec2(0.0, 10.0 * way as f32));
            test.step();
        }
        test.drop_at(from + vec2(0.0, 80.0));
        settle(&mut test);
        1.0 - long_gesture(&test.state_mut().commands(), MIX)
    };
    let coarse = drag(Modifiers::NONE);
    assert!((coarse - 0.5).abs() < 0.05, "{coarse}");
    let fine = drag(Modifiers::SHIFT);
    assert!((fine - coarse / 10.0).abs() < 0.01, "{fine}");
}

#[test]
fn a_gesture_ends_when_its_knob_goes_away() {
    let mut test = open(Fake::playing());
    let from = slider(&test, "Brightness").rect().center();
    test.drag_at(from);
    settle(&mut test);
    test.hover_at(from + vec2(0.0, -30.0));
    settle(&mut test);
    assert_eq!(
        test.state_mut().commands()[0],
        KnobCommand::BeginGesture(BRIGHTNESS).into()
    );
    test.state_mut().model.macros.remove(0);
    settle(&mut test);
    expect(&mut test, [KnobCommand::EndGesture(BRIGHTNESS)]);

    let from = slider(&test, "Mix").rect().center();
    test.drop_at(from);
    settle(&mut test);
    test.drag_at(from);
    settle(&mut test);
    test.hover_at(from + vec2(0.0, 30.0));
    settle(&mut test);
    assert_eq!(
        test.state_mut().window.close(),
        [KnobCommand::EndGesture(MIX).into()]
    );
    assert!(test.state_mut().window.close().is_empty());
}

#[test]
fn a_wheel_that_rests_ends_its_gesture() {
    let mut test = open(Fake::playing());
    test.hover_at(slider(&test, "Brightness").rect().center());
    settle(&mut test);
    for _ in 0..3 {
        let delta = vec2(0.0, 1.0);
        let (unit, phase, source) = (
            MouseWheelUnit::Line,
            TouchPhase::Move,
            MouseWheelSource::Wheel,
        );
        test.event(egui::Event::MouseWheel {
            unit,
            delta,
            phase,
            source,
            modifiers: Modifiers::NONE,
        });
        test.step();
    }
    test.run_steps(60);
    let value = long_gesture(&test.state_mut().commands(), BRIGHTNESS);
    assert!(value > 0.64 && value < 0.75, "{value}");
}

#[test]
fn a_double_click_resets() {
    let mut test = open(Fake::playing());
    slider(&test, "Brightness").click();
    slider(&test, "Brightness").click();
    settle(&mut test);
    assert_eq!(one_gesture(&test.state_mut().commands(), BRIGHTNESS), 0.5);
}

#[test]
fn keys_turn_a_knob() {
    let mut test = open(Fake::playing());
    slider(&test, "Brightness").focus();
    settle(&mut test);
    let mut turned = |press: &dyn Fn(&Test)| {
        press(&test);
        settle(&mut test);
        one_gesture(&test.state_mut().commands(), BRIGHTNESS)
    };
    let near =
        |value: f32, wanted: f32| assert!((value - wanted).abs() < 1e-4, "{value} is not {wanted}");
    near(turned(&|test| test.key_press(Key::ArrowUp)), 0.63);
    near(turned(&|test| test.key_press(Key::ArrowLeft)), 0.62);
    near(
        turned(&|test| test.key_press_modifiers(Modifiers::SHIFT, Key::ArrowRight)),
        0.621,
    );
    near(turned(&|test| test.key_press(Key::PageDown)), 0.521);
    near(turned(&|test| test.key_press(Key::End)), 1.0);
    near(turned(&|test| test.key_press(Key::Home)), 0.0);
    near(turned(&|test| test.key_press(Key::Delete)), 0.5);
    assert!(
        slider(&test, "Brightness").is_focused(),
        "arrows do not lead away"
    );
    // At its end the knob sends nothing.
    press(&mut test, Key::End);
    test.state_mut().commands();
    press(&mut test, Key::ArrowUp);
    assert!(test.state_mut().commands().is_empty());
}

#[test]
fn a_knob_with_steps_stands_at_steps() {
    let mut test = open(Fake::playing());
    click(&mut test, "Voice");
    slider(&test, "Mode").focus();
    settle(&mut test);
    press(&mut test, Key::ArrowUp);
    assert_eq!(
        one_gesture(&test.state_mut().commands(), ParameterId(51)),
        0.5
    );
}

#[test]
fn a_knob_is_turned_by_other_means() {
    let mut test = open(Fake::playing());
    slider(&test, "Brightness").increment_accesskit();
    settle(&mut test);
    let value = one_gesture(&test.state_mut().commands(), BRIGHTNESS);
    assert!((value - 0.63).abs() < 1e-4, "{value}");
    slider(&test, "Brightness").set_value_accesskit(0.25);
    settle(&mut test);
    assert_eq!(one_gesture(&test.state_mut().commands(), BRIGHTNESS), 0.25);
    assert_eq!(slider(&test, "Brightness").value().as_deref(), Some("25 %"));
    slider(&test, "Brightness").set_value_accesskit(f64::NAN);
    settle(&mut test);
    assert!(test.state_mut().commands().is_empty());
}
