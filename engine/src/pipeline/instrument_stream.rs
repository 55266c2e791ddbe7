//! One session's own part of an instrument: notes or audio input become control frames for the
//! network.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::SessionStream;
use super::control_ports::{ControlBinding, ControlPorts, Smoothed, remaining_after};
use super::controls::{PerformanceControl, TRANSPOSE, Target, voice_setting};
use super::options::{ControlSource, PipelineError, PipelineOptions};
use super::playable::{
    Action, CommandQueueFull, ControlId, InputAnalysis, SessionStart, TimedCommand,
};
use super::silence_detector::{NetworkActivity, SilenceDetector};
use super::timeline::{ModelDelays, Timeline};
use crate::dsp::analysis::{Analysis, AnalysisFrame};
use crate::dsp::loudness::FLOOR_DB;
use crate::instrument::{Event, Performance, VoiceFrame, Voices};
use crate::model::{Header, Method};

/// Makes the control frames of one session.
pub(super) struct InstrumentStream {
    pub timeline: Timeline,
    pub ports: ControlPorts,
    performance: Performance,
    input: FrameSource,
    voices: Voices,
    room: Smoothed,
    brightness: Smoothed,
    width: Smoothed,
    /// Transposition at the start, in semitones.
    initial_transposition: f32,
    /// Transposition by the control, in semitones.
    transposition: Smoothed,
    /// Factor by which the distance to a target shrinks per hop.
    remaining: f32,
    /// Control values of the next hop.
    pub controls: HopControls,
}

/// Control values that the network needs for one hop.
pub(super) struct HopControls {
    /// `[voice]`
    pub frames: Vec<VoiceFrame>,
    /// Number of sounding voices.
    pub sounding: usize,
    /// Loudness in dB that is added for the network and removed from its output.
    pub brightness: f32,
    /// Level of the reverberation at the start and at the end of the hop.
    pub room: (f32, f32),
    /// [`Performance::width`] at the start and at the end of the hop.
    pub width: (f32, f32),
    /// Skips the network.
    pub mute: bool,
}

/// Source of the control frames.
enum FrameSource {
    Notes,
    AudioInput {
        analysis: Box<Analysis>,
        /// Frames of the input that are not played yet.
        pending: VecDeque<AnalysisFrame>,
        /// The last frame that was played.
        current: Option<AnalysisFrame>,
        silence: SilenceDetector,
    },
}

impl InstrumentStream {
    /// Creates a stream for the method `synth` with `outputs` channels; `port_names` are those of
    /// its inputs besides pitch and loudness.
    ///
    /// # Errors
    /// Returns [`PipelineError`] if the sample rates cannot be converted.
    pub fn new(
        header: &Header,
        synth: &Method,
        port_names: &[String],
        bindings: &Arc<[ControlBinding]>,
        outputs: usize,
        options: &PipelineOptions,
    ) -> Result<Self, PipelineError> {
        let performance = header.performance.unwrap_or_default();
        let hop = synth.block;
        let sample_rate = f64::from(header.sample_rate);
        let polyphony = options.voices.unwrap_or(usize::from(performance.polyphony));
        let hop_samples = u32::try_from(hop).unwrap_or(u32::MAX);
        let voices = Voices::new(
            &performance,
            polyphony,
            sample_rate,
            hop_samples,
            options.seed,
        );
        let with_input = options.source == ControlSource::AudioInput;
        let analysis = with_input.then(|| Box::new(Analysis::low_latency(sample_rate, hop)));
        let lookahead = analysis.as_ref().map_or(0, |analysis| analysis.latency());
        let delays = ModelDelays {
            lookahead,
            delay: synth.latency_samples(),
        };
        let timeline = Timeline::new(
            options,
            header.sample_rate,
            delays,
            with_input,
            (hop, 1),
            outputs,
        )?;
        let (input, voice_count) = match analysis {
            None => (FrameSource::Notes, voices.slots()),
            Some(analysis) => {
                let pending =
                    VecDeque::with_capacity(timeline.max_model_samples().div_ceil(hop) + 8);
                let silence = SilenceDetector::new(sample_rate, hop);
                (
                    FrameSource::AudioInput {
                        analysis,
                        pending,
                        current: None,
                        silence,
                    },
                    1,
                )
            }
        };
        let hop_s = hop as f64 / sample_rate;
        let mut stream = Self {
            timeline,
            ports: ControlPorts::new(bindings, port_names, hop_s, 1),
            performance,
            input,
            voices,
            room: Smoothed::new(1.0),
            brightness: Smoothed::new(0.0),
            width: Smoothed::new(performance.width),
            initial_transposition: 0.0,
            transposition: Smoothed::new(0.0),
            remaining: remaining_after(hop_s),
            controls: HopControls {
                frames: vec![VoiceFrame::SILENT; voice_count],
                sounding: 0,
                brightness: 0.0,
                room: (1.0, 1.0),
                width: (0.0, 0.0),
                mute: false,
            },
        };
        stream.open(&SessionStart {
            at: 0,
            seed: options.seed,
            transpose: options.transpose,
        });
        Ok(stream)
    }

