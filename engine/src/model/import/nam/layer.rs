//! WaveNet layer: the sum of a dilated convolution and the mixed-in condition passes an activation,
//! whose output feeds the head and, mixed, the next layer.

use super::activation::NamActivation;
use super::film::{FILM_POSITIONS, FilmConfig, FilmWeights};
use crate::model::import::field::Field;
use crate::model::import::graph_builder::{Conv, ConvWeights, GraphBuilder};
use crate::model::import::weight_reader::WeightReader;
use crate::model::{Activation, ModelError, Op};
use crate::ops::{Affine, Split};

/// Sizes common to the layers of an array.
pub(super) struct LayerSizes {
    pub condition: usize,
    pub channels: usize,
    /// Channels of the activation's output.
    pub bottleneck: usize,
    pub groups_input: usize,
    pub groups_mixin: usize,
    /// Groups of the 1×1 convolution before the next layer, if there is one.
    pub layer1x1: Option<usize>,
    /// Channels and groups of the 1×1 convolution before the head, if there is one.
    pub head1x1: Option<(usize, usize)>,
    /// Modulations, in the order of [`FILM_POSITIONS`].
    pub films: [Option<FilmConfig>; FILM_POSITIONS.len()],
    /// Number of leading channels to use, if not all.
    pub slice: Option<usize>,
}

impl LayerSizes {
    /// Returns the number of channels that a layer passes to the head.
    pub fn to_head(&self) -> usize {
        self.head1x1
            .map_or(self.bottleneck, |(channels, _)| channels)
    }
}

/// Combination of the two halves of a layer's channels.
pub(super) enum Gating {
    /// The channels are not divided.
    None,
    /// Activation of the first half times this activation of the second.
    Gated(NamActivation),
    /// Blend from the first half to its activation, by this activation of the second.
    Blended(NamActivation),
}

impl Gating {
    /// Reads the gating mode; `secondary` is the activation of the second half.
    pub fn read(
        mode: Option<&Field<'_>>,
        gated: bool,
        secondary: Option<&Field<'_>>,
    ) -> Result<Self, ModelError> {
        let name = mode.map_or(Ok(if gated { "gated" } else { "none" }), Field::text)?;
        let secondary = || {
            secondary.map_or(
                Ok(NamActivation::Plain(Op::Activation(Activation::Sigmoid))),
                NamActivation::read,
            )
        };
        match (name, mode) {
            ("none", _) => Ok(Self::None),
            ("gated", _) => Ok(Self::Gated(secondary()?)),
            ("blended", _) => Ok(Self::Blended(secondary()?)),
            (other, Some(mode)) => Err(mode.error(&format!("unknown mode {other:?}"))),
            (_, None) => Ok(Self::None),
        }
    }
}

/// Configuration of one layer.
pub(super) struct LayerConfig {
    pub kernel: usize,
    pub dilation: usize,
    pub activation: NamActivation,
    pub gating: Gating,
}

/// Nodes that a layer reads.
pub(super) struct LayerInputs<'a> {
    pub value: &'a str,
    pub condition: &'a str,
    /// Sum of the head outputs of earlier layers.
    pub head: Option<&'a str>,
}

/// Output nodes of a layer.
pub(super) struct LayerOutputs {
    pub value: String,
    pub head: String,
}

