//! A track on the audio thread.

use std::sync::Arc;

use ondes_engine::instrument::{EventKind, MidiDecoder, controller};
use ondes_engine::panics::contain;
use ondes_engine::pipeline::{ControlSource, ENDLESS, Transport};
use ondes_player::instance::InstanceHandle;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::parameter_store::ParameterStore;
use ondes_player::player::{DryDelay, Player};

use super::clip::Clip;
use super::compensation_delay::CompensationDelay;
use super::fader::{Fader, ramp};
use crate::io::MidiMessage;

/// Status byte of a control change on channel 1.
const CONTROL_CHANGE: u8 = 0xB0;

/// Audio input of a strip.
#[derive(Clone)]
pub enum StripInput {
    /// No audio input.
    Nothing,
    /// Input channels of the device: the first one, and their number, 1 or 2.
    Channels(usize, usize),
    /// A recording.
    Clip(Arc<Clip>),
}

/// Instance of a track with its input, delay and fader. Allocates only on construction.
pub struct Strip {
    player: Player,
    instance: Arc<InstanceHandle>,
    parameters: Arc<ParameterStore>,
    fader: Arc<Fader>,
    routing: Box<StripRouting>,
    decoder: MidiDecoder,
    /// Scheduled events still to come, with their sample on the rack's clock.
    score: std::vec::IntoIter<(u64, EventKind)>,
    next: Option<(u64, EventKind)>,
    input_block: [Vec<f32>; 2],
    /// `[channel][frame]`: output of the last block.
    sound: [Vec<f32>; 2],
    delay: CompensationDelay,
    gains: [f32; 2],
}

/// Input and MIDI routing of a strip. It can be changed while the strip plays; sounding notes
/// continue.
pub struct StripRouting {
    /// Audio input.
    pub input: StripInput,
    /// Source of the pitch: notes or audio.
    pub source: ControlSource,
    /// MIDI channels, one bit each.
    pub midi_channels: u16,
    /// Delays the dry sound by the latency of the model.
    pub dry: DryDelay,
}

/// Parts of a new strip.
pub struct StripParts {
    /// Plays the model.
    pub player: Player,
    /// Instrument or effect of the track.
    pub instance: Arc<InstanceHandle>,
    /// Parameters of the instance.
    pub parameters: Arc<ParameterStore>,
    /// Fader of the track.
    pub fader: Arc<Fader>,
    /// Input and MIDI routing.
    pub routing: StripRouting,
    /// Events to play, in order of samples; handled as MIDI input is.
    pub score: Vec<(u64, EventKind)>,
}

impl Strip {
    /// Creates a strip for a sample rate in Hz and blocks of at most `max_block` frames.
    #[must_use]
    pub fn new(parts: StripParts, sample_rate: u32, max_block: usize) -> Self {
        let StripParts {
            player,
            instance,
            parameters,
            fader,
            routing,
            score,
        } = parts;
        let block = || vec![0.0; max_block];
        let mut score = score.into_iter();
        Self {
            player,
            instance,
            parameters,
            gains: [0.0; 2],
            fader,
            routing: Box::new(routing),
            decoder: MidiDecoder::new(),
            next: score.next(),
            score,
            input_block: [block(), block()],
            sound: [block(), block()],
            delay: CompensationDelay::new(sample_rate, max_block),
        }
    }

    /// Changes the routing and returns the old one. Sounding notes continue, except on channels
    /// that are no longer received: their note-offs would be lost.
    pub fn set_routing(&mut self, mut routing: Box<StripRouting>) -> Box<StripRouting> {
        self.player.swap_dry_delay(&mut routing.dry);
        let old = std::mem::replace(&mut self.routing, routing);
        let input_block = |routing: &StripRouting| {
            if routing.source == ControlSource::Notes {
                routing.midi_channels
            } else {
                0
            }
        };
        let deaf = input_block(&old) & !input_block(&self.routing);
        for channel in (0..16).filter(|channel| deaf >> channel & 1 == 1) {
            for number in [controller::ALL_NOTES_OFF, controller::RESET] {
                self.player.handle_event(
                    0,
                    EventKind::Controller {
                        channel,
                        number,
                        value: 0.0,
                    },
                );
            }
        }
        old
    }

