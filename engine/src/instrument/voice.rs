//! One note as continuous curves of pitch, loudness and gain.

use super::channel::{Change, ChannelValues, SMOOTHING_S, timbre_deviation};
use super::curve::{Smooth, drift, ease_out, fall, raised_cosine, random};
use super::event::NoteExpression;
use super::performance::Performance;

/// What counts as silence, in dB: where loudness curves begin, and below which they never go.
pub const SILENCE_DB: f32 = -90.0;

/// Brightness at either end of timbre, in dB.
pub const TIMBRE_RANGE_DB: f32 = 12.0;

/// A note that has faded to this level is over, in dB.
const END_DB: f64 = -80.0;
/// How far loudness may rise above the loudest note, in dB: what aftertouch, tremolo and drift add is bent below this.
const HEADROOM_DB: f64 = 3.0;
/// How far the level falls in [`Performance::release_ms`], in dB.
const RELEASE_FALL_DB: f64 = 60.0;
/// Shortest fades of gain, in seconds: the start of a note, the end of one that was stolen, the end of one that is over.
/// None is shorter than one hop, so that gain has no steps.
const START_S: f64 = 0.004;
const STEAL_S: f64 = 0.005;
const END_S: f64 = 0.020;
/// In how many time constants the level settles in [`Performance::decay_ms`]: to 5 % of the way.
const DECAY_TAUS: f64 = 3.0;
/// How long a note takes to answer a modulation wheel that was up before it began, in seconds.
const WHEEL_FADE_IN_S: f64 = 0.15;
/// How much the rate of vibrato varies from note to note, as a fraction.
const VIBRATO_SPREAD: f64 = 0.05;
/// Below this position expression and breath fade the gain too, so that zero is silence whatever the model makes of it.
const EXPRESSION_GATE: f64 = 1.0 / 32.0;

/// What drives a model's synthesis at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlFrame {
    /// Pitch in semitones: MIDI note number, 69 is 440 Hz.
    pub pitch: f32,
    /// A-weighted level in dB, from [`SILENCE_DB`] up.
    pub loudness: f32,
    /// Factor for the voice's sound, 0 … 1. Between two frames it goes in a straight line.
    pub gain: f32,
    /// By how much louder a note is to be played than it is heard, in dB: a change of timbre without one of level.
    /// 0 at rest, [`TIMBRE_RANGE_DB`] either way.
    pub brightness: f32,
}

/// A note to begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoteStart {
    /// When, in samples.
    pub at: u64,
    /// Its channel, 0 … 15.
    pub channel: u8,
    /// Its key, 0 … 127.
    pub key: u8,
    /// How hard, 0 … 1.
    pub velocity: f32,
    /// Chooses its small irregularities.
    pub seed: u64,
}

/// What holds a note, from the loosest to the firmest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hold {
    Nothing,
    Pedal,
    Key,
}

/// One note: attack, sustain, release, and all that moves on it.
#[derive(Clone, Copy, Debug)]
pub struct Voice {
    performance: Performance,
    sample_rate: f64,
    hop: f64,
    pub(super) channel: u8,
    pub(super) key: u8,
    pub(super) hold: Hold,
    seed: u64,
    /// When the voice began to sound: gain and drift count from here.
    entered: u64,
    /// When the note was begun anew: vibrato and scoop count from here.
    begun: u64,
    /// When the level last set out for a peak; a slur does so without beginning anew.
    struck: u64,
    attack: Attack,
    release: Option<Release>,
    glide: Glide,
    vibrato_hz: f64,
    pressure: Smooth,
    tuning: Smooth,
    level_db: Smooth,
    /// −1 … 1.
    timbre: Smooth,
    /// Depth of vibrato that the note itself asks for, 0 … 1.
    wheel: Smooth,
    /// Dynamics of the note itself, 0 … 1.
    expression: Smooth,
    fade: Option<Fade>,
}

#[derive(Clone, Copy, Debug)]
struct Attack {
    from_db: f64,
    peak_db: f64,
    /// By how much the level settles below its peak.
    accent_db: f64,
    /// Fall of the level while the note is held.
    db_per_s: f64,
    seconds: f64,
}

#[derive(Clone, Copy, Debug)]
struct Release {
    at: u64,
    from_db: f64,
}

