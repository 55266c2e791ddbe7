//! Recurrent layers.

use ondes_engine::model::Op;
use ondes_engine::ops::{Gru, Lstm};
use tch::Tensor;

use super::recurrence;

/// Computes a recurrent layer on a sequence; returns the output and the final state.
pub(crate) fn recurrent<'w>(
    op: &Op,
    x: &Tensor,
    weight: &impl Fn(&str) -> &'w Tensor,
    before: Option<Vec<Tensor>>,
) -> (Tensor, Vec<Tensor>) {
    let initial = |names: &[&str], hidden: usize, given: bool| -> Vec<Tensor> {
        names
            .iter()
            .map(|name| state(x, hidden, given.then(|| weight(name))))
            .collect()
    };
    let states = before.unwrap_or_else(|| match *op {
        Op::Lstm(Lstm {
            hidden,
            initial_state,
        }) => initial(&["h0", "c0"], hidden, initial_state),
        Op::Gru(Gru {
            hidden,
            initial_state,
        }) => initial(&["h0"], hidden, initial_state),
        _ => unreachable!("not a recurrent layer"),
    });
    if recurrence::serves(weight("weight_hh")) {
        return by_kernels(x, weight, &states);
    }
    let parameters = recurrent_parameters(weight);
    let frames = x.transpose(1, 2);
    match *op {
        Op::Lstm(_) => {
            let (value, h, c) = frames.lstm(&states, &parameters, true, 1, 0.0, false, false, true);
            (value.transpose(1, 2), vec![h, c])
        }
        _ => {
            let (value, h) = frames.gru(&states[0], &parameters, true, 1, 0.0, false, false, true);
            (value.transpose(1, 2), vec![h])
        }
    }
}

/// Computes a recurrent layer by [`recurrence`](recurrence::recurrence).
fn by_kernels<'w>(
    x: &Tensor,
    weight: &impl Fn(&str) -> &'w Tensor,
    states: &[Tensor],
) -> (Tensor, Vec<Tensor>) {
    let is_lstm = states.len() == 2;
    let (of_input, of_state) = (weight("bias_ih"), weight("bias_hh"));
    let gates = match is_lstm {
        true => x
            .permute([2, 0, 1])
            .linear(weight("weight_ih"), Some(of_input + of_state)),
        false => x
            .permute([2, 0, 1])
            .linear(weight("weight_ih"), Some(of_input)),
    };
    let states: Vec<Tensor> = states.iter().map(|state| state.squeeze_dim(0)).collect();
    let bias = (!is_lstm).then_some(of_state);
    let mut all = recurrence::recurrence(gates, weight("weight_hh"), bias, &states).into_iter();
    let value = all
        .next()
        .expect("all states")
        .permute([1, 2, 0])
        .to_kind(x.kind());
    (
        value,
        all.map(|state| state.unsqueeze(0).to_kind(x.kind()))
            .collect(),
    )
}

/// Returns the initial state of a recurrent layer, `[1, batch, hidden]`.
fn state(x: &Tensor, hidden: usize, initial: Option<&Tensor>) -> Tensor {
    let shape = [1, x.size()[0], hidden as i64];
    match initial {
        Some(initial) => initial.view([1, 1, -1]).expand(shape, false).contiguous(),
        None => Tensor::zeros(shape, (x.kind(), x.device())),
    }
}

fn recurrent_parameters<'w>(weight: &impl Fn(&str) -> &'w Tensor) -> Vec<Tensor> {
    ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
        .iter()
        .map(|name| weight(name).shallow_clone())
        .collect()
}
