//! The controls that every instrument has besides those that its model lists: how it is played, whatever it sounds like.

use super::cue::ControlId;
use crate::instrument::{PlayMode, Setting};

/// Shift of all pitches in semitones, which glides within 50 ms.
pub const TRANSPOSE: ControlId = ControlId::of("transpose");
/// How notes that overlap are played: 0 as the model says, 1 poly, 2 mono, 3 legato ([`PlayMode`]). Notes that are held when
/// voices come to be shared are let go, but one on each channel.
pub const PLAY_MODE: ControlId = ControlId::of("play_mode");
/// Time of the slide between notes that share a voice, in ms, for slides to come; negative is as the model says.
pub const GLIDE: ControlId = ControlId::of("glide");
/// The most notes at once; 0 is as many as there is room for, and more than that are not to be had. Where more sound, those
/// that will be missed least are faded out.
pub const VOICES: ControlId = ControlId::of("voices");

/// A control that every instrument has. A model's own control of that name is turned by it too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayingControl {
    /// Which.
    pub id: ControlId,
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty where it has none.
    pub unit: &'static str,
    /// The smallest value; what is below counts as it.
    pub min: f32,
    /// The largest value; what is above counts as it.
    pub max: f32,
    /// The value at the start.
    pub default: f32,
    /// Values are rounded to whole numbers.
    pub whole: bool,
    /// One line for who turns it.
    pub description: &'static str,
}

/// All of them.
pub const PLAYING_CONTROLS: [PlayingControl; 4] = [
    PlayingControl {
        id: TRANSPOSE,
        name: "transpose",
        unit: "semitones",
        min: -48.0,
        max: 48.0,
        default: 0.0,
        whole: false,
        description: "Shifts all pitches.",
    },
    PlayingControl {
        id: PLAY_MODE,
        name: "play_mode",
        unit: "",
        min: 0.0,
        max: 3.0,
        default: 0.0,
        whole: true,
        description: "How notes that overlap are played: 0 as the model says, 1 poly, 2 mono, 3 legato.",
    },
    PlayingControl {
        id: GLIDE,
        name: "glide",
        unit: "ms",
        min: -1.0,
        max: 5_000.0,
        default: -1.0,
        whole: false,
        description: "Time of the slide between notes in mono and legato; below 0 as the model says.",
    },
    PlayingControl {
        id: VOICES,
        name: "voices",
        unit: "",
        min: 0.0,
        max: 64.0,
        default: 0.0,
        whole: true,
        description: "The most notes at once; 0 is as many as there is room for.",
    },
];

impl PlayingControl {
    /// The control of that name.
    #[must_use]
    pub fn of(id: ControlId) -> Option<&'static Self> {
        PLAYING_CONTROLS.iter().find(|control| control.id == id)
    }

    /// The value that counts when the control is turned there; none where that is no finite number, and nothing is turned.
    #[must_use]
    pub fn held(&self, value: f32) -> Option<f32> {
        let held = if self.whole { value.round() } else { value }.clamp(self.min, self.max);
        value.is_finite().then_some(held)
    }
}

/// What the voices are set to when a control is turned; none where it is not about them.
pub(super) fn setting(id: ControlId, value: f32) -> Option<Setting> {
    let value = PlayingControl::of(id)?.held(value)?;
    match id {
        PLAY_MODE => {
            let modes = [None, Some(PlayMode::Poly), Some(PlayMode::Mono), Some(PlayMode::Legato)];
            Some(Setting::Mode(modes[value as usize]))
        }
        GLIDE => Some(Setting::GlideMs((value >= 0.0).then_some(value))),
        VOICES => Some(Setting::Voices((value >= 1.0).then_some(value as usize))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_what_their_names_say_and_rest_within_their_ranges() {
        for control in &PLAYING_CONTROLS {
            assert_eq!(control.id, ControlId::of(control.name));
            assert_eq!(PlayingControl::of(control.id), Some(control));
            assert_eq!(control.held(control.default), Some(control.default));
            assert_eq!((control.held(-1e9), control.held(1e9)), (Some(control.min), Some(control.max)));
            assert_eq!((control.held(f32::NAN), control.held(f32::INFINITY)), (None, None));
        }
        assert_eq!(PlayingControl::of(ControlId::of("room")), None);
    }

    #[test]
    fn values_become_settings() {
        for (value, mode) in [
            (-3.0, None),
            (0.4, None),
            (0.6, Some(PlayMode::Poly)),
            (2.2, Some(PlayMode::Mono)),
            (3.0, Some(PlayMode::Legato)),
            (99.0, Some(PlayMode::Legato)),
        ] {
            assert_eq!(setting(PLAY_MODE, value), Some(Setting::Mode(mode)), "{value}");
        }
        assert_eq!(setting(GLIDE, -0.5), Some(Setting::GlideMs(None)));
        assert_eq!(setting(GLIDE, 0.0), Some(Setting::GlideMs(Some(0.0))));
        assert_eq!(setting(GLIDE, 9e9), Some(Setting::GlideMs(Some(5_000.0))));
        assert_eq!(setting(VOICES, 0.4), Some(Setting::Voices(None)));
        assert_eq!(setting(VOICES, 2.6), Some(Setting::Voices(Some(3))));
        assert_eq!(setting(VOICES, 1e3), Some(Setting::Voices(Some(64))));
        for id in [PLAY_MODE, GLIDE, VOICES] {
            assert_eq!(setting(id, f32::NAN), None);
        }
        assert_eq!(setting(TRANSPOSE, 1.0), None);
    }
}
