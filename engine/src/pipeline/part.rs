//! One session's own half of an instrument: its player and its knobs. The network is shared by all.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::Seat;
use super::controls::{Knob, Smoothed, Target, left_after};
use super::cue::{Action, ControlId, Cue, CueFull};
use super::options::{PipelineError, PipelineOptions, Source};
use super::playable::{Followed, Start};
use super::playing::{PlayingControl, TRANSPOSE, setting};
use super::ports::Ports;
use super::rates::Inside;
use super::rest::{Rest, Step};
use super::stream::Stream;
use crate::dsp::analysis::{Analysis, AnalysisFrame};
use crate::dsp::loudness::FLOOR_DB;
use crate::instrument::{Event, Performance, VoiceFrame, Voices};
use crate::model::{Header, Method};

/// From notes or a sound to control frames.
pub(super) struct Part {
    pub stream: Stream,
    pub ports: Ports,
    performance: Performance,
    player: Player,
    voices: Voices,
    room: Smoothed,
    brightness: Smoothed,
    /// Shift of all pitches to begin with, semitones, and how far it was turned since.
    transposed: f32,
    transpose: Smoothed,
    /// Part of the way to where a knob points that is left after a hop.
    left: f32,
    /// What the next hop is made from.
    pub score: Score,
}

/// What the network needs to know to make one hop.
pub(super) struct Score {
    /// `[slot]`
    pub frames: Vec<VoiceFrame>,
    /// Voices that sound.
    pub sounding: usize,
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

impl Part {
    /// A part of a model with the method `synth`; `names` are those of its further inputs.
    pub fn new(
        header: &Header,
        synth: &Method,
        names: &[String],
        knobs: &Arc<[Knob]>,
        options: &PipelineOptions,
    ) -> Result<Self, PipelineError> {
        let performance = header.performance.unwrap_or_default();
        performance.validate()?;
        let hop = synth.block;
        let rate = f64::from(header.sample_rate);
        let polyphony = options.voices.unwrap_or(usize::from(performance.polyphony));
        let hop_samples = u32::try_from(hop).unwrap_or(u32::MAX);
        let voices = Voices::new(&performance, polyphony, rate, hop_samples, options.seed);
        let by_sound = options.source == Source::Sound;
        let analysis = by_sound.then(|| Box::new(Analysis::new(rate, hop)));
        let lookahead = analysis.as_ref().map_or(0, |analysis| analysis.latency());
        let inside = Inside { lookahead, delay: synth.latency_samples() };
        let stream = Stream::new(options.sample_rate, header.sample_rate, inside, by_sound, hop)?;
        let (player, slots) = match analysis {
            None => (Player::Notes, voices.slots()),
            Some(analysis) => {
                let heard = VecDeque::with_capacity(stream.most_heard().div_ceil(hop) + 8);
                (Player::Sound { analysis, heard, followed: None, rest: Rest::new(rate, hop) }, 1)
            }
        };
        let hop_s = hop as f64 / rate;
        let mut part = Self {
            stream,
            ports: Ports::new(knobs, names, hop_s),
            performance,
            player,
            voices,
            room: Smoothed::new(1.0),
            brightness: Smoothed::new(0.0),
            transposed: 0.0,
            transpose: Smoothed::new(0.0),
            left: left_after(hop_s),
            score: Score {
                frames: vec![VoiceFrame::SILENT; slots],
                sounding: 0,
                brightness: 0.0,
                room: (1.0, 1.0),
                mute: false,
            },
        };
        part.open(&Start { at: 0, seed: options.seed, transpose: options.transpose });
        Ok(part)
    }

    pub fn slots(&self) -> usize {
        self.score.frames.len()
    }

    /// Never rests: what a test compares with.
    #[cfg(test)]
    pub fn forbid_rest(&mut self) {
        if let Player::Sound { rest, .. } = &mut self.player {
            rest.forbid();
        }
    }

    /// Follows a cue, whose time at the model's rate has come.
    fn act(&mut self, at: u64, action: Action) {
        match action {
            Action::Play(_) => {}
            Action::Control { id, value } => self.turn(id, value),
            Action::Transport(transport) => self.ports.follow(at, transport),
        }
    }

