//! Guitar cabinet and microphone as an impulse response.
//!
//! A [`Response`] is a recording. A [`Cabinet`] is prepared for a sample rate, which takes time; a
//! [`CabinetSlot`] holds one in a signal chain and cross-fades to another.

mod response;

use ondes_kernels::Kernels;

pub use response::{INAUDIBLE, MAX_RESPONSE_S, Response, ResponseError};

use super::convolution::ZeroLatencyConvolver;
use super::ramp::Ramp;

/// Duration of cross-fades, s.
const FADE_S: f64 = 0.020;
/// Samples of what one side adds to the other that are computed at once.
const CROSSED: usize = 128;

/// Convolution of a mono or stereo input with a [`Response`], without latency. An empty cabinet
/// passes the input unchanged.
#[derive(Default)]
pub struct Cabinet {
    /// A convolver for each side; `None` for an empty cabinet.
    sides: Option<[ZeroLatencyConvolver; 2]>,
    /// Convolvers from left to right and from right to left, of a response of four channels.
    crossed: Option<[ZeroLatencyConvolver; 2]>,
    /// Both sides have the same response.
    is_mono: bool,
    /// The left side has processed input that the right one has not, as both were equal.
    is_right_behind: bool,
    taps: usize,
}

impl Cabinet {
    /// Prepares a response for a sample rate in Hz.
    ///
    /// # Errors
    /// Returns [`ResponseError`] if the response cannot be converted to that rate.
    pub fn new(
        response: &Response,
        sample_rate: u32,
        kernels: Kernels,
    ) -> Result<Self, ResponseError> {
        let taps = response.taps(sample_rate)?;
        let length = taps.iter().map(Vec::len).max().unwrap_or(0);
        let convolver = |taps: &Vec<f32>| ZeroLatencyConvolver::new(taps, kernels);
        let (sides, crossed) = match &taps[..] {
            [both] => {
                let side = convolver(both);
                (Some([side.clone(), side]), None)
            }
            [left, right] => (Some([left, right].map(convolver)), None),
            [left, to_right, to_left, right] => (
                Some([left, right].map(convolver)),
                Some([to_right, to_left].map(convolver)),
            ),
            _ => (None, None),
        };
        Ok(Self {
            sides,
            crossed,
            is_mono: taps.len() == 1,
            is_right_behind: false,
            taps: length,
        })
    }

    /// Returns the length of the tail in samples.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        self.taps.saturating_sub(1)
    }

    /// Returns whether the cabinet passes its input unchanged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sides.is_none()
    }

    /// Returns whether the output of a mono input is stereo.
    #[must_use]
    pub fn is_stereo(&self) -> bool {
        !self.is_empty() && !self.is_mono
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        self.sides
            .iter_mut()
            .chain(&mut self.crossed)
            .flatten()
            .for_each(ZeroLatencyConvolver::reset);
        self.is_right_behind = false;
    }

    /// Processes samples of both sides; unless `is_stereo`, they are equal.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn process(&mut self, input: [&[f32]; 2], output: [&mut [f32]; 2], is_stereo: bool) {
        let [left, right] = output;
        let Some([left_side, right_side]) = &mut self.sides else {
            left.copy_from_slice(input[0]);
            right.copy_from_slice(input[1]);
            return;
        };
        if self.is_mono && !is_stereo {
            left_side.process(input[0], left);
            right.copy_from_slice(left);
            self.is_right_behind = true;
            return;
        }
        if std::mem::take(&mut self.is_right_behind) {
            right_side.copy_state(left_side);
        }
        left_side.process(input[0], left);
        right_side.process(input[1], right);
        let Some([to_right, to_left]) = &mut self.crossed else {
            return;
        };
        for (side, sound, output) in [(to_right, input[0], right), (to_left, input[1], left)] {
            let mut added = [0.0; CROSSED];
            for (sound, output) in sound.chunks(CROSSED).zip(output.chunks_mut(CROSSED)) {
                let added = &mut added[..sound.len()];
                side.process(sound, added);
                output
                    .iter_mut()
                    .zip(added)
                    .for_each(|(output, added)| *output += *added);
            }
        }
    }
}

