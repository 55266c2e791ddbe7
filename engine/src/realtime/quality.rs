//! Which of a model's sizes plays: the one that was chosen, or as much of the model as there is time for.

use std::time::{Duration, Instant};

/// How much of a model that holds smaller sizes of itself plays. What has one size plays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quality {
    /// The whole.
    #[default]
    Full,
    /// The size in the middle; of an even number the smaller one.
    Balanced,
    /// The smallest size.
    Light,
    /// The whole while there is time for it; under load smaller sizes, as long as it takes. Where time does not matter
    /// ([`Remote::set_patient`](super::Remote::set_patient)) the whole.
    Auto,
}

impl Quality {
    /// The place of its size among so many, the whole first; none where the load decides.
    pub(super) fn place(self, sizes: usize) -> Option<usize> {
        match self {
            Self::Full => Some(0),
            Self::Balanced => Some(sizes / 2),
            Self::Light => Some(sizes.saturating_sub(1)),
            Self::Auto => None,
        }
    }
}

/// A load above this is too much: what comes on top of it, as the rest of the machine does, has little room left.
const TOO_MUCH: f32 = 0.8;
/// A larger size must be expected to stay below this.
const ROOM: f64 = 0.5;
/// A size that has just begun is left alone for so long: its load is an average that has to settle.
const SETTLING: Duration = Duration::from_millis(400);
/// There must be room for so long before a larger size is tried; twice as long each time that it was too much again.
const PATIENCE: Duration = Duration::from_secs(4);
const MOST_PATIENCE: Duration = Duration::from_secs(128);
/// A larger size that lasts so long was no mistake.
const LASTING: Duration = Duration::from_secs(20);

/// Steps down to smaller sizes under load, and up again where there is room.
#[derive(Debug)]
pub(super) struct Governor {
    /// The size that is to play: 0 is the whole.
    place: usize,
    /// When it began.
    since: Option<Instant>,
    /// Blocks that were late until it had settled.
    misses: Option<u64>,
    /// Since when there is room for a larger one.
    room_since: Option<Instant>,
    patience: Duration,
    /// It was reached from a smaller one.
    rose: bool,
}

/// What a governor sees.
pub(super) struct Sight {
    pub now: Instant,
    /// Share of the time that is taken, of all that plays on the thread.
    pub load: f32,
    /// What the model takes of that.
    pub own: f32,
    /// Blocks that were late, since the size began.
    pub misses: u64,
    /// How many times as much work the next larger size is.
    pub growth: f64,
    /// How many sizes there are.
    pub sizes: usize,
}

impl Default for Governor {
    /// Begins with the whole.
    fn default() -> Self {
        Self { place: 0, since: None, misses: None, room_since: None, patience: PATIENCE, rose: false }
    }
}

impl Governor {
    pub fn place(&self) -> usize {
        self.place
    }

    /// Looks at how the size that was chosen last is doing. Gives whether there is another one now.
    pub fn look(&mut self, sight: &Sight) -> bool {
        let since = *self.since.get_or_insert(sight.now);
        let age = sight.now.saturating_duration_since(since);
        if age < SETTLING {
            return false;
        }
        let late = sight.misses > *self.misses.get_or_insert(sight.misses);
        if late || sight.load > TOO_MUCH {
            let lighter = self.place + 1 < sight.sizes;
            if lighter {
                if self.rose && age < LASTING {
                    self.patience = (2 * self.patience).min(MOST_PATIENCE);
                }
                self.step(self.place + 1, false);
            }
            // The one that is the smallest begins to count again.
            (self.misses, self.room_since) = (if lighter { None } else { Some(sight.misses) }, None);
            return lighter;
        }
        if self.rose && age >= LASTING {
            (self.rose, self.patience) = (false, PATIENCE);
        }
        let expected = f64::from(sight.load) + f64::from(sight.own) * (sight.growth - 1.0);
        if self.place == 0 || expected > ROOM {
            self.room_since = None;
            return false;
        }
        let room_since = *self.room_since.get_or_insert(sight.now);
        let rises = sight.now.saturating_duration_since(room_since) >= self.patience;
        if rises {
            self.step(self.place - 1, true);
        }
        rises
    }

