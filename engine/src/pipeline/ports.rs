//! What a network is fed besides notes and sound: knobs, and where the host's song is.

use std::sync::Arc;

use super::controls::{Knob, Smoothed, left_after};
use super::cue::{ControlId, Transport};

/// One session's values for the ports that controls feed.
pub(super) struct Ports {
    knobs: Arc<[Knob]>,
    values: Vec<Smoothed>,
    /// For each port where it stands at the beginning and at the end of the hop.
    spans: Vec<(f32, f32)>,
    /// Part of the way to where a knob points that is left after a hop.
    left: f32,
    transport: Option<(u64, Transport)>,
    tempo: Option<usize>,
    position: Option<usize>,
}

impl Ports {
    /// `names` are those of the ports, in the order that [`Knob::port`] counts; a hop lasts `hop_s` seconds.
    pub fn new(knobs: &Arc<[Knob]>, names: &[String], hop_s: f64) -> Self {
        Self {
            knobs: knobs.clone(),
            values: vec![Smoothed::new(0.0); names.len()],
            spans: vec![(0.0, 0.0); names.len()],
            left: left_after(hop_s),
            transport: None,
            tempo: names.iter().position(|name| name == "tempo"),
            position: names.iter().position(|name| name == "position"),
        }
    }

    /// All knobs of the model.
    pub fn knobs(&self) -> &[Knob] {
        &self.knobs
    }

    /// Begins anew: there is no song, and all knobs are at their defaults.
    pub fn reset(&mut self) {
        self.transport = None;
        for Knob { control, port, .. } in &*self.knobs {
            if let Some(port) = *port {
                self.values[port].set(control.default, true);
                self.spans[port] = (control.default, control.default);
            }
        }
    }

    /// Points a knob elsewhere, within its range; `at_once` skips the way there. Gives its index and the value, if there is such
    /// a knob.
    pub fn turn(&mut self, id: ControlId, value: f32, at_once: bool) -> Option<(usize, f32)> {
        let index = self.knobs.iter().position(|knob| knob.id == id)?;
        let Knob { control, port, .. } = &self.knobs[index];
        let value = control.clamp(value);
        if let Some(port) = *port {
            self.values[port].set(value, at_once);
            if at_once {
                self.spans[port].1 = value;
            }
        }
        Some((index, value))
    }

    /// The host's song is there since `at`, in samples at the model's rate.
    pub fn follow(&mut self, at: u64, transport: Transport) {
        let finite = transport.tempo.is_finite() && transport.position.is_finite();
        self.transport = finite.then_some((at, transport));
        if let Some(port) = self.tempo.filter(|_| finite) {
            let tempo = self.within(port, transport.tempo);
            self.values[port].set(tempo, true);
        }
    }

    /// Goes on to the end of the hop at `at`; `seconds` are those of samples at the model's rate. Gives whether anything changes.
    pub fn step(&mut self, at: u64, seconds: impl Fn(u64) -> f64) -> bool {
        let position = self.position.zip(self.transport).map(|(port, (since, transport))| {
            let passed = seconds(at.saturating_sub(since));
            let beats = if transport.playing { passed * f64::from(transport.tempo) / 60.0 } else { 0.0 };
            (port, self.within(port, (transport.position + beats) as f32))
        });
        let mut turned = false;
        for (port, (span, value)) in self.spans.iter_mut().zip(&mut self.values).enumerate() {
            let before = span.1;
            let step = value.step(self.left);
            *span = match position.filter(|(its, _)| *its == port) {
                // A song may jump, and there is nothing between.
                Some((_, beats)) => (beats, beats),
                None => (before, step),
            };
            turned |= span.1.to_bits() != before.to_bits();
        }
        turned
    }

    /// Where a port stands at the end of the hop.
    pub fn end(&self, port: usize) -> f32 {
        self.spans[port].1
    }

    /// Where a port stands at the end of frame `frame` of `frames` in the hop: it goes there in a straight line.
    pub fn at(&self, port: usize, frame: usize, frames: usize) -> f32 {
        let (start, end) = self.spans[port];
        start + (end - start) * ((frame + 1) as f32 / frames as f32)
    }

    /// Holds what a port is fed within the range of its control.
    fn within(&self, port: usize, value: f32) -> f32 {
        let knob = self.knobs.iter().find(|knob| knob.port == Some(port));
        knob.map_or(value, |knob| knob.control.clamp(value))
    }
}
