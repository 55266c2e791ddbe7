//! The latency as an impulse finds it.

use super::ensemble::Ensemble;
use super::options::{PipelineOptions, hears};
use super::playable::{Playable, Turn};
use super::{Action, Cue};
use crate::dsp::resample::resample;
use crate::instrument::EventKind;
use crate::model::Model;

/// When the impulse comes, and how long is listened, as parts of a second.
const IMPULSE_PER_S: u32 = 20;
const LISTEN_PER_S: u32 = 4;
/// Host samples by which the latency may differ from what is stated, either way, and still be found.
const REACH: usize = 64;
/// Less likeness than this is no answer.
const LIKENESS: f64 = 0.9;

/// The latency of a model at the rate of the options, in host samples, measured with a note as the impulse: the shift at which
/// its sound is most like that of the same model at its own rate, where nothing is converted and the latency is one hop. None
/// where nothing sounds, or nothing alike, and where a sound drives the model: it hears a little differently at each rate, so
/// that no shift is exact.
#[must_use]
pub fn measured_latency(model: &Model, options: &PipelineOptions) -> Option<usize> {
    if hears(model.header().kind, options) {
        return None;
    }
    let own = PipelineOptions { sample_rate: model.header().sample_rate, seats: 1, ..*options };
    let there = PipelineOptions { seats: 1, ..*options };
    let (reference, own_latency) = impulse(model, &own)?;
    let (sound, stated) = impulse(model, &there)?;
    let reference = resample(&reference[own_latency..], own.sample_rate, there.sample_rate).ok()?;
    let double = |sound: &[f32]| sound.iter().copied().map(f64::from).collect::<Vec<f64>>();
    let (reference, sound) = (double(&reference), double(&sound));
    let length = reference.len().min(sound.len().saturating_sub(stated + REACH));
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let reference = &reference[..length];
    let likeness = |shift: usize| {
        let sound = &sound[shift..shift + length];
        product(sound, reference) / (product(sound, sound) * product(reference, reference)).sqrt()
    };
    let shifts = stated.saturating_sub(REACH)..=stated + REACH;
    let best = shifts.map(|shift| (shift, likeness(shift))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (best.1 > LIKENESS).then_some(best.0)
}

/// The sound of one note, and the latency that is stated for it.
fn impulse(model: &Model, options: &PipelineOptions) -> Option<(Vec<f32>, usize)> {
    let mut ensemble = Ensemble::new(model, options).ok()?;
    let performance = model.header().performance.unwrap_or_default();
    let key = (0.5 * (performance.pitch_low + performance.pitch_high)) as u8;
    let note = Action::Play(EventKind::NoteOn { channel: 0, key, velocity: 0.8 });
    ensemble.handle(0, Cue { at: u64::from(options.sample_rate / IMPULSE_PER_S), action: note }).ok()?;
    let stated = ensemble.latency_samples();
    let mut sound = vec![0.0; (options.sample_rate / LISTEN_PER_S) as usize + stated + REACH];
    ensemble.process(&mut [Turn { seat: 0, input: &[], output: &mut sound, mute: false }]);
    Some((sound, stated))
}
