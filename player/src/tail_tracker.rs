//! Tracks how long an instance may still sound.

use ondes_engine::instrument::{EventKind, NoteCounts, controller};

/// Peaks below this, −90 dBFS, count as silence.
pub const AUDIBLE: f32 = 3.162_277_7e-5;
/// Release times until a note has ended: its level falls by 60 dB in one release time and the note
/// stops at −80 dB, 4/3 of it; the rest is a margin.
const RELEASES: f32 = 1.5;
/// Time for a voice that is stopped or stolen to fade, 20 ms, and for the network's hops around it,
/// seconds.
pub const FADE_S: f32 = 0.060;
/// Time after which a model that follows an input is silent, seconds. It detects the end within 0.1
/// s, but its noise stops half a second later.
const FOLLOWING_S: f32 = 0.600;
/// Controller value from which a pedal is down.
const PEDAL_DOWN: f32 = 0.5;

/// Held notes, release times and the time since the last audible sample. Wait-free.
pub struct TailTracker {
    sample_rate: f32,
    /// Release time of new notes, ms.
    release_ms: f32,
    /// Longest release time of any note that may still sound; a note keeps the one that it started
    /// with.
    longest_release_ms: f32,
    /// `[channel]`
    held: [NoteCounts; 16],
    /// Sustain and sostenuto pedals, one bit for each channel.
    pedals: [u16; 2],
    /// The model follows an audio input instead of notes.
    follows_input: bool,
    /// Host samples since input or output was audible.
    silent_samples: usize,
    /// True if anything was audible since the last silence.
    audible: bool,
    silent: bool,
}

impl TailTracker {
    /// Creates a tracker that has seen no notes. `release_ms` is the release time in ms.
    #[must_use]
    pub fn new(sample_rate: u32, release_ms: f32) -> Self {
        Self {
            sample_rate: sample_rate as f32,
            release_ms,
            longest_release_ms: release_ms,
            held: [NoteCounts::default(); 16],
            pedals: [0; 2],
            follows_input: false,
            silent_samples: 0,
            audible: false,
            silent: false,
        }
    }

