//! The layers of the native executor, one file per family of ops; [`product`] and [`history`] have
//! the matrix products and frame histories that several families share.

mod attention;
mod cells;
mod codes;
mod conv;
mod draw;
mod elementwise;
mod history;
mod join;
mod matrix;
mod noise;
mod product;
mod recurrent;
mod synthesis;
mod time;

use ondes_kernels::CellKind;

use super::layer::{Layer, LayerContext};
use crate::model::Op;

/// Builds the layer of an op.
pub(super) fn build(op: &Op, context: &LayerContext<'_>) -> Box<dyn Layer> {
    match *op {
        Op::Linear { .. } => Box::new(matrix::Linear::new(context)),
        Op::Conv1d {
            outputs,
            kernel,
            stride,
            dilation,
            groups,
        } => Box::new(conv::Conv1d::new(
            context,
            &conv::ConvShape {
                outputs,
                kernel,
                stride,
                dilation,
                groups,
            },
        )),
        Op::ConvTranspose1d {
            outputs,
            kernel,
            stride,
        } => Box::new(conv::ConvTranspose1d::new(context, outputs, kernel, stride)),
        // At audio rate a step has many frames and few streams, at control rate the reverse.
        Op::Gru {
            hidden,
            initial_state,
        } if context.inputs[0].ratio == 1 => Box::new(cells::Cells::new(
            context,
            CellKind::Gru,
            hidden,
            initial_state,
        )),
        Op::Lstm {
            hidden,
            initial_state,
        } if context.inputs[0].ratio == 1 => Box::new(cells::Cells::new(
            context,
            CellKind::Lstm,
            hidden,
            initial_state,
        )),
        Op::Gru {
            hidden,
            initial_state,
        } => Box::new(recurrent::Gru::new(context, hidden, initial_state)),
        Op::Lstm {
            hidden,
            initial_state,
        } => Box::new(recurrent::Lstm::new(context, hidden, initial_state)),
        Op::Attention { heads, window } => {
            Box::new(attention::Attention::new(context, heads, window))
        }
        Op::LayerNorm => Box::new(elementwise::LayerNorm::new(context)),
        Op::Softmax => Box::new(elementwise::Softmax::new(context)),
        Op::Activation(activation) => Box::new(elementwise::Pointwise(activation)),
        Op::Affine { scale, offset } => Box::new(elementwise::Affine { scale, offset }),
        Op::Prelu { .. } => Box::new(elementwise::Prelu::new(context)),
        Op::Snake => Box::new(elementwise::Snake::new(context)),
        Op::Gate => Box::new(elementwise::Gate),
        Op::Film => Box::new(elementwise::Film),
        Op::Add => Box::new(join::Add),
        Op::Multiply => Box::new(join::Multiply),
        Op::Concat => Box::new(join::Concat),
        Op::Split { start, channels } => Box::new(join::Split { start, channels }),
        Op::Delay { frames } => Box::new(time::Delay::new(context, frames)),
        // Frames are contiguous, and so are the frames that an interleaved one consists of.
        Op::Latency { .. } | Op::Interleave { .. } => Box::new(time::Identity),
        Op::FlipOddBands => Box::new(time::FlipOddBands),
        Op::Noise {
            channels,
            distribution,
            number,
        } => Box::new(noise::Noise::new(context, channels, distribution, number)),
        Op::DrawMixture {
            components,
            least,
            number,
        } => Box::new(draw::DrawMixture::new(context, components, least, number)),
        Op::DrawCategories {
            categories,
            top,
            number,
        } => Box::new(draw::DrawCategories::new(context, categories, top, number)),
        Op::ShapedNoise { bands, hop } => Box::new(noise::ShapedNoise::new(bands, hop)),
        Op::NearestCodes { codes, .. } => Box::new(codes::NearestCodes::new(context, codes)),
        Op::CodeSum { codes, .. } => Box::new(codes::CodeSum::new(context, codes)),
        Op::Harmonic => Box::new(synthesis::Harmonic::new(context)),
        Op::FilteredNoise => Box::new(synthesis::FilteredNoise::new(context)),
        Op::Convolve { .. } => Box::new(synthesis::Convolve::new(context)),
    }
}
