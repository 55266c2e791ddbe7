//! An impulse response as an effect.

use crate::dsp::cabinet::Cabinet;
use crate::effects::Effect;

/// Convolution with an impulse response, without latency and without parameters.
pub struct ResponseEffect {
    cabinet: Cabinet,
    /// `[channel][frame]`: input of a block.
    input: [Vec<f32>; 2],
}

impl ResponseEffect {
    /// Creates an effect for blocks of at most `max_block` frames.
    #[must_use]
    pub fn new(cabinet: Cabinet, max_block: usize) -> Self {
        let block = || vec![0.0; max_block];
        Self {
            cabinet,
            input: [block(), block()],
        }
    }
}

impl Effect for ResponseEffect {
    fn set(&mut self, _values: &[f32], _tempo: f32) {}

    fn reset(&mut self) {
        self.cabinet.reset();
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        let frames = left.len();
        for (input, side) in self.input.iter_mut().zip([&*left, &*right]) {
            input[..frames].copy_from_slice(side);
        }
        let input = self.input.each_ref().map(|side| &side[..frames]);
        self.cabinet.process(input, [left, right], true);
    }

    fn tail_samples(&self) -> usize {
        self.cabinet.tail_samples()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernels;
    use crate::dsp::cabinet::Response;

    #[test]
    fn each_side_is_convolved_however_the_sound_is_cut() {
        let response = Response::new(vec![vec![0.5, 0.0, 0.25]], 48_000).unwrap();
        for block in [1, 7, 64] {
            let cabinet = Cabinet::new(&response, 48_000, Kernels::detect()).unwrap();
            let mut effect = ResponseEffect::new(cabinet, 64);
            let (mut left, mut right) = (vec![0.0; 200], vec![0.0; 200]);
            (left[10], right[100]) = (1.0, -1.0);
            for (left, right) in left.chunks_mut(block).zip(right.chunks_mut(block)) {
                effect.process(left, right);
            }
            // Responses are played at a common loudness.
            let loud = left[10];
            assert!(loud > 0.5);
            assert_eq!(left[9..14], [0.0, loud, 0.0, 0.5 * loud, 0.0]);
            assert_eq!(right[99..104], [0.0, -loud, 0.0, -0.5 * loud, 0.0]);
            assert_eq!(effect.tail_samples(), 2);
        }
    }
}
