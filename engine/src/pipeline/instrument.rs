//! Instruments: the method `synth`, played by notes or by the audio input, and the method `room`
//! around it.
//!
//! A room with two output channels, or a [`Width`], makes the instrument stereo. A variant replaces
//! both methods.

use ondes_kernels::Kernels;

use super::attacks::{AttackPlayer, Strike};
use super::batch::{BatchNetwork, SessionBatch};
use super::control_ports::ControlBinding;
use super::controls::WIDTH;
use super::instrument_stream::InstrumentStream;
use super::method_ports::header_error;
use super::options::{PipelineError, PipelineOptions};
use super::width::Width;
use crate::dsp::level::db_to_amplitude;
use crate::dsp::noise::stream_seed;
use crate::dsp::tilt::Tilt;
use crate::executor::Execute;
use crate::instrument::{Performance, VoiceFrame};
use crate::model::{Method, Model, ModelError, Port};
use crate::native::Executor;

/// Methods of an instrument, checked against each other.
pub(super) struct Methods<'a> {
    synth: &'a Method,
    room: Option<&'a Method>,
    inputs: SynthInputs,
    /// Names of the inputs besides pitch and loudness, which controls feed.
    port_names: Vec<String>,
    /// There is a [`Width`].
    is_wide: bool,
}

impl<'a> Methods<'a> {
    /// Looks up the methods that these options select.
    ///
    /// # Errors
    /// Returns [`PipelineError`] if the model lacks what an instrument needs, or the options do not
    /// fit it.
    pub fn new(model: &'a Model, options: &PipelineOptions) -> Result<Self, PipelineError> {
        let header = model.header();
        header.performance.unwrap_or_default().validate()?;
        let variant = options.variant(header)?;
        let synth = model.method(variant.map_or("synth", |variant| variant.method.as_str()))?;
        let room = header.method(
            variant
                .and_then(|variant| variant.room.as_deref())
                .unwrap_or("room"),
        );
        let port_names = control_port_names(synth);
        let inputs = SynthInputs::new(model, synth, &port_names)?;
        let is_audio = |port: Option<&Port>, channels: &[usize]| {
            port.is_some_and(|port| channels.contains(&port.channels) && port.ratio == 1)
        };
        if !is_audio(synth.outputs.first(), &[1]) {
            return Err(header_error(synth, "has no mono audio output").into());
        }
        let fits = |room: &&Method| {
            let is_input = room.inputs.len() == 1 && is_audio(room.inputs.first(), &[1]);
            room.block == synth.block && is_input && is_audio(room.outputs.first(), &[1, 2])
        };
        if let Some(room) = room.filter(|room| !fits(room)) {
            return Err(
                header_error(synth, &format!("does not fit method {:?}", room.name)).into(),
            );
        }
        let lists_width = header.controls.iter().any(|control| control.name == WIDTH);
        Ok(Self {
            synth,
            room,
            inputs,
            port_names,
            is_wide: lists_width || header.performance.unwrap_or_default().width > 0.0,
        })
    }

    /// Returns the channels of the room, 1 if there is none.
    fn room_channels(&self) -> usize {
        let port = self.room.and_then(|room| room.outputs.first());
        port.map_or(1, |port| port.channels)
    }

    /// Returns the number of output channels.
    fn outputs(&self) -> usize {
        if self.is_wide {
            2
        } else {
            self.room_channels()
        }
    }
}

/// Makes an instrument playable.
///
/// # Errors
/// Returns [`PipelineError`] as [`Methods::new`] does, or if the executor or the sample rate is not
/// available.
pub(super) fn build(
    model: &Model,
    options: &PipelineOptions,
) -> Result<SessionBatch<InstrumentStream, InstrumentNetwork>, PipelineError> {
    let header = model.header();
    let methods = Methods::new(model, options)?;
    let bindings = ControlBinding::all(&header.controls, &methods.port_names);
    let outputs = methods.outputs();
    let stream = |_| {
        InstrumentStream::new(
            header,
            methods.synth,
            &methods.port_names,
            &bindings,
            outputs,
            options,
        )
    };
    let streams: Vec<InstrumentStream> = (0..options.sessions)
        .map(stream)
        .collect::<Result<_, _>>()?;
    let mut tail = methods.room.map_or(0, |room| model.tail_samples(room) + 1);
    if methods.is_wide {
        tail += Width::tail_samples(header);
    }
    let network = InstrumentNetwork::new(model, methods, options, streams[0].voice_count())?;
    let tail = streams[0].timeline.to_host_samples(tail);
    Ok(SessionBatch::new(streams, 1, network, options.seed, tail))
}

