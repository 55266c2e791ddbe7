//! Looper: records what is played, and plays it again and again.
//!
//! The first press of the pedal records, the second plays, and then every other one adds to the
//! loop. The seam of a loop is a cross-fade into what was played on behind its end. There are two
//! copies of the loop, with and without what was added last, so that undo and redo need no time.

use super::{Activity, Effect, EffectKind, EffectParameter};
use crate::dsp::level::{db_to_amplitude, limit_sample};
use crate::dsp::ramp::Ramp;
use crate::pipeline::{ENDLESS, Transport};

/// Id of the effect.
pub const ID: &str = "looper";
/// Longest loop, s.
pub const LONGEST_S: usize = 60;
/// Names of the states, by [`Activity::state`].
pub const STATES: [&str; 6] = [
    "Empty",
    "Waiting",
    "Recording",
    "Playing",
    "Overdubbing",
    "Stopped",
];

/// Duration of fades and of the seam, s.
const FADE_S: f64 = 0.010;
/// Distance from the song from which the loop jumps to it, s; a smaller one is made up for a sample
/// a turn.
const AWAY_S: f64 = 0.005;
/// Lengths that recordings are whole numbers of, quarter notes, by the choice of `sync`.
const QUARTERS: [f64; 3] = [0.0, 1.0, 4.0];
/// Distance between positions of a song that goes on, beats.
const CONTINUOUS: f64 = 0.01;
/// Frames that are settled with each sample.
const SETTLED: usize = 64;

pub(super) static KIND: EffectKind = EffectKind {
    id: ID,
    name: "Looper",
    description: "Records, plays again and again, and adds; by pedals, in time with the song if wanted.",
    parameters: &[
        EffectParameter::trigger("pedal", "Record, play, overdub"),
        EffectParameter::trigger("stop", "Stop"),
        EffectParameter::trigger("undo", "Undo, redo"),
        EffectParameter::trigger("clear", "Clear"),
        EffectParameter::choice("half", "Speed", &["Normal", "Half"]),
        EffectParameter::choice("reverse", "Direction", &["Forwards", "Backwards"]),
        EffectParameter::choice("sync", "Sync", &["Free", "Beats", "Bars of four"]),
        EffectParameter::new("decay", "Decay", "", [0.0, 1.0], 0.0),
        EffectParameter::new("volume", "Loop", " dB", [-60.0, 6.0], 0.0),
    ],
    mix: 1.0,
    new: |sample_rate| Box::new(Looper::new(sample_rate)),
};

/// Returns whether it records or adds in a state, by its number.
#[must_use]
pub fn records(state: u8) -> bool {
    [State::Recording, State::Overdubbing]
        .map(|state| state as u8)
        .contains(&state)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Empty,
    /// Waits for the song, or for the last loop to fade out, to record.
    Waiting,
    Recording,
    Playing,
    Overdubbing,
    Stopped,
}

/// Neighbouring frames of a loop.
#[derive(Clone, Copy, Debug, Default)]
struct Frames {
    start: usize,
    count: usize,
}

impl Frames {
    /// Returns the place of a frame of a loop of this length, if it is among them.
    fn place(self, frame: usize, length: usize) -> Option<usize> {
        let place = (frame + length - self.start) % length.max(1);
        (place < self.count).then_some(place)
    }

    /// Adds a frame before or behind them.
    fn extend(&mut self, frame: usize, length: usize) {
        if self.count == 0 || (frame + 1) % length == self.start {
            self.start = frame;
        }
        self.count = (self.count + 1).min(length);
    }
}

