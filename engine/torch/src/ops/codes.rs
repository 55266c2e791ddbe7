//! Residual vector quantization.

use tch::{Kind, Tensor};

/// Computes [`ondes_engine::model::Op::NearestCodes`] of `x [B, C, F]` with `codebook [Q, K, C]`;
/// returns `[B, Q, F]`.
pub(crate) fn nearest_codes(x: &Tensor, codebook: &Tensor) -> Tensor {
    let mut rest = x.transpose(1, 2);
    let mut codes = Vec::new();
    for entries in codebook.unbind(0) {
        let scores = rest.matmul(&entries.transpose(0, 1)) - sum_of_squares(&entries) * 0.5;
        let nearest = scores.argmax(-1, false);
        rest = &rest - entry(&entries, &nearest);
        codes.push(nearest);
    }
    Tensor::stack(&codes, 1).to_kind(Kind::Float)
}

/// Computes [`ondes_engine::model::Op::CodeSum`] of `x [B, Q, F]` with `codebook [Q, K, C]`;
/// returns `[B, C, F]`.
pub(crate) fn code_sum(x: &Tensor, codebook: &Tensor) -> Tensor {
    let codes = x
        .nan_to_num(0.0, None, None)
        .clamp(0.0, (codebook.size()[1] - 1) as f64)
        .to_kind(Kind::Int64);
    let entries = codebook
        .unbind(0)
        .into_iter()
        .zip(codes.unbind(1))
        .map(|(entries, codes)| entry(&entries, &codes));
    entries
        .reduce(|sum, entry| sum + entry)
        .expect("there is a codebook")
        .transpose(1, 2)
}

fn sum_of_squares(entries: &Tensor) -> Tensor {
    entries
        .square()
        .sum_dim_intlist([-1_i64].as_slice(), false, Kind::Float)
}

/// Returns the entries `[K, C]` of indices `[B, F]` as `[B, F, C]`.
fn entry(entries: &Tensor, indices: &Tensor) -> Tensor {
    Tensor::embedding(entries, indices, -1, false, false)
}
