//! Convolution with long impulse responses, such as rooms, without latency.
//!
//! The response is divided into levels: its head into partitions of one block, the rest into
//! partitions of `SPAN` blocks, and optionally of `LONG_SPAN` blocks from there on. A long
//! partition costs the same transforms per sample, but an eighth of the products. Its output begins
//! two long blocks after its input, so its work is distributed evenly over the blocks in between
//! (W. G. Gardner, "Efficient convolution without input-output delay", JAES 43(3), 1995, section
//! 3).
//!
//! [`ZeroLatencyConvolver`] accepts blocks of any length.

mod partitioned;
mod zero_latency;

pub use zero_latency::ZeroLatencyConvolver;

use ondes_kernels::Kernels;
use partitioned::PartitionedConvolver;

/// Blocks per long partition: one does the forward transform, one the inverse, the others the
/// products.
const SPAN: usize = 8;
/// Blocks per partition of the second level.
const LONG_SPAN: usize = SPAN * SPAN;

/// Convolves one channel with an impulse response, block by block. Clones share the response.
///
/// # Examples
/// ```
/// use ondes_engine::Kernels;
/// use ondes_engine::dsp::convolution::Convolver;
///
/// let mut convolver = Convolver::new(&[1.0, 0.5], 4, Kernels::detect());
/// let mut output = [0.0; 4];
/// convolver.process(&[1.0, 0.0, 0.0, 0.0], &mut output);
/// assert!((output[0] - 1.0).abs() < 1e-6 && (output[1] - 0.5).abs() < 1e-6);
/// ```
#[derive(Clone)]
pub struct Convolver {
    partition: usize,
    head: PartitionedConvolver,
    tails: Vec<LongTail>,
}

/// Level of the response that begins after `2 · span` blocks.
#[derive(Clone)]
struct LongTail {
    partitioned: PartitionedConvolver,
    /// Blocks per partition.
    span: usize,
    /// Input being collected, input being processed and current output, `span` blocks each.
    collecting: Vec<f32>,
    processing: Vec<f32>,
    output_now: Vec<f32>,
    /// Index of the current block in the long block, and its initial value; levels differ in it, so
    /// that no two transform in the same block.
    block_index: usize,
    first_block_index: usize,
}

impl Convolver {
    /// Creates a convolver for blocks of `partition` samples. An empty response gives silence.
    ///
    /// # Panics
    ///
    /// If `partition` is 0.
    pub fn new(impulse: &[f32], partition: usize, kernels: Kernels) -> Self {
        Self::in_levels(impulse, partition, &[SPAN], kernels)
    }

    /// Creates a convolver for responses of seconds in short blocks.
    ///
    /// # Panics
    ///
    /// If `partition` is 0.
    pub fn long(impulse: &[f32], partition: usize, kernels: Kernels) -> Self {
        Self::in_levels(impulse, partition, &[SPAN, LONG_SPAN], kernels)
    }

    /// Creates a level for each of the ascending `spans`.
    fn in_levels(impulse: &[f32], partition: usize, spans: &[usize], kernels: Kernels) -> Self {
        assert!(partition > 0, "a block has at least one sample");
        let begin = |level: usize| {
            spans
                .get(level)
                .map_or(usize::MAX, |span| 2 * span * partition)
                .min(impulse.len())
        };
        let tails = spans.iter().enumerate().filter_map(|(level, &span)| {
            let part = &impulse[begin(level)..begin(level + 1)];
            (!part.is_empty())
                .then(|| LongTail::new(part, span, level * SPAN / 2, partition, kernels))
        });
        Self {
            partition,
            head: PartitionedConvolver::new(&impulse[..begin(0)], partition, kernels),
            tails: tails.collect(),
        }
    }

    /// Returns the samples per block.
    pub fn partition(&self) -> usize {
        self.partition
    }

    /// Convolves a block: `output[n]` is the sum of `impulse[k]` times the input `k` samples before
    /// `input[n]`. Non-finite input counts as silence.
    ///
    /// # Panics
    ///
    /// If a slice is not exactly one block long.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) {
        assert_eq!(input.len(), self.partition, "input must be one block");
        assert_eq!(output.len(), self.partition, "output must be one block");
        self.head.push_block(input);
        self.head.multiply(0..self.head.partitions());
        self.head.output_block(output);
        for tail in &mut self.tails {
            tail.process(input, output);
        }
    }

    /// Takes over the state of another convolver with the same response, without allocating.
    ///
    /// # Panics
    ///
    /// If the responses differ in length.
    pub fn copy_state(&mut self, other: &Self) {
        self.head.copy_state(&other.head);
        for (tail, other) in self.tails.iter_mut().zip(&other.tails) {
            tail.partitioned.copy_state(&other.partitioned);
            tail.collecting.copy_from_slice(&other.collecting);
            tail.processing.copy_from_slice(&other.processing);
            tail.output_now.copy_from_slice(&other.output_now);
            tail.block_index = other.block_index;
        }
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        self.head.reset();
        for tail in &mut self.tails {
            tail.partitioned.reset();
            for samples in [
                &mut tail.collecting,
                &mut tail.processing,
                &mut tail.output_now,
            ] {
                samples.fill(0.0);
            }
            tail.block_index = tail.first_block_index;
        }
    }
}

