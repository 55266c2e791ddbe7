//! A rendered session equals the session played live.

use std::path::Path;

use ondes::io::Callback;
use ondes::rack::fader::FaderSettings;
use ondes::rack::session_file::TrackInput;
use ondes::rack::{Mixer, Rack, SessionFile};
use ondes_engine::dsp::level::max_difference;
use ondes_engine::dsp::limiter::{CEILING, Limiter};
use ondes_engine::realtime::Setup;
use ondes_player::library::{BUNDLED, FileReference};
use ondes_player::parameter::ParameterId;
use ondes_player::parameter::{DRIVER, MIX, Parameter, TRANSPOSE};
use ondes_player::parameter_source::ParameterSource;
use ondes_player::product::Product;
use serde_json::Value;

use crate::common::{midi, tone, write_wav};
use crate::program::{decode, ondes};
use crate::rack::message;
use crate::server::RATE;

const BLOCK: usize = 256;

/// Notes: channel, key, start and end in ticks, 960 per second, 50 frames each.
const NOTES: [(u8, u8, u32, u32); 4] = [
    (0, 57, 10, 700),
    (1, 50, 200, 500),
    (0, 64, 701, 1_300),
    (1, 45, 720, 1_200),
];

/// A folder with a session of four tracks: two that are played by notes of different channels, one
/// that follows a recording over and over, and one that hears the second channel of the sound card;
/// and with what they hear.
fn stage() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_wav(&path("loop.wav"), 44_100, 1, tone(330.0, 0.9, 44_100));
    let beside = tone(220.0, 1.5, RATE).flat_map(|sample| [0.0, sample]);
    write_wav(&path("card.wav"), RATE, 2, beside);
    let notes: Vec<_> = NOTES
        .iter()
        .map(|&(channel, key, start, end)| (0, channel, key, start, end - start))
        .collect();
    std::fs::write(path("song.mid"), midi(&["All"], &notes)).unwrap();

    let mut mixer = Mixer::new(|| {});
    let mut track = |product, model: usize, name: &str, settings, knobs: &[(ParameterId, f32)]| {
        let place = mixer.add(product).unwrap();
        mixer.rename(place, name);
        let reference = FileReference::to(&BUNDLED[model].model(), None);
        let track = mixer.track(place).unwrap();
        track
            .instance
            .load_model(false, move || reference.find().map_err(Into::into))
            .join()
            .unwrap();
        track.fader.set(settings);
        knobs
            .iter()
            .for_each(|(knob, value)| track.parameters.set_value(*knob, *value));
        place
    };
    let plain = FaderSettings::default();
    let lead = FaderSettings {
        level_db: 12.0,
        pan: -0.3,
        ..plain
    };
    track(
        Product::Instrument,
        0,
        "Lead",
        lead,
        &[(DRIVER, 1.0), (TRANSPOSE, 2.0)],
    );
    track(
        Product::Instrument,
        1,
        "lead",
        FaderSettings { pan: 0.5, ..plain },
        &[(DRIVER, 2.0), (ParameterId(0), 0.8)],
    );
    track(
        Product::Effect,
        2,
        "",
        FaderSettings {
            level_db: -3.0,
            ..plain
        },
        &[(DRIVER, 2.0), (MIX, 0.7)],
    );
    track(
        Product::Effect,
        2,
        "Card",
        FaderSettings { pan: 1.0, ..plain },
        &[(DRIVER, 1.0)],
    );
    mixer.set_midi_channels(0, 1).unwrap();
    mixer.set_midi_channels(1, 2).unwrap();
    // A controller that nobody moves is bound all the same.
    let id = Parameter::get(TRANSPOSE).unwrap().id;
    assert!(mixer.track(0).unwrap().instance.midi_bindings.learn(id));
    mixer
        .set_input(
            2,
            TrackInput::File {
                path: path("loop.wav"),
                looped: true,
            },
        )
        .unwrap();
    mixer
        .set_input(3, TrackInput::Channels { first: 1, count: 1 })
        .unwrap();
    let mut session = mixer.saved();
    session.master.level_db = 6.0;
    session.write(&path("stage.ondes-session")).unwrap();
    folder
}

/// Plays the session on the rack, `[channel][frame]`, and returns it with its latency.
fn live(folder: &Path, seconds: f64) -> ([Vec<f32>; 2], usize) {
    let mut mixer = Mixer::new(|| {});
    let session = SessionFile::read(&folder.join("stage.ondes-session")).unwrap();
    assert_eq!(mixer.restore(&session), [""; 0]);
    for (_, track) in mixer.tracks() {
        track.instance.set_non_realtime(true);
    }
    let mut rack: Rack = mixer
        .open(
            Setup {
                sample_rate: RATE,
                max_block: BLOCK,
            },
            None,
            Vec::new(),
        )
        .unwrap();
    let late = rack.latency_samples();
    let latency = |place: usize| {
        mixer
            .track(place)
            .unwrap()
            .instance
            .session
            .health()
            .unwrap()
            .latency_samples
    };
    assert!(
        latency(1) > latency(0) && late > latency(1),
        "tracks are late in different ways"
    );
    let mut messages: Vec<(usize, [u8; 3])> = NOTES
        .iter()
        .flat_map(|&(channel, key, start, end)| {
            [
                (50 * start as usize, [0x90 | channel, key, 90]),
                (50 * end as usize, [0x80 | channel, key, 64]),
            ]
        })
        .collect();
    messages.sort_by_key(|(at, _)| *at);
    let card: Vec<Vec<f32>> = decode(&folder.join("card.wav"));
    let mut sound = [Vec::new(), Vec::new()];
    for start in (0..(seconds * f64::from(RATE)) as usize + late).step_by(BLOCK) {
        for (at, bytes) in messages
            .iter()
            .filter(|(at, _)| (start..start + BLOCK).contains(at))
        {
            rack.receive_midi(at - start, &message(bytes));
        }
        let card: Vec<Vec<f32>> = card
            .iter()
            .map(|channel| {
                (start..start + BLOCK)
                    .map(|at| channel.get(at).copied().unwrap_or(0.0))
                    .collect()
            })
            .collect();
        let mut block = [[0.0; BLOCK]; 2];
        let [left, right] = &mut block;
        rack.process(&[&card[0], &card[1]], &mut [left, right]);
        sound
            .iter_mut()
            .zip(&block)
            .for_each(|(sound, block)| sound.extend_from_slice(block));
    }
    (sound, late)
}

