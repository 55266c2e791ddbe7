//! Things to play at samples, from some moment on.

use ondes_engine::instrument::{Event, EventKind, Memory};

/// What is left of a score from sample `start` on: first, there, what is held and set by then, then what comes. Notes that sound
/// at that moment go on; those that are over stay over.
pub fn rest(score: impl IntoIterator<Item = (u64, EventKind)>, start: u64) -> Vec<(u64, EventKind)> {
    let mut memory = Memory::new();
    let mut to_come = Vec::new();
    for (at, kind) in score {
        if at < start {
            memory.note(&Event { at, kind });
        } else {
            to_come.push((at, kind));
        }
    }
    memory.events().into_iter().map(|event| (start, event.kind)).chain(to_come).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_goes_on_and_what_is_over_does_not() {
        let on = |key| EventKind::NoteOn { channel: 0, key, velocity: 0.5 };
        let off = |key| EventKind::NoteOff { channel: 0, key, velocity: 0.5 };
        let wheel = EventKind::Bend { channel: 0, semitones: 1.0 };
        let score = [(0, on(60)), (5, on(62)), (7, wheel), (8, off(60)), (20, off(62)), (30, on(64))];
        assert_eq!(rest(score, 0), score);
        assert_eq!(rest(score, 10), [(10, on(62)), (10, wheel), (20, off(62)), (30, on(64))]);
        assert_eq!(rest(score, 25), [(25, wheel), (30, on(64))]);
    }
}
