//! Recorded attacks at the onset of notes.

use std::sync::Arc;

use ondes_engine::instrument::{NATURAL_VELOCITY, Performance};
use ondes_engine::model::{Attack, Attacks, Model, ModelError, file};
use ondes_tests::{HOP, SAMPLE_RATE, bundled_file};

use super::playing::play;

/// Key that is played, and its pitch.
const KEY: u8 = 57;
const PITCH_HZ: f32 = 220.0;
/// No room.
const DRY: &[(&str, f32)] = &[("room", 0.0)];
/// Length of attacks, samples: 120 ms.
const LENGTH: usize = 5_760;
/// Sample of the click in the sound of [`click`].
const CLICK: usize = 1_000;

/// Returns a bundled instrument whose notes do not vary, with attacks.
fn instrument(attacks: &[Attack]) -> Model {
    living(0.0, attacks)
}

/// Returns the instrument with notes that vary as much as `life` says.
fn living(life: f32, attacks: &[Attack]) -> Model {
    let model = file::read(&bundled_file("bowed")).expect("it is whole");
    let mut header = model.header().clone();
    header.performance = Some(Performance {
        life,
        humanize_cents: 0.0,
        humanize_db: 0.0,
        vibrato_cents: 0.0,
        scoop_cents: 0.0,
        gain_db: 0.0,
        sustain_db: 0.0,
        velocity_curve: 1.0,
        ..header.performance.expect("it is an instrument")
    });
    let model = model.with_header(header).expect("the settings are valid");
    if attacks.is_empty() {
        return model;
    }
    let attacks = Attacks::new(attacks).expect("they are alike");
    model
        .with_attacks(Some(Arc::new(attacks)))
        .expect("they fit")
}

/// Returns a click as the attack of a pitch, at the level of notes of the natural velocity.
fn click(pitch: f32, amplitude: f32) -> Attack {
    let performance = instrument(&[]).header().performance.expect("it has one");
    let mut sound = vec![0.0; LENGTH];
    sound[CLICK] = amplitude;
    Attack {
        pitch,
        level_db: performance.natural_db(),
        phase: 0.0,
        likeness: 0.0,
        controls: vec![1.0],
        sound,
    }
}

/// Returns place and size of the largest sample.
fn peak(sound: &[f32]) -> (usize, f32) {
    let sizes = sound.iter().map(|sample| sample.abs()).enumerate();
    sizes.max_by(|a, b| a.1.total_cmp(&b.1)).expect("samples")
}

#[test]
fn an_attack_begins_at_the_sample_of_its_note() {
    let model = instrument(&[click(57.0, 8.0)]);
    for at in [0, 1, 191, 192, 1_000, 12_345] {
        let (place, size) = peak(&play(&model, &[KEY], NATURAL_VELOCITY, at, DRY));
        assert_eq!(place, CLICK, "at {at}");
        assert!((size - 8.0).abs() < 0.2, "at {at}: {size}");
    }
}

#[test]
fn an_attack_is_as_loud_as_its_note_and_quicker_above_its_pitch() {
    let model = instrument(&[click(57.0, 8.0)]);
    let performance = model.header().performance.expect("it has one");
    let (_, soft) = peak(&play(&model, &[KEY], 0.4, 0, DRY));
    let expected = performance.peak_db(0.4) - performance.natural_db();
    let found = 20.0 * (soft / 8.0).log10();
    // Soft notes rise more slowly, too.
    let slower = expected - found;
    assert!((-0.1..4.0).contains(&slower), "{found} {expected} dB");

    // An octave below, at the nearer of two.
    let model = instrument(&[click(45.0, 8.0), click(93.0, 4.0)]);
    let (place, size) = peak(&play(&model, &[KEY], NATURAL_VELOCITY, 0, DRY));
    assert_eq!(place, CLICK / 2);
    assert!(size > 6.0, "{size}");
    // The knob Attack takes its edge.
    let (_, slow) = peak(&play(
        &model,
        &[KEY],
        NATURAL_VELOCITY,
        0,
        &[DRY[0], ("attack", 500.0)],
    ));
    assert!(slow < 0.3 * size, "{slow} {size}");
}

