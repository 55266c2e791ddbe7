//! Bowed string between cello and violin.
//!
//! Two delay lines carry waves from the bow to the bridge and to the nut and back. Where they meet,
//! the bow either holds the string or slips over it. The solution at that point, with hysteresis,
//! follows McIntyre, Schumacher & Woodhouse, "On the oscillations of musical instruments" (JASA
//! 74(5), 1983), with the hyperbolic friction curve and the waveguide form of Smith, "Efficient
//! simulation of the reed-bore and bow-string mechanisms" (ICMC 1986). Twice the string's wave
//! impedance is 1, so that a force changes the velocity at the bow by its own value.
//!
//! The dynamic sets the bow speed. Force and the velocity scale of friction follow the speed, which
//! keeps the string within Schelleng's limits ("The bowed string and the player", JASA 53(1), 1973)
//! at every level. Relative force and bow position make loud notes bright.

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

/// Rate of the string model, Hz: twice the output rate.
const RATE_HZ: f64 = 2.0 * OUTPUT_RATE_HZ;

/// Output samples per control point.
const BLOCK: usize = (OUTPUT_RATE_HZ / CONTROL_RATE_HZ) as usize;

/// Range: G2 to E6.
const MIDI_LOW: f64 = 43.0;
const MIDI_HIGH: f64 = 88.0;

/// Range of the bow speed from pianissimo to fortissimo, dB.
const SPEED_RANGE_DB: f64 = 34.0;

/// Coefficients of static and dynamic friction; rosin's are near 0.8 and 0.3.
const STATIC_FRICTION: f64 = 0.8;
const DYNAMIC_FRICTION: f64 = 0.3;

/// Slip speed at which friction is half-way between static and dynamic, in bow speeds.
///
/// The slower friction falls, the sooner a stroke settles into Helmholtz motion; where it falls
/// fast, low notes scratch for a tenth of a second.
const FRICTION_SPEED: f64 = 4.0;

/// Bow force as a fraction of Schelleng's maximum, pianissimo and fortissimo. Near the maximum the
/// string catches late.
const FORCE: [f64; 2] = [0.25, 0.35];

/// Distance of the bow from the bridge as a fraction of the string, pianissimo and fortissimo.
const POSITION: [f64; 2] = [0.13, 0.085];

/// Corner of a two-pole low-pass on the output, pianissimo and fortissimo, Hz: a light bow rounds
/// the string's corner more than the losses of the model do.
const BRIGHTNESS_HZ: [f64; 2] = [1_200.0, 14_000.0];

/// Additional force at the start of a stroke, as a fraction: the string catches sooner.
const ACCENT_FORCE: f64 = 0.25;

/// Level of the bow hair's noise on the body, pianissimo and fortissimo. Noise on the bow's grip
/// would make every stroke different in ways that pitch and loudness do not tell.
const HAIR_NOISE: [f64; 2] = [0.009, 0.105];

/// Gain of one trip to the nut and back while bowed, and decay time of a string without the bow,
/// seconds.
const NUT_GAIN: f64 = 0.99;
const DAMPED_T60_S: f64 = 0.22;

/// Corner of the bridge's loss at 440 Hz, Hz; proportional to the square root of the frequency.
const BRIDGE_CORNER_HZ: f64 = 4_500.0;

/// Body of a viola's size: air, main wood modes and the hill around 3 kHz. Modes are as narrow as
/// those of real instruments, a few percent of their frequency, so that every note has its own
/// colour, which vibrato modulates.
const BODY: BodyDesign = BodyDesign {
    modes: &[
        mode(153.0, 18.0, 0.9),
        mode(231.0, 22.0, 0.8),
        mode(302.0, 28.0, 1.0),
        mode(373.0, 26.0, 0.7),
        mode(458.0, 30.0, 0.8),
        mode(560.0, 32.0, 1.1),
        mode(700.0, 32.0, 0.9),
        mode(870.0, 30.0, 0.7),
        mode(1_060.0, 28.0, 0.8),
        mode(1_325.0, 24.0, 0.7),
        mode(1_675.0, 20.0, 0.6),
        mode(2_185.0, 16.0, 0.6),
        mode(2_835.0, 12.0, 0.75),
        mode(3_575.0, 10.0, 0.7),
        mode(4_680.0, 10.0, 0.35),
    ],
    direct: 0.18,
    direct_corner_hz: 180.0,
    roll_off_hz: 5_000.0,
};

