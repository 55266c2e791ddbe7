//! Principal components of the latents: the first latent of a finished codec is the one that varies
//! most.
//!
//! A rotation before the decoder's first layer and its inverse after the encoder's last are folded
//! into these layers, so that it costs nothing. Training needs the variances of the latents as
//! well, which a finished codec leaves out.

use std::collections::BTreeMap;

use anyhow::ensure;
use ondes_engine::model::{Header, Method, Model, Node, Op, Weights};
use ondes_engine::ops::{Conv1d, Split};
use ondes_torch::TorchWeights;
use ondes_torch::weights::to_plain;
use tch::{Device, Kind, Tensor};

use super::network::{DECODER_INPUT, DISTRIBUTION, LOG_VARIANCE, MEANS};

/// Batches of training crops that the components are computed from.
pub const BATCHES: u64 = 40;

/// Returns a codec whose latents are the principal components of `latents`, `[latent, frame]`, in
/// the order of their variance, and no longer have variances of their own.
///
/// # Errors
/// Returns an error if the model is no codec in training.
pub fn finished(model: &Model, latents: &Tensor) -> anyhow::Result<Model> {
    let latents = latents.to_device(Device::Cpu).to_kind(Kind::Double);
    let mean = latents.mean_dim(1, true, Kind::Double);
    let centred = latents - &mean;
    let covariance = centred.matmul(&centred.transpose(0, 1)) / centred.size()[1] as f64;
    // Rows are components; eigenvalues come in ascending order.
    let components = covariance.linalg_eigh("L").1.transpose(0, 1).flip([0]);
    with_components(model, &components, &mean)
}

/// Returns a codec that keeps its latents, but no longer has variances of its own.
///
/// # Errors
/// Returns an error if the model is no codec in training.
pub fn with_own_latents(model: &Model) -> anyhow::Result<Model> {
    let split = |node: &&Node| node.name == MEANS;
    let means = model
        .method("encode")?
        .nodes
        .iter()
        .find(split)
        .map(|node| &node.op);
    let Some(Op::Split(Split { channels, .. })) = means else {
        anyhow::bail!("it is no codec in training")
    };
    let count = *channels as i64;
    let kind = (Kind::Double, Device::Cpu);
    with_components(
        model,
        &Tensor::eye(count, kind),
        &Tensor::zeros([count, 1], kind),
    )
}

/// Returns a codec whose latents are `components` of those less their `mean`, `[latent, 1]`.
fn with_components(model: &Model, components: &Tensor, mean: &Tensor) -> anyhow::Result<Model> {
    let weights = TorchWeights::new(model.weights(), Device::Cpu);
    let get = |node: &str, parameter: &str| weights.get(node, parameter).to_kind(Kind::Double);

    let count = components.size()[0];
    let encode = get(DISTRIBUTION, "weight").narrow(0, 0, count);
    let encode = Tensor::einsum("pl,lck->pck", &[components, &encode], None::<&[i64]>);
    let bias = get(DISTRIBUTION, "bias").narrow(0, 0, count) - mean.view(-1);
    let bias = components.mv(&bias);
    // The pitch, if it is one of the latents, follows the others.
    let inputs = get(DECODER_INPUT, "weight");
    let (decode, pitch) = (
        inputs.narrow(1, 0, count),
        inputs.narrow(1, count, inputs.size()[1] - count),
    );
    let offset = Tensor::einsum("olk,l->o", &[&decode, &mean.view(-1)], None::<&[i64]>);
    let decode = Tensor::einsum("olk,pl->opk", &[&decode, components], None::<&[i64]>);
    let decode = Tensor::cat(&[decode, pitch], 1);
    let offset = get(DECODER_INPUT, "bias") + offset;

    let mut changed = Weights::default();
    for (name, weight) in model.weights().iter() {
        if !name.starts_with(DISTRIBUTION) {
            changed.insert(name, weight.clone());
        }
    }
    for (node, parameter, tensor) in [
        (MEANS, "weight", encode),
        (MEANS, "bias", bias),
        (DECODER_INPUT, "weight", decode),
        (DECODER_INPUT, "bias", offset),
    ] {
        changed.insert(
            format!("{node}.{parameter}"),
            to_plain(&tensor.to_kind(Kind::Float).contiguous())?,
        );
    }
    let methods = model
        .header()
        .methods
        .iter()
        .map(without_variances)
        .collect();
    Ok(Model::new(
        Header {
            methods,
            ..model.header().clone()
        },
        changed,
    )?)
}

