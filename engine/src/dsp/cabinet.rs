//! The loudspeaker, its box and the microphone in front of it, as an impulse response.
//!
//! A [`Response`] is what was recorded. A [`Cabinet`] is that made ready for a host's rate, which takes its time; a [`CabinetSlot`] is
//! where one stands in a chain, and where another may take over while sound goes through, without a click.

mod response;

use ondes_kernels::Kernels;

pub use response::{MAX_RESPONSE_S, Response, ResponseError};

use super::convolution::ZeroLatencyConvolver;
use super::ramp::Ramp;

/// Time in which one takes over from another, and in which it comes in and goes out, s.
const FADE_S: f64 = 0.020;

/// One sound in, two out: what it makes of the sound on both sides. Without latency. One that is nothing lets sound pass as it is.
#[derive(Default)]
pub struct Cabinet {
    /// None, one for both, or one for each.
    sides: Vec<ZeroLatencyConvolver>,
    taps: usize,
}

impl Cabinet {
    /// Makes a response ready for a rate in Hz.
    ///
    /// # Errors
    /// When the response cannot be converted to that rate.
    pub fn new(response: &Response, sample_rate: u32, kernels: Kernels) -> Result<Self, ResponseError> {
        let taps = response.taps(sample_rate)?;
        let length = taps.iter().map(Vec::len).max().unwrap_or(0);
        Ok(Self { sides: taps.iter().map(|taps| ZeroLatencyConvolver::new(taps, kernels)).collect(), taps: length })
    }

    /// Samples that it rings on.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        self.taps.saturating_sub(1)
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sides.is_empty()
    }

    /// Forgets all that it has heard.
    pub fn reset(&mut self) {
        self.sides.iter_mut().for_each(ZeroLatencyConvolver::reset);
    }

    /// Fills both sides with what it makes of the next samples.
    ///
    /// # Panics
    /// When lengths differ.
    pub fn process(&mut self, sound: &[f32], left: &mut [f32], right: &mut [f32]) {
        match &mut self.sides[..] {
            [one, other, ..] => {
                one.process(sound, left);
                other.process(sound, right);
            }
            [both] => {
                both.process(sound, left);
                right.copy_from_slice(left);
            }
            [] => {
                left.copy_from_slice(sound);
                right.copy_from_slice(sound);
            }
        }
    }
}

/// Where a cabinet stands; in the beginning it is nothing.
pub struct CabinetSlot {
    now: Box<Cabinet>,
    /// The one that takes over, and for how many samples it has.
    next: Option<(Box<Cabinet>, usize)>,
    /// One that has left and was not fetched yet.
    left: Option<Box<Cabinet>>,
    /// `[sample]`: the gain of the one that comes.
    fade: Box<[f32]>,
    /// Share of the cabinet's sound; the rest passes as it is.
    amount: Ramp,
    /// It was not heard, and was not told what is played.
    stale: bool,
    sound: Vec<f32>,
    arriving: [Vec<f32>; 2],
}

impl CabinetSlot {
    /// A place in a host that has a rate in Hz and blocks of up to so many samples.
    #[must_use]
    pub fn new(sample_rate: u32, max_block: usize) -> Self {
        let fade = (FADE_S * f64::from(sample_rate)).ceil().max(1.0) as usize;
        let gain = |n: usize| (0.5 - 0.5 * (std::f64::consts::PI * n as f64 / fade as f64).cos()) as f32;
        let block = || vec![0.0; max_block];
        Self {
            now: Box::default(),
            next: None,
            left: None,
            fade: (1..=fade).map(gain).collect(),
            amount: Ramp::new(1.0, FADE_S, sample_rate),
            stale: false,
            sound: block(),
            arriving: [block(), block()],
        }
    }

