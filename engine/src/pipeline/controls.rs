//! Controls of a model as it is played: its own, those of codec latents and priors, and those that
//! every instrument has.

use super::method_ports::{follows_bars, has_prior, latent_count};
use super::playable::ControlId;
use super::prior_loop::MAX_BARS;
use crate::instrument::{Performance, PlayMode, Setting};
use crate::model::{Control, Curve, Header, Kind};

/// Port, and control, of the tempo in beats a minute. The host's tempo replaces the control's.
pub(super) const TEMPO: &str = "tempo";

/// Returns the controls of a model as it is played: those in its header and, for a codec or a
/// generator, those of its latents ([`latent_controls`]) and of its prior.
#[must_use]
pub fn controls(header: &Header) -> Vec<Control> {
    let mut controls = header.controls.clone();
    if matches!(header.kind, Kind::Codec | Kind::Generator) {
        let is_listed = |control: &Control| {
            header
                .controls
                .iter()
                .any(|listed| listed.name == control.name)
        };
        let mut added = [
            latent_controls(latent_count(header)).collect(),
            prior_controls(header),
        ];
        if header.kind == Kind::Generator {
            // Macros are bound in this order, and a generator is steered by its prior before its
            // latents.
            added.reverse();
        }
        controls.extend(
            added
                .into_iter()
                .flatten()
                .filter(|control| !is_listed(control)),
        );
    }
    controls
}

/// Control of the difference of an instrument's channels.
pub(super) const WIDTH: &str = "width";

/// Control of an instrument that is not an input port of its network: it changes how notes are
/// played or how the output is mixed. A model lists those it offers.
pub struct InstrumentControl {
    /// Name in the model's list of controls.
    pub name: &'static str,
    unit: &'static str,
    range: (f32, f32),
    curve: Curve,
    description: &'static str,
    pub(super) target: Target,
}

/// Parameter that an [`InstrumentControl`] sets.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// Level of the reverberation; 1 is the trained level.
    Room,
    /// Loudness in dB that is added for the network and removed from its output.
    Brightness,
    /// [`Performance::width`].
    Width,
    /// Field of [`Performance`].
    Performance(fn(&mut Performance) -> &mut f32),
}

/// All controls that models may list without an input port of that name.
pub const INSTRUMENT_CONTROLS: &[InstrumentControl] = &[
    InstrumentControl {
        name: "room",
        unit: "",
        range: (0.0, 4.0),
        curve: Curve::Linear,
        description: "Level of the learnt room; 1 is as recorded.",
        target: Target::Room,
    },
    InstrumentControl {
        name: "brightness",
        unit: "dB",
        range: (-24.0, 24.0),
        curve: Curve::Linear,
        description: "Timbre of louder or softer notes, at the same level.",
        target: Target::Brightness,
    },
    InstrumentControl {
        name: "attack",
        unit: "ms",
        range: (0.5, 5_000.0),
        curve: Curve::Logarithmic,
        description: "Time from the onset of a note until it is 1 dB below its peak.",
        target: Target::Performance(|performance| &mut performance.attack_ms),
    },
    InstrumentControl {
        name: "release",
        unit: "ms",
        range: (5.0, 20_000.0),
        curve: Curve::Logarithmic,
        description: "Time in which a released note falls by 60 dB.",
        target: Target::Performance(|performance| &mut performance.release_ms),
    },
    InstrumentControl {
        name: "vibrato_rate",
        unit: "Hz",
        range: (0.1, 15.0),
        curve: Curve::Logarithmic,
        description: "Rate of the vibrato.",
        target: Target::Performance(|performance| &mut performance.vibrato_hz),
    },
    InstrumentControl {
        name: "vibrato_depth",
        unit: "cents",
        range: (0.0, 200.0),
        curve: Curve::Linear,
        description: "Depth of the automatic vibrato on long notes, up and down.",
        target: Target::Performance(|performance| &mut performance.vibrato_cents),
    },
    InstrumentControl {
        name: "life",
        unit: "",
        range: (0.0, 2.0),
        curve: Curve::Linear,
        description: "Slow drift of level, pitch and vibrato; 0 is still.",
        target: Target::Performance(|performance| &mut performance.life),
    },
    InstrumentControl {
        name: WIDTH,
        unit: "",
        range: (0.0, 1.0),
        curve: Curve::Linear,
        description: "Difference of the two channels; 0 is mono.",
        target: Target::Width,
    },
];

