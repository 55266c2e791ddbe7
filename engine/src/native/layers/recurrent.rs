//! Recurrent layers at control rate: the product with the inputs for all frames at once, and the
//! product with the states frame by frame for all streams.

use ondes_kernels::Kernels;

use super::product::Dense;
use crate::native::layer::{Io, Layer, LayerContext};

/// Common part of GRU and LSTM: matrices, states and room for the gates.
struct Recurrent {
    hidden: usize,
    from_input: Dense,
    from_state: Dense,
    /// `[stream][unit]`
    state: Vec<f32>,
    /// `[unit]`: initial state.
    initial: Vec<f32>,
    /// `[stream of the step][unit]`: states of the streams of a step.
    gathered: Vec<f32>,
    /// `[stream][frame][gate]`
    input_gates: Vec<f32>,
    /// `[stream][gate]`
    state_gates: Vec<f32>,
}

impl Recurrent {
    fn new(context: &LayerContext<'_>, hidden: usize, gates: usize, initial: Vec<f32>) -> Self {
        Self {
            hidden,
            from_input: Dense::new(
                context.weight("weight_ih"),
                context.weight("bias_ih"),
                context.streams * context.frames,
            ),
            from_state: Dense::new(
                context.weight("weight_hh"),
                context.weight("bias_hh"),
                context.streams,
            ),
            state: initial.repeat(context.streams),
            initial,
            gathered: vec![0.0; context.streams * hidden],
            input_gates: vec![0.0; context.streams * context.frames * gates * hidden],
            state_gates: vec![0.0; context.streams * gates * hidden],
        }
    }

    /// Runs all frames; `update(stream, gates from the input, gates from the state, state)`
    /// advances one stream's state.
    fn run(
        &mut self,
        kernels: Kernels,
        io: Io<'_>,
        mut update: impl FnMut(usize, &mut [f32], &[f32], &mut [f32]),
    ) {
        let (hidden, gates, frames) = (self.hidden, self.from_input.outputs(), io.frames);
        self.from_input
            .run(kernels, io.input(0), &mut self.input_gates);
        for (row, &stream) in io.streams.iter().enumerate() {
            self.gathered[row * hidden..][..hidden]
                .copy_from_slice(&self.state[stream * hidden..][..hidden]);
        }
        for frame in 0..frames {
            self.from_state.run(
                kernels,
                &self.gathered[..io.streams.len() * hidden],
                &mut self.state_gates,
            );
            for (row, &stream) in io.streams.iter().enumerate() {
                let position = row * frames + frame;
                let state = &mut self.gathered[row * hidden..][..hidden];
                let from_input = &mut self.input_gates[position * gates..][..gates];
                update(
                    stream,
                    from_input,
                    &self.state_gates[row * gates..][..gates],
                    state,
                );
                io.output[position * hidden..][..hidden].copy_from_slice(state);
            }
        }
        for (row, &stream) in io.streams.iter().enumerate() {
            self.state[stream * hidden..][..hidden]
                .copy_from_slice(&self.gathered[row * hidden..][..hidden]);
        }
    }

    fn reset(&mut self, stream: usize) {
        self.state[stream * self.hidden..][..self.hidden].copy_from_slice(&self.initial);
    }

    fn capture_initial_state(&mut self) {
        set_initial(&mut self.initial, &mut self.state);
    }

    fn uses_int8(&self) -> bool {
        self.from_input.uses_int8() || self.from_state.uses_int8()
    }

    fn bytes(&self) -> usize {
        let values = self.state.len()
            + self.initial.len()
            + self.gathered.len()
            + self.input_gates.len()
            + self.state_gates.len();
        self.from_input.bytes() + self.from_state.bytes() + values * size_of::<f32>()
    }
}

/// Returns the initial state from a weight if the layer has one, else zeros.
fn initial(
    context: &LayerContext<'_>,
    parameter: &str,
    hidden: usize,
    has_weight: bool,
) -> Vec<f32> {
    if has_weight {
        context.weight(parameter).floats().into_owned()
    } else {
        vec![0.0; hidden]
    }
}

/// Makes the state of the first stream the initial state of all, and resets them to it.
fn set_initial(initial: &mut [f32], states: &mut [f32]) {
    initial.copy_from_slice(&states[..initial.len()]);
    states
        .chunks_exact_mut(initial.len())
        .for_each(|state| state.copy_from_slice(initial));
}

pub(super) struct Gru(Recurrent);

impl Gru {
    pub fn new(context: &LayerContext<'_>, hidden: usize, initial_state: bool) -> Self {
        Self(Recurrent::new(
            context,
            hidden,
            3,
            initial(context, "h0", hidden, initial_state),
        ))
    }
}

impl Layer for Gru {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        self.0.run(kernels, io, |_, from_input, from_state, state| {
            kernels.gru(from_input, from_state, state)
        });
    }

    fn reset(&mut self, stream: usize) {
        self.0.reset(stream);
    }

    fn capture_initial_state(&mut self) {
        self.0.capture_initial_state();
    }

    fn uses_int8(&self) -> bool {
        self.0.uses_int8()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

pub(super) struct Lstm {
    recurrent: Recurrent,
    /// `[stream][unit]`
    cells: Vec<f32>,
    /// `[unit]`: initial cells.
    initial: Vec<f32>,
}

impl Lstm {
    pub fn new(context: &LayerContext<'_>, hidden: usize, initial_state: bool) -> Self {
        let [state, cells] = ["h0", "c0"].map(|name| initial(context, name, hidden, initial_state));
        let recurrent = Recurrent::new(context, hidden, 4, state);
        Self {
            recurrent,
            cells: cells.repeat(context.streams),
            initial: cells,
        }
    }
}

impl Layer for Lstm {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let (hidden, cells) = (self.recurrent.hidden, &mut self.cells);
        self.recurrent
            .run(kernels, io, |stream, from_input, from_state, state| {
                kernels.add(from_input, from_state);
                kernels.lstm(from_input, state, &mut cells[stream * hidden..][..hidden]);
            });
    }

    fn reset(&mut self, stream: usize) {
        self.recurrent.reset(stream);
        let hidden = self.recurrent.hidden;
        self.cells[stream * hidden..][..hidden].copy_from_slice(&self.initial);
    }

    fn capture_initial_state(&mut self) {
        self.recurrent.capture_initial_state();
        set_initial(&mut self.initial, &mut self.cells);
    }

    fn uses_int8(&self) -> bool {
        self.recurrent.uses_int8()
    }

    fn bytes(&self) -> usize {
        self.recurrent.bytes()
            + size_of_val(self.cells.as_slice())
            + size_of_val(self.initial.as_slice())
    }
}
