//! The checks of clap-validator, on the built shared object. The validator itself is not on
//! crates.io.

mod raw;

use std::collections::HashSet;
use std::ffi::CString;

use clack_host::prelude::*;
use clap_sys::events::{CLAP_EVENT_NOTE_CHOKE, CLAP_EVENT_NOTE_OFF, CLAP_EVENT_NOTE_ON};
use clap_sys::ext::params::{
    CLAP_PARAM_IS_AUTOMATABLE, CLAP_PARAM_IS_BYPASS, CLAP_PARAM_IS_READONLY, CLAP_PARAM_IS_STEPPED,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use self::raw::{Audio, Info, InputEvent, Plugin};
use crate::host::{EFFECT, Handlers, INSTRUMENT, Main, Shared, entry};

const PLUGINS: [&str; 2] = [INSTRUMENT, EFFECT];
/// Blocks of each run.
const BLOCKS: usize = 5;

/// Returns noise for all input ports.
fn noise(plugin: &Plugin, frames: usize, random: &mut SmallRng) -> Audio {
    let mut channel = || {
        (0..frames)
            .map(|_| random.random_range(-0.5..0.5))
            .collect::<Vec<f32>>()
    };
    plugin
        .ports(true)
        .into_iter()
        .map(|channels| (0..channels).map(|_| channel()).collect())
        .collect()
}

fn silence(plugin: &Plugin, frames: usize) -> Audio {
    plugin
        .ports(true)
        .into_iter()
        .map(|channels| vec![vec![0.0; frames]; channels])
        .collect()
}

fn is_finite(audio: &Audio) -> bool {
    audio
        .iter()
        .flatten()
        .flatten()
        .all(|sample| sample.is_finite())
}

fn peak(audio: &Audio) -> f32 {
    audio
        .iter()
        .flatten()
        .flatten()
        .fold(0.0, |peak, sample| peak.max(sample.abs()))
}

/// Returns a value that a host may set, or `None` for a parameter that it may not.
fn random_value(info: &Info, random: &mut SmallRng) -> Option<f64> {
    let value = random.random_range(info.min..=info.max);
    let value = if info.flags & CLAP_PARAM_IS_STEPPED != 0 {
        value.round()
    } else {
        value
    };
    (info.flags & CLAP_PARAM_IS_READONLY == 0).then_some(value)
}

/// Returns changes of all parameters at the start of a block.
fn random_parameters(plugin: &Plugin, random: &mut SmallRng) -> Vec<InputEvent> {
    let infos = plugin.infos();
    infos
        .iter()
        .filter_map(|info| {
            Some(InputEvent::parameter(
                0,
                info.id,
                random_value(info, random)?,
            ))
        })
        .collect()
}

/// Returns notes and MIDI in the order of time: with and without an end, for keys and channels that
/// exist or do not.
fn random_notes(frames: usize, random: &mut SmallRng) -> Vec<InputEvent> {
    let mut times: Vec<u32> = (0..random.random_range(0..12))
        .map(|_| random.random_range(0..frames as u32))
        .collect();
    times.sort_unstable();
    let event = |time| {
        let type_ = [
            CLAP_EVENT_NOTE_ON,
            CLAP_EVENT_NOTE_OFF,
            CLAP_EVENT_NOTE_CHOKE,
        ][random.random_range(0..3)];
        let (lowest, highest) = if random.random_bool(0.2) {
            (-1, 300)
        } else {
            (0, 128)
        };
        let (key, channel) = (
            random.random_range(lowest..highest),
            random.random_range(lowest..highest / 8),
        );
        match random.random_range(0..4) {
            0 => InputEvent::midi(
                time,
                [
                    random.random_range(0x80..0xF0),
                    random.random(),
                    random.random(),
                ],
            ),
            _ => InputEvent::note(
                time,
                type_,
                random.random_range(-1..4),
                channel,
                key,
                random.random_range(0.0..1.0),
            ),
        }
    };
    times.into_iter().map(event).collect()
}

#[test]
fn descriptors_are_complete() {
    let factory = entry().get_plugin_factory().unwrap();
    for descriptor in factory.plugin_descriptors() {
        let text =
            |text: Option<&std::ffi::CStr>| text.expect("a text").to_str().unwrap().to_owned();
        for field in [
            descriptor.id(),
            descriptor.name(),
            descriptor.vendor(),
            descriptor.version(),
        ] {
            assert!(!text(field).is_empty());
        }
        let features: Vec<String> = descriptor
            .features()
            .map(|feature| text(Some(feature)))
            .collect();
        let main = [
            "instrument",
            "audio-effect",
            "note-effect",
            "note-detector",
            "analyzer",
        ];
        assert!(
            features
                .iter()
                .any(|feature| main.contains(&feature.as_str())),
            "{features:?}"
        );
        assert_eq!(
            features.iter().collect::<HashSet<_>>().len(),
            features.len(),
            "{features:?}"
        );
    }
}

#[test]
fn unknown_ids_create_nothing() {
    let info = HostInfo::new("Ondes tests", "Ondes", "", "1").unwrap();
    for id in [
        format!("{INSTRUMENT}x"),
        INSTRUMENT[..INSTRUMENT.len() - 1].to_owned(),
        String::new(),
    ] {
        let id = CString::new(id).unwrap();
        let create = |id| {
            PluginInstance::<Handlers>::new(
                |()| Shared::default(),
                |_| Main::default(),
                entry(),
                id,
                &info,
            )
        };
        assert!(create(&id).is_err(), "{id:?}");
    }
}

#[test]
fn parameters_are_consistent() {
    for id in PLUGINS {
        let plugin = Plugin::new(id);
        let infos = plugin.infos();
        assert_eq!(
            infos
                .iter()
                .map(|info| info.id)
                .collect::<HashSet<_>>()
                .len(),
            infos.len(),
            "ids are unique"
        );
        assert_eq!(
            infos
                .iter()
                .filter(|info| info.flags & CLAP_PARAM_IS_BYPASS != 0)
                .count(),
            1
        );
        for info in &infos {
            let name = &info.name;
            assert!(
                !name.is_empty()
                    && info.min < info.max
                    && (info.min..=info.max).contains(&info.default),
                "{name}"
            );
            let whole = [info.min, info.max, info.default]
                .iter()
                .all(|value| value.fract() == 0.0);
            assert!(whole || info.flags & CLAP_PARAM_IS_STEPPED == 0, "{name}");
            let both = CLAP_PARAM_IS_READONLY | CLAP_PARAM_IS_AUTOMATABLE;
            assert_ne!(
                info.flags & both,
                both,
                "{name} is automatable or read-only"
            );
            assert!(
                (plugin.value(info.id) - info.default).abs() < 1e-6,
                "{name}"
            );
        }
    }
}

/// A text leads back to a value with the same text, and that value's text to the same value.
#[test]
fn texts_and_values_convert_both_ways() {
    let mut random = SmallRng::seed_from_u64(1);
    for id in PLUGINS {
        let plugin = Plugin::new(id);
        for info in plugin.infos() {
            let between =
                (0..2_000).map(|step| info.min + (info.max - info.min) * f64::from(step) / 1_999.0);
            let near = [1e-9, 1e-6, 1e-4, 1e-3].map(|part| info.min + part * (info.max - info.min));
            let anywhere = (0..500).map(|_| random.random_range(info.min..=info.max));
            let all: Vec<f64> = between
                .chain(near)
                .chain(anywhere)
                .chain([info.default])
                .collect();
            for value in all {
                let value = if info.flags & CLAP_PARAM_IS_STEPPED != 0 {
                    value.round()
                } else {
                    value
                };
                let text = plugin.text(info.id, value);
                let parsed = plugin
                    .parse(info.id, &text)
                    .unwrap_or_else(|| panic!("{}: {text}", info.name));
                assert!(
                    (info.min..=info.max).contains(&parsed),
                    "{}: {value} -> {text} -> {parsed}",
                    info.name
                );
                let again = plugin.text(info.id, parsed);
                assert_eq!(
                    again, text,
                    "{}: {value} -> {text} -> {parsed} -> {again}",
                    info.name
                );
                assert_eq!(
                    plugin.parse(info.id, &again),
                    Some(parsed),
                    "{}: {text}",
                    info.name
                );
            }
        }
    }
}

#[test]
fn random_parameters_and_notes_give_finite_sound() {
    let mut random = SmallRng::seed_from_u64(2);
    for id in PLUGINS {
        let mut plugin = Plugin::new(id);
        assert!(plugin.activate(48_000.0, 512));
        for _ in 0..30 {
            let mut events = random_parameters(&plugin, &mut random);
            for _ in 0..BLOCKS {
                events.extend(random_notes(512, &mut random));
                let input = noise(&plugin, 512, &mut random);
                assert!(is_finite(&plugin.process(&events, &input, false)), "{id}");
                events.clear();
            }
        }
    }
}

#[test]
fn events_of_other_namespaces_are_ignored() {
    let mut random = SmallRng::seed_from_u64(3);
    for id in PLUGINS {
        let mut plugin = Plugin::new(id);
        assert!(plugin.activate(48_000.0, 512));
        let values = |plugin: &Plugin| {
            plugin
                .infos()
                .iter()
                .map(|info| plugin.value(info.id))
                .collect::<Vec<_>>()
        };
        let before = values(&plugin);
        let events: Vec<InputEvent> = random_parameters(&plugin, &mut random)
            .into_iter()
            .map(InputEvent::in_another_namespace)
            .collect();
        plugin.process(&events, &silence(&plugin, 512), false);
        assert_eq!(values(&plugin), before, "{id}");
    }
}

#[test]
fn states_are_reproduced() {
    let mut random = SmallRng::seed_from_u64(4);
    for id in PLUGINS {
        // Values set while processing, or by a flush; states through streams of any granularity.
        for (by_flush, write, read) in [
            (false, usize::MAX, usize::MAX),
            (true, usize::MAX, usize::MAX),
            (false, 17, 23),
        ] {
            let mut one = Plugin::new(id);
            let events = random_parameters(&one, &mut random);
            if by_flush {
                one.flush(&events);
            } else {
                assert!(one.activate(44_100.0, 512));
                one.process(&events, &silence(&one, 512), false);
                one.deactivate();
            }
            let state = one.save(write);
            let two = Plugin::new(id);
            assert!(two.load(&state, read));
            for info in one.infos() {
                let (before, after) = (one.value(info.id), two.value(info.id));
                assert!(
                    (before - after).abs() <= 1e-6 * (info.max - info.min),
                    "{}: {before}, {after}",
                    info.name
                );
            }
            assert_eq!(two.save(usize::MAX), state, "{id}, by flush: {by_flush}");
        }
        let plugin = Plugin::new(id);
        let state = plugin.save(usize::MAX);
        for invalid in [&b""[..], b"0", &state[..state.len() / 2], &[0xFF; 300]] {
            assert!(!plugin.load(invalid, usize::MAX));
            assert_eq!(plugin.save(usize::MAX), state);
        }
    }
}

#[test]
fn every_sample_rate_plays() {
    const RATES: [f64; 14] = [
        1_000.0,
        1_234.567_8,
        10_000.0,
        12_345.678,
        22_050.0,
        44_100.0,
        45_678.901,
        48_000.0,
        88_200.0,
        96_000.0,
        123_456.78,
        192_000.0,
        384_000.0,
        768_000.0,
    ];
    let mut random = SmallRng::seed_from_u64(5);
    for id in PLUGINS {
        let mut plugin = Plugin::new(id);
        for sample_rate in RATES {
            assert!(
                plugin.activate(sample_rate, 512),
                "{id} at {sample_rate} Hz"
            );
            for _ in 0..2 * BLOCKS {
                let (events, input) = (
                    random_notes(512, &mut random),
                    noise(&plugin, 512, &mut random),
                );
                assert!(
                    is_finite(&plugin.process(&events, &input, false)),
                    "{id} at {sample_rate} Hz"
                );
            }
        }
        for sample_rate in [0.0, -48_000.0, f64::NAN, f64::INFINITY] {
            assert!(
                !plugin.activate(sample_rate, 512),
                "{id} at {sample_rate} Hz"
            );
        }
        for sample_rate in [10.0, 1e9] {
            assert!(
                plugin.activate(sample_rate, 512),
                "{id} passes its input at {sample_rate} Hz"
            );
        }
        assert!(plugin.activate(48_000.0, 512));
    }
}

#[test]
fn every_block_size_plays() {
    let mut random = SmallRng::seed_from_u64(6);
    for id in PLUGINS {
        for block in [1, 2, 3, 10, 17, 63, 64, 441, 1_536, 2_027, 32_768] {
            let mut plugin = Plugin::new(id);
            assert!(plugin.activate(44_100.0, block));
            for round in 0..BLOCKS as u32 {
                // Hosts may also send less than they announced.
                let frames = if round % 2 == 0 {
                    block
                } else {
                    random.random_range(1..=block)
                } as usize;
                let (events, input) = (
                    random_notes(frames, &mut random),
                    noise(&plugin, frames, &mut random),
                );
                assert!(
                    is_finite(&plugin.process(&events, &input, false)),
                    "{id}, {frames} samples"
                );
            }
        }
    }
}

#[test]
fn processing_in_place_sounds_the_same() {
    let play = |in_place| {
        let mut random = SmallRng::seed_from_u64(7);
        let mut plugin = Plugin::new(EFFECT);
        assert_eq!(plugin.ports(true)[0], plugin.ports(false)[0]);
        assert!(plugin.activate(48_000.0, 512));
        let blocks = (0..20).map(|_| {
            let input = noise(&plugin, 512, &mut random);
            plugin.process(&[], &input, in_place).swap_remove(0)
        });
        blocks.collect::<Audio>()
    };
    let apart = play(false);
    assert!(is_finite(&apart) && peak(&apart) > 1e-3);
    assert_eq!(play(true), apart);
}

#[test]
fn a_reset_silences_at_once() {
    let mut random = SmallRng::seed_from_u64(8);
    for id in PLUGINS {
        let mut plugin = Plugin::new(id);
        assert!(plugin.activate(48_000.0, 512));
        let second = |plugin: &Plugin| {
            (0..100)
                .map(|_| peak(&plugin.process(&[], &silence(plugin, 512), false)))
                .fold(0.0, f32::max)
        };
        // A model may have a small offset of its own.
        let idle = second(&plugin);
        assert!(idle < 1e-4, "{id}: {idle}");
        let on = [InputEvent::note(0, CLAP_EVENT_NOTE_ON, -1, 0, 60, 0.8)];
        let play = |plugin: &Plugin, random: &mut SmallRng| {
            let blocks = (0..60).map(|block| {
                let events = if block == 0 { &on[..] } else { &[] };
                peak(&plugin.process(events, &noise(plugin, 512, random), false))
            });
            blocks.skip(40).fold(0.0, f32::max)
        };
        for _ in 0..2 {
            assert!(
                play(&plugin, &mut random) > 1e-3,
                "{id} sounds again after a reset"
            );
            plugin.reset();
            let rest = second(&plugin);
            assert!(
                rest <= 1.01 * idle + 1e-6,
                "{id}: {rest}, and {idle} before"
            );
        }
    }
}
