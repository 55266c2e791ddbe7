//! WaveNet: a series of layer arrays whose summed outputs pass a head.

use super::OutputNode;
use super::activation::NamActivation;
use super::film::{FILM_POSITIONS, FilmConfig};
use super::layer::{self, Gating, LayerConfig, LayerInputs, LayerOutputs, LayerSizes};
use crate::model::import::field::Field;
use crate::model::import::graph_builder::{Conv, ConvWeights, GraphBuilder, INPUT};
use crate::model::import::weight_reader::WeightReader;
use crate::model::{ModelError, Op};
use crate::ops::Affine;

/// Most slices of a model; each copies a part of its weights.
const SLICES: usize = 16;

/// Known fields of a layer array.
const FIELDS: [&str; 19] = [
    "input_size",
    "condition_size",
    "channels",
    "bottleneck",
    "dilations",
    "groups_input",
    "groups_input_mixin",
    "kernel_size",
    "kernel_sizes",
    "activation",
    "gating_mode",
    "gated",
    "secondary_activation",
    "head1x1",
    "layer1x1",
    "head",
    "head_size",
    "head_bias",
    "slimmable",
];

/// Layer array, as the file describes it.
struct LayerArray {
    inputs: usize,
    sizes: LayerSizes,
    layers: Vec<LayerConfig>,
    /// Mix of the layers' outputs to the head.
    head: Conv,
}

impl LayerArray {
    fn read(field: &Field<'_>, slice: Option<usize>) -> Result<Self, ModelError> {
        let known: Vec<&str> = FIELDS.iter().chain(&FILM_POSITIONS).copied().collect();
        field.only(&known)?;
        let count =
            |name: &str, usual: usize| field.find(name).map_or(Ok(usual), |field| field.count());
        let channels = field.need("channels")?.count()?;
        let mut films = [None; FILM_POSITIONS.len()];
        for (film, place) in films.iter_mut().zip(FILM_POSITIONS) {
            *film = FilmConfig::read(field, place)?;
        }
        let sizes = LayerSizes {
            condition: field.need("condition_size")?.count()?,
            channels,
            bottleneck: count("bottleneck", channels)?,
            groups_input: count("groups_input", 1)?,
            groups_mixin: count("groups_input_mixin", 1)?,
            layer1x1: layer1x1(field)?,
            head1x1: head1x1(field)?,
            films,
            slice,
        };
        for (place, there) in [(6, sizes.layer1x1.is_some()), (7, sizes.head1x1.is_some())] {
            if films[place].is_some() && !there {
                return Err(field.error(&format!(
                    "{} modulates a part that is not active",
                    FILM_POSITIONS[place]
                )));
            }
        }
        Ok(Self {
            inputs: field.need("input_size")?.count()?,
            layers: layers(field)?,
            head: head(field, sizes.to_head(), slice)?,
            sizes,
        })
    }
}

/// Returns whether an optional part of a layer is active; `usual` if the file does not say.
fn active(part: &Field<'_>, usual: bool) -> Result<bool, ModelError> {
    part.find("active")
        .map_or(Ok(usual), |active| active.flag())
}

fn groups(part: &Field<'_>) -> Result<usize, ModelError> {
    part.find("groups").map_or(Ok(1), |groups| groups.count())
}

fn layer1x1(array: &Field<'_>) -> Result<Option<usize>, ModelError> {
    let Some(part) = array.find("layer1x1") else {
        return Ok(Some(1));
    };
    Ok(if active(&part, true)? {
        Some(groups(&part)?)
    } else {
        None
    })
}

fn head1x1(array: &Field<'_>) -> Result<Option<(usize, usize)>, ModelError> {
    match array.find("head1x1") {
        Some(part) if active(&part, false)? => {
            Ok(Some((part.need("out_channels")?.count()?, groups(&part)?)))
        }
        _ => Ok(None),
    }
}

/// Reads the head's mix: an object, or a size and a flag in older files.
fn head(array: &Field<'_>, inputs: usize, slice: Option<usize>) -> Result<Conv, ModelError> {
    let flag = |field: Option<Field<'_>>| field.map_or(Ok(false), |field| field.flag());
    let mut conv = match array.find("head") {
        Some(head) => {
            let count =
                |name: &str, usual: usize| head.find(name).map_or(Ok(usual), |field| field.count());
            let outputs = head.need("out_channels")?.count()?;
            let dilation = head.find("head_dilation").or_else(|| head.find("dilation"));
            Conv {
                kernel: count("kernel_size", 1)?,
                dilation: dilation.map_or(Ok(1), |dilation| dilation.count())?,
                bias: flag(head.find("bias"))?,
                ..Conv::pointwise(inputs, outputs)
            }
        }
        None => {
            let outputs = array.need("head_size")?.count()?;
            Conv {
                bias: flag(array.find("head_bias"))?,
                ..Conv::pointwise(inputs, outputs)
            }
        }
    };
    conv.slice = slice.map(|slice| (slice, conv.outputs));
    Ok(conv)
}

