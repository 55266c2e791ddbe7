//! One session's own half of an instrument: its clock, its player and its knobs. The network is shared by all.

use std::collections::VecDeque;
use std::sync::Arc;

use super::controls::{Knob, Smoothed, Target};
use super::cue::{Action, Cue, CueFull, Transport};
use super::ensemble::{PipelineError, PipelineOptions, Source};
use super::playable::{Followed, Start};
use super::playing::{PlayingControl, TRANSPOSE, setting};
use super::rates::{Inside, Rates};
use super::rest::{Rest, Step};
use crate::dsp::analysis::{Analysis, AnalysisFrame};
use crate::dsp::loudness::FLOOR_DB;
use crate::instrument::{Event, Performance, VoiceFrame, Voices};
use crate::model::{Header, Method};

/// Host samples that are worked on at a time; longer blocks are taken in pieces.
pub(super) const CHUNK: usize = 1024;
/// How many turns of knobs may wait for their frame.
const DUE: usize = 1024;
/// How long before its start a part still places notes that were begun earlier, seconds.
const PAST_S: u64 = 30;

/// From time to control frames, and from hops of sound to the host.
pub(super) struct Part {
    performance: Performance,
    knobs: Arc<[Knob]>,
    player: Player,
    voices: Voices,
    rates: Rates,
    ratio: Ratio,
    hop: usize,
    /// Host time minus own time, samples. Own time is 0 at the start, or later where notes have begun before it.
    origin: u64,
    /// Own time to begin at where there is a past, host samples.
    past: u64,
    /// Control frames made so far; frame `i` is that of sample `i · hop` at the model's rate.
    made: u64,
    /// Host samples played so far, in own time.
    played: u64,
    /// Turns of knobs and of the song, at the model's rate, that wait for their frame.
    due: VecDeque<(u64, Action)>,
    /// Nothing was played since the start: knobs are at once where they are set.
    fresh: bool,
    transport: Option<(u64, Transport)>,
    tempo_port: Option<usize>,
    position_port: Option<usize>,
    ports: Vec<Smoothed>,
    room: Smoothed,
    brightness: Smoothed,
    /// Shift of all pitches to begin with, semitones, and how far it was turned since.
    transposed: f32,
    transpose: Smoothed,
    missing: u64,
    /// The network gave something else than numbers: so does this part, until it begins anew. A resampler does not stand it.
    insane: bool,
    /// What the next hop is made from.
    pub score: Score,
    /// One hop at the model's rate.
    pub sound: Vec<f32>,
}

/// What the network needs to know to make one hop.
pub(super) struct Score {
    /// `[slot]`
    pub frames: Vec<VoiceFrame>,
    /// Voices that sound.
    pub sounding: usize,
    /// For each further port of `synth` its value.
    pub ports: Vec<f32>,
    /// By how much the network plays louder than it is heard, dB.
    pub brightness: f32,
    /// How much of the room is heard, at the start and at the end of the hop.
    pub room: (f32, f32),
    /// The network rests.
    pub mute: bool,
}

/// What turns time into control frames.
enum Player {
    Notes,
    Sound {
        analysis: Box<Analysis>,
        /// Frames that were heard and not yet played.
        heard: VecDeque<AnalysisFrame>,
        /// The last one that was played.
        followed: Option<AnalysisFrame>,
        rest: Rest,
    },
}

/// Host and model rate, Hz.
#[derive(Clone, Copy)]
struct Ratio {
    host: u64,
    model: u64,
}