impl InstrumentControl {
    /// Returns the control as a model lists it, with the default taken from the performance
    /// settings.
    #[must_use]
    pub fn control(&self, performance: &Performance) -> Control {
        let default = match self.target {
            Target::Room => 1.0,
            Target::Brightness => 0.0,
            Target::Width => performance.width,
            Target::Performance(field) => *field(&mut { *performance }),
        };
        Control {
            name: self.name.into(),
            unit: self.unit.into(),
            min: self.range.0,
            max: self.range.1,
            default: default.clamp(self.range.0, self.range.1),
            curve: self.curve,
            description: self.description.into(),
        }
    }
}

/// Range of a latent's scale, a factor.
const LATENT_SCALE: (f32, f32) = (-4.0, 4.0);
/// Range of a latent's offset.
const LATENT_OFFSET: (f32, f32) = (-4.0, 4.0);

/// Returns the controls of `latents` latents, numbered from 1: for each `latentN.scale`,
/// `latentN.offset` and `latentN.hold`.
pub fn latent_controls(latents: usize) -> impl Iterator<Item = Control> {
    (1..=latents).flat_map(|number| {
        let control = |name: &str, range, default, description: String| {
            Control::linear(
                format!("latent{number}.{name}"),
                "",
                range,
                default,
                description,
            )
        };
        [
            control(
                "scale",
                LATENT_SCALE,
                1.0,
                format!("Factor of latent {number}."),
            ),
            control(
                "offset",
                LATENT_OFFSET,
                0.0,
                format!("Added to latent {number} after scaling."),
            ),
            control(
                "hold",
                (0.0, 1.0),
                0.0,
                format!("Freezes latent {number}; at 1 it keeps its value."),
            ),
        ]
    })
}

/// Name of the control that mixes a codec's own latents with those of its prior.
pub(super) const PRIOR_SHARE: &str = "prior";
/// Name of the control for a prior's tempo.
pub(super) const PRIOR_TEMPO: &str = "prior.tempo";
/// Name of the control that stops a prior, whose last latents go on.
pub(super) const PRIOR_FREEZE: &str = "prior.freeze";
/// Names of the controls that repeat the last bars of a prior, and vary them.
pub(super) const PRIOR_LOOP: &str = "prior.loop";
pub(super) const PRIOR_VARIATION: &str = "prior.variation";
/// Name of the control that lets a prior sound only while a key is held.
pub(super) const PRIOR_GATE: &str = "prior.gate";
/// Name of the control with which a prior listens to the input.
pub(super) const LISTEN: &str = "listen";
/// Name of the control that chooses another seed for a prior.
pub(super) const PRIOR_SEED: &str = "prior.seed";
/// Largest of these seeds.
pub(super) const MAX_PRIOR_SEED: f32 = 999.0;
/// Slowest tempo of a prior, in prior frames per decoder frame.
pub(super) const MIN_PRIOR_TEMPO: f32 = 0.25;
/// Fastest tempo of a prior, in prior frames per decoder frame.
pub(super) const MAX_PRIOR_TEMPO: f32 = 4.0;

/// Range of the tempo of a prior that follows bars, and its default, beats a minute.
const TEMPO_RANGE: (f32, f32) = (40.0, 240.0);
const DEFAULT_TEMPO: f32 = 120.0;

