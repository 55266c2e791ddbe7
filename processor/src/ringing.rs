//! For how long what is played may still sound.

use ondes_engine::instrument::{EventKind, controller};

/// A peak below this, −90 dBFS, is silence.
const AUDIBLE: f32 = 3.162_277_7e-5;
/// A note that is let go falls by 60 dB in its release and is taken away at −80 dB: 4/3 of it for the loudest that there may
/// be, and some time to spare.
const RELEASES: f32 = 1.5;
/// A note that is over or taken away fades within 20 ms; a hop or two of the network go by around it.
pub const FADE_S: f32 = 0.060;
/// What follows a sound finds within 0.1 s that it has ended, but only rests half a second later; until then it may hum softly.
const FOLLOWING_S: f32 = 0.600;
/// A pedal is down from its middle on.
const PEDAL_DOWN: f32 = 0.5;

/// What is held, what may ring, and since when all is quiet. Wait-free.
pub struct Ringing {
    sample_rate: f32,
    /// Release of notes that are struck now, ms.
    release_ms: f32,
    /// The longest release of any note that may still sound: each keeps the one that it was struck with.
    longest_ms: f32,
    /// `[channel]`, a bit for each key.
    held: [u128; 16],
    /// A bit for each channel.
    pedals: u16,
    /// What plays is a sound, not notes.
    follows: bool,
    /// Host samples in which nothing was heard, on either side.
    quiet: usize,
    /// Something was heard since it rested last.
    audible: bool,
    resting: bool,
}

impl Ringing {
    /// Nothing has been played yet. The release is in ms.
    #[must_use]
    pub fn new(sample_rate: u32, release_ms: f32) -> Self {
        Self {
            sample_rate: sample_rate as f32,
            release_ms,
            longest_ms: release_ms,
            held: [0; 16],
            pedals: 0,
            follows: false,
            quiet: 0,
            audible: false,
            resting: false,
        }
    }

    /// Host samples that notes ring after their keys are up, or that it takes to follow a sound to its end.
    #[must_use]
    pub fn samples(&self) -> usize {
        let seconds = if self.follows { FOLLOWING_S } else { RELEASES * self.longest_ms * 1e-3 + FADE_S };
        (seconds * self.sample_rate).ceil() as usize
    }

    /// Whether nothing sounds any more, and nothing will before something comes in.
    #[must_use]
    pub fn is_resting(&self) -> bool {
        self.resting
    }

    /// Whether something was heard that may not be over.
    #[must_use]
    pub fn is_audible(&self) -> bool {
        self.audible
    }

    /// Release of notes that are struck now.
    #[must_use]
    pub fn release_ms(&self) -> f32 {
        self.release_ms
    }

    /// Notes that are struck from now on have this release, ms.
    pub fn set_release(&mut self, release_ms: f32) {
        self.longest_ms = if self.resting { release_ms } else { self.longest_ms.max(release_ms) };
        self.release_ms = release_ms;
        self.stir();
    }

    /// Something is turned, or another model comes.
    pub fn stir(&mut self) {
        (self.quiet, self.resting) = (0, false);
    }

    /// All notes end.
    pub fn silence(&mut self) {
        (self.held, self.pedals) = ([0; 16], 0);
        self.stir();
    }

    /// Somebody plays.
    pub fn play(&mut self, kind: &EventKind) {
        self.stir();
        match *kind {
            // Without velocity it is a note-off.
            EventKind::NoteOn { channel, key, velocity } => self.hold(channel, key, velocity > 0.0),
            EventKind::NoteOff { channel, key, .. } => self.hold(channel, key, false),
            EventKind::Controller { channel, number, value } => match number {
                controller::SUSTAIN => self.pedal(channel, value >= PEDAL_DOWN),
                controller::RESET => self.pedal(channel, false),
                controller::ALL_NOTES_OFF | controller::ALL_SOUND_OFF => self.held[usize::from(channel & 15)] = 0,
                _ => {}
            },
            _ => {}
        }
    }

