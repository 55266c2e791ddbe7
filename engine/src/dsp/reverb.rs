//! Reverberation of a stereo room.

use super::ramp::Ramp;

/// Shortest and longest reverberation time, s.
pub const TIME_RANGE_S: [f32; 2] = [0.2, 6.0];
/// Reverberation time unless one is chosen, s.
pub const DEFAULT_TIME_S: f32 = 1.2;
/// Delay lines of the network; a power of two.
const LINES: usize = 16;
/// Lengths of the shortest and the longest line, s. The first reflections come after the shortest.
const LINE_RANGE_S: [f64; 2] = [0.0193, 0.0737];
/// Lengths of the allpass filters before the network, s, and their coefficient. `[channel][filter]`
const DIFFUSER_S: [[f64; 3]; 2] = [[0.0031, 0.0053, 0.0089], [0.0037, 0.0061, 0.0079]];
const DIFFUSION: f32 = 0.6;
/// At this frequency, Hz, sound decays in this part of the reverberation time, as air and walls
/// absorb high frequencies.
const DAMPING_HZ: f64 = 5_000.0;
const DAMPED_TIME: f64 = 0.45;
/// Corner below which the input is not reverberated, Hz; 6 dB per octave.
const LOW_CUT_HZ: f64 = 90.0;
/// Limit of the input, so that no sum overflows.
const LARGEST: f32 = 1e6;
/// Durations of changes of the amount and of the time, s.
const AMOUNT_RAMP_S: f64 = 0.020;
const TIME_RAMP_S: f64 = 0.100;
/// Frames that are computed at a time; shorter than any delay.
const CHUNK: usize = 32;

/// Adds the reverberation of a room; passes samples unchanged while the amount is 0.
///
/// A feedback delay network (Jot and Chaigne, "Digital delay networks for designing artificial
/// reverberators", AES 90, 1991): sixteen delay lines feed one another through a Hadamard matrix,
/// which keeps energy, and lose as much on each way as the reverberation time asks for. Its
/// channels are uncorrelated. Has no latency.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::reverb::Reverb;
///
/// let mut reverb = Reverb::new(48_000);
/// reverb.set(0.3, 1.5);
/// let (mut left, mut right) = (vec![0.0; 48_000], vec![0.0; 48_000]);
/// (left[0], right[0]) = (1.0, 1.0);
/// reverb.process(&mut left, &mut right);
/// assert!(left[10_000..] != right[10_000..] && left[40_000..].iter().any(|sample| sample.abs() > 1e-4));
/// ```
pub struct Reverb {
    sample_rate: f64,
    amount: Ramp,
    time: Ramp,
    /// Frames since the last reset; the time changes at multiples of [`CHUNK`] only.
    position: usize,
    /// `[channel]`
    inputs: [Input; 2],
    lines: [Line; LINES],
    /// Gain of the output, so that the reverberation is as loud as the sound whatever the time.
    level: f32,
}

impl Reverb {
    /// Creates a reverb with amount 0 for a sample rate in Hz.
    #[must_use]
    pub fn new(sample_rate: u32) -> Self {
        let rate = f64::from(sample_rate);
        let [shortest, longest] = LINE_RANGE_S;
        let line = |index: usize| {
            let seconds = shortest * (longest / shortest).powf(index as f64 / (LINES - 1) as f64);
            Line::new(next_prime((seconds * rate) as usize))
        };
        let mut reverb = Self {
            sample_rate: rate,
            amount: Ramp::new(0.0, AMOUNT_RAMP_S, sample_rate),
            time: Ramp::new(
                DEFAULT_TIME_S,
                TIME_RAMP_S,
                (rate / CHUNK as f64).ceil() as u32,
            ),
            position: 0,
            inputs: DIFFUSER_S.map(|lengths| Input::new(lengths, rate)),
            lines: std::array::from_fn(line),
            level: 0.0,
        };
        reverb.apply_time(DEFAULT_TIME_S);
        reverb
    }