    fn step(&mut self, place: usize, rose: bool) {
        *self = Self { place, since: None, misses: None, room_since: None, patience: self.patience, rose };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every 20 ms for so many seconds at a machine on which the whole takes `whole` of the time, and each size half of
    /// that of the one before it. Gives where each second ended.
    fn watch(governor: &mut Governor, at: &mut Instant, seconds: u64, whole: f32) -> Vec<usize> {
        let mut ends = Vec::new();
        for _ in 0..seconds {
            for _ in 0..50 {
                *at += Duration::from_millis(20);
                let load = whole / (1 << governor.place()) as f32;
                let misses = if load > 1.0 { u64::MAX } else { 0 };
                governor.look(&Sight { now: *at, load, own: load, misses, growth: 2.0, sizes: 3 });
            }
            ends.push(governor.place());
        }
        ends
    }

    #[test]
    fn each_quality_has_its_size() {
        let places = |quality: Quality| [1, 2, 3, 4].map(|sizes| quality.place(sizes));
        assert_eq!(places(Quality::Full), [Some(0); 4]);
        assert_eq!(places(Quality::Balanced), [Some(0), Some(1), Some(1), Some(2)]);
        assert_eq!(places(Quality::Light), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(places(Quality::Auto), [None; 4]);
    }

    #[test]
    fn steps_down_under_load_and_up_again_when_there_is_room() {
        let (mut governor, mut at) = (Governor::default(), Instant::now());
        assert_eq!(watch(&mut governor, &mut at, 5, 0.5), [0; 5], "there is time for the whole");
        let ends = watch(&mut governor, &mut at, 3, 1.9);
        assert_eq!(ends[2], 2, "two steps down: {ends:?}");
        assert_eq!(watch(&mut governor, &mut at, 20, 1.9), [2; 20], "the next larger one would be too much");
        let ends = watch(&mut governor, &mut at, 15, 0.4);
        assert_eq!((ends[2], ends[14]), (2, 0), "up again, but not at once: {ends:?}");
    }

    #[test]
    fn what_does_not_last_is_tried_less_and_less() {
        let (mut governor, mut at) = (Governor::default(), Instant::now());
        let (mut tries, mut waits) = (Vec::new(), 0);
        // The light size leads to expect that there is room; the whole then takes all of the time.
        for look in 0..50 * 120 {
            at += Duration::from_millis(20);
            let load = if governor.place() == 0 { 0.9 } else { 0.2 };
            let before = governor.place();
            let sight = Sight { now: at, load, own: load, misses: 0, growth: 2.0, sizes: 2 };
            if governor.look(&sight) && governor.place() < before {
                tries.push((look - waits) / 50);
                waits = look;
            }
        }
        assert!(tries.len() >= 4, "{tries:?}");
        assert!(tries.windows(2).all(|pair| pair[1] > pair[0]), "each wait is longer: {tries:?}");
    }

    #[test]
    fn a_late_block_is_too_much_load() {
        let (mut governor, start) = (Governor::default(), Instant::now());
        let mut look = |ms: u64, misses| {
            let now = start + Duration::from_millis(ms);
            governor.look(&Sight { now, load: 0.1, own: 0.1, misses, growth: 4.0, sizes: 2 })
        };
        assert!(
            ![look(0, 0), look(100, 7), look(500, 7), look(600, 7)].contains(&true),
            "what was late while it settled"
        );
        assert!(look(620, 8));
        assert!(!look(640, 0));
        assert!(!look(1_200, 3) && !look(1_300, 4), "there is nothing smaller");
    }
}
