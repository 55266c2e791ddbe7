//! Recurrent layers at the rate of sound: one stream, frame after frame, all in one call.
//!
//! There a frame waits for the one before it, so what counts is the way from state to state. The gates that are on it are
//! summed first, the one that is not while their activations are on their way: [`run`] has the sums and [`formula`] what is
//! made of them.

mod formula;
mod run;

use std::f64::consts::LOG2_E;

use crate::Kernels;
use crate::matrix::CacheLine;
use crate::simd::LANES;
use run::RunCells;

/// Gates of a cell, as sums of its inputs and its state.
const GATES: usize = 4;

/// Panels of a block at most: with more of them, their sums leave no registers for what is made of them.
const MOST_PANELS: usize = 3;

/// Panels of each block where there are more than [`MOST_PANELS`], but for the last one.
const SPLIT: usize = 2;

/// States are walked through so many at a time.
const STEP: usize = 4;

/// What a cell makes of its gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Gates i, f, g, o: `c = σ(f) · c + σ(i) · tanh(g)`, `h = σ(o) · tanh(c)`.
    Lstm,
    /// Gates r, z, n from the inputs, n from the state: `h = (1 − σ(z)) · tanh(n + σ(r) · n') + σ(z) · h`.
    Gru,
}

impl Cell {
    /// The gates in the order in which they are needed: the last one can wait for the activations of the others.
    fn order(self) -> [usize; GATES] {
        match self {
            Cell::Lstm => [0, 1, 2, 3],
            Cell::Gru => [0, 2, 3, 1],
        }
    }

    /// What a gate is multiplied by before its activation: σ takes a power of two, `1/(1 + 2ˣ)`.
    fn scale(self, gate: usize) -> f64 {
        let with_tanh = match self {
            Cell::Lstm => gate == 2,
            Cell::Gru => gate >= 2,
        };
        if with_tanh { 1.0 } else { -LOG2_E }
    }
}

/// Weights of a layer of cells, packed once and then only read.
///
/// BlockUpdate lie in panels of 16, of which each gate has a vector. Where no more than 8 units are left for the last panel, two gates
/// share a vector.
#[derive(Clone, Debug)]
pub struct CellWeights {
    cell: Cell,
    inputs: usize,
    hidden: usize,
    blocks: Vec<PanelBlock>,
}

/// Panels whose sums are computed together.
#[derive(Clone, Debug)]
struct PanelBlock {
    /// The panel that it begins with.
    first: usize,
    shape: BlockShape,
    /// The gates that the state waits for, panel by panel.
    critical: GateWeights,
    /// The gate that can wait, panel by panel.
    late: GateWeights,
}

/// How many panels a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockShape {
    whole: usize,
    /// Whether one of up to 8 units follows.
    half: bool,
}

/// The weights of some vectors of sums.
#[derive(Clone, Debug)]
struct GateWeights {
    /// `[vector]`
    bias: Vec<CacheLine>,
    /// `[input][vector]`
    inputs: Vec<CacheLine>,
    /// `[state][vector]`, with zeros for states that there are not.
    states: Vec<CacheLine>,
}

impl GateWeights {
    /// Packs `value(input or bias, vector, lane)`.
    fn new(
        (inputs, hidden): (usize, usize),
        states: usize,
        vectors: usize,
        value: impl Fn(Option<usize>, usize, usize) -> f32,
    ) -> Self {
        let row = |input, vector| CacheLine(std::array::from_fn(|lane| value(input, vector, lane)));
        let rows = |input| (0..vectors).map(move |vector| (input, vector));
        let state =
            |(state, vector)| if state < hidden { row(Some(inputs + state), vector) } else { CacheLine([0.0; LANES]) };
        Self {
            bias: (0..vectors).map(|vector| row(None, vector)).collect(),
            inputs: (0..inputs).flat_map(rows).map(|(input, vector)| row(Some(input), vector)).collect(),
            states: (0..states).flat_map(rows).map(state).collect(),
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.bias) + size_of_val(&*self.inputs) + size_of_val(&*self.states)
    }
}

