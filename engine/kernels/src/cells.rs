//! Recurrent layers at the rate of sound: one stream, frame after frame, all in one call.
//!
//! There a frame waits for the one before it, so what counts is the way from state to state: the sums of all four gates are
//! walked through at once, each in several chains, and the activations are the short rational ones.

use crate::Kernels;
use crate::elementary::{exp_of_gate, tanh_ratio};
use crate::matrix::Row;
use crate::simd::{Kernel, LANES, Simd};

/// Gates of a cell, as sums of its inputs and its state.
const GATES: usize = 4;

/// What a cell makes of its gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Gates i, f, g, o: `c = σ(f) · c + σ(i) · tanh(g)`, `h = σ(o) · tanh(c)`.
    Lstm,
    /// Gates r, z, n from the inputs, n from the state: `h = (1 − σ(z)) · tanh(n + σ(r) · n') + σ(z) · h`.
    Gru,
}

/// Weights of a layer of cells, packed once and then only read.
///
/// Units lie in panels of 16, of which each gate has a vector. Where no more than 8 units are left for the last panel, two gates
/// share a vector.
#[derive(Clone, Debug)]
pub struct CellWeights {
    inputs: usize,
    hidden: usize,
    panels: Vec<Panel<GATES>>,
    half: Option<Panel<{ GATES / 2 }>>,
}

/// Weights of up to 16 units, in so many vectors.
#[derive(Clone, Debug)]
struct Panel<const N: usize> {
    /// `[input, then state][vector]`
    rows: Vec<[Row; N]>,
    bias: [Row; N],
}

impl<const N: usize> Panel<N> {
    /// Gates are side by side in a vector where there are fewer vectors than gates.
    fn new(depth: usize, value: impl Fn(Option<usize>, usize, usize) -> f32) -> Self {
        let units = LANES * N / GATES;
        let pack = |input: Option<usize>| {
            std::array::from_fn(|vector| {
                Row(std::array::from_fn(|lane| {
                    let place = vector * LANES + lane;
                    value(input, place / units, place % units)
                }))
            })
        };
        Self { rows: (0..depth).map(|input| pack(Some(input))).collect(), bias: pack(None) }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.rows) + size_of_val(&self.bias)
    }
}

impl CellWeights {
    /// Packs `weight(gate, unit, input)`, where inputs from `inputs` on are the states, and `bias(gate, unit)`.
    pub fn new(
        inputs: usize,
        hidden: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let value = |first: usize, input: Option<usize>, gate: usize, unit: usize| match (first + unit, input) {
            (unit, _) if unit >= hidden => 0.0,
            (unit, Some(input)) => weight(gate, unit, input),
            (unit, None) => bias(gate, unit),
        };
        let depth = inputs + hidden;
        let with_half = (1..=LANES / 2).contains(&(hidden % LANES));
        let whole = if with_half { hidden / LANES } else { hidden.div_ceil(LANES) };
        let panel = |first: usize| Panel::new(depth, |input, gate, unit| value(first, input, gate, unit));
        Self {
            inputs,
            hidden,
            panels: (0..whole).map(|index| panel(index * LANES)).collect(),
            half: with_half.then(|| Panel::new(depth, |input, gate, unit| value(whole * LANES, input, gate, unit))),
        }
    }

    /// Values of `c`, the units in whole vectors; `h` has room for two of it, of which the first is the state.
    pub fn state_len(&self) -> usize {
        self.hidden.next_multiple_of(LANES)
    }

    /// Memory that they take.
    pub fn bytes(&self) -> usize {
        self.panels.iter().map(Panel::bytes).sum::<usize>() + self.half.as_ref().map_or(0, Panel::bytes)
    }
}

struct Run<'a> {
    cell: Cell,
    weights: &'a CellWeights,
    x: &'a [f32],
    h: &'a mut [f32],
    c: &'a mut [f32],
    y: &'a mut [f32],
}

impl Kernel for Run<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Run { cell, weights: CellWeights { inputs, hidden, panels, half }, x, h, c, y } = self;
        let (mut h, mut next_h) = h.split_at_mut(hidden.next_multiple_of(LANES));
        let frames = x.chunks_exact(*inputs).zip(y.chunks_exact_mut(*hidden));
        let odd = frames.len() % 2 == 1;
        for (x, y) in frames {
            for (index, panel) in panels.iter().enumerate() {
                let gates: [S::V; GATES] = if S::MANY_REGISTERS {
                    sums::<S, GATES, GATES, 2>(s, panel, x, h, 0)
                } else {
                    let [a, b] = sums::<S, GATES, 2, 2>(s, panel, x, h, 0);
                    let [c, d] = sums::<S, GATES, 2, 2>(s, panel, x, h, 2);
                    [a, b, c, d]
                };
                Units { index, h, next_h, c, y }.update(s, cell, gates);
            }
            if let Some(panel) = half {
                let [ab, cd] = if S::MANY_REGISTERS {
                    sums::<S, 2, 2, 4>(s, panel, x, h, 0)
                } else {
                    let [ab] = sums::<S, 2, 1, 4>(s, panel, x, h, 0);
                    let [cd] = sums::<S, 2, 1, 4>(s, panel, x, h, 1);
                    [ab, cd]
                };
                let gates = [ab, s.high_half(ab), cd, s.high_half(cd)];
                Units { index: panels.len(), h, next_h, c, y }.update(s, cell, gates);
            }
            // Not before all panels have seen the state.
            std::mem::swap(&mut h, &mut next_h);
        }
        if odd {
            next_h.copy_from_slice(h);
        }
    }
}