    /// Returns the tail in host samples: the release of notes, or the time to follow an input to
    /// its end.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        let seconds = if self.follows_input {
            FOLLOWING_S
        } else {
            RELEASES * self.longest_release_ms * 1e-3 + FADE_S
        };
        (seconds * self.sample_rate).ceil() as usize
    }

    /// Returns whether nothing sounds, and nothing will until the next note or input.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// Returns whether something was audible that may not have ended.
    #[must_use]
    pub fn is_audible(&self) -> bool {
        self.audible
    }

    /// Returns the release time of new notes, ms.
    #[must_use]
    pub fn release_ms(&self) -> f32 {
        self.release_ms
    }

    /// Sets the release time of new notes, ms.
    pub fn set_release(&mut self, release_ms: f32) {
        self.longest_release_ms = if self.silent {
            release_ms
        } else {
            self.longest_release_ms.max(release_ms)
        };
        self.release_ms = release_ms;
        self.restart();
    }

    /// Restarts the wait for silence, after a parameter or the model has changed.
    pub fn restart(&mut self) {
        (self.silent_samples, self.silent) = (0, false);
    }

    /// Releases all notes and pedals.
    pub fn release_all(&mut self) {
        (self.held, self.pedals) = ([NoteCounts::default(); 16], [0; 2]);
        self.restart();
    }

    /// Handles an event.
    pub fn handle_event(&mut self, kind: &EventKind) {
        self.restart();
        let (kind, id) = kind.without_id();
        match kind {
            // A velocity of 0 means note-off.
            EventKind::NoteOn {
                channel,
                key,
                velocity,
            } => self.hold(channel, key, id, velocity > 0.0),
            EventKind::NoteOff { channel, key, .. } => self.hold(channel, key, id, false),
            EventKind::Controller {
                channel,
                number,
                value,
            } => match number {
                controller::SUSTAIN => self.pedal(0, channel, value >= PEDAL_DOWN),
                controller::SOSTENUTO => self.pedal(1, channel, value >= PEDAL_DOWN),
                controller::RESET => (0..2).for_each(|pedal| self.pedal(pedal, channel, false)),
                controller::ALL_SOUND_OFF | controller::ALL_NOTES_OFF.. => {
                    self.held[usize::from(channel & 15)] = NoteCounts::default();
                }
                _ => {}
            },
            EventKind::SystemReset => self.release_all(),
            _ => {}
        }
    }

    fn hold(&mut self, channel: u8, key: u8, id: Option<i32>, on: bool) {
        let held = &mut self.held[usize::from(channel & 15)];
        if on {
            held.press(key, id);
        } else {
            held.lift(key, id);
        }
    }

    fn pedal(&mut self, pedal: usize, channel: u8, down: bool) {
        let (pedals, bit) = (&mut self.pedals[pedal], 1 << (channel & 15));
        *pedals = if down { *pedals | bit } else { *pedals & !bit };
    }

    /// Advances by `samples`, of which `loudest` is the largest peak of input and output.
    /// `follows_input` tells whether audio controls the model, and `tail` is the length of what
    /// comes after it, such as a reverb.
    pub fn advance(&mut self, samples: usize, loudest: f32, follows_input: bool, tail: usize) {
        self.follows_input = follows_input;
        self.audible |= loudest > AUDIBLE;
        self.silent_samples = if loudest > AUDIBLE {
            0
        } else {
            self.silent_samples.saturating_add(samples)
        };
        // A held note may be inaudible in its attack.
        let held = self.pedals != [0; 2] || self.held.iter().any(NoteCounts::any);
        self.silent = !held && self.silent_samples > tail.saturating_add(self.tail_samples());
        if self.silent {
            (self.longest_release_ms, self.audible) = (self.release_ms, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(key: u8, on: bool) -> EventKind {
        let (channel, velocity) = (3, 0.5);
        if on {
            EventKind::NoteOn {
                channel,
                key,
                velocity,
            }
        } else {
            EventKind::NoteOff {
                channel,
                key,
                velocity,
            }
        }
    }

    fn pedal(value: f32) -> EventKind {
        EventKind::Controller {
            channel: 9,
            number: controller::SUSTAIN,
            value,
        }
    }

    /// Advances by silence, a little longer than any tail; returns whether the tracker is silent.
    fn wait(tail: &mut TailTracker) -> bool {
        let samples = tail.tail_samples() + 100;
        tail.advance(samples, 0.0, false, 100);
        let early = tail.is_silent();
        tail.advance(1, 0.0, false, 100);
        assert!(!early, "not before its time");
        tail.is_silent()
    }

    #[test]
    fn rests_when_nothing_is_held_and_all_is_quiet_for_long_enough() {
        let mut tail = TailTracker::new(48_000, 100.0);
        assert!(wait(&mut tail));
        tail.handle_event(&note(60, true));
        assert!(
            !tail.is_silent() && !wait(&mut tail),
            "a held note may speak late"
        );
        tail.handle_event(&note(60, false));
        tail.advance(100, 2.0 * AUDIBLE, false, 0);
        assert!(wait(&mut tail));
        tail.handle_event(&pedal(1.0));
        assert!(!wait(&mut tail));
        tail.handle_event(&pedal(0.2));
        assert!(wait(&mut tail));
        tail.handle_event(&EventKind::NoteOn {
            channel: 0,
            key: 64,
            velocity: 0.0,
        });
        assert!(wait(&mut tail), "that is a note-off");
        tail.handle_event(&note(3, true));
        tail.release_all();
        assert!(wait(&mut tail));
    }

    #[test]
    fn is_as_long_as_the_longest_note_that_may_still_sound() {
        let mut tail = TailTracker::new(48_000, 100.0);
        let short = tail.tail_samples();
        tail.set_release(10_000.0);
        assert!((tail.tail_samples() as f32 / 48_000.0 - 15.0 - FADE_S).abs() < 1e-3);
        tail.handle_event(&note(60, true));
        tail.set_release(100.0);
        tail.handle_event(&note(60, false));
        assert!(
            tail.tail_samples() > 15 * 48_000,
            "the note was struck with the long one"
        );
        assert!(wait(&mut tail));
        assert_eq!(tail.tail_samples(), short);
        // While nothing sounds, a longer release needs no wait.
        tail.set_release(10_000.0);
        assert!(wait(&mut tail));
        tail.set_release(100.0);
        assert_eq!(tail.tail_samples(), short);
    }

    #[test]
    fn a_sound_that_is_followed_does_not_ring() {
        let mut tail = TailTracker::new(48_000, 20_000.0);
        tail.advance(10, 0.0, true, 0);
        assert_eq!(
            tail.tail_samples(),
            (FOLLOWING_S * 48_000.0).ceil() as usize
        );
    }
}
