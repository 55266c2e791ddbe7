//! What the audio thread does for an instance: a session, and the input beside it.

use std::sync::Arc;

use ondes_engine::chain::{Calibration, Chain, Settings};
use ondes_engine::dsp::ramp::Ramp;
use ondes_engine::instrument::EventKind;
use ondes_engine::model::card::Levels;
use ondes_engine::pipeline::{Action, ControlId, GLIDE, PLAY_MODE, TRANSPOSE, Transport, VOICES};
use ondes_engine::realtime::{BlockCue, Session, Setup};
use ondes_ui::KnobId;

use crate::choice::{output_level, placement};
use crate::macros::{MACROS, RELEASE, REST, Table};
use crate::parameter;
use crate::ringing::{FADE_S, Ringing};
use crate::shared::Shared;
use crate::text::{GATE_OFF_DB, INTERFACE_OFF_DBU, SILENT_DB};

/// Time in which a gain goes to its new value, seconds.
const RAMP_S: f64 = 0.010;
/// A song that is where it would be by itself, in beats, has not been moved.
const SONG_TOLERANCE_BEATS: f64 = 1e-3;
/// Cues of one block that wait for it; more are handed over at once.
const CUES: usize = 2048;

/// Where everything stands from a certain sample on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knobs {
    /// The dry sound alone.
    pub bypass: bool,
    /// Factor of what drives the model.
    pub input_gain: f32,
    /// Factor of what is heard.
    pub output_gain: f32,
    /// Share of the model's sound, 0 … 1.
    pub mix: f32,
    /// Silence, as soon as this is so.
    pub panic: bool,
    /// How notes are played.
    pub playing: Playing,
    /// Where the macros stand, 0 … 1.
    pub macros: [f32; MACROS],
    /// What stands before and after the model, but for gains that depend on the model.
    pub chain: Settings,
    /// Where those come from.
    pub calibration: Calibration,
}

/// How notes are played, whatever the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playing {
    /// Shift of all pitches, semitones.
    pub semitones: f32,
    /// 0 as the model says, 1 poly, 2 mono, 3 legato.
    pub mode: u8,
    /// Time of the slide between notes that share a voice, ms; below 0 it is the model's own.
    pub glide_ms: f32,
    /// Most notes at once; 0 for as many as the model has voices.
    pub voices: u8,
}

impl Knobs {
    /// Where everything stands, for parameters with these values.
    #[must_use]
    pub fn read(value: impl Fn(KnobId) -> f32) -> Self {
        let on = |knob| value(knob) > 0.5;
        Self {
            bypass: on(parameter::BYPASS),
            input_gain: linear(value(parameter::INPUT_GAIN)),
            output_gain: linear(value(parameter::OUTPUT_GAIN)),
            mix: value(parameter::MIX),
            panic: on(parameter::PANIC),
            playing: Playing {
                semitones: value(parameter::TRANSPOSE) + value(parameter::TUNE) / 100.0,
                mode: value(parameter::MODE) as u8,
                glide_ms: value(parameter::GLIDE),
                voices: value(parameter::VOICES) as u8,
            },
            macros: std::array::from_fn(|index| value(KnobId(index as u32))),
            chain: Settings {
                gate_db: Some(value(parameter::GATE)).filter(|db| *db > GATE_OFF_DB),
                tone: parameter::TONE_GAINS.map(&value),
                placement: placement(value(parameter::TONE)),
                block_dc: on(parameter::BLOCK_DC),
                cabinet: value(parameter::CABINET),
                ..Settings::default()
            },
            calibration: Calibration {
                interface_dbu: Some(value(parameter::INTERFACE_LEVEL)).filter(|dbu| *dbu > INTERFACE_OFF_DBU),
                output: output_level(value(parameter::OUTPUT_LEVEL)),
            },
        }
    }
}

/// The factor of a gain.
fn linear(gain_db: f32) -> f32 {
    if gain_db <= SILENT_DB { 0.0 } else { 10.0_f32.powf(gain_db / 20.0) }
}

impl Playing {
    /// The same in the engine's words.
    #[must_use]
    pub fn controls(&self) -> [(ControlId, f32); 4] {
        let Self { semitones, mode, glide_ms, voices } = *self;
        [(TRANSPOSE, semitones), (PLAY_MODE, mode.into()), (GLIDE, glide_ms), (VOICES, voices.into())]
    }
}