impl LongTail {
    fn new(
        impulse: &[f32],
        span: usize,
        first_block_index: usize,
        partition: usize,
        kernels: Kernels,
    ) -> Self {
        let block = || vec![0.0; span * partition];
        Self {
            partitioned: PartitionedConvolver::new(impulse, span * partition, kernels),
            span,
            collecting: block(),
            processing: block(),
            output_now: block(),
            block_index: first_block_index,
            first_block_index,
        }
    }

    /// Adds the current output to a block and does this block's share of the work.
    fn process(&mut self, input: &[f32], output: &mut [f32]) {
        let start = self.block_index * input.len();
        for (out, sample) in output.iter_mut().zip(&self.output_now[start..]) {
            *out += sample;
        }
        self.collecting[start..][..input.len()].copy_from_slice(input);
        let partitions = self.partitioned.partitions();
        let share = |block_index: usize| (block_index - 1) * partitions / (self.span - 2);
        match self.block_index {
            0 => self.partitioned.push_block(&self.processing),
            block_index if block_index == self.span - 1 => {
                // The last sample of this long block has been output.
                self.partitioned.output_block(&mut self.output_now);
                std::mem::swap(&mut self.collecting, &mut self.processing);
            }
            block_index => self
                .partitioned
                .multiply(share(block_index)..share(block_index + 1)),
        }
        self.block_index = (self.block_index + 1) % self.span;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Lcg;

    fn noise(length: usize, seed: u32) -> Vec<f32> {
        let mut random = Lcg::new(seed);
        (0..length).map(|_| random.next_signed() as f32).collect()
    }

    fn direct(input: &[f32], impulse: &[f32]) -> Vec<f64> {
        let term = |n: usize, k: usize| f64::from(impulse[k]) * f64::from(input[n - k]);
        (0..input.len())
            .map(|n| (0..impulse.len().min(n + 1)).map(|k| term(n, k)).sum())
            .collect()
    }

    fn convolve(convolver: &mut Convolver, input: &[f32]) -> Vec<f32> {
        let mut output = vec![0.0; input.len()];
        let partition = convolver.partition();
        for (input, output) in input
            .chunks_exact(partition)
            .zip(output.chunks_exact_mut(partition))
        {
            convolver.process(input, output);
        }
        output
    }

    fn assert_near(found: &[f32], expected: &[f64], tolerance: f64) {
        for (n, (&found, &expected)) in found.iter().zip(expected).enumerate() {
            assert!(
                (f64::from(found) - expected).abs() < tolerance,
                "{found} for {expected} at {n}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn output_equals_direct_convolution(
            partition in prop::sample::select(vec![1_usize, 2, 7, 64, 100, 192, 256]),
            length in 0_usize..1_500,
            blocks in 1_usize..12,
        ) {
            let impulse = noise(length, 1);
            let input = noise(partition * blocks, 2);
            let found = convolve(&mut Convolver::new(&impulse, partition, Kernels::detect()), &input);
            // Sum of up to 1500 products of numbers below 1, in f32.
            assert_near(&found, &direct(&input, &impulse), 2e-4);
        }
    }

    #[test]
    fn an_impulse_gives_the_response_without_latency() {
        let impulse = noise(1_000, 3);
        let mut input = vec![0.0; 192 * 7];
        input[0] = 1.0;
        let expected: Vec<f64> = impulse
            .iter()
            .map(|&sample| f64::from(sample))
            .chain([0.0; 344])
            .collect();
        assert_near(
            &convolve(
                &mut Convolver::new(&impulse, 192, Kernels::detect()),
                &input,
            ),
            &expected,
            1e-6,
        );
    }

    #[test]
    fn long_runs_stay_exact() {
        // More than three times the length of the spectra's ring.
        let impulse: Vec<f32> = noise(10_000, 4)
            .iter()
            .enumerate()
            .map(|(n, x)| x * (-(n as f32) / 2_000.0).exp())
            .collect();
        let input = noise(192 * 160, 5);
        assert_near(
            &convolve(
                &mut Convolver::new(&impulse, 192, Kernels::detect()),
                &input,
            ),
            &direct(&input, &impulse),
            1e-4,
        );
    }

    #[test]
    fn both_levels_add_up() {
        let impulse: Vec<f32> = noise(12_000, 9)
            .iter()
            .enumerate()
            .map(|(n, x)| x * (-(n as f32) / 3_000.0).exp())
            .collect();
        let input = noise(16 * 2_000, 10);
        let found = convolve(
            &mut Convolver::long(&impulse, 16, Kernels::detect()),
            &input,
        );
        assert_near(&found, &direct(&input, &impulse), 1e-4);
    }

    #[test]
    fn reset_clears_all_state() {
        let mut convolver = Convolver::long(&noise(9_000, 6), 64, Kernels::detect());
        let input = noise(64 * 300, 7);
        let first = convolve(&mut convolver, &input);
        convolver.reset();
        assert_eq!(convolve(&mut convolver, &input), first);
    }

    #[test]
    fn non_finite_samples_count_as_silence() {
        let mut convolver = Convolver::new(&noise(300, 8), 64, Kernels::detect());
        let mut input = vec![0.0; 640];
        input[3] = f32::NAN;
        input[100] = f32::NEG_INFINITY;
        assert!(
            convolve(&mut convolver, &input)
                .iter()
                .all(|&sample| sample == 0.0)
        );
    }
}
