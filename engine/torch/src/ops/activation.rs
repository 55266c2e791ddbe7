//! Activations without weights.

use ondes_engine::model::Activation;
use tch::Tensor;

use crate::precision::in_f32;

/// Applies an activation to each value.
pub(super) fn activate(activation: Activation, x: &Tensor) -> Tensor {
    match activation {
        Activation::Tanh => x.tanh(),
        Activation::Sigmoid => x.sigmoid(),
        Activation::Relu => x.relu(),
        // One operation, and one in the backward pass.
        Activation::LeakyRelu { slope } => {
            x.prelu(&Tensor::from(slope).to_kind(x.kind()).to_device(x.device()))
        }
        Activation::HardTanh => x.hardtanh(),
        Activation::LeakyHardTanh {
            min,
            max,
            min_slope,
            max_slope,
        } => {
            let [min, max, min_slope, max_slope] = [min, max, min_slope, max_slope].map(f64::from);
            x.clamp(min, max)
                + min_slope * (x - min).clamp_max(0.0)
                + max_slope * (x - max).clamp_min(0.0)
        }
        Activation::HardSwish => x.hardswish(),
        Activation::Softsign => x / (x.abs() + 1.0),
        Activation::Silu => x.silu(),
        // In f32: polynomials of large values, and a divisor that may be small.
        Activation::FastTanh => in_f32([x], |[x]| fast_tanh(&x)),
        Activation::Softplus => x.softplus(),
        Activation::Exp => x.exp(),
        Activation::ExpSigmoid => 2.0 * (std::f64::consts::LN_10 * x.log_sigmoid()).exp() + 1e-7,
    }
}

/// Computes [`Activation::FastTanh`].
fn fast_tanh(x: &Tensor) -> Tensor {
    let a = x.abs();
    let square = &a * &a;
    let numerator = x
        * (2.455_507_507_029_56 * (&a + 1.0)
            + (0.821_226_666_969_744 * &a + 0.893_229_853_513_558) * &square);
    let stretched = &a + 0.814_642_734_961_073 * &square;
    numerator / ((square + 2.445_066_346_522_99) * stretched + 2.445_066_346_522_99)
}
