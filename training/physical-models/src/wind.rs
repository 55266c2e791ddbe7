//! Single reed on a cylindrical tube.
//!
//! The reed is a damped spring that the mouth's pressure closes; the flow through its slit follows
//! Bernoulli's law. In terms of the waves in the tube this has an explicit solution (Guillemain,
//! Kergomard & Voinier, "Real-time synthesis of clarinet-like instruments using digital impedance
//! models", JASA 118(1), 2005). The tube is one delay line that ends in a lossy, inverting
//! reflection, as in Smith, "Efficient simulation of the reed-bore and bow-string mechanisms" (ICMC
//! 1986); what is not reflected is radiated. A pressure of 1 shuts the reed.

use ondes_engine::dsp::level::db_to_amplitude_f64;
use rand::{Rng, RngExt};

use super::body::{Body, BodyDesign, mode};
use super::curves::{CONTROL_RATE_HZ, Curves, Point, midi_to_hz};
use super::delay::FractionalDelay;
use super::filter::{Decimator, OnePole, flush};
use super::instrument::{Instrument, OUTPUT_RATE_HZ};
use super::performance::{Score, Style};
use super::ramp::Ramp;
use super::tuning::Tuning;

/// Rate of the tube model, Hz: twice the output rate.
const RATE_HZ: f64 = 2.0 * OUTPUT_RATE_HZ;

/// Output samples per control point.
const BLOCK: usize = (OUTPUT_RATE_HZ / CONTROL_RATE_HZ) as usize;

/// Range: D3 to D6.
const MIDI_LOW: f64 = 50.0;
const MIDI_HIGH: f64 = 86.0;

/// Blowing pressure, pianissimo and fortissimo. Oscillation starts a little above a third.
const PRESSURE: [f64; 2] = [0.44, 0.72];

/// Additional pressure at an attack, so that soft notes speak at once.
const ACCENT_PRESSURE: f64 = 0.08;

/// Opening of the reed times the admittance of the tube: the ratio of flow to pressure.
const OPENING: f64 = 0.44;

/// Resonance frequency of the reed under the lip, Hz, and its damping.
const REED_HZ: f64 = 3_400.0;
const REED_DAMPING: f64 = 0.6;

/// Gain of one trip through the tube.
const TUBE_GAIN: f64 = 0.955;

/// Corner of the reflection's loss at 440 Hz, Hz; rises with the frequency.
const BELL_CORNER_HZ: f64 = 3_200.0;

/// Share of the tone radiated through tone holes; the bell radiates little bass.
const RADIATED_BASS: f64 = 0.35;

/// Level range from pianissimo to fortissimo beyond the effect of pressure, dB.
const EXPRESSION_DB: f64 = 27.0;

/// Corner of a low-pass on the output, pianissimo and fortissimo, Hz.
const BRIGHTNESS_HZ: [f64; 2] = [1_600.0, 9_000.0];

/// Turbulence in the slit as a fraction of the pressure, and the audible breath, pianissimo and
/// fortissimo.
const TURBULENCE: f64 = 0.03;
const BREATH: [f64; 2] = [0.0022, 0.016];

/// Broad resonances of the tone-hole lattice and the bell.
const BODY: BodyDesign = BodyDesign {
    modes: &[
        mode(420.0, 1.2, 0.35),
        mode(1_150.0, 2.5, 0.35),
        mode(1_900.0, 3.0, 0.30),
        mode(2_900.0, 3.5, 0.22),
    ],
    direct: 0.7,
    direct_corner_hz: 110.0,
    roll_off_hz: 6_500.0,
};

/// Reed instrument with its tuning corrections.
#[derive(Debug, Clone)]
pub struct Wind {
    tuning: Tuning,
}

impl Wind {
    /// Creates the instrument and measures its tuning.
    #[must_use]
    pub fn new() -> Self {
        let tuning = Tuning::measure(
            MIDI_LOW,
            MIDI_HIGH,
            OUTPUT_RATE_HZ,
            |midi, dynamic, tuning| {
                let mut tube = Tube::new();
                let mut decimator = Decimator::default();
                let blocks = (0.6 * CONTROL_RATE_HZ) as usize;
                let mut tone = Vec::with_capacity(blocks * BLOCK);
                for block in 0..blocks {
                    let point = Point {
                        midi,
                        dynamic,
                        gate: 1.0,
                        accent: (-(block as f64) / (0.03 * CONTROL_RATE_HZ)).exp(),
                    };
                    tube.control(&point, tuning);
                    for _ in 0..BLOCK {
                        let (first, second) = (tube.step(0.0), tube.step(0.0));
                        tone.push(decimator.process(first, second) as f32);
                    }
                }
                tone.split_off(tone.len() / 2)
            },
        );
        Self { tuning }
    }
}

impl Default for Wind {
    fn default() -> Self {
        Self::new()
    }
}

impl Instrument for Wind {
    fn style(&self) -> Style {
        Style {
            midi_low: MIDI_LOW,
            midi_high: MIDI_HIGH,
            sustained: true,
            vibrato_max_cents: 45.0,
            tail_s: 0.7,
        }
    }

