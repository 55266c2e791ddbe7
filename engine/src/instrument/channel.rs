//! Wheels, pedals and faders of a MIDI channel.

use super::curve::Smooth;
use super::event::{TIMBRE_REST, controller};

/// Time constant of the smoothing, s: short enough to follow a hand, long enough to hide the steps of MIDI.
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
    pub const REST: Self = Self { bend: 0.0, wheel: 0.0, pressure: 0.0, expression: 1.0, volume: 1.0, timbre: 0.0 };

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
    /// True while the sustain pedal is down.
    pub(super) pedal: bool,
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
            pedal: false,
            held: HeldKeys::default(),
        }
    }

    pub(super) fn values(&self, t: u64) -> ChannelValues {
        ChannelValues {
            bend: self.bend.at(t),
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

    pub(super) fn pressure(&mut self, change: Change, value: f64) {
        change.apply(&mut self.pressure, value);
    }

    /// Applies a controller of a wheel or fader; ignores others.
    pub(super) fn controller(&mut self, change: Change, number: u8, value: f64) {
        match number {
            controller::MOD_WHEEL => change.apply(&mut self.wheel, value),
            controller::BREATH => change.apply(&mut self.breath, value),
            controller::EXPRESSION => change.apply(&mut self.expression, value),
            controller::VOLUME => change.apply(&mut self.volume, value),
            controller::TIMBRE => change.apply(&mut self.timbre, timbre_deviation(value)),
            _ => {}
        }
    }

    /// Resets wheels; volume and timbre stay, as in MIDI's recommended practice RP-015.
    pub(super) fn reset(&mut self, change: Change) {
        let rest = ChannelValues::REST;
        change.apply(&mut self.bend, rest.bend);
        change.apply(&mut self.wheel, rest.wheel);
        change.apply(&mut self.pressure, rest.pressure);
        change.apply(&mut self.expression, rest.expression);
        change.apply(&mut self.breath, rest.expression);
    }

    /// Resets everything except the volume at once, after a change of the channel's role in zones.
    pub(super) fn reset_for_zone(&mut self) {
        self.reset(Change::Snap);
        self.timbre.snap(ChannelValues::REST.timbre);
        self.pedal = false;
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

/// Held key with its velocity, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HeldKey {
    pub(super) key: u8,
    pub(super) velocity: f32,
}

/// Held keys, in the order in which they were pressed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldKeys {
    keys: [HeldKey; Self::MAX],
    len: usize,
}

impl HeldKeys {
    /// More than a player has fingers.
    const MAX: usize = 16;

    pub(super) fn press(&mut self, key: u8, velocity: f32) {
        self.lift(key);
        if self.len == Self::MAX {
            self.keys.copy_within(1.., 0);
            self.len -= 1;
        }
        self.keys[self.len] = HeldKey { key, velocity };
        self.len += 1;
    }

    pub(super) fn lift(&mut self, key: u8) {
        if let Some(i) = self.keys[..self.len].iter().position(|held| held.key == key) {
            self.keys.copy_within(i + 1..self.len, i);
            self.len -= 1;
        }
    }

    /// Returns the held key that was pressed last.
    pub(super) fn last(&self) -> Option<HeldKey> {
        self.keys[..self.len].last().copied()
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_keys_come_back_in_order() {
        let mut held = HeldKeys::default();
        for (key, velocity) in [(60, 0.1), (64, 0.2), (67, 0.3), (64, 0.4)] {
            held.press(key, velocity);
        }
        assert_eq!(held.last(), Some(HeldKey { key: 64, velocity: 0.4 }));
        held.lift(64);
        assert_eq!(held.last(), Some(HeldKey { key: 67, velocity: 0.3 }));
        held.lift(60);
        held.lift(67);
        held.lift(67);
        assert_eq!(held.last(), None);
        for key in 0..100 {
            held.press(key, 0.5);
        }
        assert_eq!(held.last().map(|held| held.key), Some(99));
    }

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
