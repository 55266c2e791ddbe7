//! An instance on the audio thread: a session, with the dry signal beside it and the signal chain
//! around it.

use std::sync::Arc;

use ondes_engine::chain::{Chain, ChainSettings};
use ondes_engine::dsp::delay_line::DelayLine;
use ondes_engine::dsp::level::{copy_limited, peak};
use ondes_engine::dsp::ramp::Ramp;
use ondes_engine::instrument::{EventKind, KeyTuning};
use ondes_engine::model::card::Levels;
use ondes_engine::panics::contain;
use ondes_engine::pipeline::{Action, ENDLESS, Transport};
use ondes_engine::realtime::{BlockCommand, Session, Setup};
use ondes_engine::rig::blocks::{Blocks, Side};

use crate::instance::InstanceHandle;
use crate::macros::{ControlMapping, MACRO_CENTRE, RELEASE_CONTROL};
use crate::player_parameters::PlayerParameters;
use crate::tail_tracker::{AUDIBLE, FADE_S, TailTracker};

/// Time of gain ramps, seconds.
const RAMP_S: f64 = 0.010;
/// Song positions this close to the expected one, in beats, count as continuous playback.
const SONG_TOLERANCE_BEATS: f64 = 1e-3;
/// Tempo where the host tells none, quarter notes a minute.
const TEMPO: f32 = 120.0;
/// Capacity for commands of one block; if there are more, the session takes the first ones early.
const MAX_COMMANDS: usize = 2048;

/// Plays a session and mixes it with the dry signal, which is delayed by the session's latency.
/// Allocates only on construction.
pub struct Player {
    session: Session,
    instance: Arc<InstanceHandle>,
    mapping: Box<ControlMapping>,
    /// Levels from the card of the model that plays.
    levels: Levels,
    /// Parameters that the session has received.
    parameters: PlayerParameters,
    /// Tuning that the session has received.
    tuning: KeyTuning,
    transport: Option<Transport>,
    /// Samples since `transport` was received.
    since_transport: usize,
    tail: TailTracker,
    commands: Vec<BlockCommand>,
    /// `[channel][frame]`
    input: [Vec<f32>; 2],
    /// `[channel][frame]`: the input before its gain, delayed by the latency.
    dry: [Vec<f32>; 2],
    channels: usize,
    /// `[channel][frame]`: the track, if the input is a side-chain.
    track: [Vec<f32>; 2],
    has_track: bool,
    dry_delay: DryDelay,
    chain: Chain,
    /// Blocks before and after the model with its chain.
    blocks: Blocks,
    /// `[channel][frame]`: output of the model and the chain.
    wet: [Vec<f32>; 2],
    input_gain: Ramp,
    wet_gain: Ramp,
    dry_gain: Ramp,
    /// Mutes everything while the tuner is open, if its user has chosen that.
    tuner_gain: Ramp,
    /// Mutes the model's output after a reset or a panic.
    gate: Ramp,
    /// Samples for which the output stays muted: until tails have ended or a note is played.
    closed_samples: usize,
    /// Input opens the gate as well.
    opens_on_input: bool,
    sample_rate: u32,
    /// A block has panicked.
    has_failed: bool,
}

/// Delay of the dry signal. Allocates only on construction.
pub struct DryDelay {
    latency: usize,
    delays: [DelayLine; 2],
}

impl DryDelay {
    /// Creates a delay by `latency` host samples.
    #[must_use]
    pub fn new(latency: usize) -> Self {
        Self {
            latency,
            delays: [DelayLine::new(latency), DelayLine::new(latency)],
        }
    }

    fn run(&mut self, input: [&[f32]; 2], output: [&mut [f32]; 2]) {
        for ((delay, input), output) in self.delays.iter_mut().zip(input).zip(output) {
            for (output, input) in output.iter_mut().zip(input) {
                delay.push(*input);
                *output = delay.at(self.latency);
            }
        }
    }
}

