//! Creation and destruction in bulk, and random use. A process of its own, since it measures
//! resident memory.

mod host;

use std::sync::{Mutex, MutexGuard, PoisonError};

use clack_host::events::event_types::NoteExpressionType;
use host::{EFFECT, Host, HostEvent, INSTRUMENT, energy, with_selection};
use ondes_engine::dsp::level::peak;
use ondes_player::library::BUNDLED;
use ondes_player::preset::factory::FACTORY;
use ondes_player::product::Product;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Note expressions with a range of 0 … 1.
const EXPRESSIONS: [NoteExpressionType; 3] = [
    NoteExpressionType::Expression,
    NoteExpressionType::Vibrato,
    NoteExpressionType::Brightness,
];

/// Held by tests that measure memory, which instances of another test would change.
static MEASURED: Mutex<()> = Mutex::new(());

fn measure_alone() -> MutexGuard<'static, ()> {
    MEASURED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the resident memory of this process in bytes; `None` on systems without `/proc`.
fn resident_bytes() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(4096 * pages.split(' ').nth(1)?.parse::<usize>().ok()?)
}

#[test]
fn two_hundred_instances_leak_nothing() {
    let _alone = measure_alone();
    let cycle = |round: usize| {
        let mut host = Host::new(if round.is_multiple_of(2) {
            INSTRUMENT
        } else {
            EFFECT
        });
        // Some are never activated, as during a scan.
        if !round.is_multiple_of(3) {
            host.activate(48_000.0, 256);
            let sound = host.play(512, 256, &[(0, HostEvent::NoteOn(60, 0.8))], None);
            assert!(sound.iter().all(|sample| sample.is_finite()));
        }
    };
    (0..50).for_each(cycle);
    let before = resident_bytes();
    (50..200).for_each(cycle);
    if let (Some(before), Some(after)) = (before, resident_bytes()) {
        assert!(
            after < before + (24 << 20),
            "{} MiB became {} MiB",
            before >> 20,
            after >> 20
        );
    }
}

#[test]
fn an_instance_is_created_within_50_ms() {
    // The first instance loads the shared object and its models.
    drop(Host::new(INSTRUMENT));
    let start = std::time::Instant::now();
    for _ in 0..20 {
        std::mem::forget(Host::new(INSTRUMENT));
    }
    let each_ms = start.elapsed().as_secs_f64() * 1e3 / 20.0;
    println!("an instance is created in {each_ms:.2} ms");
    assert!(each_ms < 50.0, "{each_ms} ms");
}

#[test]
fn sixteen_instances_play_at_once() {
    let mut hosts: Vec<Host> = (0..16)
        .map(|_| Host::active_offline(INSTRUMENT, 48_000.0, 512))
        .collect();
    for (voice, host) in hosts.iter_mut().enumerate() {
        let sound = host.play(
            12_000,
            512,
            &[(0, HostEvent::NoteOn(48 + voice as u8, 0.8))],
            None,
        );
        assert!(energy(&sound) > 1e-6, "{voice}");
    }
    hosts.truncate(8);
    for host in &mut hosts {
        assert!(energy(&host.play(12_000, 512, &[], None)) > 1e-6);
    }
}

