//! One hop of sound from what the voices want.

use ondes_kernels::Kernels;

use super::controls::Smoothed;
use crate::instrument::VoiceFrame;
use crate::model::{Fault, Model};
use crate::native::Executor;

/// The network for every voice, the sum of all voices, and the room around them. Runs at the model's rate.
pub(super) struct Synthesis {
    synth: Executor,
    room: Option<Executor>,
    ports: Ports,
    /// For each further port of `synth` its control: index of the port, value.
    pub port_controls: Vec<(usize, Smoothed)>,
    pub room_amount: Smoothed,
    pub brightness: Smoothed,
    /// `[slot]`: the gain at the end of the last hop.
    gains: Vec<f32>,
    /// Slots that sound in this hop.
    active: Vec<usize>,
    kernels: Kernels,
    hop: usize,
}

/// Where pitch and loudness go in.
struct Ports {
    pitch: usize,
    loudness: usize,
}

impl Synthesis {
    /// Prepares the methods `synth` and, where the model has one, `room`.
    pub fn new(model: &Model, kernels: Kernels, slots: usize, seed: u64) -> Result<Self, Fault> {
        let method = model.method("synth")?;
        let port = |name: &str| {
            let found = method
                .input(name)
                .filter(|&port| method.inputs[port].channels == 1 && method.inputs[port].ratio == method.block);
            found.ok_or_else(|| {
                Fault::Header(format!("method \"synth\" has no control port {name:?}, one frame a block"))
            })
        };
        let ports = Ports { pitch: port("pitch")?, loudness: port("loudness")? };
        let audio = |method: &crate::model::Method| {
            method.outputs.first().is_some_and(|port| port.channels == 1 && port.ratio == 1)
        };
        if !audio(method) {
            return Err(Fault::Header("method \"synth\" does not make one channel of audio".into()));
        }
        let mut port_controls = Vec::new();
        for (index, input) in method.inputs.iter().enumerate() {
            if index == ports.pitch || index == ports.loudness {
                continue;
            }
            port(&input.name)?;
            let control = model.header().controls.iter().find(|control| control.name == input.name);
            let control = control.ok_or_else(|| Fault::Header(format!("no control feeds port {:?}", input.name)))?;
            port_controls.push((index, Smoothed::new(control.default)));
        }
        let mut synth = Executor::new(model, "synth", kernels, slots, 1)?;
        synth.seed(seed);
        let room = match model.header().method("room") {
            None => None,
            Some(room) if room.block == method.block && room.inputs.len() == 1 && audio(room) => {
                Some(Executor::new(model, "room", kernels, 1, 1)?)
            }
            Some(_) => return Err(Fault::Header("method \"room\" does not fit method \"synth\"".into())),
        };
        Ok(Self {
            synth,
            room,
            ports,
            port_controls,
            room_amount: Smoothed::new(1.0),
            brightness: Smoothed::new(0.0),
            gains: vec![0.0; slots],
            active: Vec::with_capacity(slots),
            kernels,
            hop: method.block,
        })
    }

    pub fn name(&self) -> String {
        self.synth.name()
    }

    pub fn bytes(&self) -> usize {
        self.synth.bytes() + self.room.as_ref().map_or(0, Executor::bytes)
    }

    /// Fills `out`, one hop, with what leads up to the instant of these frames, one per slot.
    pub fn hop(&mut self, frames: &[VoiceFrame], out: &mut [f32]) {
        self.active.clear();
        for (slot, frame) in frames.iter().enumerate().filter(|(_, frame)| frame.sounding) {
            if frame.restarted {
                self.synth.reset(slot);
                self.gains[slot] = 0.0;
            }
            self.active.push(slot);
        }
        let brightness = self.brightness.step();
        let level = 10.0_f32.powf(-brightness / 20.0);
        out.fill(0.0);
        self.synth.begin(&self.active, 1);
        for (row, &slot) in self.active.iter().enumerate() {
            self.synth.input(self.ports.pitch)[row] = frames[slot].pitch;
            self.synth.input(self.ports.loudness)[row] = frames[slot].loudness + brightness;
        }
        for (port, control) in &mut self.port_controls {
            let value = control.step();
            self.synth.input(*port).fill(value);
        }
        if !self.active.is_empty() {
            self.synth.run();
        }
        for (voice, &slot) in self.synth.output(0).chunks_exact(self.hop).zip(&self.active) {
            let (start, end) = (self.gains[slot] * level, frames[slot].gain * level);
            self.gains[slot] = frames[slot].gain;
            #[expect(clippy::float_cmp, reason = "most gains rest at exactly one value")]
            if start == end {
                self.kernels.multiply_add(out, voice, end);
            } else {
                ramp(out, voice, start, end);
            }
        }
        if let Some(room) = &mut self.room {
            room.begin(&[0], 1);
            room.input(0).copy_from_slice(out);
            room.run();
            let start = self.room_amount.value();
            let end = self.room_amount.step();
            ramp(out, room.output(0), start, end);
        }
    }
}

/// Adds a sound under a gain that goes in a straight line from `start`, before the first sample, to `end`, at the last.
fn ramp(out: &mut [f32], sound: &[f32], start: f32, end: f32) {
    let step = (end - start) / out.len() as f32;
    for (n, (out, sample)) in out.iter_mut().zip(sound).enumerate() {
        *out += sample * (start + step * (n + 1) as f32);
    }
}
