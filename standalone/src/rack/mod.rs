//! Up to sixteen tracks, mixed: what the app plays, wherever the sound goes.
//!
//! [`Console`] is the half for everybody but the audio thread: it makes tracks, loads and saves them. [`Rack`] is the audio
//! thread's: a [`strip`] for each [`track`] with its own instance, which [`wait`](mod@wait)s for the slowest of them, then the
//! [`master`] with its [`limiter`]. In between pass strips that are ready (a [`plan`] is made into one) and those that are done
//! with, what [`mix`] says, and meters. A [`Bounce`] is the same without a clock, for files: what it makes is what the rack plays,
//! to the bit.

pub mod bounce;
pub mod clip;
pub mod console;
pub mod limiter;
pub mod master;
pub mod mix;
pub mod plan;
pub mod saved;
pub mod score;
pub mod strip;
pub mod track;
pub mod wait;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use arrayvec::ArrayVec;
use ondes_engine::pipeline::Transport;
use ondes_engine::realtime::gate;
use ringbuf::traits::{Consumer, Producer};
use ringbuf::{HeapCons, HeapProd};

pub use bounce::Bounce;
pub use console::Console;
pub use saved::SessionFile;
pub use track::Track;

use crate::devices::{Callback, ClockFollower, MidiMessage, MidiReceiver};
use crate::record::Tap;
use master::Master;
use strip::{Strip, Wiring};

/// The most tracks.
pub const TRACKS: usize = 16;
/// MIDI messages of one block; more are left out and counted.
const MESSAGES: usize = 1024;
/// First byte of a program change, without its channel.
const PROGRAM_CHANGE: u8 = 0xC0;

/// What is to happen in a place.
pub(crate) enum Change {
    /// A strip comes.
    Put(usize, Box<Strip>),
    /// The strip goes.
    Clear(usize),
    /// The strip is joined to the rest in another way.
    Wire(usize, Box<Wiring>),
}

/// What is done with, on its way to where it can be dropped.
pub(crate) enum Retired {
    Strip { _strip: Box<Strip> },
    Wiring { _wiring: Box<Wiring> },
}

/// What the audio thread tells of the master.
#[derive(Debug)]
pub struct Meter {
    /// `[channel]`: the largest sample since somebody looked, as bits of `f32`.
    peaks: [AtomicU32; 2],
    reduction: AtomicU32,
    frames: AtomicU64,
    lost: AtomicU64,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            peaks: [AtomicU32::new(0), AtomicU32::new(0)],
            reduction: AtomicU32::new(1.0_f32.to_bits()),
            frames: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }
}

impl Meter {
    /// `[channel]`: the largest sample since this was last asked.
    pub fn peaks(&self) -> [f32; 2] {
        [0, 1].map(|channel: usize| f32::from_bits(self.peaks[channel].swap(0, Relaxed)))
    }

    /// The least gain of the limiter since this was last asked; 1 where it had nothing to do.
    pub fn reduction(&self) -> f32 {
        f32::from_bits(self.reduction.swap(1.0_f32.to_bits(), Relaxed))
    }

    /// Frames that were played since the sound began.
    pub fn frames(&self) -> u64 {
        self.frames.load(Relaxed)
    }

    /// A sound begins: counts its frames from 0 on, and gives how many the last one had.
    pub fn restart(&self) -> u64 {
        self.frames.swap(0, Relaxed)
    }

    /// MIDI messages that came faster than they could be taken.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

/// The audio thread's half.
pub struct Rack {
    strips: [Option<Box<Strip>>; TRACKS],
    changes: HeapCons<Change>,
    retired: HeapProd<Retired>,
    midi: Option<MidiReceiver>,
    messages: ArrayVec<(usize, MidiMessage), MESSAGES>,
    clock_follower: ClockFollower,
    /// Programs that were chosen, for the console: channel and number.
    programs: HeapProd<(u8, u8)>,
    master: Master,
    /// Samples by which the slowest track is late.
    slowest: usize,
    meter: Arc<Meter>,
    /// The master's, then those of the tracks.
    taps: Vec<Tap>,
    /// Number of the next frame.
    clock: u64,
    sample_rate: u32,
}

impl Callback for Rack {
    fn process(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]) {
        gate::enter(|| self.play(input, output));
    }
}