    /// Sets the amount, 0 to 1, at which the reverberation is as loud as the sound, and the time in
    /// which it decays by 60 dB, within [`TIME_RANGE_S`], s. Changes are smoothed; at amount 0 it
    /// ends.
    pub fn set(&mut self, amount: f32, time_s: f32) {
        // Players set all stages for each block, so that one that stays off computes nothing.
        let starts = self.is_neutral() && amount > 0.0;
        self.amount.set_target(amount.clamp(0.0, 1.0));
        self.time
            .set_target(time_s.clamp(TIME_RANGE_S[0], TIME_RANGE_S[1]));
        if starts {
            self.time.finish();
            self.apply_time(self.time.target());
        }
    }

    /// Clears all state and completes changes.
    pub fn reset(&mut self) {
        self.amount.finish();
        self.time.finish();
        self.apply_time(self.time.target());
        self.clear();
    }

    fn clear(&mut self) {
        self.position = 0;
        self.inputs.iter_mut().for_each(Input::clear);
        self.lines.iter_mut().for_each(Line::clear);
    }

    /// Returns whether samples pass unchanged until an amount is set.
    #[must_use]
    pub fn is_neutral(&self) -> bool {
        self.amount.settled() == Some(0.0)
    }

    /// Returns how long it sounds after its input has ended, by 90 dB, in samples.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        if self.is_neutral() {
            0
        } else {
            (1.5 * f64::from(self.time.target()) * self.sample_rate) as usize
        }
    }

    /// Adds the reverberation to both channels, which are equally long.
    pub fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        let (mut left, mut right) = (left, right);
        while !left.is_empty() && !self.is_neutral() {
            let frames = left.len().min(CHUNK - self.position % CHUNK);
            let (now_left, later_left) = left.split_at_mut(frames);
            let (now_right, later_right) = right.split_at_mut(frames);
            self.process_chunk(now_left, now_right);
            (left, right) = (later_left, later_right);
            if self.is_neutral() {
                self.clear();
            }
        }
    }

    /// Processes at most [`CHUNK`] frames that do not cross a multiple of it.
    fn process_chunk(&mut self, left: &mut [f32], right: &mut [f32]) {
        if self.position.is_multiple_of(CHUNK) && self.time.settled().is_none() {
            let time = self.time.advance();
            self.apply_time(time);
        }
        let frames = left.len();
        self.position = self.position.wrapping_add(frames);
        let mut diffuse = [[0.0; CHUNK]; 2];
        for ((input, diffuse), sound) in self
            .inputs
            .iter_mut()
            .zip(&mut diffuse)
            .zip([&*left, &*right])
        {
            input.process(sound, &mut diffuse[..frames]);
        }
        let mut sounds = [[0.0; CHUNK]; LINES];
        for (line, sound) in self.lines.iter_mut().zip(&mut sounds) {
            line.read(&mut sound[..frames]);
        }
        let mut wet = [[0.0; CHUNK]; 2];
        for (index, sound) in sounds.iter().enumerate() {
            // Signs of two rows of a Hadamard matrix, so that what the lines have in common cancels
            // between channels.
            let signs = [sign(index & 0b0101), sign(index & 0b0110)];
            for (wet, sign) in wet.iter_mut().zip(signs) {
                wet.iter_mut()
                    .zip(sound)
                    .for_each(|(wet, sound)| *wet += sign * sound);
            }
        }
        mix(&mut sounds);
        for (index, (line, sound)) in self.lines.iter_mut().zip(&mut sounds).enumerate() {
            sound
                .iter_mut()
                .zip(&diffuse[index % 2])
                .for_each(|(sound, input)| *sound += input);
            line.write(&sound[..frames]);
        }
        for frame in 0..frames {
            let gain = self.level * self.amount.advance();
            left[frame] += gain * wet[0][frame];
            right[frame] += gain * wet[1][frame];
        }
    }

    /// Computes what each line loses.
    fn apply_time(&mut self, time_s: f32) {
        let time = f64::from(time_s);
        let bend = 1.0
            - (std::f64::consts::TAU * DAMPING_HZ / self.sample_rate)
                .min(std::f64::consts::PI)
                .cos();
        let mut kept = 0.0;
        for line in &mut self.lines {
            let seconds = line.delay.samples.len() as f64 / self.sample_rate;
            let decay = |time: f64| 10.0_f64.powf(-3.0 * seconds / time);
            let gain = decay(time);
            let damped = decay(DAMPED_TIME * time) / gain;
            // The mean of a sample and the one before, with weights 1 − b and b: its squared gain
            // is 1 − 2b(1 − b)(1 − cos ω).
            let product = (1.0 - damped * damped) / (2.0 * bend);
            let b = (1.0 - (1.0 - 4.0 * product).max(0.0).sqrt()) / 2.0;
            line.gains = [gain * (1.0 - b), gain * b].map(|gain| gain as f32);
            kept += gain * gain / LINES as f64;
        }
        // A line's sound has the energy of its input times kept + kept² + …, and each output sums
        // all lines.
        self.level = ((1.0 - kept) / (kept * LINES as f64)).sqrt() as f32;
    }
}

