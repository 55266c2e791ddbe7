//! Uniformly partitioned convolution, one stage at a time, so that a caller may spread a long block's work.

use std::ops::Range;
use std::sync::Arc;

use ondes_kernels::Kernels;

use crate::dsp::fourier::RealFft;

/// Floats that the kernels take at a time: nothing is left over of a spectrum of so many.
const VECTOR: usize = 16;

/// Overlap-save: the response is cut into partitions of one block, each kept as a spectrum of two blocks. The spectra of the
/// past blocks of input wait in a line; every block of output is the sum of their products with the partitions, transformed
/// back once (F. Wefers, "Partitioned convolution algorithms for real-time auralization", 2015, ch. 4).
///
/// A block goes: [`PartitionedConvolver::push_block`], [`PartitionedConvolver::multiply`] over all partitions in order, [`PartitionedConvolver::output_block`].
#[derive(Clone)]
pub(super) struct PartitionedConvolver {
    kernels: Kernels,
    partition: usize,
    /// Floats of one spectrum: real and imaginary parts of `partition + 1` bins, then zeros up to whole vectors.
    spectrum: usize,
    /// `[partition of the response][bin][re, im]`, scaled for the inverse transform; clones share it.
    response: Arc<[f32]>,
    /// `[slot][bin][re, im]`: spectra of past input, as many as the response has partitions. From slot `newest` on they get
    /// older, round the end.
    past_spectra: Vec<f32>,
    newest: usize,
    /// Slots that hold input; the others, which count as silence, may hold anything.
    filled: usize,
    sum: Vec<f32>,
    /// The previous block of input; the transform takes it and the present one.
    previous: Vec<f32>,
    fft: RealFft,
    samples: Vec<f32>,
}

impl PartitionedConvolver {
    /// For `impulse` and blocks of `partition` samples, which must not be 0. An empty response gives silence.
    pub fn new(impulse: &[f32], partition: usize, kernels: Kernels) -> Self {
        let mut fft = RealFft::new(2 * partition, kernels);
        let spectrum = fft.spectrum().next_multiple_of(VECTOR);
        let partitions = impulse.len().div_ceil(partition).max(1);
        let mut response = vec![0.0; partitions * spectrum];
        let mut samples = vec![0.0; 2 * partition];
        let scale = 1.0 / (2 * partition) as f32;
        for (part, bins) in impulse.chunks(partition).zip(response.chunks_exact_mut(spectrum)) {
            samples.fill(0.0);
            for (slot, &sample) in samples.iter_mut().zip(part) {
                *slot = scale * sample;
            }
            fft.forward(&mut samples, bins);
        }
        Self {
            kernels,
            partition,
            spectrum,
            response: response.into(),
            past_spectra: vec![0.0; partitions * spectrum],
            newest: 0,
            filled: 0,
            sum: vec![0.0; spectrum],
            previous: vec![0.0; partition],
            fft,
            samples,
        }
    }

    /// How many partitions the response has.
    pub fn partitions(&self) -> usize {
        self.response.len() / self.spectrum
    }

    /// Takes the next block of input. Samples that are not finite count as silence.
    pub fn push_block(&mut self, input: &[f32]) {
        let (partition, spectrum) = (self.partition, self.spectrum);
        self.samples[..partition].copy_from_slice(&self.previous);
        for (slot, &sample) in self.previous.iter_mut().zip(input) {
            *slot = if sample.is_finite() { sample } else { 0.0 };
        }
        self.samples[partition..].copy_from_slice(&self.previous);
        self.newest = if self.newest == 0 { self.partitions() } else { self.newest } - 1;
        self.filled = (self.filled + 1).min(self.partitions());
        self.fft.forward(&mut self.samples, &mut self.past_spectra[self.newest * spectrum..][..spectrum]);
        self.sum.fill(0.0);
    }

    /// Adds the products of some partitions.
    pub fn multiply(&mut self, partitions: Range<usize>) {
        let (start, end) = (partitions.start.min(self.filled), partitions.end.min(self.filled));
        // Two runs of the line: up to its end, then from its first slot on.
        let turn = (self.partitions() - self.newest).clamp(start, end);
        for run in [start..turn, turn..end] {
            let slot = (self.newest + run.start) % self.partitions();
            let floats = run.len() * self.spectrum;
            let past = &self.past_spectra[slot * self.spectrum..][..floats];
            let parts = &self.response[run.start * self.spectrum..][..floats];
            self.kernels.complex_multiply_add(&mut self.sum, past, parts);
        }
    }

    /// Gives the block of output, once.
    pub fn output_block(&mut self, output: &mut [f32]) {
        self.fft.inverse(&mut self.sum, &mut self.samples);
        // The first half is wrapped around.
        output.copy_from_slice(&self.samples[self.partition..]);
    }

    /// Forgets all input, in a time that does not depend on the length of the response.
    pub fn reset(&mut self) {
        self.filled = 0;
        self.previous.fill(0.0);
        self.sum.fill(0.0);
        self.newest = 0;
    }
}
