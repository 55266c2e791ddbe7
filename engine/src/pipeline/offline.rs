//! Builds playable models, and a pipeline with one session for offline rendering.

use super::controls::controls;
use super::options::{PipelineError, PipelineOptions};
use super::playable::{
    Action, CommandQueueFull, ControlId, ENDLESS, Playable, ProcessRequest, SessionStart,
    TimedCommand, Transport,
};
use super::timeline::CHUNK;
use super::{codec, effect, instrument};
use crate::instrument::{Event, QueueFull};
use crate::model::{Control, Kind, Model};

/// Checks that a model has what its kind needs and that the options fit it, without building
/// anything.
///
/// # Errors
/// Returns [`PipelineError`] if the model cannot be played with these options. Errors of the
/// executor and of the sample rate come from [`build_playable`].
pub fn validate(model: &Model, options: &PipelineOptions) -> Result<(), PipelineError> {
    match model.header().kind {
        Kind::Instrument => instrument::Methods::new(model, options).map(drop),
        Kind::Effect => effect::check(model, options).map(drop),
        Kind::Codec | Kind::Generator => Ok(codec::Methods::new(model).map(drop)?),
    }
}

/// Makes a model playable at the host's rate, for [`PipelineOptions::sessions`] sessions.
///
/// # Errors
/// Returns [`PipelineError`] if the model cannot be played with these options.
///
/// # Panics
/// Panics if `options.sessions` is 0.
pub fn build_playable(
    model: &Model,
    options: &PipelineOptions,
) -> Result<Box<dyn Playable>, PipelineError> {
    assert!(options.sessions > 0, "a batch needs at least one session");
    Ok(match model.header().kind {
        Kind::Instrument => Box::new(instrument::build(model, options)?),
        Kind::Effect => Box::new(effect::build(model, options)?),
        Kind::Codec | Kind::Generator => Box::new(codec::build(model, options)?),
    })
}

/// A model made playable at the host's rate for one session, with controls addressed by name. Used
/// for offline rendering.
///
/// After [`Pipeline::new`] only the errors of [`Pipeline::set_control`] allocate.
///
/// # Examples
///
/// Renders half a second of a note; the output starts [`Pipeline::latency_samples`] late.
///
/// ```
/// use ondes_engine::instrument::{Event, EventKind};
/// use ondes_engine::model::file;
/// use ondes_engine::pipeline::{Pipeline, PipelineOptions};
///
/// let model = file::read("../assets/models/plucked.ondes".as_ref())?;
/// let mut pipeline = Pipeline::new(&model, &PipelineOptions::default())?;
/// pipeline.set_control("room", 0.5)?;
/// pipeline.handle(Event { at: 0, kind: EventKind::NoteOn { channel: 0, key: 57, velocity: 0.8 } })?;
/// let mut output = vec![0.0; 24_000];
/// pipeline.process(&[], &mut output);
/// assert!(output[pipeline.latency_samples()..].iter().any(|sample| sample.abs() > 0.01));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pipeline {
    controls: Vec<Control>,
    playable: Box<dyn Playable>,
    start: SessionStart,
    /// Second channel, where it is mixed to mono.
    right: Vec<f32>,
}

impl Pipeline {
    /// Makes a model playable.
    ///
    /// # Errors
    /// Returns [`PipelineError`] if the model cannot be played with these options.
    pub fn new(model: &Model, options: &PipelineOptions) -> Result<Self, PipelineError> {
        let playable = build_playable(
            model,
            &PipelineOptions {
                sessions: 1,
                ..*options
            },
        )?;
        let start = SessionStart {
            at: 0,
            seed: options.seed,
            transpose: options.transpose,
        };
        Ok(Self {
            controls: controls(model.header()),
            playable,
            start,
            right: vec![0.0; CHUNK],
        })
    }

    /// Resets everything, as if newly built, without allocating.
    pub fn restart(&mut self) {
        self.playable.open(0, &self.start);
    }

