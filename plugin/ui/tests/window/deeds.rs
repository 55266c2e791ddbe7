//! What a user does, and what the owner is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use egui::accesskit::Toggled;
use egui::{Key, Modifiers, MouseWheelSource, MouseWheelUnit, Role, TouchPhase, vec2};
use egui_kittest::Node;
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_engine::realtime::{Driver, Status};
use ondes_ui::{Command, EntryId, KnobId, Level, Midi, Note, SCALES, SIZE, Slot};

use super::fake::{Fake, INPUT, MIX, Test, open};

const BRIGHTNESS: KnobId = KnobId(0);

fn slider<'a>(test: &'a Test, name: &'a str) -> Node<'a> {
    test.get_by_role_and_label(Role::Slider, name)
}

/// A model's row in the list; of several the first.
fn row<'a>(test: &'a Test, name: &'a str) -> Node<'a> {
    test.get_all_by_role_and_label(Role::ListBoxOption, name).next().unwrap_or_else(|| panic!("no row for {name}"))
}

fn rows(test: &Test) -> Vec<String> {
    test.query_all_by_role(Role::ListBoxOption).filter_map(|row| row.accesskit_node().label()).collect()
}

fn settle(test: &mut Test) {
    test.run_steps(4);
}

fn click(test: &mut Test, label: &str) {
    test.get_by_label(label).click();
    settle(test);
}

/// Clicks what has that part, where its label alone would not tell it.
fn choose(test: &mut Test, role: Role, label: &str) {
    test.get_by_role_and_label(role, label).click();
    settle(test);
}

fn press(test: &mut Test, key: Key) {
    test.key_press(key);
    settle(test);
}

/// The single value that the knob was set to, in one gesture.
fn one_gesture(told: &[Command], knob: KnobId) -> f32 {
    match told {
        [Command::Begin(begun), Command::Set(set, value), Command::End(ended)] => {
            assert_eq!([begun, set, ended], [&knob; 3]);
            *value
        }
        other => panic!("not one gesture: {other:?}"),
    }
}

/// The last value of a gesture of many steps.
fn long_gesture(told: &[Command], knob: KnobId) -> f32 {
    assert_eq!(told.first(), Some(&Command::Begin(knob)), "{told:?}");
    assert_eq!(told.last(), Some(&Command::End(knob)), "{told:?}");
    let steps = &told[1..told.len() - 1];
    let value = |step: &Command| match step {
        Command::Set(set, value) if *set == knob => *value,
        other => panic!("{other:?} within a gesture"),
    };
    let values: Vec<f32> = steps.iter().map(value).collect();
    *values.last().expect("a step")
}

#[test]
fn the_browser_is_searched_filtered_and_loaded_from() {
    let mut test = open(Fake::playing());
    test.get_by_label("Search models").focus();
    settle(&mut test);
    test.get_by_label("Search models").type_text("rey VOICE");
    settle(&mut test);
    assert_eq!(rows(&test), ["Tape voice"]);
    row(&test, "Tape voice").click();
    row(&test, "Tape voice").click();
    settle(&mut test);
    assert_eq!(test.state_mut().told(), [Command::Load(EntryId(6))]);

    test.get_by_label("Search models").focus();
    settle(&mut test);
    test.key_press_modifiers(Modifiers::COMMAND, Key::A);
    press(&mut test, Key::Delete);
    click(&mut test, "Effect");
    assert_eq!(rows(&test), ["Tube amp", "Tube amp", "Fuzz box"], "favourites, bundled, the user's own");
    click(&mut test, "Codec");
    test.get_by_label("Search models").type_text("nobody");
    test.get_by_label("Search models").focus();
    settle(&mut test);
    test.get_by_label("Search models").type_text("nobody");
    settle(&mut test);
    assert!(rows(&test).is_empty());
    assert!(test.query_by_label("No model fits").is_some());
}

