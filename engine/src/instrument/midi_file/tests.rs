use super::*;
use proptest::prelude::*;

fn file(format: u8, division: [u8; 2], tracks: &[&[u8]]) -> Vec<u8> {
    let mut bytes = b"MThd\0\0\0\x06\0".to_vec();
    bytes.extend([format, 0, tracks.len() as u8]);
    bytes.extend(division);
    for track in tracks {
        bytes.extend(b"MTrk");
        bytes.extend((track.len() as u32).to_be_bytes());
        bytes.extend(*track);
    }
    bytes
}

/// 96 ticks per quarter note.
const PPQ: [u8; 2] = [0, 96];
const END: [u8; 4] = [0, 0xFF, 0x2F, 0];

fn two_tracks() -> Vec<u8> {
    // Tempo 1 s per quarter at first, 0.5 s from the second quarter on.
    let conductor = [
        &[
            0, 0xFF, 0x51, 3, 0x0F, 0x42, 0x40, 96, 0xFF, 0x51, 3, 0x07, 0xA1, 0x20,
        ][..],
        &END,
    ]
    .concat();
    // Running status: on, off (velocity 0) after two quarters (0x81 0x40 = 192 ticks), on with
    // another key, off.
    let part = [
        &[0, 0xFF, 3, 4][..],
        b"Oboe",
        &[0, 0x92, 60, 100, 0x81, 0x40, 60, 0, 0, 62, 127, 96, 62, 0],
        &END,
    ]
    .concat();
    file(1, PPQ, &[&conductor, &part])
}

#[test]
fn running_status_tempo_and_names() {
    let midi = MidiFile::parse(&two_tracks()).unwrap();
    assert_eq!(midi.tracks.len(), 2);
    assert_eq!(
        midi.tracks[1],
        MidiTrack {
            name: "Oboe".into(),
            notes: 2,
            channels: 1 << 2,
            complete: true,
            start_s: 0.0
        }
    );
    assert_eq!(midi.track_named("Oboe"), Some(1));
    let times: Vec<_> = midi.events.iter().map(|event| event.at_s).collect();
    assert_eq!(times, [0.0, 1.5, 1.5, 2.0]);
    assert_eq!(midi.duration_s, 2.0);
    assert_eq!(
        midi.events[2].kind,
        EventKind::NoteOn {
            channel: 2,
            key: 62,
            velocity: 1.0
        }
    );
    assert_eq!(
        midi.events[3].kind,
        EventKind::NoteOff {
            channel: 2,
            key: 62,
            velocity: 0.5
        }
    );
    assert_eq!(midi.key_range(MidiSelection::All), Some((60, 62)));
    let at: Vec<_> = midi
        .events_at(48_000.0, MidiSelection::Track(1))
        .map(|event| event.at)
        .collect();
    assert_eq!(at, [0, 72_000, 72_000, 96_000]);
    assert_eq!(midi.notes(MidiSelection::Track(0)), 0);
    assert_eq!(midi.notes(MidiSelection::Channel(2)), 2);
    assert_eq!(midi.notes(MidiSelection::Channel(3)), 0);
}

#[test]
fn smpte_time_ignores_tempo() {
    // 25 frames of 40 ticks: milliseconds.
    let track = [
        &[
            0, 0xFF, 0x51, 3, 0, 0, 1, 0, 0x90, 60, 100, 0x83, 0x74, 0x80, 60, 0,
        ][..],
        &END,
    ]
    .concat();
    let midi = MidiFile::parse(&file(0, [0xE7, 40], &[&track])).unwrap();
    assert_eq!(midi.events[1].at_s, 0.5);
}

#[test]
fn held_notes_are_released_at_the_end() {
    let track = [
        &[0, 0xB0, 64, 127, 0, 0x90, 60, 100][..],
        &[96, 0xFF, 0x2F, 0],
    ]
    .concat();
    let midi = MidiFile::parse(&file(0, PPQ, &[&track])).unwrap();
    let last: Vec<_> = midi.events[2..]
        .iter()
        .map(|event| (event.at_s, event.kind))
        .collect();
    let off = EventKind::NoteOff {
        channel: 0,
        key: 60,
        velocity: 0.5,
    };
    let up = EventKind::Controller {
        channel: 0,
        number: 64,
        value: 0.0,
    };
    assert_eq!(last, [(0.5, off), (0.5, up)]);
}

