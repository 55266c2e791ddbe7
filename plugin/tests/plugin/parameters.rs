//! Parameters as a CLAP host sees them: ranges, units, groups, texts, names, and values in events.

use clack_extensions::note_ports::{NoteDialects, NotePortInfoBuffer, PluginNotePorts};
use clack_extensions::params::{ParamInfoBuffer, ParamRescanFlags, PluginParams};
use ondes_player::library::BUNDLED;
use ondes_player::macros::MACRO_COUNT;
use ondes_player::parameter::{PARAMETERS, Parameter};

use crate::host::{EFFECT, Host, HostEvent, INSTRUMENT, energy, json, sine, state, with_selection};

const RATE: usize = 48_000;
const BLOCK: usize = 256;

/// Returns an active instance that plays in the callback, with these saved parameters.
fn open(id: &str, parameters: &[(&str, serde_json::Value)]) -> Host {
    let mut host = Host::new(id);
    let mut saved = json(&host.save());
    saved["params"]["driver"] = serde_json::json!({ "string": "inline" });
    for (name, value) in parameters {
        saved["params"][name] = value.clone();
    }
    assert!(host.load(&state(&saved)));
    host.set_offline(true);
    host.activate(RATE as f64, BLOCK as u32);
    host
}

fn listed(host: &Host) -> impl Iterator<Item = &'static Parameter> {
    PARAMETERS
        .iter()
        .filter(|parameter| host.parameters.contains_key(parameter.label))
}

#[test]
fn ranges_and_defaults_are_in_units() {
    let mut host = Host::new(INSTRUMENT);
    let ranges = [
        "Output gain",
        "Transpose",
        "Tune",
        "Glide",
        "Gate",
        "Bypass",
    ]
    .map(|label| host.ranges[label]);
    assert_eq!(
        ranges,
        [
            (-60.0, 24.0),
            (-24.0, 24.0),
            (-100.0, 100.0),
            (-1.0, 2_000.0),
            (-90.0, -20.0),
            (0.0, 1.0)
        ]
    );
    let plugin = host.instance.plugin_handle();
    let params: PluginParams = plugin.get_extension().unwrap();
    for index in 0..params.count(&plugin) {
        let mut buffer = ParamInfoBuffer::new();
        let info = params.get_info(&plugin, index, &mut buffer).unwrap();
        assert_eq!(
            params.get_value(&plugin, info.id),
            Some(info.default_value),
            "{}",
            info.id.get()
        );
    }
    let mut buffer = ParamInfoBuffer::new();
    assert!(
        params
            .get_info(&plugin, params.count(&plugin), &mut buffer)
            .is_none()
    );
}

/// As clap-validator's `param-conversions` does it.
#[test]
fn texts_lead_back_to_values_with_the_same_text() {
    for id in [INSTRUMENT, EFFECT] {
        let mut host = Host::new(id);
        let labels: Vec<&str> = listed(&host).map(|parameter| parameter.label).collect();
        for label in labels {
            let (min, max) = host.ranges[label];
            for step in 0..=500 {
                let value = min + f64::from(step) / 500.0 * (max - min);
                let text = host.value_to_text(label, value);
                assert!(!text.is_empty(), "{label}: {value}");
                let again = host
                    .text_to_value(label, &text)
                    .unwrap_or_else(|| panic!("{label}: {text}"));
                assert_eq!(
                    host.value_to_text(label, again),
                    text,
                    "{label}: {value}, then {again}"
                );
                assert_eq!(host.text_to_value(label, &text), Some(again), "{label}");
                assert!((min..=max).contains(&again), "{label}: {again}");
            }
        }
        assert_eq!(host.value_to_text("Output gain", -6.0), "-6.0 dB");
        assert_eq!(
            host.text_to_value("Output gain", "-6 dB"),
            Some(-6.0),
            "exact"
        );
    }
}

#[test]
fn values_are_set_in_units_with_and_without_processing() {
    for id in [INSTRUMENT, EFFECT] {
        let mut host = Host::new(id);
        for (label, value) in [
            ("Output gain", -6.0),
            ("Transpose", -7.0),
            ("Tune", 12.5),
            ("Output level", 2.0),
        ] {
            assert_eq!(host.flush(&[HostEvent::SetParameter(label, value)]), []);
            assert!(
                (host.value(label) - value).abs() < 1e-4,
                "{label}: {}",
                host.value(label)
            );
        }
        let saved = json(&host.save());
        let gain = saved["params"]["output_gain"]["f32"].as_f64().unwrap();
        assert!(
            (gain + 6.0).abs() < 1e-4 && saved["params"]["transpose"]["i32"] == -7,
            "{gain}"
        );
        host.set_offline(true);
        host.activate(RATE as f64, BLOCK as u32);
        // Out of range, between steps, and not a number.
        let odd = [
            ("Input gain", 1e9),
            ("Bass", -1e9),
            ("Transpose", 3.4),
            ("Tune", f64::NAN),
        ];
        let odd: Vec<_> = odd
            .map(|(label, value)| (5, HostEvent::SetParameter(label, value)))
            .into();
        host.block(BLOCK, &odd, None);
        let values = ["Input gain", "Bass", "Transpose"].map(|label| host.value(label));
        assert_eq!(values, [24.0, -12.0, 3.0]);
        assert!((host.value("Tune") - 12.5).abs() < 1e-4);
    }
}