    /// Whether [`CabinetSlot::replace`] would take another one: not while one takes over, nor before [`CabinetSlot::take_retired`] has given back the
    /// one before.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.next.is_none() && self.left.is_none()
    }

    /// Lets another one take over.
    ///
    /// # Errors
    /// Gives it back while the place [is not free](CabinetSlot::is_ready).
    pub fn replace(&mut self, cabinet: Box<Cabinet>) -> Result<(), Box<Cabinet>> {
        if !self.is_ready() {
            return Err(cabinet);
        }
        self.next = Some((cabinet, 0));
        Ok(())
    }

    /// Gives one that has left, to be dropped where there is time for that.
    pub fn take_retired(&mut self) -> Option<Box<Cabinet>> {
        self.left.take()
    }

    /// Share of the cabinet's sound, 0 … 1; the rest passes as it is.
    pub fn set(&mut self, amount: f32) {
        self.amount.go(amount.clamp(0.0, 1.0));
    }

    /// Forgets all that was heard; share and cabinet are at once as they were set to be.
    pub fn reset(&mut self) {
        self.amount.arrive();
        if let Some((next, _)) = self.next.take() {
            self.left = Some(std::mem::replace(&mut self.now, next));
        }
        self.now.reset();
        self.stale = false;
    }

    /// Samples that what stands here rings on.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        let next = self.next.as_ref().map_or(0, |(next, _)| next.tail_samples());
        self.now.tail_samples().max(next)
    }

    /// Whether samples pass as they are until somebody changes something.
    #[must_use]
    pub fn is_neutral(&self) -> bool {
        self.next.is_none() && (self.now.is_empty() || self.amount.rest() == Some(0.0))
    }

    /// Takes the next samples from `left`, at most a block, and fills both sides with what is made of them.
    ///
    /// # Panics
    /// When there are more than a block, or lengths differ.
    pub fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        if self.is_neutral() {
            self.stale = true;
            return right.copy_from_slice(left);
        }
        if std::mem::take(&mut self.stale) {
            self.now.reset();
        }
        let sound = &mut self.sound[..left.len()];
        sound.copy_from_slice(left);
        self.now.process(sound, left, right);
        if let Some((next, faded)) = &mut self.next {
            let [next_left, next_right] = &mut self.arriving;
            let (next_left, next_right) = (&mut next_left[..sound.len()], &mut next_right[..sound.len()]);
            next.process(sound, next_left, next_right);
            let gains = &self.fade[*faded..][..sound.len().min(self.fade.len() - *faded)];
            for (side, next) in [(&mut *left, next_left), (&mut *right, next_right)] {
                for ((sample, next), gain) in side.iter_mut().zip(&*next).zip(gains) {
                    *sample += gain * (next - *sample);
                }
                side[gains.len()..].copy_from_slice(&next[gains.len()..]);
            }
            *faded += gains.len();
        }
        if self.amount.rest() != Some(1.0) {
            for ((left, right), sound) in left.iter_mut().zip(right).zip(&*sound) {
                let amount = self.amount.advance();
                *left = sound + amount * (*left - sound);
                *right = sound + amount * (*right - sound);
            }
        }
        if let Some((next, _)) = self.next.take_if(|(_, faded)| *faded == self.fade.len()) {
            self.left = Some(std::mem::replace(&mut self.now, next));
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

    /// A box that rings, and is heard a little later where the peak is not at 0.
    fn ringing(delay: usize, frames: usize) -> Vec<f32> {
        let ring = (0..frames).map(|n| (-(n as f32) / 300.0).exp() * (n as f32 * 0.2).cos());
        std::iter::repeat_n(0.0, delay).chain(ring).collect()
    }

    fn tone(frames: usize) -> Vec<f32> {
        (0..frames).map(|n| 0.3 * (n as f32 * 0.05).sin()).collect()
    }

    fn through(slot: &mut CabinetSlot, sound: &[f32], block: usize) -> [Vec<f32>; 2] {
        let (mut left, mut right) = (sound.to_vec(), vec![0.0; sound.len()]);
        for (left, right) in left.chunks_mut(block).zip(right.chunks_mut(block)) {
            slot.process(left, right);
        }
        [left, right]
    }

    #[test]
    fn an_empty_place_and_one_that_is_switched_off_change_nothing() {
        let sound = tone(4_000);
        let mut slot = CabinetSlot::new(RATE, 512);
        assert_eq!(through(&mut slot, &sound, 100), [sound.clone(), sound.clone()]);
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
    fn sides_differ_where_they_were_recorded_so() {
        let mut slot = CabinetSlot::new(RATE, 64);
        slot.replace(boxed(vec![[ringing(0, 500), vec![0.0; 40]].concat(), ringing(40, 500)])).ok().unwrap();
        slot.reset();
        let [left, right] = through(&mut slot, &tone(3_000), 64);
        for n in 40..3_000 {
            assert!((right[n] - left[n - 40]).abs() < 1e-4, "{n}");
        }
    }

    #[test]
    fn one_takes_over_from_another_without_a_click_in_any_blocks() {
        let sound = tone(12_000);
        let play = |block: usize| {
            let mut slot = CabinetSlot::new(RATE, 512);
            slot.replace(boxed(vec![ringing(0, 700)])).ok().unwrap();
            slot.reset();
            drop(slot.take_retired());
            let mut heard = through(&mut slot, &sound[..4_000], block)[0].clone();
            slot.replace(boxed(vec![ringing(9, 5_000), ringing(0, 5_009)])).ok().unwrap();
            assert!(slot.replace(Box::default()).is_err(), "one at a time");
            heard.extend(&through(&mut slot, &sound[4_000..8_000], block)[0]);
            assert!(!slot.is_ready() && slot.take_retired().is_some() && slot.is_ready(), "what has left is to be fetched");
            slot.replace(Box::default()).ok().unwrap();
            heard.extend(&through(&mut slot, &sound[8_000..], block)[0]);
            heard
        };
        let whole = play(500);
        // The tone alone rises by 0.015 in a sample, with any of the cabinets by less than 0.06.
        for (n, pair) in whole.windows(2).enumerate() {
            assert!((pair[0] - pair[1]).abs() < 0.06, "{pair:?} at {n}");
        }
        assert_eq!(whole[11_000..], sound[11_000..]);
        for block in [1, 40, 64] {
            assert_eq!(play(block), whole, "blocks of {block}");
        }
    }

    #[test]
    fn it_comes_and_goes_without_a_click_and_without_what_it_heard_before() {
        let mut slot = CabinetSlot::new(RATE, 512);
        slot.replace(boxed(vec![ringing(0, 4_000)])).ok().unwrap();
        slot.reset();
        let sound = tone(4_000);
        let mut heard = through(&mut slot, &sound, 100)[0].clone();
        slot.set(0.0);
        heard.extend(&through(&mut slot, &sound, 100)[0]);
        assert_eq!(heard[6_000..], sound[2_000..]);
        slot.set(0.5);
        let silent = through(&mut slot, &[0.0; 4_000], 100);
        assert!(silent[0].iter().all(|sample| *sample == 0.0));
        for pair in heard[..4_000].windows(2).chain(heard[4_000..].windows(2)) {
            assert!((pair[0] - pair[1]).abs() < 0.06, "{pair:?}");
        }
    }
}