fn render(folder: &Path, more: &[&str]) -> Value {
    let arguments = [
        "render",
        "stage.ondes-session",
        "--midi",
        "song.mid",
        "--input",
        "card.wav",
        "--json",
    ];
    let output = ondes(folder, &[&arguments, more].concat())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_session_renders_as_played() {
    let folder = stage();
    let folder = folder.path();
    let report = render(folder, &["--out", "mix.wav"]);
    assert_eq!(
        (&report["warnings"], &report["sample_rate"]),
        (&Value::Array(Vec::new()), &Value::from(RATE))
    );
    let seconds = report["seconds"].as_f64().unwrap();
    // 1.5 s of input, and the tail.
    assert!((1.6..10.0).contains(&seconds), "{seconds}");
    let mix = decode(&folder.join("mix.wav"));
    assert_eq!(mix.len(), 2);
    let (played, late) = live(folder, seconds);
    for (mix, played) in mix.iter().zip(&played) {
        assert!(
            mix.iter().any(|sample| sample.abs() > 0.2)
                && mix.iter().all(|sample| sample.abs() <= 1.0001 * CEILING)
        );
        assert!(mix[..] == played[late..][..mix.len()]);
        let end = &mix[mix.len() - 100..];
        assert!(report["seconds"] != 0.0 && end.iter().all(|sample| sample.is_finite()));
    }
    assert_ne!(mix[0], mix[1]);
}

#[test]
fn jobs_and_blocks_do_not_change_the_mix_and_stems_add_up_to_it() {
    let folder = stage();
    let folder = folder.path();
    let report = render(folder, &["--out", "one.wav", "--jobs", "1"]);
    for (name, more) in [
        ("two.wav", ["--jobs", "2"]),
        ("many.wav", ["--jobs", "9"]),
        ("block.wav", ["--block", "1000"]),
    ] {
        render(folder, &[&["--out", name], &more[..]].concat());
        assert!(
            std::fs::read(folder.join(name)).unwrap()
                == std::fs::read(folder.join("one.wav")).unwrap(),
            "{name}"
        );
    }
    let stems = render(folder, &["--out", "all.wav", "--stems"]);
    assert_eq!(
        (&stems["frames"], &stems["peak_db"]),
        (&report["frames"], &report["peak_db"])
    );
    let outs: Vec<&str> = stems["tracks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|track| track["out"].as_str().unwrap())
        .collect();
    assert_eq!(
        outs,
        [
            "all-Lead.wav",
            "all-lead 2.wav",
            "all-Cello.wav",
            "all-Card.wav"
        ]
    );
    let mix = decode(&folder.join("all.wav"));
    let mut sum = [vec![0.0; mix[0].len()], vec![0.0; mix[0].len()]];
    for out in outs {
        let stem = decode(&folder.join(out));
        assert!(
            stem.iter().flatten().any(|sample| sample.abs() > 0.01),
            "{out}"
        );
        for (sum, stem) in sum.iter_mut().zip(&stem) {
            assert_eq!(sum.len(), stem.len(), "{out}");
            sum.iter_mut()
                .zip(stem)
                .for_each(|(sum, sample)| *sum += sample);
        }
    }
    // The limited sum of the stems is the mix.
    let mut limiter = Limiter::new(RATE);
    let late = limiter.latency_samples();
    let [left, right] = &mut sum;
    assert!(
        left.iter().any(|sample| sample.abs() > CEILING),
        "it has something to do"
    );
    limiter.process(left, right);
    for (mix, sum) in mix.iter().zip(&sum) {
        let worst = max_difference(&sum[late..], mix);
        assert!(worst < 1e-6, "{worst}");
    }
    assert!(report["reduction_db"].as_f64().unwrap() > 0.1);
}

#[test]
fn the_parameters_of_a_track_are_audible() {
    let folder = stage();
    let path = folder.path().join("stage.ondes-session");
    let peak = |place: usize| {
        render(folder.path(), &["--out", "x.wav"])["tracks"][place]["peak_db"].as_f64()
    };
    let before = peak(0).unwrap();
    let session = SessionFile::read(&path).unwrap();
    let mut softer = session.clone();
    softer.tracks[0].fader.level_db -= 6.0;
    softer.write(&path).unwrap();
    assert!((peak(0).unwrap() - (before - 6.0)).abs() < 0.01);
    let mut alone = session.clone();
    alone.tracks[1].fader.solo = true;
    alone.write(&path).unwrap();
    assert_eq!((peak(0), peak(1).is_some()), (None, true));
    let mut deaf = session.clone();
    deaf.tracks[0].midi_channels = 0x8000;
    deaf.write(&path).unwrap();
    assert!(peak(0).is_none_or(|peak| peak < -80.0));
    // As changed in the window.
    let panel = ondes_player::parameter_store::ParameterStore::new(Product::Instrument);
    panel.restore(&session.tracks[0].parameters);
    assert_eq!(panel.value(TRANSPOSE), Some(2.0));
    panel.set_value(TRANSPOSE, 0.0);
}
