//! The audio thread's half of the mixer.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrayvec::ArrayVec;
use ondes_engine::pipeline::Transport;
use ondes_engine::realtime::audio_callback;
use ondes_player::programs::{MidiBanks, ProgramNumber};
use ringbuf::traits::{Consumer, Producer};
use ringbuf::{HeapCons, HeapProd};

use super::changes::{RackChange, RetiredPart};
use super::master::Master;
use super::meter::MasterMeter;
use super::strip::Strip;
use super::track::TRACKS;
use crate::io::{Callback, ClockFollower, MidiMessage, MidiReceiver, Tap};

/// Largest number of MIDI messages per block; more are dropped and counted.
const MESSAGES: usize = 1024;

/// Audio callback that plays all strips and the master.
pub struct Rack {
    pub(super) strips: [Option<Box<Strip>>; TRACKS],
    pub(super) changes: HeapCons<RackChange>,
    pub(super) retired: HeapProd<RetiredPart>,
    pub(super) midi: Option<MidiReceiver>,
    pub(super) messages: ArrayVec<(usize, MidiMessage), MESSAGES>,
    pub(super) clock_follower: ClockFollower,
    /// Program changes for the mixer: channel and number.
    pub(super) programs: HeapProd<(u8, ProgramNumber)>,
    pub(super) banks: MidiBanks,
    pub(super) master: Master,
    /// Latency of the slowest track, samples.
    pub(super) tracks_latency: usize,
    pub(super) meter: Arc<MasterMeter>,
    /// Taps of the master and of the tracks.
    pub(super) taps: Vec<Tap>,
    /// Number of the next frame.
    pub(super) clock: u64,
    pub(super) sample_rate: u32,
}

impl Callback for Rack {
    fn process(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]) {
        audio_callback::enter(|| self.play(input, output));
    }
}

impl Rack {
    fn play(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]) {
        let frames = output
            .first()
            .map_or(0, |channel| channel.len())
            .min(self.master.max_block());
        self.apply_changes();
        self.align();
        self.read_midi(frames);
        let transport = self.transport();
        let any_solo = self.any_solo();
        self.master.begin(frames);
        let taps = self.taps.split_first_mut();
        let (master_tap, mut taps) = taps.map_or((None, [].iter_mut()), |(master, taps)| {
            (Some(master), taps.iter_mut())
        });
        for strip in &mut self.strips {
            let tap = taps.next();
            let Some(strip) = strip else { continue };
            strip.play(
                self.clock,
                frames,
                input,
                &self.messages,
                transport,
                any_solo,
            );
            self.master.add(strip.sound(frames));
            if let Some(tap) = tap {
                tap.push(self.clock, &strip.sound(frames));
            }
        }
        self.master.finish(frames);
        let [left, right] = self.master.sound(frames);
        if let Some(tap) = master_tap {
            tap.push(self.clock, &[left, right]);
        }
        match output {
            [] => {}
            [only] => {
                for (out, (left, right)) in only.iter_mut().zip(left.iter().zip(right)) {
                    *out = 0.5 * (left + right);
                }
            }
            [first, second, others @ ..] => {
                first[..frames].copy_from_slice(left);
                second[..frames].copy_from_slice(right);
                others.iter_mut().for_each(|other| other.fill(0.0));
            }
        }
        self.messages.clear();
        self.clock += frames as u64;
        self.meter.frames.store(self.clock, Relaxed);
    }

    /// Returns the total latency in samples: that of the slowest track and of the master.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.tracks_latency + self.master.latency_samples()
    }

    /// Installs the changes sent by the mixer.
    fn apply_changes(&mut self) {
        while let Some(change) = self.changes.try_pop() {
            let slot = match change {
                RackChange::Install(slot, _)
                | RackChange::Remove(slot)
                | RackChange::Route(slot, _) => slot,
            };
            let Some(here) = self.strips.get_mut(slot) else {
                continue;
            };
            let old = match change {
                RackChange::Install(_, strip) => here
                    .replace(strip)
                    .map(|_strip| RetiredPart::Strip { _strip }),
                RackChange::Remove(_) => here.take().map(|_strip| RetiredPart::Strip { _strip }),
                RackChange::Route(_, routing) => {
                    let _routing = match here {
                        Some(strip) => strip.set_routing(routing),
                        None => routing,
                    };
                    Some(RetiredPart::StripRouting { _routing })
                }
            };
            if let Some(Err(old)) = old.map(|old| self.retired.try_push(old)) {
                // The queue has room for all strips that exist; dropping a strip here would take
                // too long.
                std::mem::forget(old);
            }
        }
    }

    /// Aligns all tracks with the slowest one.
    fn align(&mut self) {
        self.tracks_latency = self
            .strips
            .iter()
            .flatten()
            .map(|strip| strip.latency_samples())
            .max()
            .unwrap_or(0);
        self.strips
            .iter_mut()
            .flatten()
            .for_each(|strip| strip.align_to(self.tracks_latency));
    }

    /// Ends all fades: faders and delays jump to their targets.
    pub(super) fn finish_fades(&mut self) {
        self.align();
        let any_solo = self.any_solo();
        self.strips
            .iter_mut()
            .flatten()
            .for_each(|strip| strip.finish_fades(any_solo));
    }

    /// Returns whether any track is solo.
    fn any_solo(&self) -> bool {
        self.strips.iter().flatten().any(|strip| strip.is_solo())
    }

    fn read_midi(&mut self, frames: usize) {
        let Some(mut midi) = self.midi.take() else {
            return;
        };
        midi.receive(frames, |frame, message| self.receive_midi(frame, message));
        self.midi = Some(midi);
    }

    /// Adds a MIDI message at a frame of the next block; call it in order of frames.
    pub fn receive_midi(&mut self, frame: usize, message: &MidiMessage) {
        let seconds = (self.clock + frame as u64) as f64 / f64::from(self.sample_rate);
        self.clock_follower.handle_message(seconds, message.bytes());
        if let Some(program) = self.banks.follow(message.bytes()) {
            // Program changes beyond the queue's capacity are dropped.
            let _ = self.programs.try_push(program);
        }
        if self.messages.try_push((frame, *message)).is_err() {
            self.meter.lost_messages.fetch_add(1, Relaxed);
        }
    }

    /// Returns the transport of the external MIDI clock.
    fn transport(&self) -> Option<Transport> {
        let tempo = self.clock_follower.tempo_bpm()? as f32;
        let position = self
            .clock_follower
            .position_beats(self.clock as f64 / f64::from(self.sample_rate));
        Some(Transport {
            tempo,
            position,
            playing: self.clock_follower.is_playing(),
        })
    }
}