/// Slot for a cabinet in a signal chain; initially empty.
///
/// # Examples
/// ```
/// use ondes_engine::Kernels;
/// use ondes_engine::dsp::cabinet::{Cabinet, CabinetSlot, Response};
///
/// let response = Response::new(vec![vec![1.0, 0.5, 0.25]], 48_000)?;
/// let cabinet = Cabinet::new(&response, 48_000, Kernels::detect())?;
/// let mut slot = CabinetSlot::new(48_000, 64);
/// assert!(slot.is_ready() && slot.replace(Box::new(cabinet)).is_ok());
/// let (mut left, mut right) = ([0.1; 64], [0.1; 64]);
/// slot.process(&mut left, &mut right, false);
/// assert_eq!(left, right);
/// # Ok::<(), ondes_engine::dsp::cabinet::ResponseError>(())
/// ```
pub struct CabinetSlot {
    current: Box<Cabinet>,
    /// Next cabinet and the number of samples it has faded in.
    next: Option<(Box<Cabinet>, usize)>,
    /// Replaced cabinet, until it is taken by [`CabinetSlot::take_retired`].
    retired: Option<Box<Cabinet>>,
    /// Gain of the next cabinet, `[sample]`.
    fade: Box<[f32]>,
    /// Mix of the cabinet's output.
    amount: Ramp,
    /// Samples were skipped, so the state is outdated.
    stale: bool,
    /// `[side]`: input of a block.
    sound: [Vec<f32>; 2],
    arriving: [Vec<f32>; 2],
}

impl CabinetSlot {
    /// Creates an empty slot for a sample rate in Hz and blocks of at most `max_block` samples.
    #[must_use]
    pub fn new(sample_rate: u32, max_block: usize) -> Self {
        let fade = (FADE_S * f64::from(sample_rate)).ceil().max(1.0) as usize;
        let gain =
            |n: usize| (0.5 - 0.5 * (std::f64::consts::PI * n as f64 / fade as f64).cos()) as f32;
        let block = || vec![0.0; max_block];
        Self {
            current: Box::default(),
            next: None,
            retired: None,
            fade: (1..=fade).map(gain).collect(),
            amount: Ramp::new(1.0, FADE_S, sample_rate),
            stale: false,
            sound: [block(), block()],
            arriving: [block(), block()],
        }
    }

