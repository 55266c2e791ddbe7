//! Tests that hold for all effects.

use std::f64::consts::TAU;

use realfft::RealFftPlanner;

use super::{EFFECTS, Effect, EffectKind, effect};
use crate::dsp::level::{max_step, peak};

const RATE: u32 = 48_000;

/// Returns a sine of that RMS level in dB of a sine of full scale.
pub fn sine(hz: f64, db: f64, seconds: f64) -> Vec<f32> {
    let amplitude = 10.0_f64.powf(db / 20.0);
    let count = (seconds * f64::from(RATE)) as usize;
    let phase = |n: usize| TAU * hz * n as f64 / f64::from(RATE);
    (0..count)
        .map(|n| (amplitude * phase(n).sin()) as f32)
        .collect()
}

/// Returns the level of a sound, dB RMS of full scale.
pub fn level_db(sound: &[f32]) -> f64 {
    let power = sound.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    10.0 * (power / sound.len() as f64).log10()
}

/// Returns the spectrum of a sound in dB, a bin a hertz where the sound lasts a second: a sine of
/// amplitude 1 is 0 dB.
pub fn spectrum_db(sound: &[f32]) -> Vec<f64> {
    let count = sound.len();
    let fft = RealFftPlanner::new().plan_fft_forward(count);
    let mut spectrum = fft.make_output_vec();
    fft.process(&mut sound.to_vec(), &mut spectrum).unwrap();
    let scale = 4.0 / (count as f64).powi(2);
    let power = |bin: f64| 10.0 * (bin * scale + 1e-30).log10();
    spectrum
        .iter()
        .map(|bin| power(bin.norm_sqr().into()))
        .collect()
}

/// Plays sound through a new effect with these values, at 120 quarter notes a minute.
pub fn play(kind: &EffectKind, values: &[f32], sound: [&[f32]; 2]) -> [Vec<f32>; 2] {
    play_at(kind, values, 120.0, sound)
}

/// Plays sound through a new effect at a tempo.
pub fn play_at(kind: &EffectKind, values: &[f32], tempo: f32, sound: [&[f32]; 2]) -> [Vec<f32>; 2] {
    let mut effect = (kind.new)(RATE);
    effect.set(values, tempo);
    effect.reset();
    through(&mut *effect, sound, 480)
}

fn through(effect: &mut dyn Effect, sound: [&[f32]; 2], block: usize) -> [Vec<f32>; 2] {
    let [mut left, mut right] = sound.map(<[f32]>::to_vec);
    for (left, right) in left.chunks_mut(block).zip(right.chunks_mut(block)) {
        effect.process(left, right);
    }
    [left, right]
}

/// A plucked chord, a different one on each side.
fn music(seconds: f64) -> [Vec<f32>; 2] {
    [[110.0, 277.2, 659.3], [164.8, 220.0, 554.4]].map(|pitches| {
        let mut sum = vec![0.0; (seconds * f64::from(RATE)) as usize];
        for hz in pitches {
            for (n, (sum, tone)) in sum.iter_mut().zip(sine(hz, -14.0, seconds)).enumerate() {
                *sum += tone * (-((n % 20_000) as f32) / 9_000.0).exp();
            }
        }
        sum
    })
}

/// Values at either end of all ranges, and between.
fn positions(kind: &EffectKind) -> [Vec<f32>; 4] {
    let at = |share: f32| {
        let value = |parameter: &super::EffectParameter| {
            let [least, largest] = parameter.range;
            parameter.nearest(least + share * (largest - least))
        };
        kind.parameters.iter().map(value).collect()
    };
    [kind.defaults(), at(0.0), at(1.0), at(0.4)]
}

#[test]
fn ids_are_unique_and_defaults_in_range() {
    for (place, kind) in EFFECTS.into_iter().enumerate() {
        let first = EFFECTS.iter().position(|other| other.id == kind.id);
        assert_eq!(first, Some(place), "{}", kind.id);
        assert!(std::ptr::eq(effect(kind.id).unwrap(), kind));
        assert!((0.0..=1.0).contains(&kind.mix));
        for (place, parameter) in kind.parameters.iter().enumerate() {
            let first = kind
                .parameters
                .iter()
                .position(|other| other.id == parameter.id);
            assert_eq!(first, Some(place), "{} {}", kind.id, parameter.id);
            let [least, largest] = parameter.range;
            assert!(
                least < largest && (least..=largest).contains(&parameter.default),
                "{} {}",
                kind.id,
                parameter.id
            );
            assert!(
                !parameter.is_logarithmic || least > 0.0,
                "{} {}",
                kind.id,
                parameter.id
            );
            assert_eq!(parameter.nearest(f32::NAN), parameter.default);
        }
    }
    assert!(effect("none").is_none());
}

