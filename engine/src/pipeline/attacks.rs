//! Recorded attacks at the onset of notes, faded into the network.

use crate::dsp::level::db_to_amplitude;
use crate::dsp::tilt::Tilt;
use crate::instrument::{Performance, Stroke, VoiceFrame};
use crate::model::attacks::FADE_S;
use crate::model::{Attack, Header};

/// Difference of level that counts as much as a semitone when an attack is chosen, dB.
const DB_PER_SEMITONE: f32 = 4.0;
/// Semitones that a control at its other end counts as much as.
const CONTROL_SEMITONES: f32 = 60.0;
/// Semitones by which an attack may be further from a note than the nearest, to take turns with it.
const TURNS_SEMITONES: f32 = 0.5;

/// Plays the recorded attacks of an instrument. Allocates only on construction.
pub(super) struct AttackPlayer {
    /// Their sounds begin and end with a sample of silence, for interpolation.
    attacks: Vec<Attack>,
    fade: f32,
    sample_rate: f32,
    /// Ranges of the controls in [`Attack::controls`].
    ranges: Vec<f32>,
    /// `[stream]`
    playing: Vec<Option<Playing>>,
    /// `[stream]`: filters, where notes of one dynamic are coloured.
    tilts: Vec<Tilt>,
    /// Tilt for each dB of level, dB.
    tilt_per_db: f32,
    /// A hop of one attack.
    sound: Vec<f32>,
}

/// An attack in one stream.
#[derive(Clone, Copy)]
struct Playing {
    attack: usize,
    /// Sample of the attack that is next.
    position: f32,
    /// Samples of the hop before it.
    wait: usize,
    /// Gain at the end of the last hop; none before the first.
    gain: Option<f32>,
}

/// A note that begins.
#[derive(Clone, Copy)]
pub(super) struct Strike<'a> {
    pub stroke: Stroke,
    pub frame: &'a VoiceFrame,
    /// Level in dB by which it is played brighter than it is loud.
    pub brightness: f32,
    /// Positions of the controls in [`Attack::controls`].
    pub controls: &'a [f32],
    /// Repeated notes have other attacks.
    pub takes_turns: bool,
}

impl AttackPlayer {
    /// Prepares attacks of a model whose controls, in the order of [`Attack::controls`], are
    /// `names`, for hops of a length.
    pub fn new(
        attacks: impl Iterator<Item = Attack>,
        header: &Header,
        names: &[String],
        streams: usize,
        hop: usize,
    ) -> Self {
        let range = |name: &String| {
            let control = header.controls.iter().find(|control| control.name == *name);
            control.map_or(1.0, |control| (control.max - control.min).max(1e-6))
        };
        let performance = header.performance.unwrap_or_default();
        let sample_rate = header.sample_rate as f32;
        let padded = |mut attack: Attack| {
            attack.sound.insert(0, 0.0);
            attack.sound.extend([0.0; 2]);
            attack
        };
        Self {
            attacks: attacks.map(padded).collect(),
            fade: FADE_S as f32 * sample_rate,
            sample_rate,
            ranges: names.iter().map(range).collect(),
            playing: vec![None; streams],
            tilts: tilts(&performance, sample_rate, streams, hop),
            tilt_per_db: performance.dynamic_tilt,
            sound: vec![0.0; hop],
        }
    }

    /// Returns the bytes of the sounds.
    pub fn bytes(&self) -> usize {
        let values = self.attacks.iter().map(|attack| attack.sound.len());
        values.sum::<usize>() * size_of::<f32>()
    }

    /// Stops the attack of a stream.
    pub fn stop(&mut self, stream: usize) {
        self.playing[stream] = None;
    }

    /// Begins the attack of a note that was struck in this hop. Returns the phase in cycles that
    /// the network's oscillator should have at the start of the hop.
    pub fn strike(&mut self, stream: usize, strike: Strike<'_>) -> f64 {
        let chosen = self.choose(strike);
        let (hop, age) = (self.sound.len(), strike.stroke.age);
        // The frame is at the end of the hop.
        let wait = hop.saturating_sub(age);
        // A note that began before is heard from where it is.
        let late = age.saturating_sub(hop);
        let pitch = strike.frame.pitch;
        self.playing[stream] = Some(Playing {
            attack: chosen,
            position: late as f32 * self.attacks[chosen].speed(pitch),
            wait,
            gain: (late > 0).then_some(0.0),
        });
        if let Some(tilt) = self.tilts.get_mut(stream) {
            tilt.reset();
        }
        let samples = wait as f32 - late as f32;
        let pitch_hz = 440.0 * ((pitch - 69.0) / 12.0).exp2();
        f64::from(self.attacks[chosen].phase - pitch_hz * samples / self.sample_rate)
    }

