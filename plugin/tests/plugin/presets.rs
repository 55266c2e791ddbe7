//! Factory presets in a CLAP host.

use ondes_engine::dsp::level::{amplitude_to_db, peak};
use ondes_player::preset::factory::FACTORY;
use ondes_player::product::Product;
use ondes_plugin::preset::state;

use crate::host::{EFFECT, Host, HostEvent, INSTRUMENT, energy};

const RATE: f64 = 48_000.0;

/// Returns a gliding harmonic tone at about the level of a voice.
fn voice(frames: usize) -> Vec<f32> {
    let mut phase = 0.0_f64;
    let sample = |frame: usize| {
        phase += std::f64::consts::TAU * (180.0 + 120.0 * frame as f64 / frames as f64) / RATE;
        (1..=6)
            .map(|n| 0.25 / f64::from(n) * (f64::from(n) * phase).sin())
            .sum::<f64>() as f32
    };
    (0..frames).map(sample).collect()
}

#[test]
fn all_factory_presets_sound_and_none_clips() {
    let second = RATE as usize;
    // A soft note, a loud one, and a chord at full velocity.
    let notes = [
        (0, 50, 0.4),
        (second, 67, 0.9),
        (2 * second, 55, 1.0),
        (2 * second, 62, 1.0),
        (2 * second, 71, 1.0),
    ];
    let notes: Vec<(usize, HostEvent)> = notes
        .iter()
        .flat_map(|(time, key, velocity)| {
            [
                (*time, HostEvent::NoteOn(*key, *velocity)),
                (time + second * 4 / 5, HostEvent::NoteOff(*key)),
            ]
        })
        .collect();
    let mut notes = notes;
    notes.sort_by_key(|(time, _)| *time);
    let input = voice(4 * second);
    let (mut sounds, mut problems): (Vec<Vec<f32>>, Vec<String>) = Default::default();
    for factory in &FACTORY {
        let preset = factory.preset().unwrap();
        let id = if preset.product == Product::Effect {
            EFFECT
        } else {
            INSTRUMENT
        };
        let mut host = Host::new(id);
        host.set_offline(true);
        let mut saved = state::parse(&host.save()).unwrap();
        state::set_preset(&mut saved, &preset).unwrap();
        let bytes = state::serialize(&saved).unwrap();
        assert!(host.load(&bytes), "{}", factory.key);
        host.activate(RATE, 256);
        let sound = match preset.product {
            Product::Instrument => host.play(4 * second, 256, &notes, None),
            Product::Effect => host.play(4 * second, 256, &[], Some(&input)),
        };
        let peak = amplitude_to_db(peak(&sound));
        // Presets have similar levels, below full scale.
        if !(-15.0..=-1.0).contains(&peak) {
            problems.push(format!("{} peaks at {peak} dB", factory.key));
        }
        for (second, sound) in sound.chunks(second).take(3).enumerate() {
            let db = 10.0 * energy(sound).log10();
            if !(-50.0..=0.0).contains(&db) {
                problems.push(format!("{} has {db} dB in second {second}", factory.key));
            }
        }
        assert!(
            !sounds.contains(&sound),
            "{} sounds like another one",
            factory.key
        );
        sounds.push(sound);
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
