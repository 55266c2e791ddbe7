//! One track on the audio thread.

use std::sync::Arc;

use ondes_engine::instrument::{EventKind, MidiDecoder, controller};
use ondes_engine::pipeline::{Source, Transport};
use ondes_processor::board::Board;
use ondes_processor::panel::Panel;
use ondes_processor::player::{Dry, Player};
use ondes_processor::shared::Shared;

use super::clip::Clip;
use super::mix::{Mix, ramp};
use super::wait::Wait;
use crate::devices::MidiMessage;

/// First byte of a control change, without its channel.
const CONTROL_CHANGE: u8 = 0xB0;

/// What a track listens to.
#[derive(Clone)]
pub enum Feed {
    /// Nothing but notes.
    Nothing,
    /// Channels of the sound card: the first, and how many, 1 or 2.
    Channels(usize, usize),
    /// A recording.
    Clip(Arc<Clip>),
}

/// A track's instrument and what stands around it. Only making one allocates.
pub struct Strip {
    player: Player,
    shared: Arc<Shared>,
    panel: Arc<Panel>,
    mix: Arc<Mix>,
    wiring: Box<Wiring>,
    decoder: MidiDecoder,
    /// Things that were played and whose time has not come, in order: sample of the rack's clock.
    score: std::vec::IntoIter<(u64, EventKind)>,
    next: Option<(u64, EventKind)>,
    heard: [Vec<f32>; 2],
    /// `[channel][frame]`: the last block.
    sound: [Vec<f32>; 2],
    wait: Wait,
    gains: [f32; 2],
}

/// How a strip is joined to the rest. It can be changed while the strip plays: what sounds goes on.
pub struct Wiring {
    /// What it listens to.
    pub feed: Feed,
    /// What plays it.
    pub source: Source,
    /// MIDI channels that are heard, one bit each.
    pub midi_channels: u16,
    /// Makes the dry sound as late as the model is.
    pub dry: Dry,
}

/// What a strip is made of.
pub struct Parts {
    /// Plays the model.
    pub player: Player,
    /// The instance.
    pub shared: Arc<Shared>,
    /// Its parameters.
    pub panel: Arc<Panel>,
    /// Its fader.
    pub mix: Arc<Mix>,
    /// How it is joined to the rest.
    pub wiring: Wiring,
    /// What is played from now on, in order of samples; heard as MIDI is.
    pub score: Vec<(u64, EventKind)>,
}

impl Strip {
    /// A strip for a rate in Hz and blocks of at most `max_block` frames.
    #[must_use]
    pub fn new(parts: Parts, sample_rate: u32, max_block: usize) -> Self {
        let Parts { player, shared, panel, mix, wiring, score } = parts;
        let block = || vec![0.0; max_block];
        let mut score = score.into_iter();
        Self {
            player,
            shared,
            panel,
            gains: [0.0; 2],
            mix,
            wiring: Box::new(wiring),
            decoder: MidiDecoder::new(),
            next: score.next(),
            score,
            heard: [block(), block()],
            sound: [block(), block()],
            wait: Wait::new(sample_rate, max_block),
        }
    }

    /// Joins it to the rest in another way, and gives back how it was. What sounds goes on, but for notes of what it does not
    /// hear any more: nobody could end them.
    pub fn rewire(&mut self, mut wiring: Box<Wiring>) -> Box<Wiring> {
        self.player.exchange(&mut wiring.dry);
        let old = std::mem::replace(&mut self.wiring, wiring);
        let heard = |wiring: &Wiring| if wiring.source == Source::Notes { wiring.midi_channels } else { 0 };
        let deaf = heard(&old) & !heard(&self.wiring);
        for channel in (0..16).filter(|channel| deaf >> channel & 1 == 1) {
            for number in [controller::ALL_NOTES_OFF, controller::RESET] {
                self.player.play(0, EventKind::Controller { channel, number, value: 0.0 });
            }
        }
        old
    }