#[test]
fn one_click_auditions_and_one_marks() {
    let mut test = open(Fake::playing());
    click(&mut test, "Audition Cello");
    assert_eq!(test.state_mut().told(), [Command::Audition(Some(EntryId(2)))]);
    click(&mut test, "Stop Cello");
    assert_eq!(test.state_mut().told(), [Command::Audition(None)]);
    assert_eq!(rows(&test)[0], "Tube amp");
    click(&mut test, "Mark Cello");
    assert_eq!(test.state_mut().told(), [Command::Favourite(EntryId(2), true)]);
    assert_eq!(rows(&test)[..2], ["Cello", "Tube amp"], "it stands among the favourites now");
    click(&mut test, "Rescan folders");
    assert_eq!(test.state_mut().told(), [Command::Rescan]);
}

#[test]
fn the_list_is_walked_by_keyboard() {
    let mut test = open(Fake::playing());
    test.key_press_modifiers(Modifiers::COMMAND, Key::F);
    settle(&mut test);
    assert!(test.get_by_label("Search models").is_focused());
    press(&mut test, Key::ArrowDown);
    assert!(row(&test, "Violin").is_focused(), "what plays is where the walk begins");
    for _ in 0..3 {
        press(&mut test, Key::ArrowDown);
    }
    assert!(row(&test, "Flute").is_focused());
    press(&mut test, Key::Space);
    press(&mut test, Key::F);
    press(&mut test, Key::Enter);
    let flute = EntryId(3);
    let wanted = [Command::Audition(Some(flute)), Command::Favourite(flute, true), Command::Load(flute)];
    assert_eq!(test.state_mut().told(), wanted);
    press(&mut test, Key::End);
    assert!(row(&test, "Fuzz box").is_focused(), "also a row that was out of sight");
    press(&mut test, Key::PageDown);
    assert!(row(&test, "Fuzz box").is_focused());
}

#[test]
fn a_thousand_models_are_no_more_work_than_those_in_sight() {
    let mut owner = Fake::playing();
    let model = owner.entries[1].clone();
    let many = |id: u64| ondes_ui::Entry { id: EntryId(id), name: format!("Model {id}"), ..model.clone() };
    owner.entries = (0..1000).map(many).collect();
    let test = open(owner);
    assert!(rows(&test).len() < 20, "{}", rows(&test).len());
}

#[test]
fn a_macro_is_bound_by_its_menu() {
    let mut test = open(Fake::playing());
    slider(&test, "Body").click_secondary();
    settle(&mut test);
    choose(&mut test, Role::Button, "Attack");
    assert_eq!(test.state_mut().told(), [Command::Bind(4, Some(5))]);
    assert_eq!(test.get_all_by_role_and_label(Role::Slider, "Attack").count(), 2);

    slider(&test, "Brightness").click_secondary();
    settle(&mut test);
    click(&mut test, "Unbind");
    assert_eq!(test.state_mut().told(), [Command::Bind(0, None)]);
}

#[test]
fn midi_is_learned_and_forgotten() {
    let mut test = open(Fake::playing());
    slider(&test, "Brightness").click_secondary();
    settle(&mut test);
    click(&mut test, "MIDI learn");
    assert_eq!(test.state_mut().told(), [Command::Learn(BRIGHTNESS)]);
    test.state_mut().owner.macros[0].knob.midi = Midi::Learning;
    slider(&test, "Brightness").click_secondary();
    settle(&mut test);
    click(&mut test, "Stop MIDI learn");
    assert_eq!(test.state_mut().told(), [Command::Forget(BRIGHTNESS)]);
    slider(&test, "Vibrato").click_secondary();
    settle(&mut test);
    click(&mut test, "Forget MIDI controller 1");
    assert_eq!(test.state_mut().told(), [Command::Forget(KnobId(2))]);
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
    assert_eq!(one_gesture(&test.state_mut().told(), KnobId(4)), 0.5);
    assert!(test.query_by_label("Reset").is_none(), "it closes");
    assert!(slider(&test, "Body").is_focused(), "and the keyboard is back at the knob");
}