/// Ring of the last samples; its length is the delay.
struct Delay {
    samples: Box<[f32]>,
    position: usize,
}

impl Delay {
    fn new(samples: usize) -> Self {
        Self {
            samples: vec![0.0; samples.max(CHUNK)].into(),
            position: 0,
        }
    }

    /// Returns the oldest `frames` samples, in two slices.
    fn oldest(&mut self, frames: usize) -> [&mut [f32]; 2] {
        let (before, after) = self.samples.split_at_mut(self.position);
        let first = frames.min(after.len());
        [&mut after[..first], &mut before[..frames - first]]
    }

    fn advance(&mut self, frames: usize) {
        self.position = (self.position + frames) % self.samples.len();
    }
}

/// A line of the network.
struct Line {
    delay: Delay,
    /// Gains of the delayed sample and of the one before it.
    gains: [f32; 2],
    last: f32,
}

impl Line {
    fn new(samples: usize) -> Self {
        Self {
            delay: Delay::new(samples),
            gains: [0.0; 2],
            last: 0.0,
        }
    }

    fn clear(&mut self) {
        self.delay.samples.fill(0.0);
        self.last = 0.0;
    }

    /// Reads delayed sound with its losses.
    fn read(&mut self, sound: &mut [f32]) {
        let mut delayed = [0.0; CHUNK + 1];
        delayed[0] = self.last;
        let [first, second] = self.delay.oldest(sound.len());
        let (start, end) = delayed[1..=sound.len()].split_at_mut(first.len());
        start.copy_from_slice(first);
        end.copy_from_slice(second);
        self.last = delayed[sound.len()];
        let [now, before] = self.gains;
        for (sound, pair) in sound.iter_mut().zip(delayed.windows(2)) {
            *sound = now * pair[1] + before * pair[0];
        }
    }

    fn write(&mut self, sound: &[f32]) {
        let [first, second] = self.delay.oldest(sound.len());
        let (start, end) = sound.split_at(first.len());
        first.copy_from_slice(start);
        second.copy_from_slice(end);
        self.delay.advance(sound.len());
    }
}

/// High-pass of one channel before the network, and allpass filters in series (Schroeder, "Natural
/// sounding artificial reverberation", JAES 10, 1962), which make many reflections of one.
struct Input {
    /// Coefficient of the running mean that the high-pass subtracts.
    share: f32,
    mean: f32,
    diffusers: [Delay; 3],
}

impl Input {
    fn new(lengths_s: [f64; 3], rate: f64) -> Self {
        Self {
            share: (1.0 - (-std::f64::consts::TAU * LOW_CUT_HZ / rate).exp()) as f32,
            mean: 0.0,
            diffusers: lengths_s.map(|seconds| Delay::new(next_prime((seconds * rate) as usize))),
        }
    }

    fn clear(&mut self) {
        self.mean = 0.0;
        self.diffusers
            .iter_mut()
            .for_each(|delay| delay.samples.fill(0.0));
    }

    fn process(&mut self, sound: &[f32], diffuse: &mut [f32]) {
        for (diffuse, &sample) in diffuse.iter_mut().zip(sound) {
            // A non-finite value would persist.
            let sample = if sample.is_finite() {
                sample.clamp(-LARGEST, LARGEST)
            } else {
                0.0
            };
            self.mean += self.share * (sample - self.mean);
            *diffuse = sample - self.mean;
        }
        for delay in &mut self.diffusers {
            let [first, second] = delay.oldest(diffuse.len());
            for (sample, delayed) in diffuse.iter_mut().zip(first.iter_mut().chain(second)) {
                let entering = *sample + DIFFUSION * *delayed;
                *sample = *delayed - DIFFUSION * entering;
                *delayed = entering;
            }
            delay.advance(diffuse.len());
        }
    }
}

