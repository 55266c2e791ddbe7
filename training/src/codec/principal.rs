//! Principal components of the latents: the first latent of a finished codec is the one that varies most.
//!
//! A rotation before the decoder's first layer and its inverse after the encoder's last are folded into these layers, so
//! that it costs nothing. Training needs the variances of the latents as well, which a finished codec leaves out.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use ondes_engine::model::{Header, Method, Model, Op, Weights};
use ondes_torch::TorchWeights;
use ondes_torch::weights::to_plain;
use tch::{Device, Kind, Tensor};

use super::network::{DECODER_INPUT, DISTRIBUTION, LOG_VARIANCE, MEANS};

/// Batches of training crops that the components are computed from.
pub const BATCHES: u64 = 40;

/// Returns a codec whose latents are the principal components of `latents`, `[latent, frame]`, in the order of their
/// variance, and no longer have variances of their own.
///
/// # Errors
/// Returns an error if the model is no codec in training.
pub fn finished(model: &Model, latents: &Tensor) -> anyhow::Result<Model> {
    let weights = TorchWeights::new(model.weights(), Device::Cpu);
    let latents = latents.to_device(Device::Cpu).to_kind(Kind::Double);
    let mean = latents.mean_dim(1, true, Kind::Double);
    let centred = latents - &mean;
    let covariance = centred.matmul(&centred.transpose(0, 1)) / centred.size()[1] as f64;
    // Rows are components; eigenvalues come in ascending order.
    let components = covariance.linalg_eigh("L").1.transpose(0, 1).flip([0]);
    let get = |node: &str, parameter: &str| weights.get(node, parameter).to_kind(Kind::Double);

    let count = components.size()[0];
    let encode = get(DISTRIBUTION, "weight").narrow(0, 0, count);
    let encode = Tensor::einsum("pl,lck->pck", &[&components, &encode], None::<&[i64]>);
    let bias = get(DISTRIBUTION, "bias").narrow(0, 0, count) - mean.view(-1);
    let bias = components.mv(&bias);
    // The pitch, if it is one of the latents, follows the others.
    let inputs = get(DECODER_INPUT, "weight");
    let (decode, pitch) = (inputs.narrow(1, 0, count), inputs.narrow(1, count, inputs.size()[1] - count));
    let offset = Tensor::einsum("olk,l->o", &[&decode, &mean.view(-1)], None::<&[i64]>);
    let decode = Tensor::einsum("olk,pl->opk", &[&decode, &components], None::<&[i64]>);
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
        changed.insert(format!("{node}.{parameter}"), to_plain(&tensor.to_kind(Kind::Float).contiguous())?);
    }
    let methods = model.header().methods.iter().map(without_variances).collect();
    Ok(Model::new(Header { methods, ..model.header().clone() }, changed)?)
}

/// Returns a method whose encoder makes the latents only.
fn without_variances(method: &Method) -> Method {
    let mut method = method.clone();
    let Some(index) = method.nodes.iter().position(|node| node.name == DISTRIBUTION) else { return method };
    let distribution = method.nodes.remove(index);
    let latents = &mut method.nodes[index];
    if let (Op::Conv1d { kernel, stride, dilation, groups, .. }, Op::Split { channels, .. }) =
        (distribution.op, latents.op.clone())
    {
        latents.op = Op::Conv1d { outputs: channels, kernel, stride, dilation, groups };
        latents.inputs = distribution.inputs;
    }
    method
}

/// Returns a finished codec, or that of a generator, in the form of `untrained`, to train it further; its latents begin with the
/// variance of untrained ones.
///
/// # Errors
/// Returns an error if the sizes differ.
pub fn in_training(finished: &Model, untrained: &Model) -> anyhow::Result<Model> {
    let has = |name: &str| anyhow::Ok(*finished.method(name)? == without_variances(untrained.method(name)?));
    let is_equal = finished.header().sample_rate == untrained.header().sample_rate && has("encode")? && has("decode")?;
    ensure!(is_equal, "its network has other sizes than the configuration's");
    let given: BTreeMap<_, _> = finished.weights().iter().collect();
    let plain = ondes_engine::model::Tensor::new;
    let mut weights = Weights::default();
    for (name, weight) in untrained.weights().iter() {
        if let Some(&weight) = given.get(name) {
            weights.insert(name, plain(weight.shape(), weight.floats().into_owned()));
            continue;
        }
        let parameter = name.strip_prefix(DISTRIBUTION).with_context(|| format!("it has no weight {name}"))?;
        let means = given.get(format!("{MEANS}{parameter}").as_str()).context("it makes no latents")?;
        let variance = if parameter == ".bias" { LOG_VARIANCE } else { 0.0 };
        let means = means.floats();
        let values = means.iter().copied().chain(std::iter::repeat_n(variance, means.len()));
        weights.insert(name, plain(weight.shape(), values.collect()));
    }
    Ok(Model::new(untrained.header().clone(), weights)?)
}
