//! Notes of one key that the host tells apart by their ids.

use super::super::super::event::NoteChange;
use super::*;

fn note(at: u64, id: i32, change: NoteChange) -> Event {
    Event {
        at,
        kind: EventKind::Note {
            id,
            channel: 0,
            key: 60,
            change,
        },
    }
}

fn on_with_id(at: u64, id: i32) -> Event {
    note(at, id, NoteChange::On(0.8))
}

fn off_with_id(at: u64, id: i32) -> Event {
    note(at, id, NoteChange::Off(0.5))
}

/// Performance whose notes end soon after their release.
fn short() -> Performance {
    Performance {
        release_ms: 20.0,
        ..steady()
    }
}

fn count(frames: &[Vec<VoiceFrame>], at: u64) -> usize {
    sounding(&frames[(at / u64::from(HOP)) as usize]).len()
}

#[test]
fn a_note_off_ends_the_note_with_its_id() {
    for (first, second) in [(1, 2), (2, 1)] {
        let events = [
            on_with_id(0, 1),
            on_with_id(4_800, 2),
            off_with_id(9_600, first),
            off_with_id(19_200, second),
        ];
        let frames = play(&mut voices(&short(), 8), &events, 28_800);
        assert_eq!(
            [4_000, 9_400, 17_000, 28_000].map(|at| count(&frames, at)),
            [1, 2, 1, 0]
        );
    }
}

#[test]
fn a_note_off_without_id_ends_all_notes_of_its_key() {
    let events = [
        on_with_id(0, 1),
        on_with_id(0, 2),
        on(0, 60),
        on(0, 64),
        off(9_600, 60),
    ];
    let frames = play(&mut voices(&short(), 8), &events, 19_200);
    assert_eq!([9_400, 19_000].map(|at| count(&frames, at)), [4, 1]);
    // A note that began without an id hears all events of its key.
    let frames = play(
        &mut voices(&short(), 8),
        &[on(0, 60), off_with_id(9_600, 5)],
        19_200,
    );
    assert_eq!([9_400, 19_000].map(|at| count(&frames, at)), [1, 0]);
}

#[test]
fn an_unknown_id_ends_nothing() {
    let events = [on_with_id(0, 1), off_with_id(9_600, 2)];
    let frames = play(&mut voices(&short(), 8), &events, 19_200);
    assert_eq!(count(&frames, 19_000), 1);
}

#[test]
fn expression_is_for_the_note_with_its_id() {
    let bend = note(
        4_800,
        2,
        NoteChange::Expression(NoteExpression::Tuning(7.0)),
    );
    let frames = play(
        &mut voices(&short(), 8),
        &[on_with_id(0, 1), on_with_id(0, 2), bend],
        19_200,
    );
    let pitches: Vec<f32> = sounding(&frames[99])
        .iter()
        .map(|slot| slot.pitch)
        .collect();
    assert!(
        (pitches[0] - 60.0).abs() < 1e-3 && (pitches[1] - 67.0).abs() < 1e-3,
        "{pitches:?}"
    );
}

#[test]
fn a_released_key_is_struck_again_in_its_voice() {
    let events = [
        on_with_id(0, 1),
        off_with_id(9_600, 1),
        on_with_id(9_700, 2),
    ];
    let frames = play(&mut voices(&steady(), 8), &events, 19_200);
    assert_eq!(
        frames.iter().map(|frame| sounding(frame).len()).max(),
        Some(1)
    );
    // The next event of the note has its new id.
    let events = [&events[..], &[off_with_id(12_000, 1)]].concat();
    let frames = play(&mut voices(&short(), 8), &events, 19_200);
    assert_eq!(count(&frames, 19_000), 1);
}

#[test]
fn a_shared_voice_ends_with_the_last_note_of_a_key() {
    for mode in [PlayMode::Mono, PlayMode::Legato] {
        let performance = Performance { mode, ..short() };
        let events = [
            on_with_id(0, 1),
            on_with_id(4_800, 2),
            off_with_id(9_600, 1),
            off_with_id(19_200, 2),
        ];
        let frames = play(&mut voices(&performance, 8), &events, 28_800);
        assert_eq!(
            [4_000, 9_400, 17_000, 28_000].map(|at| count(&frames, at)),
            [1, 1, 1, 0]
        );
        let events = [
            on_with_id(0, 1),
            on_with_id(4_800, 2),
            off_with_id(9_600, 2),
            off_with_id(19_200, 1),
        ];
        let frames = play(&mut voices(&performance, 8), &events, 28_800);
        assert_eq!(
            [4_000, 9_400, 17_000, 28_000].map(|at| count(&frames, at)),
            [1, 1, 1, 0]
        );
    }
}
