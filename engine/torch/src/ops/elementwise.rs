//! Learnt activations, normalisation, gates and modulation.

use tch::Tensor;

use crate::precision::in_f32;

/// ε of [`Op::LayerNorm`].
const LAYER_NORM_EPSILON: f64 = 1e-5;

/// Computes [`Op::LayerNorm`](ondes_engine::model::Op::LayerNorm).
pub(super) fn layer_norm(x: &Tensor, gain: &Tensor, bias: &Tensor) -> Tensor {
    x.transpose(1, 2)
        .layer_norm(
            gain.size(),
            Some(gain),
            Some(bias),
            LAYER_NORM_EPSILON,
            false,
        )
        .transpose(1, 2)
}

/// Computes [`Op::Prelu`](ondes_engine::model::Op::Prelu).
pub(super) fn prelu(x: &Tensor, slopes: &Tensor) -> Tensor {
    x.maximum(&x.zeros_like()) + slopes.view([1, -1, 1]) * x.minimum(&x.zeros_like())
}

/// Computes [`Op::Snake`](ondes_engine::model::Op::Snake).
pub(super) fn snake(x: &Tensor, alpha: &Tensor) -> Tensor {
    in_f32([x, &alpha.view([1, -1, 1])], |[x, alpha]| {
        &x + (&alpha * &x).sin().square() / (alpha + 1e-9)
    })
}

/// Computes [`Op::Gate`](ondes_engine::model::Op::Gate).
pub(super) fn gate(x: &Tensor) -> Tensor {
    let halves = x.chunk(2, 1);
    halves[0].tanh() * halves[1].sigmoid()
}

/// Computes [`Op::Film`](ondes_engine::model::Op::Film).
pub(super) fn film(x: &Tensor, condition: &Tensor) -> Tensor {
    let halves = condition.chunk(2, 1);
    x * &halves[0] + &halves[1]
}
