//! Loop over the frames, and the sums of the gates.

use std::sync::atomic::{Ordering, compiler_fence};

use super::{
    BlockShape, CellKind, CellWeights, GATES, GateWeights, PanelBlock, STATES_PER_STEP, formula,
};
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
        // A constant kind lets the compiler specialise the loop.
        match self.weights.cell {
            CellKind::Lstm => self.all(s, CellKind::Lstm),
            CellKind::Gru => self.all(s, CellKind::Gru),
        }
    }
}

impl RunCells<'_> {
    #[inline(always)]
    fn all<S: Simd>(self, s: S, cell: CellKind) {
        match self.weights.blocks[..] {
            [
                PanelBlock {
                    shape: BlockShape { whole: 0, .. },
                    ..
                },
            ] => self.one_panel::<S, 2, 0, 8>(s, cell),
            [
                PanelBlock {
                    shape:
                        BlockShape {
                            whole: 1,
                            half: false,
                        },
                    ..
                },
            ] => self.one_panel::<S, 3, 1, 16>(s, cell),
            _ => self.panels(s, cell),
        }
    }

    /// Runs a layer of at most `STATES` units, whose critical sums read the state from a register.
    #[inline(always)]
    fn one_panel<S: Simd, const CRITICAL: usize, const LATE: usize, const STATES: usize>(
        self,
        s: S,
        cell: CellKind,
    ) {
        let RunCells {
            weights,
            x,
            h,
            c,
            y,
        } = self;
        let PanelBlock { critical, late, .. } = &weights.blocks[0];
        // Lengths known to the compiler.
        let (states, late_states) = (
            &critical.states[..CRITICAL * STATES],
            &late.states[..LATE * STATES],
        );
        let (held_h, held_c) = (
            &mut h.as_chunks_mut::<LANES>().0[0],
            &mut c.as_chunks_mut::<LANES>().0[0],
        );
        let (mut h, mut c) = (s.load(held_h), s.load(held_c));
        for (x, y) in x
            .chunks_exact(weights.inputs)
            .zip(y.chunks_exact_mut(weights.hidden))
        {
            let critical: [S::V; CRITICAL] =
                sums::<S, _, CRITICAL, 2, 4>(s, critical, x, states, FromRegister(h));
            order_loads();
            let late: [S::V; LATE] =
                sums::<S, _, LATE, 1, 4>(s, late, x, late_states, FromMemory(held_h));
            let partial = formula::update_critical(s, cell, critical_gates(s, &critical, 0), c);
            h = formula::next_state(s, cell, partial, late_gate(s, &critical, &late, 0), h);
            s.store(h, held_h);
            s.store_partial(h, y);
            if cell == CellKind::Lstm {
                c = partial[0];
            }
        }
        s.store(c, held_c);
    }

    #[inline(always)]
    fn panels<S: Simd>(self, s: S, cell: CellKind) {
        let RunCells {
            weights:
                CellWeights {
                    inputs,
                    hidden,
                    blocks,
                    ..
                },
            x,
            h,
            c,
            y,
        } = self;
        let (mut h, mut next_h) = h.split_at_mut(hidden.next_multiple_of(LANES));
        let frames = x.chunks_exact(*inputs).zip(y.chunks_exact_mut(*hidden));
        let odd = frames.len() % 2 == 1;
        for (x, y) in frames {
            for block in blocks {
                let units = BlockUpdate {
                    block,
                    x,
                    h,
                    next_h,
                    c,
                    y,
                };
                match block.shape {
                    BlockShape { whole: 0, .. } => units.update::<S, 1, 2, 0, 4>(s, cell),
                    BlockShape {
                        whole: 1,
                        half: false,
                    } => units.update::<S, 1, 3, 1, 4>(s, cell),
                    BlockShape {
                        whole: 1,
                        half: true,
                    } => units.update::<S, 2, 5, 1, 2>(s, cell),
                    BlockShape {
                        whole: 2,
                        half: false,
                    } => units.update::<S, 2, 6, 2, 2>(s, cell),
                    BlockShape {
                        whole: 2,
                        half: true,
                    } => units.update::<S, 3, 8, 2, 2>(s, cell),
                    BlockShape { .. } => units.update::<S, 3, 9, 3, 2>(s, cell),
                }
            }
            // Only after all blocks have read the state.
            std::mem::swap(&mut h, &mut next_h);
        }
        if odd {
            next_h.copy_from_slice(h);
        }
    }
}

/// Update of the units of one block for one frame.
struct BlockUpdate<'a> {
    block: &'a PanelBlock,
    x: &'a [f32],
    h: &'a [f32],
    next_h: &'a mut [f32],
    c: &'a mut [f32],
    y: &'a mut [f32],
}

impl BlockUpdate<'_> {
    /// Updates `PANELS` panels, a half one included, from `CRITICAL` and `LATE` vectors of sums,
    /// the former in `CHAINS` chains each.
    #[inline(always)]
    fn update<
        S: Simd,
        const PANELS: usize,
        const CRITICAL: usize,
        const LATE: usize,
        const CHAINS: usize,
    >(
        self,
        s: S,
        cell: CellKind,
    ) {
        let Self {
            block:
                PanelBlock {
                    first,
                    critical,
                    late,
                    ..
                },
            x,
            h,
            next_h,
            c,
            y,
        } = self;
        let held_h = &h.as_chunks().0[*first..first + PANELS];
        let next_h = &mut next_h.as_chunks_mut().0[*first..first + PANELS];
        let held_c = &mut c.as_chunks_mut().0[*first..first + PANELS];
        let critical: [S::V; CRITICAL] =
            sums::<S, _, CRITICAL, 2, CHAINS>(s, critical, x, &critical.states, h);
        order_loads();
        // A single multiply-add per state includes the load as its operand.
        let late: [S::V; LATE] = if LATE == 1 {
            sums::<S, _, LATE, 1, 4>(s, late, x, &late.states, FromMemory(h))
        } else {
            sums::<S, _, LATE, 1, 4>(s, late, x, &late.states, h)
        };
        let mut partial = [[s.splat(0.0); 2]; PANELS];
        for panel in 0..PANELS {
            partial[panel] = formula::update_critical(
                s,
                cell,
                critical_gates(s, &critical, panel),
                s.load(&held_c[panel]),
            );
            if cell == CellKind::Lstm {
                s.store(partial[panel][0], &mut held_c[panel]);
            }
        }
        for panel in 0..PANELS {
            let late = late_gate(s, &critical, &late, panel);
            let next = formula::next_state(s, cell, partial[panel], late, s.load(&held_h[panel]));
            s.store(next, &mut next_h[panel]);
            let start = (first + panel) * LANES;
            let end = (start + LANES).min(y.len());
            s.store_partial(next, &mut y[start..end]);
        }
    }
}

