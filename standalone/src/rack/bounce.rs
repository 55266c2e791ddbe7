//! The rack without a clock: renders as fast as possible, with tracks in parallel.

use std::sync::Mutex;
use std::thread;

use ondes_engine::realtime::audio_callback;
use ondes_engine::sync::lock;

use super::master::Master;
use super::rack_callback::Rack;
use super::strip::Strip;

/// Frames rendered at a time: enough to be worth starting threads.
pub const CHUNK: usize = 8_192;

/// Renders what a [`Rack`] plays, sample for sample, with any number of threads and with the same
/// latency.
pub struct Bounce {
    tracks: Vec<BouncedTrack>,
    master: Master,
    tracks_latency: usize,
    clock: u64,
}

/// Track of a [`Bounce`].
pub struct BouncedTrack {
    /// Slot of the track in the mixer.
    pub slot: usize,
    strip: Box<Strip>,
    /// `[channel][frame]`: last chunk, after the fader.
    sound: [Vec<f32>; 2],
}

impl BouncedTrack {
    /// Returns the first frames of the last chunk after the fader, `[channel][frame]`.
    #[must_use]
    pub fn sound(&self, frames: usize) -> [&[f32]; 2] {
        self.sound.each_ref().map(|channel| &channel[..frames])
    }

    /// Returns the track's own latency, without compensation, in samples.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.strip.latency_samples()
    }

    fn play(&mut self, clock: u64, frames: usize, block: usize, input: &[&[f32]], any_solo: bool) {
        for start in (0..frames).step_by(block) {
            let count = block.min(frames - start);
            let mut channels = [[].as_slice(); MAX_INPUTS];
            for (here, channel) in channels.iter_mut().zip(input) {
                *here = &channel[start..start + count];
            }
            let input = &channels[..input.len().min(MAX_INPUTS)];
            self.strip
                .play(clock + start as u64, count, input, &[], None, any_solo);
            for (kept, channel) in self.sound.iter_mut().zip(self.strip.sound(count)) {
                kept[start..start + count].copy_from_slice(channel);
            }
        }
    }
}

/// Input channels that are passed on: the most that a sound file may have.
pub const MAX_INPUTS: usize = 32;

impl Bounce {
    /// Takes over a rack that has not played yet.
    #[must_use]
    pub fn new(rack: Rack) -> Self {
        let Rack {
            strips,
            master,
            tracks_latency,
            clock,
            ..
        } = rack;
        let strips = strips
            .into_iter()
            .enumerate()
            .filter_map(|(slot, strip)| Some((slot, strip?)));
        let sound = || vec![0.0; CHUNK];
        let tracks = strips
            .map(|(slot, strip)| BouncedTrack {
                slot,
                strip,
                sound: [sound(), sound()],
            })
            .collect();
        Self {
            tracks,
            master,
            tracks_latency,
            clock,
        }
    }

    /// Returns the latency of all tracks after compensation, that of the slowest, in samples.
    #[must_use]
    pub fn tracks_latency_samples(&self) -> usize {
        self.tracks_latency
    }

    /// Returns the latency of the master output in samples.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.tracks_latency + self.master.latency_samples()
    }

    /// Returns the longest tail of a track after the end of its input, without the latency, in
    /// samples.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        self.tracks
            .iter()
            .map(|track| track.strip.tail_samples())
            .max()
            .unwrap_or(0)
    }

    /// Returns the tracks.
    #[must_use]
    pub fn tracks(&self) -> &[BouncedTrack] {
        &self.tracks
    }

    /// Returns the gains of the master fader, left and right.
    #[must_use]
    pub fn master_gains(&self) -> [f32; 2] {
        self.master.gains()
    }

    /// Renders at most [`CHUNK`] frames: `input[channel][frame]` is the input, of the same length;
    /// `sink` receives each block of the master. At most `jobs` threads work; the output does not
    /// depend on their number.
    ///
    /// # Errors
    /// Returns the error of `sink`.
    pub fn play<E>(
        &mut self,
        frames: usize,
        input: &[&[f32]],
        jobs: usize,
        mut sink: impl FnMut([&[f32]; 2]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (clock, block) = (self.clock, self.master.max_block());
        let any_solo = self.tracks.iter().any(|track| track.strip.is_solo());
        let jobs = jobs.min(self.tracks.len());
        let due = Mutex::new(self.tracks.iter_mut());
        let work = || {
            // The lock is released before the track plays.
            while let Some(track) = { lock(&due).next() } {
                audio_callback::enter(|| track.play(clock, frames, block, input, any_solo));
            }
        };
        thread::scope(|scope| {
            (1..jobs).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        for start in (0..frames).step_by(block) {
            let count = block.min(frames - start);
            audio_callback::enter(|| {
                self.master.begin(count);
                for track in &self.tracks {
                    self.master.add(
                        track
                            .sound
                            .each_ref()
                            .map(|channel| &channel[start..start + count]),
                    );
                }
                self.master.finish(count);
            });
            sink(self.master.sound(count))?;
        }
        self.clock += frames as u64;
        Ok(())
    }
}
