//! MIDI learn and sleep, observed from the window's side and the host's at once, which takes one
//! process for both.

#[path = "../../tests/host/mod.rs"]
mod host;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use clack_host::entry::PluginEntry;
use clack_host::process::ProcessStatus;
use ondes_engine::instrument::EventKind;
use ondes_player::instance::InstanceHandle;
use ondes_player::library::BUNDLED;
use ondes_player::midi_bindings::MidiBinding;
use ondes_player::preset::location::PresetLocation;
use ondes_player::programs::{ProgramChange, ProgramChoice, ProgramNumber};

use self::host::{EFFECT, Host, HostEvent, INSTRUMENT, energy, state_content};
use super::c_interface::FromHost;
use super::entry::clap_entry;
use super::plugin_wrapper::PluginWrapper;

static ENTRY: LazyLock<PluginEntry> = LazyLock::new(|| {
    // SAFETY: the entry is our own and conforms to the CLAP ABI.
    unsafe { PluginEntry::load_from_raw(&clap_entry, c"") }.unwrap()
});

/// Returns an instance and the instance state that its window uses.
fn open(id: &str) -> (Host, Arc<InstanceHandle>) {
    let host = Host::with_entry(&ENTRY, id);
    // SAFETY: the instance is alive, and one of ours.
    let wrapper = unsafe { <&PluginWrapper>::from_host(host.instance.raw_instance()) }.unwrap();
    let instance = wrapper.instance.clone();
    (host, instance)
}

fn midi(number: u8, value: u8) -> HostEvent {
    HostEvent::Midi([0xB5, number, value])
}

#[test]
fn instances_do_not_share_state() {
    let ((one, first), (other, second)) = (open(INSTRUMENT), open(INSTRUMENT));
    assert!(!Arc::ptr_eq(&first, &second));
    first.midi_bindings.learn("mix");
    assert_eq!(
        (
            first.midi_bindings.binding("mix"),
            second.midi_bindings.binding("mix")
        ),
        (MidiBinding::Learning, MidiBinding::None)
    );
    drop((one, other));
    assert_eq!(
        (Arc::strong_count(&first), Arc::strong_count(&second)),
        (1, 1),
        "a destroyed instance leaves no reference behind"
    );
}

#[test]
fn a_program_change_chooses_a_preset() {
    let (mut host, instance) = open(EFFECT);
    host.set_offline(true);
    host.activate(48_000.0, 256);
    let preset = PresetLocation::Factory("loop-station".into());
    let number = |bank, program| ProgramNumber { bank, program };
    let program = |number, choice| ProgramChange { number, choice };
    instance.set_programs(vec![
        program(number(130, 5), ProgramChoice::Preset(preset.clone())),
        program(number(0, 1), ProgramChoice::Scene(7)),
        program(number(0, 9), ProgramChoice::Scene(900)),
    ]);
    let midi = |messages: &[[u8; 3]]| -> Vec<(u32, HostEvent)> {
        let events = messages.iter();
        events
            .map(|message| (7, HostEvent::Midi(*message)))
            .collect()
    };
    host.block(
        256,
        &midi(&[[0xB1, 0, 1], [0xB1, 32, 2], [0xC1, 5, 0]]),
        None,
    );
    let start = Instant::now();
    while instance.read_state(|state| state.blocks.is_empty()) {
        assert!(start.elapsed() < Duration::from_secs(20), "no preset");
        std::thread::sleep(Duration::from_millis(5));
        host.call_back();
    }
    assert_eq!(
        instance.read_state(|state| state.preset.clone()),
        Some(preset)
    );
    assert!(instance.history.labels()[0].as_deref() == Some("Preset Loop Station"));
    assert_eq!(instance.programs().len(), 3, "a preset leaves them");
    // Scenes by the table, and by their numbers where it has none.
    for (message, expected) in [([0xC0, 1, 0], 6), ([0xC0, 2, 0], 2), ([0xC0, 9, 0], 2)] {
        host.block(256, &midi(&[message]), None);
        host.call_back();
        host.call_back();
        assert_eq!(instance.scenes().active, expected);
    }
    let saved = host.save();
    instance.set_programs(Vec::new());
    assert!(host.load(&saved));
    assert_eq!(instance.programs().len(), 3);
}

#[test]
fn a_program_change_chooses_a_scene() {
    for id in [INSTRUMENT, EFFECT] {
        let (mut host, instance) = open(id);
        host.set_offline(true);
        host.activate(48_000.0, 256);
        let scene = host.parameters["Scene"];
        host.block(256, &[(7, HostEvent::Midi([0xC3, 2, 0]))], None);
        assert_eq!(host.parameter_events, [(7, scene, 3.0)]);
        assert_eq!((host.value("Scene"), instance.scenes().active), (3.0, 2));
        // There are eight.
        host.block(256, &[(7, HostEvent::Midi([0xC3, 8, 0]))], None);
        assert!(host.parameter_events.is_empty());
        // As automation does.
        host.block(256, &[(0, HostEvent::SetParameter("Scene", 1.0))], None);
        assert_eq!(instance.scenes().active, 0);
        assert!(instance.scenes().are_used());
    }
}