/// A session with the input beside it, as late as what the session makes of it. Only making one allocates.
pub struct Player {
    session: Session,
    shared: Arc<Shared>,
    table: Box<Table>,
    /// Of the model that is heard.
    levels: Levels,
    /// What the session was told last.
    told: Knobs,
    song: Option<Transport>,
    /// Samples that were played since the song was told.
    since_song: usize,
    ringing: Ringing,
    cues: Vec<BlockCue>,
    /// `[channel][frame]`
    input: [Vec<f32>; 2],
    /// The same as it was `latency` samples ago, without gain.
    dry: [Vec<f32>; 2],
    channels: usize,
    dry_delay: Dry,
    chain: Chain,
    /// `[channel][frame]`: the model's sound, with what stands after it.
    wet: [Vec<f32>; 2],
    input_gain: Ramp,
    wet_gain: Ramp,
    dry_gain: Ramp,
    /// Closed after a panic, until what still rings in the room is over or somebody plays.
    gate: Ramp,
    /// Samples for which it stays closed.
    closed: usize,
    sample_rate: u32,
}

/// Makes the dry sound late. Only making one allocates.
pub struct Dry {
    latency: usize,
    delays: [Delay; 2],
}

impl Dry {
    /// As late as a session is, host samples.
    #[must_use]
    pub fn new(latency: usize) -> Self {
        Self { latency, delays: [Delay::new(latency), Delay::new(latency)] }
    }
}

impl Player {
    /// A player for a session that has just begun.
    #[must_use]
    pub fn new(session: Session, shared: Arc<Shared>, setup: Setup, knobs: &Knobs) -> Self {
        let latency = session.latency_samples();
        shared.monitor.begin(setup.sample_rate);
        let block = || vec![0.0; setup.max_block];
        let ramp = |value| Ramp::new(value, RAMP_S, setup.sample_rate);
        let (wet, dry) = gains(knobs);
        let table = Box::new(shared.table());
        let ringing = Ringing::new(setup.sample_rate, shared.release_ms());
        let mut chain = Chain::new(setup.sample_rate, setup.max_block);
        if let Some(cabinet) = shared.cabinet.begin(setup.sample_rate) {
            drop(chain.cabinet().change(cabinet));
        }
        let levels = if session.heard() == Some(table.model) { table.levels } else { Levels::default() };
        chain.set(&around(knobs, levels));
        chain.reset();
        drop(chain.cabinet().leave());
        let mut player = Self {
            session,
            shared,
            table,
            levels,
            told: *knobs,
            song: None,
            since_song: 0,
            ringing,
            cues: Vec::with_capacity(CUES),
            input: [block(), block()],
            dry: [block(), block()],
            channels: 0,
            dry_delay: Dry::new(latency),
            chain,
            wet: [block(), block()],
            input_gain: ramp(knobs.input_gain),
            wet_gain: ramp(wet),
            dry_gain: ramp(dry),
            gate: ramp(1.0),
            closed: 0,
            sample_rate: setup.sample_rate,
        };
        // What came with the model may be older than where they stand now.
        player.turn(knobs, true);
        player
    }