fn layers(array: &Field<'_>) -> Result<Vec<LayerConfig>, ModelError> {
    let dilations = array.need("dilations")?;
    let items = dilations.items()?;
    if items.is_empty() {
        return Err(dilations.error("is empty"));
    }
    let each = |name: &str| each(array, name, items.len());
    let kernels = if array.find("kernel_sizes").is_some() {
        each("kernel_sizes")
    } else {
        each("kernel_size")
    }?;
    let activations = each("activation")?;
    let (modes, secondary) = (each("gating_mode")?, each("secondary_activation")?);
    let gated = each("gated")?;
    let layer = |index: usize| {
        let missing = |name: &str| array.error(&format!("{name:?} is missing"));
        let gated = gated[index].as_ref().map_or(Ok(false), Field::flag)?;
        Ok(LayerConfig {
            kernel: kernels[index]
                .as_ref()
                .ok_or_else(|| missing("kernel_size"))?
                .count()?,
            dilation: items[index].count()?,
            activation: NamActivation::read(
                activations[index]
                    .as_ref()
                    .ok_or_else(|| missing("activation"))?,
            )?,
            gating: Gating::read(modes[index].as_ref(), gated, secondary[index].as_ref())?,
        })
    };
    (0..items.len()).map(layer).collect()
}

/// Returns a field for each of `count` layers; it may be a list, or one value for all.
fn each<'a>(
    array: &Field<'a>,
    name: &str,
    count: usize,
) -> Result<Vec<Option<Field<'a>>>, ModelError> {
    match array.find(name) {
        Some(list) if list.is_list() => {
            let items = list.items()?;
            if items.len() != count {
                return Err(list.error(&format!(
                    "expected {count} items, one for each layer, found {}",
                    items.len()
                )));
            }
            Ok(items.into_iter().map(Field::present).collect())
        }
        one => Ok(vec![one; count]),
    }
}

/// Adds a WaveNet fed by the audio input, with its first `slice` channels only if given.
pub(super) fn add(
    config: &Field<'_>,
    weights: &mut WeightReader<'_>,
    builder: &mut GraphBuilder,
    slice: Option<usize>,
    depth: usize,
) -> Result<OutputNode, ModelError> {
    let list = config.need("layers")?;
    let fields = list.items()?;
    let mut value = INPUT.to_owned();
    let mut channels = config
        .find("in_channels")
        .map_or(Ok(1), |field| field.count())?;
    let condition = match config.find("condition_dsp") {
        Some(inner) => {
            let before = builder.push_prefix("condition");
            let output_channels = super::add(&inner, builder, None, depth + 1)?;
            builder.restore_prefix(before);
            output_channels
        }
        None => OutputNode {
            node: value.clone(),
            channels,
        },
    };
    let mut head: Option<String> = None;
    let mut output_channels = 0;
    for (index, field) in fields.iter().enumerate() {
        let array = LayerArray::read(field, slice)?;
        for (name, size, given) in [
            ("input_size", array.inputs, channels),
            ("condition_size", array.sizes.condition, condition.channels),
        ] {
            if size != given {
                return Err(field
                    .need(name)?
                    .error(&format!("is {size}, but there are {given} input channels")));
            }
        }
        let before = builder.push_prefix(&format!("array{index}"));
        (value, head) = add_array(builder, weights, &array, &value, &condition.node, head)?;
        builder.restore_prefix(before);
        (channels, output_channels) = (array.sizes.channels, array.head.outputs);
    }
    let Some(head) = head else {
        return Err(list.error("is empty"));
    };
    // The head scale is the last weight, although it precedes the post-head in the network.
    let stages = post_head(config, weights, output_channels)?;
    let scale = weights.next("head_scale")?;
    let mut node = builder.node(
        "scaled",
        &[&head],
        Op::Affine(Affine { scale, offset: 0.0 }),
    )?;
    for (index, (activation, conv)) in stages.into_iter().enumerate() {
        let before = builder.push_prefix(&format!("head{index}"));
        node = activation.add(builder, "act", &node)?;
        output_channels = conv.conv.outputs;
        node = builder.conv("conv", &node, conv)?;
        builder.restore_prefix(before);
    }
    Ok(OutputNode {
        node,
        channels: output_channels,
    })
}