    /// Points a knob elsewhere.
    fn turn(&mut self, id: ControlId, value: f32) {
        let at_once = self.stream.is_fresh();
        if id == TRANSPOSE
            && let Some(semitones) = PlayingControl::of(id).and_then(|control| control.held(value))
        {
            self.transpose.set(semitones, at_once);
        }
        if let Some((index, value)) = self.ports.turn(id, value, at_once) {
            self.aim(index, value);
        }
    }

    /// Sets what a knob changes besides ports.
    fn aim(&mut self, knob: usize, value: f32) {
        let at_once = self.stream.is_fresh();
        match self.ports.knobs()[knob].target {
            Some(Target::Room) => self.room.set(value, at_once),
            Some(Target::Brightness) => self.brightness.set(value, at_once),
            Some(Target::Performance(field)) => {
                *field(&mut self.performance) = value;
                self.voices.set_performance(&self.performance);
            }
            None => {}
        }
    }
}

impl Seat for Part {
    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    fn open(&mut self, start: &Start) {
        self.stream.open(start.at);
        self.voices.restart(start.seed);
        (self.transposed, self.transpose) = (start.transpose, Smoothed::new(0.0));
        if let Player::Sound { analysis, heard, followed, rest } = &mut self.player {
            analysis.reset();
            heard.clear();
            *followed = None;
            rest.reset();
        }
        self.score.sounding = 0;
        self.ports.reset();
        for knob in 0..self.ports.knobs().len() {
            self.aim(knob, self.ports.knobs()[knob].control.default);
        }
    }

    fn handle(&mut self, cue: Cue) -> Result<(), CueFull> {
        let at = self.stream.model_time(cue.at);
        let by_notes = matches!(self.player, Player::Notes);
        match cue.action {
            Action::Play(kind) if by_notes => return self.voices.handle(&Event { at, kind }).map_err(|_| CueFull(cue)),
            // Nobody plays them.
            Action::Play(_) => return Ok(()),
            _ if self.stream.is_full() => return Err(CueFull(cue)),
            Action::Control { id, value } if by_notes => {
                if let Some(setting) = setting(id, value) {
                    // It keeps its place among the notes.
                    self.voices.set(at, setting).map_err(|_| CueFull(cue))?;
                }
            }
            _ => {}
        }
        self.stream.push(at, cue.action);
        Ok(())
    }

    fn take(&mut self, input: &[f32], length: usize, mute: bool) {
        self.stream.advance(length);
        self.score.mute = mute;
        if let Player::Sound { analysis, heard, .. } = &mut self.player {
            self.stream.hear(input, length, |samples| analysis.push(samples, |frame| heard.push_back(frame)));
        }
    }

    /// [`Part::score`] then says which hop it is.
    fn next(&mut self) -> bool {
        let at = self.stream.at();
        let frame = match &mut self.player {
            // All events before the samples played so far are known, and so are all frames before them.
            Player::Notes if self.stream.has_passed() => None,
            Player::Notes => return false,
            Player::Sound { heard, .. } => match heard.pop_front() {
                Some(frame) => Some(frame),
                None => return false,
            },
        };
        while let Some((when, action)) = self.stream.next_due() {
            self.act(when, action);
        }
        let transposition = self.transposed + self.transpose.step(self.left);
        self.voices.set_transposition(transposition);
        let brightness = self.brightness.step(self.left);
        let mut turned = brightness.to_bits() != std::mem::replace(&mut self.score.brightness, brightness).to_bits();
        turned |= self.ports.step(at, |samples| self.stream.seconds(samples));
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
        self.score.room = (start, self.room.step(self.left));
        self.stream.step();
        true
    }

    fn deliver(&mut self) {
        self.stream.check();
        if let Player::Sound { rest, .. } = &mut self.player {
            rest.made((!self.score.mute).then_some(&self.stream.sound));
        }
        self.stream.deliver(self.stream.sound.len());
    }

    fn followed(&self) -> Option<Followed> {
        let Player::Sound { followed: Some(AnalysisFrame { pitch, loudness }), .. } = self.player else { return None };
        Some(Followed { pitch: pitch.voiced.then_some(pitch.semitones), loudness_db: loudness })
    }

    fn sounding(&self) -> usize {
        self.score.sounding
    }

    fn notes_dropped(&self) -> u64 {
        self.voices.notes_dropped()
    }
}