    fn render(&self, score: &Score, rng: &mut dyn Rng) -> Vec<f32> {
        let curves = Curves::new(score);
        let mut tube = Tube::new();
        let mut body = Body::new(&BODY, OUTPUT_RATE_HZ);
        let mut decimator = Decimator::default();
        let mut turbulence = OnePole::new(4_000.0, RATE_HZ);
        let mut breath_low = OnePole::new(5_500.0, OUTPUT_RATE_HZ);
        let mut breath_high = OnePole::new(700.0, OUTPUT_RATE_HZ);
        let mut tone_low = OnePole::with_pole(0.0);
        let (mut expression, mut breath) = (Ramp::default(), Ramp::default());
        let len = (score.duration_s * OUTPUT_RATE_HZ) as usize;
        let mut out = Vec::with_capacity(len + BLOCK);
        for block in 0..len.div_ceil(BLOCK) {
            let point = curves.at(block as f64 / CONTROL_RATE_HZ);
            let dynamic = point.dynamic.clamp(0.0, 1.0);
            tube.control(&point, &self.tuning);
            expression.towards(db_to_amplitude_f64(EXPRESSION_DB * (dynamic - 1.0)), BLOCK);
            // Breath follows the gate, and grows less with the dynamic than the tone does.
            breath.towards(
                point.gate * BREATH[0] * (BREATH[1] / BREATH[0]).powf(dynamic),
                BLOCK,
            );
            let corner_hz = BRIGHTNESS_HZ[0] * (BRIGHTNESS_HZ[1] / BRIGHTNESS_HZ[0]).powf(dynamic);
            let corner_hz = corner_hz.max(1.5 * midi_to_hz(point.midi));
            tone_low.set_pole(OnePole::pole_for(corner_hz, OUTPUT_RATE_HZ));
            for _ in 0..BLOCK {
                let mut noise = || turbulence.low(rng.random_range(-1.0..1.0));
                let (first, second) = (tube.step(noise()), tube.step(noise()));
                let tone = expression.next() * tone_low.low(decimator.process(first, second));
                let hiss = breath_high.high(breath_low.low(rng.random_range(-1.0..1.0)));
                out.push(body.process(tone + breath.next() * hiss) as f32);
            }
        }
        out.truncate(len);
        out
    }
}

/// Reed and tube.
#[derive(Debug, Clone)]
struct Tube {
    line: FractionalDelay,
    bell_loss: OnePole,
    delay: Ramp,
    pressure: Ramp,
    /// Closing of the reed, 0 at rest and 1 when shut, and its speed per sample.
    closing: f64,
    closing_speed: f64,
    started: bool,
}

impl Tube {
    fn new() -> Self {
        Self {
            line: FractionalDelay::new(0.55 * RATE_HZ / midi_to_hz(MIDI_LOW - 2.0)),
            bell_loss: OnePole::with_pole(0.0),
            delay: Ramp::default(),
            pressure: Ramp::default(),
            closing: 0.0,
            closing_speed: 0.0,
            started: false,
        }
    }

    /// Sets the targets of the next control block.
    fn control(&mut self, point: &Point, tuning: &Tuning) {
        let dynamic = point.dynamic.clamp(0.0, 1.0);
        let hz = midi_to_hz(point.midi + tuning.correction_cents(point.midi, dynamic) / 100.0);
        let pole = OnePole::pole_for(BELL_CORNER_HZ * (hz / 440.0).powf(0.8), RATE_HZ);
        self.bell_loss.set_pole(pole);
        // A tube closed at the reed sounds at a quarter of its wavelength: half a period there and
        // back.
        let loss_delay = OnePole::phase_delay_samples(pole, hz, RATE_HZ);
        self.delay
            .towards(0.5 * RATE_HZ / hz - loss_delay, 2 * BLOCK);
        let pressure =
            PRESSURE[0] + (PRESSURE[1] - PRESSURE[0]) * dynamic + ACCENT_PRESSURE * point.accent;
        self.pressure.towards(point.gate * pressure, 2 * BLOCK);
        if !self.started {
            self.delay.arrive();
            self.started = true;
        }
    }

    /// Returns one sample of the radiated sound; `noise` modulates the pressure in the mouth.
    #[inline]
    fn step(&mut self, noise: f64) -> f64 {
        let at_bell = self.line.read(self.delay.next());
        let reflected = flush(self.bell_loss.low(at_bell) * -TUBE_GAIN);
        let mouth = self.pressure.next() * (1.0 + TURBULENCE * noise);
        let slit = OPENING * (1.0 - self.closing).max(0.0);
        // The flow u = slit √Δ with Δ = mouth - 2 reflected - u is quadratic in √Δ.
        let drive = mouth - 2.0 * reflected;
        let root = 0.5 * ((slit * slit + 4.0 * drive.abs()).sqrt() - slit);
        let flow = drive.signum() * slit * root;
        self.move_reed(drive - flow);
        self.line.push(reflected + flow);
        // The bell radiates what it does not reflect, mostly treble.
        RADIATED_BASS * at_bell + reflected + at_bell
    }

    /// Moves the reed by the pressure difference across it, by semi-implicit Euler integration.
    #[inline]
    fn move_reed(&mut self, difference: f64) {
        const W: f64 = std::f64::consts::TAU * REED_HZ / RATE_HZ;
        let force = difference - self.closing;
        self.closing_speed = (self.closing_speed + W * W * force) / (1.0 + 2.0 * REED_DAMPING * W);
        self.closing = flush((self.closing + self.closing_speed).clamp(-1.0, 1.2));
    }
}
