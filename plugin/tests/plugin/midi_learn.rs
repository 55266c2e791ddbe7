//! MIDI learn in a CLAP host.

use crate::host::{EFFECT, Host, HostEvent, INSTRUMENT, energy, json, sine, state, with_selection};

const FRAMES: usize = 9600;

/// Returns an active instance with these bindings: parameter id and controller number.
fn bound(id: &str, controllers: &[(&str, u8)]) -> Host {
    let mut host = Host::new(id);
    let mut saved = json(&host.save());
    saved["params"]["driver"] = serde_json::json!({ "string": "inline" });
    let saved = with_selection(&state(&saved), |selection| {
        for (parameter, number) in controllers {
            selection["controllers"][parameter] = (*number).into();
        }
    });
    assert!(host.load(&saved));
    host.activate(48_000.0, 512);
    host
}

/// Returns a control change. Bindings apply to all channels, so this one differs from the notes'.
fn midi(number: u8, value: u8) -> HostEvent {
    HostEvent::Midi([0xB3, number, value])
}

#[test]
fn a_controller_acts_at_its_sample_as_automation_does() {
    let input = sine(FRAMES, 0.3);
    for (id, parameter, name, [min, max]) in [
        (EFFECT, "output_gain", "Output gain", [-60.0, 24.0]),
        (INSTRUMENT, "output_gain", "Output gain", [-60.0, 24.0]),
        (INSTRUMENT, "macro3", "Macro 3", [0.0, 1.0]),
    ] {
        let note = (7, HostEvent::NoteOn(60, 0.8));
        let play = |events: &[(usize, HostEvent)]| {
            let events = [std::slice::from_ref(&note), events].concat();
            bound(id, &[(parameter, 20)]).play(FRAMES, 512, &events, Some(&input))
        };
        let by_controller = play(&[
            (3001, midi(20, 40)),
            (3100, midi(20, 90)),
            (6000, midi(20, 0)),
        ]);
        let value = |position: u8| min + f64::from(position) / 127.0 * (max - min);
        let by_automation = play(&[
            (3001, HostEvent::SetParameter(name, value(40))),
            (3100, HostEvent::SetParameter(name, value(90))),
            (6000, HostEvent::SetParameter(name, min)),
        ]);
        let alone = play(&[]);
        assert!(energy(&alone) > 1e-6);
        // Both are rounded, at other places.
        let apart = by_controller
            .iter()
            .zip(&by_automation)
            .map(|(one, other)| (one - other).abs());
        assert!(apart.fold(0.0, f32::max) < 1e-6, "{id} {name}");
        assert_ne!(by_controller, alone, "{id} {name}");
        assert_eq!(by_controller[..3001], alone[..3001], "{id} {name}");
        if parameter == "output_gain" {
            assert_ne!(by_controller[3001..3020], alone[3001..3020], "{id} {name}");
        }
    }
}

#[test]
fn parameter_events_are_in_order_and_host_automation_still_applies() {
    let mut host = bound(
        INSTRUMENT,
        &[
            ("output_gain", 20),
            ("transpose", 20),
            ("bypass", 21),
            ("mix", 22),
        ],
    );
    let [gain, transpose, bypass, mix] =
        ["Output gain", "Transpose", "Bypass", "Mix"].map(|name| host.parameters[name]);
    let events = [
        (0, midi(21, 63)),
        (9, midi(22, 127)),
        (50, HostEvent::SetParameter("Mix", 0.25)),
        (50, midi(21, 64)),
        (200, midi(20, 127)),
        (511, midi(20, 0)),
    ];
    host.block(512, &events, None);
    let mut told = host.parameter_events.clone();
    assert!(told.is_sorted_by_key(|(time, ..)| *time), "{told:?}");
    told.sort_by_key(|(time, id, _)| (*time, *id));
    let mut expected = vec![
        (0, bypass, 0.0),
        (9, mix, 1.0),
        (50, bypass, 1.0),
        (200, gain, 24.0),
        // Stepped parameters get whole numbers.
        (200, transpose, 24.0),
        (511, gain, -60.0),
        (511, transpose, -24.0),
    ];
    expected.sort_by_key(|(time, id, _)| (*time, *id));
    assert_eq!(told, expected);
    let now = ["Output gain", "Transpose", "Bypass", "Mix"].map(|name| host.value(name));
    assert_eq!(now, [-60.0, -24.0, 1.0, 0.25]);
    // The controller's centre is the centre of a stepped range.
    host.block(512, &[(0, midi(20, 64))], None);
    assert_eq!(host.value("Transpose"), 0.0);
    host.block(512, &[], None);
    assert!(host.parameter_events.is_empty());
}

