//! One track on the audio thread.

use std::sync::Arc;

use ondes_engine::instrument::{EventKind, MidiDecoder};
use ondes_engine::pipeline::{Source, Transport};
use ondes_instance::board::Board;
use ondes_instance::panel::Panel;
use ondes_instance::player::Player;
use ondes_instance::shared::Shared;

use super::clip::Clip;
use super::mix::Mix;
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
    feed: Feed,
    source: Source,
    /// MIDI channels that are heard, one bit each.
    midi_channels: u16,
    decoder: MidiDecoder,
    /// Things that were played and whose time has not come, in order: sample of the rack's clock.
    score: std::vec::IntoIter<(u64, EventKind)>,
    next: Option<(u64, EventKind)>,
    heard: [Vec<f32>; 2],
    /// `[channel][frame]`: the last block, before the fader.
    pub sound: [Vec<f32>; 2],
    gains: [f32; 2],
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
    /// What it listens to.
    pub feed: Feed,
    /// What plays it.
    pub source: Source,
    /// MIDI channels that are heard, one bit each.
    pub midi_channels: u16,
    /// What is played from now on, in order of samples.
    pub score: Vec<(u64, EventKind)>,
}

impl Strip {
    /// A strip for blocks of at most `max_block` frames.
    #[must_use]
    pub fn new(parts: Parts, max_block: usize) -> Self {
        let Parts { player, shared, panel, mix, feed, source, midi_channels, score } = parts;
        let block = || vec![0.0; max_block];
        let mut score = score.into_iter();
        Self {
            player,
            shared,
            panel,
            gains: [0.0; 2],
            mix,
            feed,
            source,
            midi_channels,
            decoder: MidiDecoder::new(),
            next: score.next(),
            score,
            heard: [block(), block()],
            sound: [block(), block()],
        }
    }

    /// Whether nothing but what is so is heard.
    #[must_use]
    pub fn is_solo(&self) -> bool {
        self.mix.get().solo
    }

    /// The fader is at once where it goes to.
    pub fn settle(&mut self) {
        let settings = self.mix.get();
        self.gains = if settings.mute { [0.0; 2] } else { settings.gains() };
    }

    /// Plays a block of `frames`, which begins at sample `clock`: `input[channel][frame]` is what comes in, `messages` are in the
    /// order of their frames.
    pub fn play(
        &mut self,
        clock: u64,
        frames: usize,
        input: &[&[f32]],
        messages: &[(usize, MidiMessage)],
        song: Option<Transport>,
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
                        self.note(at, kind);
                    }
                    self.next = self.score.next();
                }
                (_, None) => break,
            }
        }
        self.listen(frames, input);
        let [left, right] = &mut self.sound;
        self.player.finish(&mut [&mut left[..frames], &mut right[..frames]]);
    }

    fn hear(&mut self, frame: usize, message: &MidiMessage) {
        if message.channel().is_none_or(|channel| self.midi_channels >> channel & 1 == 0) {
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

    fn note(&mut self, frame: usize, kind: EventKind) {
        // What is played by a sound does not listen to notes.
        if self.source == Source::Notes {
            self.player.play(frame, kind);
        }
    }

    fn listen(&mut self, frames: usize, input: &[&[f32]]) {
        let channels = match &self.feed {
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

    /// Puts the block through the fader, in place, and adds it to `mix[channel][frame]`. `alone` says whether only those that are
    /// solo are heard.
    pub fn mix(&mut self, frames: usize, alone: bool, mix: &mut [Vec<f32>; 2]) {
        let settings = self.mix.get();
        let silent = settings.mute || alone && !settings.solo;
        let target = if silent { [0.0; 2] } else { settings.gains() };
        for (((sound, sum), gain), target) in self.sound.iter_mut().zip(mix).zip(&mut self.gains).zip(target) {
            let step = (target - *gain) / frames as f32;
            for (frame, (sample, sum)) in sound[..frames].iter_mut().zip(sum).enumerate() {
                *sample *= if step == 0.0 { target } else { *gain + step * (frame + 1) as f32 };
                *sum += *sample;
            }
            *gain = target;
        }
    }
}