/// Bowed string with its tuning corrections.
#[derive(Debug, Clone)]
pub struct Bowed {
    tuning: Tuning,
}

impl Bowed {
    /// Creates the instrument and measures its tuning.
    #[must_use]
    pub fn new() -> Self {
        let tuning = Tuning::measure(
            MIDI_LOW,
            MIDI_HIGH,
            OUTPUT_RATE_HZ,
            |midi, dynamic, tuning| {
                let mut string = BowedString::new();
                let mut decimator = Decimator::default();
                let point = Point {
                    midi,
                    dynamic,
                    gate: 1.0,
                    accent: 0.0,
                };
                let blocks = (0.7 * CONTROL_RATE_HZ) as usize;
                let mut tone = Vec::with_capacity(blocks * BLOCK);
                for block in 0..blocks {
                    // The bow takes 40 ms to reach its speed.
                    let gate = (block as f64 / (0.04 * CONTROL_RATE_HZ)).min(1.0);
                    string.control(&Point { gate, ..point }, tuning);
                    for _ in 0..BLOCK {
                        let (first, second) = (string.step(), string.step());
                        tone.push(decimator.process(first, second) as f32);
                    }
                }
                tone.split_off(tone.len() / 2)
            },
        );
        Self { tuning }
    }
}

impl Default for Bowed {
    fn default() -> Self {
        Self::new()
    }
}

impl Instrument for Bowed {
    fn style(&self) -> Style {
        Style {
            midi_low: MIDI_LOW,
            midi_high: MIDI_HIGH,
            sustained: true,
            vibrato_max_cents: 25.0,
            tail_s: 0.8,
        }
    }

    fn render(&self, score: &Score, rng: &mut dyn Rng) -> Vec<f32> {
        let curves = Curves::new(score);
        let mut string = BowedString::new();
        let mut body = Body::new(&BODY, OUTPUT_RATE_HZ);
        let mut decimator = Decimator::default();
        let mut tone_low = [OnePole::with_pole(0.0); 2];
        let mut hair_low = OnePole::new(6_000.0, OUTPUT_RATE_HZ);
        let mut hair_high = OnePole::new(900.0, OUTPUT_RATE_HZ);
        let mut hair = Ramp::default();
        let len = (score.duration_s * OUTPUT_RATE_HZ) as usize;
        let mut out = Vec::with_capacity(len + BLOCK);
        for block in 0..len.div_ceil(BLOCK) {
            let point = curves.at(block as f64 / CONTROL_RATE_HZ);
            string.control(&point, &self.tuning);
            let dynamic = point.dynamic.clamp(0.0, 1.0);
            let blend = |[soft, loud]: [f64; 2]| soft * (loud / soft).powf(dynamic);
            let corner_hz = blend(BRIGHTNESS_HZ);
            hair.towards(point.gate * blend(HAIR_NOISE), BLOCK);
            let pole = OnePole::pole_for(corner_hz.max(midi_to_hz(point.midi)), OUTPUT_RATE_HZ);
            tone_low.iter_mut().for_each(|low| low.set_pole(pole));
            for _ in 0..BLOCK {
                let (first, second) = (string.step(), string.step());
                let hiss = hair_high.high(hair_low.low(rng.random_range(-1.0..1.0)));
                let tone = tone_low
                    .iter_mut()
                    .fold(decimator.process(first, second), |x, low| low.low(x));
                out.push(body.process(tone + hair.next() * hiss) as f32);
            }
        }
        out.truncate(len);
        out
    }
}

/// String and bow.
#[derive(Debug, Clone)]
struct BowedString {
    to_bridge: FractionalDelay,
    to_nut: FractionalDelay,
    bridge_loss: OnePole,
    bridge_delay: Ramp,
    nut_delay: Ramp,
    nut_gain: Ramp,
    speed: Ramp,
    force: Ramp,
    slipping: bool,
    started: bool,
}

