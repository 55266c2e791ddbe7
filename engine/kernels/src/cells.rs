//! Recurrent layers at audio rate: all frames of one stream in one call.
//!
//! Each frame waits for the state of the one before it, so the latency from state to state decides.
//! The *critical* gates, on which that path depends, are summed first; the *late* gate is summed
//! while their activations are computed. [`run`] has the sums and [`formula`] the activations.

mod formula;
mod run;

use std::f64::consts::LOG2_E;

use crate::Kernels;
use crate::matrix::CacheLine;
use crate::simd::LANES;
use run::RunCells;

/// Gates per cell; each is a weighted sum of inputs and state.
const GATES: usize = 4;

/// Maximum number of panels per block: the sums of more leave no registers for the activations.
const MAX_PANELS: usize = 3;

/// Panels per block, except for the last, if there are more than [`MAX_PANELS`].
const PANELS_PER_SPLIT_BLOCK: usize = 2;

/// States that are multiplied at a time.
const STATES_PER_STEP: usize = 4;

/// Kind of recurrent cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// Gates i, f, g, o: `c = σ(f) · c + σ(i) · tanh(g)`, `h = σ(o) · tanh(c)`.
    Lstm,
    /// Gates r, z, n from the inputs, n from the state:
    /// `h = (1 − σ(z)) · tanh(n + σ(r) · n') + σ(z) · h`.
    Gru,
}

impl CellKind {
    /// Returns the gates in the order in which they are needed; the last one is the late gate.
    fn order(self) -> [usize; GATES] {
        match self {
            CellKind::Lstm => [0, 1, 2, 3],
            CellKind::Gru => [0, 2, 3, 1],
        }
    }

    /// Returns the factor of a gate's sum: σ is computed with a power of two, `1/(1 + 2ˣ)`.
    fn scale(self, gate: usize) -> f64 {
        let with_tanh = match self {
            CellKind::Lstm => gate == 2,
            CellKind::Gru => gate >= 2,
        };
        if with_tanh { 1.0 } else { -LOG2_E }
    }
}

/// Weights of a recurrent layer, packed on construction.
///
/// Units are in panels of 16, with one vector per gate. If the last panel has at most 8 units, two
/// gates share a vector.
#[derive(Clone, Debug)]
pub struct CellWeights {
    cell: CellKind,
    inputs: usize,
    hidden: usize,
    blocks: Vec<PanelBlock>,
}

/// Panels whose sums are computed together.
#[derive(Clone, Debug)]
struct PanelBlock {
    /// First panel.
    first: usize,
    shape: BlockShape,
    /// Critical gates, panel by panel.
    critical: GateWeights,
    /// Late gate, panel by panel.
    late: GateWeights,
}

/// Number of panels of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockShape {
    whole: usize,
    /// Set if a panel of up to 8 units follows.
    half: bool,
}

/// Weights of some vectors of sums.
#[derive(Clone, Debug)]
struct GateWeights {
    /// `[vector]`
    bias: Vec<CacheLine>,
    /// `[input][vector]`
    inputs: Vec<CacheLine>,
    /// `[state][vector]`, padded with zeros.
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
        let state = |(state, vector)| {
            if state < hidden {
                row(Some(inputs + state), vector)
            } else {
                CacheLine([0.0; LANES])
            }
        };
        Self {
            bias: (0..vectors).map(|vector| row(None, vector)).collect(),
            inputs: (0..inputs)
                .flat_map(rows)
                .map(|(input, vector)| row(Some(input), vector))
                .collect(),
            states: (0..states).flat_map(rows).map(state).collect(),
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.bias) + size_of_val(&*self.inputs) + size_of_val(&*self.states)
    }
}

impl CellWeights {
    /// Limit of the magnitude of inputs, weights and biases, so that sums are finite for any input;
    /// far beyond what saturates a cell. Initial states must be within it as well.
    pub const LARGEST: f32 = 1e15;

