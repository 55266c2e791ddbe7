//! Uniformly partitioned convolution in separate steps, so that the work of a long block can be
//! distributed.

use std::ops::Range;
use std::sync::Arc;

use ondes_kernels::Kernels;

use crate::dsp::fourier::RealFft;
use crate::dsp::level::copy_limited;

/// Floats per vector of the kernels; spectra are padded to whole vectors.
const VECTOR: usize = 16;

/// Overlap-save convolution: the response is divided into partitions of one block, each stored as a
/// spectrum of two blocks. The spectra of past input blocks are kept in a ring; an output block is
/// the inverse transform of the sum of their products with the partitions (F. Wefers, "Partitioned
/// convolution algorithms for real-time auralization", 2015, ch. 4).
///
/// For each block call [`PartitionedConvolver::push_block`], [`PartitionedConvolver::multiply`]
/// over all partitions in order, and [`PartitionedConvolver::output_block`].
#[derive(Clone)]
pub(super) struct PartitionedConvolver {
    kernels: Kernels,
    partition: usize,
    /// Floats per spectrum: real and imaginary parts of `partition + 1` bins, padded to whole
    /// vectors.
    spectrum: usize,
    /// Spectra of the response, `[partition][bin][re, im]`, scaled for the inverse transform;
    /// shared by clones.
    response: Arc<[f32]>,
    /// Ring of the spectra of past input, `[slot][bin][re, im]`, one for each partition, from
    /// `newest` to the oldest.
    past_spectra: Vec<f32>,
    newest: usize,
    /// Number of slots with input; the others may contain anything and count as silence.
    filled: usize,
    sum: Vec<f32>,
    /// Previous input block; a transform covers two blocks.
    previous: Vec<f32>,
    fft: RealFft,
    samples: Vec<f32>,
}

impl PartitionedConvolver {
    /// Creates a convolver for blocks of `partition` samples, at least 1. An empty response gives
    /// silence.
    pub fn new(impulse: &[f32], partition: usize, kernels: Kernels) -> Self {
        let mut fft = RealFft::new(2 * partition, kernels);
        let spectrum = fft.spectrum().next_multiple_of(VECTOR);
        let partitions = impulse.len().div_ceil(partition).max(1);
        let mut response = vec![0.0; partitions * spectrum];
        let mut samples = vec![0.0; 2 * partition];
        let scale = 1.0 / (2 * partition) as f32;
        for (part, bins) in impulse
            .chunks(partition)
            .zip(response.chunks_exact_mut(spectrum))
        {
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

    /// Returns the number of partitions.
    pub fn partitions(&self) -> usize {
        self.response.len() / self.spectrum
    }

    /// Transforms the next input block. Non-finite samples count as silence.
    pub fn push_block(&mut self, input: &[f32]) {
        let (partition, spectrum) = (self.partition, self.spectrum);
        self.samples[..partition].copy_from_slice(&self.previous);
        copy_limited(input, &mut self.previous);
        self.samples[partition..].copy_from_slice(&self.previous);
        self.newest = if self.newest == 0 {
            self.partitions()
        } else {
            self.newest
        } - 1;
        self.filled = (self.filled + 1).min(self.partitions());
        self.fft.forward(
            &mut self.samples,
            &mut self.past_spectra[self.newest * spectrum..][..spectrum],
        );
        self.sum.fill(0.0);
    }

    /// Adds the products of some partitions.
    pub fn multiply(&mut self, partitions: Range<usize>) {
        let (start, end) = (
            partitions.start.min(self.filled),
            partitions.end.min(self.filled),
        );
        // Two contiguous parts of the ring.
        let turn = (self.partitions() - self.newest).clamp(start, end);
        for run in [start..turn, turn..end] {
            let slot = (self.newest + run.start) % self.partitions();
            let floats = run.len() * self.spectrum;
            let past = &self.past_spectra[slot * self.spectrum..][..floats];
            let parts = &self.response[run.start * self.spectrum..][..floats];
            self.kernels
                .complex_multiply_add(&mut self.sum, past, parts);
        }
    }

    /// Writes the output block.
    pub fn output_block(&mut self, output: &mut [f32]) {
        self.fft.inverse(&mut self.sum, &mut self.samples);
        // The first half contains circular aliasing.
        output.copy_from_slice(&self.samples[self.partition..]);
    }

    /// Takes over the state of another convolver with the same response.
    pub fn copy_state(&mut self, other: &Self) {
        self.past_spectra.copy_from_slice(&other.past_spectra);
        self.sum.copy_from_slice(&other.sum);
        self.previous.copy_from_slice(&other.previous);
        (self.newest, self.filled) = (other.newest, other.filled);
    }

    /// Clears all state in constant time.
    pub fn reset(&mut self) {
        self.filled = 0;
        self.previous.fill(0.0);
        self.sum.fill(0.0);
        self.newest = 0;
    }
}