/// Adds an array; returns its output and the sum for the head.
fn add_array(
    builder: &mut GraphBuilder,
    weights: &mut WeightReader<'_>,
    array: &LayerArray,
    value: &str,
    condition: &str,
    mut head: Option<String>,
) -> Result<(String, Option<String>), ModelError> {
    let sizes = &array.sizes;
    let slice = sizes.slice.map(|slice| (array.inputs, slice));
    let rechannel = Conv {
        bias: false,
        slice,
        ..Conv::pointwise(array.inputs, sizes.channels)
    };
    let rechannel = weights.conv("a rechannel", rechannel)?;
    let mut value = builder.conv("rechannel", value, rechannel)?;
    for (index, config) in array.layers.iter().enumerate() {
        let before = builder.push_prefix(&format!("layer{index}"));
        let reads = LayerInputs {
            value: &value,
            condition,
            head: head.as_deref(),
        };
        let LayerOutputs {
            value: next,
            head: sum,
        } = layer::add(builder, weights, sizes, config, &reads)?;
        builder.restore_prefix(before);
        (value, head) = (next, Some(sum));
    }
    let mix = weights.conv("the head's mix", array.head)?;
    let head = head
        .map(|head| builder.conv("head", &head, mix))
        .transpose()?;
    Ok((value, head))
}

/// Reads the post-head: activations, each followed by a convolution.
fn post_head(
    config: &Field<'_>,
    weights: &mut WeightReader<'_>,
    inputs: usize,
) -> Result<Vec<(NamActivation, ConvWeights)>, ModelError> {
    let Some(head) = config.find("head") else {
        return Ok(Vec::new());
    };
    let channels = head.need("channels")?.count()?;
    let last = head
        .find("out_channels")
        .map_or(Ok(1), |field| field.count())?;
    let activation = NamActivation::read(&head.need("activation")?)?;
    let kernels = head.need("kernel_sizes")?.items()?;
    let mut inputs = inputs;
    let mut stages = Vec::new();
    for (index, kernel) in kernels.iter().enumerate() {
        let outputs = if index + 1 == kernels.len() {
            last
        } else {
            channels
        };
        let conv = Conv {
            kernel: kernel.count()?,
            ..Conv::pointwise(inputs, outputs)
        };
        stages.push((activation.clone(), weights.conv("the head", conv)?));
        inputs = outputs;
    }
    Ok(stages)
}

/// Size of a WaveNet that consists of its first channels.
pub(super) struct ChannelSlice {
    pub channels: usize,
    pub up_to: f32,
}

/// Returns the sizes that a WaveNet can be sliced to, except the full one.
pub(super) fn slices(
    root: &Field<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<ChannelSlice>, ModelError> {
    let list = root.need("config")?.find("layers");
    let arrays = list.map_or(Ok(Vec::new()), |list| list.items())?;
    let Some(slimmable) = arrays.iter().find_map(|array| array.find("slimmable")) else {
        return Ok(Vec::new());
    };
    let method = slimmable.need("method")?;
    if method.text()? != "slice_channels_uniform" {
        return Err(method.error(&format!("unknown method {:?}", method.text()?)));
    }
    let allowed = slimmable
        .find("kwargs")
        .and_then(|arguments| arguments.find("allowed_channels"));
    let allowed_sizes = allowed.map_or(Ok(Vec::new()), |allowed_sizes| {
        allowed_sizes.items()?.iter().map(Field::count).collect()
    })?;
    let array = LayerArray::read(&arrays[0], None)?;
    let sizes = &array.sizes;
    let plain = arrays.len() == 1
        && sizes.groups_input == 1
        && sizes.groups_mixin == 1
        && sizes.bottleneck == sizes.channels
        && sizes.layer1x1 == Some(1)
        && sizes.head1x1.is_none()
        && sizes.films.iter().all(Option::is_none);
    let whole = allowed_sizes.last() == Some(&sizes.channels)
        && allowed_sizes.iter().all(|size| *size <= sizes.channels);
    if !plain || !whole || allowed_sizes.len() > SLICES {
        notes.push(
            "config.layers: unsupported slimming method; only the full size is available".into(),
        );
        return Ok(Vec::new());
    }
    let count = allowed_sizes.len() as f32;
    let smaller = allowed_sizes
        .iter()
        .take(allowed_sizes.len() - 1)
        .enumerate();
    Ok(smaller
        .map(|(index, &channels)| ChannelSlice {
            channels,
            up_to: (index + 1) as f32 / count,
        })
        .collect())
}
