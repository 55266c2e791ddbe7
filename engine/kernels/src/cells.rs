//! Recurrent layers at the rate of sound: one stream, frame after frame, all in one call.
//!
//! There a frame waits for the one before it, so what counts is the way from state to state: the sums of all four gates are
//! walked through at once, each in two chains, and the activations are the short rational ones.

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
#[derive(Clone, Debug)]
pub struct CellWeights {
    inputs: usize,
    hidden: usize,
    /// `[panel of 16 units][input, then state][gate]`
    rows: Vec<[Row; GATES]>,
    /// `[panel of 16 units][gate]`
    bias: Vec<[Row; GATES]>,
}

impl CellWeights {
    /// Packs `weight(gate, unit, input)`, where inputs from `inputs` on are the states, and `bias(gate, unit)`.
    pub fn new(
        inputs: usize,
        hidden: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let panels = hidden.div_ceil(LANES);
        let pack = |panel: usize, value: &dyn Fn(usize, usize) -> f32| {
            std::array::from_fn(|gate| {
                Row(std::array::from_fn(|lane| {
                    let unit = panel * LANES + lane;
                    if unit < hidden { value(gate, unit) } else { 0.0 }
                }))
            })
        };
        let mut rows = Vec::with_capacity(panels * (inputs + hidden));
        for panel in 0..panels {
            rows.extend((0..inputs + hidden).map(|input| pack(panel, &|gate, unit| weight(gate, unit, input))));
        }
        let bias = (0..panels).map(|panel| pack(panel, &bias)).collect();
        Self { inputs, hidden, rows, bias }
    }

    /// Values of `c`, the units in whole vectors; `h` has room for two of it, of which the first is the state.
    pub fn state_len(&self) -> usize {
        self.bias.len() * LANES
    }

    /// Memory that they take.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.rows) + size_of_val(&*self.bias)
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
        let Run { cell, weights: CellWeights { inputs, hidden, rows, bias }, x, h, c, y } = self;
        let (mut h, mut next_h) = h.split_at_mut(bias.len() * LANES);
        let frames = x.chunks_exact(*inputs).zip(y.chunks_exact_mut(*hidden));
        let odd = frames.len() % 2 == 1;
        for (x, y) in frames {
            for (panel, bias) in bias.iter().enumerate() {
                let rows = &rows[panel * (inputs + hidden)..][..inputs + hidden];
                let (from_input, from_state) = rows.split_at(*inputs);
                let gates: [S::V; GATES] = if S::MANY_REGISTERS {
                    sums(s, bias, from_input, x, from_state, h, 0)
                } else {
                    let [a, b] = sums::<S, 2>(s, bias, from_input, x, from_state, h, 0);
                    let [c, d] = sums::<S, 2>(s, bias, from_input, x, from_state, h, 2);
                    [a, b, c, d]
                };
                let units = panel * LANES..(panel + 1) * LANES;
                let now = &h.as_chunks::<LANES>().0[panel];
                let held = &mut c[units.clone()].as_chunks_mut::<LANES>().0[0];
                let next = match cell {
                    Cell::Lstm => {
                        let cell = lstm_cell(s, gates, s.load(held));
                        s.store(cell, held);
                        lstm_state(s, gates[3], cell)
                    }
                    Cell::Gru => gru_state(s, gates, s.load(now)),
                };
                s.store(next, &mut next_h.as_chunks_mut::<LANES>().0[panel]);
                let end = units.end.min(*hidden);
                s.store_partial(next, &mut y[units.start..end]);
            }
            // Not before all panels have seen the state.
            std::mem::swap(&mut h, &mut next_h);
        }
        if odd {
            next_h.copy_from_slice(h);
        }
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

/// The sums of `G` gates of one panel, from gate `first` on: two chains each, so that enough of them are on their way.
#[inline(always)]
fn sums<S: Simd, const G: usize>(
    s: S,
    bias: &[Row; GATES],
    from_input: &[[Row; GATES]],
    x: &[f32],
    from_state: &[[Row; GATES]],
    h: &[f32],
    first: usize,
) -> [S::V; G] {
    let mut even = [s.splat(0.0); G];
    let mut odd = [s.splat(0.0); G];
    for g in 0..G {
        even[g] = s.load(&bias[first + g].0);
    }
    for (row, &x) in from_input.iter().zip(x) {
        let x = s.splat(x);
        for g in 0..G {
            even[g] = s.fma(s.load(&row[first + g].0), x, even[g]);
        }
    }
    let (pairs, single) = from_state.as_chunks::<2>();
    let (states, last) = h[..from_state.len()].as_chunks::<2>();
    for ([row, other], [x, y]) in pairs.iter().zip(states) {
        let (x, y) = (s.splat(*x), s.splat(*y));
        for g in 0..G {
            even[g] = s.fma(s.load(&row[first + g].0), x, even[g]);
            odd[g] = s.fma(s.load(&other[first + g].0), y, odd[g]);
        }
    }
    if let ([row], [x]) = (single, last) {
        let x = s.splat(*x);
        for g in 0..G {
            even[g] = s.fma(s.load(&row[first + g].0), x, even[g]);
        }
    }
    let mut sums = even;
    for g in 0..G {
        sums[g] = s.add(even[g], odd[g]);
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