#[test]
fn a_value_is_typed_with_its_unit() {
    let mut test = open(Fake::playing());
    slider(&test, "Gain in").focus();
    settle(&mut test);
    press(&mut test, Key::Enter);
    let field = test.get_by_label("Gain in value");
    assert!(field.is_focused());
    // What was there is selected, and gives way.
    field.type_text("-6 dB");
    settle(&mut test);
    press(&mut test, Key::Enter);
    let value = one_gesture(&test.state_mut().told(), INPUT);
    assert!((value - 42.0 / 60.0).abs() < 1e-6, "{value}");
    assert_eq!(slider(&test, "Gain in").value().as_deref(), Some("-6.0 dB"));
    assert!(slider(&test, "Gain in").is_focused(), "the keyboard is back at the knob");
}

#[test]
fn what_cannot_be_understood_is_refused() {
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
        assert!(test.state_mut().told().is_empty(), "{nonsense}");
        assert!(test.get_by_label("Gain in value").is_focused(), "{nonsense} stays to be put right");
    }
    press(&mut test, Key::Escape);
    assert!(test.query_by_label("Gain in value").is_none());
    assert!(test.state_mut().told().is_empty());
    assert_eq!(test.state_mut().owner.value(INPUT), 0.8);
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
        1.0 - long_gesture(&test.state_mut().told(), MIX)
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
    assert_eq!(test.state_mut().told()[0], Command::Begin(BRIGHTNESS));
    test.state_mut().owner.macros.remove(0);
    settle(&mut test);
    assert_eq!(test.state_mut().told(), [Command::End(BRIGHTNESS)]);

    let from = slider(&test, "Mix").rect().center();
    test.drop_at(from);
    settle(&mut test);
    test.drag_at(from);
    settle(&mut test);
    test.hover_at(from + vec2(0.0, 30.0));
    settle(&mut test);
    assert_eq!(test.state_mut().window.close(), Some(Command::End(MIX)));
    assert_eq!(test.state_mut().window.close(), None);
}

#[test]
fn a_wheel_that_rests_ends_its_gesture() {
    let mut test = open(Fake::playing());
    test.hover_at(slider(&test, "Brightness").rect().center());
    settle(&mut test);
    for _ in 0..3 {
        let delta = vec2(0.0, 1.0);
        let (unit, phase, source) = (MouseWheelUnit::Line, TouchPhase::Move, MouseWheelSource::Wheel);
        test.event(egui::Event::MouseWheel { unit, delta, phase, source, modifiers: Modifiers::NONE });
        test.step();
    }
    test.run_steps(60);
    let value = long_gesture(&test.state_mut().told(), BRIGHTNESS);
    assert!(value > 0.64 && value < 0.75, "{value}");
}

#[test]
fn a_double_click_resets() {
    let mut test = open(Fake::playing());
    slider(&test, "Brightness").click();
    slider(&test, "Brightness").click();
    settle(&mut test);
    assert_eq!(one_gesture(&test.state_mut().told(), BRIGHTNESS), 0.5);
}

#[test]
fn keys_turn_a_knob() {
    let mut test = open(Fake::playing());
    slider(&test, "Brightness").focus();
    settle(&mut test);
    let mut turned = |press: &dyn Fn(&Test)| {
        press(&test);
        settle(&mut test);
        one_gesture(&test.state_mut().told(), BRIGHTNESS)
    };
    let near = |value: f32, wanted: f32| assert!((value - wanted).abs() < 1e-4, "{value} is not {wanted}");
    near(turned(&|test| test.key_press(Key::ArrowUp)), 0.63);
    near(turned(&|test| test.key_press(Key::ArrowLeft)), 0.62);
    near(turned(&|test| test.key_press_modifiers(Modifiers::SHIFT, Key::ArrowRight)), 0.621);
    near(turned(&|test| test.key_press(Key::PageDown)), 0.521);
    near(turned(&|test| test.key_press(Key::End)), 1.0);
    near(turned(&|test| test.key_press(Key::Home)), 0.0);
    near(turned(&|test| test.key_press(Key::Delete)), 0.5);
    assert!(slider(&test, "Brightness").is_focused(), "arrows do not lead away");
    // At its end it cannot go on, and says nothing.
    press(&mut test, Key::End);
    test.state_mut().told();
    press(&mut test, Key::ArrowUp);
    assert!(test.state_mut().told().is_empty());
}

