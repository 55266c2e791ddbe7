//! Mutated states, as a host gives them back from a project, are refused or play.

use ondes_tests::fuzz::{Format, Syntax, run};

use crate::host::{EFFECT, Host, HostEvent, INSTRUMENT, with_selection};

/// Files of each format that a normal run reads.
const INPUTS: u64 = 600;

/// States of a plugin; one in four is followed by sound.
fn states(name: &'static str, id: &'static str) -> Format<'static> {
    let mut host = Host::new(id);
    host.activate(48_000.0, 64);
    let saved = host.save();
    let learnt = with_selection(&saved, |selection| {
        selection["controllers"] =
            serde_json::json!({ "output_gain": 7, "macro1": 1, "bypass": 64 });
        selection["embed"] = true.into();
        selection["compare"] =
            serde_json::json!({ "b_is_heard": true, "other": { "parameters": { "mix": 0.5 } } });
    });
    let seeds = [saved, learnt].map(|state| state[8..].to_vec()).to_vec();
    let mut number = 0;
    Format::new(name, Syntax::Json, seeds, move |bytes| {
        let state = [&(bytes.len() as u64).to_le_bytes(), bytes].concat();
        let is_loaded = host.load(&state);
        number += 1;
        if number % 4 == 0 {
            let sound = host.play(
                256,
                64,
                &[(0, HostEvent::NoteOn(60, 0.8))],
                Some(&[0.1; 256]),
            );
            assert!(sound.iter().all(|sample| sample.is_finite()));
        }
        if is_loaded {
            Ok(())
        } else {
            Err("the state is refused".into())
        }
    })
}

#[test]
fn mutated_states_are_refused_or_play() {
    run(
        vec![
            states("instrument-state", INSTRUMENT),
            states("effect-state", EFFECT),
        ],
        INPUTS,
    );
}
