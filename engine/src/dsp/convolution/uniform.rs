//! Uniformly partitioned convolution, one stage at a time, so that a caller may spread a long block's work.

use std::ops::Range;
use std::sync::Arc;

use ondes_kernels::Kernels;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

/// Overlap-save: the response is cut into partitions of one block, each kept as a spectrum of two blocks. The spectra of the
/// past blocks of input wait in a line; every block of output is the sum of their products with the partitions, transformed
/// back once (F. Wefers, "Partitioned convolution algorithms for real-time auralization", 2015, ch. 4).
///
/// A block goes: [`Uniform::take`], [`Uniform::multiply`] over all partitions in order, [`Uniform::give`].
#[derive(Clone)]
pub(super) struct Uniform {
    kernels: Kernels,
    partition: usize,
    /// Floats of one spectrum: real and imaginary parts of `partition + 1` bins.
    spectrum: usize,
    /// `[partition of the response][bin][re, im]`, scaled for the inverse transform; clones share it.
    response: Arc<[f32]>,
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

impl Uniform {
    /// For `impulse` and blocks of `partition` samples, which must not be 0. An empty response gives silence.
    pub fn new(impulse: &[f32], partition: usize, kernels: Kernels) -> Self {
        let mut planner = RealFftPlanner::new();
        let forward = planner.plan_fft_forward(2 * partition);
        let inverse = planner.plan_fft_inverse(2 * partition);
        let spectrum = 2 * (partition + 1);
        let partitions = impulse.len().div_ceil(partition).max(1);
        let scratch = forward.get_scratch_len().max(inverse.get_scratch_len());
        let mut response = vec![0.0; partitions * spectrum];
        let mut uniform = Self {
            kernels,
            partition,
            spectrum,
            response: Arc::new([]),
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
            uniform.samples.fill(0.0);
            for (slot, &sample) in uniform.samples.iter_mut().zip(part) {
                *slot = scale * sample;
            }
            uniform.transform();
            interleave(&uniform.bins, &mut response[index * spectrum..][..spectrum]);
        }
        uniform.response = response.into();
        uniform
    }

    /// How many partitions the response has.
    pub fn partitions(&self) -> usize {
        self.response.len() / self.spectrum
    }

    /// Takes the next block of input. Samples that are not finite count as silence.
    pub fn take(&mut self, input: &[f32]) {
        let (partition, spectrum) = (self.partition, self.spectrum);
        self.samples[..partition].copy_from_slice(&self.previous);
        for (slot, &sample) in self.previous.iter_mut().zip(input) {
            *slot = if sample.is_finite() { sample } else { 0.0 };
        }
        self.samples[partition..].copy_from_slice(&self.previous);
        self.transform();
        self.newest = if self.newest + 1 == self.partitions() { 0 } else { self.newest + 1 };
        interleave(&self.bins, &mut self.line[self.newest * spectrum..][..spectrum]);
        self.sum.fill(0.0);
    }

    /// Adds the products of some partitions.
    pub fn multiply(&mut self, partitions: Range<usize>) {
        let spectrum = self.spectrum;
        // From the newest slot back to the first, then from the last on: two runs of the line, met by ascending partitions.
        let (recent, old) = self.line.split_at((self.newest + 1) * spectrum);
        let past = recent.rchunks_exact(spectrum).chain(old.rchunks_exact(spectrum));
        let pairs = past.zip(self.response.chunks_exact(spectrum));
        for (block, part) in pairs.skip(partitions.start).take(partitions.len()) {
            self.kernels.complex_multiply_add(&mut self.sum, block, part);
        }
    }

    /// Gives the block of output.
    pub fn give(&mut self, output: &mut [f32]) {
        for (bin, pair) in self.bins.iter_mut().zip(self.sum.chunks_exact(2)) {
            *bin = Complex::new(pair[0], pair[1]);
        }
        // Products of real numbers, but the transform insists.
        self.bins[0].im = 0.0;
        self.bins[self.partition].im = 0.0;
        self.inverse
            .process_with_scratch(&mut self.bins, &mut self.samples, &mut self.scratch)
            .expect("the buffers were made by the plan, and both ends are real");
        // The first half is wrapped around.
        output.copy_from_slice(&self.samples[self.partition..]);
    }

    /// Forgets all input.
    pub fn reset(&mut self) {
        self.line.fill(0.0);
        self.previous.fill(0.0);
        self.sum.fill(0.0);
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