/// Adds a layer.
pub(super) fn add(
    builder: &mut GraphBuilder,
    weights: &mut WeightReader<'_>,
    sizes: &LayerSizes,
    config: &LayerConfig,
    reads: &LayerInputs<'_>,
) -> Result<LayerOutputs, ModelError> {
    let paired = !matches!(config.gating, Gating::None);
    let double = |channels: usize| {
        if paired {
            channels.saturating_mul(2)
        } else {
            channels
        }
    };
    let (channels, bottleneck) = (sizes.channels, sizes.bottleneck);
    let middle = double(bottleneck);
    let slice = |inputs: usize, outputs: usize| sizes.slice.map(|_| (inputs, outputs));
    let slice_channels = sizes.slice.unwrap_or(0);
    // In the order of the flat list.
    let conv = Conv {
        inputs: channels,
        outputs: middle,
        kernel: config.kernel,
        dilation: config.dilation,
        groups: sizes.groups_input,
        bias: true,
        slice: slice(slice_channels, double(slice_channels)),
    };
    let conv = weights.conv("a convolution", conv)?;
    let mixin = Conv {
        groups: sizes.groups_mixin,
        bias: false,
        slice: slice(sizes.condition, double(slice_channels)),
        ..Conv::pointwise(sizes.condition, middle)
    };
    let mixin = weights.conv("a mix-in", mixin)?;
    let pointwise = |weights: &mut WeightReader<'_>, outputs: usize, groups: usize| {
        let conv = Conv {
            groups,
            slice: slice(slice_channels, slice_channels),
            ..Conv::pointwise(bottleneck, outputs)
        };
        weights.conv("a 1x1", conv)
    };
    let out = sizes
        .layer1x1
        .map(|groups| pointwise(weights, channels, groups))
        .transpose()?;
    let to_head = sizes
        .head1x1
        .map(|(outputs, groups)| pointwise(weights, outputs, groups))
        .transpose()?;
    let modulated = [
        channels,
        middle,
        sizes.condition,
        middle,
        middle,
        bottleneck,
        channels,
        sizes.to_head(),
    ];
    let mut films: [Option<FilmWeights>; FILM_POSITIONS.len()] = Default::default();
    for (place, film) in films.iter_mut().enumerate() {
        if let Some(config) = sizes.films[place] {
            *film = Some(config.take(
                weights,
                FILM_POSITIONS[place],
                sizes.condition,
                modulated[place],
            )?);
        }
    }
    let [
        conv_pre,
        conv_post,
        mixin_pre,
        mixin_post,
        act_pre,
        act_post,
        out_post,
        head_post,
    ] = films;

    let modulate = |builder: &mut GraphBuilder,
                    film: Option<FilmWeights>,
                    name: &str,
                    value: String| match film {
        Some(film) => film.add(builder, name, &value, reads.condition),
        None => Ok(value),
    };
    let input = modulate(builder, conv_pre, "conv_pre_film", reads.value.to_owned())?;
    let value = builder.conv("conv", &input, conv)?;
    let value = modulate(builder, conv_post, "conv_post_film", value)?;
    let condition = modulate(
        builder,
        mixin_pre,
        "mixin_pre_film",
        reads.condition.to_owned(),
    )?;
    let mixed = builder.conv("mixin", &condition, mixin)?;
    let mixed = modulate(builder, mixin_post, "mixin_post_film", mixed)?;
    let value = builder.node("sum", &[&value, &mixed], Op::Add)?;
    let value = modulate(builder, act_pre, "act_pre_film", value)?;
    let value = activate(builder, config, &value, sizes.slice.unwrap_or(bottleneck))?;
    let act = modulate(builder, act_post, "act_post_film", value)?;
    let onward = |builder: &mut GraphBuilder, name: &str, conv: Option<ConvWeights>| match conv {
        Some(conv) => builder.conv(name, &act, conv),
        None => Ok(act.clone()),
    };
    let to_head = onward(builder, "head1x1", to_head)?;
    let to_head = modulate(builder, head_post, "head1x1_post_film", to_head)?;
    let out = onward(builder, "out", out)?;
    let out = modulate(builder, out_post, "out_post_film", out)?;
    let head = match reads.head {
        Some(head) => builder.node("head", &[head, &to_head], Op::Add)?,
        None => to_head,
    };
    Ok(LayerOutputs {
        value: builder.node("residual", &[reads.value, &out], Op::Add)?,
        head,
    })
}

/// Adds the activation with `channels` output channels.
fn activate(
    builder: &mut GraphBuilder,
    config: &LayerConfig,
    value: &str,
    channels: usize,
) -> Result<String, ModelError> {
    let sliced = |activation: &NamActivation| activation.sliced(channels);
    let activation = sliced(&config.activation);
    let (secondary, blended) = match &config.gating {
        Gating::None => return activation.add(builder, "act", value),
        Gating::Gated(secondary) => (sliced(secondary), false),
        Gating::Blended(secondary) => (sliced(secondary), true),
    };
    let usual = [&activation, &secondary]
        == [
            &NamActivation::Plain(Op::Activation(Activation::Tanh)),
            &NamActivation::Plain(Op::Activation(Activation::Sigmoid)),
        ];
    if usual && !blended {
        return builder.node("act", &[value], Op::Gate);
    }
    let first = builder.node("first", &[value], Op::Split(Split { start: 0, channels }))?;
    let second = builder.node(
        "second",
        &[value],
        Op::Split(Split {
            start: channels,
            channels,
        }),
    )?;
    let active = activation.add(builder, "active", &first)?;
    let gate = secondary.add(builder, "gate", &second)?;
    if !blended {
        return builder.node("act", &[&active, &gate], Op::Multiply);
    }
    // g·a + (1 − g)·x = x + g·(a − x)
    let away = builder.node(
        "away",
        &[&first],
        Op::Affine(Affine {
            scale: -1.0,
            offset: 0.0,
        }),
    )?;
    let distance = builder.node("distance", &[&active, &away], Op::Add)?;
    let step = builder.node("step", &[&distance, &gate], Op::Multiply)?;
    builder.node("act", &[&first, &step], Op::Add)
}