#[test]
fn a_knob_with_steps_stands_at_steps() {
    let mut test = open(Fake::playing());
    click(&mut test, "Voice");
    slider(&test, "Mode").focus();
    settle(&mut test);
    press(&mut test, Key::ArrowUp);
    assert_eq!(one_gesture(&test.state_mut().told(), KnobId(51)), 0.5);
}

#[test]
fn a_knob_is_turned_by_other_means() {
    let mut test = open(Fake::playing());
    slider(&test, "Brightness").increment_accesskit();
    settle(&mut test);
    let value = one_gesture(&test.state_mut().told(), BRIGHTNESS);
    assert!((value - 0.63).abs() < 1e-4, "{value}");
    slider(&test, "Brightness").set_value_accesskit(0.25);
    settle(&mut test);
    assert_eq!(one_gesture(&test.state_mut().told(), BRIGHTNESS), 0.25);
    assert_eq!(slider(&test, "Brightness").value().as_deref(), Some("25 %"));
    slider(&test, "Brightness").set_value_accesskit(f64::NAN);
    settle(&mut test);
    assert!(test.state_mut().told().is_empty());
}

#[test]
fn tab_leads_through_everything_and_round() {
    let mut test = open(Fake::playing());
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..60 {
        press(&mut test, Key::Tab);
        let focused = test.get_all(egui_kittest::kittest::by().predicate(|node| node.is_focused())).next();
        let label = focused.and_then(|node| node.accesskit_node().label()).unwrap_or_default();
        if seen.first() == Some(&label) {
            break;
        }
        seen.push(label);
    }
    let order =
        ["Browser", "Previous model", "A", "Panic", "Window", "Search models", "Violin", "Macros", "Brightness"];
    let order: Vec<&str> = order.into_iter().chain(["Body", "Gain in", "Mix", "Driver", "Quality"]).collect();
    let met: Vec<&str> = seen.iter().map(String::as_str).filter(|label| order.contains(label)).collect();
    assert_eq!(met, order, "as one reads, each once: {seen:?}");
    assert_eq!(seen.iter().filter(|label| label.as_str() == "Cello").count(), 0, "the list is one stop: {seen:?}");
    assert!(seen.len() < 50, "{seen:?}");
    assert!(test.state_mut().told().is_empty(), "walking changes nothing");
}

#[test]
fn a_missing_model_says_so_and_is_tried_again() {
    let looked = ["/models", "/songs"].map(str::to_owned).to_vec();
    let mut test = open(Fake { missing: Some(("Old Bell".into(), looked)), ..Fake::playing() });
    assert!(test.query_by_label("“Old Bell” is missing: looked in /models and 1 more").is_some());
    click(&mut test, "Locate…");
    click(&mut test, "Retry");
    assert_eq!(test.state_mut().told(), [Command::Locate, Command::Retry]);
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
    click(&mut test, "int8");
    assert_eq!(test.state_mut().told(), [Command::Quality(1)]);
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

#[test]
fn everything_is_in_the_window_at_every_size() {
    for scale in SCALES {
        let missing = Some(("Old Bell".to_owned(), Vec::new()));
        let test = open(Fake { scale, missing, ..Fake::playing() });
        assert_eq!(test.ctx.pixels_per_point(), scale);
        let all = test.ctx.content_rect();
        assert_eq!(all.size(), SIZE.into());
        let roles =
            [Role::Button, Role::Slider, Role::ComboBox, Role::Meter, Role::Status, Role::Image, Role::TextInput];
        for node in roles.into_iter().flat_map(|role| test.query_all_by_role(role)) {
            let label = node.accesskit_node().label().unwrap_or_default();
            // A list goes on below what can be seen.
            if !["Audition ", "Mark ", "Unmark "].iter().any(|sign| label.starts_with(sign)) {
                assert!(all.contains_rect(node.rect()), "{label} at {:?}, {scale}", node.rect());
            }
        }
    }
}

#[test]
fn the_system_says_whether_it_is_dark() {
    let mut test = open(Fake { theme: egui::ThemePreference::System, ..Fake::playing() });
    for theme in [egui::Theme::Light, egui::Theme::Dark] {
        test.input_mut().system_theme = Some(theme);
        settle(&mut test);
        assert_eq!(test.ctx.theme(), theme);
    }
}

#[derive(Debug)]
struct Dropped(PathBuf);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        Err("nobody should read it here".into())
    }
}