#[test]
fn bindings_are_saved_with_the_project() {
    let plain = Host::new(INSTRUMENT).save();
    let saved = bound(
        INSTRUMENT,
        &[
            ("output_gain", 20),
            ("macro1", 1),
            ("later", 3),
            ("mix", 121),
        ],
    )
    .save();
    let mut host = Host::new(INSTRUMENT);
    assert!(host.load(&saved));
    host.set_offline(true);
    host.activate(48_000.0, 256);
    host.block(
        256,
        &[
            (0, midi(20, 127)),
            (1, midi(1, 0)),
            (2, midi(121, 127)),
            (3, midi(3, 127)),
        ],
        None,
    );
    assert_eq!(
        (
            host.value("Output gain"),
            host.value("Macro 1"),
            host.parameter_events.len()
        ),
        (24.0, 0.0, 2)
    );
    // A project without bindings removes them.
    assert!(host.load(&plain));
    let before = host.value("Output gain");
    host.block(256, &[(0, midi(20, 127))], None);
    assert_eq!(
        (host.value("Output gain"), host.parameter_events.len()),
        (before, 0)
    );
}

#[test]
fn learnt_controllers_still_reach_the_instrument() {
    for (name, number) in [("the wheel", 1), ("the pedal", 64)] {
        let play = |controllers: &[(&str, u8)], moved: bool| {
            let mut events = vec![
                (0, HostEvent::NoteOn(60, 0.8)),
                (6_000, HostEvent::Midi([0xB0, number, 127])),
                (12_000, HostEvent::NoteOff(60)),
            ];
            events.retain(|(_, what)| moved || !matches!(what, HostEvent::Midi(_)));
            bound(INSTRUMENT, controllers).play(24_000, 512, &events, None)
        };
        let free = play(&[], true);
        assert_ne!(free, play(&[], false), "{name} is heard");
        // The mix is at its maximum already, so the binding itself is inaudible.
        assert_eq!(
            play(&[("mix", number)], true),
            free,
            "{name} has the same effect with a binding"
        );
    }
}

#[test]
fn an_effect_ignores_notes() {
    let input = sine(FRAMES, 0.3);
    let plain = bound(EFFECT, &[]).play(FRAMES, 512, &[], Some(&input));
    let notes: Vec<(usize, HostEvent)> = (0..4000)
        .map(|n| {
            (
                2 * n,
                if n % 2 == 0 {
                    HostEvent::NoteOn(60 + (n % 24) as u8, 0.9)
                } else {
                    HostEvent::Midi([0xE0, 0, n as u8 & 0x7F])
                },
            )
        })
        .collect();
    assert_eq!(
        bound(EFFECT, &[]).play(FRAMES, 512, &notes, Some(&input)),
        plain
    );
}

#[test]
fn many_changes_end_at_the_last_value() {
    let mut host = bound(EFFECT, &[("output_gain", 20), ("mix", 20)]);
    let events: Vec<(u32, HostEvent)> = (0..2000)
        .map(|n| (n / 4, midi(20, (n % 127) as u8)))
        .collect();
    host.block(512, &events, Some(&sine(512, 0.3)));
    let last = f64::from(1999 % 127) / 127.0;
    assert!(
        (host.value("Output gain") - (84.0 * last - 60.0)).abs() < 1e-4
            && (host.value("Mix") - last).abs() < 1e-6
    );
    assert_eq!(host.parameter_events.len(), 2 * 2000);
    assert!(
        (host.parameter_events[3999].2 - last).abs() < 1e-6,
        "the host gets the last value as well"
    );
}