    /// Packs `weight(gate, unit, input)`, where inputs from `inputs` on are the states, and
    /// `bias(gate, unit)`.
    ///
    /// # Panics
    /// If `inputs` or `hidden` is 0.
    pub fn new(
        cell: CellKind,
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
            _ => hidden.next_multiple_of(STATES_PER_STEP),
        };
        let order = cell.order();
        let mut blocks = Vec::new();
        let mut first = 0;
        while first * LANES < hidden {
            let left = hidden - first * LANES;
            let shape = if left > MAX_PANELS * LANES {
                BlockShape {
                    whole: PANELS_PER_SPLIT_BLOCK,
                    half: false,
                }
            } else {
                let half = (1..=LANES / 2).contains(&(left % LANES));
                BlockShape {
                    whole: if half {
                        left / LANES
                    } else {
                        left.div_ceil(LANES)
                    },
                    half,
                }
            };
            let critical = |input, vector: usize, lane: usize| match vector
                .checked_sub((GATES - 1) * shape.whole)
            {
                None => {
                    let panel = first + vector / (GATES - 1);
                    value(order[vector % (GATES - 1)], panel * LANES + lane, input)
                }
                Some(vector) => {
                    let (next, unit) = (lane / (LANES / 2), lane % (LANES / 2));
                    value(
                        order[2 * vector + next],
                        (first + shape.whole) * LANES + unit,
                        input,
                    )
                }
            };
            let late = |input, vector: usize, lane: usize| {
                value(order[GATES - 1], (first + vector) * LANES + lane, input)
            };
            blocks.push(PanelBlock {
                first,
                shape,
                critical: GateWeights::new((inputs, hidden), states, shape.critical(), critical),
                late: GateWeights::new((inputs, hidden), states, shape.whole, late),
            });
            first += shape.whole + usize::from(shape.half);
        }
        Self {
            cell,
            inputs,
            hidden,
            blocks,
        }
    }

    /// Returns the length of `c`: the units, padded to whole vectors. `h` is twice as long; its
    /// first half is the state.
    pub fn state_len(&self) -> usize {
        self.hidden.next_multiple_of(LANES)
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> usize {
        self.blocks
            .iter()
            .map(|block| block.critical.bytes() + block.late.bytes())
            .sum()
    }
}

impl BlockShape {
    /// Returns the vectors of critical sums, which include all sums of a half panel.
    fn critical(self) -> usize {
        (GATES - 1) * self.whole + if self.half { GATES / 2 } else { 0 }
    }
}

impl Kernels {
    /// Runs cells over frames: `x` is `[frame][input]`, `y` is `[frame][unit]`. The states `h` and
    /// `c`, whose lengths are those of [`CellWeights::state_len`], carry over from call to call. A
    /// GRU ignores `c`.
    ///
    /// ```
    /// use ondes_kernels::{CellKind, CellWeights, Kernels};
    ///
    /// // One unit whose gates ignore everything: σ(0) · tanh(0) = 0.
    /// let weights = CellWeights::new(CellKind::Lstm, 1, 1, |_, _, _| 0.0, |_, _| 0.0);
    /// let (mut h, mut c) = (vec![0.0; 2 * weights.state_len()], vec![0.0; weights.state_len()]);
    /// let mut y = [1.0; 3];
    /// Kernels::detect().run_cells(&weights, &[0.1, 0.2, 0.3], &mut h, &mut c, &mut y);
    /// assert_eq!(y, [0.0; 3]);
    /// ```
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn run_cells(
        self,
        weights: &CellWeights,
        x: &[f32],
        h: &mut [f32],
        c: &mut [f32],
        y: &mut [f32],
    ) {
        assert_eq!(
            x.len() * weights.hidden,
            y.len() * weights.inputs,
            "x and y have different numbers of frames"
        );
        assert!(
            x.len().is_multiple_of(weights.inputs),
            "x is not whole frames"
        );
        let len = weights.state_len();
        assert_eq!(
            (h.len(), c.len()),
            (2 * len, len),
            "states have the wrong length"
        );
        self.run(RunCells {
            weights,
            x,
            h,
            c,
            y,
        });
    }
}