#[test]
fn bend_range_is_per_track() {
    let ranged = [
        &[
            0, 0xB0, 101, 0, 0, 100, 0, 0, 6, 12, 0, 0xE0, 0, 0, 0, 0x90, 60, 9,
        ][..],
        &END,
    ]
    .concat();
    let plain = [&[0, 0xE0, 0, 0][..], &END].concat();
    let midi = MidiFile::parse(&file(1, PPQ, &[&ranged, &plain])).unwrap();
    let bends: Vec<_> = midi
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Bend { semitones, .. } => Some((event.track, semitones)),
            _ => None,
        })
        .collect();
    assert_eq!(bends, [(0, 0.0), (0, -12.0), (1, -2.0)]);
}

#[test]
fn riff_is_unwrapped() {
    let inner = two_tracks();
    let mut riff = b"RIFF\0\0\0\0RMIDdata".to_vec();
    riff.extend((inner.len() as u32).to_le_bytes());
    riff.extend(&inner);
    assert_eq!(
        MidiFile::parse(&riff).unwrap(),
        MidiFile::parse(&inner).unwrap()
    );
}

#[test]
fn errors_are_one_line_and_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let message = |bytes: &[u8]| {
        let path = folder.path().join("song.mid");
        std::fs::write(&path, bytes).unwrap();
        let error = MidiFile::read(&path).unwrap_err().to_string();
        assert!(!error.contains('\n'));
        error
            .strip_prefix(&format!("{}: ", path.display()))
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        message(b"La la la, a song in words."),
        "not a MIDI file: it has no header (MThd)"
    );
    assert_eq!(message(b""), "not a MIDI file: it has no header (MThd)");
    assert_eq!(
        message(b"MThd\0\0\0\x06\0\x01"),
        "not a MIDI file: its header is cut short"
    );
    assert_eq!(
        message(&file(0, [0, 0], &[&END])),
        "not a MIDI file: its time division is invalid"
    );
    assert_eq!(
        message(&file(0, [0x80, 0], &[&END])),
        "not a MIDI file: its time division is invalid"
    );
    assert_eq!(message(&file(0, PPQ, &[&END])), "contains no notes");
    let years = [
        &[0, 0x90, 60, 100][..],
        &[0xFF, 0xFF, 0xFF, 0x7F, 60, 0].repeat(9),
        &END,
    ]
    .concat();
    assert_eq!(
        message(&file(0, [0, 1], &[&years])),
        "too large: more than 24 hours"
    );
    assert!(
        MidiFile::read(folder.path().join("none.mid"))
            .unwrap_err()
            .to_string()
            .contains("none.mid: ")
    );
}

#[test]
fn size_and_count_are_limited() {
    let oversized = vec![0; MAX_BYTES as usize + 1];
    assert!(matches!(
        MidiFile::parse(&oversized),
        Err(MidiError::TooLarge {
            quantity: "bytes",
            ..
        })
    ));
    let dense = [&[0, 0x90][..], &[60, 1, 0].repeat(MAX_EVENTS + 1)].concat();
    assert!(matches!(
        MidiFile::parse(&file(0, PPQ, &[&dense])),
        Err(MidiError::TooLarge {
            quantity: "events",
            ..
        })
    ));
}

#[test]
fn a_track_that_is_cut_short_is_played_up_to_its_end() {
    let whole = two_tracks();
    // Note-off and end of track are missing.
    let midi = MidiFile::parse(&whole[..whole.len() - 7]).unwrap();
    assert!(!midi.tracks[1].complete);
    assert_eq!(
        midi.warning.as_deref(),
        Some("the file is damaged: track 2 is cut short")
    );
    assert_eq!(midi.tracks[1].notes, 2);
    let balance: i32 = midi
        .events
        .iter()
        .map(|event| match event.kind {
            EventKind::NoteOn { .. } => 1,
            EventKind::NoteOff { .. } => -1,
            _ => 0,
        })
        .sum();
    assert_eq!(balance, 0);
}