impl Part {
    /// A part of a model with the method `synth`; `ports` are the names of its further inputs.
    pub fn new(
        header: &Header,
        synth: &Method,
        ports: &[String],
        knobs: &Arc<[Knob]>,
        options: &PipelineOptions,
    ) -> Result<Self, PipelineError> {
        let performance = header.performance.unwrap_or_default();
        performance.validate()?;
        let hop = synth.block;
        let rate = f64::from(header.sample_rate);
        let ratio = Ratio { host: options.sample_rate.into(), model: header.sample_rate.into() };
        let polyphony = options.voices.unwrap_or(usize::from(performance.polyphony));
        let hop_samples = u32::try_from(hop).unwrap_or(u32::MAX);
        let voices = Voices::new(&performance, polyphony, rate, hop_samples, options.seed);
        let (player, slots, lookahead) = match options.source {
            Source::Notes => (Player::Notes, voices.slots(), 0),
            Source::Sound => {
                let analysis = Box::new(Analysis::new(rate, hop));
                let lookahead = analysis.latency();
                // What one chunk can complete: its own samples and one block of the resampler.
                let samples = CHUNK * ratio.model.div_ceil(ratio.host) as usize + 8 * CHUNK;
                let heard = VecDeque::with_capacity(samples.div_ceil(hop) + 8);
                let rest = Rest::new(rate, hop);
                (Player::Sound { analysis, heard, followed: None, rest }, 1, lookahead)
            }
        };
        let inside = Inside { lookahead, delay: synth.latency_samples() };
        let with_input = options.source == Source::Sound;
        let rates = Rates::new(options.sample_rate, header.sample_rate, inside, with_input, hop, CHUNK)?;
        let period = rates.period(options.sample_rate, header.sample_rate, hop);
        let longest = PAST_S * u64::from(options.sample_rate);
        let default = |port: &String| {
            let knob = knobs.iter().find(|knob| knob.control.name == *port);
            Smoothed::new(knob.map_or(0.0, |knob| knob.control.default))
        };
        let mut part = Self {
            performance,
            knobs: knobs.clone(),
            player,
            voices,
            rates,
            ratio,
            hop,
            origin: 0,
            past: if period <= longest { longest.next_multiple_of(period) } else { 0 },
            made: 0,
            played: 0,
            due: VecDeque::with_capacity(DUE),
            fresh: true,
            transport: None,
            tempo_port: ports.iter().position(|port| port == "tempo"),
            position_port: ports.iter().position(|port| port == "position"),
            ports: ports.iter().map(default).collect(),
            room: Smoothed::new(1.0),
            brightness: Smoothed::new(0.0),
            transposed: 0.0,
            transpose: Smoothed::new(0.0),
            missing: 0,
            insane: false,
            score: Score {
                frames: vec![VoiceFrame::SILENT; slots],
                sounding: 0,
                ports: vec![0.0; ports.len()],
                brightness: 0.0,
                room: (1.0, 1.0),
                mute: false,
            },
            sound: vec![0.0; hop],
        };
        part.open(&Start { at: 0, seed: options.seed, transpose: options.transpose });
        Ok(part)
    }

    pub fn latency_samples(&self) -> usize {
        self.rates.latency
    }

    /// Host samples that so many at the model's rate last.
    pub fn to_host_samples(&self, samples: usize) -> usize {
        (samples as u64 * self.ratio.host).div_ceil(self.ratio.model) as usize
    }

    pub fn slots(&self) -> usize {
        self.score.frames.len()
    }

    /// Voices that sounded in the last hop.
    pub fn sounding(&self) -> usize {
        self.score.sounding
    }

    /// Never rests: what a test compares with.
    #[cfg(test)]
    pub fn forbid_rest(&mut self) {
        if let Player::Sound { rest, .. } = &mut self.player {
            rest.forbid();
        }
    }

    /// What was heard at the last frame, where a sound plays.
    pub fn followed(&self) -> Option<Followed> {
        let Player::Sound { followed: Some(AnalysisFrame { pitch, loudness }), .. } = self.player else { return None };
        Some(Followed { pitch: pitch.voiced.then_some(pitch.semitones), loudness_db: loudness })
    }

    pub fn notes_dropped(&self) -> u64 {
        self.voices.notes_dropped()
    }

    pub fn samples_missing(&self) -> u64 {
        self.missing
    }

    /// The present, in the host's samples.
    pub fn now(&self) -> u64 {
        self.origin.wrapping_add(self.played)
    }

