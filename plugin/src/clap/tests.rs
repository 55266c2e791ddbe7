//! MIDI learn and sleep, from the window's side and the host's at once: only within one process both can be seen.

#[path = "../../tests/host/mod.rs"]
mod host;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use clack_host::entry::PluginEntry;
use clack_host::process::ProcessStatus;
use ondes_engine::instrument::EventKind;
use ondes_processor::library::BUNDLED;
use ondes_processor::shared::Shared;
use ondes_ui::Midi;

use self::host::{Do, EFFECT, Host, INSTRUMENT, content, energy};
use super::entry::clap_entry;
use super::shell::Shell;

static ENTRY: LazyLock<PluginEntry> = LazyLock::new(|| {
    // SAFETY: it is our own entry, which keeps to the CLAP ABI.
    unsafe { PluginEntry::load_from_raw(&clap_entry, c"") }.unwrap()
});

/// An instance, and what its window would have of it.
fn open(id: &str) -> (Host, Arc<Shared>) {
    let host = Host::of(&ENTRY, id);
    // SAFETY: the instance is alive, and one of ours.
    let shell = unsafe { Shell::of(host.instance.raw_instance()) }.unwrap();
    let shared = shell.shared.clone();
    (host, shared)
}

fn midi(number: u8, value: u8) -> Do {
    Do::Midi([0xB5, number, value])
}

#[test]
fn instances_are_told_apart() {
    let ((one, first), (other, second)) = (open(INSTRUMENT), open(INSTRUMENT));
    assert!(!Arc::ptr_eq(&first, &second));
    first.controllers.learn("mix");
    assert_eq!((first.controllers.binding("mix"), second.controllers.binding("mix")), (Midi::Learning, Midi::None));
    drop((one, other));
    assert_eq!(
        (Arc::strong_count(&first), Arc::strong_count(&second)),
        (1, 1),
        "nothing is left of a destroyed instance"
    );
}

#[test]
fn the_next_controller_is_learnt_saved_and_forgotten() {
    for id in [INSTRUMENT, EFFECT] {
        let (mut host, shared) = open(id);
        let plain = content(&host.save());
        assert!(plain["fields"]["ondes"].get("controllers").is_none(), "projects without are as they were");
        host.set_offline(true);
        host.activate(48_000.0, 256);
        let gain = host.parameters["Output gain"];

        shared.controllers.learn("output_gain");
        host.block(256, &[(3, Do::Midi([0x95, 20, 64])), (4, midi(99, 1)), (5, midi(123, 0))], None);
        assert_eq!(shared.controllers.binding("output_gain"), Midi::Learning, "these are no controllers to learn");
        assert!(host.told.is_empty());
        host.block(256, &[(100, midi(20, 127)), (101, midi(21, 0))], None);
        assert_eq!(host.told, [(100, gain, 1.0)], "what teaches also turns");
        assert_eq!((host.value("Output gain"), shared.controllers.binding("output_gain")), (1.0, Midi::Controller(20)));

        let saved = host.save();
        assert_eq!(content(&saved)["fields"]["ondes"]["controllers"], serde_json::json!({ "output_gain": 20 }));
        let (mut other, theirs) = open(id);
        assert!(other.load(&saved));
        assert_eq!(theirs.controllers.all(), BTreeMap::from([("output_gain".to_owned(), 20)]));

        shared.controllers.forget("output_gain");
        host.block(256, &[(10, midi(20, 0))], None);
        assert_eq!((host.value("Output gain"), host.told.len()), (1.0, 0));
        assert!(content(&host.save())["fields"]["ondes"].get("controllers").is_none());
    }
}

#[test]
fn what_cannot_be_automated_is_not_turned() {
    let (mut host, shared) = open(INSTRUMENT);
    for (name, id) in [("Driver", "driver"), ("Played by", "source")] {
        assert!(host.parameters.contains_key(name));
        assert!(!shared.controllers.learn(id), "{id}");
    }
    host.set_offline(true);
    host.activate(48_000.0, 256);
    host.block(256, &[(0, midi(20, 127))], None);
    assert!(host.told.is_empty() && !shared.controllers.is_learning());
}

#[test]
fn a_window_wakes_a_host_that_lets_the_instance_sleep() {
    let (mut host, shared) = open(INSTRUMENT);
    host.set_offline(true);
    host.activate(48_000.0, 256);
    host.play(96_000, 256, &[], None);
    assert_eq!(host.status, Some(ProcessStatus::Sleep));
    host.process_wanted();
    // As the window does with its keys.
    shared.monitor.press(EventKind::NoteOn { channel: 0, key: 60, velocity: 0.8 });
    shared.rest.wake();
    assert!(host.process_wanted());
    let sound = host.play(24_000, 256, &[], None);
    assert_eq!(host.status, Some(ProcessStatus::Continue));
    assert!(energy(&sound) > 1e-6);
    // Another model wants to be heard, too.
    drop(shared.fetch(false, || Ok((BUNDLED[1].model(), None))).join());
    assert!(host.process_wanted());
    drop(host);
    // Nobody is there any more.
    shared.rest.wake();
}