/// Returns a method whose encoder makes the latents only.
fn without_variances(method: &Method) -> Method {
    let mut method = method.clone();
    let Some(index) = method
        .nodes
        .iter()
        .position(|node| node.name == DISTRIBUTION)
    else {
        return method;
    };
    let distribution = method.nodes.remove(index);
    let latents = &mut method.nodes[index];
    if let (
        Op::Conv1d(Conv1d {
            kernel,
            stride,
            dilation,
            groups,
            ..
        }),
        Op::Split(Split { channels, .. }),
    ) = (distribution.op, latents.op.clone())
    {
        latents.op = Op::Conv1d(
            Conv1d::new(channels, kernel)
                .strided(stride)
                .dilated(dilation)
                .grouped(groups),
        );
        latents.inputs = distribution.inputs;
    }
    method
}

/// Returns a finished codec, or that of a generator, in the form of `untrained`, to train it
/// further; its latents begin with the variance of untrained ones.
///
/// # Errors
/// Returns an error if the sizes differ.
pub fn in_training(finished: &Model, untrained: &Model) -> anyhow::Result<Model> {
    let has = |name: &str| {
        anyhow::Ok(*finished.method(name)? == without_variances(untrained.method(name)?))
    };
    let is_equal = finished.header().sample_rate == untrained.header().sample_rate
        && has("encode")?
        && has("decode")?;
    ensure!(
        is_equal,
        "its network has other sizes than the configuration's"
    );
    let known: BTreeMap<_, _> = untrained.weights().iter().collect();
    let mut weights = Weights::default();
    for (name, weight) in with_variances(finished)?
        .weights()
        .iter()
        .filter(|(name, _)| known.contains_key(name))
    {
        weights.insert(name, weight.clone());
    }
    Ok(Model::new(untrained.header().clone(), weights)?)
}

/// Returns a finished codec of any sizes in the form in which it is trained: its latents begin with
/// the variance of untrained ones.
///
/// # Errors
/// Returns an error if it makes no latents as `ondes-train codec` does.
pub fn with_variances(finished: &Model) -> anyhow::Result<Model> {
    let mut header = finished.header().clone();
    let mut made = 0;
    for method in &mut header.methods {
        let Some(index) = method.nodes.iter().position(|node| node.name == MEANS) else {
            continue;
        };
        let latents = &mut method.nodes[index];
        let Op::Conv1d(Conv1d {
            outputs,
            kernel,
            stride,
            dilation,
            groups,
        }) = latents.op.clone()
        else {
            continue;
        };
        let op = Op::Conv1d(
            Conv1d::new(2 * outputs, kernel)
                .strided(stride)
                .dilated(dilation)
                .grouped(groups),
        );
        let inputs = std::mem::replace(&mut latents.inputs, vec![DISTRIBUTION.into()]);
        latents.op = Op::Split(Split {
            start: 0,
            channels: outputs,
        });
        method.nodes.insert(
            index,
            Node {
                name: DISTRIBUTION.into(),
                inputs,
                op,
            },
        );
        made += 1;
    }
    ensure!(
        made > 0,
        "it has no layer {MEANS:?}; only codecs of `ondes-train codec` can be trained"
    );
    let plain = ondes_engine::model::Tensor::new;
    let mut weights = Weights::default();
    for (name, weight) in finished.weights().iter() {
        let values = weight.floats();
        let Some(parameter) = name.strip_prefix(MEANS) else {
            weights.insert(name, plain(weight.shape(), values.into_owned()));
            continue;
        };
        let variance = if parameter == ".bias" {
            LOG_VARIANCE
        } else {
            0.0
        };
        let mut shape = weight.shape().to_vec();
        shape[0] *= 2;
        let doubled = values
            .iter()
            .copied()
            .chain(std::iter::repeat_n(variance, values.len()));
        weights.insert(
            format!("{DISTRIBUTION}{parameter}"),
            plain(&shape, doubled.collect()),
        );
    }
    Ok(Model::new(header, weights)?)
}
