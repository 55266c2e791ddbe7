//! Cuts the attacks of recorded notes for the model that has learnt them.

use std::sync::Arc;

use ondes_engine::dsp::level::db_to_amplitude;
use ondes_engine::instrument::Performance;
use ondes_engine::model::attacks::FADE_S;
use ondes_engine::model::{Attack, Attacks, Model};

use super::keyboard::Keyboard;
use super::median;
use super::note::Note;
use crate::data::FeatureRate;

/// Length of an attack, seconds.
const LENGTH_S: f64 = 0.12;
/// Sound before the onset that belongs to it, and its fade-in, seconds.
const BEFORE_S: f64 = 0.004;
const FADE_IN_S: f64 = 0.002;
/// Most attacks of a model: about 3 MB.
const MAX_ATTACKS: usize = 256;
/// Most by which the level of an attack may differ from the usual one, dB.
const MAX_DEVIATION_DB: f64 = 12.0;
/// Weight of the room, and the most by which a sound without it may be louder, in power.
const ROOM: &str = "room.impulse";
const MAX_GAIN: f32 = 4.0;
/// Correlation from which an attack was cut from a recording.
const SAME: f64 = 0.99;

/// Returns the model with the attacks of recorded notes, if these are as long; its performance must
/// be that of the recordings.
///
/// # Errors
/// Returns an error if the model cannot be played.
pub(super) fn with_attacks(
    model: &Model,
    keyboard: &Keyboard<'_>,
    notes: &[(usize, Note)],
) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    if let Some(performance) = &mut header.performance {
        // As a recording can be compared with it.
        *performance = Performance {
            scoop_cents: 0.0,
            gain_db: 0.0,
            ..*performance
        };
    }
    if let Some(life) = header.controls.iter_mut().find(|own| own.name == "life") {
        life.default = 0.0;
    }
    let plain = model.clone().with_attacks(None)?.with_header(header)?;
    let keyboard = Keyboard {
        model: &plain,
        ..*keyboard
    };
    let every = notes.len().div_ceil(MAX_ATTACKS).max(1);
    let mut cut = Vec::new();
    for (_, note) in notes.iter().step_by(every) {
        cut.extend(attack(&keyboard, note)?);
    }
    let usual_db = median(cut.iter().map(|(_, gain_db)| *gain_db).collect());
    cut.retain(|(_, gain_db)| (gain_db - usual_db).abs() <= MAX_DEVIATION_DB);
    let cut: Vec<Attack> = cut.into_iter().map(|(attack, _)| attack).collect();
    with(model, &cut)
}

/// Returns the model with these attacks only.
fn with(model: &Model, attacks: &[Attack]) -> anyhow::Result<Model> {
    let attacks = match attacks {
        [] => None,
        _ => Some(Arc::new(Attacks::new(attacks)?)),
    };
    Ok(model.clone().with_attacks(attacks)?)
}

/// Returns the model without the attack of a recording.
pub(super) fn without_attack(model: &Model, recorded: &Note) -> anyhow::Result<Model> {
    let Some(attacks) = model.attacks() else {
        return Ok(model.clone());
    };
    let mut own = beginning(recorded, attacks.samples());
    without_room(&mut own, &room(model));
    let is_other = |attack: &Attack| {
        let alike = align(&own, &attack.sound, 0);
        alike.is_none_or(|(_, likeness)| likeness < SAME)
    };
    let others: Vec<Attack> = attacks.iter().filter(is_other).collect();
    with(model, &others)
}

/// Cuts the attack of a note, if it is long enough, with the gain that brings the recording to the
/// level at which the network sustains the note, dB.
fn attack(keyboard: &Keyboard<'_>, recorded: &Note) -> anyhow::Result<Option<(Attack, f64)>> {
    let rate = keyboard.rate;
    let samples = |seconds: f64| (seconds * f64::from(rate.sample_rate)) as usize;
    let (onset, end) = recorded.measures.held;
    let length = samples(LENGTH_S);
    if (end - onset) * rate.hop < length {
        return Ok(None);
    }
    let mut sound = beginning(recorded, length);
    let pitch = recorded.measures.pitch;
    let pitch_hz = 440.0 * ((f64::from(pitch) - 69.0) / 12.0).exp2();
    let period = (f64::from(rate.sample_rate) / pitch_hz).ceil() as usize;
    let Some(network) = keyboard.replay(recorded)? else {
        return Ok(None);
    };
    let gain_db = network.measures.level_db - recorded.measures.level_db;
    let gain = db_to_amplitude(gain_db);
    let fade = length - samples(FADE_S);
    let after = network.features.audio().get(fade..).unwrap_or_default();
    let Some((lag, likeness)) = align(&sound[fade..], after, period) else {
        return Ok(None);
    };
    without_room(&mut sound, &room(keyboard.model));
    sound.iter_mut().for_each(|sample| *sample *= gain);
    // The network begins to turn one hop before the onset.
    let phase = pitch_hz * (lag + rate.hop) as f64 / f64::from(rate.sample_rate);
    let synth = keyboard.model.method("synth")?;
    let ports = synth.inputs.iter().map(|port| &port.name);
    let knobs = &recorded.features.knobs;
    let position = |name: &String| {
        let control = keyboard.model.header().controls.iter();
        let default = control.clone().find(|control| control.name == *name);
        let default = default.map_or(0.0, |control| control.default);
        knobs.get(name).copied().unwrap_or(default)
    };
    let attack = Attack {
        pitch,
        level_db: keyboard.performance.peak_db(keyboard.velocity_of(recorded)),
        phase: phase.rem_euclid(1.0) as f32,
        likeness: likeness.clamp(0.0, 1.0) as f32,
        controls: ports
            .filter(|name| *name != "pitch" && *name != "loudness")
            .map(position)
            .collect(),
        sound,
    };
    Ok(Some((attack, f64::from(gain_db))))
}

