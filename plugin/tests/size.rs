//! A model that holds smaller variants of itself, played without a window.

mod host;

use std::time::Duration;

use host::{Do, EFFECT, Host, with_selection};
use ondes_engine::model::file;
use serde_json::json;

const BLOCK: usize = 128;
const INPUT: f32 = 0.1;

/// Doubles what comes in; below half of its size it leaves it as it is.
fn container() -> String {
    let wire = |gain: f32| {
        json!({
            "version": "0.7.0", "architecture": "Linear", "config": { "receptive_field": 1, "bias": false },
            "weights": [gain], "sample_rate": 48_000,
        })
    };
    let submodels = [(0.5, 1.0), (1.0, 2.0)].map(|(most, gain)| json!({ "max_value": most, "model": wire(gain) }));
    let file = json!({
        "version": "0.7.0", "architecture": "SlimmableContainer", "config": { "submodels": submodels },
        "weights": [], "sample_rate": 48_000,
    });
    file.to_string()
}

#[test]
fn another_size_takes_over_without_a_restart_or_a_click() {
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
    host.settle(48_000.0, BLOCK as u32);

    let input = [INPUT; BLOCK];
    let mut sound = host.play(100 * BLOCK, BLOCK, &[], Some(&[INPUT; 100 * BLOCK]));
    let settled = sound.split_off(50 * BLOCK);
    assert!(settled.iter().all(|sample| (sample - 2.0 * INPUT).abs() < 1e-6), "{:?}", &settled[..4]);
    sound = settled;
    for (size, gain) in [(0.2, 1.0), (0.9, 2.0)] {
        sound.extend(&host.block(BLOCK, &[(0, Do::Turn("Size", size))], Some(&input))[0]);
        let mut blocks = 0;
        while (sound[sound.len() - BLOCK] - gain * INPUT).abs() > 1e-6 {
            std::thread::sleep(Duration::from_millis(1));
            sound.extend(&host.block(BLOCK, &[], Some(&input))[0]);
            blocks += 1;
            assert!(blocks < 20_000, "size {size} is never heard");
        }
    }
    let step = sound.windows(2).fold(0.0_f32, |most, pair| most.max((pair[1] - pair[0]).abs()));
    // Of a cross-fade over 20 ms, and rounding.
    assert!(step < INPUT * std::f32::consts::FRAC_PI_2 / 960.0 + 1e-6, "a click of {step}");
    assert!(!host.restart_wanted());
}
