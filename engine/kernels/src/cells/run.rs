//! The frames, one after the other.

use std::sync::atomic::{Ordering, compiler_fence};

use super::{BlockShape, Cell, CellWeights, GATES, GateWeights, PanelBlock, STEP, formula};
use crate::matrix::CacheLine;
use crate::simd::{Kernel, LANES, Simd};

pub(super) struct RunCells<'a> {
    pub weights: &'a CellWeights,
    pub x: &'a [f32],
    pub h: &'a mut [f32],
    pub c: &'a mut [f32],
    pub y: &'a mut [f32],
}

impl Kernel for RunCells<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // The formulas are compiled into loops of their own.
        match self.weights.cell {
            Cell::Lstm => self.all(s, Cell::Lstm),
            Cell::Gru => self.all(s, Cell::Gru),
        }
    }
}

impl RunCells<'_> {
    #[inline(always)]
    fn all<S: Simd>(self, s: S, cell: Cell) {
        match self.weights.blocks[..] {
            [PanelBlock { shape: BlockShape { whole: 0, .. }, .. }] => self.one_panel::<S, 2, 0, 8>(s, cell),
            [PanelBlock { shape: BlockShape { whole: 1, half: false }, .. }] => self.one_panel::<S, 3, 1, 16>(s, cell),
            _ => self.panels(s, cell),
        }
    }

    /// A layer of at most `STATES` units: what the state waits for is taken from a register.
    #[inline(always)]
    fn one_panel<S: Simd, const CRITICAL: usize, const LATE: usize, const STATES: usize>(self, s: S, cell: Cell) {
        let RunCells { weights, x, h, c, y } = self;
        let PanelBlock { critical, late, .. } = &weights.blocks[0];
        // Numbers of rows that the compiler knows.
        let (states, late_states) = (&critical.states[..CRITICAL * STATES], &late.states[..LATE * STATES]);
        let (held_h, held_c) = (&mut h.as_chunks_mut::<LANES>().0[0], &mut c.as_chunks_mut::<LANES>().0[0]);
        let (mut h, mut c) = (s.load(held_h), s.load(held_c));
        for (x, y) in x.chunks_exact(weights.inputs).zip(y.chunks_exact_mut(weights.hidden)) {
            let critical: [S::V; CRITICAL] = sums::<S, _, CRITICAL, 2, 4>(s, critical, x, states, Register(h));
            in_order();
            let late: [S::V; LATE] = sums::<S, _, LATE, 1, 4>(s, late, x, late_states, Singly(held_h));
            let begun = formula::begin(s, cell, early(s, &critical, 0), c);
            h = formula::finish(s, cell, begun, last(s, &critical, &late, 0), h);
            s.store(h, held_h);
            s.store_partial(h, y);
            if cell == Cell::Lstm {
                c = begun[0];
            }
        }
        s.store(c, held_c);
    }

    #[inline(always)]
    fn panels<S: Simd>(self, s: S, cell: Cell) {
        let RunCells { weights: CellWeights { inputs, hidden, blocks, .. }, x, h, c, y } = self;
        let (mut h, mut next_h) = h.split_at_mut(hidden.next_multiple_of(LANES));
        let frames = x.chunks_exact(*inputs).zip(y.chunks_exact_mut(*hidden));
        let odd = frames.len() % 2 == 1;
        for (x, y) in frames {
            for block in blocks {
                let units = BlockUpdate { block, x, h, next_h, c, y };
                match block.shape {
                    BlockShape { whole: 0, .. } => units.update::<S, 1, 2, 0, 4>(s, cell),
                    BlockShape { whole: 1, half: false } => units.update::<S, 1, 3, 1, 4>(s, cell),
                    BlockShape { whole: 1, half: true } => units.update::<S, 2, 5, 1, 2>(s, cell),
                    BlockShape { whole: 2, half: false } => units.update::<S, 2, 6, 2, 2>(s, cell),
                    BlockShape { whole: 2, half: true } => units.update::<S, 3, 8, 2, 2>(s, cell),
                    BlockShape { .. } => units.update::<S, 3, 9, 3, 2>(s, cell),
                }
            }
            // Not before all blocks have seen the state.
            std::mem::swap(&mut h, &mut next_h);
        }
        if odd {
            next_h.copy_from_slice(h);
        }
    }
}

/// The units of one block, before and after a frame.
struct BlockUpdate<'a> {
    block: &'a PanelBlock,
    x: &'a [f32],
    h: &'a [f32],
    next_h: &'a mut [f32],
    c: &'a mut [f32],
    y: &'a mut [f32],
}

