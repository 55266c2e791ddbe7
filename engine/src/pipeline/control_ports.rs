//! Values of the network inputs that controls and the host's transport feed, smoothed per hop.

use std::sync::Arc;

use super::controls::{INSTRUMENT_CONTROLS, TEMPO, Target};
use super::playable::{ControlId, Transport};
use crate::model::bars::{BAR_BEATS, BARS};
use crate::model::{Control, Curve};

/// Control of a model and the port or parameter that it sets.
pub(super) struct ControlBinding {
    pub id: ControlId,
    pub control: Control,
    /// Index into the port names given to [`ControlBinding::all`].
    pub port: Option<usize>,
    pub target: Option<Target>,
}

impl ControlBinding {
    /// Binds the controls of a model to the ports with these names.
    pub fn all(controls: &[Control], ports: &[String]) -> Arc<[Self]> {
        let bindings = controls.iter().map(|control| Self {
            id: ControlId::new(&control.name),
            control: control.clone(),
            port: ports.iter().position(|port| *port == control.name),
            target: INSTRUMENT_CONTROLS
                .iter()
                .find(|known| known.name == control.name)
                .map(|known| known.target),
        });
        bindings.collect()
    }
}

/// Port of the beats since the start of the host's song.
const POSITION: &str = "position";
/// Bars after which [`BARS`] begins again.
const PHRASE_BARS: f64 = 4.0;
/// Tempo of a model with a port [`BARS`] and no control [`TEMPO`].
const USUAL_TEMPO: f32 = 120.0;

/// Returns the position in a phrase of four bars of four beats, 0 to 4 bars, after some beats.
#[must_use]
pub fn bars_after(beats: f64) -> f32 {
    (beats / BAR_BEATS).rem_euclid(PHRASE_BARS) as f32
}

/// Returns true if a control that is a switch, from 0 to 1, is on.
pub(super) fn is_on(value: f32) -> bool {
    value >= 0.5
}

/// Value that approaches its target exponentially.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smoothed {
    value: f32,
    target: f32,
}

/// Distance to the target that remains after [`REMAINING_AFTER_S`], as a factor; it is inaudible
/// after 50 ms.
const REMAINING: f64 = 0.75;
const REMAINING_AFTER_S: f64 = 0.004;
/// Distance at which the value jumps to its target.
const ARRIVED: f32 = 1e-4;

/// Returns the factor by which the distance to the target shrinks in `seconds`.
pub(super) fn remaining_after(seconds: f64) -> f32 {
    REMAINING.powf(seconds / REMAINING_AFTER_S) as f32
}

impl Smoothed {
    pub fn new(value: f32) -> Self {
        Self {
            value,
            target: value,
        }
    }

    /// Sets the target; `at_once` also sets the value.
    pub fn set(&mut self, target: f32, at_once: bool) {
        self.target = target;
        if at_once {
            self.value = target;
        }
    }

    pub fn value(self) -> f32 {
        self.value
    }

    /// Shrinks the distance to the target by the factor `remaining` and returns the new value.
    pub fn step(&mut self, remaining: f32) -> f32 {
        let distance = self.value - self.target;
        self.value = if distance.abs() < ARRIVED {
            self.target
        } else {
            self.target + remaining * distance
        };
        self.value
    }
}

/// Values of one session's control ports.
pub(super) struct ControlPorts {
    bindings: Arc<[ControlBinding]>,
    values: Vec<Smoothed>,
    /// `[hop][port]`: values at the start and at the end of each hop of the step.
    spans: Vec<(f32, f32)>,
    /// Hop of the step that was prepared last.
    hop: usize,
    /// Factor by which the distance to a target shrinks per hop.
    remaining: f32,
    hop_s: f64,
    /// Last transport and its time in samples at the model's rate.
    transport: Option<(u64, Transport)>,
    tempo_port: Option<usize>,
    position_port: Option<usize>,
    bars_port: Option<usize>,
    /// Beats at the start of the last hop, of the host's song or counted, and those at the start of
    /// the next if the song does not tell.
    beats: f64,
    next_beats: f64,
}

impl ControlPorts {
    /// `names` are those of the ports, in the order of [`ControlBinding::port`]; a hop lasts
    /// `hop_s` seconds, and up to `hops` are processed in one step.
    pub fn new(
        bindings: &Arc<[ControlBinding]>,
        names: &[String],
        hop_s: f64,
        hops: usize,
    ) -> Self {
        let port = |wanted: &str| names.iter().position(|name| name == wanted);
        Self {
            bindings: bindings.clone(),
            values: vec![Smoothed::new(0.0); names.len()],
            spans: vec![(0.0, 0.0); hops * names.len()],
            hop: 0,
            remaining: remaining_after(hop_s),
            hop_s,
            transport: None,
            tempo_port: port(TEMPO),
            position_port: port(POSITION),
            bars_port: port(BARS),
            beats: 0.0,
            next_beats: 0.0,
        }
    }

