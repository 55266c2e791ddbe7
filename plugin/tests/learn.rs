//! What controllers turn, as a host sees it on the shared object that was built.

mod host;

use host::{Do, EFFECT, Host, INSTRUMENT, energy, json, state, with_selection};

const FRAMES: usize = 9600;

/// An instance whose parameters are turned by these controllers.
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

/// On any channel, here on another one than notes.
fn midi(number: u8, value: u8) -> Do {
    Do::Midi([0xB3, number, value])
}

fn sine(frames: usize) -> Vec<f32> {
    (0..frames).map(|n| 0.3 * (n as f32 * 0.043).sin()).collect()
}

#[test]
fn a_controller_is_heard_at_its_sample_as_automation_is() {
    let input = sine(FRAMES);
    for (id, parameter, name) in [
        (EFFECT, "output_gain", "Output gain"),
        (INSTRUMENT, "output_gain", "Output gain"),
        (INSTRUMENT, "macro3", "Macro 3"),
    ] {
        let note = (7, Do::On(60, 0.8));
        let play = |todo: &[(usize, Do)]| {
            let todo = [std::slice::from_ref(&note), todo].concat();
            bound(id, &[(parameter, 20)]).play(FRAMES, 512, &todo, Some(&input))
        };
        let by_controller = play(&[(3001, midi(20, 40)), (3100, midi(20, 90)), (6000, midi(20, 0))]);
        let value = |position: u8| f64::from(position) / 127.0;
        let by_automation =
            play(&[(3001, Do::Turn(name, value(40))), (3100, Do::Turn(name, value(90))), (6000, Do::Turn(name, 0.0))]);
        let alone = play(&[]);
        assert!(energy(&alone) > 1e-6);
        assert_eq!(by_controller, by_automation, "{id} {name}");
        assert_ne!(by_controller, alone, "{id} {name}");
        assert_eq!(by_controller[..3001], alone[..3001], "{id} {name}");
        if parameter == "output_gain" {
            assert_ne!(by_controller[3001..3020], alone[3001..3020], "{id} {name}");
        }
    }
}

#[test]
fn the_host_is_told_in_order_and_what_it_does_itself_counts_too() {
    let mut host = bound(INSTRUMENT, &[("output_gain", 20), ("transpose", 20), ("bypass", 21), ("mix", 22)]);
    let [gain, transpose, bypass, mix] =
        ["Output gain", "Transpose", "Bypass", "Mix"].map(|name| host.parameters[name]);
    let todo = [
        (0, midi(21, 63)),
        (9, midi(22, 127)),
        (50, Do::Turn("Mix", 0.25)),
        (50, midi(21, 64)),
        (200, midi(20, 127)),
        (511, midi(20, 0)),
    ];
    host.block(512, &todo, None);
    let mut told = host.told.clone();
    assert!(told.is_sorted_by_key(|(time, ..)| *time), "{told:?}");
    told.sort_by_key(|(time, id, _)| (*time, *id));
    let mut expected = vec![
        (0, bypass, 0.0),
        (9, mix, 1.0),
        (50, bypass, 1.0),
        (200, gain, 1.0),
        // Steps are whole numbers.
        (200, transpose, 48.0),
        (511, gain, 0.0),
        (511, transpose, 0.0),
    ];
    expected.sort_by_key(|(time, id, _)| (*time, *id));
    assert_eq!(told, expected);
    let now = ["Output gain", "Transpose", "Bypass", "Mix"].map(|name| host.value(name));
    assert_eq!(now, [0.0, 0.0, 1.0, 0.25]);
    // The middle of the controller is the middle of what has steps.
    host.block(512, &[(0, midi(20, 64))], None);
    assert_eq!(host.value("Transpose"), 24.0);
    host.block(512, &[], None);
    assert!(host.told.is_empty());
}

#[test]
fn bindings_live_in_the_project_and_end_with_another_one() {
    let plain = Host::new(INSTRUMENT).save();
    let saved = bound(INSTRUMENT, &[("output_gain", 20), ("macro1", 1), ("later", 3), ("mix", 121)]).save();
    let mut host = Host::new(INSTRUMENT);
    assert!(host.load(&saved));
    host.set_offline(true);
    host.activate(48_000.0, 256);
    host.block(256, &[(0, midi(20, 127)), (1, midi(1, 0)), (2, midi(121, 127)), (3, midi(3, 127))], None);
    assert_eq!((host.value("Output gain"), host.value("Macro 1"), host.told.len()), (1.0, 0.0, 2));
    // A project without.
    assert!(host.load(&plain));
    let before = host.value("Output gain");
    host.block(256, &[(0, midi(20, 127))], None);
    assert_eq!((host.value("Output gain"), host.told.len()), (before, 0));
}

#[test]
fn controllers_still_reach_the_instrument() {
    for (name, number) in [("the wheel", 1), ("the pedal", 64)] {
        let play = |controllers: &[(&str, u8)], moved: bool| {
            let mut todo = vec![(0, Do::On(60, 0.8)), (6_000, Do::Midi([0xB0, number, 127])), (12_000, Do::Off(60))];
            todo.retain(|(_, what)| moved || !matches!(what, Do::Midi(_)));
            bound(INSTRUMENT, controllers).play(24_000, 512, &todo, None)
        };
        let free = play(&[], true);
        assert_ne!(free, play(&[], false), "{name} is heard");
        // The mix is where this controller puts it.
        assert_eq!(play(&[("mix", number)], true), free, "{name} is heard as it was, whatever else it turns");
    }
}

#[test]
fn an_effect_does_not_mind_notes() {
    let input = sine(FRAMES);
    let plain = bound(EFFECT, &[]).play(FRAMES, 512, &[], Some(&input));
    let notes: Vec<(usize, Do)> = (0..4000)
        .map(|n| {
            (2 * n, if n % 2 == 0 { Do::On(60 + (n % 24) as u8, 0.9) } else { Do::Midi([0xE0, 0, n as u8 & 0x7F]) })
        })
        .collect();
    assert_eq!(bound(EFFECT, &[]).play(FRAMES, 512, &notes, Some(&input)), plain);
}

#[test]
fn too_much_at_once_ends_where_it_should() {
    let mut host = bound(EFFECT, &[("output_gain", 20), ("mix", 20)]);
    let todo: Vec<(u32, Do)> = (0..2000).map(|n| (n / 4, midi(20, (n % 127) as u8))).collect();
    host.block(512, &todo, Some(&sine(512)));
    let last = f64::from(1999 % 127) / 127.0;
    assert!((host.value("Output gain") - last).abs() < 1e-6 && (host.value("Mix") - last).abs() < 1e-6);
    assert_eq!(host.told.len(), 1024);
    assert!((host.told[1023].2 - last).abs() < 1e-6, "the host knows too");
}