    /// Returns the delay from an event or an input sample to its effect at the output, in host
    /// samples.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.playable.latency_samples()
    }

    /// Returns how long the output continues after the last voice or the end of the input, in host
    /// samples; 0 for a model that plays by itself, which has no end.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        match self.playable.tail_samples() {
            ENDLESS => 0,
            tail => tail,
        }
    }

    /// Returns the name of the executor, such as `native avx2`.
    #[must_use]
    pub fn executor(&self) -> String {
        self.playable.executor()
    }

    /// Returns the number of voices that sounded in the last hop.
    #[must_use]
    pub fn sounding(&self) -> usize {
        self.playable.stats(0).voices
    }

    /// Returns the number of notes that got no voice, not even by stealing.
    #[must_use]
    pub fn notes_dropped(&self) -> u64 {
        self.playable.stats(0).notes_dropped
    }

    /// Returns the number of samples that were due before the model had made them; not 0 only if
    /// the stated latency is wrong.
    #[must_use]
    pub fn samples_missing(&self) -> u64 {
        self.playable.stats(0).samples_missing
    }

    /// Returns the latents that a codec decoded last, after scale, offset and hold; empty for other
    /// kinds.
    #[must_use]
    pub fn latents(&self) -> &[f32] {
        self.playable.latents(0)
    }

    /// Returns the bytes of the executors' weights, states and buffers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.playable.bytes()
    }

    /// Sets a control from the next frame on, smoothed unless nothing has been processed yet.
    /// Controls of notes affect later notes.
    ///
    /// # Errors
    /// Returns [`PipelineError`] if the control is unknown, the value is out of range, or too many
    /// changes are waiting.
    pub fn set_control(&mut self, name: &str, value: f32) -> Result<(), PipelineError> {
        let Some(control) = self.controls.iter().find(|control| control.name == name) else {
            let known: Vec<&str> = self
                .controls
                .iter()
                .map(|control| control.name.as_str())
                .collect();
            return Err(PipelineError::UnknownControl {
                name: name.into(),
                known: known.join(", "),
            });
        };
        if !(control.min..=control.max).contains(&value) {
            return Err(PipelineError::ControlRange {
                name: name.into(),
                value,
                min: control.min,
                max: control.max,
                unit: control.unit.clone(),
            });
        }
        let action = Action::Control {
            id: ControlId::new(name),
            value,
        };
        let at = self.playable.stats(0).now;
        Ok(self.playable.handle(0, TimedCommand { at, action })?)
    }

    /// Sets tempo and position of the song from now on.
    ///
    /// # Errors
    /// Returns [`CommandQueueFull`] if too many changes are waiting; process some samples first.
    pub fn set_transport(&mut self, transport: Transport) -> Result<(), CommandQueueFull> {
        let at = self.playable.stats(0).now;
        self.playable.handle(
            0,
            TimedCommand {
                at,
                action: Action::Transport(transport),
            },
        )
    }

    /// Queues an event at its time, in host samples since the start. Events come in the order of
    /// their times, ahead of time or late; a late one happens as soon as possible.
    ///
    /// # Errors
    /// Returns [`QueueFull`] if too many events are waiting; process some samples first.
    pub fn handle(&mut self, event: Event) -> Result<(), QueueFull> {
        let command = TimedCommand {
            at: event.at,
            action: Action::Play(event.kind),
        };
        self.playable
            .handle(0, command)
            .map_err(|_| QueueFull(event))
    }

    /// Returns the number of output channels: 2 for an effect or a codec with
    /// [`InputChannels::Stereo`] and for an instrument with a stereo room, else 1.
    ///
    /// [`InputChannels::Stereo`]: super::InputChannels::Stereo
    #[must_use]
    pub fn channels(&self) -> usize {
        self.playable.channels()
    }

    /// Returns the number of input channels: 2 for an effect or a codec with
    /// [`InputChannels::Stereo`], else 1.
    ///
    /// [`InputChannels::Stereo`]: super::InputChannels::Stereo
    #[must_use]
    pub fn input_channels(&self) -> usize {
        self.playable.input_channels()
    }

    /// Processes a block of any length of one channel; a stereo instrument is mixed to mono. The
    /// input has the output's length, or is empty for instruments that notes play and for silence.
    ///
    /// # Panics
    /// Panics if input and output differ in length, or the pipeline has two [input
    /// channels](Pipeline::input_channels).
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) {
        assert!(
            input.is_empty() || input.len() == output.len(),
            "input and output must be equally long"
        );
        assert!(
            self.input_channels() == 1,
            "a stereo pipeline needs both channels"
        );
        if self.channels() == 1 {
            return self
                .playable
                .process(&mut [ProcessRequest::mono(0, input, output)]);
        }
        for (index, left) in output.chunks_mut(CHUNK).enumerate() {
            let right = &mut self.right[..left.len()];
            let input = if input.is_empty() {
                input
            } else {
                &input[index * CHUNK..][..left.len()]
            };
            let request = ProcessRequest {
                slot: 0,
                input: [input, &[]],
                output: [&mut *left, &mut *right],
                mute: false,
            };
            self.playable.process(&mut [request]);
            left.iter_mut()
                .zip(right)
                .for_each(|(left, right)| *left = 0.5 * (*left + *right));
        }
    }

    /// Processes a block of any length of both channels, `[channel][frame]`. Input channels have
    /// the output's length, or are both empty for silence.
    ///
    /// # Panics
    /// Panics if input and output differ in length, or the pipeline has one
    /// [channel](Pipeline::channels).
    pub fn process_stereo(&mut self, input: [&[f32]; 2], output: [&mut [f32]; 2]) {
        let frames = output[0].len();
        let fits = |input: &&[f32]| input.is_empty() || input.len() == frames;
        assert!(
            input.iter().all(fits) && output[1].len() == frames,
            "input and output must be equally long"
        );
        assert!(self.channels() == 2, "a mono pipeline has one channel");
        self.playable.process(&mut [ProcessRequest {
            slot: 0,
            input,
            output,
            mute: false,
        }]);
    }
}