    /// Returns the latency of the player in samples.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.player.latency_samples()
    }

    /// Returns the tail after the end of the input in samples, without the latency; 0 for a model
    /// that plays by itself, which has no end.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        match self.player.tail_samples() {
            ENDLESS => 0,
            tail => tail - self.player.latency_samples(),
        }
    }

    /// Delays the strip so that it is aligned with a track of that latency in samples.
    pub fn align_to(&mut self, latency_samples: usize) {
        self.delay
            .set_target(latency_samples.saturating_sub(self.player.latency_samples()));
    }

    /// Returns the first `frames` of the last block, `[channel][frame]`.
    #[must_use]
    pub fn sound(&self, frames: usize) -> [&[f32]; 2] {
        self.sound.each_ref().map(|channel| &channel[..frames])
    }

    /// Returns whether the track is solo.
    #[must_use]
    pub fn is_solo(&self) -> bool {
        self.fader.get().solo
    }

    /// Ends all fades: fader and delay jump to their targets. `any_solo` tells that some track is
    /// solo.
    pub fn finish_fades(&mut self, any_solo: bool) {
        self.gains = self.fader.get().gains_heard(any_solo);
        self.delay.jump_to_target();
    }

    /// Plays a block of `frames` that begins at sample `clock`, fader included:
    /// `input[channel][frame]` is the device's input, `messages` are in order of their frames,
    /// `any_solo` tells that some track is solo. A panic, which is a bug, silences this strip
    /// alone.
    pub fn play(
        &mut self,
        clock: u64,
        frames: usize,
        input: &[&[f32]],
        messages: &[(usize, MidiMessage)],
        transport: Option<Transport>,
        any_solo: bool,
    ) {
        if !self.player.has_failed()
            && let Err(reason) =
                contain(|| self.play_instance(clock, frames, input, messages, transport))
        {
            self.player.fail(reason);
        }
        if self.player.has_failed() {
            self.sound
                .iter_mut()
                .for_each(|channel| channel[..frames].fill(0.0));
        }
        self.delay.process(&mut self.sound, frames);
        let target = self.fader.get().gains_heard(any_solo);
        for ((channel, gain), target) in self.sound.iter_mut().zip(&mut self.gains).zip(target) {
            ramp(&mut channel[..frames], gain, target);
        }
    }

    /// Plays a block of the instance.
    fn play_instance(
        &mut self,
        clock: u64,
        frames: usize,
        input: &[&[f32]],
        messages: &[(usize, MidiMessage)],
        transport: Option<Transport>,
    ) {
        let parameters = self.parameters.player_parameters();
        self.player.begin_block(&parameters);
        let Self {
            decoder, player, ..
        } = self;
        decoder.set_settings(&parameters.midi, |kind| player.handle_event(0, kind));
        if let Some(transport) = transport {
            self.player.set_transport(transport);
        }
        let end = clock + frames as u64;
        let mut messages = messages.iter().peekable();
        loop {
            let scored = self
                .next
                .filter(|(at, _)| *at < end)
                .map(|(at, _)| at.saturating_sub(clock) as usize);
            match (messages.peek(), scored) {
                (Some((frame, _)), scored) if scored.is_none_or(|at| *frame <= at) => {
                    if let Some((frame, message)) = messages.next() {
                        self.handle_midi(*frame, message);
                    }
                }
                (_, Some(at)) => {
                    if let Some((_, kind)) = self.next.take() {
                        self.handle_event(at, kind);
                    }
                    self.next = self.score.next();
                }
                (_, None) => break,
            }
        }
        self.feed_input(frames, input);
        let [left, right] = &mut self.sound;
        self.player
            .process(&mut [&mut left[..frames], &mut right[..frames]]);
    }

    fn handle_midi(&mut self, frame: usize, message: &MidiMessage) {
        if !self.accepts_channel(message.channel()) {
            return;
        }
        let bytes = message.bytes();
        if let &[status, number, value] = bytes
            && status & 0xF0 == CONTROL_CHANGE
        {
            self.parameters
                .handle_controller(&self.instance.midi_bindings, number, value);
        }
        if let Some(kind) = self.decoder.decode_bytes(bytes) {
            self.play_event(frame, kind);
        }
    }

    /// Handles a scheduled event as MIDI input.
    fn handle_event(&mut self, frame: usize, kind: EventKind) {
        if !self.accepts_channel(kind.channel()) {
            return;
        }
        if let EventKind::Controller { number, value, .. } = kind {
            self.parameters.handle_controller(
                &self.instance.midi_bindings,
                number,
                (127.0 * value).round() as u8,
            );
        }
        self.play_event(frame, kind);
    }

    /// Returns whether the track plays events of a channel; those for all channels always.
    fn accepts_channel(&self, channel: Option<u8>) -> bool {
        channel.is_none_or(|channel| self.routing.midi_channels >> (channel & 15) & 1 == 1)
    }

    fn play_event(&mut self, frame: usize, kind: EventKind) {
        // A model that follows audio ignores notes.
        if self.routing.source == ControlSource::Notes {
            self.player.handle_event(frame, kind);
        }
    }

    fn feed_input(&mut self, frames: usize, input: &[&[f32]]) {
        let channels = match &self.routing.input {
            StripInput::Nothing => return,
            StripInput::Clip(clip) => {
                clip.play(&mut self.input_block, frames);
                2
            }
            StripInput::Channels(first, count) => {
                let there = input.iter().skip(*first).take((*count).min(2));
                let mut channels = 0;
                for (input_block, channel) in self.input_block.iter_mut().zip(there) {
                    input_block[..frames].copy_from_slice(&channel[..frames]);
                    channels += 1;
                }
                channels
            }
        };
        let [left, right] = &mut self.input_block;
        let both = [&mut left[..frames], &mut right[..frames]];
        self.player.set_input(&both[..channels]);
    }
}