impl Player {
    /// Creates a player for a session that has just started.
    #[must_use]
    pub fn new(
        session: Session,
        instance: Arc<InstanceHandle>,
        setup: Setup,
        parameters: &PlayerParameters,
    ) -> Self {
        let mut blocks = instance.rig_handover.start(setup);
        blocks.turn(parameters.macros);
        blocks.set(TEMPO);
        blocks.reset();
        let latency = session.latency_samples() + blocks.latency_samples();
        instance.monitor.begin(setup.sample_rate);
        instance.clear_playback_failure();
        let block = || vec![0.0; setup.max_block];
        let ramp = |value| Ramp::new(value, RAMP_S, setup.sample_rate);
        let (wet, dry) = gains(parameters);
        let mapping = Box::new(instance.control_mapping());
        let tail = TailTracker::new(setup.sample_rate, instance.audio.release_ms());
        let mut chain = Chain::new(setup.sample_rate, setup.max_block);
        if let Some(cabinet) = instance.cabinet_handover.start(setup.sample_rate) {
            drop(chain.cabinet_slot().replace(cabinet));
        }
        let levels = session.active_levels().unwrap_or_default();
        chain.set(&chain_settings(parameters, levels));
        chain.reset();
        drop(chain.cabinet_slot().take_retired());
        let mut player = Self {
            session,
            instance,
            mapping,
            levels,
            parameters: *parameters,
            tuning: KeyTuning::default(),
            transport: None,
            since_transport: 0,
            tail,
            commands: Vec::with_capacity(MAX_COMMANDS),
            input: [block(), block()],
            dry: [block(), block()],
            channels: 0,
            track: [block(), block()],
            has_track: false,
            dry_delay: DryDelay::new(latency),
            chain,
            blocks,
            wet: [block(), block()],
            input_gain: ramp(parameters.input_gain),
            wet_gain: ramp(wet),
            dry_gain: ramp(dry),
            tuner_gain: ramp(1.0),
            gate: ramp(1.0),
            closed_samples: 0,
            opens_on_input: false,
            sample_rate: setup.sample_rate,
            has_failed: false,
        };
        // The parameters may have changed since the model was loaded with them.
        player.apply_parameters(parameters, true);
        let tuning = player.instance.tuning_handover.current();
        player.tune(&tuning);
        player
    }

    /// Runs the work of a block on this player. After a panic, which is a bug, it [has
    /// failed](Self::has_failed).
    pub fn contain(&mut self, block: impl FnOnce(&mut Self)) {
        if !self.has_failed
            && let Err(reason) = contain(|| block(self))
        {
            self.fail(reason);
        }
    }

    /// Ends this player after a panic; the instance's [status](InstanceHandle::status) has the
    /// reason.
    pub fn fail(&mut self, reason: String) {
        self.has_failed = true;
        self.instance.audio.report_failure(reason);
    }

