//! A small student learns from a large teacher (Hinton, Vinyals & Dean, "Distilling the knowledge in a neural network", 2015).
//!
//! A [`Guide`] compares what goes on inside of the two, a [`Lesson`] is what a teacher of instruments has to say besides. What a
//! teacher of captures has to say is a recording: [`taught_pair`] has it play. [`student`] is who learns.

mod guide;
mod lesson;
mod student;
#[cfg(test)]
mod tests;

pub use guide::Guide;
pub use lesson::Lesson;
pub use student::{inherit, student};

use ondes_engine::dsp::resample::resample;
use ondes_engine::model::Model;

use crate::capture::align::Alignment;
use crate::capture::measure::play;
use crate::capture::pair::Pair;
use crate::capture::signal::{RATE, signal};
use crate::capture::windows::Split;

/// What a capture teaches: a signal of ours as it plays it, and, where there is a pair, what it and the device make of that.
///
/// The squared errors against the device and against the teacher, weighted, are the squared error against their weighted mean
/// and a constant; so that mean is the recording to be learnt. `share` is the teacher's, 0 to 1. What is held out of training
/// is the device's own, at the end.
///
/// # Errors
/// When the teacher is no capture of one channel, or its rate cannot be reached.
pub fn taught_pair(teacher: &Model, pair: Option<&Pair>, seconds: f64, share: f64) -> anyhow::Result<Pair> {
    let rate = teacher.header().sample_rate;
    let mut dry = if seconds > 0.0 { resample(&signal(seconds), RATE, rate)? } else { Vec::new() };
    let mut wet = play(teacher, &dry)?;
    if let Some(pair) = pair {
        let taught = play(teacher, &pair.dry)?;
        let Split { validation, .. } = Split::new(dry.len() + pair.dry.len(), f64::from(rate));
        // What decides and what measures is the device alone.
        let learnt = validation.saturating_sub(dry.len());
        let blended = pair.wet.iter().zip(&taught).enumerate().map(|(at, (device, teacher))| {
            let share = if at < learnt { share as f32 } else { 0.0 };
            device + share * (teacher - device)
        });
        wet.extend(blended);
        dry.extend_from_slice(&pair.dry);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(bytemuck::cast_slice(&dry)).update(bytemuck::cast_slice(&wet));
    Ok(Pair {
        dry,
        wet,
        rate,
        name: pair.map_or_else(|| teacher.header().card.name.clone(), |pair| pair.name.clone()),
        hash: hasher.finalize().to_hex().to_string(),
        // The teacher is exactly as late as the device was after it was brought together.
        alignment: pair.map_or_else(Alignment::default, |pair| pair.alignment),
        findings: Vec::new(),
    })
}
