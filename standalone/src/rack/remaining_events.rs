//! Playback of events from the middle.

use ondes_engine::instrument::{Event, EventKind, PerformanceState};

/// Returns the events from sample `start` on: first, at `start`, the notes and controllers that are
/// active by then, then the later events.
pub fn remaining_events(
    score: impl IntoIterator<Item = (u64, EventKind)>,
    start: u64,
) -> Vec<(u64, EventKind)> {
    let mut state = PerformanceState::new();
    let mut to_come = Vec::new();
    for (at, kind) in score {
        if at < start {
            state.record(&Event { at, kind });
        } else {
            to_come.push((at, kind));
        }
    }
    state
        .events()
        .into_iter()
        .map(|event| (start, event.kind))
        .chain(to_come)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_notes_resume_and_finished_ones_do_not() {
        let on = |key| EventKind::NoteOn {
            channel: 0,
            key,
            velocity: 0.5,
        };
        let off = |key| EventKind::NoteOff {
            channel: 0,
            key,
            velocity: 0.5,
        };
        let wheel = EventKind::Bend {
            channel: 0,
            semitones: 1.0,
        };
        let score = [
            (0, on(60)),
            (5, on(62)),
            (7, wheel),
            (8, off(60)),
            (20, off(62)),
            (30, on(64)),
        ];
        assert_eq!(remaining_events(score, 0), score);
        assert_eq!(
            remaining_events(score, 10),
            [(10, on(62)), (10, wheel), (20, off(62)), (30, on(64))]
        );
        assert_eq!(remaining_events(score, 25), [(25, wheel), (30, on(64))]);
    }
}
