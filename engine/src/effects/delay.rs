//! Delay.

use super::tempo::{self, SYNC};
use super::{CHANGE_S, Effect, EffectKind, EffectParameter, decay};
use crate::dsp::delay_line::DelayLine;
use crate::dsp::level::limit_sample;
use crate::dsp::lfo::Lfo;
use crate::dsp::ramp::Ramp;

/// Longest delay, s.
const LONGEST_S: f32 = 4.0;
/// Duration of changes of the delay, s, in which its pitch bends as that of a tape.
const TIME_CHANGE_S: f64 = 0.200;
/// Rate of the tape's wow, Hz, and how far it moves the sound at most, s.
const WOW_HZ: f32 = 0.7;
const WOW_S: f32 = 0.002;
/// Level below which echoes have ended, and the longest tail, s.
const ENDED: f32 = 1e-4;
const LONGEST_TAIL_S: f32 = 60.0;

pub(super) static KIND: EffectKind = EffectKind {
    id: "delay",
    name: "Delay",
    description: "Echoes, in time with the song if wanted, from side to side or as from a tape.",
    parameters: &[
        EffectParameter::new("time", "Time", " ms", [1.0, 2_000.0], 350.0).logarithmic(),
        SYNC,
        EffectParameter::new("feedback", "Feedback", "", [0.0, 0.98], 0.4),
        EffectParameter::new("tone", "Tone", " Hz", [500.0, 16_000.0], 4_000.0).logarithmic(),
        EffectParameter::new("wow", "Wow", "", [0.0, 1.0], 0.0),
        EffectParameter::choice("sides", "Sides", &["Stereo", "Ping-pong"]),
    ],
    mix: 0.3,
    new: |sample_rate| Box::new(Delay::new(sample_rate)),
};

struct Delay {
    sample_rate: u32,
    lines: [DelayLine; 2],
    /// Output of each line's tone control.
    toned: [f32; 2],
    wow: Lfo,
    /// Samples.
    time: Ramp,
    feedback: Ramp,
    tone: Ramp,
    depth: Ramp,
    /// From each side for itself, 0, to ping-pong, 1.
    cross: Ramp,
}

impl Delay {
    fn new(sample_rate: u32) -> Self {
        let line = DelayLine::new(((LONGEST_S + 2.0 * WOW_S) * sample_rate as f32) as usize);
        let ramp = |value| Ramp::new(value, CHANGE_S, sample_rate);
        let mut wow = Lfo::default();
        wow.set_rate(WOW_HZ, sample_rate);
        Self {
            sample_rate,
            lines: [line.clone(), line],
            toned: [0.0; 2],
            wow,
            time: Ramp::new(1.0, TIME_CHANGE_S, sample_rate),
            feedback: ramp(0.0),
            tone: ramp(0.0),
            depth: ramp(0.0),
            cross: ramp(0.0),
        }
    }
}

impl Effect for Delay {
    fn set(&mut self, values: &[f32], tempo: f32) {
        let &[time, sync, feedback, tone, wow, sides] = values else {
            return;
        };
        let rate = self.sample_rate as f32;
        let seconds = tempo::seconds(sync, tempo).unwrap_or(1e-3 * time);
        self.time.set_target(seconds.min(LONGEST_S) * rate);
        self.feedback.set_target(feedback);
        let corner_s = 1.0 / (std::f32::consts::TAU * tone);
        self.tone.set_target(decay(corner_s, self.sample_rate));
        self.depth.set_target(wow * WOW_S * rate);
        self.cross.set_target(sides);
    }

    fn reset(&mut self) {
        self.wow.reset();
        for ramp in [
            &mut self.time,
            &mut self.feedback,
            &mut self.tone,
            &mut self.depth,
            &mut self.cross,
        ] {
            ramp.finish();
        }
        self.lines.iter_mut().for_each(DelayLine::reset);
        self.toned = [0.0; 2];
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        for (left, right) in left.iter_mut().zip(right) {
            let (feedback, tone, cross) = (
                self.feedback.advance(),
                self.tone.advance(),
                self.cross.advance(),
            );
            let swing = self.depth.advance() * (1.0 + self.wow.advance());
            // What is read before the push is a sample nearer, and the interpolation one more.
            let back = (self.time.advance() + swing - 1.0).max(1.0);
            let heard = [0, 1].map(|line| self.lines[line].read(back));
            let [l, r] = [*left, *right].map(limit_sample);
            for (toned, heard) in self.toned.iter_mut().zip(heard) {
                *toned = heard + tone * (*toned - heard);
            }
            let [toned_left, toned_right] = self.toned;
            let between = |own: f32, other: f32| own + cross * (other - own);
            let into = [
                between(l, 0.5 * (l + r)) + feedback * between(toned_left, toned_right),
                between(r, 0.0) + between(feedback * toned_right, toned_left),
            ];
            for (line, sample) in self.lines.iter_mut().zip(into) {
                line.push(sample);
            }
            [*left, *right] = heard;
        }
    }

    fn tail_samples(&self) -> usize {
        // A ping-pong loses once on two ways.
        let ways = 1.0 + self.cross.target();
        let turns = 1.0 + ENDED.ln() / self.feedback.target().clamp(1e-4, 0.999).ln();
        let samples = ways * turns * (self.time.target() + 2.0 * self.depth.target());
        samples.min(LONGEST_TAIL_S * self.sample_rate as f32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{play, play_at};
    use super::KIND;

    /// Returns the places and heights of echoes of a click, `[side]`.
    fn echoes(values: &[f32], tempo: f32) -> [Vec<(usize, f32)>; 2] {
        let mut click = vec![0.0; 96_000];
        click[100] = 1.0;
        play_at(&KIND, values, tempo, [&click, &click]).map(|heard| {
            let heights = heard.iter().copied().enumerate();
            heights.filter(|(_, height)| height.abs() > 0.02).collect()
        })
    }

    #[test]
    fn echoes_come_in_time_and_decay() {
        let [left, right] = echoes(&[250.0, 0.0, 0.5, 16_000.0, 0.0, 0.0], 120.0);
        assert_eq!(left, right);
        assert_eq!(left[0], (100 + 12_000, 1.0));
        let second: f32 = left
            .iter()
            .filter(|(at, _)| (24_100..24_200).contains(at))
            .map(|(_, height)| height)
            .sum();
        assert!((second - 0.5).abs() < 0.03, "{second}");
    }

    #[test]
    fn ping_pong_goes_from_side_to_side_with_the_song() {
        let eighth = KIND.parameters[1]
            .options
            .iter()
            .position(|name| *name == "1/8")
            .unwrap();
        let [left, right] = echoes(&[1.0, eighth as f32, 0.6, 16_000.0, 0.0, 1.0], 100.0);
        // Eighth notes at 100 a minute last 0.3 s.
        assert_eq!(left[0].0, 100 + 14_400);
        assert_eq!(right[0].0, 100 + 28_800);
        assert!(
            left.iter()
                .all(|(at, _)| (at - 100) % 28_800 >= 14_300 || *at > 43_000)
        );
    }

    #[test]
    fn echoes_get_darker() {
        let mut click = vec![0.0; 48_000];
        click[0] = 1.0;
        let [heard, _] = play(
            &KIND,
            &[100.0, 0.0, 0.9, 1_000.0, 0.0, 0.0],
            [&click, &click],
        );
        let peak = |turn: usize| {
            heard[4_800 * turn..4_800 * turn + 500]
                .iter()
                .copied()
                .fold(0.0, f32::max)
        };
        assert!(peak(2) < 0.3 * peak(1) && peak(3) < peak(2));
    }
}
