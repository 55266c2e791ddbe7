//! Number formats of libtorch.

use ondes_engine::executor::Precision;
use tch::{Kind, Tensor};

/// Returns libtorch's tensor kind for a precision.
#[must_use]
pub fn kind(precision: Precision) -> Kind {
    match precision {
        Precision::F32 => Kind::Float,
        Precision::F16 => Kind::Half,
        Precision::Bf16 => Kind::BFloat16,
    }
}

/// Applies an op in f32 and converts the result to the kind of the first tensor: for intermediate
/// values that f16 or bf16 cannot hold.
pub fn in_f32<const N: usize>(
    tensors: [&Tensor; N],
    op: impl FnOnce([Tensor; N]) -> Tensor,
) -> Tensor {
    let kind = tensors[0].kind();
    op(tensors.map(|tensor| tensor.to_kind(Kind::Float))).to_kind(kind)
}