    /// Returns whether notes vary.
    pub fn has_life(&self) -> bool {
        self.performance.life > 0.0
    }

    /// Returns the number of voices.
    pub fn voice_count(&self) -> usize {
        self.controls.frames.len()
    }

    /// Keeps the network running, as a reference for tests.
    #[cfg(test)]
    pub fn forbid_sleep(&mut self) {
        if let FrameSource::AudioInput { silence, .. } = &mut self.input {
            silence.forbid();
        }
    }

    /// Applies a command at its time at the model's rate.
    fn apply(&mut self, at: u64, action: Action) {
        match action {
            Action::Play(_) => {}
            Action::Control { id, value } => self.set_control(id, value),
            Action::Transport(transport) => self.ports.set_transport(at, transport),
        }
    }

    fn set_control(&mut self, id: ControlId, value: f32) {
        let at_once = self.timeline.is_fresh();
        if id == TRANSPOSE
            && let Some(semitones) =
                PerformanceControl::find(id).and_then(|control| control.sanitize(value))
        {
            self.transposition.set(semitones, at_once);
        }
        if let Some((index, value)) = self.ports.set(id, value, at_once) {
            self.set_target(index, value);
        }
    }

    /// Sets the parameter, other than a port, that a control stands for.
    fn set_target(&mut self, control: usize, value: f32) {
        let at_once = self.timeline.is_fresh();
        match self.ports.bindings()[control].target {
            Some(Target::Room) => self.room.set(value, at_once),
            Some(Target::Brightness) => self.brightness.set(value, at_once),
            Some(Target::Width) => self.width.set(value, at_once),
            Some(Target::Performance(field)) => {
                *field(&mut self.performance) = value;
                self.voices.set_performance(&self.performance);
            }
            None => {}
        }
    }

    /// Fills the control frame of the coming hop from the notes, or from a frame of the audio
    /// input; `changed` says that a control input of the network has changed.
    fn fill_frames(&mut self, frame: Option<AnalysisFrame>, transposition: f32, changed: bool) {
        let (
            FrameSource::AudioInput {
                current, silence, ..
            },
            Some(frame),
        ) = (&mut self.input, frame)
        else {
            self.controls.sounding = self
                .voices
                .frame(self.timeline.hop_start(), &mut self.controls.frames);
            return;
        };
        let pitch = frame.pitch.semitones + transposition;
        let changed = changed
            || current.is_none()
            || pitch.to_bits() != self.controls.frames[0].pitch.to_bits();
        let activity = silence.step(!changed && frame.loudness <= FLOOR_DB);
        let sounding = activity != NetworkActivity::Asleep;
        self.controls.frames[0] = VoiceFrame {
            sounding,
            restarted: current.is_none(),
            pitch,
            loudness: frame.loudness,
            tilt: self.performance.tilt_db(frame.loudness),
            gain: if activity == NetworkActivity::Active {
                1.0
            } else {
                0.0
            },
            ..VoiceFrame::SILENT
        };
        self.controls.sounding = usize::from(sounding);
        *current = Some(frame);
    }
}

