//! What is always at hand: the header, the message below it, and the bottom line.

use egui::accesskit::Toggled;
use egui::{Key, Modifiers, Role};
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_engine::realtime::{Driver, Status};
use ondes_ui::{Browse, Command, Slot};

use super::fake::{Fake, open};
use super::hands::{choose, click, press, rows, settle, slider};

#[test]
fn a_missing_model_says_so_and_is_tried_again() {
    let looked = ["/models", "/songs"].map(str::to_owned).to_vec();
    let mut test = open(Fake { missing: Some(("Old Bell".into(), looked)), ..Fake::playing() });
    assert!(test.query_by_label("“Old Bell” is missing: looked in /models and 1 more").is_some());
    click(&mut test, "Locate…");
    click(&mut test, "Retry");
    assert_eq!(test.state_mut().told(), [Command::Browse(Browse::Missing), Command::Retry]);
    assert!(test.query_by_label("Retry").is_none(), "it was found");
}

#[test]
fn what_the_owner_cannot_do_is_not_offered() {
    let missing = Some(("Old Bell".into(), vec!["/models".into()]));
    let mut test = open(Fake { missing, able: false, ..Fake::playing() });
    assert!(test.query_by_label("Locate…").is_none());
    slider(&test, "Brightness").click_secondary();
    settle(&mut test);
    assert!(test.query_by_label("Reset").is_some());
    assert!(test.query_by_label("MIDI learn").is_none());
    press(&mut test, Key::Escape);
    test.get_by_role_and_label(Role::ComboBox, "Driver").click();
    settle(&mut test);
    assert!(test.query_by_label("Worker, shortest").is_some());
    assert!(test.query_by_label("Worker, 20 ms").is_none());
    click(&mut test, "Retry");
    assert_eq!(test.state_mut().told(), [Command::Retry]);
}

#[test]
fn a_model_that_failed_says_why() {
    let mut test = open(Fake { status: Status::Failed("it is no model".into()), ..Fake::playing() });
    assert!(test.query_by_label("Cannot play this model: it is no model").is_some());
    assert!(test.query_by_label("Locate…").is_none());
    click(&mut test, "Retry");
    assert_eq!(test.state_mut().told(), [Command::Retry]);
}

#[test]
fn a_notice_is_read_and_gone() {
    let mut test = open(Fake { notice: Some("“Old Bell” was trained anew".into()), ..Fake::playing() });
    assert!(test.query_by_label("“Old Bell” was trained anew").is_some());
    assert!(test.query_by_label("Retry").is_none(), "nothing failed");
    click(&mut test, "OK");
    assert!(test.query_by_label("“Old Bell” was trained anew").is_none());
    assert_eq!(test.state_mut().told(), [Command::Dismiss]);
}

#[test]
fn settings_are_compared() {
    let mut test = open(Fake::playing());
    click(&mut test, "A");
    assert!(test.state_mut().told().is_empty(), "it is heard already");
    click(&mut test, "Copy to B");
    click(&mut test, "B");
    click(&mut test, "Copy to A");
    let wanted = [Command::Store(Slot::B), Command::Recall(Slot::B), Command::Store(Slot::A)];
    assert_eq!(test.state_mut().told(), wanted);
}

#[test]
fn the_header_is_at_hand() {
    let mut test = open(Fake::playing());
    for button in ["Panic", "Bypass", "Next model", "Previous model"] {
        click(&mut test, button);
    }
    let wanted = [Command::Panic, Command::Bypass(true), Command::Next, Command::Previous];
    assert_eq!(test.state_mut().told(), wanted);
    assert_eq!(test.get_by_label("Bypass").accesskit_node().toggled(), Some(Toggled::True));
    click(&mut test, "Browser");
    assert!(rows(&test).is_empty(), "the browser is closed");
}

#[test]
fn driver_and_latency_are_chosen() {
    let mut test = open(Fake::playing());
    choose(&mut test, Role::ComboBox, "Driver");
    click(&mut test, "Worker, 10 ms");
    assert_eq!(test.state_mut().told(), [Command::Drive(Driver::Worker { latency: Some(480) })]);
    choose(&mut test, Role::ComboBox, "Quality");
    click(&mut test, "Auto: lite");
    assert_eq!(test.state_mut().told(), [Command::Quality(3)]);
}

#[test]
fn the_window_is_scaled() {
    let mut test = open(Fake::playing());
    click(&mut test, "Window");
    click(&mut test, "150 %");
    assert_eq!(test.state_mut().told(), [Command::Scale(1.5)]);
    assert_eq!(test.ctx.zoom_factor(), 1.5);
    test.key_press_modifiers(Modifiers::COMMAND, Key::Plus);
    settle(&mut test);
    test.key_press_modifiers(Modifiers::COMMAND, Key::Num0);
    settle(&mut test);
    test.key_press_modifiers(Modifiers::COMMAND, Key::Minus);
    settle(&mut test);
    test.key_press_modifiers(Modifiers::COMMAND, Key::Minus);
    settle(&mut test);
    let wanted = [Command::Scale(1.75), Command::Scale(1.0), Command::Scale(0.75)];
    assert_eq!(test.state_mut().told(), wanted, "there is nothing below 75 %");
    click(&mut test, "Window");
    click(&mut test, "Light");
    assert_eq!(test.state_mut().told(), [Command::Theme(egui::ThemePreference::Light)]);
    assert_eq!(test.ctx.theme(), egui::Theme::Light);
}
