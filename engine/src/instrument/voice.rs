//! A note as continuous curves of pitch, loudness and gain.

use super::channel::{Change, ChannelValues, SMOOTHING_S, timbre_deviation};
use super::curve::{ATTACK_RATE, Smooth, approach_db, drift, fall, raised_cosine, random};
use super::event::NoteExpression;
use super::performance::{NATURAL_VELOCITY, Performance};
use crate::dsp::noise::stream_seed;

/// Level of silence in dB: the lower limit of loudness.
pub const SILENCE_DB: f32 = -90.0;

/// Brightness at either end of timbre, dB.
pub const TIMBRE_RANGE_DB: f32 = 12.0;

/// Level at which a decayed note ends, dB.
const END_DB: f64 = -80.0;
/// Limit of loudness above the loudest note, dB; aftertouch, tremolo and drift are compressed
/// towards it.
const HEADROOM_DB: f64 = 3.0;
/// Fall of the level within [`Performance::release_ms`], dB.
const RELEASE_FALL_DB: f64 = 60.0;
/// Gain fades in seconds: at the start of a note, when it is stolen, and at its end. They last at
/// least a hop, so that gain has no steps.
const START_S: f64 = 0.004;
const STEAL_S: f64 = 0.005;
const END_S: f64 = 0.020;
/// Shortest time for which a key is held, s: that of the shortest staccato. Notes of no length have
/// it, too.
const SHORTEST_S: f64 = 0.020;
/// Time constants within [`Performance::decay_ms`]: the level settles to 5 %.
const DECAY_TAUS: f64 = 3.0;
/// Fade-in of vibrato by a modulation wheel that was up before the onset, s.
const WHEEL_FADE_IN_S: f64 = 0.15;
/// Level below its peak at which a note begins, dB. Recorded notes are heard from about there.
const ONSET_DB: f64 = 30.0;
/// Variations of vibrato, at a [life](Performance::life) of 1: of its rate between notes, of its
/// delay between notes and of its depth within one, relative; and within one of its phase, cycles.
const VIBRATO_RATE_SPREAD: f64 = 0.05;
const VIBRATO_DELAY_SPREAD: f64 = 0.3;
const VIBRATO_DEPTH_SPREAD: f64 = 0.35;
const VIBRATO_PHASE_SPREAD: f64 = 0.3;
/// Position below which expression and breath also fade the gain, so that 0 is silent with any
/// model.
const EXPRESSION_GATE: f64 = 1.0 / 32.0;

/// Inputs of a model's synthesis at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlFrame {
    /// Pitch in semitones: MIDI note number, 69 is 440 Hz.
    pub pitch: f32,
    /// A-weighted level in dB, at least [`SILENCE_DB`].
    pub loudness: f32,
    /// Gain of the voice's output, 0 to 1, interpolated linearly between frames.
    pub gain: f32,
    /// Level in dB by which the note is played louder than it is output, which changes the timbre
    /// but not the level. Neutral at 0, at most ±[`TIMBRE_RANGE_DB`].
    pub brightness: f32,
    /// Rise of treble against bass by how the note is played, in dB.
    pub tilt: f32,
    /// The stroke that began the note, if that was after the frame before.
    pub stroke: Option<Stroke>,
    /// Level of the note in dB without the course that recorded notes have in their attack: what a
    /// [recorded attack](crate::model::Attack) is played at.
    pub strike_db: f32,
    /// As [`Self::gain`], without the fade at the start of a note.
    pub strike_gain: f32,
}

/// Stroke that begins a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// Samples from it to the frame.
    pub age: usize,
    /// Seed of its random variations.
    pub seed: u64,
}

/// Start of a note.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoteStart {
    /// Time in samples.
    pub at: u64,
    /// Channel, 0 to 15.
    pub channel: u8,
    /// Key, 0 to 127.
    pub key: u8,
    /// Pitch of the key in semitones; equal to `key` in equal temperament.
    pub pitch: f64,
    /// Velocity, 0 to 1.
    pub velocity: f32,
    /// Seed of its random variations.
    pub seed: u64,
}

/// Reason why a note is held, in ascending order of priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hold {
    Nothing,
    Pedal,
    Key,
}

