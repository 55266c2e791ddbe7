//! Plucked nylon string on a guitar's body.
//!
//! Karplus–Strong loop as extended by Jaffe & Smith ("Extensions of the Karplus-Strong
//! plucked-string algorithm", Computer Music Journal 7(2), 1983): a delay line closed by a low-pass
//! whose losses are set from two decay times, as in Välimäki, Huopaniemi, Karjalainen & Jánosy
//! ("Physical modeling of plucked string instruments with application to real-time sound
//! synthesis", JAES 44(5), 1996). Two loops with slightly different pitch and decay are the
//! string's two polarisations: one couples to the body and decays fast, the other lasts.

use std::f64::consts::PI;

use ondes_engine::dsp::level::db_to_amplitude_f64;
use rand::{Rng, RngExt};

use super::body::{Body, BodyDesign, mode};
use super::curves::midi_to_hz;
use super::delay::FractionalDelay;
use super::filter::{Decimator, OnePole, flush};
use super::instrument::{Instrument, OUTPUT_RATE_HZ};
use super::performance::{Note, Score, Style};

/// Rate of the string model, Hz: twice the output rate.
const RATE_HZ: f64 = 2.0 * OUTPUT_RATE_HZ;

/// Output samples between two updates of pitch and damping.
const BLOCK: usize = 24;

/// Range: E2 to C6.
const MIDI_LOW: f64 = 40.0;
const MIDI_HIGH: f64 = 84.0;

/// Level range from the softest to the strongest pluck, dB, without the additional treble of strong
/// ones.
const RANGE_DB: f64 = 25.0;

/// Width of the finger's pulse, softest and strongest, seconds.
const PULSE_S: [f64; 2] = [0.0016, 0.0002];

/// Distance of the pluck from the bridge as a fraction of the string, softest and strongest.
/// Depends on strength only, since a network cannot learn what neither pitch nor loudness tells.
const POSITION: [f64; 2] = [0.22, 0.12];

/// Polarisations: detuning in cents, gain, and decay relative to the note's.
const POLARISATIONS: [(f64, f64, f64); 2] = [(0.7, 0.62, 0.55), (-0.7, 0.38, 1.25)];

/// Decay time (60 dB) of the fundamental of a free string at the ends of the range, seconds.
const DECAY_S: [f64; 2] = [5.5, 1.6];

/// Decay time (60 dB) at [`BRIGHT_HZ`], seconds.
const BRIGHT_DECAY_S: f64 = 0.55;
const BRIGHT_HZ: f64 = 5_000.0;

/// Decay time (60 dB) after a finger stops the string, and after the next note starts, seconds.
const DAMPED_S: f64 = 0.11;
const REPLACED_S: f64 = 0.05;

/// Body of a classical guitar: air, top and plate modes.
const BODY: BodyDesign = BodyDesign {
    modes: &[
        mode(101.0, 14.0, 0.9),
        mode(196.0, 18.0, 0.9),
        mode(248.0, 18.0, 0.45),
        mode(312.0, 20.0, 0.4),
        mode(398.0, 22.0, 0.55),
        mode(505.0, 20.0, 0.4),
        mode(640.0, 20.0, 0.35),
        mode(790.0, 18.0, 0.3),
        mode(980.0, 16.0, 0.3),
        mode(1_240.0, 14.0, 0.25),
        mode(1_650.0, 10.0, 0.25),
        mode(2_300.0, 8.0, 0.25),
        mode(3_200.0, 6.0, 0.2),
    ],
    direct: 0.75,
    direct_corner_hz: 90.0,
    roll_off_hz: 6_000.0,
};

/// Plucked string. Its tuning is exact, since the model is linear.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plucked;

impl Instrument for Plucked {
    fn style(&self) -> Style {
        Style {
            midi_low: MIDI_LOW,
            midi_high: MIDI_HIGH,
            sustained: false,
            vibrato_max_cents: 25.0,
            tail_s: 0.9,
        }
    }

    fn render(&self, score: &Score, rng: &mut dyn Rng) -> Vec<f32> {
        let len = (score.duration_s * OUTPUT_RATE_HZ) as usize;
        let mut string = vec![0.0f64; len];
        for (n, note) in score.notes.iter().enumerate() {
            let next_s = score
                .notes
                .get(n + 1)
                .map_or(f64::INFINITY, |next| next.onset_s);
            pluck(note, next_s, &mut string, rng);
        }
        let mut body = Body::new(&BODY, OUTPUT_RATE_HZ);
        string.iter().map(|x| body.process(*x) as f32).collect()
    }
}