    /// Returns all controls of the model.
    pub fn bindings(&self) -> &[ControlBinding] {
        &self.bindings
    }

    /// Resets all controls to their defaults and forgets the transport.
    pub fn reset(&mut self) {
        self.transport = None;
        (self.beats, self.next_beats) = (0.0, 0.0);
        self.hop = 0;
        for ControlBinding { control, port, .. } in &*self.bindings {
            if let Some(port) = *port {
                self.values[port].set(control.default, true);
                self.spans[port] = (control.default, control.default);
            }
        }
    }

    /// Makes bars begin with the next hop, unless they follow a song.
    pub fn restart_bars(&mut self) {
        self.next_beats = 0.0;
    }

    /// Sets the target of a control, clamped to its range; `at_once` skips the smoothing, which
    /// steps never have. Returns the control's index and the clamped value, or `None` for an
    /// unknown control.
    pub fn set(&mut self, id: ControlId, value: f32, at_once: bool) -> Option<(usize, f32)> {
        let index = self.bindings.iter().position(|binding| binding.id == id)?;
        let ControlBinding { control, port, .. } = &self.bindings[index];
        let value = control.clamp(value);
        let at_once = at_once || control.curve == Curve::Steps;
        if let Some(port) = *port {
            self.values[port].set(value, at_once);
            if at_once {
                let span = self.hop * self.values.len() + port;
                self.spans[span].1 = value;
            }
        }
        Some((index, value))
    }

    /// Sets the transport at time `at`, in samples at the model's rate.
    pub fn set_transport(&mut self, at: u64, transport: Transport) {
        let is_finite = transport.tempo.is_finite() && transport.position.is_finite();
        self.transport = is_finite.then_some((at, transport));
        if let Some(port) = self.tempo_port.filter(|_| is_finite) {
            let tempo = self.clamp(port, transport.tempo);
            self.values[port].set(tempo, true);
        }
    }

    /// Advances to the end of the hop at time `at`, which is number `hop` of the step; `seconds`
    /// converts samples at the model's rate. Returns true if a value has changed.
    pub fn step(&mut self, hop: usize, at: u64, seconds: impl Fn(u64) -> f64) -> bool {
        let position = self.transport.map(|(since, transport)| {
            let elapsed = seconds(at.saturating_sub(since));
            let beats = if transport.playing {
                elapsed * f64::from(transport.tempo) / 60.0
            } else {
                0.0
            };
            transport.position + beats
        });
        self.beats = match position {
            Some(position)
                if self
                    .transport
                    .is_some_and(|(_, transport)| transport.playing) =>
            {
                position
            }
            _ => self.next_beats,
        };
        self.next_beats = self.beats + self.hop_s * f64::from(self.tempo()) / 60.0;
        let position = self
            .position_port
            .zip(position)
            .map(|(port, beats)| (port, self.clamp(port, beats as f32)));
        let bars = self.bars_port.map(|port| (port, bars_after(self.beats)));
        let mut changed = false;
        let ports = self.values.len();
        for (port, value) in self.values.iter_mut().enumerate() {
            let before = self.spans[self.hop * ports + port].1;
            let step = value.step(self.remaining);
            let span = match [position, bars]
                .into_iter()
                .flatten()
                .find(|(fed, _)| *fed == port)
            {
                // The position may jump; there are no values in between.
                Some((_, value)) => (value, value),
                None => (before, step),
            };
            changed |= span.1.to_bits() != before.to_bits();
            self.spans[hop * ports + port] = span;
        }
        self.hop = hop;
        changed
    }

    /// Returns the tempo at which bars advance, beats a minute.
    pub fn tempo(&self) -> f32 {
        self.tempo_port
            .map_or(USUAL_TEMPO, |port| self.values[port].target)
    }

    /// Returns the beat of the host's song, or of the counted bars, at the start of the last hop.
    pub fn beat(&self) -> i64 {
        self.beats.floor() as i64
    }

    /// Returns the value of a port at the end of the last hop.
    pub fn end(&self, port: usize) -> f32 {
        self.spans[self.hop * self.values.len() + port].1
    }

    /// Returns the value that a port approaches.
    pub fn target(&self, port: usize) -> f32 {
        self.values[port].target
    }

    /// Returns the value of a port at the end of frame `frame` of the step, whose hops have
    /// `frames` each, interpolated linearly.
    pub fn at(&self, port: usize, frame: usize, frames: usize) -> f32 {
        let (start, end) = self.spans[frame / frames * self.values.len() + port];
        start + (end - start) * ((frame % frames + 1) as f32 / frames as f32)
    }

    /// Clamps a value to the range of the control that feeds a port.
    fn clamp(&self, port: usize, value: f32) -> f32 {
        let binding = self
            .bindings
            .iter()
            .find(|binding| binding.port == Some(port));
        binding.map_or(value, |binding| binding.control.clamp(value))
    }
}