impl CellWeights {
    /// Inputs, weights and biases are kept within this and its negative, and states that a stream begins with have to be: far
    /// beyond what saturates a cell, so that sums are finite whatever is played.
    pub const LARGEST: f32 = 1e15;

    /// Packs `weight(gate, unit, input)`, where inputs from `inputs` on are the states, and `bias(gate, unit)`.
    ///
    /// # Panics
    /// Where there are no inputs or no units.
    pub fn new(
        cell: Cell,
        inputs: usize,
        hidden: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize, usize) -> f32,
    ) -> Self {
        assert!(inputs > 0 && hidden > 0, "a layer has inputs and units");
        let value = |gate: usize, unit: usize, input: Option<usize>| {
            let value = match input {
                _ if unit >= hidden => 0.0,
                Some(input) => weight(gate, unit, input),
                None => bias(gate, unit),
            };
            ((f64::from(value) * cell.scale(gate)) as f32).clamp(-Self::LARGEST, Self::LARGEST)
        };
        let states = match hidden {
            1..=8 => 8,
            9..=LANES => LANES,
            _ => hidden.next_multiple_of(STEP),
        };
        let order = cell.order();
        let mut blocks = Vec::new();
        let mut first = 0;
        while first * LANES < hidden {
            let left = hidden - first * LANES;
            let shape = if left > MOST_PANELS * LANES {
                BlockShape { whole: SPLIT, half: false }
            } else {
                let half = (1..=LANES / 2).contains(&(left % LANES));
                BlockShape { whole: if half { left / LANES } else { left.div_ceil(LANES) }, half }
            };
            let critical = |input, vector: usize, lane: usize| match vector.checked_sub((GATES - 1) * shape.whole) {
                None => {
                    let panel = first + vector / (GATES - 1);
                    value(order[vector % (GATES - 1)], panel * LANES + lane, input)
                }
                Some(vector) => {
                    let (next, unit) = (lane / (LANES / 2), lane % (LANES / 2));
                    value(order[2 * vector + next], (first + shape.whole) * LANES + unit, input)
                }
            };
            let late =
                |input, vector: usize, lane: usize| value(order[GATES - 1], (first + vector) * LANES + lane, input);
            blocks.push(PanelBlock {
                first,
                shape,
                critical: GateWeights::new((inputs, hidden), states, shape.critical(), critical),
                late: GateWeights::new((inputs, hidden), states, shape.whole, late),
            });
            first += shape.whole + usize::from(shape.half);
        }
        Self { cell, inputs, hidden, blocks }
    }

    /// Values of `c`, the units in whole vectors; `h` has room for two of it, of which the first is the state.
    pub fn state_len(&self) -> usize {
        self.hidden.next_multiple_of(LANES)
    }

    /// Memory that they take.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.critical.bytes() + block.late.bytes()).sum()
    }
}

impl BlockShape {
    /// Vectors of sums that the state waits for: all of a half panel.
    fn critical(self) -> usize {
        (GATES - 1) * self.whole + if self.half { GATES / 2 } else { 0 }
    }
}

impl Kernels {
    /// Runs cells over frames: `x` is `[frame][input]`, `y` `[frame][unit]`; the states `h` and `c`
    /// ([`CellWeights::state_len`]) go on from call to call. A GRU has no `c`, but room for one.
    ///
    /// # Panics
    /// When a length does not fit.
    pub fn run_cells(self, weights: &CellWeights, x: &[f32], h: &mut [f32], c: &mut [f32], y: &mut [f32]) {
        assert_eq!(x.len() * weights.hidden, y.len() * weights.inputs, "as many frames come out as go in");
        assert!(x.len().is_multiple_of(weights.inputs), "whole frames");
        let len = weights.state_len();
        assert_eq!((h.len(), c.len()), (2 * len, len), "states in whole vectors");
        self.run(RunCells { weights, x, h, c, y });
    }
}