/// Returns the critical gates of a panel; in a half panel, gates share vectors.
#[inline(always)]
fn critical_gates<S: Simd>(s: S, critical: &[S::V], panel: usize) -> [S::V; GATES - 1] {
    match critical[panel * (GATES - 1)..] {
        [a, b, c, ..] => [a, b, c],
        [ab, cd] => [ab, s.high_half(ab), cd],
        _ => unreachable!("a panel has two vectors or more"),
    }
}

/// Returns the late gate of a panel.
#[inline(always)]
fn late_gate<S: Simd>(s: S, critical: &[S::V], late: &[S::V], panel: usize) -> S::V {
    if panel < late.len() {
        late[panel]
    } else {
        s.high_half(critical[critical.len() - 1])
    }
}

/// Keeps the compiler from moving loads of late sums before those of critical ones, which have the
/// longest path.
#[inline(always)]
fn order_loads() {
    compiler_fence(Ordering::SeqCst);
}

/// Source of the states.
trait StateSource<S: Simd>: Copy {
    /// Returns [`STATES_PER_STEP`] states, each in all lanes of a vector.
    fn spread(self, s: S, index: usize) -> [S::V; STATES_PER_STEP];
}

/// States in one vector.
#[derive(Clone, Copy)]
struct FromRegister<V>(V);

impl<S: Simd> StateSource<S> for FromRegister<S::V> {
    #[inline(always)]
    fn spread(self, s: S, index: usize) -> [S::V; STATES_PER_STEP] {
        let mut spread = [self.0; STATES_PER_STEP];
        for k in 0..STATES_PER_STEP {
            spread[k] = s.broadcast(self.0, index * STATES_PER_STEP + k);
        }
        spread
    }
}

/// States in memory, each loaded by itself, as operand of its only multiply-add.
#[derive(Clone, Copy)]
struct FromMemory<'a>(&'a [f32]);

impl<S: Simd> StateSource<S> for FromMemory<'_> {
    #[inline(always)]
    fn spread(self, s: S, index: usize) -> [S::V; STATES_PER_STEP] {
        self.0.as_chunks::<STATES_PER_STEP>().0[index].map(|state| s.splat(state))
    }
}

impl<S: Simd> StateSource<S> for &[f32] {
    #[inline(always)]
    fn spread(self, s: S, index: usize) -> [S::V; STATES_PER_STEP] {
        s.spread(&self.as_chunks().0[index])
    }
}

/// Computes N vectors of sums in C chains each. With few registers, the states are read again for
/// each G vectors.
#[inline(always)]
fn sums<S: Simd, H: StateSource<S>, const N: usize, const G: usize, const C: usize>(
    s: S,
    weights: &GateWeights,
    x: &[f32],
    states: &[CacheLine],
    h: H,
) -> [S::V; N] {
    let mut all = [s.splat(0.0); N];
    if N == 0 {
        return all;
    }
    if S::MANY_REGISTERS {
        sum::<S, H, N, N, C>(s, weights, x, states, h, 0, &mut all);
    } else {
        let (together, single) = (N / G * G, N % G);
        for first in (0..together).step_by(G) {
            sum::<S, H, N, G, C>(s, weights, x, states, h, first, &mut all);
        }
        for first in together..together + single {
            sum::<S, H, N, 1, C>(s, weights, x, states, h, first, &mut all);
        }
    }
    all
}

/// Computes G of N vectors of sums, from `first` on.
#[inline(always)]
fn sum<S: Simd, H: StateSource<S>, const N: usize, const G: usize, const C: usize>(
    s: S,
    weights: &GateWeights,
    x: &[f32],
    states: &[CacheLine],
    h: H,
    first: usize,
    all: &mut [S::V; N],
) {
    let mut chains = [[s.splat(0.0); G]; C];
    for g in 0..G {
        chains[0][g] = s.load(&weights.bias[first + g].0);
    }
    for (row, &x) in weights.inputs.as_chunks::<N>().0.iter().zip(x) {
        let x = s.splat(x.clamp(-CellWeights::LARGEST, CellWeights::LARGEST));
        for g in 0..G {
            chains[0][g] = s.fma(s.load(&row[first + g].0), x, chains[0][g]);
        }
    }
    for (index, rows) in states
        .as_chunks::<N>()
        .0
        .as_chunks::<STATES_PER_STEP>()
        .0
        .iter()
        .enumerate()
    {
        let states = h.spread(s, index);
        for k in 0..STATES_PER_STEP {
            for g in 0..G {
                chains[k % C][g] =
                    s.fma(s.load(&rows[k][first + g].0), states[k], chains[k % C][g]);
            }
        }
    }
    for g in 0..G {
        // Added as a tree, for the shortest dependency chain.
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