    /// Host samples by which the dry sound is delayed: the session's latency as it was in the beginning, or what
    /// [`exchange`](Self::exchange) has made of it.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.dry_delay.latency
    }

    /// Makes the dry sound as late as this says, if it is not, and leaves what it did so far in its place. For a session that is
    /// later or earlier than in the beginning and plays on.
    pub fn exchange(&mut self, dry: &mut Dry) {
        if dry.latency != self.dry_delay.latency {
            std::mem::swap(dry, &mut self.dry_delay);
        }
    }

    /// Whether the session's latency is another one by now: the host must begin anew to learn of it.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.session.latency_samples() != self.dry_delay.latency
    }

    /// Host samples that sound after all that drives the sound has ended, as everything stands now.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        self.ringing.samples() + self.after_model()
    }

    /// Host samples that sound after the model is silent.
    fn after_model(&self) -> usize {
        self.session.tail_samples() + self.dry_delay.latency + self.chain.tail_samples()
    }

    /// Whether nothing sounds any more, and nothing will before something comes in.
    #[must_use]
    pub fn is_resting(&self) -> bool {
        self.ringing.is_resting()
    }

    /// Silence at once.
    pub fn reset(&mut self, knobs: &Knobs) {
        self.session.reset();
        self.shared.monitor.silence();
        if self.ringing.is_audible() {
            let fade = (FADE_S * self.sample_rate as f32) as usize;
            self.closed = fade + self.after_model();
            self.gate.go(0.0);
        }
        self.ringing.silence();
        self.dry_delay.delays.iter_mut().for_each(Delay::clear);
        let (wet, dry) = gains(knobs);
        self.chain.reset();
        self.input_gain.jump(knobs.input_gain);
        self.wet_gain.jump(wet);
        self.dry_gain.jump(dry);
    }

    /// Begins a block: from its first sample on everything stands like this.
    pub fn begin(&mut self, knobs: &Knobs) {
        if self.shared.monitor.panicked() || knobs.panic && !self.told.panic {
            self.reset(knobs);
        }
        let all = self.shared.receive(&mut self.table);
        self.turn(knobs, all);
        let (wet, dry) = gains(knobs);
        self.input_gain.go(knobs.input_gain);
        self.wet_gain.go(wet);
        self.dry_gain.go(dry);
        if self.session.heard() == Some(self.table.model) {
            self.levels = self.table.levels;
        }
        self.chain.set(&around(knobs, self.levels));
        self.shared.cabinet.visit(self.chain.cabinet());
        self.channels = 0;
        while let Some(kind) = self.shared.monitor.next_key() {
            self.play(0, kind);
        }
    }

    fn turn(&mut self, knobs: &Knobs, all: bool) {
        let told = std::mem::replace(&mut self.told, *knobs);
        if *knobs != told || all {
            self.ringing.stir();
        }
        if all {
            // Where no macro turns the release of this model, it may be the model's, or stand where one has left it.
            self.ringing.set_release(self.ringing.release_ms().max(self.shared.release_ms()));
        }
        for ((id, value), before) in knobs.playing.controls().into_iter().zip(told.playing.controls()) {
            if (id, value) != before || all {
                self.cue(0, Action::Control { id, value });
            }
        }
        if all {
            for place in 0..self.table.latents.len() {
                let (id, value) = self.table.latents[place];
                self.cue(0, Action::Control { id, value });
            }
        }
        // What is told last counts: macros more than the latents' own knobs, and those that were moved more than those at rest.
        for moved in [false, true] {
            for ((travel, before), position) in self.table.macros.into_iter().zip(told.macros).zip(knobs.macros) {
                let is_due = (position != REST) == moved && (position != before || all);
                if let Some(travel) = travel.filter(|_| is_due) {
                    let value = travel.value(position);
                    if travel.id == RELEASE {
                        self.ringing.set_release(value);
                    }
                    self.cue(0, Action::Control { id: travel.id, value });
                }
            }
        }
    }

    /// The host's song is there at the block's first sample. What goes on as it was is not told again.
    pub fn follow(&mut self, song: Transport) {
        let goes_on = self.song.is_some_and(|before| {
            let seconds = self.since_song as f64 / f64::from(self.sample_rate);
            let moved = if before.playing { seconds * f64::from(before.tempo) / 60.0 } else { 0.0 };
            (song.tempo, song.playing) == (before.tempo, before.playing)
                && (song.position - before.position - moved).abs() < SONG_TOLERANCE_BEATS
        });
        if !goes_on {
            self.cue(0, Action::Transport(song));
            (self.song, self.since_song) = (Some(song), 0);
        }
    }

    /// Something that a player does at a sample of the block. In the order of samples.
    pub fn play(&mut self, offset: usize, kind: EventKind) {
        self.shared.monitor.play(&kind);
        self.ringing.play(&kind);
        if matches!(kind, EventKind::NoteOn { .. }) {
            self.closed = 0;
        }
        self.cue(offset, Action::Play(kind));
    }

    fn cue(&mut self, offset: usize, action: Action) {
        if self.cues.len() == CUES {
            // Early is better than never.
            self.session.process(&self.cues, &[], &mut []);
            self.cues.clear();
        }
        let offset = self.cues.last().map_or(offset, |last| last.offset.max(offset));
        self.cues.push(BlockCue { offset, action });
    }

    /// The block's input: one channel or two. What is no number counts as silence.
    pub fn listen(&mut self, channels: &[&mut [f32]]) {
        self.channels = channels.len().min(2);
        for (kept, channel) in self.input.iter_mut().zip(channels) {
            for (kept, sample) in kept.iter_mut().zip(channel.iter()) {
                *kept = if sample.is_finite() { *sample } else { 0.0 };
            }
        }
    }

    /// Plays the block to the end.
    pub fn finish(&mut self, output: &mut [&mut [f32]]) {
        let frames = output.iter().map(|channel| channel.len()).min().unwrap_or(0).min(self.wet[0].len());
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
        let [dry_left, dry_right] = &mut self.dry;
        self.dry_delay.delays[0].run(left, &mut dry_left[..frames]);
        self.dry_delay.delays[1].run(right, &mut dry_right[..frames]);
        for (left, right) in left.iter_mut().zip(right.iter_mut()) {
            let gain = self.input_gain.advance();
            *left *= gain;
            *right *= gain;
        }
        let [wet, other] = &mut self.wet;
        let (wet, other) = (&mut wet[..frames], &mut other[..frames]);
        if self.channels == 0 {
            self.session.process(&self.cues, &[], &mut [wet]);
        } else {
            self.chain.before(&mut [left, right]);
            self.session.process(&self.cues, &[left, right], &mut [wet]);
        }
        self.chain.after(wet, other);
        self.cues.clear();
        self.since_song += frames;
        if self.closed == 0 {
            self.gate.go(1.0);
        }
        self.closed = self.closed.saturating_sub(frames);
        // On one channel both sides are heard.
        let fold = output.len() == 1 && self.chain.is_wide();
        let [wet_left, wet_right] = &self.wet;
        for (frame, (left, right)) in wet_left[..frames].iter().zip(wet_right).enumerate() {
            let (wet_gain, dry_gain) = (self.wet_gain.advance() * self.gate.advance(), self.dry_gain.advance());
            let left = if fold { 0.5 * (left + right) } else { *left };
            let sides = [(left, dry_left[frame]), (*right, dry_right[frame])];
            for (channel, (wet, dry)) in output.iter_mut().zip(sides) {
                channel[frame] = wet_gain * wet + dry_gain * dry;
            }
        }
        let inputs = [&self.input[0][..frames], &self.input[1][..frames]];
        let inputs = &inputs[..self.channels];
        self.shared.monitor.hear(inputs, output);
        let heard = output.iter().map(|channel| peak(&channel[..frames]));
        let loudest = inputs.iter().map(|channel| peak(channel)).chain(heard).fold(0.0, f32::max);
        let tail = self.after_model();
        self.ringing.hear(frames, loudest, self.channels > 0, tail);
    }
}