/// Returns the names of the inputs besides pitch and loudness, which controls feed.
fn control_port_names(synth: &Method) -> Vec<String> {
    let names = synth.inputs.iter().map(|port| &port.name);
    names
        .filter(|&name| name != "pitch" && name != "loudness")
        .cloned()
        .collect()
}

/// The network for every voice, the mix of all voices, and the room; at the model's rate.
pub(super) struct InstrumentNetwork {
    synth: Executor,
    room: Option<Executor>,
    inputs: SynthInputs,
    /// Voices per slot: those of slot `s` are streams `s · voices ..` of the network.
    voices: usize,
    /// `[stream]`: gain at the end of the last hop, without brightness.
    gains: Vec<f32>,
    /// `[stream]`: a note began while the network was skipped.
    pending_restarts: Vec<bool>,
    /// Gain of all voices.
    gain: f32,
    /// Filters of notes, where the network has learnt one dynamic.
    colour: Option<Colour>,
    /// Recorded attacks, if the model has any.
    attacks: Option<AttackPlayer>,
    /// Positions of the controls that feed the network, for the choice of an attack.
    positions: Vec<f32>,
    /// Streams that sound in this hop.
    active: Vec<usize>,
    /// Channels of the room.
    room_channels: usize,
    /// One channel of a hop of reverberation.
    reverberation: Vec<f32>,
    width: Option<Width>,
    kernels: Kernels,
    hop: usize,
}

/// Filters that brighten loud notes and darken soft ones.
struct Colour {
    /// `[stream]`
    tilts: Vec<Tilt>,
    /// Tilt for each dB of brightness, dB.
    tilt_per_db: f32,
    /// A hop of one voice.
    voice: Vec<f32>,
}

impl Colour {
    /// Returns the filters that the performance asks for, if any.
    fn new(
        performance: &Performance,
        sample_rate: u32,
        streams: usize,
        hop: usize,
    ) -> Option<Self> {
        performance.is_tilted().then(|| Self {
            tilts: vec![Tilt::new(sample_rate as f32, hop); streams],
            tilt_per_db: performance.dynamic_tilt,
            voice: vec![0.0; hop],
        })
    }

    /// Colours a hop of a voice, which is also `brightness` dB brighter.
    fn apply(
        &mut self,
        stream: usize,
        frame: &VoiceFrame,
        brightness: f32,
        voice: &[f32],
    ) -> &[f32] {
        self.voice.copy_from_slice(voice);
        let tilt_db = frame.tilt + self.tilt_per_db * brightness;
        self.tilts[stream].process(tilt_db, frame.pitch, &mut self.voice);
        &self.voice
    }
}

/// Indices of the network's input ports.
struct SynthInputs {
    pitch: usize,
    loudness: usize,
    controls: Vec<usize>,
}

impl SynthInputs {
    fn new(model: &Model, method: &Method, names: &[String]) -> Result<Self, ModelError> {
        let port = |name: &str| {
            let is_control = |port: &usize| {
                let port = &method.inputs[*port];
                port.channels == 1 && port.ratio == method.block
            };
            let found = method.input(name).filter(is_control);
            found.ok_or_else(|| {
                header_error(
                    method,
                    &format!("has no control port {name:?} with one frame a block"),
                )
            })
        };
        let unfed = names.iter().find(|name| {
            !model
                .header()
                .controls
                .iter()
                .any(|control| control.name == **name)
        });
        if let Some(name) = unfed {
            return Err(header_error(
                method,
                &format!("has input {name:?}, which no control feeds"),
            ));
        }
        let controls = names
            .iter()
            .map(|name| port(name))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            pitch: port("pitch")?,
            loudness: port("loudness")?,
            controls,
        })
    }
}