impl Rack {
    fn play(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]) {
        let frames = output.first().map_or(0, |channel| channel.len()).min(self.master.max_block());
        self.adopt();
        self.align();
        self.listen(frames);
        let song = self.song();
        let alone = self.is_alone();
        self.master.begin(frames);
        let taps = self.taps.split_first_mut();
        let (master_tap, mut taps) =
            taps.map_or((None, [].iter_mut()), |(master, taps)| (Some(master), taps.iter_mut()));
        for strip in &mut self.strips {
            let tap = taps.next();
            let Some(strip) = strip else { continue };
            strip.play(self.clock, frames, input, &self.messages, song, alone);
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

    /// Samples from what is played to what is heard: those of the slowest track, for which the others wait, and the master's.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.slowest + self.master.latency_samples()
    }

    /// Puts what is ready in its place.
    fn adopt(&mut self) {
        while let Some(change) = self.changes.try_pop() {
            let place = match change {
                Change::Put(place, _) | Change::Clear(place) | Change::Wire(place, _) => place,
            };
            let Some(here) = self.strips.get_mut(place) else { continue };
            let old = match change {
                Change::Put(_, strip) => here.replace(strip).map(|_strip| Retired::Strip { _strip }),
                Change::Clear(_) => here.take().map(|_strip| Retired::Strip { _strip }),
                Change::Wire(_, wiring) => {
                    let _wiring = match here {
                        Some(strip) => strip.rewire(wiring),
                        None => wiring,
                    };
                    Some(Retired::Wiring { _wiring })
                }
            };
            if let Some(Err(old)) = old.map(|old| self.retired.try_push(old)) {
                // There is room for all that were ever sent; dropping it here would take time.
                std::mem::forget(old);
            }
        }
    }

    /// All tracks wait for the slowest.
    fn align(&mut self) {
        self.slowest = self.strips.iter().flatten().map(|strip| strip.latency_samples()).max().unwrap_or(0);
        self.strips.iter_mut().flatten().for_each(|strip| strip.wait_for(self.slowest));
    }

    /// Faders and delays are at once where they go to.
    fn settle(&mut self) {
        self.align();
        let alone = self.is_alone();
        self.strips.iter_mut().flatten().for_each(|strip| strip.settle(alone));
    }

    /// Whether only tracks that are solo are heard.
    fn is_alone(&self) -> bool {
        self.strips.iter().flatten().any(|strip| strip.is_solo())
    }

    fn listen(&mut self, frames: usize) {
        let Some(mut midi) = self.midi.take() else { return };
        midi.receive(frames, |frame, message| self.hear(frame, message));
        self.midi = Some(midi);
    }

    /// Hears a message at a frame of the block that is played next. In the order of frames.
    pub fn hear(&mut self, frame: usize, message: &MidiMessage) {
        let seconds = (self.clock + frame as u64) as f64 / f64::from(self.sample_rate);
        self.clock_follower.hear(seconds, message.bytes());
        if let &[status, program] = message.bytes()
            && status & 0xF0 == PROGRAM_CHANGE
        {
            // Who chooses faster than anybody can load is not heard.
            let _ = self.programs.try_push((status & 0x0F, program));
        }
        if self.messages.try_push((frame, *message)).is_err() {
            self.meter.lost.fetch_add(1, Relaxed);
        }
    }

    /// Where the song is whose clock is heard.
    fn song(&self) -> Option<Transport> {
        let tempo = self.clock_follower.tempo_bpm()? as f32;
        let position = self.clock_follower.position_beats(self.clock as f64 / f64::from(self.sample_rate));
        Some(Transport { tempo, position, playing: self.clock_follower.is_playing() })
    }
}