impl BlockUpdate<'_> {
    /// `PANELS` with a half one, `CRITICAL` and `LATE` vectors of sums, the former in `CHAINS` chains each.
    #[inline(always)]
    fn update<S: Simd, const PANELS: usize, const CRITICAL: usize, const LATE: usize, const CHAINS: usize>(
        self,
        s: S,
        cell: Cell,
    ) {
        let Self { block: PanelBlock { first, critical, late, .. }, x, h, next_h, c, y } = self;
        let held_h = &h.as_chunks().0[*first..first + PANELS];
        let next_h = &mut next_h.as_chunks_mut().0[*first..first + PANELS];
        let held_c = &mut c.as_chunks_mut().0[*first..first + PANELS];
        let critical: [S::V; CRITICAL] = sums::<S, _, CRITICAL, 2, CHAINS>(s, critical, x, &critical.states, h);
        in_order();
        // One multiply-add for each state takes it with its load.
        let late: [S::V; LATE] = if LATE == 1 {
            sums::<S, _, LATE, 1, 4>(s, late, x, &late.states, Singly(h))
        } else {
            sums::<S, _, LATE, 1, 4>(s, late, x, &late.states, h)
        };
        let mut begun = [[s.splat(0.0); 2]; PANELS];
        for panel in 0..PANELS {
            begun[panel] = formula::begin(s, cell, early(s, &critical, panel), s.load(&held_c[panel]));
            if cell == Cell::Lstm {
                s.store(begun[panel][0], &mut held_c[panel]);
            }
        }
        for panel in 0..PANELS {
            let late = last(s, &critical, &late, panel);
            let next = formula::finish(s, cell, begun[panel], late, s.load(&held_h[panel]));
            s.store(next, &mut next_h[panel]);
            let start = (first + panel) * LANES;
            let end = (start + LANES).min(y.len());
            s.store_partial(next, &mut y[start..end]);
        }
    }
}

/// The critical gates of a panel; in a half one they share vectors.
#[inline(always)]
fn early<S: Simd>(s: S, critical: &[S::V], panel: usize) -> [S::V; GATES - 1] {
    match critical[panel * (GATES - 1)..] {
        [a, b, c, ..] => [a, b, c],
        [ab, cd] => [ab, s.high_half(ab), cd],
        _ => unreachable!("a panel has two vectors or more"),
    }
}

/// The late gate of a panel.
#[inline(always)]
fn last<S: Simd>(s: S, critical: &[S::V], late: &[S::V], panel: usize) -> S::V {
    if panel < late.len() { late[panel] } else { s.high_half(critical[critical.len() - 1]) }
}

/// Keeps the loads of late sums behind the critical ones: what waits longest would else come last.
#[inline(always)]
fn in_order() {
    compiler_fence(Ordering::SeqCst);
}

/// Where the states are taken from.
trait States<S: Simd>: Copy {
    /// Four of them, each in all lanes of a vector.
    fn spread(self, s: S, index: usize) -> [S::V; STEP];
}

/// One vector of states.
#[derive(Clone, Copy)]
struct Register<V>(V);

impl<S: Simd> States<S> for Register<S::V> {
    #[inline(always)]
    fn spread(self, s: S, index: usize) -> [S::V; STEP] {
        let mut spread = [self.0; STEP];
        for k in 0..STEP {
            spread[k] = s.broadcast(self.0, index * STEP + k);
        }
        spread
    }
}

/// Each by a load of its own, which goes with its one multiply-add.
#[derive(Clone, Copy)]
struct Singly<'a>(&'a [f32]);

impl<S: Simd> States<S> for Singly<'_> {
    #[inline(always)]
    fn spread(self, s: S, index: usize) -> [S::V; STEP] {
        self.0.as_chunks::<STEP>().0[index].map(|state| s.splat(state))
    }
}

impl<S: Simd> States<S> for &[f32] {
    #[inline(always)]
    fn spread(self, s: S, index: usize) -> [S::V; STEP] {
        s.spread(&self.as_chunks().0[index])
    }
}

/// N vectors of sums in C chains each. Where registers are few, the states are walked through anew for each G of them.
#[inline(always)]
fn sums<S: Simd, H: States<S>, const N: usize, const G: usize, const C: usize>(
    s: S,
    walk: &GateWeights,
    x: &[f32],
    states: &[CacheLine],
    h: H,
) -> [S::V; N] {
    let mut all = [s.splat(0.0); N];
    if N == 0 {
        return all;
    }
    if S::MANY_REGISTERS {
        sum::<S, H, N, N, C>(s, walk, x, states, h, 0, &mut all);
    } else {
        let (together, single) = (N / G * G, N % G);
        for first in (0..together).step_by(G) {
            sum::<S, H, N, G, C>(s, walk, x, states, h, first, &mut all);
        }
        for first in together..together + single {
            sum::<S, H, N, 1, C>(s, walk, x, states, h, first, &mut all);
        }
    }
    all
}

/// G of N vectors of sums, from `first` on.
#[inline(always)]
fn sum<S: Simd, H: States<S>, const N: usize, const G: usize, const C: usize>(
    s: S,
    walk: &GateWeights,
    x: &[f32],
    states: &[CacheLine],
    h: H,
    first: usize,
    all: &mut [S::V; N],
) {
    let mut chains = [[s.splat(0.0); G]; C];
    for g in 0..G {
        chains[0][g] = s.load(&walk.bias[first + g].0);
    }
    for (row, &x) in walk.inputs.as_chunks::<N>().0.iter().zip(x) {
        let x = s.splat(x.clamp(-CellWeights::LARGEST, CellWeights::LARGEST));
        for g in 0..G {
            chains[0][g] = s.fma(s.load(&row[first + g].0), x, chains[0][g]);
        }
    }
    for (index, rows) in states.as_chunks::<N>().0.as_chunks::<STEP>().0.iter().enumerate() {
        let states = h.spread(s, index);
        for k in 0..STEP {
            for g in 0..G {
                chains[k % C][g] = s.fma(s.load(&rows[k][first + g].0), states[k], chains[k % C][g]);
            }
        }
    }
    for g in 0..G {
        // As a tree: the state waits for it.
        let mut left = C;
        while left > 1 {
            left /= 2;
            for c in 0..left {
                chains[c][g] = s.add(chains[c][g], chains[c + left][g]);
            }
        }
        all[first + g] = chains[0][g];
    }
}
