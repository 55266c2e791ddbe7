//! The rack without a clock: what it plays, as fast as it can be made, with the tracks side by side on several cores.

use std::sync::{Mutex, PoisonError};
use std::thread;

use ondes_engine::realtime::gate;

use super::Rack;
use super::master::Master;
use super::strip::Strip;

/// Frames that are made at a time: long enough for threads to be worth starting.
pub const CHUNK: usize = 8_192;

/// What a [`Rack`] plays, sample for sample, however many threads make it. It is as late as the rack.
pub struct Bounce {
    tracks: Vec<BouncedTrack>,
    master: Master,
    slowest: usize,
    clock: u64,
}

/// A track of it.
pub struct BouncedTrack {
    /// Its place in the console.
    pub place: usize,
    strip: Box<Strip>,
    /// `[channel][frame]`: the last chunk, after the fader.
    sound: [Vec<f32>; 2],
}

impl BouncedTrack {
    /// `[channel][frame]`: the first frames of the last chunk, after the fader.
    #[must_use]
    pub fn sound(&self, frames: usize) -> [&[f32]; 2] {
        self.sound.each_ref().map(|channel| &channel[..frames])
    }

    /// Samples by which it is late by itself, without having waited for others.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.strip.latency_samples()
    }

    fn play(&mut self, clock: u64, frames: usize, block: usize, input: &[&[f32]], alone: bool) {
        for start in (0..frames).step_by(block) {
            let count = block.min(frames - start);
            let mut channels = [[].as_slice(); MOST_INPUTS];
            for (here, channel) in channels.iter_mut().zip(input) {
                *here = &channel[start..start + count];
            }
            let input = &channels[..input.len().min(MOST_INPUTS)];
            self.strip.play(clock + start as u64, count, input, &[], None, alone);
            for (kept, channel) in self.sound.iter_mut().zip(self.strip.sound(count)) {
                kept[start..start + count].copy_from_slice(channel);
            }
        }
    }
}

/// Channels of the input that are heard: as many as a sound file may have.
pub const MOST_INPUTS: usize = 32;

impl Bounce {
    /// What a rack that has not played yet would play.
    #[must_use]
    pub fn new(rack: Rack) -> Self {
        let Rack { strips, master, slowest, clock, .. } = rack;
        let strips = strips.into_iter().enumerate().filter_map(|(place, strip)| Some((place, strip?)));
        let sound = || vec![0.0; CHUNK];
        let tracks = strips.map(|(place, strip)| BouncedTrack { place, strip, sound: [sound(), sound()] }).collect();
        Self { tracks, master, slowest, clock }
    }

    /// Samples by which every track is late: the slowest by itself, the others since they wait for it.
    #[must_use]
    pub fn tracks_latency_samples(&self) -> usize {
        self.slowest
    }

    /// Samples by which the master is late.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.slowest + self.master.latency_samples()
    }

    /// Samples that still sound after all that drives the sound has ended, besides the latency.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        self.tracks.iter().map(|track| track.strip.tail_samples()).max().unwrap_or(0)
    }

    /// The tracks.
    #[must_use]
    pub fn tracks(&self) -> &[BouncedTrack] {
        &self.tracks
    }

    /// Factors for left and right of the master's fader.
    #[must_use]
    pub fn master_gains(&self) -> [f32; 2] {
        self.master.gains()
    }

    /// Plays a chunk of at most [`CHUNK`] frames: `input[channel][frame]` is what comes in, as long; `take` is given each block
    /// of the master. At most `jobs` threads work; what is made does not depend on that.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn play<E>(
        &mut self,
        frames: usize,
        input: &[&[f32]],
        jobs: usize,
        mut take: impl FnMut([&[f32]; 2]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (clock, block) = (self.clock, self.master.max_block());
        let alone = self.tracks.iter().any(|track| track.strip.is_solo());
        let jobs = jobs.min(self.tracks.len());
        let due = Mutex::new(self.tracks.iter_mut());
        let work = || {
            // The lock is not held while a track plays.
            while let Some(track) = { due.lock().unwrap_or_else(PoisonError::into_inner).next() } {
                gate::enter(|| track.play(clock, frames, block, input, alone));
            }
        };
        thread::scope(|scope| {
            (1..jobs).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        for start in (0..frames).step_by(block) {
            let count = block.min(frames - start);
            gate::enter(|| {
                self.master.begin(count);
                for track in &self.tracks {
                    self.master.add(track.sound.each_ref().map(|channel| &channel[start..start + count]));
                }
                self.master.finish(count);
            });
            take(self.master.sound(count))?;
        }
        self.clock += frames as u64;
        Ok(())
    }
}