/// A note with attack, sustain, release and modulation.
#[derive(Clone, Copy, Debug)]
pub struct Voice {
    performance: Performance,
    sample_rate: f64,
    hop: f64,
    pub(super) channel: u8,
    pub(super) key: u8,
    pub(super) hold: Hold,
    seed: u64,
    /// Start of the voice, the origin of gain and drift.
    started_at: u64,
    /// Last start of a note, the origin of vibrato and scoop.
    restarted_at: u64,
    /// Last attack; a slur has one without starting a note.
    struck_at: u64,
    attack: Attack,
    /// Duration of recorded attacks, ms.
    recorded_attack_ms: f32,
    /// A note has been struck since the last frame.
    is_struck: bool,
    release: Option<Release>,
    glide: Glide,
    vibrato_hz: f64,
    /// Factor of [`Performance::vibrato_delay_ms`].
    vibrato_delay: f64,
    pressure: Smooth,
    tuning: Smooth,
    level_db: Smooth,
    /// Deviation from neutral, −1 to 1.
    timbre: Smooth,
    /// Depth of vibrato by note expression, 0 to 1.
    wheel: Smooth,
    /// Dynamics by note expression, 0 to 1.
    expression: Smooth,
    fade: Option<Fade>,
}

#[derive(Clone, Copy, Debug)]
struct Attack {
    from_db: f64,
    peak_db: f64,
    /// Fall of the level from peak to sustain.
    accent_db: f64,
    /// Decay of the level while the note is held.
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
    /// Constant pitch.
    fn at_once(pitch: f64, since: u64) -> Self {
        Self {
            from: pitch,
            to: pitch,
            since,
            seconds: 0.0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Fade {
    since: u64,
    from: f64,
    samples: f64,
}

impl Voice {
    /// Starts a note, at a sample rate in Hz and with frames `hop` samples apart.
    pub fn new(performance: &Performance, sample_rate: f64, hop: u32, note: NoteStart) -> Self {
        let NoteStart {
            at,
            channel,
            key,
            pitch,
            velocity,
            seed,
        } = note;
        let smooth = |value| Smooth::new(value, SMOOTHING_S * sample_rate);
        let life = f64::from(performance.life);
        let mut voice = Self {
            performance: *performance,
            sample_rate,
            hop: f64::from(hop),
            channel,
            key,
            hold: Hold::Key,
            seed,
            started_at: at,
            restarted_at: at,
            struck_at: at,
            attack: Attack {
                from_db: f64::from(SILENCE_DB),
                peak_db: f64::from(SILENCE_DB),
                accent_db: 0.0,
                db_per_s: 0.0,
                seconds: 0.0,
            },
            recorded_attack_ms: performance.attack_ms,
            is_struck: true,
            release: None,
            glide: Glide::at_once(pitch, at),
            vibrato_hz: f64::from(performance.vibrato_hz)
                * (1.0 + life * VIBRATO_RATE_SPREAD * random(seed, 0)),
            vibrato_delay: (1.0 + life * VIBRATO_DELAY_SPREAD * random(seed, 1)).max(0.0),
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

    /// Sets the duration that attacks have in recordings, ms.
    pub(super) fn set_recorded_attack(&mut self, attack_ms: f32) {
        self.recorded_attack_ms = attack_ms;
    }

    /// Starts a note on the same voice; its level continues from the current one if that is
    /// audible beside the new one.
    pub fn retrigger(&mut self, at: u64, key: u8, pitch: f64, velocity: f32) {
        let level = self.level_db(at);
        self.key = key;
        self.hold = Hold::Key;
        self.restarted_at = at;
        self.release = None;
        self.glide = Glide::at_once(pitch, at);
        self.pressure.set(at, 0.0);
        self.tuning.snap(0.0);
        self.level_db.set(at, 0.0);
        self.timbre.set(at, 0.0);
        self.wheel.set(at, 0.0);
        self.expression.set(at, 1.0);
        self.strike(at, velocity, level);
        self.is_struck = true;
    }

    /// Starts a note on a voice that still plays one: like [`Self::retrigger`], but the pitch
    /// glides within `glide_ms` from its current value, including wheels, vibrato, scoop and
    /// tuning.
    pub fn take_over(
        &mut self,
        at: u64,
        (key, pitch): (u8, f64),
        velocity: f32,
        glide_ms: f32,
        channel: &ChannelValues,
    ) {
        let before = self.pitch(at, channel);
        self.retrigger(at, key, pitch, velocity);
        // Vibrato, scoop and tuning are reset; the start of the glide compensates for that.
        let from = pitch + before - self.pitch(at, channel);
        self.glide = Glide {
            from,
            to: pitch,
            since: at,
            seconds: f64::from(glide_ms) / 1e3,
        };
    }

    /// Lets a note that has just started glide from another pitch.
    pub fn glide_from(&mut self, at: u64, from: f64, glide_ms: f32) {
        self.glide = Glide {
            from,
            to: self.glide.to,
            since: at,
            seconds: f64::from(glide_ms) / 1e3,
        };
    }

    /// Slurs to another key: the pitch glides within `glide_ms`. With a velocity the level has a
    /// new attack.
    pub fn slur(&mut self, at: u64, (key, pitch): (u8, f64), velocity: Option<f32>, glide_ms: f32) {
        let from = self.glide_pitch(at);
        self.key = key;
        self.hold = Hold::Key;
        self.glide = Glide {
            from,
            to: pitch,
            since: at,
            seconds: f64::from(glide_ms) / 1e3,
        };
        if let Some(velocity) = velocity {
            let level = self.level_db(at);
            self.strike(at, velocity, level);
        }
    }

    /// Releases the note, at the earliest `SHORTEST_S` after its attack began.
    pub fn release(&mut self, at: u64) {
        if self.release.is_none() {
            let at = at.max(self.struck_at + (SHORTEST_S * self.sample_rate) as u64);
            self.release = Some(Release {
                at,
                from_db: self.level_db(at),
            });
        }
        self.hold = Hold::Nothing;
    }

    /// Fades the note out within about 5 ms, to free its voice.
    pub fn steal(&mut self, at: u64) {
        self.fade_out(at, STEAL_S);
    }

    /// Sets the aftertouch of the note, 0 to 1.
    pub fn set_pressure(&mut self, at: u64, value: f64) {
        self.change(at).apply(&mut self.pressure, value);
    }

    /// Applies note expression.
    pub fn express(&mut self, at: u64, expression: NoteExpression) {
        let change = self.change(at);
        match expression {
            NoteExpression::Tuning(semitones) => {
                change.apply(&mut self.tuning, f64::from(semitones))
            }
            NoteExpression::Level(db) => change.apply(&mut self.level_db, f64::from(db)),
            NoteExpression::Timbre(value) => {
                change.apply(&mut self.timbre, timbre_deviation(f64::from(value)))
            }
            NoteExpression::Vibrato(depth) => change.apply(&mut self.wheel, f64::from(depth)),
            NoteExpression::Expression(position) => {
                change.apply(&mut self.expression, f64::from(position))
            }
        }
    }

    /// Changes at the onset itself are immediate.
    fn change(&self, at: u64) -> Change {
        if at == self.started_at {
            Change::Snap
        } else {
            Change::From(at)
        }
    }

    /// Returns whether the gain is fading to 0, which cannot be stopped.
    pub(super) fn is_fading(&self) -> bool {
        self.fade.is_some()
    }

    /// Returns whether the voice has faded out.
    pub fn is_over(&self, t: u64) -> bool {
        self.fade.is_some() && self.fade_gain(t) == 0.0
    }

    /// Returns the frame at time `t` in samples; `channel` has the wheels and faders at that time.
    pub fn control(&mut self, t: u64, channel: &ChannelValues) -> ControlFrame {
        let performance = self.performance;
        let level = self.level_db(t);
        if self.fade.is_none() && self.is_inaudible(t, level) {
            self.fade_out(t, END_S);
            self.hold = Hold::Nothing;
        }

        let (_, vibrato_db) = self.vibrato(t, channel);
        let alive_s = self.seconds(self.started_at, t);
        let drift_db = f64::from(performance.life * performance.humanize_db)
            * drift(self.seed.rotate_left(32), alive_s);
        let expression = channel.expression * self.expression.at(t);
        let pressure = channel.pressure.max(self.pressure.at(t));
        let modulation = self.level_db.at(t)
            + f64::from(performance.pressure_db) * pressure
            + fader_db(expression)
            + vibrato_db
            + drift_db;
        let loudest = f64::from(performance.loudness_max_db + performance.sustain_db.max(0.0));
        let tilt = if performance.is_tilted() {
            let begun = self.seconds(self.struck_at, t) / self.attack.seconds;
            performance.tilt_db((self.attack.peak_db + modulation) as f32)
                + performance.attack_tilt_db * (ATTACK_RATE * begun).exp() as f32
        } else {
            0.0
        };
        let volume = (expression / EXPRESSION_GATE).min(1.0)
            // Like `fader_db`, but linear.
            * channel.volume
            * channel.volume;
        let fade_out = self.fade.map_or(1.0, |_| self.fade_gain(t));
        let stroke = std::mem::take(&mut self.is_struck).then(|| Stroke {
            age: t.saturating_sub(self.struck_at) as usize,
            seed: stream_seed(self.seed, self.struck_at),
        });
        ControlFrame {
            pitch: self.pitch(t, channel) as f32,
            loudness: within_limits(level + modulation, loudest) as f32,
            gain: (self.fade_gain(t) * volume) as f32,
            brightness: TIMBRE_RANGE_DB
                * (channel.timbre + self.timbre.at(t)).clamp(-1.0, 1.0) as f32,
            tilt,
            stroke,
            strike_db: (self.strike_db(t, level) + modulation) as f32,
            strike_gain: (fade_out * volume) as f32,
        }
    }

    /// Returns the level in dB without the course of a recorded attack, at most that of the peak.
    fn strike_db(&self, t: u64, level: f64) -> f64 {
        let recorded = Attack {
            from_db: -ONSET_DB,
            peak_db: 0.0,
            seconds: attack_s(self.recorded_attack_ms, NATURAL_VELOCITY),
            ..self.attack
        };
        (level - self.course_db(&recorded, self.seconds(self.struck_at, t)))
            .min(self.attack.peak_db)
    }

    /// Returns the first frame for a model that begins to play the voice at time `t`.
    ///
    /// A model that begins with the silence before an attack, as where a note starts just before a
    /// frame, needs a further frame to sound. So a new note begins with the loudness of its second
    /// frame; the gain still fades in from the onset.
    pub fn first_control(&mut self, t: u64, channel: &ChannelValues) -> ControlFrame {
        let first = self.control(t, channel);
        if t.saturating_sub(self.started_at) as f64 >= self.hop {
            return first;
        }
        let second = { *self }.control(t + self.hop as u64, channel);
        ControlFrame {
            loudness: first.loudness.max(second.loudness),
            ..first
        }
    }

    /// Returns the pitch with all modulation, in semitones.
    fn pitch(&self, t: u64, channel: &ChannelValues) -> f64 {
        let performance = &self.performance;
        let (vibrato_cents, _) = self.vibrato(t, channel);
        let scoop_tau_s = f64::from(performance.attack_ms.max(10.0)) / 2e3;
        let scoop_cents = -f64::from(performance.scoop_cents)
            * (-self.seconds(self.restarted_at, t) / scoop_tau_s).exp();
        let drift_cents = f64::from(performance.life * performance.humanize_cents)
            * drift(self.seed, self.seconds(self.started_at, t));
        self.glide_pitch(t)
            + self.tuning.at(t)
            + channel.bend
            + (vibrato_cents + scoop_cents + drift_cents) / 100.0
    }

    /// Returns the level of the note's envelope in dB.
    pub(super) fn level_db(&self, t: u64) -> f64 {
        let attack = &self.attack;
        if let Some(release) = self.release.as_ref().filter(|release| t >= release.at) {
            let elapsed = self.seconds(release.at, t);
            let length = f64::from(self.performance.release_ms) / 1e3;
            return release.from_db
                - RELEASE_FALL_DB * fall(elapsed / length)
                - attack.db_per_s * elapsed;
        }
        self.course_db(attack, self.seconds(self.struck_at, t))
    }

    /// Returns the level of an attack and what follows while the note is held, in dB.
    fn course_db(&self, attack: &Attack, elapsed: f64) -> f64 {
        let rising = approach_db(attack.from_db, attack.peak_db, elapsed / attack.seconds);
        let settling = (elapsed - attack.seconds).max(0.0);
        let tau = f64::from(self.performance.decay_ms) / 1e3 / DECAY_TAUS;
        rising - attack.accent_db * (1.0 - (-settling / tau).exp()) - attack.db_per_s * settling
    }

    /// Returns the perceived level of the note in dB: its level, or its peak during the attack.
    pub(super) fn perceived_level_db(&self, t: u64) -> f64 {
        if self.is_rising(t) {
            self.attack.peak_db
        } else {
            self.level_db(t)
        }
    }

    fn strike(&mut self, at: u64, velocity: f32, from_db: f64) {
        let performance = &self.performance;
        let octaves = (f64::from(self.key) - 60.0) / 12.0;
        let peak_db = f64::from(performance.peak_db(velocity));
        self.struck_at = at;
        self.attack = Attack {
            from_db: from_db.max(peak_db - ONSET_DB),
            peak_db,
            accent_db: -f64::from(performance.sustain_db) * f64::from(velocity),
            db_per_s: f64::from(performance.decay_db_per_s)
                * f64::from(performance.decay_per_octave).powf(octaves),
            seconds: attack_s(performance.attack_ms, velocity),
        };
    }

    /// Returns whether the note has decayed to silence.
    pub(super) fn has_died_away(&self, t: u64) -> bool {
        self.is_inaudible(t, self.level_db(t))
    }

    fn is_inaudible(&self, t: u64, level: f64) -> bool {
        level <= END_DB && !self.is_rising(t)
    }

    fn is_rising(&self, t: u64) -> bool {
        self.release.is_none_or(|release| t < release.at)
            && self.seconds(self.struck_at, t) < self.attack.seconds
    }

    /// Returns the vibrato at time `t` in cents and dB.
    fn vibrato(&self, t: u64, channel: &ChannelValues) -> (f64, f64) {
        let performance = &self.performance;
        let wheel = channel.wheel.max(self.wheel.at(t));
        let elapsed = self.seconds(self.restarted_at, t);
        let natural = f64::from(performance.vibrato_cents);
        let by_wheel = f64::from(performance.vibrato_wheel_cents);
        let delay = self.vibrato_delay * f64::from(performance.vibrato_delay_ms) / 1e3;
        // From half the delay to one and a half, so half-way at the delay itself.
        let arrived = if delay > 0.0 {
            raised_cosine(elapsed / delay - 0.5)
        } else {
            1.0
        };
        let arrived = natural * arrived;
        let depth = arrived
            + wheel * raised_cosine(elapsed / WHEEL_FADE_IN_S) * (by_wheel - arrived).max(0.0);
        let deepest = natural.max(by_wheel);
        if depth <= 0.0 || deepest <= 0.0 {
            return (0.0, 0.0);
        }
        let life = f64::from(performance.life);
        let wander =
            |spread: f64, turn: u32| life * spread * drift(self.seed.rotate_left(turn), elapsed);
        let cycles = self.vibrato_hz * elapsed + wander(VIBRATO_PHASE_SPREAD, 16);
        let swing = (1.0 + wander(VIBRATO_DEPTH_SPREAD, 48)).max(0.0)
            * (std::f64::consts::TAU * cycles).sin();
        (
            depth * swing,
            f64::from(performance.vibrato_db) * depth / deepest * swing,
        )
    }

    fn glide_pitch(&self, t: u64) -> f64 {
        let Glide {
            from,
            to,
            since,
            seconds,
        } = self.glide;
        let way = if seconds > 0.0 {
            raised_cosine(self.seconds(since, t) / seconds)
        } else {
            1.0
        };
        from + (to - from) * way
    }

    fn fade_out(&mut self, at: u64, seconds: f64) {
        let samples = (seconds * self.sample_rate).max(self.hop);
        self.fade = Some(Fade {
            since: at,
            from: self.fade_gain(at),
            samples,
        });
    }

    fn fade_gain(&self, t: u64) -> f64 {
        match &self.fade {
            None => {
                let samples = (START_S * self.sample_rate).max(self.hop);
                (t.saturating_sub(self.started_at) as f64 / samples).min(1.0)
            }
            Some(fade) => (fade.from - t.saturating_sub(fade.since) as f64 / fade.samples).max(0.0),
        }
    }

    fn seconds(&self, from: u64, to: u64) -> f64 {
        to.saturating_sub(from) as f64 / self.sample_rate
    }
}

/// Returns the duration of an attack, seconds: a factor of √2 either way between the softest and the
/// hardest note.
fn attack_s(attack_ms: f32, velocity: f32) -> f64 {
    f64::from(attack_ms) / 1e3 * (0.5 - f64::from(velocity)).exp2()
}

/// Converts volume or expression to dB: 40 dB per decade (General MIDI, MMA's DLS).
fn fader_db(position: f64) -> f64 {
    40.0 * position.max(1e-6).log10()
}

/// Compresses levels above the loudest note to within [`HEADROOM_DB`].
fn within_limits(loudness_db: f64, max_db: f64) -> f64 {
    let above = loudness_db - max_db;
    let bent = if above > 0.0 {
        max_db + HEADROOM_DB * (1.0 - (-above / HEADROOM_DB).exp())
    } else {
        loudness_db
    };
    bent.max(f64::from(SILENCE_DB))
}

#[cfg(test)]
mod tests;