#[test]
fn a_warning_says_what_was_skipped() {
    let fault = [0xF4, 0, 0x90, 60, 0x80 | 9, 0, 0x80, 60, 64, 0];
    let track = [&[0][..], &fault.repeat(3), &END[1..]].concat();
    let bytes = [&file(1, PPQ, &[&track, &END])[..], b"junk that follows"].concat();
    let midi = MidiFile::parse(&bytes).unwrap();
    let expected = "the file is damaged: skipped 6 bytes of track 1 from byte 22; \
        3 data bytes of track 1 above 127, read without the eighth bit; skipped 17 bytes after the tracks";
    assert_eq!(midi.warning.as_deref(), Some(expected));
    assert!(!midi.tracks[0].complete && midi.tracks[1].complete);
    assert_eq!(MidiFile::parse(&two_tracks()).unwrap().warning, None);
}

#[test]
fn a_file_may_be_cut_anywhere() {
    let whole = two_tracks();
    let notes = |midi: &MidiFile| midi.notes(MidiSelection::All);
    let first_note = whole.len() - 14;
    for length in 0..whole.len() {
        match MidiFile::parse(&whole[..length]) {
            Ok(midi) => {
                assert!(length >= first_note && midi.warning.is_some(), "{length}");
                assert!((1..=2).contains(&notes(&midi)), "{length}");
                assert!(sane(&midi));
            }
            Err(error) => assert!(length < first_note, "{length}: {error}"),
        }
    }
}

#[test]
fn a_track_of_format_2_can_be_played_alone() {
    let track = [&[0, 0x90, 60, 100, 96, 60, 0][..], &END].concat();
    let midi = MidiFile::parse(&file(2, PPQ, &[&track, &track])).unwrap();
    assert_eq!(midi.tracks[1].start_s, 0.5);
    let at = |part| {
        midi.events_at(48_000.0, part)
            .map(|event| event.at)
            .collect::<Vec<_>>()
    };
    assert_eq!(at(MidiSelection::All), [0, 24_000, 24_000, 48_000]);
    assert_eq!(at(MidiSelection::Track(1)), [0, 24_000]);
}

#[test]
fn tunings_and_resets_of_all_channels_are_in_every_part() {
    let conductor = [&[0, 0xF0, 7, 0x7F, 0x7F, 4, 4, 0, 66, 0xF7][..], &END].concat();
    let part = [&[0, 0x91, 60, 100, 96, 60, 0][..], &END].concat();
    let midi = MidiFile::parse(&file(1, PPQ, &[&conductor, &part])).unwrap();
    for selection in [
        MidiSelection::All,
        MidiSelection::Track(1),
        MidiSelection::Channel(1),
    ] {
        let first = midi
            .events_at(48_000.0, selection)
            .next()
            .map(|event| event.kind);
        assert_eq!(first, Some(EventKind::MasterTuning { semitones: 2.0 }));
    }
}

fn sane(midi: &MidiFile) -> bool {
    midi.events.is_sorted_by(|a, b| a.at_s <= b.at_s)
        && midi
            .events
            .iter()
            .all(|event| event.at_s.is_finite() && event.at_s <= midi.duration_s)
        && midi.duration_s.is_finite()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn mutated_files_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12), cut in 0usize..200,
    ) {
        let mut bytes = two_tracks();
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(cut / 4));
        if let Ok(midi) = MidiFile::parse(&bytes) {
            prop_assert!(sane(&midi));
        }
    }

    #[test]
    fn arbitrary_tracks_never_panic(track in prop::collection::vec(any::<u8>(), 0..300), high: u8, low: u8) {
        if let Ok(midi) = MidiFile::parse(&file(1, [high, low], &[&track])) {
            prop_assert!(sane(&midi));
        }
    }
}
