//! Latents on their way from a codec's encoder to its decoder: held, scaled and offset, each by knobs of its own.

use super::ports::Ports;

/// Knobs of a latent: those of latent `i`, from 0, are ports `3 i`, scale, `3 i + 1`, offset, and `3 i + 2`, hold.
const KNOBS: usize = 3;

/// The latents of all seats.
pub(super) struct Bend {
    count: usize,
    /// `[seat][latent]`: the last value before it was held; none before there was any.
    held: Vec<Option<f32>>,
    /// `[seat][latent]`: what was decoded last.
    last: Vec<f32>,
}

impl Bend {
    /// For `count` latents in each of `seats`.
    pub fn new(count: usize, seats: usize) -> Self {
        Self { count, held: vec![None; count * seats], last: vec![0.0; count * seats] }
    }

    /// A seat is taken anew.
    pub fn open(&mut self, seat: usize) {
        let its = seat * self.count..(seat + 1) * self.count;
        self.held[its.clone()].fill(None);
        self.last[its].fill(0.0);
    }

    /// What was decoded last in a seat.
    pub fn latents(&self, seat: usize) -> &[f32] {
        &self.last[seat * self.count..][..self.count]
    }

    /// Bends the latents of a hop, `[frame][latent]`.
    pub fn run(&mut self, seat: usize, ports: &Ports, live: &[f32], bent: &mut [f32]) {
        let frames = live.len() / self.count;
        let held = &mut self.held[seat * self.count..][..self.count];
        let rows = live.chunks_exact(self.count).zip(bent.chunks_exact_mut(self.count));
        for (frame, (live, bent)) in rows.enumerate() {
            for (latent, ((&live, bent), held)) in live.iter().zip(bent).zip(&mut *held).enumerate() {
                let knob = |which: usize| ports.at(KNOBS * latent + which, frame, frames);
                let (scale, offset, hold) = (knob(0), knob(1), knob(2));
                let before = if hold == 0.0 { live } else { held.unwrap_or(live) };
                *held = Some(before);
                // What is wholly held is not to flicker in its last digit.
                let value = if hold >= 1.0 { before } else { live + hold * (before - live) };
                *bent = scale * value + offset;
            }
        }
        if let Some(last) = bent.chunks_exact(self.count).next_back() {
            self.last[seat * self.count..][..self.count].copy_from_slice(last);
        }
    }
}
