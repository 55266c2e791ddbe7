//! Tail length and sleep status.

use clack_host::process::ProcessStatus;
use ondes_engine::dsp::level::peak;
use ondes_engine::model::Kind;
use ondes_player::library::BUNDLED;
use ondes_player::model_controls::ModelControls;

use crate::host::{EFFECT, Host, HostEvent, INSTRUMENT, energy, json, sine, state, with_selection};

const RATE: usize = 48_000;
const BLOCK: usize = 480;
/// −90 dBFS.
const SILENT: f32 = 3.163e-5;

/// Returns an active inline instance with a bundled model, given by its index.
fn open(id: &str, model: usize) -> Host {
    driven(id, model, "inline")
}

fn driven(id: &str, model: usize, driver: &str) -> Host {
    let mut host = Host::new(id);
    let mut saved = json(&host.save());
    saved["params"]["driver"] = serde_json::json!({ "string": driver });
    let hash = BUNDLED[model].model().content_hash().to_owned();
    assert!(host.load(&with_selection(
        &state(&saved),
        |selection| selection["model"]["hash"] = hash.into()
    )));
    host.set_offline(true);
    host.activate(RATE as f64, BLOCK as u32);
    host
}

/// Returns the macro that a control of a bundled model is bound to at first.
fn macro_of(model: usize, control: &str) -> Option<&'static str> {
    const MACROS: [&str; 8] = [
        "Macro 1", "Macro 2", "Macro 3", "Macro 4", "Macro 5", "Macro 6", "Macro 7", "Macro 8",
    ];
    let controls = ModelControls::new(&BUNDLED[model].model());
    controls
        .all()
        .iter()
        .position(|known| known.name == control)
        .map(|place| MACROS[place])
}

/// Returns an event that sets the release of an instrument.
fn release(host: &mut Host, model: usize, ms: f64) -> HostEvent {
    let name = macro_of(model, "release").expect("a release");
    HostEvent::SetParameter(name, host.text_to_value(name, &ms.to_string()).unwrap())
}

/// Returns a duration in samples after which a silent instance sleeps.
fn samples_until_sleep(host: &mut Host) -> usize {
    host.tail() + 2 * BLOCK
}

#[test]
fn notes_end_with_the_tail_and_not_long_before() {
    let instruments = BUNDLED
        .iter()
        .enumerate()
        .filter(|(_, bundled)| bundled.model().header().performance.is_some());
    for (model, bundled) in instruments {
        for (ms, driver) in [
            (None, "inline"),
            (Some(5.0), "inline"),
            (Some(10_000.0), "inline"),
            (None, "worker"),
            (Some(5.0), "worker"),
        ] {
            let mut host = driven(INSTRUMENT, model, driver);
            assert!(host.tail() > 0, "the tail is known before the first note");
            let turn: Vec<_> = ms
                .map(|ms| (0, release(&mut host, model, ms)))
                .into_iter()
                .collect();
            host.play(BLOCK, BLOCK, &turn, None);
            host.play(
                RATE / 2,
                BLOCK,
                &[
                    (0, HostEvent::NoteOn(48, 1.0)),
                    (9, HostEvent::NoteOn(72, 1.0)),
                ],
                None,
            );
            host.play(
                BLOCK,
                BLOCK,
                &[(0, HostEvent::NoteOff(48)), (0, HostEvent::NoteOff(72))],
                None,
            );
            let tail = host.tail();
            let rings = host.play(tail, BLOCK, &[], None);
            let rest = host.play(RATE, BLOCK, &[], None);
            assert!(
                peak(&rest) < SILENT,
                "{model} {ms:?}: {} after {tail}",
                peak(&rest)
            );
            let release = ms.unwrap_or(f64::from(
                bundled.model().header().performance.unwrap().release_ms,
            ));
            // At least a third of the release is audible, and the tail is bounded.
            let early = (release / 1e3 * RATE as f64 / 3.0) as usize;
            assert!(peak(&rings[early..]) > SILENT, "{model} {ms:?}");
            let longest = 1.5 * release / 1e3 + 3.0;
            assert!(
                tail < (longest * RATE as f64) as usize,
                "{model} {ms:?}: {tail}"
            );
        }
    }
}