    /// Samples by which the player is late.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.player.latency_samples()
    }

    /// Samples that sound after all that drives the sound has ended, besides the latency.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        self.player.tail_samples() - self.player.latency_samples()
    }

    /// Waits from now on for a track that is so many samples late.
    pub fn wait_for(&mut self, latency_samples: usize) {
        self.wait.go(latency_samples.saturating_sub(self.player.latency_samples()));
    }

    /// `[channel][frame]`: the last block, of so many frames.
    #[must_use]
    pub fn sound(&self, frames: usize) -> [&[f32]; 2] {
        self.sound.each_ref().map(|channel| &channel[..frames])
    }

    /// Whether nothing but what is so is heard.
    #[must_use]
    pub fn is_solo(&self) -> bool {
        self.mix.get().solo
    }

    /// Fader and delay are at once where they go to; `alone` says whether only those that are solo are heard.
    pub fn settle(&mut self, alone: bool) {
        self.gains = self.mix.get().gains_heard(alone);
        self.wait.settle();
    }

    /// Plays a block of `frames`, which begins at sample `clock`, up to its fader: `input[channel][frame]` is what comes in,
    /// `messages` are in the order of their frames, `alone` says whether only those that are solo are heard.
    pub fn play(
        &mut self,
        clock: u64,
        frames: usize,
        input: &[&[f32]],
        messages: &[(usize, MidiMessage)],
        song: Option<Transport>,
        alone: bool,
    ) {
        self.player.begin(&self.panel.knobs());
        if let Some(song) = song {
            self.player.follow(song);
        }
        let end = clock + frames as u64;
        let mut messages = messages.iter().peekable();
        loop {
            let scored = self.next.filter(|(at, _)| *at < end).map(|(at, _)| at.saturating_sub(clock) as usize);
            match (messages.peek(), scored) {
                (Some((frame, _)), scored) if scored.is_none_or(|at| *frame <= at) => {
                    if let Some((frame, message)) = messages.next() {
                        self.hear(*frame, message);
                    }
                }
                (_, Some(at)) => {
                    if let Some((_, kind)) = self.next.take() {
                        self.hear_decoded(at, kind);
                    }
                    self.next = self.score.next();
                }
                (_, None) => break,
            }
        }
        self.listen(frames, input);
        let [left, right] = &mut self.sound;
        self.player.finish(&mut [&mut left[..frames], &mut right[..frames]]);
        self.wait.run(&mut self.sound, frames);
        let target = self.mix.get().gains_heard(alone);
        for ((channel, gain), target) in self.sound.iter_mut().zip(&mut self.gains).zip(target) {
            ramp(&mut channel[..frames], gain, target);
        }
    }

    fn hear(&mut self, frame: usize, message: &MidiMessage) {
        if message.channel().is_none_or(|channel| !self.hears(channel)) {
            return;
        }
        let bytes = message.bytes();
        if let &[status, number, value] = bytes
            && status & 0xF0 == CONTROL_CHANGE
        {
            self.panel.follow(&self.shared.controllers, number, value);
        }
        if let Some(kind) = self.decoder.decode_bytes(bytes) {
            self.note(frame, kind);
        }
    }

    /// The same for what was decoded elsewhere.
    fn hear_decoded(&mut self, frame: usize, kind: EventKind) {
        if !self.hears(kind.channel()) {
            return;
        }
        if let EventKind::Controller { number, value, .. } = kind {
            self.panel.follow(&self.shared.controllers, number, (127.0 * value).round() as u8);
        }
        self.note(frame, kind);
    }

    fn hears(&self, channel: u8) -> bool {
        self.wiring.midi_channels >> (channel & 15) & 1 == 1
    }

    fn note(&mut self, frame: usize, kind: EventKind) {
        // What is played by a sound does not listen to notes.
        if self.wiring.source == Source::Notes {
            self.player.play(frame, kind);
        }
    }

    fn listen(&mut self, frames: usize, input: &[&[f32]]) {
        let channels = match &self.wiring.feed {
            Feed::Nothing => return,
            Feed::Clip(clip) => {
                clip.play(&mut self.heard, frames);
                2
            }
            Feed::Channels(first, count) => {
                let there = input.iter().skip(*first).take((*count).min(2));
                let mut channels = 0;
                for (heard, channel) in self.heard.iter_mut().zip(there) {
                    heard[..frames].copy_from_slice(&channel[..frames]);
                    channels += 1;
                }
                channels
            }
        };
        let [left, right] = &mut self.heard;
        let both = [&mut left[..frames], &mut right[..frames]];
        self.player.listen(&both[..channels]);
    }
}
