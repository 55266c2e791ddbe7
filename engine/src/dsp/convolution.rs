//! Convolution with a long impulse response, such as a room.
//!
//! Uniformly partitioned overlap-save: the response is cut into partitions of one block, each kept as a spectrum of two
//! blocks. The spectra of the past blocks of input wait in a line; every block of output is the sum of their products with
//! the partitions, transformed back once (W. G. Gardner, "Efficient convolution without input-output delay", JAES 43(3),
//! 1995, for the uniform case; F. Wefers, "Partitioned convolution algorithms for real-time auralization", 2015, ch. 4).

use std::sync::Arc;

use ondes_kernels::Kernels;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

/// Convolves one channel with an impulse response, block by block, without latency.
///
/// A block of 192 samples at 48 kHz with 2 s of response costs 500 products of 193 complex numbers; the cost grows with the
/// length of the response and falls with the length of the block.
pub struct Convolver {
    kernels: Kernels,
    partition: usize,
    /// Floats of one spectrum: real and imaginary parts of `partition + 1` bins.
    spectrum: usize,
    /// `[partition of the response][bin][re, im]`, scaled for the inverse transform.
    response: Vec<f32>,
    /// `[slot][bin][re, im]`: spectra of past input, as many as the response has partitions. The newest is in slot `newest`.
    line: Vec<f32>,
    newest: usize,
    sum: Vec<f32>,
    /// The previous block of input; the transform takes it and the present one.
    previous: Vec<f32>,
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
    samples: Vec<f32>,
    bins: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl Convolver {
    /// A convolver with `impulse` that takes blocks of `partition` samples.
    ///
    /// An empty response gives silence.
    ///
    /// # Panics
    ///
    /// If `partition` is 0.
    pub fn new(impulse: &[f32], partition: usize, kernels: Kernels) -> Self {
        assert!(partition > 0, "a block has at least one sample");
        let mut planner = RealFftPlanner::new();
        let forward = planner.plan_fft_forward(2 * partition);
        let inverse = planner.plan_fft_inverse(2 * partition);
        let spectrum = 2 * (partition + 1);
        let partitions = impulse.len().div_ceil(partition).max(1);
        let scratch = forward.get_scratch_len().max(inverse.get_scratch_len());
        let mut convolver = Self {
            kernels,
            partition,
            spectrum,
            response: vec![0.0; partitions * spectrum],
            line: vec![0.0; partitions * spectrum],
            newest: 0,
            sum: vec![0.0; spectrum],
            previous: vec![0.0; partition],
            samples: forward.make_input_vec(),
            bins: forward.make_output_vec(),
            scratch: vec![Complex::default(); scratch],
            forward,
            inverse,
        };
        let scale = 1.0 / (2 * partition) as f32;
        for (index, part) in impulse.chunks(partition).enumerate() {
            convolver.samples.fill(0.0);
            for (slot, &sample) in convolver.samples.iter_mut().zip(part) {
                *slot = scale * sample;
            }
            convolver.transform();
            interleave(&convolver.bins, &mut convolver.response[index * spectrum..][..spectrum]);
        }
        convolver
    }

    /// Samples per block.
    pub fn partition(&self) -> usize {
        self.partition
    }

    /// Convolves the next block: `output[n]` is the sum of `impulse[k]` times the input `k` samples before `input[n]`.
    ///
    /// Samples of input that are not finite count as silence.
    ///
    /// # Panics
    ///
    /// If either slice is not exactly one block.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) {
        let (partition, spectrum) = (self.partition, self.spectrum);
        assert_eq!(input.len(), partition, "input is one block");
        assert_eq!(output.len(), partition, "output is one block");
        self.samples[..partition].copy_from_slice(&self.previous);
        for (slot, &sample) in self.previous.iter_mut().zip(input) {
            *slot = if sample.is_finite() { sample } else { 0.0 };
        }
        self.samples[partition..].copy_from_slice(&self.previous);
        self.transform();

        let slots = self.line.len() / spectrum;
        self.newest = if self.newest + 1 == slots { 0 } else { self.newest + 1 };
        interleave(&self.bins, &mut self.line[self.newest * spectrum..][..spectrum]);
        self.sum.fill(0.0);
        // From the newest slot back to the first, then from the last on: two runs of the line, met by ascending partitions.
        let (recent, old) = self.line.split_at((self.newest + 1) * spectrum);
        let past = recent.rchunks_exact(spectrum).chain(old.rchunks_exact(spectrum));
        for (block, part) in past.zip(self.response.chunks_exact(spectrum)) {
            self.kernels.complex_multiply_add(&mut self.sum, block, part);
        }

        for (bin, pair) in self.bins.iter_mut().zip(self.sum.chunks_exact(2)) {
            *bin = Complex::new(pair[0], pair[1]);
        }
        // Products of real numbers, but the transform insists.
        self.bins[0].im = 0.0;
        self.bins[partition].im = 0.0;
        self.inverse
            .process_with_scratch(&mut self.bins, &mut self.samples, &mut self.scratch)
            .expect("the buffers were made by the plan, and both ends are real");
        // The first half is wrapped around.
        output.copy_from_slice(&self.samples[partition..]);
    }