#[test]
fn a_gain_in_decibels_is_heard_as_such() {
    let input = sine(RATE / 2, 0.1);
    let play = |events: &[(usize, HostEvent)]| {
        open(EFFECT, &[]).play(RATE / 2, BLOCK, events, Some(&input))
    };
    let plain = play(&[]);
    let heard_db =
        |sound: &[f32]| 10.0 * (energy(&sound[RATE / 4..]) / energy(&plain[RATE / 4..])).log10();
    let automated = heard_db(&play(&[(
        100,
        HostEvent::SetParameter("Output gain", -6.0),
    )]));
    assert!((automated + 6.0).abs() < 0.01, "{automated} dB");
    let mut host = open(EFFECT, &[]);
    let modulated = host.play(
        RATE / 2,
        BLOCK,
        &[(100, HostEvent::Modulate("Output gain", -9.0))],
        Some(&input),
    );
    let modulated = heard_db(&modulated);
    assert!((modulated + 9.0).abs() < 0.01, "{modulated} dB");
    assert_eq!(
        host.value("Output gain"),
        0.0,
        "a modulation is not part of the value"
    );
}

#[test]
fn a_modulation_of_the_glide_is_in_milliseconds() {
    let mut host = open(
        INSTRUMENT,
        &[("glide", serde_json::json!({ "f32": 100.0 }))],
    );
    assert!(
        (host.value("Glide") - 100.0).abs() < 1e-2,
        "{}",
        host.value("Glide")
    );
    host.block(BLOCK, &[(0, HostEvent::SetParameter("Glide", 0.0))], None);
    let value = host.value("Glide");
    assert_eq!(
        (
            value.abs() < 0.1,
            host.value_to_text("Glide", value).as_str()
        ),
        (true, "0 ms"),
        "{value}"
    );
}

#[test]
fn an_effect_has_no_parameters_of_notes_and_ignores_their_automation() {
    let mut host = open(EFFECT, &[("voices", serde_json::json!({ "i32": 3 }))]);
    for label in ["Mode", "Glide", "Voices", "Control source"] {
        assert!(!host.parameters.contains_key(label), "{label}");
    }
    assert_eq!(host.voices(), None);
    let input = sine(RATE / 4, 0.3);
    let automation = [
        (10, HostEvent::SetParameter("Mode", 2.0)),
        (20, HostEvent::SetParameter("Control source", 0.0)),
    ];
    let sound = host.play(RATE / 4, BLOCK, &automation, Some(&input));
    assert!(energy(&sound) > 1e-6);
    assert_eq!(
        sound,
        open(EFFECT, &[]).play(RATE / 4, BLOCK, &[], Some(&input))
    );
    assert_eq!(
        json(&host.save())["params"]["voices"]["i32"],
        3,
        "old projects keep what they have"
    );
}

#[test]
fn the_side_chain_of_an_effect_controls_its_instrument() {
    const FRAMES: usize = RATE / 2;
    let side_chain = |host: &mut Host| host.side_chain = sine(FRAMES, 0.4);
    let instrument = |control_input: &str, mix: f32| {
        let saved = [
            (
                "control_input",
                serde_json::json!({ "string": control_input }),
            ),
            ("mix", serde_json::json!({ "f32": mix })),
        ];
        let mut host = open(EFFECT, &saved);
        host.deactivate();
        let hash = BUNDLED[0].model().content_hash().to_owned();
        let saved = host.save();
        assert!(host.load(&with_selection(
            &saved,
            |selection| selection["model"]["hash"] = hash.into()
        )));
        host.activate(RATE as f64, BLOCK as u32);
        host.restart_while_requested(RATE as f64, BLOCK as u32);
        host
    };
    let track = sine(FRAMES, 0.1);
    // By default the track plays the instrument, and the side-chain is not heard.
    let mut host = instrument("track", 1.0);
    let by_track = host.play(FRAMES, BLOCK, &[], Some(&track));
    assert!(energy(&by_track) > 1e-7);
    let mut host = instrument("track", 1.0);
    side_chain(&mut host);
    assert_eq!(host.play(FRAMES, BLOCK, &[], Some(&track)), by_track);
    // The side-chain plays it as the track would.
    let mut host = instrument("side_chain", 1.0);
    assert!(
        energy(&host.play(FRAMES, BLOCK, &[], Some(&track))) < 1e-10,
        "the track plays nothing"
    );
    let mut host = instrument("side_chain", 1.0);
    side_chain(&mut host);
    let by_side_chain = host.play(FRAMES, BLOCK, &[], None);
    assert_eq!(
        by_side_chain,
        instrument("track", 1.0).play(FRAMES, BLOCK, &[], Some(&sine(FRAMES, 0.4)))
    );
    // The dry signal is the track.
    let mut host = instrument("side_chain", 0.0);
    side_chain(&mut host);
    let dry = host.play(FRAMES, BLOCK, &[], Some(&track));
    let latency = host.latency();
    let apart = dry[latency..]
        .iter()
        .zip(&track)
        .map(|(one, other)| (one - other).abs())
        .fold(0.0, f32::max);
    assert!(apart < 1e-6, "{apart}");
    // An effect processes its track whatever the choice.
    let mut host = open(
        EFFECT,
        &[(
            "control_input",
            serde_json::json!({ "string": "side_chain" }),
        )],
    );
    side_chain(&mut host);
    assert_eq!(
        host.play(FRAMES, BLOCK, &[], Some(&track)),
        open(EFFECT, &[]).play(FRAMES, BLOCK, &[], Some(&track))
    );
}