#[test]
fn a_held_plucked_string_is_damped_within_the_tail() {
    let mut host = open(INSTRUMENT, 1);
    let held = host.play(3 * RATE, BLOCK, &[(0, HostEvent::NoteOn(52, 0.9))], None);
    assert!(
        peak(&held[2 * RATE..]) > SILENT,
        "it still sounds after two seconds"
    );
    assert_eq!(host.status, Some(ProcessStatus::Continue));
    host.play(BLOCK, BLOCK, &[(0, HostEvent::NoteOff(52))], None);
    let tail = host.tail();
    host.play(tail, BLOCK, &[], None);
    assert!(peak(&host.play(RATE, BLOCK, &[], None)) < SILENT);
}

#[test]
fn the_tail_follows_the_release_and_the_sounding_notes() {
    let mut host = open(INSTRUMENT, 0);
    let short = host.tail();
    let long = release(&mut host, 0, 10_000.0);
    host.play(
        BLOCK,
        BLOCK,
        &[(100, long), (200, HostEvent::NoteOn(60, 1.0))],
        None,
    );
    assert!(host.tail() > 10 * RATE, "{}", host.tail());
    // A note keeps the release of its note-on.
    let back = release(
        &mut host,
        0,
        BUNDLED[0]
            .model()
            .header()
            .performance
            .unwrap()
            .release_ms
            .into(),
    );
    host.play(RATE / 2, BLOCK, &[(0, back)], None);
    host.play(BLOCK, BLOCK, &[(0, HostEvent::NoteOff(60))], None);
    let tail = host.tail();
    assert!(tail > 10 * RATE, "{tail}");
    let rings = host.play(tail, BLOCK, &[], None);
    assert!(peak(&rings[5 * RATE..]) > SILENT);
    assert!(peak(&host.play(2 * RATE, BLOCK, &[], None)) < SILENT);
    let wait = samples_until_sleep(&mut host);
    host.play(wait, BLOCK, &[], None);
    assert_eq!(host.tail(), short, "the tail is back at its initial value");
}

#[test]
fn the_tail_follows_the_model() {
    let tails: Vec<usize> = (0..3).map(|model| open(INSTRUMENT, model).tail()).collect();
    assert!(tails[0] != tails[1] && tails[1] != tails[2], "{tails:?}");
    let mut host = open(INSTRUMENT, 0);
    host.play(RATE / 4, BLOCK, &[(0, HostEvent::NoteOn(60, 0.9))], None);
    let hash = BUNDLED[1].model().content_hash().to_owned();
    let other = with_selection(&host.save(), |selection| {
        selection["model"]["hash"] = hash.into()
    });
    assert!(host.load(&other));
    let mut waited = 0;
    // The previous model may still sound; the longer tail counts until both are silent.
    while host.tail() == tails[0] && waited < 1000 {
        host.play(BLOCK, BLOCK, &[], None);
        std::thread::sleep(std::time::Duration::from_millis(2));
        waited += 1;
    }
    assert!(host.tail() >= tails[1]);
    host.play(BLOCK, BLOCK, &[(0, HostEvent::NoteOff(60))], None);
    let wait = samples_until_sleep(&mut host);
    host.play(wait, BLOCK, &[], None);
    let wait = samples_until_sleep(&mut host);
    host.play(wait, BLOCK, &[], None);
    assert_eq!(host.tail(), tails[1]);
}