/// Adds one note to `out`, from its start until it is inaudible.
fn pluck(note: &Note, next_s: f64, out: &mut [f64], rng: &mut dyn Rng) {
    let strength = note.dynamics[0].clamp(0.0, 1.0);
    let hz = midi_to_hz(note.midi);
    let height = ((note.midi - MIDI_LOW) / (MIDI_HIGH - MIDI_LOW)).clamp(0.0, 1.0);
    let decay_s = DECAY_S[0] * (DECAY_S[1] / DECAY_S[0]).powf(height);
    let position = POSITION[0] + (POSITION[1] - POSITION[0]) * strength;
    let pulse = finger_pulse(strength, hz, position, rng);
    let mut strings = POLARISATIONS
        .map(|(cents, gain, decay)| (StringLoop::new(hz, cents, decay_s * decay), gain));
    let mut decimator = Decimator::default();
    let from = ((note.onset_s * OUTPUT_RATE_HZ).round() as usize).min(out.len());
    let mut excitation = pulse.into_iter();
    let mut quiet_blocks = 0;
    for (block, chunk) in out[from..].chunks_mut(BLOCK).enumerate() {
        let since_s = (block * BLOCK) as f64 / OUTPUT_RATE_HZ;
        let now_s = note.onset_s + since_s;
        let damping_s = if now_s >= next_s {
            Some(REPLACED_S)
        } else if now_s >= note.release_s {
            Some(DAMPED_S)
        } else {
            None
        };
        let bend_cents = note.vibrato_at(since_s);
        for (string, _) in &mut strings {
            string.control(bend_cents, damping_s);
        }
        let mut loudest = 0.0f64;
        for y in chunk {
            let mut sample = || {
                let x = excitation.next().unwrap_or(0.0);
                strings
                    .iter_mut()
                    .map(|(string, gain)| *gain * string.step(x))
                    .sum::<f64>()
            };
            let (first, second) = (sample(), sample());
            let x = decimator.process(first, second);
            loudest = loudest.max(x.abs());
            *y += x;
        }
        quiet_blocks = if loudest < 1e-9 { quiet_blocks + 1 } else { 0 };
        if quiet_blocks > 20 && since_s > 0.05 {
            break;
        }
    }
}

/// Returns the excitation of the string at [`RATE_HZ`]: a smooth pulse with some roughness, minus
/// its reflection from the bridge, which cancels the harmonics with a node at the finger.
fn finger_pulse(strength: f64, hz: f64, position: f64, rng: &mut dyn Rng) -> Vec<f64> {
    // High notes are plucked by a finger that is wider relative to the period.
    let width_s = (PULSE_S[0] * (PULSE_S[1] / PULSE_S[0]).powf(strength)).min(0.45 / hz);
    let width = (width_s * RATE_HZ).max(4.0);
    let delay = position * RATE_HZ / hz;
    let level = db_to_amplitude_f64(RANGE_DB * (strength - 1.0));
    // A constant area keeps the level of the low harmonics.
    let scale = level * RATE_HZ / (1_000.0 * width);
    let mut roughness = OnePole::new(2_500.0, RATE_HZ);
    let len = (width + delay).ceil() as usize + 3;
    let rough: Vec<f64> = (0..len)
        .map(|_| roughness.low(rng.random_range(-1.0..1.0)))
        .collect();
    let shape = |at: f64| {
        if (0.0..width).contains(&at) {
            0.5 - 0.5 * (2.0 * PI * at / width).cos()
        } else {
            0.0
        }
    };
    (0..len)
        .map(|n| {
            let direct = shape(n as f64) * (1.0 + 0.5 * rough[n]);
            scale * (direct - shape(n as f64 - delay))
        })
        .collect()
}

/// One polarisation of a string.
#[derive(Debug, Clone)]
struct StringLoop {
    line: FractionalDelay,
    loss: OnePole,
    hz: f64,
    pole: f64,
    free_gain: f64,
    gain: f64,
    delay: f64,
    delay_step: f64,
}

impl StringLoop {
    fn new(hz: f64, cents: f64, decay_s: f64) -> Self {
        let hz = hz * (cents / 1200.0).exp2();
        let period_s = 1.0 / hz;
        let per_trip = |t60_s: f64| 10f64.powf(-3.0 * period_s / t60_s);
        let bright_s = BRIGHT_DECAY_S.min(0.6 * decay_s);
        let pole = loss_pole(per_trip(bright_s) / per_trip(decay_s), hz);
        let free_gain = per_trip(decay_s) / OnePole::gain(pole, hz, RATE_HZ);
        let mut string = Self {
            line: FractionalDelay::new(1.1 * RATE_HZ / hz),
            loss: OnePole::with_pole(pole),
            hz,
            pole,
            free_gain,
            gain: free_gain,
            delay: 0.0,
            delay_step: 0.0,
        };
        string.delay = string.delay_for(0.0);
        string
    }

    fn delay_for(&self, bend_cents: f64) -> f64 {
        let hz = self.hz * (bend_cents / 1200.0).exp2();
        RATE_HZ / hz - OnePole::phase_delay_samples(self.pole, hz, RATE_HZ)
    }

    /// Sets the pitch bend; `damping_s` is the decay time of a damped string.
    fn control(&mut self, bend_cents: f64, damping_s: Option<f64>) {
        self.delay_step = (self.delay_for(bend_cents) - self.delay) / (2 * BLOCK) as f64;
        self.gain = match damping_s {
            Some(t60_s) => self.free_gain.min(10f64.powf(-3.0 / (self.hz * t60_s))),
            None => self.free_gain,
        };
    }

    #[inline]
    fn step(&mut self, x: f64) -> f64 {
        self.delay += self.delay_step;
        let returned = self.line.read(self.delay);
        let y = flush(self.gain * self.loss.low(returned) + x);
        self.line.push(y);
        y
    }
}

/// Finds the pole of the loss filter whose gain at [`BRIGHT_HZ`] is `ratio` times that at `hz`, by
/// bisection.
fn loss_pole(ratio: f64, hz: f64) -> f64 {
    let (mut low, mut high) = (0.0, 0.95);
    for _ in 0..40 {
        let pole = 0.5 * (low + high);
        let got = OnePole::gain(pole, BRIGHT_HZ, RATE_HZ) / OnePole::gain(pole, hz, RATE_HZ);
        if got > ratio { low = pole } else { high = pole }
    }
    0.5 * (low + high)
}