/// The units of one panel, before and after a frame.
struct Units<'a> {
    index: usize,
    h: &'a [f32],
    next_h: &'a mut [f32],
    c: &'a mut [f32],
    y: &'a mut [f32],
}

impl Units<'_> {
    #[inline(always)]
    fn update<S: Simd>(self, s: S, cell: Cell, gates: [S::V; GATES]) {
        let Self { index, h, next_h, c, y } = self;
        let held = &mut c.as_chunks_mut::<LANES>().0[index];
        let next = match cell {
            Cell::Lstm => {
                let cell = lstm_cell(s, gates, s.load(held));
                s.store(cell, held);
                lstm_state(s, gates[3], cell)
            }
            Cell::Gru => gru_state(s, gates, s.load(&h.as_chunks::<LANES>().0[index])),
        };
        s.store(next, &mut next_h.as_chunks_mut::<LANES>().0[index]);
        let end = ((index + 1) * LANES).min(y.len());
        s.store_partial(next, &mut y[index * LANES..end]);
    }
}

// A division takes as long as ten multiply-adds, so all quotients of a formula are brought over one denominator.

/// `σ(f) · c + σ(i) · tanh(g)`
#[inline(always)]
fn lstm_cell<S: Simd>(s: S, [i, f, g, _]: [S::V; GATES], c: S::V) -> S::V {
    let (i_over, f_over, (g, g_over)) = (logistic_over(s, i), logistic_over(s, f), tanh_ratio(s, g));
    let over = s.mul(i_over, g_over);
    s.div(s.fma(g, f_over, s.mul(over, c)), s.mul(f_over, over))
}

/// `σ(o) · tanh(c)`
#[inline(always)]
fn lstm_state<S: Simd>(s: S, o: S::V, c: S::V) -> S::V {
    let (o_over, (c, c_over)) = (logistic_over(s, o), tanh_ratio(s, c));
    s.div(c, s.mul(o_over, c_over))
}

/// `(1 − σ(z)) · n + σ(z) · h` with `n = tanh(n_x + σ(r) · n_h)`
#[inline(always)]
fn gru_state<S: Simd>(s: S, [r, z, n_x, n_h]: [S::V; GATES], h: S::V) -> S::V {
    let (n, n_over) = tanh_ratio(s, s.add(s.div(n_h, logistic_over(s, r)), n_x));
    // 1 − σ(z) = e⁻ᶻ · σ(z)
    let rest = exp_of_gate(s, z);
    let over = s.add(rest, s.splat(1.0));
    s.div(s.fma(rest, n, s.mul(n_over, h)), s.mul(over, n_over))
}

/// 1/σ(x)
#[inline(always)]
fn logistic_over<S: Simd>(s: S, x: S::V) -> S::V {
    s.add(exp_of_gate(s, x), s.splat(1.0))
}

/// The sums of `G` vectors of a panel, from vector `first` on: `C` chains each, so that enough of them are on their way.
#[inline(always)]
fn sums<S: Simd, const N: usize, const G: usize, const C: usize>(
    s: S,
    panel: &Panel<N>,
    x: &[f32],
    h: &[f32],
    first: usize,
) -> [S::V; G] {
    let mut chains = [[s.splat(0.0); G]; C];
    for g in 0..G {
        chains[0][g] = s.load(&panel.bias[first + g].0);
    }
    let (from_input, from_state) = panel.rows.split_at(x.len());
    for (row, &x) in from_input.iter().zip(x) {
        let x = s.splat(x);
        for g in 0..G {
            chains[0][g] = s.fma(s.load(&row[first + g].0), x, chains[0][g]);
        }
    }
    let (together, single) = from_state.as_chunks::<C>();
    let (states, last) = h[..from_state.len()].as_chunks::<C>();
    for (rows, states) in together.iter().zip(states) {
        for c in 0..C {
            let state = s.splat(states[c]);
            for g in 0..G {
                chains[c][g] = s.fma(s.load(&rows[c][first + g].0), state, chains[c][g]);
            }
        }
    }
    for (row, &state) in single.iter().zip(last) {
        let state = s.splat(state);
        for g in 0..G {
            chains[0][g] = s.fma(s.load(&row[first + g].0), state, chains[0][g]);
        }
    }
    let mut sums = chains[0];
    for chain in &chains[1..] {
        for g in 0..G {
            sums[g] = s.add(sums[g], chain[g]);
        }
    }
    sums
}

impl Kernels {
    /// Runs cells over frames: `x` is `[frame][input]`, `y` `[frame][unit]`; the states `h` and `c`
    /// ([`CellWeights::state_len`]) go on from call to call. A GRU has no `c`, but room for one.
    ///
    /// # Panics
    /// When a length does not fit.
    pub fn run_cells(self, cell: Cell, weights: &CellWeights, x: &[f32], h: &mut [f32], c: &mut [f32], y: &mut [f32]) {
        assert!(weights.inputs > 0 && weights.hidden > 0, "a layer has inputs and units");
        assert_eq!(x.len() * weights.hidden, y.len() * weights.inputs, "as many frames come out as go in");
        assert!(x.len().is_multiple_of(weights.inputs), "whole frames");
        let len = weights.state_len();
        assert_eq!((h.len(), c.len()), (2 * len, len), "states in whole vectors");
        self.run(Run { cell, weights, x, h, c, y });
    }
}
