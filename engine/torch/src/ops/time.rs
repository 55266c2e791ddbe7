//! Ops that move frames in time.

use tch::{Kind, Tensor};

/// Computes [`Op::Delay`](ondes_engine::model::Op::Delay).
pub(super) fn delay(x: &Tensor, frames: usize) -> Tensor {
    let kept = (x.size()[2] - frames as i64).max(0);
    x.narrow(2, 0, kept)
        .constant_pad_nd([x.size()[2] - kept, 0])
}

/// Computes [`Op::Interleave`](ondes_engine::model::Op::Interleave).
pub(super) fn interleave(x: &Tensor, factor: usize) -> Tensor {
    let (batch, channels, frames) = x.size3().expect("[batch, channels, frames]");
    let (factor, left) = (factor as i64, channels / factor as i64);
    let parts = x.view([batch, factor, left, frames]).permute([0, 2, 3, 1]);
    parts.reshape([batch, left, frames * factor])
}

/// Computes [`Op::FlipOddBands`].
pub(super) fn flip_odd_bands(x: &Tensor) -> Tensor {
    let (_, channels, frames) = x.size3().expect("[batch, channels, frames]");
    // In f32: f16 and bf16 cannot represent such large integers.
    let parity = |length: i64| {
        Tensor::arange(length, (Kind::Float, x.device()))
            .remainder(2.0)
            .to_kind(x.kind())
    };
    let (odd, second) = (parity(channels).view([1, -1, 1]), parity(frames));
    x * (1.0 - 2.0 * odd * (1.0 - second))
}