    /// Forgets all input.
    pub fn reset(&mut self) {
        self.line.fill(0.0);
        self.previous.fill(0.0);
        self.newest = 0;
    }

    fn transform(&mut self) {
        self.forward
            .process_with_scratch(&mut self.samples, &mut self.bins, &mut self.scratch)
            .expect("the buffers were made by the plan");
    }
}

fn interleave(bins: &[Complex<f32>], floats: &mut [f32]) {
    for (pair, bin) in floats.chunks_exact_mut(2).zip(bins) {
        pair.copy_from_slice(&[bin.re, bin.im]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn noise(length: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0) as f32
        };
        (0..length).map(|_| next()).collect()
    }

    fn direct(input: &[f32], impulse: &[f32]) -> Vec<f64> {
        let term = |n: usize, k: usize| f64::from(impulse[k]) * f64::from(input[n - k]);
        (0..input.len()).map(|n| (0..impulse.len().min(n + 1)).map(|k| term(n, k)).sum()).collect()
    }

    fn convolve(convolver: &mut Convolver, input: &[f32]) -> Vec<f32> {
        let mut output = vec![0.0; input.len()];
        let partition = convolver.partition();
        for (input, output) in input.chunks_exact(partition).zip(output.chunks_exact_mut(partition)) {
            convolver.process(input, output);
        }
        output
    }

    fn assert_near(found: &[f32], expected: &[f64], tolerance: f64) {
        for (n, (&found, &expected)) in found.iter().zip(expected).enumerate() {
            assert!((f64::from(found) - expected).abs() < tolerance, "{found} for {expected} at {n}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn equals_the_sum(
            partition in prop::sample::select(vec![1_usize, 2, 7, 64, 100, 192, 256]),
            length in 0_usize..1_500,
            blocks in 1_usize..12,
        ) {
            let impulse = noise(length, 1);
            let input = noise(partition * blocks, 2);
            let found = convolve(&mut Convolver::new(&impulse, partition, Kernels::detect()), &input);
            // A sum of up to 1500 products of numbers below 1, in f32.
            assert_near(&found, &direct(&input, &impulse), 2e-4);
        }
    }

    #[test]
    fn an_impulse_gives_the_response_at_once() {
        let impulse = noise(1_000, 3);
        let mut input = vec![0.0; 192 * 7];
        input[0] = 1.0;
        let expected: Vec<f64> = impulse.iter().map(|&sample| f64::from(sample)).chain([0.0; 344]).collect();
        assert_near(&convolve(&mut Convolver::new(&impulse, 192, Kernels::detect()), &input), &expected, 1e-6);
    }

    #[test]
    fn long_responses_and_runs_stay_exact() {
        // Round the line three times.
        let impulse: Vec<f32> =
            noise(10_000, 4).iter().enumerate().map(|(n, x)| x * (-(n as f32) / 2_000.0).exp()).collect();
        let input = noise(192 * 160, 5);
        assert_near(
            &convolve(&mut Convolver::new(&impulse, 192, Kernels::detect()), &input),
            &direct(&input, &impulse),
            1e-4,
        );
    }

    #[test]
    fn reset_forgets() {
        let mut convolver = Convolver::new(&noise(900, 6), 64, Kernels::detect());
        let input = noise(64 * 30, 7);
        let first = convolve(&mut convolver, &input);
        convolver.reset();
        assert_eq!(convolve(&mut convolver, &input), first);
    }

    #[test]
    fn hostile_samples_count_as_silence() {
        let mut convolver = Convolver::new(&noise(300, 8), 64, Kernels::detect());
        let mut input = vec![0.0; 640];
        input[3] = f32::NAN;
        input[100] = f32::NEG_INFINITY;
        assert!(convolve(&mut convolver, &input).iter().all(|&sample| sample == 0.0));
    }
}
