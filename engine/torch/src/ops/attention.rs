//! Attention over a limited window.

use tch::{Kind, Tensor};

/// Least frames of a block.
const MIN_BLOCK: i64 = 32;

/// Computes [`Op::Attention`](ondes_engine::model::Op::Attention) of `query [B, C, F]`; `keys` and
/// `values [B, C, window − 1 + F]` begin with the frames before. Scores take `F · (window − 1 + F)`
/// values per head.
pub(crate) fn attention(
    query: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    position: &Tensor,
) -> Tensor {
    let (batch, channels, frames) = query.size3().expect("[batch, channels, frames]");
    let ((heads, window), all) = (position.size2().expect("[heads, window]"), keys.size()[2]);
    let apart = |x: &Tensor| x.reshape([batch, heads, channels / heads, x.size()[2]]);
    let options = (Kind::Int64, query.device());
    // Of each frame, from each of the frames that are there.
    let distance =
        Tensor::arange(frames, options).view([-1, 1]) - Tensor::arange(all, options) + (window - 1);
    let outside = distance.lt(0).logical_or(&distance.ge(window));
    let bias = position
        .index_select(1, &distance.clamp(0, window - 1).view(-1))
        .view([heads, frames, all]);
    let scale = 1.0 / ((channels / heads) as f64).sqrt();
    let scores = apart(query).transpose(2, 3).matmul(&apart(keys)) * scale + bias;
    let shares = scores
        .masked_fill(&outside, f64::NEG_INFINITY)
        .softmax(-1, Kind::Float)
        .to_kind(query.kind());
    apart(values)
        .matmul(&shares.transpose(2, 3))
        .reshape([batch, channels, frames])
}

/// Computes as [`attention`] does, but sequences that are long beside the window in blocks, as rows
/// of a batch: each needs the keys of its own frames and of the window before. Scores then take
/// `F · 2 · window` values per head.
pub(crate) fn attention_in_blocks(
    query: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    position: &Tensor,
) -> Tensor {
    let (batch, channels, frames) = query.size3().expect("[batch, channels, frames]");
    let window = position.size()[1];
    let block = window.max(MIN_BLOCK);
    if frames <= 2 * block {
        return attention(query, keys, values, position);
    }
    let count = (frames + block - 1) / block;
    // `[B, C, …]` to `[B · count, C, length]`; the last block has frames of silence after the end.
    let blocks = |x: &Tensor, length: i64| {
        let padded = x.constant_pad_nd([0, count * block - frames]);
        padded
            .unfold(2, length, block)
            .transpose(1, 2)
            .flatten(0, 1)
    };
    let reach = window - 1 + block;
    let attended = attention(
        &blocks(query, block),
        &blocks(keys, reach),
        &blocks(values, reach),
        position,
    );
    attended
        .view([batch, count, channels, block])
        .transpose(1, 2)
        .flatten(2, 3)
        .narrow(2, 0, frames)
}

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;

    /// Returns the output and the gradients of query, keys, values and position.
    fn with_gradients(
        attention: fn(&Tensor, &Tensor, &Tensor, &Tensor) -> Tensor,
        inputs: &[Tensor; 4],
    ) -> Vec<Tensor> {
        let inputs = inputs
            .each_ref()
            .map(|input| input.detach().copy().set_requires_grad(true));
        let [query, keys, values, position] = &inputs;
        let output = attention(query, keys, values, position);
        // Each output counts differently.
        let weights = Tensor::arange(output.numel() as i64, (Kind::Float, Device::Cpu))
            .sin()
            .view_as(&output);
        (&output * weights).sum(Kind::Float).backward();
        std::iter::once(output.detach())
            .chain(inputs.iter().map(Tensor::grad))
            .collect()
    }

    #[test]
    fn blocks_equal_the_whole() {
        tch::manual_seed(1);
        let options = (Kind::Float, Device::Cpu);
        let blockwise = [
            (1, 9, 100),
            (4, 16, 65),
            (2, 40, 81),
            (4, 40, 400),
            (2, 128, 300),
            (4, 1, 97),
        ];
        for (heads, window, frames) in blockwise {
            let channels = 3 * heads;
            let inputs = [
                Tensor::randn([2, channels, frames], options),
                Tensor::randn([2, channels, window - 1 + frames], options),
                Tensor::randn([2, channels, window - 1 + frames], options),
                Tensor::randn([heads, window], options),
            ];
            let (whole, blocks) = (
                with_gradients(attention, &inputs),
                with_gradients(attention_in_blocks, &inputs),
            );
            for (part, (whole, blocks)) in ["output", "query", "keys", "values", "position"]
                .iter()
                .zip(whole.iter().zip(&blocks))
            {
                let scale = whole.abs().max().double_value(&[]).max(1.0);
                let error = (whole - blocks).abs().max().double_value(&[]) / scale;
                assert!(
                    error < 1e-5,
                    "{part} of {heads} heads, window {window}, {frames} frames: {error}"
                );
            }
        }
    }
}
