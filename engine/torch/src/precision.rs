//! In what libtorch computes.

use ondes_engine::executor::Precision;
use tch::{Kind, Tensor};

/// The kind of tensors of that precision.
#[must_use]
pub fn kind(precision: Precision) -> Kind {
    match precision {
        Precision::F32 => Kind::Float,
        Precision::F16 => Kind::Half,
        Precision::Bf16 => Kind::BFloat16,
    }
}

/// What an op makes of tensors, computed in f32 and brought to the kind of the first of them: for what f16 or bf16 do not hold
/// on the way.
pub fn in_f32<const N: usize>(tensors: [&Tensor; N], op: impl FnOnce([Tensor; N]) -> Tensor) -> Tensor {
    let kind = tensors[0].kind();
    op(tensors.map(|tensor| tensor.to_kind(Kind::Float))).to_kind(kind)
}