fn peak(sound: &[f32]) -> f32 {
    sound.iter().fold(0.0, |peak, sample| peak.max(sample.abs()))
}

/// Where the knobs of the chain stand around a model with those levels.
fn around(knobs: &Knobs, levels: Levels) -> Settings {
    Settings { gains_db: knobs.calibration.gains_db(levels), ..knobs.chain }
}

/// Gains of the model's sound and of the input.
fn gains(knobs: &Knobs) -> (f32, f32) {
    if knobs.bypass {
        return (0.0, 1.0);
    }
    (knobs.mix * knobs.output_gain, (1.0 - knobs.mix) * knobs.input_gain * knobs.output_gain)
}

/// A delay by a fixed time.
struct Delay {
    ring: Vec<f32>,
    place: usize,
}

impl Delay {
    fn new(samples: usize) -> Self {
        Self { ring: vec![0.0; samples], place: 0 }
    }

    fn clear(&mut self) {
        self.ring.fill(0.0);
    }

    fn run(&mut self, input: &[f32], output: &mut [f32]) {
        if self.ring.is_empty() {
            return output.copy_from_slice(input);
        }
        for (output, input) in output.iter_mut().zip(input) {
            *output = std::mem::replace(&mut self.ring[self.place], *input);
            self.place = (self.place + 1) % self.ring.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_as_long_as_it_says_in_any_blocks() {
        for samples in [0, 1, 5, 64] {
            let mut delay = Delay::new(samples);
            let input: Vec<f32> = (1..=100).map(|n| n as f32).collect();
            let mut output = vec![0.0; 100];
            for (input, output) in input.chunks(7).zip(output.chunks_mut(7)) {
                delay.run(input, output);
            }
            assert!(output[..samples].iter().all(|sample| *sample == 0.0));
            assert_eq!(output[samples..], input[..100 - samples]);
        }
    }

    #[test]
    fn gains_go_down_to_nothing() {
        assert_eq!((linear(0.0), linear(SILENT_DB)), (1.0, 0.0));
        assert!((linear(20.0) - 10.0).abs() < 1e-5);
    }
}
