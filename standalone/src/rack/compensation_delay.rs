//! Delay that aligns a track with the slowest one.

/// Longest delay, seconds: the longest latency of a worker. A slower track is heard late.
pub const MAX_DELAY_S: f64 = 2.0;
/// Length of the cross-fade between two delays, seconds.
const FADE_S: f64 = 0.010;

/// Stereo delay whose length changes by a cross-fade. Allocates only on construction.
pub struct CompensationDelay {
    /// `[channel]`: ring buffers of the past input, as long as the longest delay and a block.
    history: [Vec<f32>; 2],
    /// Index of the next frame to write.
    write_position: usize,
    /// Current delay, samples.
    current: usize,
    /// Delay that is being faded in, and the frames of the cross-fade done so far.
    fading_in: Option<(usize, usize)>,
    /// Requested delay, samples.
    target: usize,
    max_delay: usize,
    fade: usize,
}

impl CompensationDelay {
    /// Creates a delay of zero for a sample rate in Hz and blocks of at most `max_block` frames.
    #[must_use]
    pub fn new(sample_rate: u32, max_block: usize) -> Self {
        let samples = |seconds: f64| (seconds * f64::from(sample_rate)).round() as usize;
        let max_delay = samples(MAX_DELAY_S);
        let ring = || vec![0.0; max_delay + max_block];
        Self {
            history: [ring(), ring()],
            write_position: 0,
            current: 0,
            fading_in: None,
            target: 0,
            max_delay,
            fade: samples(FADE_S).max(1),
        }
    }

    /// Cross-fades to a delay in samples, at most [`MAX_DELAY_S`].
    pub fn set_target(&mut self, samples: usize) {
        self.target = samples.min(self.max_delay);
    }

    /// Jumps to the target delay without a cross-fade.
    pub fn jump_to_target(&mut self) {
        (self.current, self.fading_in) = (self.target, None);
    }

    /// Delays a block of `frames` in place, `sound[channel][frame]`.
    pub fn process(&mut self, sound: &mut [Vec<f32>; 2], frames: usize) {
        let size = self.history[0].len();
        for (history, sound) in self.history.iter_mut().zip(sound.iter()) {
            let first = frames.min(size - self.write_position);
            history[self.write_position..][..first].copy_from_slice(&sound[..first]);
            history[..frames - first].copy_from_slice(&sound[first..frames]);
        }
        let mut done = 0;
        while done < frames {
            if self.fading_in.is_none() && self.target != self.current {
                self.fading_in = Some((self.target, 0));
            }
            let count = self
                .fading_in
                .map_or(usize::MAX, |(_, faded)| self.fade - faded)
                .min(frames - done);
            let from = |delay: usize| (self.write_position + done + size - delay) % size;
            let (old, new) = (
                from(self.current),
                self.fading_in.map(|(delay, faded)| (from(delay), faded)),
            );
            for (history, sound) in self.history.iter().zip(sound.iter_mut()) {
                let sound = &mut sound[done..][..count];
                match new {
                    None if self.current == 0 => {}
                    None => {
                        let first = count.min(size - old);
                        sound[..first].copy_from_slice(&history[old..][..first]);
                        sound[first..].copy_from_slice(&history[..count - first]);
                    }
                    Some((new, faded)) => {
                        for (frame, sample) in sound.iter_mut().enumerate() {
                            let gain = (faded + frame + 1) as f32 / self.fade as f32;
                            let (old, new) =
                                (history[(old + frame) % size], history[(new + frame) % size]);
                            *sample = old + gain * (new - old);
                        }
                    }
                }
            }
            done += count;
            self.fading_in = self.fading_in.map(|(delay, faded)| (delay, faded + count));
            if let Some((delay, _)) = self.fading_in.filter(|(_, faded)| *faded == self.fade) {
                (self.current, self.fading_in) = (delay, None);
            }
        }
        self.write_position = (self.write_position + frames) % size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 8_000;

    /// Delays a ramp in uneven blocks; `turn` is called before each.
    fn delayed(
        delay: &mut CompensationDelay,
        frames: usize,
        mut turn: impl FnMut(usize, &mut CompensationDelay),
    ) -> Vec<f32> {
        let (mut out, mut start) = (Vec::new(), 0);
        for length in [1, 64, 7, 33].into_iter().cycle() {
            if start >= frames {
                return out;
            }
            turn(start, delay);
            let line: Vec<f32> = (start..start + length).map(|n| n as f32 + 1.0).collect();
            let mut sound = [line.clone(), line.iter().map(|sample| -sample).collect()];
            delay.process(&mut sound, length);
            assert!(
                sound[0]
                    .iter()
                    .zip(&sound[1])
                    .all(|(left, right)| *left == -*right)
            );
            out.extend_from_slice(&sound[0]);
            start += length;
        }
        out
    }

    #[test]
    fn the_delay_is_exact() {
        for samples in [0, 1, 63, 500, 16_000] {
            let mut delay = CompensationDelay::new(RATE, 64);
            delay.set_target(samples);
            delay.jump_to_target();
            let out = delayed(&mut delay, 40_000, |_, _| {});
            assert!(out[..samples].iter().all(|sample| *sample == 0.0));
            assert!(
                out[samples..]
                    .iter()
                    .enumerate()
                    .all(|(n, sample)| *sample == n as f32 + 1.0),
                "{samples}"
            );
        }
    }

    #[test]
    fn delays_cross_fade_and_are_limited() {
        let mut delay = CompensationDelay::new(RATE, 64);
        let out = delayed(&mut delay, 60_000, |start, delay| {
            delay.set_target(if start < 20_000 { 100 } else { 999_999 })
        });
        assert_eq!((out[15_000], out[59_000]), (14_901.0, 59_001.0 - 16_000.0));
        // Cross-fades between two ramps in 80 frames: from delay 0 to 100, then to 16,000.
        let steps: Vec<f32> = out
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).abs())
            .collect();
        assert!(steps.iter().all(|step| *step < 2.0 + 16_000.0 / 80.0));
        assert!(steps[30_000..].iter().all(|step| *step == 1.0));
    }
}