    fn hold(&mut self, channel: u8, key: u8, on: bool) {
        let (held, bit) = (&mut self.held[usize::from(channel & 15)], 1 << (key & 127));
        *held = if on { *held | bit } else { *held & !bit };
    }

    fn pedal(&mut self, channel: u8, down: bool) {
        let bit = 1 << (channel & 15);
        self.pedals = if down { self.pedals | bit } else { self.pedals & !bit };
    }

    /// So many samples were played, with `loudest` the largest of what came in and what was heard. `follows` says that it was
    /// a sound that played, and `tail` how many samples the rest of the way lasts, such as the room.
    pub fn hear(&mut self, samples: usize, loudest: f32, follows: bool, tail: usize) {
        self.follows = follows;
        self.audible |= loudest > AUDIBLE;
        self.quiet = if loudest > AUDIBLE { 0 } else { self.quiet.saturating_add(samples) };
        // A note that is held may be quiet because it only begins.
        let held = self.pedals != 0 || self.held.iter().any(|keys| *keys != 0);
        self.resting = !held && self.quiet > self.samples() + tail;
        if self.resting {
            (self.longest_ms, self.audible) = (self.release_ms, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(key: u8, on: bool) -> EventKind {
        let (channel, velocity) = (3, 0.5);
        if on { EventKind::NoteOn { channel, key, velocity } } else { EventKind::NoteOff { channel, key, velocity } }
    }

    fn pedal(value: f32) -> EventKind {
        EventKind::Controller { channel: 9, number: controller::SUSTAIN, value }
    }

    /// Silence for a little longer than all may last; gives whether it rests.
    fn wait(ringing: &mut Ringing) -> bool {
        let samples = ringing.samples() + 100;
        ringing.hear(samples, 0.0, false, 100);
        let early = ringing.is_resting();
        ringing.hear(1, 0.0, false, 100);
        assert!(!early, "not before its time");
        ringing.is_resting()
    }

    #[test]
    fn rests_when_nothing_is_held_and_all_is_quiet_for_long_enough() {
        let mut ringing = Ringing::new(48_000, 100.0);
        assert!(wait(&mut ringing));
        ringing.play(&note(60, true));
        assert!(!ringing.is_resting() && !wait(&mut ringing), "a held note may speak late");
        ringing.play(&note(60, false));
        ringing.hear(100, 2.0 * AUDIBLE, false, 0);
        assert!(wait(&mut ringing));
        ringing.play(&pedal(1.0));
        assert!(!wait(&mut ringing));
        ringing.play(&pedal(0.2));
        assert!(wait(&mut ringing));
        ringing.play(&EventKind::NoteOn { channel: 0, key: 64, velocity: 0.0 });
        assert!(wait(&mut ringing), "that is a note-off");
        ringing.play(&note(3, true));
        ringing.silence();
        assert!(wait(&mut ringing));
    }

    #[test]
    fn is_as_long_as_the_longest_note_that_may_still_sound() {
        let mut ringing = Ringing::new(48_000, 100.0);
        let short = ringing.samples();
        ringing.set_release(10_000.0);
        assert!((ringing.samples() as f32 / 48_000.0 - 15.0 - FADE_S).abs() < 1e-3);
        ringing.play(&note(60, true));
        ringing.set_release(100.0);
        ringing.play(&note(60, false));
        assert!(ringing.samples() > 15 * 48_000, "the note was struck with the long one");
        assert!(wait(&mut ringing));
        assert_eq!(ringing.samples(), short);
        // Where nothing sounds, nothing has to be waited for.
        ringing.set_release(10_000.0);
        assert!(wait(&mut ringing));
        ringing.set_release(100.0);
        assert_eq!(ringing.samples(), short);
    }

    #[test]
    fn a_sound_that_is_followed_does_not_ring() {
        let mut ringing = Ringing::new(48_000, 20_000.0);
        ringing.hear(10, 0.0, true, 0);
        assert_eq!(ringing.samples(), (FOLLOWING_S * 48_000.0).ceil() as usize);
    }
}