    /// Begins anew.
    pub fn open(&mut self, start: &Start) {
        // A session that begins has no past. One that takes over does: its own time begins late enough to hold it, at a
        // multiple of all blocks, where everything stands as it does at 0.
        self.played = if start.at == 0 { 0 } else { self.past };
        self.origin = start.at.wrapping_sub(self.played);
        self.made = self.played * self.ratio.model / (self.ratio.host * self.hop as u64);
        self.rates.reset();
        self.voices.restart(start.seed);
        (self.transposed, self.transpose) = (start.transpose, Smoothed::new(0.0));
        if let Player::Sound { analysis, heard, followed, rest } = &mut self.player {
            analysis.reset();
            heard.clear();
            *followed = None;
            rest.reset();
        }
        self.due.clear();
        (self.fresh, self.transport, self.missing, self.insane) = (true, None, 0, false);
        self.score.sounding = 0;
        for index in 0..self.knobs.len() {
            let default = self.knobs[index].control.default;
            self.turn(index, default);
        }
    }

    /// A time of the host's in samples at the model's rate. Rounded up: frames made so far lie before the host's present
    /// sample, so nothing can miss the frame it belongs to.
    fn model_time(&self, at: u64) -> u64 {
        let own = at.wrapping_sub(self.origin);
        // What lies before all that this part can tell counts as its beginning.
        let own = if own > u64::MAX / 2 { 0 } else { own };
        (u128::from(own) * u128::from(self.ratio.model)).div_ceil(u128::from(self.ratio.host)) as u64
    }

    /// Takes in a cue.
    pub fn handle(&mut self, cue: Cue) -> Result<(), CueFull> {
        let at = self.model_time(cue.at);
        let by_notes = matches!(self.player, Player::Notes);
        match cue.action {
            Action::Play(kind) if by_notes => return self.voices.handle(&Event { at, kind }).map_err(|_| CueFull(cue)),
            // Nobody plays them.
            Action::Play(_) => return Ok(()),
            _ if self.due.len() == DUE => return Err(CueFull(cue)),
            Action::Control { id, value } if by_notes => {
                if let Some(setting) = setting(id, value) {
                    // It keeps its place among the notes.
                    self.voices.set(at, setting).map_err(|_| CueFull(cue))?;
                }
            }
            _ => {}
        }
        self.due.push_back((at, cue.action));
        Ok(())
    }

    /// Goes on by `length` host samples, at most a chunk: then [`Part::next`] tells of all hops that this completes. No input
    /// counts as silence.
    pub fn take(&mut self, input: &[f32], length: usize, mute: bool) {
        const SILENCE: [f32; CHUNK] = [0.0; CHUNK];
        self.played += length as u64;
        self.score.mute = mute;
        if let Player::Sound { analysis, heard, .. } = &mut self.player {
            let input = if input.is_empty() { &SILENCE[..length] } else { input };
            self.rates.to_model.push(input, |samples| analysis.push(samples, |frame| heard.push_back(frame)));
        }
    }

    /// Whether there is one more hop to make: [`Part::score`] then says which, and [`Part::deliver`] takes it.
    pub fn next(&mut self) -> bool {
        let at = self.made * self.hop as u64;
        let frame = match &mut self.player {
            // All events before the samples played so far are known, and so are all frames before them.
            Player::Notes if at * self.ratio.host < self.played * self.ratio.model => None,
            Player::Notes => return false,
            Player::Sound { heard, .. } => match heard.pop_front() {
                Some(frame) => Some(frame),
                None => return false,
            },
        };
        while let Some(&(when, action)) = self.due.front()
            && when <= at
        {
            self.due.pop_front();
            self.act(when, action);
        }
        let transposition = self.transposed + self.transpose.step();
        self.voices.set_transposition(transposition);
        let turned = self.step_ports(at);
        match (&mut self.player, frame) {
            (Player::Sound { followed, rest, .. }, Some(frame)) => {
                let pitch = frame.pitch.semitones + transposition;
                let turned = turned || followed.is_none() || pitch.to_bits() != self.score.frames[0].pitch.to_bits();
                let still = !turned && frame.loudness <= FLOOR_DB;
                let step = rest.step(still);
                let sounding = step != Step::Rests;
                self.score.frames[0] = VoiceFrame {
                    sounding,
                    restarted: followed.is_none(),
                    pitch,
                    loudness: frame.loudness,
                    gain: if step == Step::Plays { 1.0 } else { 0.0 },
                    ..VoiceFrame::SILENT
                };
                self.score.sounding = usize::from(sounding);
                *followed = Some(frame);
            }
            _ => self.score.sounding = self.voices.frame(at, &mut self.score.frames),
        }
        let start = self.room.value();
        self.score.room = (start, self.room.step());
        self.fresh = false;
        self.made += 1;
        true
    }