/// Returns the impulse response of the room at the usual level, from the direct sound on; only that
/// if the model has none.
fn room(model: &Model) -> Vec<f32> {
    let level = model.header().controls.iter();
    let level = level
        .clone()
        .find(|control| control.name == "room")
        .map_or(1.0, |control| control.default);
    let mut weights = model.weights().iter();
    let impulse = weights.find(|(name, _)| *name == ROOM);
    let mut room = impulse.map_or(vec![0.0], |(_, tensor)| tensor.floats().into_owned());
    room.iter_mut().for_each(|tap| *tap *= level);
    room[0] += 1.0;
    room
}

/// Takes a room from a sound that begins in silence: what is played in it is then the sound. Leaves
/// it as it is if the room cannot be taken from it.
fn without_room(sound: &mut [f32], room: &[f32]) {
    let mut dry: Vec<f32> = Vec::with_capacity(sound.len());
    for sample in sound.iter() {
        let echoes = room[1..].iter().zip(dry.iter().rev());
        let echoes: f32 = echoes.map(|(tap, sample)| tap * sample).sum();
        dry.push((sample - echoes) / room[0]);
    }
    let power = |sound: &[f32]| sound.iter().map(|x| x * x).sum::<f32>();
    if power(&dry) < MAX_GAIN * power(sound) {
        sound.copy_from_slice(&dry);
    }
}

/// Returns the beginning of a recorded note, from a little before its onset, and silence after its
/// end.
fn beginning(recorded: &Note, length: usize) -> Vec<f32> {
    let FeatureRate { sample_rate, hop } = recorded.features.rate;
    let samples = |seconds: f64| (seconds * f64::from(sample_rate)) as usize;
    let onset = recorded.measures.held.0 * hop;
    let from = onset.saturating_sub(samples(BEFORE_S));
    let audio = recorded.features.audio()[from..].iter().copied();
    let rest = std::iter::repeat(0.0);
    let mut sound: Vec<f32> = audio.chain(rest).take(length).collect();
    let fade = samples(FADE_IN_S);
    for (n, sample) in sound[..fade].iter_mut().enumerate() {
        *sample *= n as f32 / fade as f32;
    }
    sound
}

/// Returns by how many samples within a period a network's sound, which is longer, is late where it
/// is most like a recorded one, and their correlation; `None` if one is silent.
fn align(recorded: &[f32], network: &[f32], period: usize) -> Option<(usize, f64)> {
    let product = |a: &[f32], b: &[f32]| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    };
    let power = product(recorded, recorded);
    let most = period.min(network.len().checked_sub(recorded.len())?);
    let alike = (0..=most).map(|lag| {
        let later = &network[lag..][..recorded.len()];
        let likeness = product(recorded, later) / (power * product(later, later)).sqrt();
        (lag, likeness)
    });
    alike
        .filter(|(_, likeness)| likeness.is_finite())
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(samples: usize, seed: u64) -> Vec<f32> {
        let draw = |n: usize| ondes_engine::dsp::noise::stream_seed(seed, n as u64);
        (0..samples)
            .map(|n| (draw(n) >> 40) as f32 / (1 << 23) as f32 - 1.0)
            .collect()
    }

    fn in_room(dry: &[f32], room: &[f32]) -> Vec<f32> {
        let at = |n: usize| room.iter().zip(dry[..=n].iter().rev()).map(|(a, b)| a * b);
        (0..dry.len()).map(|n| at(n).sum()).collect()
    }

    #[test]
    fn a_room_is_taken_from_a_sound() {
        let dry = noise(500, 1);
        let mut room: Vec<f32> = noise(200, 2).iter().map(|tap| 0.05 * tap).collect();
        room[0] += 1.0;
        let mut sound = in_room(&dry, &room);
        assert!(sound.iter().zip(&dry).any(|(a, b)| (a - b).abs() > 0.1));
        without_room(&mut sound, &room);
        assert!(sound.iter().zip(&dry).all(|(a, b)| (a - b).abs() < 1e-3));

        // An echo louder than the direct sound has no stable inverse.
        let mut sound = dry.clone();
        without_room(&mut sound, &[1.0, 0.0, 2.0]);
        assert_eq!(sound, dry);
    }

    #[test]
    fn a_network_is_as_late_as_it_is_most_alike() {
        let network = noise(1_000, 3);
        let recorded: Vec<f32> = network[37..537].iter().map(|x| 0.5 * x).collect();
        let (lag, likeness) = align(&recorded, &network, 100).expect("they sound");
        assert_eq!(lag, 37);
        assert!(likeness > 0.999, "{likeness}");
        assert_eq!(align(&[0.0; 10], &network, 5), None);
        assert_eq!(align(&recorded, &network[..400], 5), None, "it ends before");
    }
}
