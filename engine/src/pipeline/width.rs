//! Two channels of an instrument that is computed in one.

use ondes_kernels::Kernels;

use super::instrument::add_with_ramp;
use crate::dsp::decorrelator::{self, Decorrelator};
use crate::instrument::Performance;
use crate::model::Header;

/// Place of the highest and of the lowest note between the middle, 0, and one side, 1.
const SPREAD: f32 = 0.6;

/// Adds to one channel, and takes from the other, what is heard beside the middle: notes at places
/// by their pitch, low ones on the left, and a decorrelated sound of all of them, for width.
/// Allocates only on construction.
pub(super) struct Width {
    /// `[slot]`
    decorrelators: Vec<Decorrelator>,
    /// `[slot][sample]`
    sides: Vec<f32>,
    /// `[stream]`: place at the end of the last hop.
    places: Vec<f32>,
    /// Pitch in the middle, and the distance to the lowest, semitones.
    middle: f32,
    range: f32,
    /// A hop of what both channels share.
    shared: Vec<f32>,
    kernels: Kernels,
}

impl Width {
    /// Prepares a number of slots, with streams for their voices and hops of a length.
    pub fn new(
        kernels: Kernels,
        header: &Header,
        slots: usize,
        streams: usize,
        hop: usize,
    ) -> Self {
        let Performance {
            pitch_low,
            pitch_high,
            ..
        } = header.performance.unwrap_or_default();
        let decorrelator = Decorrelator::new(kernels, header.sample_rate as f32, hop);
        Self {
            decorrelators: vec![decorrelator; slots],
            sides: vec![0.0; slots * hop],
            places: vec![0.0; streams],
            middle: 0.5 * (pitch_low + pitch_high),
            range: 0.5 * (pitch_high - pitch_low),
            shared: vec![0.0; hop],
            kernels,
        }
    }

    /// Returns how long it sounds after its input, in samples at the model's rate.
    pub fn tail_samples(header: &Header) -> usize {
        decorrelator::tail_samples(header.sample_rate as f32)
    }

    fn side(&mut self, slot: usize) -> &mut [f32] {
        let hop = self.shared.len();
        &mut self.sides[slot * hop..][..hop]
    }

    /// Forgets the sound of a slot.
    pub fn reset(&mut self, slot: usize) {
        self.decorrelators[slot].reset();
        self.side(slot).fill(0.0);
    }

    /// Adds a hop of a note in a stream of a slot, with gains at its start and its end.
    pub fn add_voice(
        &mut self,
        slot: usize,
        stream: usize,
        pitch: f32,
        sound: &[f32],
        (start, end): (f32, f32),
    ) {
        let place = SPREAD * ((self.middle - pitch) / self.range).clamp(-1.0, 1.0);
        let before = std::mem::replace(&mut self.places[stream], place);
        let kernels = self.kernels;
        add_with_ramp(kernels, self.side(slot), sound, before * start, place * end);
    }

    /// Adds a hop of the beginning of a note in a stream of a slot, after the note itself.
    pub fn add_attack(&mut self, slot: usize, stream: usize, sound: &[f32], gain: f32) {
        let (kernels, gain) = (self.kernels, gain * self.places[stream]);
        kernels.multiply_add(self.side(slot), sound, gain);
    }

    /// Makes a hop of both channels, one after the other, as wide as at its start and its end.
    pub fn apply(&mut self, slot: usize, sound: &mut [f32], (start, end): (f32, f32)) {
        let hop = self.shared.len();
        let (left, right) = sound.split_at_mut(hop);
        if start == 0.0 && end == 0.0 {
            return self.reset(slot);
        }
        for ((shared, left), right) in self.shared.iter_mut().zip(&*left).zip(&*right) {
            *shared = 0.5 * (left + right);
        }
        let side = &mut self.sides[slot * hop..][..hop];
        self.decorrelators[slot].add(&self.shared, side);
        add_with_ramp(self.kernels, left, side, start, end);
        add_with_ramp(self.kernels, right, side, -start, -end);
        side.fill(0.0);
    }
}