#[test]
fn macros_are_named_after_their_controls() {
    let mut host = Host::new(INSTRUMENT);
    let names = |host: &mut Host| [2, 4, 8].map(|number| host.name(&format!("Macro {number}")));
    assert_eq!(names(&mut host), ["Room", "Attack", "Life"]);
    assert_eq!(host.name("Output gain"), "Output gain");
    host.call_back();
    host.instance.access_handler(|main| main.rescans.take());
    // Another binding comes with a project, and the host reads the names again.
    let saved = with_selection(&host.save(), |saved| {
        saved["macros"] = serde_json::json!([null, "attack"])
    });
    assert!(host.load(&saved));
    host.call_back();
    let told = ParamRescanFlags::from_bits_truncate(
        host.instance.access_handler(|main| main.rescans.take()),
    );
    assert!(
        told.contains(ParamRescanFlags::INFO | ParamRescanFlags::TEXT),
        "{told:?}"
    );
    assert_eq!(names(&mut host), ["Attack", "Macro 4", "Macro 8"]);
    // The same names again are no news.
    assert!(host.load(&saved));
    host.call_back();
    let told = ParamRescanFlags::from_bits_truncate(
        host.instance.access_handler(|main| main.rescans.take()),
    );
    assert!(!told.contains(ParamRescanFlags::INFO), "{told:?}");
    assert!(
        !host.instance.access_handler(|main| main.dirty.get()),
        "the host knows what it has loaded"
    );
    let labels: Vec<String> = (1..=MACRO_COUNT)
        .map(|number| format!("Macro {number}"))
        .collect();
    assert!(
        labels
            .iter()
            .all(|label| host.parameters.contains_key(label))
    );
}

#[test]
fn the_host_knows_the_number_of_voices() {
    let mut host = open(INSTRUMENT, &[]);
    let (all, capacity) = host.voices().unwrap();
    assert!(all > 3 && capacity == 64, "{all} of {capacity}");
    let changes = |host: &Host| {
        host.instance
            .access_handler(|main| main.voice_changes.get())
    };
    let before = changes(&host);
    for (label, value, count) in [
        ("Voices", 3.0, 3),
        ("Mode", 2.0, 1),
        ("Mode", 1.0, 3),
        ("Voices", 0.0, all),
    ] {
        host.block(BLOCK, &[(0, HostEvent::SetParameter(label, value))], None);
        host.call_back();
        assert_eq!(host.voices(), Some((count, capacity)), "{label} {value}");
    }
    assert_eq!(changes(&host) - before, 4);
    host.block(BLOCK, &[], None);
    assert!(!host.call_back(), "without a change there is no call");
}

#[test]
fn the_instrument_takes_mpe() {
    let dialects = |id| {
        let mut host = Host::new(id);
        let plugin = host.instance.plugin_handle();
        let ports: PluginNotePorts = plugin.get_extension().unwrap();
        assert_eq!(
            (ports.count(&plugin, true), ports.count(&plugin, false)),
            (1, 0)
        );
        let mut buffer = NotePortInfoBuffer::new();
        ports
            .get(&plugin, 0, true, &mut buffer)
            .unwrap()
            .supported_dialects
    };
    let both = NoteDialects::CLAP | NoteDialects::MIDI;
    assert_eq!(dialects(INSTRUMENT), both | NoteDialects::MIDI_MPE);
    // An effect only learns controllers.
    assert_eq!(dialects(EFFECT), both);
}