    /// Brings all that the network is fed besides pitch and loudness to the frame at `at`. Gives whether any of it changes.
    fn step_ports(&mut self, at: u64) -> bool {
        let position = self.position_port.zip(self.transport).map(|(port, (since, transport))| {
            let seconds = at.saturating_sub(since) as f64 / self.ratio.model as f64;
            let beats = if transport.playing { seconds * f64::from(transport.tempo) / 60.0 } else { 0.0 };
            (port, self.within(port, (transport.position + beats) as f32))
        });
        let brightness = self.brightness.step();
        let mut turned = brightness.to_bits() != std::mem::replace(&mut self.score.brightness, brightness).to_bits();
        for (index, (value, port)) in self.score.ports.iter_mut().zip(&mut self.ports).enumerate() {
            let step = port.step();
            let next = position.filter(|(port, _)| *port == index).map_or(step, |(_, beats)| beats);
            turned |= next.to_bits() != std::mem::replace(value, next).to_bits();
        }
        turned
    }

    /// Takes the hop in [`Part::sound`].
    pub fn deliver(&mut self) {
        if self.sound.iter().any(|sample| !sample.is_finite()) {
            self.sound.fill(0.0);
            self.insane = true;
        }
        if let Player::Sound { rest, .. } = &mut self.player {
            rest.made((!self.score.mute).then_some(&self.sound));
        }
        self.rates.to_host.push(&self.sound);
    }

    /// Fills `out` with what is due at the host.
    pub fn give(&mut self, out: &mut [f32]) {
        self.missing += self.rates.to_host.pull(out) as u64;
        if self.insane {
            out.fill(f32::NAN);
        }
    }

    fn act(&mut self, at: u64, action: Action) {
        match action {
            Action::Play(_) => {}
            Action::Control { id, value } => {
                if id == TRANSPOSE
                    && let Some(semitones) = PlayingControl::of(id).and_then(|control| control.held(value))
                {
                    self.transpose.set(semitones, self.fresh);
                }
                if let Some(index) = self.knobs.iter().position(|knob| knob.id == id) {
                    let value = self.knobs[index].control.clamp(value);
                    self.turn(index, value);
                }
            }
            Action::Transport(transport) => {
                let finite = transport.tempo.is_finite() && transport.position.is_finite();
                self.transport = finite.then_some((at, transport));
                if let Some(port) = self.tempo_port.filter(|_| finite) {
                    let tempo = self.within(port, transport.tempo);
                    self.ports[port].set(tempo, true);
                }
            }
        }
    }

    /// Holds what a port is fed within the range of its control.
    fn within(&self, port: usize, value: f32) -> f32 {
        let knob = self.knobs.iter().find(|knob| knob.port == Some(port));
        knob.map_or(value, |knob| knob.control.clamp(value))
    }

    /// Turns a knob to a value in its range.
    fn turn(&mut self, index: usize, value: f32) {
        let Knob { port, target, .. } = self.knobs[index];
        if let Some(port) = port {
            self.ports[port].set(value, self.fresh);
        }
        match target {
            Some(Target::Room) => self.room.set(value, self.fresh),
            Some(Target::Brightness) => self.brightness.set(value, self.fresh),
            Some(Target::Performance(field)) => {
                *field(&mut self.performance) = value;
                self.voices.set_performance(&self.performance);
            }
            None => {}
        }
    }
}