#[derive(Clone, Copy, Debug)]
struct Glide {
    from: f64,
    to: f64,
    since: u64,
    seconds: f64,
}

impl Glide {
    /// No glide: at that pitch from now on.
    fn at_once(pitch: f64, since: u64) -> Self {
        Self { from: pitch, to: pitch, since, seconds: 0.0 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Fade {
    since: u64,
    from: f64,
    samples: f64,
}

impl Voice {
    /// A voice that begins a note, at `sample_rate` in Hz and with frames `hop` samples apart.
    pub fn new(performance: &Performance, sample_rate: f64, hop: u32, note: NoteStart) -> Self {
        let NoteStart { at, channel, key, velocity, seed } = note;
        let smooth = |value| Smooth::new(value, SMOOTHING_S * sample_rate);
        let mut voice = Self {
            performance: *performance,
            sample_rate,
            hop: f64::from(hop),
            channel,
            key,
            hold: Hold::Key,
            seed,
            entered: at,
            begun: at,
            struck: at,
            attack: Attack {
                from_db: f64::from(SILENCE_DB),
                peak_db: f64::from(SILENCE_DB),
                accent_db: 0.0,
                db_per_s: 0.0,
                seconds: 0.0,
            },
            release: None,
            glide: Glide::at_once(f64::from(key), at),
            vibrato_hz: f64::from(performance.vibrato_hz) * (1.0 + VIBRATO_SPREAD * random(seed, 0)),
            pressure: smooth(0.0),
            tuning: smooth(0.0),
            level_db: smooth(0.0),
            timbre: smooth(0.0),
            wheel: smooth(0.0),
            expression: smooth(1.0),
            fade: None,
        };
        voice.strike(at, velocity, f64::from(SILENCE_DB));
        voice
    }

    /// Begins a note anew on the same voice: the level goes on from where it is.
    pub fn retrigger(&mut self, at: u64, key: u8, velocity: f32) {
        let level = self.level_db(at);
        self.key = key;
        self.hold = Hold::Key;
        self.begun = at;
        self.release = None;
        self.glide = Glide::at_once(f64::from(key), at);
        self.pressure.set(at, 0.0);
        self.tuning.snap(0.0);
        self.level_db.set(at, 0.0);
        self.timbre.set(at, 0.0);
        self.wheel.set(at, 0.0);
        self.expression.set(at, 1.0);
        self.strike(at, velocity, level);
    }

    /// Begins another note on a voice that still holds one: as [`Self::retrigger`], but pitch glides there within `glide_ms`
    /// from where the channel's wheels and the note's own vibrato, scoop and tuning have brought it.
    pub fn take_over(&mut self, at: u64, key: u8, velocity: f32, glide_ms: f32, channel: &ChannelValues) {
        let before = self.pitch(at, channel);
        self.retrigger(at, key, velocity);
        let to = f64::from(key);
        // What moves pitch besides the key is not the same any more: the glide makes up for that.
        let from = to + before - self.pitch(at, channel);
        self.glide = Glide { from, to, since: at, seconds: f64::from(glide_ms) / 1e3 };
    }

    /// Slurs to another key: pitch glides there within `glide_ms`; with a velocity the level sets out for a new peak.
    pub fn slur(&mut self, at: u64, key: u8, velocity: Option<f32>, glide_ms: f32) {
        let from = self.glide_pitch(at);
        self.key = key;
        self.hold = Hold::Key;
        self.glide = Glide { from, to: f64::from(key), since: at, seconds: f64::from(glide_ms) / 1e3 };
        if let Some(velocity) = velocity {
            let level = self.level_db(at);
            self.strike(at, velocity, level);
        }
    }

    /// Lets the note go.
    pub fn release(&mut self, at: u64) {
        if self.release.is_none() {
            self.release = Some(Release { at, from_db: self.level_db(at) });
        }
        self.hold = Hold::Nothing;
    }

    /// Takes the note away within about 5 ms, to make room for another.
    pub fn steal(&mut self, at: u64) {
        self.fade_out(at, STEAL_S);
    }

    /// Aftertouch of this note, 0 … 1.
    pub fn set_pressure(&mut self, at: u64, value: f64) {
        self.change(at).apply(&mut self.pressure, value);
    }

    /// Note expression for this note.
    pub fn express(&mut self, at: u64, expression: NoteExpression) {
        let change = self.change(at);
        match expression {
            NoteExpression::Tuning(semitones) => change.apply(&mut self.tuning, f64::from(semitones)),
            NoteExpression::Level(db) => change.apply(&mut self.level_db, f64::from(db)),
            NoteExpression::Timbre(value) => change.apply(&mut self.timbre, timbre_deviation(f64::from(value))),
            NoteExpression::Vibrato(depth) => change.apply(&mut self.wheel, f64::from(depth)),
            NoteExpression::Expression(position) => change.apply(&mut self.expression, f64::from(position)),
        }
    }

    /// What comes with the note itself, at its very onset, is not heard to move.
    fn change(&self, at: u64) -> Change {
        if at == self.entered { Change::Snap } else { Change::From(at) }
    }

    /// Whether gain is on its way to 0: nothing brings the voice back.
    pub(super) fn is_fading(&self) -> bool {
        self.fade.is_some()
    }

    /// Whether the voice has faded out and will not be heard again.
    pub fn is_over(&self, t: u64) -> bool {
        self.fade.is_some() && self.fade_gain(t) == 0.0
    }

    /// The voice at time `t`, in samples, with its channel's wheels and faders at that time.
    pub fn control(&mut self, t: u64, channel: &ChannelValues) -> ControlFrame {
        let performance = self.performance;
        let level = self.level_db(t);
        if self.fade.is_none() && self.is_inaudible(t, level) {
            self.fade_out(t, END_S);
            self.hold = Hold::Nothing;
        }

        let (_, vibrato_db) = self.vibrato(t, channel);
        let alive_s = self.seconds(self.entered, t);
        let drift_db = f64::from(performance.humanize_db) * drift(self.seed.rotate_left(32), alive_s);
        let expression = channel.expression * self.expression.at(t);
        let pressure = channel.pressure.max(self.pressure.at(t));
        let loudness = level
            + self.level_db.at(t)
            + f64::from(performance.pressure_db) * pressure
            + fader_db(expression)
            + vibrato_db
            + drift_db;
        let gain = self.fade_gain(t)
            * (expression / EXPRESSION_GATE).min(1.0)
            // The same law as `fader_db`, as a factor.
            * channel.volume
            * channel.volume;
        ControlFrame {
            pitch: self.pitch(t, channel) as f32,
            loudness: within_limits(loudness, f64::from(performance.loudness_max_db)) as f32,
            gain: gain as f32,
            brightness: TIMBRE_RANGE_DB * (channel.timbre + self.timbre.at(t)).clamp(-1.0, 1.0) as f32,
        }
    }

    /// Pitch with all that moves it, in semitones.
    fn pitch(&self, t: u64, channel: &ChannelValues) -> f64 {
        let performance = &self.performance;
        let (vibrato_cents, _) = self.vibrato(t, channel);
        let scoop_tau_s = f64::from(performance.attack_ms.max(10.0)) / 2e3;
        let scoop_cents = -f64::from(performance.scoop_cents) * (-self.seconds(self.begun, t) / scoop_tau_s).exp();
        let drift_cents = f64::from(performance.humanize_cents) * drift(self.seed, self.seconds(self.entered, t));
        self.glide_pitch(t) + self.tuning.at(t) + channel.bend + (vibrato_cents + scoop_cents + drift_cents) / 100.0
    }

    /// Level of the note itself, in dB, without what channel and hand add.
    pub(super) fn level_db(&self, t: u64) -> f64 {
        let attack = &self.attack;
        if let Some(release) = &self.release {
            let elapsed = self.seconds(release.at, t);
            let length = f64::from(self.performance.release_ms) / 1e3;
            return release.from_db - RELEASE_FALL_DB * fall(elapsed / length) - attack.db_per_s * elapsed;
        }
        let elapsed = self.seconds(self.struck, t);
        let rising = attack.from_db + (attack.peak_db - attack.from_db) * ease_out(elapsed / attack.seconds);
        let settling = (elapsed - attack.seconds).max(0.0);
        let tau = f64::from(self.performance.decay_ms) / 1e3 / DECAY_TAUS;
        rising - attack.accent_db * (1.0 - (-settling / tau).exp()) - attack.db_per_s * settling
    }

    /// How present the note is to a listener, in dB: its level, or the peak that it is rising to.
    pub(super) fn presence_db(&self, t: u64) -> f64 {
        if self.is_rising(t) { self.attack.peak_db } else { self.level_db(t) }
    }

    fn strike(&mut self, at: u64, velocity: f32, from_db: f64) {
        let performance = &self.performance;
        let octaves = (f64::from(self.key) - 60.0) / 12.0;
        self.struck = at;
        self.attack = Attack {
            from_db,
            peak_db: f64::from(performance.peak_db(velocity)),
            accent_db: -f64::from(performance.sustain_db) * f64::from(velocity),
            db_per_s: f64::from(performance.decay_db_per_s) * f64::from(performance.decay_per_octave).powf(octaves),
            // A factor of √2 either way between the softest and the hardest.
            seconds: f64::from(performance.attack_ms) / 1e3 * (0.5 - f64::from(velocity)).exp2(),
        };
    }

    /// Whether the note has faded to nothing, by itself or since it was let go.
    pub(super) fn has_died_away(&self, t: u64) -> bool {
        self.is_inaudible(t, self.level_db(t))
    }

    fn is_inaudible(&self, t: u64, level: f64) -> bool {
        level <= END_DB && !self.is_rising(t)
    }

    fn is_rising(&self, t: u64) -> bool {
        self.release.is_none() && self.seconds(self.struck, t) < self.attack.seconds
    }

    /// Vibrato at time `t`: cents, and the dB that go with them.
    fn vibrato(&self, t: u64, channel: &ChannelValues) -> (f64, f64) {
        let performance = &self.performance;
        let wheel = channel.wheel.max(self.wheel.at(t));
        let elapsed = self.seconds(self.begun, t);
        let natural = f64::from(performance.vibrato_cents);
        let by_wheel = f64::from(performance.vibrato_wheel_cents);
        let delay = f64::from(performance.vibrato_delay_ms) / 1e3;
        // From half the delay to one and a half: half-way at the delay itself.
        let arrived = if delay > 0.0 { raised_cosine(elapsed / delay - 0.5) } else { 1.0 };
        let arrived = natural * arrived;
        let depth = arrived + wheel * raised_cosine(elapsed / WHEEL_FADE_IN_S) * (by_wheel - arrived).max(0.0);
        let deepest = natural.max(by_wheel);
        if depth <= 0.0 || deepest <= 0.0 {
            return (0.0, 0.0);
        }
        let swing = (std::f64::consts::TAU * self.vibrato_hz * elapsed).sin();
        (depth * swing, f64::from(performance.vibrato_db) * depth / deepest * swing)
    }

    fn glide_pitch(&self, t: u64) -> f64 {
        let Glide { from, to, since, seconds } = self.glide;
        let way = if seconds > 0.0 { raised_cosine(self.seconds(since, t) / seconds) } else { 1.0 };
        from + (to - from) * way
    }

    fn fade_out(&mut self, at: u64, seconds: f64) {
        let samples = (seconds * self.sample_rate).max(self.hop);
        self.fade = Some(Fade { since: at, from: self.fade_gain(at), samples });
    }

    fn fade_gain(&self, t: u64) -> f64 {
        match &self.fade {
            None => {
                let samples = (START_S * self.sample_rate).max(self.hop);
                (t.saturating_sub(self.entered) as f64 / samples).min(1.0)
            }
            Some(fade) => (fade.from - t.saturating_sub(fade.since) as f64 / fade.samples).max(0.0),
        }
    }

    fn seconds(&self, from: u64, to: u64) -> f64 {
        to.saturating_sub(from) as f64 / self.sample_rate
    }
}

/// The law of volume and expression: 40 dB per decade (General MIDI, and MMA's DLS).
fn fader_db(position: f64) -> f64 {
    40.0 * position.max(1e-6).log10()
}

/// Bends what is above the loudest note below [`HEADROOM_DB`] more, and keeps the rest.
fn within_limits(loudness_db: f64, max_db: f64) -> f64 {
    let above = loudness_db - max_db;
    let bent = if above > 0.0 { max_db + HEADROOM_DB * (1.0 - (-above / HEADROOM_DB).exp()) } else { loudness_db };
    bent.max(f64::from(SILENCE_DB))
}

#[cfg(test)]
mod tests;
