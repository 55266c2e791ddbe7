//! The knobs of a model: those that it lists, those that every instrument may have, and those of a codec's latents.

use super::codec;
use super::cue::ControlId;
use super::prior;
use crate::instrument::Performance;
use crate::model::{Control, Curve, Header, Kind};

/// A knob that every instrument has, whatever its network: it changes how notes are played or how the sound is put together.
pub struct InstrumentControl {
    /// Its name in the list of a model's controls.
    pub name: &'static str,
    unit: &'static str,
    range: (f32, f32),
    curve: Curve,
    description: &'static str,
    pub(super) target: Target,
}

/// What such a knob changes.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// How much of the room is heard.
    Room,
    /// By how much the network plays louder than it is heard.
    Brightness,
    /// A field of [`Performance`].
    Performance(fn(&mut Performance) -> &mut f32),
}

/// Knobs that are no input port of a network.
pub const INSTRUMENT_CONTROLS: &[InstrumentControl] = &[
    InstrumentControl {
        name: "room",
        unit: "",
        range: (0.0, 4.0),
        curve: Curve::Linear,
        description: "How much of the learnt room is heard; 1 is as learnt.",
        target: Target::Room,
    },
    InstrumentControl {
        name: "brightness",
        unit: "dB",
        range: (-24.0, 24.0),
        curve: Curve::Linear,
        description: "Plays with the timbre of notes that much louder, at the same level.",
        target: Target::Brightness,
    },
    InstrumentControl {
        name: "attack",
        unit: "ms",
        range: (0.5, 5_000.0),
        curve: Curve::Logarithmic,
        description: "Time from the onset of a note to its peak.",
        target: Target::Performance(|performance| &mut performance.attack_ms),
    },
    InstrumentControl {
        name: "release",
        unit: "ms",
        range: (5.0, 20_000.0),
        curve: Curve::Logarithmic,
        description: "Time in which a note falls by 60 dB when its key is up.",
        target: Target::Performance(|performance| &mut performance.release_ms),
    },
    InstrumentControl {
        name: "vibrato_rate",
        unit: "Hz",
        range: (0.1, 15.0),
        curve: Curve::Logarithmic,
        description: "Rate of vibrato.",
        target: Target::Performance(|performance| &mut performance.vibrato_hz),
    },
    InstrumentControl {
        name: "vibrato_depth",
        unit: "cents",
        range: (0.0, 200.0),
        curve: Curve::Linear,
        description: "Depth of the vibrato that comes by itself on a long note, either way.",
        target: Target::Performance(|performance| &mut performance.vibrato_cents),
    },
];

impl InstrumentControl {
    /// The control as a model lists it: its default is how the instrument is played when nobody turns the knob.
    #[must_use]
    pub fn control(&self, performance: &Performance) -> Control {
        let default = match self.target {
            Target::Room => 1.0,
            Target::Brightness => 0.0,
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

/// The controls of a model as it is played: those that it lists and, for a codec or a generator, those of its latents
/// ([`latent_controls`]) and of its prior.
///
/// [`latent_controls`]: super::latent_controls
#[must_use]
pub fn controls(header: &Header) -> Vec<Control> {
    let mut controls = header.controls.clone();
    if matches!(header.kind, Kind::Codec | Kind::Generator) {
        let listed = |control: &Control| header.controls.iter().any(|listed| listed.name == control.name);
        let own = codec::latent_controls(codec::latents(header)).chain(prior::controls(header));
        controls.extend(own.filter(|control| !listed(control)));
    }
    controls
}

/// A control of a model and what it changes.
pub(super) struct Knob {
    pub id: ControlId,
    pub control: Control,
    /// The port that it feeds, one of those named to [`Knob::all`].
    pub port: Option<usize>,
    pub target: Option<Target>,
}

impl Knob {
    /// For the controls of a model; `ports` are the names of those that controls feed.
    pub fn all(controls: &[Control], ports: &[String]) -> Vec<Self> {
        let knobs = controls.iter().map(|control| Self {
            id: ControlId::of(&control.name),
            control: control.clone(),
            port: ports.iter().position(|port| *port == control.name),
            target: INSTRUMENT_CONTROLS.iter().find(|known| known.name == control.name).map(|known| known.target),
        });
        knobs.collect()
    }
}

/// A value on its way to where a knob points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smoothed {
    value: f32,
    target: f32,
}

/// Part of the way to the target that is left after 4 ms: the rest of a turn is gone within 50 ms.
const LEFT: f64 = 0.75;
const LEFT_AFTER_S: f64 = 0.004;
/// Where what is left is no longer worth a step.
const ARRIVED: f32 = 1e-4;

/// Part of the way to the target that is left after so many seconds.
pub(super) fn left_after(seconds: f64) -> f32 {
    LEFT.powf(seconds / LEFT_AFTER_S) as f32
}

impl Smoothed {
    pub fn new(value: f32) -> Self {
        Self { value, target: value }
    }

    /// Points elsewhere; `at_once` skips the way there.
    pub fn set(&mut self, target: f32, at_once: bool) {
        self.target = target;
        if at_once {
            self.value = target;
        }
    }

    pub fn value(self) -> f32 {
        self.value
    }

    /// Goes on until that part of the way is left.
    pub fn step(&mut self, part: f32) -> f32 {
        let left = self.value - self.target;
        self.value = if left.abs() < ARRIVED { self.target } else { self.target + part * left };
        self.value
    }
}