impl BowedString {
    fn new() -> Self {
        let longest = 1.1 * RATE_HZ / midi_to_hz(MIDI_LOW - 1.0);
        Self {
            to_bridge: FractionalDelay::new(0.3 * longest),
            to_nut: FractionalDelay::new(longest),
            bridge_loss: OnePole::with_pole(0.0),
            bridge_delay: Ramp::default(),
            nut_delay: Ramp::default(),
            nut_gain: Ramp::default(),
            speed: Ramp::default(),
            force: Ramp::default(),
            slipping: false,
            started: false,
        }
    }

    /// Sets the targets of the next control block.
    fn control(&mut self, point: &Point, tuning: &Tuning) {
        let dynamic = point.dynamic.clamp(0.0, 1.0);
        let blend = |[soft, loud]: [f64; 2]| soft + (loud - soft) * dynamic;
        let hz = midi_to_hz(point.midi + tuning.correction_cents(point.midi, dynamic) / 100.0);
        let period = RATE_HZ / hz;
        let pole = OnePole::pole_for(BRIDGE_CORNER_HZ * (hz / 440.0).sqrt(), RATE_HZ);
        self.bridge_loss.set_pole(pole);
        let position = blend(POSITION);
        let loss_delay = OnePole::phase_delay_samples(pole, hz, RATE_HZ);
        let to_bridge = (position * period - loss_delay).max(2.5);
        self.bridge_delay.towards(to_bridge, 2 * BLOCK);
        self.nut_delay
            .towards(period - loss_delay - to_bridge, 2 * BLOCK);
        let damped = 10f64.powf(-3.0 * period / RATE_HZ / DAMPED_T60_S);
        self.nut_gain
            .towards(damped + (NUT_GAIN - damped) * point.gate.sqrt(), 2 * BLOCK);
        let speed = point.gate * db_to_amplitude_f64(SPEED_RANGE_DB * (dynamic - 1.0));
        self.speed.towards(speed, 2 * BLOCK);
        let limit = speed / (position * (STATIC_FRICTION - DYNAMIC_FRICTION));
        self.force.towards(
            blend(FORCE) * (1.0 + ACCENT_FORCE * point.accent) * limit,
            2 * BLOCK,
        );
        if !self.started {
            for ramp in [
                &mut self.bridge_delay,
                &mut self.nut_delay,
                &mut self.nut_gain,
            ] {
                ramp.arrive();
            }
            self.started = true;
        }
    }

    /// Returns one sample of the force on the bridge.
    #[inline]
    fn step(&mut self) -> f64 {
        let at_bridge = self.to_bridge.read(self.bridge_delay.next());
        let from_bridge = -self.bridge_loss.low(at_bridge);
        let from_nut = flush(-self.nut_gain.next() * self.to_nut.read(self.nut_delay.next()));
        let arriving = from_bridge + from_nut;
        let (force, speed) = (self.force.next(), self.speed.next());
        let change = self.friction(speed, force, arriving);
        self.to_bridge.push(from_nut + change);
        self.to_nut.push(from_bridge + change);
        at_bridge
    }

    /// Returns the change of the string's velocity at the bow; `arriving` is the velocity without
    /// the bow.
    ///
    /// If both sticking and slipping are possible, the string keeps its state.
    #[inline]
    fn friction(&mut self, bow: f64, force: f64, arriving: f64) -> f64 {
        if force <= 0.0 {
            self.slipping = true;
            return 0.0;
        }
        let behind = bow - arriving;
        let direction = behind.signum();
        let scale = FRICTION_SPEED * bow.abs().max(1e-12);
        // Slipping at speed d: d + force (dynamic + (static - dynamic) scale / (scale + d)) =
        // |behind|, the larger root.
        let free = behind.abs() - force * DYNAMIC_FRICTION;
        let grip = force * (STATIC_FRICTION - DYNAMIC_FRICTION);
        let half = 0.5 * (free - scale);
        let under_root = half * half + scale * (free - grip);
        let slip = if under_root >= 0.0 {
            half + under_root.sqrt()
        } else {
            -1.0
        };
        let can_slip = slip > 0.0;
        let can_stick = behind.abs() <= STATIC_FRICTION * force;
        self.slipping = can_slip && (self.slipping || !can_stick);
        if self.slipping {
            behind - direction * slip
        } else {
            behind
        }
    }
}