struct Looper {
    sample_rate: u32,
    /// Pedals that are down; `None` before they are known.
    pedals: Option<[bool; 4]>,
    half: bool,
    reverse: bool,
    /// Quarter notes; 0 if the song does not matter.
    quantum: f64,
    /// Share of the loop that each turn of overdubbing takes away.
    decay: f32,
    volume: Ramp,
    state: State,
    /// `[channel][frame]`: the loop, and the loop without what was added last.
    sound: [Vec<f32>; 2],
    without: [Vec<f32>; 2],
    /// Frames of the loop.
    length: usize,
    /// Half frames.
    head: usize,
    /// Frames that were added to last, and whether that is undone, 0 to 1.
    added: Frames,
    undone: Ramp,
    /// Adding has begun, since the last press.
    adds: bool,
    /// Frames of an addition that was undone and is to be forgotten, and how many have been.
    settling: Option<(Frames, usize)>,
    /// Share of the loop in the output, and of the input in the loop.
    heard: Ramp,
    into: Ramp,
    /// The last input.
    last: [f32; 2],
    /// Frames of the seam that are still to be played, and all of them.
    seam: usize,
    seam_length: usize,
    /// Beat of the next sample while the song plays, and beats a sample.
    beat: Option<f64>,
    step: f64,
    /// Beat at which recording begins or ends, if it waits for one.
    line: Option<f64>,
    /// Beat at the beginning of the loop, beats a sample there, and its beats; none for a free one.
    origin: f64,
    origin_step: f64,
    beats: f64,
    /// Frames by which the loop is late, and whether it fades out to jump to the song.
    drift: isize,
    jumps: bool,
}

impl Looper {
    fn new(sample_rate: u32) -> Self {
        let capacity = LONGEST_S * sample_rate as usize;
        // Memory that was written is there when the audio thread needs it; zeros might not be.
        let sound = || [vec![1e-30; capacity], vec![1e-30; capacity]];
        let ramp = |value| Ramp::new(value, FADE_S, sample_rate);
        Self {
            sample_rate,
            pedals: None,
            half: false,
            reverse: false,
            quantum: 0.0,
            decay: 0.0,
            volume: ramp(1.0),
            state: State::Empty,
            sound: sound(),
            without: sound(),
            length: 0,
            head: 0,
            added: Frames::default(),
            undone: ramp(0.0),
            adds: false,
            settling: None,
            heard: ramp(0.0),
            into: ramp(0.0),
            last: [0.0; 2],
            seam: 0,
            seam_length: 0,
            beat: None,
            step: 0.0,
            line: None,
            origin: 0.0,
            origin_step: 0.0,
            beats: 0.0,
            drift: 0,
            jumps: false,
        }
    }

    /// Returns the next beat at which a recording may begin or end.
    fn next_line(&self) -> Option<f64> {
        let beat = self.beat.filter(|_| self.quantum > 0.0)?;
        Some((beat / self.quantum - 1e-6).ceil() * self.quantum)
    }

    fn press(&mut self) {
        match self.state {
            State::Empty => {
                self.line = self.next_line();
                self.state = State::Waiting;
            }
            State::Waiting => self.state = State::Empty,
            State::Recording => {
                // Beside the line where it began there is another one.
                let next = self.next_line();
                let least = self.origin + self.quantum;
                self.line = next
                    .map(|line| line.max(least))
                    .filter(|_| self.beats > 0.0);
                if self.line.is_none() {
                    self.beats = 0.0;
                    self.close();
                }
            }
            State::Playing => self.state = State::Overdubbing,
            State::Overdubbing => self.state = State::Playing,
            State::Stopped => {
                self.state = State::Playing;
                if self.heard.settled() == Some(0.0) {
                    self.head = 2 * self.song_frame().unwrap_or(0);
                }
            }
        }
    }

    fn stop(&mut self) {
        match self.state {
            State::Empty | State::Stopped => {}
            State::Waiting => self.state = State::Empty,
            State::Recording => {
                self.beats = 0.0;
                self.close();
                self.heard.jump(0.0);
                // Unless nothing has been recorded yet.
                if self.length > 0 {
                    self.state = State::Stopped;
                }
            }
            State::Playing | State::Overdubbing => self.state = State::Stopped,
        }
    }

    fn undo(&mut self) {
        if matches!(self.state, State::Empty | State::Waiting | State::Recording) {
            return;
        }
        if self.state == State::Overdubbing {
            self.state = State::Playing;
        }
        self.adds = false;
        self.into.jump(0.0);
        self.undone.set_target(1.0 - self.undone.target());
    }

    fn clear(&mut self) {
        if self.state == State::Recording {
            self.length = 0;
        }
        (self.state, self.line) = (State::Empty, None);
    }