impl SessionStream for InstrumentStream {
    fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    fn timeline_mut(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    fn open(&mut self, start: &SessionStart) {
        self.timeline.open(start.at);
        self.voices.restart(start.seed);
        (self.initial_transposition, self.transposition) = (start.transpose, Smoothed::new(0.0));
        if let FrameSource::AudioInput {
            analysis,
            pending,
            current,
            silence,
        } = &mut self.input
        {
            analysis.reset();
            pending.clear();
            *current = None;
            silence.reset();
        }
        self.controls.sounding = 0;
        self.ports.reset();
        for index in 0..self.ports.bindings().len() {
            self.set_target(index, self.ports.bindings()[index].control.default);
        }
        self.voices.set_recorded_attack(self.performance.attack_ms);
    }

    fn handle(&mut self, command: TimedCommand) -> Result<(), CommandQueueFull> {
        let at = self.timeline.model_time(command.at);
        let from_notes = matches!(self.input, FrameSource::Notes);
        match command.action {
            Action::Play(kind) if from_notes => {
                return self
                    .voices
                    .handle(&Event { at, kind })
                    .map_err(|_| CommandQueueFull(command));
            }
            // Audio input plays the instrument; notes are ignored.
            Action::Play(_) => return Ok(()),
            _ if self.timeline.is_full() => return Err(CommandQueueFull(command)),
            Action::Control { id, value } if from_notes => {
                if let Some(setting) = voice_setting(id, value) {
                    // Through the queue of notes, to keep its order among them.
                    self.voices
                        .set(at, setting)
                        .map_err(|_| CommandQueueFull(command))?;
                }
            }
            _ => {}
        }
        self.timeline.push(at, command.action);
        Ok(())
    }

    fn take_input(&mut self, input: &[f32], length: usize, mute: bool) {
        self.timeline.advance(length);
        self.controls.mute = mute;
        if let FrameSource::AudioInput {
            analysis, pending, ..
        } = &mut self.input
        {
            let emit = |samples: &[f32]| analysis.push(samples, |frame| pending.push_back(frame));
            self.timeline.convert_input(input, length, emit);
        }
    }

    /// Fills [`InstrumentStream::controls`] for the hop.
    fn next_hop(&mut self) -> bool {
        let at = self.timeline.hop_start();
        let frame = match &mut self.input {
            // All events before the current host sample are known, and so are all frames before it.
            FrameSource::Notes if self.timeline.is_hop_due() => None,
            FrameSource::Notes => return false,
            FrameSource::AudioInput { pending, .. } => match pending.pop_front() {
                Some(frame) => Some(frame),
                None => return false,
            },
        };
        while let Some((when, action)) = self.timeline.next_due(0) {
            self.apply(when, action);
        }
        let transposition = self.initial_transposition + self.transposition.step(self.remaining);
        self.voices.set_transposition(transposition);
        let brightness = self.brightness.step(self.remaining);
        let before = std::mem::replace(&mut self.controls.brightness, brightness);
        let mut changed = brightness.to_bits() != before.to_bits();
        changed |= self
            .ports
            .step(0, at, |samples| self.timeline.seconds(samples));
        self.fill_frames(frame, transposition, changed);
        let remaining = self.remaining;
        let step = |value: &mut Smoothed| (value.value(), value.step(remaining));
        self.controls.room = step(&mut self.room);
        self.controls.width = step(&mut self.width);
        self.timeline.step();
        true
    }

    fn deliver(&mut self) {
        self.timeline.check_sound(self.timeline.sound.len());
        if let FrameSource::AudioInput { silence, .. } = &mut self.input {
            silence.record((!self.controls.mute).then_some(&self.timeline.sound));
        }
        self.timeline.deliver(self.timeline.hop());
    }

    fn input_analysis(&self) -> Option<InputAnalysis> {
        let FrameSource::AudioInput {
            current: Some(AnalysisFrame { pitch, loudness }),
            ..
        } = self.input
        else {
            return None;
        };
        Some(InputAnalysis {
            pitch: pitch.voiced.then_some(pitch.semitones),
            loudness_db: loudness,
        })
    }

    fn sounding(&self) -> usize {
        self.controls.sounding
    }

    fn notes_dropped(&self) -> u64 {
        self.voices.notes_dropped()
    }
}
