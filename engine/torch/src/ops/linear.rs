//! Linear layer.

use tch::Tensor;

/// Fewest contiguous frames that a linear layer computes as columns.
const MIN_COLUMNS: i64 = 16;

/// Computes [`Op::Linear`]. Frames that are contiguous are the columns of one product per row of
/// the batch, which needs no transposition: twice as fast for few channels at the sample rate. One
/// channel is an elementwise product, which autocast keeps in f32: positions and pitches become
/// angles of hundreds of radians there, too large for bf16.
pub(super) fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Tensor {
    let (batch, channels, frames) = x.size3().expect("[batch, channels, frames]");
    if channels == 1 {
        return bias.view([1, -1, 1]) + x * weight.view([1, -1, 1]);
    }
    if frames < MIN_COLUMNS || x.stride()[2] != 1 {
        return x.transpose(1, 2).linear(weight, Some(bias)).transpose(1, 2);
    }
    let weights = weight.unsqueeze(0).expand([batch, -1, -1], false);
    bias.view([1, -1, 1]).baddbmm(&weights, x, 1, 1)
}