#[test]
fn a_dropped_file_is_opened() {
    let mut test = open(Fake::playing());
    test.input_mut().dropped_files.push(Arc::new(Dropped("/tmp/bell.ondes".into())));
    settle(&mut test);
    assert_eq!(test.state_mut().told(), [Command::Open("/tmp/bell.ondes".into())]);
}

#[test]
fn nothing_is_done_while_nothing_changes() {
    let mut owner = Fake { moving: false, ..Fake::playing() };
    owner.input_levels.clear();
    owner.output_levels.clear();
    let mut test = open(owner);
    let frames = test.run();
    assert!(frames <= 2, "{frames} frames");
    let rest = |test: &Test| test.output().viewport_output[&egui::ViewportId::ROOT].repaint_delay;
    assert_eq!(rest(&test), std::time::Duration::MAX);
    test.state_mut().owner.moving = true;
    test.step();
    assert!(rest(&test) <= std::time::Duration::from_millis(34), "sound moves: {:?}", rest(&test));
}

#[test]
fn what_is_said_is_what_is_followed() {
    let mut test = open(Fake::playing());
    assert!(test.query_by_label("Pitch A4 +7 cents, 441.8 Hz").is_some());
    assert!(test.query_by_label("Notes A3 A4").is_some());
    assert!(test.query_by_label("Latency 8.6 ms").is_some());
    assert_eq!(test.get_by_label("Output level").value().as_deref(), Some("-5.8 dB"));
    test.state_mut().owner.pitch_hz = None;
    test.state_mut().owner.notes.clear();
    settle(&mut test);
    assert!(test.query_by_label("Pitch none").is_some());
    assert!(test.query_by_label("Notes none").is_some());
}

#[test]
fn nothing_that_an_owner_says_breaks_it() {
    let mut owner = Fake::playing();
    let nan = f32::NAN;
    owner.knobs().for_each(|knob| (knob.value, knob.default) = (nan, nan));
    owner.macros[0].control = Some(900);
    owner.quality = 900;
    owner.input_levels = vec![Level { peak_db: nan, rms_db: f32::INFINITY }; 40];
    owner.output_levels = vec![Level { peak_db: f32::INFINITY, rms_db: f32::NEG_INFINITY }];
    owner.waves = [vec![nan; 9], vec![f32::INFINITY, -f32::INFINITY, nan, 3e38]];
    owner.spectra = [vec![nan; 9], vec![f32::INFINITY; 3]];
    owner.pitch_hz = Some(nan);
    owner.loudness_db = Some(nan);
    owner.notes = vec![Note { key: 255, velocity: nan }, Note { key: 0, velocity: -1.0 }];
    owner.sample_rate_hz = nan;
    owner.scale = nan;
    owner.playing = Some(EntryId(900));
    let health = owner.health.as_mut().expect("health");
    (health.load, health.latency_ms) = (nan, f64::NAN);
    // The size follows the scale.
    let scale = std::mem::replace(&mut owner.scale, 1.0);
    let mut test = open(owner);
    test.state_mut().owner.scale = scale;
    settle(&mut test);
    for name in ["Brightness", "Mix"] {
        slider(&test, name).focus();
        settle(&mut test);
        for key in [Key::ArrowUp, Key::Delete, Key::Home] {
            press(&mut test, key);
        }
    }
    let told = test.state_mut().told();
    let sound = |command: &Command| !matches!(command, Command::Set(_, value) if !(0.0..=1.0).contains(value));
    assert!(told.iter().all(sound), "{told:?}");
    test.render().expect("a picture");
    let mut test = open(Fake::empty());
    assert!(test.query_by_label("No models found").is_some());
    test.set_size(vec2(120.0, 90.0));
    settle(&mut test);
    test.render().expect("a picture");
}