/// Multiplies the lines' sounds by an orthonormal Hadamard matrix.
fn mix(sounds: &mut [[f32; CHUNK]; LINES]) {
    let mut half = 1;
    while half < LINES {
        for group in sounds.chunks_exact_mut(2 * half) {
            let (low, high) = group.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                for (low, high) in low.iter_mut().zip(high) {
                    (*low, *high) = (*low + *high, *low - *high);
                }
            }
        }
        half *= 2;
    }
    let scale = 1.0 / (LINES as f32).sqrt();
    sounds
        .as_flattened_mut()
        .iter_mut()
        .for_each(|sample| *sample *= scale);
}

/// Returns −1 for an odd number of bits, else 1.
fn sign(bits: usize) -> f32 {
    if bits.count_ones() % 2 == 1 {
        -1.0
    } else {
        1.0
    }
}

/// Returns the least prime from `number` on, so that the delays have no common multiples.
fn next_prime(number: usize) -> usize {
    let is_prime = |n: &usize| {
        (2..)
            .take_while(|divisor| divisor * divisor <= *n)
            .all(|divisor| !n.is_multiple_of(divisor))
    };
    (number.max(2)..).find(is_prime).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsp::level::max_step;
    use crate::random::Lcg;

    const RATE: u32 = 48_000;

    fn response(amount: f32, time: f32, frames: usize) -> [Vec<f32>; 2] {
        let mut reverb = Reverb::new(RATE);
        reverb.set(amount, time);
        reverb.reset();
        let mut channels = [vec![0.0; frames], vec![0.0; frames]];
        channels.iter_mut().for_each(|channel| channel[0] = 1.0);
        let [left, right] = &mut channels;
        reverb.process(left, right);
        channels
    }

    fn energy_db(sound: &[f32]) -> f64 {
        10.0 * sound
            .iter()
            .map(|sample| f64::from(*sample).powi(2))
            .sum::<f64>()
            .log10()
    }

    fn noise(frames: usize, seed: u32) -> Vec<f32> {
        let mut random = Lcg::new(seed);
        (0..frames).map(|_| random.next_signed() as f32).collect()
    }

    #[test]
    fn it_decays_by_60_db_in_its_time() {
        for time in [0.5, 2.0] {
            let [left, _] = response(1.0, time, (2.0 * time * RATE as f32) as usize);
            // Low frequencies: sums of neighbours, since high ones decay sooner.
            let low: Vec<f32> = left
                .chunks_exact(48)
                .map(|chunk| chunk.iter().sum())
                .collect();
            let at = |seconds: f32| energy_db(&low[(1e3 * seconds) as usize..][..200]);
            let decay = (at(0.2 * time) - at(0.9 * time)) / 0.7;
            assert!((52.0..68.0).contains(&decay), "{decay} dB in {time} s");
        }
    }

    #[test]
    fn it_is_as_loud_as_the_sound_at_full_amount_and_wide() {
        for time in [0.4, 1.5, 4.0] {
            let mut reverb = Reverb::new(RATE);
            reverb.set(1.0, time);
            reverb.reset();
            // Below about 2 kHz, since high frequencies decay sooner.
            let white = noise(8 * RATE as usize + 23, 1);
            let dry: Vec<f32> = white
                .windows(24)
                .map(|window| window.iter().sum::<f32>() / 24.0)
                .collect();
            let (mut left, mut right) = (dry.clone(), dry.clone());
            reverb.process(&mut left, &mut right);
            let from = 6 * RATE as usize;
            let wet = |sound: &[f32]| {
                sound
                    .iter()
                    .zip(&dry)
                    .skip(from)
                    .map(|(a, b)| a - b)
                    .collect::<Vec<_>>()
            };
            let (left, right) = (wet(&left), wet(&right));
            let level = energy_db(&left) - energy_db(&dry[from..]);
            assert!((-3.0..1.5).contains(&level), "{level} dB with {time} s");
            let product: f64 = left
                .iter()
                .zip(&right)
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum();
            let correlation =
                product / 10.0_f64.powf((energy_db(&left) + energy_db(&right)) / 20.0);
            assert!(correlation.abs() < 0.2, "{correlation} with {time} s");
        }
    }

    #[test]
    fn output_does_not_depend_on_block_length() {
        let sound = noise(6_000, 3);
        let play = |block: usize| {
            let mut reverb = Reverb::new(RATE);
            let (mut left, mut right) = (sound.clone(), noise(6_000, 4));
            for (index, (left, right)) in left
                .chunks_mut(block)
                .zip(right.chunks_mut(block))
                .enumerate()
            {
                match index * block {
                    0 => reverb.set(0.5, 1.0),
                    2_400 => reverb.set(0.8, 3.0),
                    4_800 => reverb.set(0.0, 3.0),
                    _ => {}
                }
                reverb.process(left, right);
            }
            assert!(reverb.is_neutral() && reverb.tail_samples() == 0);
            (left, right)
        };
        let expected = play(1_200);
        assert!(
            expected.0[3_000..4_000] != sound[3_000..4_000]
                && expected.0[5_800..] == sound[5_800..]
        );
        for block in [1, 48, 75, 800] {
            assert!(play(block) == expected, "blocks of {block}");
        }
    }

    #[test]
    fn it_is_off_by_default_and_starts_clean() {
        let sound = noise(2_000, 5);
        let mut reverb = Reverb::new(RATE);
        let (mut left, mut right) = (sound.clone(), sound.clone());
        reverb.process(&mut left, &mut right);
        assert!(left == sound && right == sound);
        reverb.set(1.0, 1.0);
        reverb.process(&mut left, &mut right);
        reverb.set(0.0, 1.0);
        reverb.process(&mut left, &mut right);
        reverb.set(1.0, 1.0);
        let (mut left, mut right) = (vec![0.0; 2_000], vec![0.0; 2_000]);
        reverb.process(&mut left, &mut right);
        assert!(
            left.iter().chain(&right).all(|sample| *sample == 0.0),
            "an earlier tail is heard"
        );
    }

    #[test]
    fn knobs_turn_without_clicks_and_hostile_samples_are_forgotten() {
        let mut reverb = Reverb::new(RATE);
        let sine = |n: usize| 0.3 * (n as f32 * 0.01).sin();
        let (mut steps, mut last) = (Vec::new(), 0.0);
        for (block, amount) in [0.0, 0.6, 0.2, 1.0, 0.5, 0.0].into_iter().enumerate() {
            reverb.set(amount, if block % 2 == 0 { 0.3 } else { 5.0 });
            let mut left: Vec<f32> = (0..4_800).map(|n| sine(block * 4_800 + n)).collect();
            let mut right = left.clone();
            reverb.process(&mut left, &mut right);
            steps.push((left[0] - last).abs().max(max_step(&left)));
            last = left[4_799];
        }
        assert!(steps.iter().all(|step| *step < 0.02), "{steps:?}");
        reverb.set(1.0, 6.0);
        let (mut left, mut right) = (vec![0.1; 4_800], vec![0.1; 4_800]);
        (left[7], left[8], right[9]) = (f32::NAN, f32::INFINITY, f32::MAX);
        reverb.process(&mut left, &mut right);
        let (mut left, mut right) = (vec![0.1; 480_000], vec![0.1; 480_000]);
        reverb.process(&mut left, &mut right);
        assert!(left.iter().chain(&right).all(|sample| sample.is_finite()));
    }

    #[test]
    fn all_rates_have_lines_of_different_lengths() {
        for rate in [8_000, 44_100, 48_000, 192_000, 384_000] {
            let mut lengths = Reverb::new(rate).lines.map(|line| line.delay.samples.len());
            lengths.sort_unstable();
            assert!(
                lengths.windows(2).all(|pair| pair[0] < pair[1]),
                "{rate} Hz: {lengths:?}"
            );
        }
    }
}