    /// Returns the attack whose pitch, controls and level are nearest, or one of those that are
    /// nearly so.
    fn choose(&self, strike: Strike<'_>) -> usize {
        let Strike { frame, .. } = strike;
        let distance = |attack: &Attack| {
            let controls = attack
                .controls
                .iter()
                .zip(strike.controls)
                .zip(&self.ranges);
            let controls: f32 = controls
                .map(|((own, asked), range)| (own - asked).abs() / range)
                .sum();
            (attack.pitch - frame.pitch).abs()
                + (attack.level_db - frame.strike_db - strike.brightness).abs() / DB_PER_SEMITONE
                + CONTROL_SEMITONES * controls
        };
        let distances = || self.attacks.iter().map(distance).enumerate();
        let nearest = distances().min_by(|a, b| a.1.total_cmp(&b.1));
        let (nearest, least) = nearest.unwrap_or((0, 0.0));
        if !strike.takes_turns {
            return nearest;
        }
        let takes = || distances().filter(|(_, other)| *other <= least + TURNS_SEMITONES);
        let draw = strike.stroke.seed % takes().count().max(1) as u64;
        takes()
            .nth(draw as usize)
            .map_or(nearest, |(index, _)| index)
    }

    /// Plays a hop of a stream's attack: its sound, if there is one, and the share of the network
    /// at the end of the hop. The note is also `brightness` dB brighter.
    pub fn play(
        &mut self,
        stream: usize,
        frame: &VoiceFrame,
        brightness: f32,
    ) -> (Option<&[f32]>, f32) {
        let Some(mut playing) = self.playing[stream] else {
            return (None, 1.0);
        };
        let attack = &self.attacks[playing.attack];
        let above_db = frame.strike_db - attack.level_db;
        let end = frame.strike_gain * db_to_amplitude(above_db);
        let start = playing.gain.unwrap_or(end);
        let speed = attack.speed(frame.pitch);
        let length = (attack.sound.len() - 3) as f32;
        let per_sample = (end - start) / self.sound.len() as f32;
        self.sound.fill(0.0);
        for (n, out) in self.sound.iter_mut().enumerate().skip(playing.wait) {
            if playing.position >= length {
                break;
            }
            let gain = start + per_sample * (n + 1) as f32;
            let share = shares(playing.position, length, self.fade, attack.likeness).0;
            *out = gain * share * interpolated(&attack.sound, playing.position);
            playing.position += speed;
        }
        let network = shares(playing.position, length, self.fade, attack.likeness).1;
        (playing.wait, playing.gain) = (0, Some(end));
        self.playing[stream] = (playing.position < length).then_some(playing);
        if let Some(tilt) = self.tilts.get_mut(stream) {
            let tilt_db = self.tilt_per_db * (above_db + brightness);
            tilt.process(tilt_db, frame.pitch, &mut self.sound);
        }
        (Some(&self.sound), network)
    }
}

/// Returns a filter for each stream, if notes are coloured by their level.
fn tilts(performance: &Performance, sample_rate: f32, streams: usize, hop: usize) -> Vec<Tilt> {
    let count = if performance.dynamic_tilt == 0.0 {
        0
    } else {
        streams
    };
    vec![Tilt::new(sample_rate, hop); count]
}

/// Returns the gains of attack and network at a position of an attack of a length, so that their
/// sum keeps the level of sounds with a correlation of `likeness`.
fn shares(position: f32, length: f32, fade: f32, likeness: f32) -> (f32, f32) {
    let way = ((position - (length - fade)) / fade).clamp(0.0, 1.0);
    let (attack, network) = (1.0 - way, way);
    let power = attack * attack + network * network + 2.0 * likeness * attack * network;
    (attack / power.sqrt(), network / power.sqrt())
}

/// Returns a sound between its samples, by the cubic of Catmull and Rom; it begins with a sample of
/// silence and ends with two.
fn interpolated(sound: &[f32], position: f32) -> f32 {
    let index = position as usize;
    let x = position - index as f32;
    let [a, b, c, d] = [0, 1, 2, 3].map(|n| sound.get(index + n).copied().unwrap_or(0.0));
    let (slope, bend) = (0.5 * (c - a), a - 2.5 * b + 2.0 * c - 0.5 * d);
    b + x * (slope + x * (bend + x * (0.5 * (d - a) + 1.5 * (b - c))))
}