    /// Ends a recording, and plays it.
    fn close(&mut self) {
        self.state = State::Playing;
        self.line = None;
        self.head = 0;
        let fade = (FADE_S * f64::from(self.sample_rate)) as usize;
        self.seam_length = fade.min(self.length / 2);
        self.seam = self.seam_length;
        self.heard.jump(1.0);
        if self.length == 0 {
            self.state = State::Empty;
        }
    }

    fn begin_recording(&mut self) {
        self.state = State::Recording;
        self.length = 0;
        (self.added, self.settling) = (Frames::default(), None);
        self.undone.jump(0.0);
        self.origin = self.line.take().or(self.beat).unwrap_or_default();
        self.origin_step = self.step;
        // How long it becomes is known at its end; only whether the song counts is known now.
        self.beats = match self.beat {
            Some(_) => self.quantum,
            None => 0.0,
        };
    }

    /// Returns whether a beat that is waited for has come; true if none is.
    fn is_due(&self) -> bool {
        match (self.line, self.beat) {
            (Some(line), Some(beat)) => beat + 0.5 * self.step >= line,
            _ => true,
        }
    }

    /// Returns the frame of the loop that belongs to the song now, if it follows one.
    fn song_frame(&self) -> Option<usize> {
        let is_same = self.beats > 0.0 && !self.half && !self.reverse;
        let beat = self.beat.filter(|_| is_same && self.length > 0)?;
        let share = (beat - self.origin).rem_euclid(self.beats) / self.beats;
        Some((share * self.length as f64).round() as usize % self.length)
    }

    /// Lets the loop follow the song.
    fn follow_song(&mut self) {
        let Some(expected) = self.song_frame() else {
            return;
        };
        if !matches!(self.state, State::Playing | State::Overdubbing) || self.seam > 0 {
            return;
        }
        let length = self.length as isize;
        let late = (expected as isize - (self.head / 2) as isize).rem_euclid(length);
        let late = if late > length / 2 {
            late - length
        } else {
            late
        };
        if late.unsigned_abs() > (AWAY_S * f64::from(self.sample_rate)) as usize {
            self.jumps = true;
            self.state = State::Playing;
        } else {
            self.drift = late;
        }
    }

    /// Forgets some more of what was undone.
    fn settle(&mut self) {
        let Some((frames, done)) = self.settling.filter(|_| self.length > 0) else {
            self.settling = None;
            return;
        };
        let next = (done + SETTLED).min(frames.count);
        for place in done..next {
            let frame = (frames.start + place) % self.length;
            if self.added.place(frame, self.length).is_none() {
                for (sound, without) in self.sound.iter_mut().zip(&self.without) {
                    sound[frame] = without[frame];
                }
            }
        }
        self.settling = (next < frames.count).then_some((frames, next));
    }

    /// Returns the loop at a frame, with and without what is undone as far as `undone` says.
    fn at(&self, frame: usize, undone: f32) -> [f32; 2] {
        let is_added = self.added.place(frame, self.length).is_some();
        let is_unsettled = self.settling.is_some_and(|(frames, done)| {
            let place = frames.place(frame, self.length);
            place.is_some_and(|place| place >= done)
        });
        let share = match (is_added, is_unsettled) {
            (true, _) => undone,
            (false, true) => 1.0,
            (false, false) => 0.0,
        };
        [0, 1].map(|channel| {
            let (with, without) = (self.sound[channel][frame], self.without[channel][frame]);
            match share {
                0.0 => with,
                1.0 => without,
                _ => with + share * (without - with),
            }
        })
    }

