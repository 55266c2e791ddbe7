//! A track that is early waits for the slowest one.

/// The longest that a track waits, seconds: as long as a worker may take. One that is later than that is heard late.
pub const LONGEST_S: f64 = 2.0;
/// Time in which one delay fades over into another, seconds.
const FADE_S: f64 = 0.010;

/// A stereo delay that changes without a click. Only making one allocates.
pub struct Wait {
    /// `[channel]`: rings with what was played, room for the longest delay and a block.
    past: [Vec<f32>; 2],
    /// Where the next frame goes.
    place: usize,
    /// The delay that is heard, samples.
    heard: usize,
    /// The one that comes in its place, and how far it has, frames.
    coming: Option<(usize, usize)>,
    /// The one that is wanted.
    wanted: usize,
    longest: usize,
    fade: usize,
}

impl Wait {
    /// No delay, for a rate in Hz and blocks of at most so many frames.
    #[must_use]
    pub fn new(sample_rate: u32, max_block: usize) -> Self {
        let samples = |seconds: f64| (seconds * f64::from(sample_rate)).round() as usize;
        let longest = samples(LONGEST_S);
        let ring = || vec![0.0; longest + max_block];
        Self {
            past: [ring(), ring()],
            place: 0,
            heard: 0,
            coming: None,
            wanted: 0,
            longest,
            fade: samples(FADE_S).max(1),
        }
    }

    /// Goes to a delay, in samples.
    pub fn go(&mut self, samples: usize) {
        self.wanted = samples.min(self.longest);
    }

    /// Is at once where it goes to.
    pub fn settle(&mut self) {
        (self.heard, self.coming) = (self.wanted, None);
    }

    /// Delays a block of so many frames, in place: `sound[channel][frame]`.
    pub fn run(&mut self, sound: &mut [Vec<f32>; 2], frames: usize) {
        let size = self.past[0].len();
        for (past, sound) in self.past.iter_mut().zip(sound.iter()) {
            let first = frames.min(size - self.place);
            past[self.place..][..first].copy_from_slice(&sound[..first]);
            past[..frames - first].copy_from_slice(&sound[first..frames]);
        }
        let mut done = 0;
        while done < frames {
            if self.coming.is_none() && self.wanted != self.heard {
                self.coming = Some((self.wanted, 0));
            }
            let count = self.coming.map_or(usize::MAX, |(_, faded)| self.fade - faded).min(frames - done);
            let from = |delay: usize| (self.place + done + size - delay) % size;
            let (old, new) = (from(self.heard), self.coming.map(|(delay, faded)| (from(delay), faded)));
            for (past, sound) in self.past.iter().zip(sound.iter_mut()) {
                let sound = &mut sound[done..][..count];
                match new {
                    None if self.heard == 0 => {}
                    None => {
                        let first = count.min(size - old);
                        sound[..first].copy_from_slice(&past[old..][..first]);
                        sound[first..].copy_from_slice(&past[..count - first]);
                    }
                    Some((new, faded)) => {
                        for (frame, sample) in sound.iter_mut().enumerate() {
                            let gain = (faded + frame + 1) as f32 / self.fade as f32;
                            let (old, new) = (past[(old + frame) % size], past[(new + frame) % size]);
                            *sample = old + gain * (new - old);
                        }
                    }
                }
            }
            done += count;
            self.coming = self.coming.map(|(delay, faded)| (delay, faded + count));
            if let Some((delay, _)) = self.coming.filter(|(_, faded)| *faded == self.fade) {
                (self.heard, self.coming) = (delay, None);
            }
        }
        self.place = (self.place + frames) % size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 8_000;

    /// A straight line, delayed in uneven blocks; `turn` is called before each.
    fn delayed(wait: &mut Wait, frames: usize, mut turn: impl FnMut(usize, &mut Wait)) -> Vec<f32> {
        let (mut out, mut start) = (Vec::new(), 0);
        for length in [1, 64, 7, 33].into_iter().cycle() {
            if start >= frames {
                return out;
            }
            turn(start, wait);
            let line: Vec<f32> = (start..start + length).map(|n| n as f32 + 1.0).collect();
            let mut sound = [line.clone(), line.iter().map(|sample| -sample).collect()];
            wait.run(&mut sound, length);
            assert!(sound[0].iter().zip(&sound[1]).all(|(left, right)| *left == -*right));
            out.extend_from_slice(&sound[0]);
            start += length;
        }
        out
    }

    #[test]
    fn it_is_as_late_as_it_says_and_changes_nothing() {
        for samples in [0, 1, 63, 500, 16_000] {
            let mut wait = Wait::new(RATE, 64);
            wait.go(samples);
            wait.settle();
            let out = delayed(&mut wait, 40_000, |_, _| {});
            assert!(out[..samples].iter().all(|sample| *sample == 0.0));
            assert!(out[samples..].iter().enumerate().all(|(n, sample)| *sample == n as f32 + 1.0), "{samples}");
        }
    }

    #[test]
    fn it_fades_over_and_no_further_than_there_is_room() {
        let mut wait = Wait::new(RATE, 64);
        let out = delayed(&mut wait, 60_000, |start, wait| wait.go(if start < 20_000 { 100 } else { 999_999 }));
        assert_eq!((out[15_000], out[59_000]), (14_901.0, 59_001.0 - 16_000.0));
        // Line against line, in 80 frames each: from 0 to 100 late, and from there to 16,000.
        let steps: Vec<f32> = out.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        assert!(steps.iter().all(|step| *step < 2.0 + 16_000.0 / 80.0));
        assert!(steps[30_000..].iter().all(|step| *step == 1.0));
    }
}