/// Returns the controls of a model's prior; none without one. The share exists only where an
/// encoder plays too, what counts bars only for a prior that follows them.
pub(super) fn prior_controls(header: &Header) -> Vec<Control> {
    if !has_prior(header) {
        return Vec::new();
    }
    let mut controls = Vec::new();
    if header.kind == Kind::Codec {
        let share = "Source of the latents: 0 is the input, 1 the model's own prior.";
        controls.push(Control::linear(PRIOR_SHARE, "", (0.0, 1.0), 0.0, share));
    }
    if follows_bars(header) {
        let tempo = "Tempo of the bars; the tempo of the host's song replaces it.";
        controls.push(Control::linear(
            TEMPO,
            "BPM",
            TEMPO_RANGE,
            DEFAULT_TEMPO,
            tempo,
        ));
        let bars = "Number of bars that are repeated, the last ones; 0 is no loop.";
        controls.push(
            Control::linear(PRIOR_LOOP, "bars", (0.0, MAX_BARS as f32), 0.0, bars).in_steps(),
        );
        let variation = "Share of the loop's beats that are made anew: 0 is none, 1 all.";
        controls.push(Control::linear(
            PRIOR_VARIATION,
            "",
            (0.0, 1.0),
            0.0,
            variation,
        ));
    }
    let speed = "Speed of the model's own prior; the pitch of the sound stays.";
    let speed = Control::linear(
        PRIOR_TEMPO,
        "x",
        (MIN_PRIOR_TEMPO, MAX_PRIOR_TEMPO),
        1.0,
        speed,
    );
    controls.push(Control {
        curve: Curve::Logarithmic,
        ..speed
    });
    let seed = "Each number begins a piece of its own, the same one each time.";
    controls.push(Control::linear(PRIOR_SEED, "", (0.0, MAX_PRIOR_SEED), 0.0, seed).in_steps());
    let freeze = "At 1 the sound of this moment is held.";
    controls.push(Control::linear(PRIOR_FREEZE, "", (0.0, 1.0), 0.0, freeze).in_steps());
    let gate = "At 1 the model sounds only while a key is held.";
    controls.push(Control::linear(PRIOR_GATE, "", (0.0, 1.0), 0.0, gate).in_steps());
    controls
}

/// Shift of all pitches in semitones; glides within 50 ms.
pub const TRANSPOSE: ControlId = ControlId::new("transpose");
/// Mode for overlapping notes: 0 is the model's own, 1 poly, 2 mono, 3 legato ([`PlayMode`]). A
/// change to mono or legato releases all held notes but one per channel.
pub const PLAY_MODE: ControlId = ControlId::new("play_mode");
/// Glide time between notes that share a voice, in ms, for future glides; negative is the model's
/// own.
pub const GLIDE: ControlId = ControlId::new("glide");
/// Maximum number of simultaneous notes; 0 is the number of prepared voices, which is also the
/// upper limit. When it falls, the least audible notes fade out.
pub const VOICES: ControlId = ControlId::new("voices");

/// Control that every instrument has. It also sets a model's own control of the same name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerformanceControl {
    /// Id of the control.
    pub id: ControlId,
    /// Name of the control.
    pub name: &'static str,
    /// Unit; empty for plain numbers.
    pub unit: &'static str,
    /// Smallest value; lower ones are clamped.
    pub min: f32,
    /// Largest value; higher ones are clamped.
    pub max: f32,
    /// Value at the start.
    pub default: f32,
    /// Rounds values to integers.
    pub is_integer: bool,
    /// One line for a tooltip.
    pub description: &'static str,
}