#[test]
fn output_does_not_depend_on_block_length() {
    let [left, right] = music(0.5);
    for kind in EFFECTS {
        let heard = |block: usize| {
            let mut effect = (kind.new)(RATE);
            effect.set(&kind.defaults(), 120.0);
            effect.reset();
            let mut first = through(&mut *effect, [&left, &right], block);
            effect.set(&positions(kind)[3], 90.0);
            let second = through(&mut *effect, [&left, &right], block);
            first
                .iter_mut()
                .zip(second)
                .for_each(|(first, second)| first.extend(second));
            first
        };
        let expected = heard(480);
        for block in [1, 7, 1_000] {
            assert!(heard(block) == expected, "{}: blocks of {block}", kind.id);
        }
    }
}

#[test]
fn any_input_gives_finite_output_and_is_forgotten() {
    let [left, right] = music(0.5);
    for kind in EFFECTS {
        for values in positions(kind) {
            let mut effect = (kind.new)(RATE);
            effect.set(&values, 120.0);
            effect.reset();
            let mut hostile = [left.clone(), right.clone()];
            for (n, sample) in [
                (1_000, f32::NAN),
                (1_001, f32::INFINITY),
                (1_003, f32::NEG_INFINITY),
                (5_000, 1e6),
            ] {
                hostile[n % 2][n] = sample;
            }
            let [hostile_left, hostile_right] = &hostile;
            through(&mut *effect, [hostile_left, hostile_right], 100);
            let after = through(&mut *effect, [&left, &right], 100);
            assert!(after.iter().flatten().all(|x| x.is_finite()), "{}", kind.id);
            effect.reset();
            let [again, _] = through(&mut *effect, [&left, &right], 100);
            let mut new = (kind.new)(RATE);
            new.set(&values, 120.0);
            new.reset();
            let [fresh, _] = through(&mut *new, [&left, &right], 100);
            assert!(again == fresh, "{}: a reset leaves something", kind.id);
        }
    }
}

#[test]
fn tails_end_where_they_say() {
    let [left, right] = music(0.3);
    for kind in EFFECTS {
        for values in positions(kind) {
            let mut effect = (kind.new)(RATE);
            effect.set(&values, 120.0);
            effect.reset();
            let tail = effect.tail_samples() + effect.latency_samples();
            if tail > 20 * RATE as usize {
                continue;
            }
            let silence = vec![0.0; tail + 4_800];
            through(&mut *effect, [&left, &right], 480);
            let [heard, _] = through(&mut *effect, [&silence, &silence], 480);
            let rest = peak(&heard[tail..]);
            assert!(
                rest < 2e-4,
                "{} {values:?}: {rest} after {tail} samples",
                kind.id
            );
        }
    }
}

#[test]
fn changes_do_not_click() {
    let sound = sine(60.0, -14.0, 1.0);
    for kind in EFFECTS {
        let [defaults, .., middle] = positions(kind);
        let mut effect = (kind.new)(RATE);
        effect.set(&defaults, 120.0);
        effect.reset();
        let mut steady = 0.0_f32;
        for values in [&defaults, &middle] {
            let mut effect = (kind.new)(RATE);
            effect.set(values, 120.0);
            effect.reset();
            let [heard, _] = through(&mut *effect, [&sound, &sound], 480);
            steady = steady.max(max_step(&heard[9_600..]));
        }
        for (turn, values) in [middle.clone(), defaults.clone(), middle, defaults]
            .iter()
            .enumerate()
        {
            effect.set(values, 120.0);
            let part = &sound[turn * 9_600..(turn + 1) * 9_600];
            let [heard, _] = through(&mut *effect, [part, part], 480);
            let step = max_step(&heard);
            assert!(
                step < 2.0 * steady + 0.004,
                "{} {turn}: a step of {step}, steady {steady}",
                kind.id
            );
        }
    }
}
