//! Wheels, pedals and faders of a MIDI channel.

use super::curve::Smooth;
use super::event::{TIMBRE_REST, controller};
use super::held_keys::HeldKeys;
use super::performance::PlayMode;
use super::portamento::Portamento;

/// Time constant of the smoothing, s: short enough to follow a hand, long enough to hide the steps
/// of MIDI.
pub(super) const SMOOTHING_S: f64 = 0.012;

/// Positions of a channel's wheels and faders at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelValues {
    /// Pitch wheel, in semitones.
    pub bend: f64,
    /// Modulation wheel, 0 to 1.
    pub wheel: f64,
    /// Aftertouch, 0 to 1.
    pub pressure: f64,
    /// Product of expression pedal and breath, 0 to 1.
    pub expression: f64,
    /// Volume fader, 0 to 1.
    pub volume: f64,
    /// Timbre, −1 (dark) to 1 (bright).
    pub timbre: f64,
}

impl ChannelValues {
    /// Neutral positions.
    pub const REST: Self = Self {
        bend: 0.0,
        wheel: 0.0,
        pressure: 0.0,
        expression: 1.0,
        volume: 1.0,
        timbre: 0.0,
    };

    /// Combines the positions of an MPE member with those of its manager.
    pub(super) fn with_manager(&self, manager: &Self) -> Self {
        Self {
            bend: self.bend + manager.bend,
            wheel: self.wheel.max(manager.wheel),
            pressure: self.pressure.max(manager.pressure),
            expression: self.expression * manager.expression,
            volume: self.volume * manager.volume,
            timbre: (self.timbre + manager.timbre).clamp(-1.0, 1.0),
        }
    }
}

/// Converts timbre from 0 to 1 to a deviation from neutral, −1 to 1.
pub(super) fn timbre_deviation(value: f64) -> f64 {
    (value - f64::from(TIMBRE_REST)) / f64::from(TIMBRE_REST)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    bend: Smooth,
    wheel: Smooth,
    pressure: Smooth,
    expression: Smooth,
    breath: Smooth,
    volume: Smooth,
    timbre: Smooth,
    tuning: Smooth,
    /// True while the sustain pedal is down.
    pub(super) pedal: bool,
    /// True while the sostenuto pedal is down.
    pub(super) sostenuto: bool,
    /// True while the soft pedal is down.
    pub(super) soft: bool,
    /// True while the legato pedal is down.
    pub(super) legato: bool,
    pub(super) portamento: Portamento,
    /// Mode set by a mode message.
    pub(super) mode: Option<PlayMode>,
    /// Held keys, for legato.
    pub(super) held: HeldKeys,
}

impl Channel {
    pub(super) fn new(sample_rate: f64) -> Self {
        let rest = ChannelValues::REST;
        let smooth = |value| Smooth::new(value, SMOOTHING_S * sample_rate);
        Self {
            bend: smooth(rest.bend),
            wheel: smooth(rest.wheel),
            pressure: smooth(rest.pressure),
            expression: smooth(rest.expression),
            breath: smooth(rest.expression),
            volume: smooth(rest.volume),
            timbre: smooth(rest.timbre),
            tuning: smooth(0.0),
            pedal: false,
            sostenuto: false,
            soft: false,
            legato: false,
            portamento: Portamento::default(),
            mode: None,
            held: HeldKeys::default(),
        }
    }

    pub(super) fn values(&self, t: u64) -> ChannelValues {
        ChannelValues {
            bend: self.bend.at(t) + self.tuning.at(t),
            wheel: self.wheel.at(t),
            pressure: self.pressure.at(t),
            expression: self.expression.at(t) * self.breath.at(t),
            volume: self.volume.at(t),
            timbre: self.timbre.at(t),
        }
    }

    pub(super) fn bend(&mut self, change: Change, semitones: f64) {
        change.apply(&mut self.bend, semitones);
    }

    /// Tunes the channel, in semitones.
    pub(super) fn tune(&mut self, change: Change, semitones: f64) {
        change.apply(&mut self.tuning, semitones);
    }

    pub(super) fn pressure(&mut self, change: Change, value: f64) {
        change.apply(&mut self.pressure, value);
    }

    /// Applies a controller of a wheel, a fader or portamento; ignores others.
    pub(super) fn controller(&mut self, change: Change, number: u8, value: f64) {
        match number {
            controller::MOD_WHEEL => change.apply(&mut self.wheel, value),
            controller::BREATH => change.apply(&mut self.breath, value),
            controller::EXPRESSION => change.apply(&mut self.expression, value),
            controller::VOLUME => change.apply(&mut self.volume, value),
            controller::TIMBRE => change.apply(&mut self.timbre, timbre_deviation(value)),
            _ => self.portamento.controller(number, value),
        }
    }

    /// Resets wheels and pedals; volume, timbre, tuning and mode stay, as in MIDI's recommended
    /// practice RP-015.
    pub(super) fn reset(&mut self, change: Change) {
        let rest = ChannelValues::REST;
        change.apply(&mut self.bend, rest.bend);
        change.apply(&mut self.wheel, rest.wheel);
        change.apply(&mut self.pressure, rest.pressure);
        change.apply(&mut self.expression, rest.expression);
        change.apply(&mut self.breath, rest.expression);
        (self.pedal, self.sostenuto, self.soft, self.legato) = (false, false, false, false);
        self.portamento.switch_off();
    }

    /// Resets everything.
    pub(super) fn reset_all(&mut self, change: Change) {
        self.reset(change);
        change.apply(&mut self.volume, ChannelValues::REST.volume);
        change.apply(&mut self.timbre, ChannelValues::REST.timbre);
        change.apply(&mut self.tuning, 0.0);
        self.portamento = Portamento::default();
        self.mode = None;
        self.held.clear();
    }

    /// Resets wheels, pedals and keys at once, after a change of the channel's role in zones.
    pub(super) fn reset_for_zone(&mut self) {
        self.reset(Change::Snap);
        self.timbre.snap(ChannelValues::REST.timbre);
        self.held.clear();
    }
}

/// Transition of a wheel to a new position.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// At once, because nothing sounds: a wheel set just before a note must not move during it.
    Snap,
    /// Smoothed from this time on.
    From(u64),
}

impl Change {
    pub(super) fn apply(self, smooth: &mut Smooth, target: f64) {
        match self {
            Self::Snap => smooth.snap(target),
            Self::From(t) => smooth.set(t, target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_move_smoothly_and_reset() {
        let mut channel = Channel::new(48_000.0);
        channel.bend(Change::From(1_000), 2.0);
        channel.controller(Change::From(1_000), controller::EXPRESSION, 0.5);
        channel.controller(Change::From(1_000), controller::VOLUME, 0.5);
        assert_eq!(channel.values(1_000), ChannelValues::REST);
        let mut last = 0.0;
        for t in (1_192..6_000).step_by(192) {
            let bend = channel.values(t).bend;
            assert!(bend > last && bend < 2.0);
            last = bend;
        }
        // Within a cent after 60 ms.
        assert!((channel.values(1_000 + 2_880).bend - 2.0).abs() < 0.02);
        channel.controller(Change::Snap, controller::TIMBRE, 0.25);
        channel.reset(Change::Snap);
        let rest = channel.values(60_000);
        assert_eq!((rest.bend, rest.expression, rest.timbre), (0.0, 1.0, -0.5));
        assert!((rest.volume - 0.5).abs() < 1e-6);
        channel.reset_for_zone();
        assert_eq!(channel.values(60_000).timbre, 0.0);
        assert!((channel.values(60_000).volume - 0.5).abs() < 1e-6);
    }
}
