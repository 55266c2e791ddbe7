//! Ops that measure a sound, without gradients.

use ondes_engine::dsp::pitch::PitchTracker;
use tch::{Kind, Tensor};

/// Computes [`Op::Pitch`](ondes_engine::model::Op::Pitch) on the CPU, `[B, 1, T / hop]` for
/// `x [B, 1, T]`.
pub(super) fn pitch(x: &Tensor, hop: usize, sample_rate: f64) -> Tensor {
    let (batch, _, samples) = x.size3().expect("[batch, channels, samples]");
    let sounds = x.detach().to_kind(Kind::Float).contiguous().view(-1);
    let sounds = Vec::<f32>::try_from(sounds).expect("a flat tensor");
    let mut pitches = Vec::with_capacity(sounds.len() / hop);
    for sound in sounds.chunks_exact(samples.max(1) as usize) {
        let mut tracker = PitchTracker::in_step(sample_rate, hop);
        tracker.push(sound, |frame| pitches.push(frame.semitones));
    }
    Tensor::from_slice(&pitches)
        .view([batch, 1, samples / hop as i64])
        .to_kind(x.kind())
        .to_device(x.device())
}