/// Controls that every instrument has besides those its model lists.
pub const PERFORMANCE_CONTROLS: [PerformanceControl; 4] = [
    PerformanceControl {
        id: TRANSPOSE,
        name: "transpose",
        unit: "semitones",
        min: -48.0,
        max: 48.0,
        default: 0.0,
        is_integer: false,
        description: "Shifts all pitches.",
    },
    PerformanceControl {
        id: PLAY_MODE,
        name: "play_mode",
        unit: "",
        min: 0.0,
        max: 3.0,
        default: 0.0,
        is_integer: true,
        description: "Mode for overlapping notes: 0 is the model's own, 1 poly, 2 mono, 3 legato.",
    },
    PerformanceControl {
        id: GLIDE,
        name: "glide",
        unit: "ms",
        min: -1.0,
        max: 5_000.0,
        default: -1.0,
        is_integer: false,
        description: "Glide time between notes in mono and legato; below 0 is the model's own.",
    },
    PerformanceControl {
        id: VOICES,
        name: "voices",
        unit: "",
        min: 0.0,
        max: 64.0,
        default: 0.0,
        is_integer: true,
        description: "Maximum number of simultaneous notes; 0 is as many as possible.",
    },
];

impl PerformanceControl {
    /// Returns the control with that id.
    #[must_use]
    pub fn find(id: ControlId) -> Option<&'static Self> {
        PERFORMANCE_CONTROLS.iter().find(|control| control.id == id)
    }

    /// Returns the value clamped to the range, and rounded for integer controls; `None` for a value
    /// that is not finite.
    #[must_use]
    pub fn sanitize(&self, value: f32) -> Option<f32> {
        let sanitized = if self.is_integer {
            value.round()
        } else {
            value
        }
        .clamp(self.min, self.max);
        value.is_finite().then_some(sanitized)
    }
}

/// Returns the setting of the voices that a control change stands for; `None` for other controls
/// and invalid values.
pub(super) fn voice_setting(id: ControlId, value: f32) -> Option<Setting> {
    let value = PerformanceControl::find(id)?.sanitize(value)?;
    match id {
        PLAY_MODE => {
            let modes = [
                None,
                Some(PlayMode::Poly),
                Some(PlayMode::Mono),
                Some(PlayMode::Legato),
            ];
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
    fn ids_match_names_and_values_are_clamped() {
        for control in &PERFORMANCE_CONTROLS {
            assert_eq!(control.id, ControlId::new(control.name));
            assert_eq!(PerformanceControl::find(control.id), Some(control));
            assert_eq!(control.sanitize(control.default), Some(control.default));
            assert_eq!(
                (control.sanitize(-1e9), control.sanitize(1e9)),
                (Some(control.min), Some(control.max))
            );
            assert_eq!(
                (control.sanitize(f32::NAN), control.sanitize(f32::INFINITY)),
                (None, None)
            );
        }
        assert_eq!(PerformanceControl::find(ControlId::new("room")), None);
    }

    #[test]
    fn control_values_map_to_voice_settings() {
        for (value, mode) in [
            (-3.0, None),
            (0.4, None),
            (0.6, Some(PlayMode::Poly)),
            (2.2, Some(PlayMode::Mono)),
            (3.0, Some(PlayMode::Legato)),
            (99.0, Some(PlayMode::Legato)),
        ] {
            assert_eq!(
                voice_setting(PLAY_MODE, value),
                Some(Setting::Mode(mode)),
                "{value}"
            );
        }
        assert_eq!(voice_setting(GLIDE, -0.5), Some(Setting::GlideMs(None)));
        assert_eq!(voice_setting(GLIDE, 0.0), Some(Setting::GlideMs(Some(0.0))));
        assert_eq!(
            voice_setting(GLIDE, 9e9),
            Some(Setting::GlideMs(Some(5_000.0)))
        );
        assert_eq!(voice_setting(VOICES, 0.4), Some(Setting::Voices(None)));
        assert_eq!(voice_setting(VOICES, 2.6), Some(Setting::Voices(Some(3))));
        assert_eq!(voice_setting(VOICES, 1e3), Some(Setting::Voices(Some(64))));
        for id in [PLAY_MODE, GLIDE, VOICES] {
            assert_eq!(voice_setting(id, f32::NAN), None);
        }
        assert_eq!(voice_setting(TRANSPOSE, 1.0), None);
    }
}
