//! Convolutions.

use ondes_engine::ops::Conv1d;
use tch::Tensor;

/// Computes [`Op::Conv1d`] from silence; `frames` at its end, `None` for all.
pub(crate) fn convolution(
    op: &Conv1d,
    x: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    frames: Option<i64>,
) -> Tensor {
    let Conv1d {
        kernel,
        stride,
        dilation,
        groups,
        ..
    } = *op;
    let earlier = ((kernel - 1) * dilation + 1 - stride) as i64;
    let length = x.size()[2];
    let read = end(x, frames.map_or(length, |frames| frames + earlier));
    let missing = earlier - frames.map_or(0, |frames| (length - frames).clamp(0, earlier));
    let padded = if missing > 0 {
        read.constant_pad_nd([missing, 0])
    } else {
        read
    };
    padded.conv1d(
        weight,
        Some(bias),
        [stride as i64],
        [0],
        [dilation as i64],
        groups as i64,
    )
}

/// Returns the last frames of a value, or all if there are no more.
pub(crate) fn end(value: &Tensor, frames: i64) -> Tensor {
    let length = value.size()[2];
    if length <= frames {
        value.shallow_clone()
    } else {
        value.narrow(2, length - frames, frames)
    }
}

/// Computes [`Op::ConvTranspose1d`](ondes_engine::model::Op::ConvTranspose1d).
pub(super) fn conv_transpose(x: &Tensor, weight: &Tensor, bias: &Tensor, stride: usize) -> Tensor {
    let stride = stride as i64;
    x.conv_transpose1d(weight, Some(bias), [stride], [0], [0], 1, [1])
        .narrow(2, 0, x.size()[2] * stride)
}
