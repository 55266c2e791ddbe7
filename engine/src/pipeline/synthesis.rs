//! One hop of sound from what the voices want, for all sessions in one batch.

use ondes_kernels::Kernels;

use super::batch::Network;
use super::part::Part;
use crate::dsp::noise::stream_seed;
use crate::model::{Fault, Method, Model};
use crate::native::Executor;

/// The network for every voice, the sum of all voices, and the room around them. Runs at the model's rate.
pub(super) struct Synthesis {
    synth: Executor,
    room: Option<Executor>,
    inputs: Inputs,
    /// Voices of one seat: those of seat `s` are streams `s · slots ..` of the network.
    slots: usize,
    /// `[stream]`: the gain at the end of the last hop, brightness taken off.
    gains: Vec<f32>,
    /// `[stream]`: a note began while the network rested.
    restart: Vec<bool>,
    /// Streams that sound in this hop.
    active: Vec<usize>,
    kernels: Kernels,
    hop: usize,
}

/// Where pitch, loudness and the rest go in.
struct Inputs {
    pitch: usize,
    loudness: usize,
    further: Vec<usize>,
}

/// The names of the inputs of `synth` besides pitch and loudness, in their order: controls feed them.
pub(super) fn further_ports(synth: &Method) -> Vec<String> {
    let names = synth.inputs.iter().map(|port| &port.name);
    names.filter(|&name| name != "pitch" && name != "loudness").cloned().collect()
}

impl Synthesis {
    /// Prepares a network and, where the model has one, a room around it, for `seats` sessions of `slots` voices.
    pub fn new(
        model: &Model,
        (method, room): (&Method, Option<&Method>),
        kernels: Kernels,
        seats: usize,
        slots: usize,
    ) -> Result<Self, Fault> {
        let fault = |what: String| Err(Fault::Header(format!("method {:?} {what}", method.name)));
        let port = |name: &str| {
            let found = method
                .input(name)
                .filter(|&port| method.inputs[port].channels == 1 && method.inputs[port].ratio == method.block);
            found.ok_or_else(|| {
                Fault::Header(format!("method {:?} has no control port {name:?}, one frame a block", method.name))
            })
        };
        let names = further_ports(method);
        let unfed = names.iter().find(|name| !model.header().controls.iter().any(|control| control.name == **name));
        if let Some(name) = unfed {
            return Err(Fault::Header(format!("no control feeds port {name:?}")));
        }
        let further = names.iter().map(|name| port(name)).collect::<Result<_, _>>()?;
        let inputs = Inputs { pitch: port("pitch")?, loudness: port("loudness")?, further };
        let audio = |method: &Method| method.outputs.first().is_some_and(|port| port.channels == 1 && port.ratio == 1);
        if !audio(method) {
            return fault("does not make one channel of audio".into());
        }
        let room = match room {
            None => None,
            Some(room) if room.block == method.block && room.inputs.len() == 1 && audio(room) => {
                Some(Executor::new(model, &room.name, kernels, seats, 1)?)
            }
            Some(room) => return fault(format!("does not fit method {:?}", room.name)),
        };
        let streams = seats * slots;
        Ok(Self {
            synth: Executor::new(model, &method.name, kernels, streams, 1)?,
            room,
            inputs,
            slots,
            gains: vec![0.0; streams],
            restart: vec![false; streams],
            active: Vec::with_capacity(streams),
            kernels,
            hop: method.block,
        })
    }

    /// Runs the network for all active voices.
    fn sing(&mut self, parts: &[Part]) {
        self.synth.begin(&self.active, 1);
        for (row, &stream) in self.active.iter().enumerate() {
            let Part { score, ports, .. } = &parts[stream / self.slots];
            let frame = &score.frames[stream % self.slots];
            self.synth.input(self.inputs.pitch)[row] = frame.pitch;
            self.synth.input(self.inputs.loudness)[row] = frame.loudness + score.brightness + frame.brightness;
            for (port, &input) in self.inputs.further.iter().enumerate() {
                self.synth.input(input)[row] = ports.end(port);
            }
        }
        self.synth.run();
    }

    /// Adds up the voices of each seat.
    fn mix(&mut self, parts: &mut [Part], seats: &[usize]) {
        for &seat in seats {
            parts[seat].stream.sound.fill(0.0);
        }
        if self.active.is_empty() {
            return;
        }
        for (voice, &stream) in self.synth.output(0).chunks_exact(self.hop).zip(&self.active) {
            let Part { stream: out, score, .. } = &mut parts[stream / self.slots];
            let frame = &score.frames[stream % self.slots];
            let end = frame.gain * 10.0_f32.powf((score.brightness + frame.brightness) / -20.0);
            let start = std::mem::replace(&mut self.gains[stream], end);
            ramp(self.kernels, &mut out.sound, voice, start, end);
        }
    }
}

impl Network<Part> for Synthesis {
    fn name(&self) -> String {
        self.synth.name()
    }

    fn bytes(&self) -> usize {
        self.synth.bytes() + self.room.as_ref().map_or(0, Executor::bytes)
    }

    fn open(&mut self, seat: usize, seed: u64) {
        for slot in 0..self.slots {
            let stream = seat * self.slots + slot;
            self.synth.seed(stream, stream_seed(seed, slot as u64));
            (self.gains[stream], self.restart[stream]) = (0.0, false);
        }
        if let Some(room) = &mut self.room {
            room.reset(seat);
        }
    }

    /// Fills the stream's hop of each of `seats` with what leads up to the instant of its [`Part::score`].
    fn hop(&mut self, parts: &mut [Part], seats: &[usize]) {
        self.active.clear();
        for &seat in seats {
            let score = &parts[seat].score;
            for (slot, frame) in score.frames.iter().enumerate() {
                let stream = seat * self.slots + slot;
                self.restart[stream] |= frame.sounding && frame.restarted;
                if score.mute {
                    self.gains[stream] = 0.0;
                } else if frame.sounding {
                    if std::mem::take(&mut self.restart[stream]) {
                        self.synth.reset(stream);
                        self.gains[stream] = 0.0;
                    }
                    self.active.push(stream);
                }
            }
        }
        if !self.active.is_empty() {
            self.sing(parts);
        }
        self.mix(parts, seats);
        if let Some(room) = &mut self.room {
            room.begin(seats, 1);
            for (row, &seat) in seats.iter().enumerate() {
                room.input(0)[row * self.hop..][..self.hop].copy_from_slice(&parts[seat].stream.sound);
            }
            room.run();
            for (reverberation, &seat) in room.output(0).chunks_exact(self.hop).zip(seats) {
                let Part { stream, score, .. } = &mut parts[seat];
                if !score.mute {
                    ramp(self.kernels, &mut stream.sound, reverberation, score.room.0, score.room.1);
                }
            }
        }
    }
}

/// Adds a sound under a gain that goes in a straight line from `start`, before the first sample, to `end`, at the last.
fn ramp(kernels: Kernels, out: &mut [f32], sound: &[f32], start: f32, end: f32) {
    #[expect(clippy::float_cmp, reason = "most gains rest at exactly one value")]
    if start == end {
        return kernels.multiply_add(out, sound, end);
    }
    let step = (end - start) / out.len() as f32;
    for (n, (out, sample)) in out.iter_mut().zip(sound).enumerate() {
        *out += sample * (start + step * (n + 1) as f32);
    }
}