#[test]
fn an_effect_ends_with_the_tail() {
    for (model, bundled) in BUNDLED.iter().enumerate() {
        for position in [0.5, 1.0] {
            let mut host = open(EFFECT, model);
            // The release applies to notes only and does not extend the tail.
            let room =
                macro_of(model, "room").map(|name| (0, HostEvent::SetParameter(name, position)));
            let long = macro_of(model, "release").map(|_| (0, release(&mut host, model, 20_000.0)));
            let input = sine(RATE, 0.5);
            let turned: Vec<_> = room.into_iter().chain(long).collect();
            let sound = host.play(RATE, BLOCK, &turned, Some(&input));
            assert!(energy(&sound[RATE / 2..]) > 1e-6, "{model}");
            let tail = host.tail();
            if bundled.model().header().kind == Kind::Generator {
                // In CLAP from 2³¹ − 1 on.
                assert!(tail >= i32::MAX as usize, "{model}: {tail}");
                host.play(2 * RATE, BLOCK, &[], None);
                assert!(
                    energy(&host.play(RATE, BLOCK, &[], None)) > 1e-6,
                    "it plays by itself"
                );
                continue;
            }
            assert!(tail < 3 * RATE, "{model}: {tail}");
            host.play(tail, BLOCK, &[], None);
            let rest = host.play(RATE, BLOCK, &[], None);
            // A capture may settle at a constant other than zero; only its variation counts.
            let (low, high) = rest.iter().fold((f32::MAX, f32::MIN), |(low, high), &x| {
                (low.min(x), high.max(x))
            });
            assert!(
                (high - low) / 2.0 < SILENT,
                "{model} {position}: from {low} to {high} after {tail}"
            );
        }
    }
}

#[test]
fn a_silent_instrument_sleeps_and_wakes_on_events() {
    let mut host = open(INSTRUMENT, 0);
    let status = |host: &mut Host, events: &[(u32, HostEvent)]| {
        host.block(BLOCK, events, None);
        host.status.unwrap()
    };
    // A soft note with a slow attack is silent at first but keeps the instance awake.
    let slow = HostEvent::SetParameter("Macro 4", 1.0);
    let all: Vec<_> = (0..host.tail() / BLOCK + 100)
        .map(|n| {
            let events = if n == 0 {
                vec![(0, slow.clone()), (1, HostEvent::NoteOn(60, 0.01))]
            } else {
                Vec::new()
            };
            status(&mut host, &events)
        })
        .collect();
    assert!(all.iter().all(|status| *status == ProcessStatus::Continue));

    status(
        &mut host,
        &[
            (0, HostEvent::NoteOff(60)),
            (0, HostEvent::SetParameter("Macro 4", 0.5)),
        ],
    );
    let tail = host.tail();
    let mut quiet = 0;
    while status(&mut host, &[]) == ProcessStatus::Continue {
        quiet += BLOCK;
        assert!(quiet < 3 * tail + RATE, "the instance does not sleep");
    }
    assert!(quiet >= tail, "{quiet} of {tail}");
    // An event wakes it, however long the host has skipped processing.
    assert_eq!(
        status(&mut host, &[(7, HostEvent::NoteOn(64, 0.9))]),
        ProcessStatus::Continue
    );
    let woken = host.play(RATE / 2, BLOCK, &[], None);
    assert!(energy(&woken) > 1e-6);
    // A parameter change wakes it for a limited time.
    status(&mut host, &[(0, HostEvent::NoteOff(64))]);
    let wait = samples_until_sleep(&mut host) + 2 * RATE;
    host.play(wait, BLOCK, &[], None);
    assert_eq!(host.status, Some(ProcessStatus::Sleep));
    assert_eq!(
        status(
            &mut host,
            &[(0, HostEvent::SetParameter("Output gain", -18.0))]
        ),
        ProcessStatus::Continue
    );
    let wait = samples_until_sleep(&mut host);
    host.play(wait, BLOCK, &[], None);
    assert_eq!(host.status, Some(ProcessStatus::Sleep));
    assert_eq!(host.tail(), tail, "the tail is reported during sleep");
}

#[test]
fn a_silent_effect_sleeps_and_wakes_on_input() {
    let mut host = open(EFFECT, 0);
    let input = sine(RATE, 0.5);
    host.play(RATE, BLOCK, &[], Some(&input));
    assert_eq!(host.status, Some(ProcessStatus::Continue));
    let tail = host.tail();
    host.play(tail + 2 * RATE, BLOCK, &[], None);
    assert_eq!(host.status, Some(ProcessStatus::Sleep));
    let again = host.play(RATE, BLOCK, &[], Some(&input));
    assert_eq!(host.status, Some(ProcessStatus::Continue));
    assert!(energy(&again) > 1e-6);
}
