//! Knowledge distillation: a small student learns from a large teacher (Hinton, Vinyals & Dean,
//! "Distilling the knowledge in a neural network", 2015).
//!
//! [`student`](student()) makes the student. A capture learns from the pair that
//! [`distillation_pair`] makes of its teacher's output; an instrument from
//! [`crate::tasks::instrument::teacher`]. Both can match hidden features
//! ([`crate::loss::feature_matching`]).

mod student;
#[cfg(test)]
mod tests;

pub use student::{inherit, student};

use ondes_engine::dsp::resample::resample;
use ondes_engine::model::Model;

use crate::tasks::capture::align::Alignment;
use crate::tasks::capture::measure::play;
use crate::tasks::capture::pair::Pair;
use crate::tasks::capture::signal::{RATE, signal};
use crate::tasks::capture::windows::Split;

/// Makes the training pair of a capture's student: a generated signal of `seconds` and the
/// teacher's output, followed by the input of `pair`, if any, and a mix of teacher and device.
///
/// The weighted sum of the squared errors against device and teacher equals the squared error
/// against their weighted mean, up to a constant. `share` is the weight of the teacher, 0 to 1. The
/// validation and held-out parts at the end of the pair are the device alone.
///
/// # Errors
/// Returns an error if the teacher is no single-channel capture or its sample rate cannot be
/// reached.
pub fn distillation_pair(
    teacher: &Model,
    pair: Option<&Pair>,
    seconds: f64,
    share: f64,
) -> anyhow::Result<Pair> {
    let rate = teacher.header().sample_rate;
    let mut dry = if seconds > 0.0 {
        resample(&signal(seconds), RATE, rate)?
    } else {
        Vec::new()
    };
    let mut wet = play(teacher, &dry)?;
    if let Some(pair) = pair {
        let rendered = play(teacher, &pair.dry)?;
        let Split { validation, .. } = Split::new(dry.len() + pair.dry.len(), f64::from(rate));
        // Validation and measurement use the device alone.
        let trained = validation.saturating_sub(dry.len());
        let blended = pair
            .wet
            .iter()
            .zip(&rendered)
            .enumerate()
            .map(|(at, (device, teacher))| {
                let share = if at < trained { share as f32 } else { 0.0 };
                device + share * (teacher - device)
            });
        wet.extend(blended);
        dry.extend_from_slice(&pair.dry);
    }
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(bytemuck::cast_slice(&dry))
        .update(bytemuck::cast_slice(&wet));
    Ok(Pair {
        dry,
        wet,
        rate,
        name: pair.map_or_else(
            || teacher.header().card.name.clone(),
            |pair| pair.name.clone(),
        ),
        settings: Vec::new(),
        hash: hasher.finalize().to_hex().to_string(),
        // The teacher has the device's delay after alignment.
        alignment: pair.map_or_else(Alignment::default, |pair| pair.alignment),
        findings: Vec::new(),
    })
}