    /// Plays a frame of the loop, and adds the input to it; returns what is heard of it.
    fn turn(&mut self, input: [f32; 2]) -> [f32; 2] {
        let length = self.length;
        let undone = self.undone.advance();
        let frame = self.head / 2;
        let is_between = self.head % 2 == 1;
        let now = self.at(frame, undone);
        let mut heard = now;
        if is_between {
            // Half of the way between two frames, by the four around it.
            let around = [length - 1, 1, 2].map(|way| self.at((frame + way) % length, undone));
            for (channel, heard) in heard.iter_mut().enumerate() {
                let [before, next, after] = around.map(|frame| frame[channel]);
                *heard = 0.5625 * (*heard + next) - 0.0625 * (before + after);
            }
        }
        if self.seam > 0 {
            let share = 1.0 - self.seam as f32 / self.seam_length as f32;
            for (channel, heard) in heard.iter_mut().enumerate() {
                *heard *= share;
                self.sound[channel][frame] = *heard + (1.0 - share) * input[channel];
            }
            self.seam -= 1;
        } else {
            let wants = self.state == State::Overdubbing;
            if wants && !self.adds && self.undone.settled().is_some() && self.settling.is_none() {
                if self.undone.settled() == Some(1.0) {
                    self.settling = Some((self.added, 0));
                }
                self.undone.jump(0.0);
                (self.added, self.adds) = (Frames::default(), true);
            }
            self.into
                .set_target(f32::from(u8::from(wants && self.adds)));
            let into = self.into.advance();
            if into > 0.0 && !is_between {
                let is_new = self.added.place(frame, length).is_none();
                for channel in 0..2 {
                    let new = match self.half {
                        true => 0.5 * (input[channel] + self.last[channel]),
                        false => input[channel],
                    };
                    if is_new {
                        self.without[channel][frame] = now[channel];
                    }
                    self.sound[channel][frame] =
                        limit_sample(now[channel] * (1.0 - into * self.decay) + into * new);
                }
                if is_new {
                    self.added.extend(frame, length);
                }
            } else if into == 0.0 && !wants {
                self.adds = false;
            }
        }
        self.move_head();
        let gain = self.heard.advance();
        heard.map(|sample| gain * sample)
    }

    fn move_head(&mut self) {
        let ends = 2 * self.length;
        let is_in_seam = self.seam > 0;
        let step = if self.half && !is_in_seam { 1 } else { 2 };
        if step == 2 {
            self.head &= !1;
        }
        if self.reverse && !is_in_seam {
            self.head = (self.head + ends - step) % ends;
            return;
        }
        self.head += step;
        if self.head >= ends {
            self.head -= ends;
            // A sample more or less at the seam keeps it with the song.
            if self.drift != 0 && !self.adds {
                let frame = (self.length as isize + self.drift.signum()) % self.length as isize;
                self.head = (2 * frame as usize + self.head) % ends;
                self.drift = 0;
            }
        }
    }

    fn sample(&mut self, input: [f32; 2]) -> [f32; 2] {
        self.settle();
        // What has lost the song ends at once: the beat may never come.
        if self.state == State::Recording
            && let Some(line) = self.line
            && (self.beats == 0.0 || self.is_due())
        {
            if self.beats > 0.0 {
                self.beats = ((line - self.origin) / self.quantum).round() * self.quantum;
            }
            self.close();
        }
        if self.state == State::Waiting && self.length == 0 && self.is_due() {
            self.begin_recording();
        }
        if self.state == State::Recording {
            for (sound, input) in self.sound.iter_mut().zip(input) {
                sound[self.length] = input;
            }
            self.length += 1;
            if self.length == self.sound[0].len() {
                self.beats = 0.0;
                self.close();
            }
            return [0.0; 2];
        }
        let plays = matches!(self.state, State::Playing | State::Overdubbing) && !self.jumps;
        self.heard.set_target(f32::from(u8::from(plays)));
        let is_silent = !plays && self.heard.settled() == Some(0.0) && self.seam == 0;
        if is_silent && self.jumps {
            self.jumps = false;
            self.head = 2 * self.song_frame().unwrap_or(0);
        } else if is_silent {
            self.head = 0;
            if matches!(self.state, State::Empty | State::Waiting) {
                self.length = 0;
            }
            return [0.0; 2];
        }
        self.turn(input)
    }
}