/// Plays `seconds` of audio with random events, rates, blocks, states and presets.
fn play_at_random(host: &mut Host, product: Product, random: &mut StdRng, seconds: f64) {
    let presets: Vec<&str> = FACTORY
        .iter()
        .filter(|factory| factory.preset().unwrap().product == product)
        .map(|factory| factory.key)
        .collect();
    // All parameters over their full ranges.
    let mut parameters: Vec<(&'static str, (f64, f64))> = host
        .ranges
        .iter()
        .map(|(name, range)| (&*name.clone().leak(), *range))
        .collect();
    parameters.sort_by_key(|(name, _)| *name);
    let listed = |name: &str| parameters.iter().any(|(listed, _)| *listed == name);
    assert!(["Panic", "Mix"].into_iter().all(listed));
    assert!(
        ["Mode", "Glide", "Voices"]
            .into_iter()
            .all(|name| listed(name) == (product == Product::Instrument))
    );
    // Some controllers are bound.
    let original = with_selection(&host.save(), |selection| {
        selection["controllers"] =
            serde_json::json!({ "output_gain": 7, "macro1": 1, "transpose": 1, "bypass": 64 });
    });
    assert!(host.load(&original));
    let mut played = 0.0;
    while played < seconds {
        let rate = [22_050.0, 44_100.0, 48_000.0, 96_000.0, 192_000.0][random.random_range(0..5)];
        let longest = [1, 17, 64, 480, 1024, 8192][random.random_range(0..6)];
        host.deactivate();
        host.set_offline(random.random_bool(0.3));
        host.activate(rate, longest);
        for _ in 0..random.random_range(1..200) {
            let frames = random.random_range(1..=longest);
            let mut times: Vec<u32> = (0..random.random_range(0..6))
                .map(|_| random.random_range(0..frames))
                .collect();
            times.sort_unstable();
            let what = |time: u32, random: &mut StdRng| {
                let key = random.random_range(20..110);
                let what = match random.random_range(0..9) {
                    0..2 => HostEvent::NoteOn(key, random.random_range(0.0..1.0)),
                    2..5 => HostEvent::NoteOff(key),
                    5 => HostEvent::Midi([
                        0xB0 | random.random_range(0..16u8),
                        random.random_range(0..128),
                        random.random_range(0..128),
                    ]),
                    6 => HostEvent::Midi([
                        0xE0 | random.random_range(0..16u8),
                        random.random_range(0..128),
                        random.random_range(0..128),
                    ]),
                    7 => HostEvent::NoteExpression(
                        key,
                        EXPRESSIONS[random.random_range(0..3)],
                        random.random_range(0.0..1.0),
                    ),
                    _ => {
                        let (name, (min, max)) =
                            parameters[random.random_range(0..parameters.len())];
                        HostEvent::SetParameter(name, random.random_range(min..=max))
                    }
                };
                (time, what)
            };
            let events: Vec<(u32, HostEvent)> =
                times.into_iter().map(|time| what(time, random)).collect();
            let level = [0.0, 0.1, 1.0, 100.0, f32::NAN][random.random_range(0..5)];
            let input: Vec<f32> = (0..frames)
                .map(|_| level * random.random_range(-1.0..1.0))
                .collect();
            for sound in host.block(frames as usize, &events, Some(&input)) {
                let loudest = peak(&sound);
                assert!(
                    loudest < 1e6 && sound.iter().all(|sample| sample.is_finite()),
                    "{loudest}"
                );
            }
            played += f64::from(frames) / rate;
            match random.random_range(0..200) {
                0 => host.reset(),
                1 => {
                    let hash = BUNDLED[random.random_range(0..3)]
                        .model()
                        .content_hash()
                        .to_owned();
                    let change = |selection: &mut serde_json::Value| {
                        selection["model"]["hash"] = hash.into()
                    };
                    assert!(host.load(&with_selection(&original, change)));
                }
                2 => {
                    let saved = host.save();
                    assert!(host.load(&saved));
                }
                3 => assert!(host.load_preset(presets[random.random_range(0..presets.len())])),
                _ => {}
            }
        }
    }
}

#[test]
fn random_use_neither_fails_nor_leaks() {
    let _alone = measure_alone();
    let minutes: f64 =
        std::env::var("ONDES_SOAK_MINUTES").map_or(1.0, |minutes| minutes.parse().unwrap());
    let seed = std::env::var("ONDES_SOAK_SEED").map_or(4, |seed| seed.parse().unwrap());
    let mut random = StdRng::seed_from_u64(seed);
    let mut before = None;
    for part in 0..8 {
        let product = if part % 2 == 0 {
            Product::Instrument
        } else {
            Product::Effect
        };
        let mut host = Host::new(if product == Product::Instrument {
            INSTRUMENT
        } else {
            EFFECT
        });
        play_at_random(&mut host, product, &mut random, 60.0 * minutes / 8.0);
        drop(host);
        match (before, resident_bytes()) {
            // By now every buffer has had its largest size.
            (None, now) if part == 3 => before = now,
            (Some(before), Some(now)) => {
                assert!(
                    now < before + (64 << 20),
                    "{} MiB became {} MiB",
                    before >> 20,
                    now >> 20
                );
            }
            _ => {}
        }
    }
}
