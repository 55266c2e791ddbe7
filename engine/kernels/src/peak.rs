//! Peak rate of multiply-adds: the measure for the efficiency of the other kernels.

use crate::Kernels;
use crate::simd::{Kernel, LANES, Simd};

/// Independent chains: enough to hide the latency of a multiply-add in every variant.
const CHAINS: usize = 12;

struct MultiplyAdds<'a> {
    rounds: u32,
    /// Number of multiply-adds done.
    count: &'a mut u64,
}

impl Kernel for MultiplyAdds<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if S::MANY_REGISTERS {
            self.chains::<S, CHAINS>(s)
        } else {
            self.chains::<S, { CHAINS / 2 }>(s)
        }
    }
}

impl MultiplyAdds<'_> {
    #[inline(always)]
    fn chains<S: Simd, const C: usize>(self, s: S) {
        let factor = s.splat(std::hint::black_box(0.5));
        let mut chains = [factor; C];
        for _ in 0..self.rounds {
            for c in 0..C {
                chains[c] = s.fma(chains[c], factor, factor);
            }
        }
        *self.count = u64::from(self.rounds) * (C * LANES) as u64;
        let mut lanes = [0.0; LANES];
        for chain in chains {
            s.store(chain, &mut lanes);
            std::hint::black_box(lanes);
        }
    }
}

impl Kernels {
    /// Runs `rounds` rounds of independent multiply-adds and returns their number; divided by the
    /// time taken, it is the peak rate of this core.
    pub fn multiply_adds(self, rounds: u32) -> u64 {
        let mut count = 0;
        self.run(MultiplyAdds {
            rounds,
            count: &mut count,
        });
        count
    }
}