impl InstrumentNetwork {
    /// Prepares the network and, if the model has one, the room, with `voices` voices for each
    /// session.
    fn new(
        model: &Model,
        methods: Methods<'_>,
        options: &PipelineOptions,
        voices: usize,
    ) -> Result<Self, ModelError> {
        let room_channels = methods.room_channels();
        let Methods {
            synth,
            room,
            inputs,
            port_names,
            is_wide,
        } = methods;
        let PipelineOptions {
            kernels, sessions, ..
        } = *options;
        let streams = sessions * voices;
        let performance = model.header().performance.unwrap_or_default();
        Ok(Self {
            synth: Executor::new(model, &synth.name, kernels, streams, 1)?,
            room: room
                .map(|room| Executor::new(model, &room.name, kernels, sessions, 1))
                .transpose()?,
            inputs,
            voices,
            gains: vec![0.0; streams],
            pending_restarts: vec![false; streams],
            attacks: model.attacks().map(|attacks| {
                let header = model.header();
                AttackPlayer::new(attacks.iter(), header, &port_names, streams, synth.block)
            }),
            positions: Vec::with_capacity(port_names.len()),
            gain: db_to_amplitude(performance.gain_db),
            colour: Colour::new(
                &performance,
                model.header().sample_rate,
                streams,
                synth.block,
            ),
            active: Vec::with_capacity(streams),
            room_channels,
            reverberation: vec![0.0; synth.block],
            width: is_wide
                .then(|| Width::new(kernels, model.header(), sessions, streams, synth.block)),
            kernels,
            hop: synth.block,
        })
    }

    /// Lists the streams that sound, and resets those whose note has just begun.
    fn select_active(&mut self, sessions: &[InstrumentStream], slots: &[usize]) {
        self.active.clear();
        for &slot in slots {
            let controls = &sessions[slot].controls;
            for (voice, frame) in controls.frames.iter().enumerate() {
                let stream = slot * self.voices + voice;
                self.pending_restarts[stream] |= frame.sounding && frame.restarted;
                if controls.mute {
                    self.gains[stream] = 0.0;
                    self.stop_attack(stream);
                } else if frame.sounding {
                    if std::mem::take(&mut self.pending_restarts[stream]) {
                        self.synth.reset(stream);
                        self.reset_colour(stream);
                        self.gains[stream] = 0.0;
                        self.stop_attack(stream);
                    }
                    self.active.push(stream);
                }
            }
        }
    }

    fn reset_colour(&mut self, stream: usize) {
        if let Some(colour) = &mut self.colour {
            colour.tilts[stream].reset();
        }
    }

    fn stop_attack(&mut self, stream: usize) {
        if let Some(attacks) = &mut self.attacks {
            attacks.stop(stream);
        }
    }

    /// Begins the recorded attacks of the notes that were struck in this hop.
    fn strike(&mut self, sessions: &[InstrumentStream]) {
        let Some(attacks) = &mut self.attacks else {
            return;
        };
        for &stream in &self.active {
            let session = &sessions[stream / self.voices];
            let frame = &session.controls.frames[stream % self.voices];
            let Some(stroke) = frame.stroke else {
                continue;
            };
            self.positions.clear();
            let ports = 0..self.inputs.controls.len();
            self.positions
                .extend(ports.map(|port| session.ports.end(port)));
            let phase = attacks.strike(
                stream,
                Strike {
                    stroke,
                    frame,
                    brightness: session.controls.brightness + frame.brightness,
                    controls: &self.positions,
                    takes_turns: session.has_life(),
                },
            );
            // The network is silent until the attack fades into it, unless a note is struck again.
            if frame.restarted {
                self.synth.set_phase(stream, phase);
            }
        }
    }

    /// Runs the network for all active voices.
    fn run_voices(&mut self, sessions: &[InstrumentStream]) {
        self.synth.begin(&self.active, 1);
        for (row, &stream) in self.active.iter().enumerate() {
            let InstrumentStream {
                controls, ports, ..
            } = &sessions[stream / self.voices];
            let frame = &controls.frames[stream % self.voices];
            self.synth.input(self.inputs.pitch)[row] = frame.pitch;
            self.synth.input(self.inputs.loudness)[row] =
                frame.loudness + controls.brightness + frame.brightness;
            for (port, &input) in self.inputs.controls.iter().enumerate() {
                self.synth.input(input)[row] = ports.end(port);
            }
        }
        self.synth.run();
    }

