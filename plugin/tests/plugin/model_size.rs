//! Models with smaller variants: switching by the parameter "Size".

use std::time::Duration;

use ondes_engine::dsp::level::max_step;
use ondes_engine::model::file;
use serde_json::json;

use crate::host::{EFFECT, Host, HostEvent, with_selection};

const BLOCK: usize = 128;
const INPUT: f32 = 0.1;

/// Returns a model with a gain of 2, and of 1 below half of its size.
fn container() -> String {
    let wire = |gain: f32| {
        json!({
            "version": "0.7.0", "architecture": "Linear", "config": { "receptive_field": 1, "bias": false },
            "weights": [gain], "sample_rate": 48_000,
        })
    };
    let submodels = [(0.5, 1.0), (1.0, 2.0)]
        .map(|(most, gain)| json!({ "max_value": most, "model": wire(gain) }));
    let file = json!({
        "version": "0.7.0", "architecture": "SlimmableContainer", "config": { "submodels": submodels },
        "weights": [], "sample_rate": 48_000,
    });
    file.to_string()
}

#[test]
fn switching_the_size_needs_no_restart_and_does_not_click() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slim.nam");
    std::fs::write(&path, container()).unwrap();
    let hash = file::read(&path).unwrap().content_hash().to_owned();
    let mut host = Host::new(EFFECT);
    host.set_offline(true);
    let saved = host.save();
    let selection = json!({ "hash": hash, "name": "slim", "path": path });
    assert!(host.load(&with_selection(&saved, |saved| saved["model"] = selection)));
    host.activate(48_000.0, BLOCK as u32);
    host.restart_while_requested(48_000.0, BLOCK as u32);

    let input = [INPUT; BLOCK];
    let mut sound = host.play(100 * BLOCK, BLOCK, &[], Some(&[INPUT; 100 * BLOCK]));
    let settled = sound.split_off(50 * BLOCK);
    assert!(
        settled
            .iter()
            .all(|sample| (sample - 2.0 * INPUT).abs() < 1e-6),
        "{:?}",
        &settled[..4]
    );
    sound = settled;
    for (size, gain) in [(0.2, 1.0), (0.9, 2.0)] {
        sound.extend(
            &host.block(
                BLOCK,
                &[(0, HostEvent::SetParameter("Size", size))],
                Some(&input),
            )[0],
        );
        let mut blocks = 0;
        while (sound[sound.len() - BLOCK] - gain * INPUT).abs() > 1e-6 {
            std::thread::sleep(Duration::from_millis(1));
            sound.extend(&host.block(BLOCK, &[], Some(&input))[0]);
            blocks += 1;
            assert!(blocks < 20_000, "size {size} is not audible after 20 s");
        }
    }
    let step = max_step(&sound);
    // Steepest step of a 20 ms cross-fade, plus rounding.
    assert!(
        step < INPUT * std::f32::consts::FRAC_PI_2 / 960.0 + 1e-6,
        "a step of {step}"
    );
    assert!(!host.restart_requested());
}
