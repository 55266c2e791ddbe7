//! One layer of a WaveNet: a dilated convolution and the condition meet in an activation, whose output goes to the head and,
//! mixed, on to the next layer.

use super::activation::Activation;
use super::film::{Film, FilmConfig, PLACES};
use crate::model::import::field::Field;
use crate::model::import::flat::Flat;
use crate::model::import::sketch::{Conv, ConvWeights, Sketch};
use crate::model::{Fault, Op};

/// What the layers of an array have in common.
pub(super) struct Width {
    pub condition: usize,
    pub channels: usize,
    /// Channels of the activation's output.
    pub bottleneck: usize,
    pub groups_input: usize,
    pub groups_mixin: usize,
    /// Groups of the mix of the activation's output on its way to the next layer, if there is one.
    pub layer1x1: Option<usize>,
    /// Channels and groups of the one on its way to the head.
    pub head1x1: Option<(usize, usize)>,
    /// By the order of [`PLACES`].
    pub films: [Option<FilmConfig>; PLACES.len()],
    /// The first so many channels are all that is used.
    pub kept: Option<usize>,
}

impl Width {
    /// Channels of what a layer gives the head.
    pub fn to_head(&self) -> usize {
        self.head1x1.map_or(self.bottleneck, |(channels, _)| channels)
    }
}

/// What a layer does with the two halves of its channels.
pub(super) enum Gating {
    /// There are no halves.
    None,
    /// The activation of the first times that of the second.
    Gated(Activation),
    /// From the first to its activation, as far as that of the second says.
    Blended(Activation),
}

impl Gating {
    /// `secondary` is the activation of the second half.
    pub fn read(mode: Option<&Field<'_>>, gated: bool, secondary: Option<&Field<'_>>) -> Result<Self, Fault> {
        let name = mode.map_or(Ok(if gated { "gated" } else { "none" }), Field::text)?;
        let secondary = || secondary.map_or(Ok(Activation::Plain(Op::Sigmoid)), Activation::read);
        match (name, mode) {
            ("none", _) => Ok(Self::None),
            ("gated", _) => Ok(Self::Gated(secondary()?)),
            ("blended", _) => Ok(Self::Blended(secondary()?)),
            (other, Some(mode)) => Err(mode.fault(&format!("the mode {other:?} is not known"))),
            (_, None) => Ok(Self::None),
        }
    }
}

/// What is each layer's own.
pub(super) struct LayerConfig {
    pub kernel: usize,
    pub dilation: usize,
    pub activation: Activation,
    pub gating: Gating,
}

/// The nodes that a layer reads.
pub(super) struct Reads<'a> {
    pub value: &'a str,
    pub condition: &'a str,
    /// What the layers before it have given the head.
    pub head: Option<&'a str>,
}

/// The nodes that others read of a layer.
pub(super) struct Makes {
    pub value: String,
    pub head: String,
}