    /// Adds up the voices of each slot, on all channels.
    fn mix_voices(&mut self, sessions: &mut [InstrumentStream], slots: &[usize]) {
        for &slot in slots {
            sessions[slot].timeline.sound.fill(0.0);
        }
        if self.active.is_empty() {
            return;
        }
        for (voice, &stream) in self
            .synth
            .output(0)
            .chunks_exact(self.hop)
            .zip(&self.active)
        {
            let InstrumentStream {
                timeline, controls, ..
            } = &mut sessions[stream / self.voices];
            let frame = &controls.frames[stream % self.voices];
            let brightness = controls.brightness + frame.brightness;
            let voice = match &mut self.colour {
                Some(colour) => colour.apply(stream, frame, brightness, voice),
                None => voice,
            };
            let (attack, share) = match &mut self.attacks {
                Some(attacks) => attacks.play(stream, frame, brightness),
                None => (None, 1.0),
            };
            let end = share * self.gain * frame.gain * db_to_amplitude(-brightness);
            let start = std::mem::replace(&mut self.gains[stream], end);
            add_with_ramp(
                self.kernels,
                &mut timeline.sound[..self.hop],
                voice,
                start,
                end,
            );
            if let Some(attack) = attack {
                self.kernels
                    .multiply_add(&mut timeline.sound[..self.hop], attack, self.gain);
            }
            if let Some(width) = &mut self.width {
                let slot = stream / self.voices;
                width.add_voice(slot, stream, frame.pitch, voice, (start, end));
                if let Some(attack) = attack {
                    width.add_attack(slot, stream, attack, self.gain);
                }
            }
        }
        for &slot in slots {
            let (first, others) = sessions[slot].timeline.sound.split_at_mut(self.hop);
            others
                .chunks_exact_mut(self.hop)
                .for_each(|other| other.copy_from_slice(first));
        }
    }

    /// Adds the reverberation of each slot.
    fn add_room(&mut self, sessions: &mut [InstrumentStream], slots: &[usize]) {
        let Some(room) = &mut self.room else { return };
        room.begin(slots, 1);
        for (row, &slot) in slots.iter().enumerate() {
            room.input(0)[row * self.hop..][..self.hop]
                .copy_from_slice(&sessions[slot].timeline.sound[..self.hop]);
        }
        room.run();
        let channels = self.room_channels;
        for (reverberation, &slot) in room.output(0).chunks_exact(channels * self.hop).zip(slots) {
            let InstrumentStream {
                timeline, controls, ..
            } = &mut sessions[slot];
            if controls.mute {
                continue;
            }
            for (channel, sound) in timeline.sound.chunks_exact_mut(self.hop).enumerate() {
                let samples = reverberation[channel % channels..].iter().step_by(channels);
                self.reverberation
                    .iter_mut()
                    .zip(samples)
                    .for_each(|(own, sample)| *own = *sample);
                add_with_ramp(
                    self.kernels,
                    sound,
                    &self.reverberation,
                    controls.room.0,
                    controls.room.1,
                );
            }
        }
    }

    /// Makes two channels of the sound of each slot.
    fn widen(&mut self, sessions: &mut [InstrumentStream], slots: &[usize]) {
        let Some(width) = &mut self.width else { return };
        for &slot in slots {
            let InstrumentStream {
                timeline, controls, ..
            } = &mut sessions[slot];
            if controls.mute {
                width.reset(slot);
            } else {
                width.apply(slot, &mut timeline.sound, controls.width);
            }
        }
    }
}

impl BatchNetwork<InstrumentStream> for InstrumentNetwork {
    fn name(&self) -> String {
        self.synth.name()
    }

    fn bytes(&self) -> usize {
        self.synth.bytes()
            + self.room.as_ref().map_or(0, Executor::bytes)
            + self.attacks.as_ref().map_or(0, AttackPlayer::bytes)
    }

    fn open(&mut self, slot: usize, seed: u64) {
        for voice in 0..self.voices {
            let stream = slot * self.voices + voice;
            self.synth.seed(stream, stream_seed(seed, voice as u64));
            (self.gains[stream], self.pending_restarts[stream]) = (0.0, false);
            self.reset_colour(stream);
            self.stop_attack(stream);
        }
        if let Some(room) = &mut self.room {
            room.reset(slot);
        }
        if let Some(width) = &mut self.width {
            width.reset(slot);
        }
    }

    /// Fills each slot's hop with the sound up to the instant of its
    /// [`InstrumentStream::controls`].
    fn process_hop(&mut self, sessions: &mut [InstrumentStream], slots: &[usize]) {
        self.select_active(sessions, slots);
        if !self.active.is_empty() {
            self.strike(sessions);
            self.run_voices(sessions);
        }
        self.mix_voices(sessions, slots);
        self.add_room(sessions, slots);
        self.widen(sessions, slots);
    }
}

/// Adds a sound with a gain that goes linearly from `start`, before the first sample, to `end`, at
/// the last.
pub(super) fn add_with_ramp(
    kernels: Kernels,
    out: &mut [f32],
    sound: &[f32],
    start: f32,
    end: f32,
) {
    #[expect(clippy::float_cmp, reason = "most gains are constant")]
    if start == end {
        return kernels.multiply_add(out, sound, end);
    }
    let step = (end - start) / out.len() as f32;
    for (n, (out, sample)) in out.iter_mut().zip(sound).enumerate() {
        *out += sample * (start + step * (n + 1) as f32);
    }
}
