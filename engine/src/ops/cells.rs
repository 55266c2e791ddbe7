//! Recurrent layers at audio rate, one stream after another.

use ondes_kernels::{CellKind, CellWeights, Kernels};

use crate::native::layer::{Io, Layer, LayerContext};

/// LSTM or GRU at audio rate.
pub(super) struct Cells {
    weights: CellWeights,
    /// `[stream]`
    states: Vec<CellState>,
    initial: CellState,
}

/// State of one stream, `[unit]`, padded to whole vectors.
#[derive(Clone)]
struct CellState {
    /// The current state, and room for the next.
    h: Vec<f32>,
    c: Vec<f32>,
}

impl Cells {
    pub fn new(
        context: &LayerContext<'_>,
        cell: CellKind,
        hidden: usize,
        initial_state: bool,
    ) -> Self {
        let inputs = context.channels();
        let data = |parameter: &str| context.weight(parameter).floats();
        let (from_input, from_state) = (data("weight_ih"), data("weight_hh"));
        let (input_bias, state_bias) = (data("bias_ih"), data("bias_hh"));
        // A GRU's last gate is two sums, since only that of the state is multiplied by the reset
        // gate.
        let reads_input = |gate: usize| cell == CellKind::Lstm || gate < 3;
        let reads_state = |gate: usize| cell == CellKind::Lstm || gate != 2;
        let row = |gate: usize, unit: usize| {
            gate.min(if cell == CellKind::Lstm { 3 } else { 2 }) * hidden + unit
        };
        let weights = CellWeights::new(
            cell,
            inputs,
            hidden,
            |gate, unit, input| match input.checked_sub(inputs) {
                None if reads_input(gate) => from_input[row(gate, unit) * inputs + input],
                Some(state) if reads_state(gate) => from_state[row(gate, unit) * hidden + state],
                _ => 0.0,
            },
            |gate, unit| {
                let from_input = if reads_input(gate) {
                    input_bias[row(gate, unit)]
                } else {
                    0.0
                };
                from_input
                    + if reads_state(gate) {
                        state_bias[row(gate, unit)]
                    } else {
                        0.0
                    }
            },
        );
        let mut initial = CellState {
            h: vec![0.0; 2 * weights.state_len()],
            c: vec![0.0; weights.state_len()],
        };
        if initial_state {
            let set = |state: &mut [f32], parameter: &str| {
                let limit = CellWeights::LARGEST;
                state
                    .iter_mut()
                    .zip(data(parameter).iter())
                    .for_each(|(to, x)| *to = x.clamp(-limit, limit));
            };
            set(&mut initial.h[..hidden], "h0");
            if cell == CellKind::Lstm {
                set(&mut initial.c[..hidden], "c0");
            }
        }
        Self {
            weights,
            states: vec![initial.clone(); context.streams],
            initial,
        }
    }
}

impl Layer for Cells {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let x = io.input(0);
        let rows = x.len() / io.streams.len();
        let outputs = io.output.len() / io.streams.len();
        for ((x, y), &stream) in x
            .chunks_exact(rows)
            .zip(io.output.chunks_exact_mut(outputs))
            .zip(io.streams)
        {
            let CellState { h, c } = &mut self.states[stream];
            kernels.run_cells(&self.weights, x, h, c, y);
        }
    }

    fn reset(&mut self, stream: usize) {
        let CellState { h, c } = &mut self.states[stream];
        h.copy_from_slice(&self.initial.h);
        c.copy_from_slice(&self.initial.c);
    }

    fn capture_initial_state(&mut self) {
        self.initial = self.states[0].clone();
        self.states.fill(self.initial.clone());
    }

    fn bytes(&self) -> usize {
        let states = self
            .states
            .iter()
            .chain([&self.initial])
            .map(|state| size_of_val(&*state.h) + size_of_val(&*state.c));
        self.weights.bytes() + states.sum::<usize>()
    }
}