    /// Returns whether a block has panicked; the caller then outputs silence, and uses the player
    /// no more.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the delay of the dry signal in host samples: the latency of session and blocks at
    /// construction, or that of the last [`swap_dry_delay`](Self::swap_dry_delay).
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.dry_delay.latency
    }

    /// Replaces the delay of the dry signal if the latency differs; the old one is left in `dry`.
    /// For a session that goes on after its latency has changed.
    pub fn swap_dry_delay(&mut self, dry: &mut DryDelay) {
        if dry.latency != self.dry_delay.latency {
            std::mem::swap(dry, &mut self.dry_delay);
        }
    }

    /// Returns whether the latency of session or blocks has changed, so that the host must restart to learn of
    /// it.
    #[must_use]
    pub fn latency_changed(&self) -> bool {
        let latency = self.session.latency_samples() + self.blocks.latency_samples();
        latency != self.dry_delay.latency
    }

    /// Returns the length of the tail after all notes and input have ended, in host samples;
    /// [`ENDLESS`] if the model plays by itself.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        self.tail_after_model()
            .saturating_add(self.tail.tail_samples())
    }

    /// Returns the length of the tail after the model is silent, in host samples.
    fn tail_after_model(&self) -> usize {
        self.session
            .tail_samples()
            .saturating_add(self.dry_delay.latency + self.chain.tail_samples())
            .saturating_add(self.blocks.tail_samples())
    }

    /// Returns whether nothing sounds, and nothing will until the next note or input.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.tail.is_silent()
    }

    /// Silences everything from the next sample on, until a note is played or input arrives.
    pub fn reset(&mut self, parameters: &PlayerParameters) {
        self.silence(parameters);
        self.opens_on_input = true;
        if self.closed_samples > 0 {
            self.gate.jump(0.0);
        }
    }

    /// Ends all notes and fades out everything, tails included. A model that plays by itself begins
    /// anew.
    fn silence(&mut self, parameters: &PlayerParameters) {
        self.session.reset();
        self.instance.monitor.clear_notes();
        let tail = self.tail_after_model();
        if self.tail.is_audible() && tail != ENDLESS {
            let fade = (FADE_S * self.sample_rate as f32) as usize;
            self.closed_samples = fade + tail;
            self.opens_on_input = false;
            self.gate.set_target(0.0);
        }
        self.tail.release_all();
        self.dry_delay.delays.iter_mut().for_each(DelayLine::reset);
        let (wet, dry) = gains(parameters);
        self.chain.reset();
        self.blocks.reset();
        self.input_gain.jump(parameters.input_gain);
        self.wet_gain.jump(wet);
        self.dry_gain.jump(dry);
    }

    /// Begins a block with these parameters.
    pub fn begin_block(&mut self, parameters: &PlayerParameters) {
        if self.instance.monitor.take_panic() || parameters.panic && !self.parameters.panic {
            self.silence(parameters);
        }
        let steps = parameters.scene_steps.into_iter().zip([1, -1]);
        for ((is_on, step), was_on) in steps.zip(self.parameters.scene_steps) {
            if is_on && !was_on {
                self.instance.audio.step_scene(step);
            }
        }
        let all =
            self.instance.audio.receive_mapping(&mut self.mapping) | self.session.take_building();
        self.apply_parameters(parameters, all);
        let (wet, dry) = gains(parameters);
        self.input_gain.set_target(parameters.input_gain);
        self.wet_gain.set_target(wet);
        self.dry_gain.set_target(dry);
        if let Some(levels) = self.session.active_levels() {
            self.levels = levels;
        }
        self.chain.set(&chain_settings(parameters, self.levels));
        self.instance
            .cabinet_handover
            .exchange(self.chain.cabinet_slot());
        self.instance.rig_handover.exchange(&mut self.blocks);
        let tempo = self.transport.map_or(TEMPO, |transport| transport.tempo);
        self.blocks.turn(parameters.macros);
        self.blocks.set(tempo);
        if let Some(tuning) = self.instance.tuning_handover.receive() {
            self.tune(&tuning);
        }
        self.channels = 0;
        self.has_track = false;
        while let Some(kind) = self.instance.monitor.next_key() {
            self.handle_event(0, kind);
        }
    }

    /// Tunes the keys whose pitches change, for the notes that start from now on.
    fn tune(&mut self, tuning: &KeyTuning) {
        let before = std::mem::replace(&mut self.tuning, *tuning);
        for key in (0..128).filter(|&key| tuning.pitch(key) != before.pitch(key)) {
            let kind = EventKind::KeyPitch {
                key,
                pitch: tuning.pitch(key),
            };
            self.push_command(0, Action::Play(kind));
        }
    }

    fn apply_parameters(&mut self, parameters: &PlayerParameters, all: bool) {
        let previous = std::mem::replace(&mut self.parameters, *parameters);
        if *parameters != previous || all {
            self.tail.restart();
        }
        if all {
            // If no macro turns the model's release, it may be the model's own or the last value
            // that was set.
            self.tail
                .set_release(self.tail.release_ms().max(self.instance.audio.release_ms()));
        }
        for ((id, value), before) in parameters
            .notes
            .controls()
            .into_iter()
            .zip(previous.notes.controls())
        {
            if (id, value) != before || all {
                self.push_command(0, Action::Control { id, value });
            }
        }
        if all {
            for index in 0..self.mapping.latents.len() {
                let (id, value) = self.mapping.latents[index];
                self.push_command(0, Action::Control { id, value });
            }
        }
        // The last command takes precedence: macros over latent knobs, and moved macros over
        // centred ones.
        for moved in [false, true] {
            for ((turned, before), position) in self
                .mapping
                .macros
                .into_iter()
                .zip(previous.macros)
                .zip(parameters.macros)
            {
                let is_due = (position != MACRO_CENTRE) == moved && (position != before || all);
                if let Some((id, range)) = turned.filter(|_| is_due) {
                    let value = range.value(position);
                    if id == RELEASE_CONTROL {
                        self.tail.set_release(value);
                    }
                    self.push_command(0, Action::Control { id, value });
                }
            }
        }
    }

    /// Sets the host's transport at the block's first sample. Ignored if playback simply continues.
    pub fn set_transport(&mut self, transport: Transport) {
        let goes_on = self.song().is_some_and(|expected| {
            (transport.tempo, transport.playing) == (expected.tempo, expected.playing)
                && (transport.position - expected.position).abs() < SONG_TOLERANCE_BEATS
        });
        if !goes_on {
            self.push_command(0, Action::Transport(transport));
            (self.transport, self.since_transport) = (Some(transport), 0);
        }
    }

    /// Returns the song at the block's first sample, if the host tells of one.
    fn song(&self) -> Option<Transport> {
        let song = self.transport?;
        let seconds = self.since_transport as f64 / f64::from(self.sample_rate);
        let beats = seconds * f64::from(song.tempo) / 60.0;
        let moved = if song.playing { beats } else { 0.0 };
        Some(Transport {
            position: song.position + moved,
            ..song
        })
    }

    /// Handles an event at a sample of the block; events must be in order.
    pub fn handle_event(&mut self, offset: usize, kind: EventKind) {
        self.instance.monitor.handle_event(&kind);
        self.tail.handle_event(&kind);
        if matches!(kind.without_id().0, EventKind::NoteOn { .. }) {
            self.closed_samples = 0;
        }
        self.push_command(offset, Action::Play(kind));
    }

    fn push_command(&mut self, offset: usize, action: Action) {
        if self.commands.len() == MAX_COMMANDS {
            // Too many commands for one block: applying them early is better than dropping them.
            self.session.process(&self.commands, &[], &mut []);
            self.commands.clear();
        }
        let offset = self
            .commands
            .last()
            .map_or(offset, |last| last.offset.max(offset));
        self.commands.push(BlockCommand { offset, action });
    }

    /// Sets the block's input, one or two channels, limited to
    /// [`SAMPLE_LIMIT`](ondes_engine::dsp::level::SAMPLE_LIMIT). Non-finite samples count as
    /// silence.
    pub fn set_input(&mut self, channels: &[&mut [f32]]) {
        self.channels = channels.len().min(2);
        copy_channels(channels, &mut self.input);
    }

    /// Sets the block's dry signal, one or two channels, if the input is a side-chain.
    pub fn set_track(&mut self, channels: &[&mut [f32]]) {
        self.has_track = true;
        copy_channels(channels, &mut self.track);
        if let ([_], [left, right]) = (channels, &mut self.track) {
            right.copy_from_slice(left);
        }
    }

    /// Processes the block.
    pub fn process(&mut self, output: &mut [&mut [f32]]) {
        let frames = output
            .iter()
            .map(|channel| channel.len())
            .min()
            .unwrap_or(0)
            .min(self.wet[0].len());
        if let Some(song) = self.song() {
            self.blocks.follow(&song);
        }
        let [left, right] = &mut self.input;
        let (left, right) = (&mut left[..frames], &mut right[..frames]);
        match self.channels {
            0 => {
                left.fill(0.0);
                right.fill(0.0);
            }
            1 => right.copy_from_slice(left),
            _ => {}
        }
        if self.channels > 0 {
            let channels: [&[f32]; 2] = [left, right];
            self.instance.tuner.record(&channels[..self.channels]);
        }
        // An offline render is never muted.
        let muted = self.instance.tuner.mutes_output() && !self.session.is_offline();
        self.tuner_gain.set_target(if muted { 0.0 } else { 1.0 });
        let [dry_left, dry_right] = &mut self.dry;
        let [track_left, track_right] = &self.track;
        let track: [&[f32]; 2] = if self.has_track {
            [&track_left[..frames], &track_right[..frames]]
        } else {
            [left, right]
        };
        self.dry_delay
            .run(track, [&mut dry_left[..frames], &mut dry_right[..frames]]);
        for (left, right) in left.iter_mut().zip(right.iter_mut()) {
            let gain = self.input_gain.advance();
            *left *= gain;
            *right *= gain;
        }
        let [wet, other] = &mut self.wet;
        let (wet, other) = (&mut wet[..frames], &mut other[..frames]);
        if self.channels == 0 {
            self.blocks.rest(Side::Before);
            self.session.process(&self.commands, &[], &mut [wet, other]);
        } else {
            self.blocks.process(Side::Before, left, right);
            self.chain.process_input(&mut [left, right]);
            self.session
                .process(&self.commands, &[left, right], &mut [wet, other]);
        }
        self.chain
            .process_output(wet, other, self.session.is_stereo());
        self.blocks.process(Side::After, wet, other);
        self.commands.clear();
        self.since_transport += frames;
        let input = &self.input[..self.channels];
        let input_peak = input
            .iter()
            .map(|channel| peak(&channel[..frames]))
            .fold(0.0, f32::max);
        if self.closed_samples == 0 || self.opens_on_input && input_peak > AUDIBLE {
            self.closed_samples = 0;
            self.gate.set_target(1.0);
        }
        self.closed_samples = self.closed_samples.saturating_sub(frames);
        // A mono output carries the mean of both sides.
        let is_stereo = self.chain.is_stereo() || !self.blocks.is_empty(Side::After);
        let fold = output.len() == 1 && is_stereo;
        let [wet_left, wet_right] = &self.wet;
        for (frame, (left, right)) in wet_left[..frames].iter().zip(wet_right).enumerate() {
            let (wet_gain, dry_gain) = (
                self.wet_gain.advance() * self.gate.advance(),
                self.dry_gain.advance(),
            );
            let tuner_gain = self.tuner_gain.advance();
            let left = if fold { 0.5 * (left + right) } else { *left };
            let sides = [(left, dry_left[frame]), (*right, dry_right[frame])];
            for (channel, (wet, dry)) in output.iter_mut().zip(sides) {
                channel[frame] = tuner_gain * (wet_gain * wet + dry_gain * dry);
            }
        }
        let inputs = [&self.input[0][..frames], &self.input[1][..frames]];
        let inputs = &inputs[..self.channels];
        self.instance.monitor.record(inputs, output);
        let output_peaks = output.iter().map(|channel| peak(&channel[..frames]));
        let loudest = output_peaks.fold(input_peak, f32::max);
        let tail = self.tail_after_model();
        self.tail.advance(frames, loudest, self.channels > 0, tail);
    }
}