#[test]
fn the_next_controller_is_learnt_saved_and_forgotten() {
    for id in [INSTRUMENT, EFFECT] {
        let (mut host, instance) = open(id);
        let plain = state_content(&host.save());
        assert!(
            plain["fields"]["ondes"].get("controllers").is_none(),
            "projects without bindings have no such field"
        );
        host.set_offline(true);
        host.activate(48_000.0, 256);
        let gain = host.parameters["Output gain"];

        instance.midi_bindings.learn("output_gain");
        host.block(
            256,
            &[
                (3, HostEvent::Midi([0x95, 20, 64])),
                (4, midi(99, 1)),
                (5, midi(123, 0)),
            ],
            None,
        );
        assert_eq!(
            instance.midi_bindings.binding("output_gain"),
            MidiBinding::Learning,
            "notes, channel modes and parameter numbers are not learnt"
        );
        assert!(host.parameter_events.is_empty());
        host.block(256, &[(100, midi(20, 127)), (101, midi(21, 0))], None);
        assert_eq!(
            host.parameter_events,
            [(100, gain, 24.0)],
            "the message that teaches also sets the value"
        );
        assert_eq!(
            (
                host.value("Output gain"),
                instance.midi_bindings.binding("output_gain")
            ),
            (24.0, MidiBinding::Controller(20))
        );

        let saved = host.save();
        assert_eq!(
            state_content(&saved)["fields"]["ondes"]["controllers"],
            serde_json::json!({ "output_gain": 20 })
        );
        let (mut other, theirs) = open(id);
        assert!(other.load(&saved));
        assert_eq!(
            theirs.midi_bindings.bindings(),
            BTreeMap::from([("output_gain".to_owned(), 20)])
        );

        instance.midi_bindings.forget("output_gain");
        host.block(256, &[(10, midi(20, 0))], None);
        assert_eq!(
            (host.value("Output gain"), host.parameter_events.len()),
            (24.0, 0)
        );
        assert!(
            state_content(&host.save())["fields"]["ondes"]
                .get("controllers")
                .is_none()
        );
    }
}

#[test]
fn parameters_that_cannot_be_automated_cannot_be_learnt() {
    let (mut host, instance) = open(INSTRUMENT);
    for (name, id) in [("Processing", "driver"), ("Control source", "source")] {
        assert!(host.parameters.contains_key(name));
        assert!(!instance.midi_bindings.learn(id), "{id}");
    }
    host.set_offline(true);
    host.activate(48_000.0, 256);
    host.block(256, &[(0, midi(20, 127))], None);
    assert!(host.parameter_events.is_empty() && !instance.midi_bindings.is_learning());
}

#[test]
fn a_window_wakes_a_sleeping_instance() {
    let (mut host, instance) = open(INSTRUMENT);
    host.set_offline(true);
    host.activate(48_000.0, 256);
    host.play(96_000, 256, &[], None);
    assert_eq!(host.status, Some(ProcessStatus::Sleep));
    host.process_requested();
    // As the window's keyboard does.
    instance.monitor.push_key(EventKind::NoteOn {
        channel: 0,
        key: 60,
        velocity: 0.8,
    });
    instance.sleep_state.wake_host();
    assert!(host.process_requested());
    let sound = host.play(24_000, 256, &[], None);
    assert_eq!(host.status, Some(ProcessStatus::Continue));
    assert!(energy(&sound) > 1e-6);
    // Loading another model wakes the instance as well.
    drop(
        instance
            .load_model(false, || Ok((BUNDLED[1].model(), None)))
            .join(),
    );
    assert!(host.process_requested());
    drop(host);
    // The host is gone: must not crash.
    instance.sleep_state.wake_host();
}

/// Returns whether the host has marked the project as changed since the last call.
fn take_dirty(host: &mut Host) -> bool {
    host.call_back();
    host.instance.access_handler(|main| main.dirty.take())
}

#[test]
fn changes_in_the_window_mark_the_project_as_changed() {
    for id in [INSTRUMENT, EFFECT] {
        let (mut host, instance) = open(id);
        assert!(!take_dirty(&mut host), "a new instance is unchanged");
        drop(
            instance
                .load_model(false, || Ok((BUNDLED[1].model(), None)))
                .join(),
        );
        assert!(take_dirty(&mut host), "another model");
        drop(
            instance
                .load_model(true, || Ok((BUNDLED[2].model(), None)))
                .join(),
        );
        instance.end_audition();
        assert!(!take_dirty(&mut host), "an audition leaves nothing behind");
        instance.bind_macro(2, Some("attack"));
        assert!(take_dirty(&mut host));
        let snapshot = instance.selection_snapshot();
        instance.restore_selection(snapshot);
        assert!(take_dirty(&mut host), "presets and undo");
        instance.remove_cabinet();
        assert!(take_dirty(&mut host));
        let saved = host.save();
        assert!(host.load(&saved));
        assert!(!take_dirty(&mut host), "the host knows what it has loaded");
    }
}

/// Qtractor's `request_callback` does nothing.
#[test]
fn a_host_that_ignores_requests_for_a_call_is_notified_by_timer() {
    let (mut host, instance) = open(INSTRUMENT);
    instance.bind_macro(7, Some("attack"));
    assert!(!host.instance.access_handler(|main| main.dirty.get()));
    host.tick();
    assert!(host.instance.access_handler(|main| main.dirty.take()));
    assert_eq!(host.name("Macro 8"), "Attack");
    host.tick();
    assert!(
        !host.instance.access_handler(|main| main.dirty.get()),
        "once for each change"
    );
}

#[test]
fn a_macro_bound_in_the_window_has_its_name_in_the_host() {
    let (mut host, instance) = open(INSTRUMENT);
    host.call_back();
    host.instance.access_handler(|main| main.rescans.take());
    instance.bind_macro(7, Some("attack"));
    assert!(host.call_back());
    assert_eq!(
        host.instance.access_handler(|main| main.rescans.take()),
        6,
        "names and texts"
    );
    assert_eq!(host.name("Macro 8"), "Attack");
    let value = host.value("Macro 8");
    assert!(host.value_to_text("Macro 8", value).ends_with(" ms"));
}
