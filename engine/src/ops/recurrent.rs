//! Recurrent layers. At control rate the product with the inputs is computed for all frames at
//! once, and that with the states frame by frame for all streams; at audio rate, where a step has
//! many frames and few streams, [`cells`](super::cells) computes one stream after another.

use ondes_kernels::{CellKind, Kernels};
use serde::{Deserialize, Serialize};

use super::cells::Cells;
use super::operation::WeightAxis::{GatedOutputs, Inputs, Outputs};
use super::operation::{ChannelCut, ChannelLinks, Memory, Operation, WeightSpec, require_positive};
use crate::model::Shape;
use crate::model::export::node_line::{NodeLine, ROWS, SET_ROWS};
use crate::native::layer::{Io, Layer, LayerContext};
use crate::native::product::Dense;

/// Recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recurrent<const LSTM: bool> {
    /// Units, H.
    pub hidden: usize,
    /// Set if the model file has an initial state.
    #[serde(default, skip_serializing_if = "is_false")]
    pub initial_state: bool,
}

/// Gated recurrent unit, one layer, gates in the order r, z, n: `weight_ih [3H][inputs]`,
/// `weight_hh [3H][H]`, `bias_ih [3H]`, `bias_hh [3H]` (Cho et al., EMNLP 2014, in PyTorch's form).
///
/// Starts from zeros, or from `h0 [H]` with an initial state.
pub type Gru = Recurrent<false>;

/// Long short-term memory, one layer, gates in the order i, f, g, o; weights as for [`Gru`] with
/// 4H. An initial state is `h0 [H]` and `c0 [H]`.
pub type Lstm = Recurrent<true>;

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl<const LSTM: bool> Recurrent<LSTM> {
    const GATES: usize = if LSTM { 4 } else { 3 };
    /// Names of the states.
    const STATES: &'static [&'static str] = if LSTM { &["h0", "c0"] } else { &["h0"] };
}

impl<const LSTM: bool> Operation for Recurrent<LSTM> {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        require_positive(&[self.hidden])?;
        Ok(inputs[0].with_channels(self.hidden))
    }

    fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        let (hidden, inputs) = (self.hidden, Shape::channels_of_first(inputs));
        let gates = Self::GATES.saturating_mul(hidden);
        let mut specs = vec![
            WeightSpec::new("weight_ih", &[GatedOutputs, Inputs], &[gates, inputs]),
            WeightSpec::new("weight_hh", &[GatedOutputs, Outputs], &[gates, hidden]),
            WeightSpec::new("bias_ih", &[GatedOutputs], &[gates]),
            WeightSpec::new("bias_hh", &[GatedOutputs], &[gates]),
        ];
        if self.initial_state {
            let state = |name: &&'static str| WeightSpec::new(name, &[Outputs], &[hidden]);
            specs.extend(Self::STATES.iter().map(state));
        }
        specs
    }

    fn tail_samples(&self, _inputs: &[Shape], sample_rate: u32) -> usize {
        sample_rate as usize / 2
    }

    fn multiply_adds(&self, inputs: &[Shape], _output: Shape) -> usize {
        Self::GATES * self.hidden * (inputs[0].channels + self.hidden)
    }

    fn memory(&self) -> Memory {
        Memory::States {
            count: Self::STATES.len(),
            hidden: self.hidden,
        }
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Independent
    }

    fn narrow(&mut self, cut: &ChannelCut<'_>) {
        self.hidden = cut.outputs.len();
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        let Self {
            hidden,
            initial_state,
        } = *self;
        if context.inputs[0].ratio == 1 {
            let kind = if LSTM { CellKind::Lstm } else { CellKind::Gru };
            Box::new(Cells::new(context, kind, hidden, initial_state))
        } else if LSTM {
            Box::new(LstmLayer::new(context, hidden, initial_state))
        } else {
            Box::new(GruLayer::new(context, hidden, initial_state))
        }
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let (x, function) = (line.x(), if LSTM { "lstm" } else { "gru" });
        let weights = line
            .parameters(["weight_ih", "weight_hh", "bias_ih", "bias_hh"])
            .join(", ");
        let states: Vec<String> = Self::STATES
            .iter()
            .map(|name| line.initial_state(name, self.hidden, self.initial_state))
            .collect();
        let before: Vec<String> = states
            .iter()
            .map(|state| line.call(ROWS, &[x, state]))
            .collect();
        let before = if before.len() == 1 {
            before.concat()
        } else {
            format!("[{}]", before.join(", "))
        };
        let all = line.variable(
            "all",
            &format!(
                "torch.{function}(torch.transpose({x}, 1, 2), {before}, [{weights}], True, 1, 0., False, False, True)"
            ),
        );
        for (index, state) in states.iter().enumerate() {
            let call = line.call(SET_ROWS, &[state, &format!("{all}[{}]", index + 1)]);
            line.ignore(&call);
        }
        format!("torch.transpose({all}[0], 1, 2)")
    }
}

/// Common part of GRU and LSTM: matrices, states and room for the gates.
struct Matrices {
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

impl Matrices {
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

struct GruLayer(Matrices);

impl GruLayer {
    fn new(context: &LayerContext<'_>, hidden: usize, initial_state: bool) -> Self {
        Self(Matrices::new(
            context,
            hidden,
            3,
            initial(context, "h0", hidden, initial_state),
        ))
    }
}

impl Layer for GruLayer {
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

struct LstmLayer {
    recurrent: Matrices,
    /// `[stream][unit]`
    cells: Vec<f32>,
    /// `[unit]`: initial cells.
    initial: Vec<f32>,
}

impl LstmLayer {
    fn new(context: &LayerContext<'_>, hidden: usize, initial_state: bool) -> Self {
        let [state, cells] = ["h0", "c0"].map(|name| initial(context, name, hidden, initial_state));
        let recurrent = Matrices::new(context, hidden, 4, state);
        Self {
            recurrent,
            cells: cells.repeat(context.streams),
            initial: cells,
        }
    }
}

impl Layer for LstmLayer {
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