/// Copies channels, limited to the range of samples.
fn copy_channels(channels: &[&mut [f32]], to: &mut [Vec<f32>; 2]) {
    to.iter_mut()
        .zip(channels)
        .for_each(|(stored, channel)| copy_limited(channel, stored));
}

/// Returns the settings of the chain around a model with these levels.
fn chain_settings(parameters: &PlayerParameters, levels: Levels) -> ChainSettings {
    ChainSettings {
        gains_db: parameters.calibration.gains_db(levels),
        ..parameters.chain
    }
}

/// Returns the gains of the wet and the dry signal.
fn gains(parameters: &PlayerParameters) -> (f32, f32) {
    if parameters.bypass {
        return (0.0, 1.0);
    }
    (
        parameters.mix * parameters.output_gain,
        (1.0 - parameters.mix) * parameters.input_gain * parameters.output_gain,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_as_long_as_it_says_in_any_blocks() {
        for samples in [0, 1, 5, 64] {
            let mut delay = DryDelay::new(samples);
            let input: Vec<f32> = (1..=100).map(|n| n as f32).collect();
            let (mut output, mut other) = (vec![0.0; 100], vec![0.0; 100]);
            let outputs = output.chunks_mut(7).zip(other.chunks_mut(7));
            for (input, (output, other)) in input.chunks(7).zip(outputs) {
                delay.run([input, input], [output, other]);
            }
            assert_eq!(output, other);
            assert!(output[..samples].iter().all(|sample| *sample == 0.0));
            assert_eq!(output[samples..], input[..100 - samples]);
        }
    }
}