    /// Returns whether [`CabinetSlot::replace`] accepts a cabinet: no cross-fade is running, and
    /// the previous cabinet has been taken.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.next.is_none() && self.retired.is_none()
    }

    /// Cross-fades to another cabinet.
    ///
    /// # Errors
    /// Returns the cabinet unless the slot [is ready](CabinetSlot::is_ready).
    pub fn replace(&mut self, cabinet: Box<Cabinet>) -> Result<(), Box<Cabinet>> {
        if !self.is_ready() {
            return Err(cabinet);
        }
        self.next = Some((cabinet, 0));
        Ok(())
    }

    /// Takes the replaced cabinet, to be dropped outside the audio thread.
    pub fn take_retired(&mut self) -> Option<Box<Cabinet>> {
        self.retired.take()
    }

    /// Sets the mix of the cabinet, 0 to 1.
    pub fn set(&mut self, amount: f32) {
        self.amount.set_target(amount.clamp(0.0, 1.0));
    }

    /// Clears all state and completes cross-fades.
    pub fn reset(&mut self) {
        self.amount.finish();
        if let Some((next, _)) = self.next.take() {
            self.retired = Some(std::mem::replace(&mut self.current, next));
        }
        self.current.reset();
        self.stale = false;
    }

    /// Returns the length of the tail in samples.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        let next = self
            .next
            .as_ref()
            .map_or(0, |(next, _)| next.tail_samples());
        self.current.tail_samples().max(next)
    }

    /// Returns whether samples pass unchanged until a setting is changed.
    #[must_use]
    pub fn is_neutral(&self) -> bool {
        self.next.is_none() && (self.current.is_empty() || self.amount.settled() == Some(0.0))
    }

    /// Returns whether the output of a mono input is stereo.
    #[must_use]
    pub fn is_stereo(&self) -> bool {
        let next = self.next.as_ref().is_some_and(|(next, _)| next.is_stereo());
        !self.is_neutral() && (next || self.current.is_stereo())
    }

    /// Processes at most a block of samples of both sides in place; unless `is_stereo`, they are
    /// equal.
    ///
    /// # Panics
    /// If there are more samples than in a block, or the lengths differ.
    pub fn process(&mut self, left: &mut [f32], right: &mut [f32], is_stereo: bool) {
        if self.is_neutral() {
            self.stale = true;
            return;
        }
        if std::mem::take(&mut self.stale) {
            self.current.reset();
        }
        let frames = left.len();
        for (sound, side) in self.sound.iter_mut().zip([&*left, &*right]) {
            sound[..frames].copy_from_slice(side);
        }
        let sound = self.sound.each_ref().map(|sound| &sound[..frames]);
        self.current.process(sound, [left, right], is_stereo);
        if let Some((next, faded)) = &mut self.next {
            let [next_left, next_right] = self.arriving.each_mut().map(|side| &mut side[..frames]);
            next.process(sound, [next_left, next_right], is_stereo);
            let gains = &self.fade[*faded..][..frames.min(self.fade.len() - *faded)];
            for (side, next) in [(&mut *left, next_left), (&mut *right, next_right)] {
                for ((sample, next), gain) in side.iter_mut().zip(&*next).zip(gains) {
                    *sample += gain * (next - *sample);
                }
                side[gains.len()..].copy_from_slice(&next[gains.len()..]);
            }
            *faded += gains.len();
        }
        if self.amount.settled() != Some(1.0) {
            let [sound_left, sound_right] = sound;
            let input = sound_left.iter().zip(sound_right);
            for ((left, right), (sound_left, sound_right)) in left.iter_mut().zip(right).zip(input)
            {
                let amount = self.amount.advance();
                *left = sound_left + amount * (*left - sound_left);
                *right = sound_right + amount * (*right - sound_right);
            }
        }
        if let Some((next, _)) = self.next.take_if(|(_, faded)| *faded == self.fade.len()) {
            self.retired = Some(std::mem::replace(&mut self.current, next));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 48_000;

    fn boxed(taps: Vec<Vec<f32>>) -> Box<Cabinet> {
        let response = Response::new(taps, RATE).unwrap();
        Box::new(Cabinet::new(&response, RATE, Kernels::detect()).unwrap())
    }

    /// Decaying response after a delay.
    fn ringing(delay: usize, frames: usize) -> Vec<f32> {
        let ring = (0..frames).map(|n| (-(n as f32) / 300.0).exp() * (n as f32 * 0.2).cos());
        std::iter::repeat_n(0.0, delay).chain(ring).collect()
    }

    fn tone(frames: usize) -> Vec<f32> {
        (0..frames).map(|n| 0.3 * (n as f32 * 0.05).sin()).collect()
    }

    fn through(slot: &mut CabinetSlot, sound: &[f32], block: usize) -> [Vec<f32>; 2] {
        let (mut left, mut right) = (sound.to_vec(), sound.to_vec());
        for (left, right) in left.chunks_mut(block).zip(right.chunks_mut(block)) {
            slot.process(left, right, false);
        }
        [left, right]
    }

    #[test]
    fn empty_and_bypassed_slots_pass_samples_unchanged() {
        let sound = tone(4_000);
        let mut slot = CabinetSlot::new(RATE, 512);
        assert_eq!(
            through(&mut slot, &sound, 100),
            [sound.clone(), sound.clone()]
        );
        slot.replace(boxed(vec![ringing(0, 900)])).ok().unwrap();
        slot.set(0.0);
        slot.reset();
        assert!(slot.is_neutral());
        assert_eq!(through(&mut slot, &sound, 100), [sound.clone(), sound]);
    }

    #[test]
    fn there_is_no_latency() {
        let mut slot = CabinetSlot::new(RATE, 64);
        slot.replace(boxed(vec![ringing(0, 2_000)])).ok().unwrap();
        slot.reset();
        let mut click = vec![0.0; 4_000];
        click[777] = 1.0;
        let [left, right] = through(&mut slot, &click, 64);
        let top = (0..4_000).max_by(|&a, &b| left[a].abs().total_cmp(&left[b].abs()));
        assert_eq!(top, Some(777));
        assert_eq!(left, right);
        assert_eq!(slot.tail_samples(), 1_999);
    }

    #[test]
    fn stereo_responses_are_stereo() {
        let mut slot = CabinetSlot::new(RATE, 64);
        slot.replace(boxed(vec![
            [ringing(0, 500), vec![0.0; 40]].concat(),
            ringing(40, 500),
        ]))
        .ok()
        .unwrap();
        slot.reset();
        let [left, right] = through(&mut slot, &tone(3_000), 64);
        for n in 40..3_000 {
            assert!((right[n] - left[n - 40]).abs() < 1e-4, "{n}");
        }
    }

    #[test]
    fn four_channels_also_cross_the_sides() {
        // Left to left, left to right, right to left, right to right.
        let taps = [
            vec![1.0, 0.0],
            vec![0.0, 0.5],
            vec![0.25, 0.0],
            vec![0.0, -1.0],
        ];
        let mut slot = CabinetSlot::new(RATE, 500);
        slot.replace(boxed(taps.to_vec())).ok().unwrap();
        slot.reset();
        assert!(slot.is_stereo());
        let taps = Response::new(taps.to_vec(), RATE)
            .unwrap()
            .taps(RATE)
            .unwrap();
        let (left, right) = (tone(700), tone(900)[200..].to_vec());
        let [mut wet_left, mut wet_right] = [left.clone(), right.clone()];
        for (left, right) in wet_left.chunks_mut(350).zip(wet_right.chunks_mut(350)) {
            slot.process(left, right, true);
        }
        for n in 1..700 {
            let sides = [(wet_left[n], 0, 2), (wet_right[n], 1, 3)];
            for (found, of_left, of_right) in sides {
                let sum = |taps: &[f32], sound: &[f32]| taps[0] * sound[n] + taps[1] * sound[n - 1];
                let expected = sum(&taps[of_left], &left) + sum(&taps[of_right], &right);
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{found} for {expected} at {n}"
                );
            }
        }
    }

    #[test]
    fn cabinets_are_cross_faded_in_blocks_of_any_length() {
        let sound = tone(12_000);
        let play = |block: usize| {
            let mut slot = CabinetSlot::new(RATE, 512);
            slot.replace(boxed(vec![ringing(0, 700)])).ok().unwrap();
            slot.reset();
            drop(slot.take_retired());
            let mut output = through(&mut slot, &sound[..4_000], block)[0].clone();
            slot.replace(boxed(vec![ringing(9, 5_000), ringing(0, 5_009)]))
                .ok()
                .unwrap();
            assert!(slot.replace(Box::default()).is_err(), "one at a time");
            output.extend(&through(&mut slot, &sound[4_000..8_000], block)[0]);
            assert!(
                !slot.is_ready() && slot.take_retired().is_some() && slot.is_ready(),
                "the old one must be taken"
            );
            slot.replace(Box::default()).ok().unwrap();
            output.extend(&through(&mut slot, &sound[8_000..], block)[0]);
            output
        };
        let expected = play(500);
        // The tone rises by 0.015 per sample, and by less than 0.06 through either cabinet.
        for (n, pair) in expected.windows(2).enumerate() {
            assert!((pair[0] - pair[1]).abs() < 0.06, "{pair:?} at {n}");
        }
        assert_eq!(expected[11_000..], sound[11_000..]);
        for block in [1, 40, 64] {
            assert_eq!(play(block), expected, "blocks of {block}");
        }
    }

    #[test]
    fn bypassing_is_smooth_and_forgets_old_input() {
        let mut slot = CabinetSlot::new(RATE, 512);
        slot.replace(boxed(vec![ringing(0, 4_000)])).ok().unwrap();
        slot.reset();
        let sound = tone(4_000);
        let mut output = through(&mut slot, &sound, 100)[0].clone();
        slot.set(0.0);
        output.extend(&through(&mut slot, &sound, 100)[0]);
        assert_eq!(output[6_000..], sound[2_000..]);
        slot.set(0.5);
        let silent = through(&mut slot, &[0.0; 4_000], 100);
        assert!(silent[0].iter().all(|sample| *sample == 0.0));
        for pair in output[..4_000].windows(2).chain(output[4_000..].windows(2)) {
            assert!((pair[0] - pair[1]).abs() < 0.06, "{pair:?}");
        }
    }

    #[test]
    fn each_side_of_a_stereo_input_has_its_response() {
        let responses = [ringing(0, 900), ringing(7, 893)];
        for taps in [vec![responses[0].clone()], responses.to_vec()] {
            let (left, right) = (tone(6_000), tone(6_050)[50..].to_vec());
            let mut slot = CabinetSlot::new(RATE, 500);
            slot.replace(boxed(taps.clone())).ok().unwrap();
            slot.reset();
            // A mono part first: the right side must continue from the left one's past.
            let (mut left_out, mut right_out) =
                (left.clone(), [&left[..2_000], &right[2_000..]].concat());
            let input = [left_out.clone(), right_out.clone()];
            for (index, (left, right)) in left_out
                .chunks_mut(250)
                .zip(right_out.chunks_mut(250))
                .enumerate()
            {
                slot.process(left, right, index >= 8);
            }
            // Levelled.
            let taps = Response::new(taps, RATE).unwrap().taps(RATE).unwrap();
            for (side, output) in [left_out, right_out].iter().enumerate() {
                let mut expected = vec![0.0; output.len()];
                let response = &taps[side.min(taps.len() - 1)];
                ZeroLatencyConvolver::new(response, Kernels::detect())
                    .process(&input[side], &mut expected);
                assert_eq!(*output, expected, "side {side} of {}", taps.len());
            }
        }
    }
}