#[test]
fn takes_alternate_unless_notes_do_not_vary() {
    let takes = [click(57.0, 8.0), click(57.1, 4.0)];
    let sizes = |life: f32| -> Vec<f32> {
        let model = living(life, &takes);
        let size = |at: u64| peak(&play(&model, &[KEY], NATURAL_VELOCITY, at, DRY)).1;
        (0..12).map(|n| size(1_000 * n)).collect()
    };
    assert!(sizes(0.0).iter().all(|size| *size > 7.0));
    let varied = sizes(1.0);
    let first = varied.iter().filter(|size| **size > 6.0).count();
    assert!((2..=10).contains(&first), "{varied:?}");
}

/// The attack is what the network would have played, so nothing is heard of the fade.
#[test]
fn the_network_goes_on_in_phase() {
    let own = play(&instrument(&[]), &[KEY], NATURAL_VELOCITY, 0, DRY);
    let attack = Attack {
        phase: PITCH_HZ * HOP as f32 / SAMPLE_RATE as f32,
        likeness: 1.0,
        sound: own[..LENGTH].to_vec(),
        ..click(57.0, 0.0)
    };
    let model = instrument(&[attack]);
    let power = |sound: &[f32]| sound.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    for at in [0, 77, 1_000] {
        let played = play(&model, &[KEY], NATURAL_VELOCITY, at, DRY);
        for period in (LENGTH - 1_920)..(LENGTH + 1_920) {
            if period % 480 == 0 {
                let range = period..period + 480;
                let ratio = power(&played[range.clone()]) / power(&own[range]);
                let change = 10.0 * ratio.log10();
                assert!(change.abs() < 1.0, "{change} dB at {period} of {at}");
            }
        }
    }
}

#[test]
fn they_are_kept_in_the_file_and_are_part_of_the_sound() {
    let plain = instrument(&[]);
    let model = instrument(&[click(57.0, 8.0), click(60.0, 4.0)]);
    let bytes = file::serialize(&model).expect("it can be written");
    let read = file::parse(&bytes).expect("it is whole");
    assert_eq!(read, model);
    assert_ne!(read.base_hash(), plain.base_hash());
    let without = read.clone().with_attacks(None).expect("it has none");
    assert_eq!(without.content_hash(), plain.content_hash());
    assert_eq!(without, plain);
    let attacks: Vec<Attack> = read.attacks().expect("it has them").iter().collect();
    assert_eq!(attacks[1], click(60.0, 4.0));
    // A changed sample is noticed.
    let mut damaged = bytes;
    let last = damaged.len() - 2;
    damaged[last] ^= 1;
    assert!(matches!(file::parse(&damaged), Err(ModelError::Checksum)));
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |attacks: &[Attack]| {
        let attacks = Attacks::new(attacks)?;
        instrument(&[]).with_attacks(Some(Arc::new(attacks)))
    };
    let with = |change: fn(&mut Attack)| {
        let mut attack = click(57.0, 1.0);
        change(&mut attack);
        refused(&[attack]).expect_err("it does not fit").to_string()
    };
    assert!(with(|attack| attack.pitch = f32::NAN).contains("attacks: "));
    assert!(with(|attack| attack.pitch = 500.0).contains("out of range"));
    assert!(with(|attack| attack.likeness = 2.0).contains("out of range"));
    assert!(with(|attack| attack.controls.clear()).contains("columns"));
    assert!(with(|attack| attack.sound.truncate(1)).contains("out of range"));
    assert!(with(|attack| attack.sound[7] = f32::INFINITY).contains("too large"));
    let longer = |attack: &mut Attack| attack.sound.resize(50_000, 0.0);
    assert!(with(longer).contains("the length of an attack"));
    assert!(refused(&[]).is_err());
    let effect = file::read(&bundled_file("triode")).expect("it is whole");
    let attacks = Attacks::new(&[click(57.0, 1.0)]).expect("they are alike");
    let error = effect.with_attacks(Some(Arc::new(attacks)));
    let error = error.expect_err("it plays no notes").to_string();
    assert!(error.contains("only instruments have them"), "{error}");
}