/// Adds a layer.
pub(super) fn add(
    sketch: &mut Sketch,
    weights: &mut Flat<'_>,
    width: &Width,
    config: &LayerConfig,
    reads: &Reads<'_>,
) -> Result<Makes, Fault> {
    let paired = !matches!(config.gating, Gating::None);
    let double = |channels: usize| if paired { channels.saturating_mul(2) } else { channels };
    let (channels, bottleneck) = (width.channels, width.bottleneck);
    let middle = double(bottleneck);
    let kept = |inputs: usize, outputs: usize| width.kept.map(|_| (inputs, outputs));
    let slim = width.kept.unwrap_or(0);
    // In the order in which they were written.
    let conv = Conv {
        inputs: channels,
        outputs: middle,
        kernel: config.kernel,
        dilation: config.dilation,
        groups: width.groups_input,
        bias: true,
        kept: kept(slim, double(slim)),
    };
    let conv = weights.conv("a convolution", conv)?;
    let mixin = Conv {
        groups: width.groups_mixin,
        bias: false,
        kept: kept(width.condition, double(slim)),
        ..Conv::pointwise(width.condition, middle)
    };
    let mixin = weights.conv("a mix-in", mixin)?;
    let pointwise = |weights: &mut Flat<'_>, outputs: usize, groups: usize| {
        let conv = Conv { groups, kept: kept(slim, slim), ..Conv::pointwise(bottleneck, outputs) };
        weights.conv("a 1x1", conv)
    };
    let out = width.layer1x1.map(|groups| pointwise(weights, channels, groups)).transpose()?;
    let to_head = width.head1x1.map(|(outputs, groups)| pointwise(weights, outputs, groups)).transpose()?;
    let modulated = [channels, middle, width.condition, middle, middle, bottleneck, channels, width.to_head()];
    let mut films: [Option<Film>; PLACES.len()] = Default::default();
    for (place, film) in films.iter_mut().enumerate() {
        if let Some(config) = width.films[place] {
            *film = Some(config.take(weights, PLACES[place], width.condition, modulated[place])?);
        }
    }
    let [conv_pre, conv_post, mixin_pre, mixin_post, act_pre, act_post, out_post, head_post] = films;

    let modulate = |sketch: &mut Sketch, film: Option<Film>, name: &str, value: String| match film {
        Some(film) => film.add(sketch, name, &value, reads.condition),
        None => Ok(value),
    };
    let heard = modulate(sketch, conv_pre, "conv_pre_film", reads.value.to_owned())?;
    let value = sketch.conv("conv", &heard, conv)?;
    let value = modulate(sketch, conv_post, "conv_post_film", value)?;
    let condition = modulate(sketch, mixin_pre, "mixin_pre_film", reads.condition.to_owned())?;
    let mixed = sketch.conv("mixin", &condition, mixin)?;
    let mixed = modulate(sketch, mixin_post, "mixin_post_film", mixed)?;
    let value = sketch.node("sum", &[&value, &mixed], Op::Add)?;
    let value = modulate(sketch, act_pre, "act_pre_film", value)?;
    let value = activate(sketch, config, &value, width.kept.unwrap_or(bottleneck))?;
    let act = modulate(sketch, act_post, "act_post_film", value)?;
    let onward = |sketch: &mut Sketch, name: &str, conv: Option<ConvWeights>| match conv {
        Some(conv) => sketch.conv(name, &act, conv),
        None => Ok(act.clone()),
    };
    let to_head = onward(sketch, "head1x1", to_head)?;
    let to_head = modulate(sketch, head_post, "head1x1_post_film", to_head)?;
    let out = onward(sketch, "out", out)?;
    let out = modulate(sketch, out_post, "out_post_film", out)?;
    let head = match reads.head {
        Some(head) => sketch.node("head", &[head, &to_head], Op::Add)?,
        None => to_head,
    };
    Ok(Makes { value: sketch.node("residual", &[reads.value, &out], Op::Add)?, head })
}

/// Adds the activation, of so many channels of output.
fn activate(sketch: &mut Sketch, config: &LayerConfig, value: &str, channels: usize) -> Result<String, Fault> {
    let sliced = |activation: &Activation| activation.sliced(channels);
    let activation = sliced(&config.activation);
    let (secondary, blended) = match &config.gating {
        Gating::None => return activation.add(sketch, "act", value),
        Gating::Gated(secondary) => (sliced(secondary), false),
        Gating::Blended(secondary) => (sliced(secondary), true),
    };
    let usual = [&activation, &secondary] == [&Activation::Plain(Op::Tanh), &Activation::Plain(Op::Sigmoid)];
    if usual && !blended {
        return sketch.node("act", &[value], Op::Gate);
    }
    let first = sketch.node("first", &[value], Op::Split { start: 0, channels })?;
    let second = sketch.node("second", &[value], Op::Split { start: channels, channels })?;
    let active = activation.add(sketch, "active", &first)?;
    let gate = secondary.add(sketch, "gate", &second)?;
    if !blended {
        return sketch.node("act", &[&active, &gate], Op::Multiply);
    }
    // g·a + (1 − g)·x = x + g·(a − x)
    let away = sketch.node("away", &[&first], Op::Affine { scale: -1.0, offset: 0.0 })?;
    let distance = sketch.node("distance", &[&active, &away], Op::Add)?;
    let step = sketch.node("step", &[&distance, &gate], Op::Multiply)?;
    sketch.node("act", &[&first, &step], Op::Add)
}
