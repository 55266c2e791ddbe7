//! Up to sixteen tracks, mixed: what the app plays, wherever the sound goes.
//!
//! [`Console`] is the half for everybody but the audio thread: it makes tracks, loads and saves them. [`Rack`] is the audio
//! thread's: a [`strip`] for each [`track`] with its own instance, then the master with its [`limiter`]. In between pass strips that
//! are ready (a [`plan`] is made into one) and those that are done with, what [`mix`] says, and meters.

pub mod clip;
pub mod console;
pub mod limiter;
pub mod mix;
pub mod plan;
pub mod saved;
pub mod strip;
pub mod track;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use arrayvec::ArrayVec;
use ondes_engine::pipeline::Transport;
use ringbuf::traits::{Consumer, Producer};
use ringbuf::{HeapCons, HeapProd};

pub use console::Console;
pub use saved::SessionFile;
pub use track::Track;

use crate::devices::{Callback, ClockFollower, MidiMessage, MidiReceiver};
use crate::record::Tap;
use limiter::Limiter;
use mix::Mix;
use strip::Strip;

/// The most tracks.
pub const TRACKS: usize = 16;
/// MIDI messages of one block; more are left out and counted.
const MESSAGES: usize = 1024;
/// First byte of a program change, without its channel.
const PROGRAM_CHANGE: u8 = 0xC0;

/// A strip that is to stand in that place; none to clear it.
pub(crate) struct Change {
    place: usize,
    strip: Option<Box<Strip>>,
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
    retired: HeapProd<Box<Strip>>,
    midi: Option<MidiReceiver>,
    messages: ArrayVec<(usize, MidiMessage), MESSAGES>,
    clock_follower: ClockFollower,
    /// Programs that were chosen, for the console: channel and number.
    programs: HeapProd<(u8, u8)>,
    /// `[channel][frame]`
    mix: [Vec<f32>; 2],
    master: Arc<Mix>,
    master_gains: [f32; 2],
    limiter: Limiter,
    meter: Arc<Meter>,
    /// The master's, then those of the tracks.
    taps: Vec<Tap>,
    /// Number of the next frame.
    clock: u64,
    sample_rate: u32,
}

impl Callback for Rack {
    fn process(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]) {
        let frames = output.first().map_or(0, |channel| channel.len()).min(self.mix[0].len());
        self.adopt();
        self.listen(frames);
        let song = self.song();
        self.mix.iter_mut().for_each(|channel| channel[..frames].fill(0.0));
        let alone = self.strips.iter().flatten().any(|strip| strip.is_solo());
        for strip in self.strips.iter_mut().flatten() {
            strip.play(self.clock, frames, input, &self.messages, song);
            strip.mix(frames, alone, &mut self.mix);
        }
        self.finish(frames);
        for (strip, tap) in self.strips.iter().zip(self.taps.iter_mut().skip(1)) {
            if let Some(strip) = strip {
                let [left, right] = &strip.sound;
                tap.push(self.clock, &[&left[..frames], &right[..frames]]);
            }
        }
        let [left, right] = &self.mix;
        let (left, right) = (&left[..frames], &right[..frames]);
        if let Some(tap) = self.taps.first_mut() {
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
}

impl Rack {
    /// Samples by which the master is late, after what tracks are.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.limiter.latency_samples()
    }

    /// Puts strips in their places that are ready.
    fn adopt(&mut self) {
        while let Some(Change { place, strip }) = self.changes.try_pop() {
            let Some(here) = self.strips.get_mut(place) else { continue };
            if let Some(old) = std::mem::replace(here, strip)
                && let Err(old) = self.retired.try_push(old)
            {
                // There is room for all that were ever sent; dropping it here would take time.
                std::mem::forget(old);
            }
        }
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

    /// The master: its fader, the limiter, the meters.
    fn finish(&mut self, frames: usize) {
        let settings = self.master.get();
        let target = if settings.mute { [0.0; 2] } else { settings.gains() };
        for ((channel, gain), target) in self.mix.iter_mut().zip(&mut self.master_gains).zip(target) {
            let step = (target - *gain) / frames.max(1) as f32;
            for (frame, sample) in channel[..frames].iter_mut().enumerate() {
                *sample *= if step == 0.0 { target } else { *gain + step * (frame + 1) as f32 };
            }
            *gain = target;
        }
        let [left, right] = &mut self.mix;
        self.limiter.process(&mut left[..frames], &mut right[..frames]);
        for (channel, peak) in self.mix.iter().zip(&self.meter.peaks) {
            let top = channel[..frames].iter().fold(0.0_f32, |top, sample| top.max(sample.abs()));
            peak.fetch_max(top.to_bits(), Relaxed);
        }
        self.meter.reduction.fetch_min(self.limiter.reduction().to_bits(), Relaxed);
    }
}