impl Effect for Looper {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        let &[pedal, stop, undo, clear, half, reverse, sync, decay, volume] = values else {
            return;
        };
        (self.half, self.reverse) = (half == 1.0, reverse == 1.0);
        self.quantum = QUARTERS[(sync as usize).min(QUARTERS.len() - 1)];
        self.decay = decay;
        self.volume.set_target(db_to_amplitude(volume));
        let pedals = [pedal, stop, undo, clear].map(|value| value == 1.0);
        let before = self.pedals.replace(pedals).unwrap_or(pedals);
        let actions = [Self::press, Self::stop, Self::undo, Self::clear];
        for ((action, is_down), was_down) in actions.into_iter().zip(pedals).zip(before) {
            if is_down && !was_down {
                action(self);
            }
        }
    }

    fn follow(&mut self, song: &Transport) {
        self.step = f64::from(song.tempo) / 60.0 / f64::from(self.sample_rate);
        let expected = self.beat;
        self.beat = song.playing.then_some(song.position);
        let goes_on = expected.zip(self.beat);
        let goes_on = goes_on.is_some_and(|(one, other)| (one - other).abs() < CONTINUOUS);
        // A loop in two tempi follows none, nor does one over a jump of the song or its end.
        let is_same = self.step.to_bits() == self.origin_step.to_bits();
        if self.state == State::Recording && !(is_same && goes_on) {
            self.beats = 0.0;
        }
        if let (Some(line), Some(next)) = (self.line, self.next_line())
            && self.state == State::Waiting
        {
            self.line = Some(line.min(next));
        }
        if is_same {
            self.follow_song();
        }
    }

    /// Stops. What was recorded is kept: a host may reset for many reasons.
    fn reset(&mut self) {
        self.volume.finish();
        self.stop();
        for ramp in [&mut self.heard, &mut self.into] {
            ramp.jump(0.0);
        }
        self.undone.finish();
        (self.adds, self.seam, self.jumps) = (false, 0, false);
        self.last = [0.0; 2];
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        for (left, right) in left.iter_mut().zip(right) {
            let input = [*left, *right].map(limit_sample);
            let heard = self.sample(input);
            let volume = self.volume.advance();
            *left = input[0] + volume * heard[0];
            *right = input[1] + volume * heard[1];
            self.last = input;
            self.beat = self.beat.map(|beat| beat + self.step);
        }
    }

    fn tail_samples(&self) -> usize {
        match self.state {
            State::Empty | State::Stopped => (FADE_S * f64::from(self.sample_rate)) as usize,
            _ => ENDLESS,
        }
    }

    fn activity(&self) -> Option<Activity> {
        let position = match self.state {
            State::Recording => self.length as f32 / self.sound[0].len() as f32,
            _ => self.head as f32 / (2 * self.length.max(1)) as f32,
        };
        Some(Activity {
            state: self.state as u8,
            position,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::tests::{sine, spectrum_db};
    use super::*;
    use crate::dsp::level::{max_step, peak};
    use crate::random::SplitMix64;

    const RATE: u32 = 48_000;
    const PEDAL: usize = 0;
    const STOP: usize = 1;
    const UNDO: usize = 2;
    const CLEAR: usize = 3;
    const HALF: usize = 4;
    const REVERSE: usize = 5;
    const SYNC: usize = 6;

    /// A looper with its values.
    struct Stage {
        looper: Looper,
        values: Vec<f32>,
    }

    impl Stage {
        fn new() -> Self {
            let mut looper = Looper::new(RATE);
            let values = KIND.defaults();
            looper.set(&values, 120.0);
            looper.reset();
            Self { looper, values }
        }

        fn choose(&mut self, parameter: usize, value: f32) {
            self.values[parameter] = value;
            self.looper.set(&self.values, 120.0);
        }

        fn press(&mut self, pedal: usize) {
            self.choose(pedal, 1.0);
            self.choose(pedal, 0.0);
        }

        /// Plays sound; returns what the looper adds to it.
        fn play(&mut self, sound: &[f32]) -> Vec<f32> {
            let (mut left, mut right) = (sound.to_vec(), sound.to_vec());
            for (left, right) in left.chunks_mut(100).zip(right.chunks_mut(100)) {
                self.looper.process(left, right);
            }
            assert_eq!(left, right);
            left.iter().zip(sound).map(|(out, dry)| out - dry).collect()
        }

        fn listen(&mut self, seconds: f64) -> Vec<f32> {
            self.play(&vec![0.0; (seconds * f64::from(RATE)) as usize])
        }

        fn state(&self) -> &'static str {
            STATES[usize::from(self.looper.activity().unwrap().state)]
        }

        /// Records a sound as a loop.
        fn record(sound: &[f32]) -> Self {
            let mut stage = Self::new();
            stage.press(PEDAL);
            assert!(stage.play(sound).iter().all(|sample| *sample == 0.0));
            assert_eq!(stage.state(), "Recording");
            stage.press(PEDAL);
            stage
        }
    }

    /// Asserts the levels of these tones in a second of sound, dB; 0 is full scale.
    fn assert_tones(sound: &[f32], tones: &[(usize, f64)]) {
        let spectrum = spectrum_db(sound);
        for (hz, expected) in tones {
            let found = spectrum[*hz].max(-80.0);
            let is_near = (found - expected).abs() < 0.3;
            assert!(
                is_near || *expected <= -80.0 && found < -70.0,
                "{hz} Hz: {found} dB"
            );
        }
    }

    #[test]
    fn a_loop_has_no_seam() {
        // The tone goes on behind the end, as somebody plays who presses the pedal.
        let tone = sine(200.0, -10.0, 3.0);
        let mut stage = Stage::record(&tone[..48_000]);
        let mut heard = stage.play(&tone[48_000..49_000]);
        heard.extend(stage.listen(3.0));
        assert_eq!(stage.state(), "Playing");
        let far = heard[48_000..144_000]
            .iter()
            .zip(&tone[48_000..])
            .map(|(heard, tone)| (heard - tone).abs());
        assert!(far.fold(0.0, f32::max) < 1e-4);
        // Nor has one whose end is elsewhere than its beginning.
        let other = sine(93.7, -10.0, 2.0);
        let mut stage = Stage::record(&other[..37_000]);
        let mut heard = stage.play(&other[37_000..38_000]);
        heard.extend(stage.listen(3.0));
        assert!(max_step(&heard) < 1.5 * max_step(&tone) && peak(&heard[100_000..]) > 0.3);
    }

    #[test]
    fn overdubs_are_undone_and_redone() {
        let mut stage = Stage::record(&sine(200.0, -20.0, 1.0));
        stage.listen(1.0);
        stage.press(PEDAL);
        assert_eq!(stage.state(), "Overdubbing");
        stage.play(&sine(300.0, -20.0, 1.0));
        stage.press(PEDAL);
        // Fades end within it.
        stage.listen(1.0);
        let (both, first, second) = (-20.0, [(200, -20.0), (300, -80.0)], (300, -20.0));
        assert_tones(&stage.listen(1.0), &[(200, both), second]);
        stage.press(UNDO);
        let mut heard = stage.listen(1.0);
        assert_tones(&stage.listen(1.0), &first);
        stage.press(UNDO);
        heard.extend(stage.listen(1.0));
        assert_tones(&stage.listen(1.0), &[(200, both), second]);
        // What is undone is gone once something else is added, all around the loop.
        stage.press(UNDO);
        heard.extend(stage.listen(0.3));
        stage.press(PEDAL);
        heard.extend(stage.play(&sine(500.0, -20.0, 0.25)));
        stage.press(PEDAL);
        heard.extend(stage.listen(1.0));
        let found = spectrum_db(&stage.listen(1.0));
        assert!((found[200] + 20.0).abs() < 0.3 && found[300] < -70.0);
        assert!((found[500] + 32.0).abs() < 1.0, "{}", found[500]);
        stage.press(UNDO);
        stage.listen(0.1);
        assert_tones(
            &stage.listen(1.0),
            &[(200, both), (300, -80.0), (500, -80.0)],
        );
        assert!(max_step(&heard) < 0.04, "{}", max_step(&heard));
    }

    #[test]
    fn each_turn_of_overdubbing_takes_its_share_away() {
        let mut stage = Stage::record(&sine(200.0, -20.0, 1.0));
        stage.choose(7, 0.5);
        stage.listen(1.0);
        stage.press(PEDAL);
        stage.listen(2.0);
        stage.press(PEDAL);
        stage.listen(1.0);
        let found = spectrum_db(&stage.listen(1.0))[200];
        assert!((found + 32.0).abs() < 0.3, "{found}");
    }

    #[test]
    fn half_speed_is_an_octave_lower_and_backwards_is_backwards() {
        let mut stage = Stage::record(&sine(200.0, -20.0, 1.0));
        stage.listen(0.5);
        stage.choose(HALF, 1.0);
        stage.listen(1.0);
        assert_tones(&stage.listen(1.0), &[(100, -20.0), (200, -80.0)]);
        // What is added at half speed is an octave higher at full speed.
        stage.press(PEDAL);
        stage.play(&sine(300.0, -20.0, 2.0));
        stage.press(PEDAL);
        stage.choose(HALF, 0.0);
        stage.listen(1.0);
        assert_tones(&stage.listen(1.0), &[(200, -20.0), (600, -20.0)]);

        let loud_at_the_end = |n: usize| (n as f32 / 48_000.0) * (n as f32 * 0.05).sin();
        let swell: Vec<f32> = (0..49_000).map(loud_at_the_end).collect();
        let mut stage = Stage::record(&swell[..48_000]);
        stage.choose(REVERSE, 1.0);
        stage.play(&swell[48_000..]);
        stage.listen(1.0);
        let heard = stage.listen(1.0);
        assert!(max_step(&heard) < 0.06);
        // The seam is as loud as the end that it comes from.
        let quarter = |place: usize| peak(&heard[12_000 * place..12_000 * place + 11_000]);
        assert!(quarter(0) > quarter(1) && quarter(1) > quarter(2) && quarter(2) > quarter(3));
    }

    #[test]
    fn it_stops_goes_on_from_the_start_and_is_cleared() {
        let ramp: Vec<f32> = (0..48_000).map(|n| 0.5 - n as f32 / 96_000.0).collect();
        let mut stage = Stage::record(&ramp);
        let mut heard = stage.listen(0.7);
        stage.press(STOP);
        heard.extend(stage.listen(0.5));
        assert_eq!((stage.state(), peak(&heard[50_000..])), ("Stopped", 0.0));
        stage.press(PEDAL);
        heard.extend(stage.listen(0.5));
        assert!((heard[57_600 + 600] - ramp[600]).abs() < 1e-5);
        stage.looper.reset();
        assert_eq!(peak(&stage.listen(0.1)), 0.0);
        stage.press(PEDAL);
        assert!(peak(&stage.listen(0.1)) > 0.3, "a reset keeps the loop");
        stage.press(CLEAR);
        heard.extend(stage.listen(0.5));
        assert_eq!((stage.state(), heard.last()), ("Empty", Some(&0.0)));
        // Also while what was undone is still being forgotten.
        let mut stage = Stage::record(&sine(200.0, -20.0, 1.0));
        stage.press(PEDAL);
        stage.play(&sine(300.0, -20.0, 1.0));
        stage.press(UNDO);
        stage.listen(0.1);
        stage.press(PEDAL);
        stage.play(&sine(300.0, -20.0, 0.001));
        stage.press(CLEAR);
        assert_eq!(peak(&stage.listen(0.1)[2_000..]), 0.0);
        // Another one begins at once, though the last still fades out.
        let mut stage = Stage::record(&sine(200.0, -20.0, 1.0));
        stage.press(CLEAR);
        stage.press(PEDAL);
        stage.play(&sine(400.0, -20.0, 1.01));
        stage.press(PEDAL);
        stage.listen(1.0);
        assert_tones(&stage.listen(1.0), &[(200, -80.0), (400, -20.0)]);
    }

    #[test]
    fn presses_that_mean_nothing_do_nothing() {
        let mut stage = Stage::new();
        for pedal in [STOP, UNDO, CLEAR] {
            stage.press(pedal);
            assert_eq!(peak(&stage.listen(0.1)), 0.0);
            assert_eq!(stage.state(), "Empty");
        }
        // A pedal that is down when the looper is made is not pressed.
        stage.looper.pedals = None;
        stage.choose(PEDAL, 1.0);
        stage.listen(0.1);
        assert_eq!(stage.state(), "Empty");
        // A loop of no length is none.
        stage.choose(PEDAL, 0.0);
        stage.press(PEDAL);
        stage.press(PEDAL);
        stage.listen(0.1);
        assert_eq!(stage.state(), "Empty");
        stage.press(PEDAL);
        let sound = sine(200.0, -20.0, LONGEST_S as f64 + 1.0);
        stage.play(&sound);
        assert_eq!(stage.state(), "Playing", "the longest loop ends by itself");
    }

    #[test]
    fn anything_may_be_pressed_at_any_time() {
        let mut random = SplitMix64::new(5);
        let mut below = |count: u64| random.next_u64() % count;
        let mut stage = Stage::new();
        let sound = sine(200.0, -20.0, 0.1);
        let mut states = BTreeSet::new();
        for _ in 0..5_000 {
            match below(12) {
                0..=3 => stage.press(PEDAL),
                parameter @ 4..=6 => stage.press(parameter as usize - 3),
                7 => stage.choose(HALF, below(2) as f32),
                8 => stage.choose(REVERSE, below(2) as f32),
                9 => stage.choose(SYNC, below(3) as f32),
                10 => stage.looper.reset(),
                _ => {
                    let position = [0.3, -7.0, 1e9, f64::NAN, 4.0][below(5) as usize];
                    let tempo = [120.0, 400.0, 0.0, f32::NAN][below(4) as usize];
                    stage.looper.follow(&Transport {
                        tempo,
                        position,
                        playing: below(3) > 0,
                    });
                }
            }
            let length = [0, 1, 2, 100, 1_000, 4_000][below(6) as usize];
            let heard = stage.play(&sound[..length]);
            assert!(heard.iter().all(|sample| sample.is_finite()));
            states.insert(stage.state());
        }
        assert_eq!(states.len(), STATES.len(), "{states:?}");
    }

    #[test]
    fn a_loop_in_bars_begins_ends_and_plays_with_the_song() {
        let mut stage = Stage::new();
        stage.choose(SYNC, 2.0);
        // At 100 beats a minute a bar has 115,200 samples.
        let song = |position: f64| Transport {
            tempo: 100.0,
            position,
            playing: true,
        };
        let beats = |sample: usize| sample as f64 / 28_800.0;
        let click = |sample: usize| f32::from(u8::from(sample.is_multiple_of(28_800))) * 0.5;
        let mut at = 20_000;
        let play = |stage: &mut Stage, at: &mut usize, samples: usize| {
            let mut heard = Vec::new();
            for _ in 0..samples / 100 {
                stage.looper.follow(&song(beats(*at)));
                let sound: Vec<f32> = (*at..*at + 100).map(click).collect();
                heard.extend(stage.play(&sound));
                *at += 100;
            }
            heard
        };
        play(&mut stage, &mut at, 5_000);
        stage.press(PEDAL);
        play(&mut stage, &mut at, 80_000);
        assert_eq!(stage.state(), "Waiting");
        play(&mut stage, &mut at, 40_000);
        assert_eq!(stage.state(), "Recording");
        stage.press(PEDAL);
        play(&mut stage, &mut at, 100_000);
        assert_eq!((stage.state(), stage.looper.length), ("Playing", 115_200));
        // Clicks of the loop are on those of the song, but for the one in the seam; also after a jump.
        for _ in 0..2 {
            play(&mut stage, &mut at, 5_000);
            let start = at;
            let heard = play(&mut stage, &mut at, 115_200);
            let clicks: Vec<usize> = (0..heard.len())
                .filter(|n| heard[*n].abs() > 0.4)
                .map(|n| (start + n) % 28_800)
                .collect();
            assert!(clicks.len() >= 3, "{clicks:?}");
            assert!(clicks.iter().all(|place| *place == 0), "{clicks:?}");
            at += 70_000;
        }
        // A song that jumps or stops while it is recorded ends the loop, which is then free.
        for position in [Some(100.25), None] {
            let mut stage = Stage::new();
            stage.choose(SYNC, 2.0);
            let mut at = 28_800 * 4 - 100;
            play(&mut stage, &mut at, 100);
            stage.press(PEDAL);
            play(&mut stage, &mut at, 10_000);
            stage.press(PEDAL);
            play(&mut stage, &mut at, 1_000);
            assert_eq!(stage.state(), "Recording");
            let mut elsewhere = song(position.unwrap_or_default());
            elsewhere.playing = position.is_some();
            stage.looper.follow(&elsewhere);
            stage.listen(0.1);
            assert_eq!((stage.state(), stage.looper.length), ("Playing", 11_000));
            play(&mut stage, &mut at, 1_000);
            assert!(!stage.looper.jumps && stage.looper.song_frame().is_none());
        }
        // Without the song, loops are free.
        let mut stage = Stage::new();
        stage.choose(SYNC, 2.0);
        stage.press(PEDAL);
        stage.listen(0.5);
        stage.press(PEDAL);
        stage.listen(0.1);
        assert_eq!((stage.state(), stage.looper.length), ("Playing", 24_000));
    }
}
