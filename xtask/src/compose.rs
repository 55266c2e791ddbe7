//! The demo's piece, "First Light": a slow waltz in D minor for a bowed, a wind and a plucked instrument.
//!
//! Two bars of the plucked alone; eight of the bowed melody over a bass that walks down from D to the half-cadence on A,
//! joined by the wind in sixths; four that rise through F major to the highest note; five that fall, slow down and end in
//! D major. The tables below are the score, one entry for a bar; the rest of the file is how it is played.

use midly::num::{u4, u7, u15, u24, u28};
use midly::{Format, Header, MetaMessage, MidiMessage, Timing, TrackEvent, TrackEventKind};

/// Names of the parts, which are the names of their tracks; they are on channels 0, 1 and 2.
pub const PARTS: [&str; 3] = ["Bowed", "Wind", "Plucked"];

const BARS: usize = 19;
const BEATS_PER_BAR: usize = 3;

/// Melody: a note (or `-` for a rest), then how many beats it has.
#[rustfmt::skip]
const BOWED: [&str; BARS] = [
    "- 3", "- 3", // the plucked alone
    "A4 2 D5 1", "E5 2 C5 1", "D5 1.5 E5 0.5 F5 1", "E5 1 D5 0.5 C5 1.5",
    "Bb4 2 D5 1", "F5 1.5 E5 0.5 D5 1", "E5 1.5 F5 0.5 G5 1", "E5 2 C#5 1",
    "F5 1.5 G5 0.5 A5 1", "G5 2 C6 1", "A5 2 F5 1", "D6 2 C6 1",
    "Bb5 1 A5 1 G5 1", "F5 1.5 E5 0.5 D5 1", "E5 1 D5 1 C#5 1", "D5 6", "",
];

/// Counter-melody, written in the same way.
#[rustfmt::skip]
const WIND: [&str; BARS] = [
    "- 3", "- 3",
    "- 3", "- 3", "- 3", "- 2 A4 1",
    "G4 2 Bb4 1", "A4 1.5 G4 0.5 F4 1", "G4 1.5 A4 0.5 Bb4 1", "A4 1 G4 1 E4 1",
    "A4 2 F4 1", "E4 1 G4 1 E5 1", "F5 2 D5 1", "F5 2 E5 1",
    "D5 1 C5 1 Bb4 1", "A4 1.5 G4 0.5 F4 1", "G4 3", "F#4 6", "",
];

/// Six quavers a bar, which ring on; `+` joins the notes of a chord.
#[rustfmt::skip]
const PLUCKED: [&str; BARS] = [
    "D3 A3 D4 F4 D4 A3", "D3 A3 D4 E4 D4 A3",
    "D3 A3 D4 F4 D4 A3", "C3 A3 C4 E4 C4 A3", "Bb2 F3 A3 D4 A3 F3", "A2 F3 A3 C4 F4 C4",
    "G2 D3 Bb3 D4 G4 D4", "F2 D3 A3 D4 F4 D4", "E2 E3 G3 Bb3 D4 Bb3", "A2 E3 G3 C#4 E4 G4",
    "F2+C3+A3+F4 C3 A3 C4 F4 A4", "E2+C3+G3 C3 G3 C4 E4 G4", "D3+A3+F4 A3 D4 F4 A4 D5", "Bb2+F3+D4+F4+Bb4 F3 Bb3 D4 F4 Bb4",
    "G2+D3+Bb3 D3 G3 Bb3 F4 D4", "A2 F3 A3 D4 F4 D4", "A2 E3 A3 D4 C#4 G3", "D3+A3+D4+F#4+A4+D5 - - - - -", "- - A5 - - -",
];

/// Loudness at the beginning of each bar, 0 … 1, with one more for the end.
#[rustfmt::skip]
const DYNAMICS: [f64; BARS + 1] = [
    0.42, 0.46, // entering
    0.52, 0.56, 0.62, 0.58, 0.56, 0.64, 0.72, 0.60, // the walk down
    0.68, 0.78, 0.86, 1.00, // the rise
    0.86, 0.72, 0.60, 0.56, 0.44, 0.30, // home
];

/// Quarter notes per minute at the beginning of each bar: a hesitation at the half-cadence, a little haste towards the
/// climax, and a long ritardando.
#[rustfmt::skip]
const TEMPO: [f64; BARS + 1] = [
    86.0, 87.0, 88.0, 89.0, 90.0, 88.0, 89.0, 91.0, 90.0, 86.0, 91.0, 93.0, 95.0, 92.0, 90.0, 86.0, 78.0, 66.0, 66.0, 66.0,
];

/// Where the melodies breathe, in beats; elsewhere a note lasts a little into the next.
const PHRASE_ENDS: [f64; 3] = [18.0, 30.0, 42.0];
const BREATH_BEATS: f64 = 0.18;
const SLUR_BEATS: f64 = 0.04;

const TICKS_PER_BEAT: u32 = 480;
/// Silence before the first note, so that it too may come a little early.
const LEAD_IN_TICKS: i64 = 60;

/// One note as played.
#[derive(Clone, Copy, Debug)]
struct Note {
    key: u8,
    /// In beats from the beginning.
    start: f64,
    beats: f64,
    /// 0 … 1.
    velocity: f64,
    /// Later than written, in ticks.
    delay_ticks: i64,
}

/// The piece as a Standard MIDI File of format 1: a track for the tempo and one for each of [`PARTS`]. Always the same
/// bytes.
pub fn compose() -> Vec<u8> {
    let bowed = melody(&BOWED, 1);
    let wind = melody(&WIND, 2);
    let tracks = [
        conductor(),
        // General MIDI programs, for players that know them: violin, flute, harp.
        part(0, 40, &bowed, singing(&bowed, 0.55)),
        part(1, 73, &wind, singing(&wind, 0.30)),
        part(2, 46, &plucked(), Vec::new()),
    ];
    let header = Header::new(Format::Parallel, Timing::Metrical(u15::new(TICKS_PER_BEAT as u16)));
    let mut bytes = Vec::new();
    midly::write_std(&header, &tracks, &mut bytes).expect("a short piece fits a MIDI file, and memory takes it");
    bytes
}

fn melody(bars: &[&str], salt: u64) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut start = 0.0;
    let tokens: Vec<_> = bars.iter().flat_map(|bar| bar.split_whitespace()).collect();
    for (i, pair) in tokens.chunks(2).enumerate() {
        let beats: f64 = pair[1].parse().expect("a note is followed by its beats");
        if pair[0] != "-" {
            let wobble = random(salt, i as u64);
            let down_beat = if start % BEATS_PER_BAR as f64 == 0.0 { 0.04 } else { 0.0 };
            notes.push(Note {
                key: key(pair[0]),
                start,
                beats: if PHRASE_ENDS.contains(&(start + beats)) { beats - BREATH_BEATS } else { beats + SLUR_BEATS },
                velocity: 0.16 + 0.66 * at(&DYNAMICS, start) + down_beat + 0.03 * wobble,
                delay_ticks: (6.0 * random(salt + 10, i as u64)) as i64,
            });
        }
        start += beats;
    }
    notes
}

fn plucked() -> Vec<Note> {
    /// How the six quavers of a bar of three weigh.
    const WEIGHT: [f64; 6] = [1.0, 0.74, 0.84, 0.80, 0.84, 0.72];
    let mut notes = Vec::new();
    for (bar, quavers) in PLUCKED.iter().enumerate() {
        let bar_start = (bar * BEATS_PER_BAR) as f64;
        let ending = bar >= BARS - 2;
        for (i, chord) in quavers.split_whitespace().enumerate().filter(|(_, chord)| *chord != "-") {
            let start = bar_start + i as f64 * 0.5;
            // Chords are rolled from the bass, the last one at leisure.
            let roll_ticks = if ending { 42 } else { 11 };
            for (voice, name) in chord.split('+').enumerate() {
                let index = (bar * 64 + i * 8 + voice) as u64;
                let end = if ending { (BARS * BEATS_PER_BAR) as f64 } else { (start + 2.0).max(bar_start + 3.0) };
                let inner = if voice == 0 { 1.0 } else { 0.86 };
                notes.push(Note {
                    key: key(name),
                    start,
                    beats: end - start,
                    velocity: (0.20 + 0.56 * at(&DYNAMICS, start)) * WEIGHT[i] * inner + 0.03 * random(3, index),
                    delay_ticks: voice as i64 * roll_ticks + (4.0 * random(13, index)) as i64,
                });
            }
        }
    }
    notes
}

/// What a player does with bow or breath while notes sound: swells (controller 11) that follow the dynamics and lean into
/// long notes, and vibrato (controller 1) that grows with them, up to `vibrato` (0 … 1). Times in ticks.
fn singing(notes: &[Note], vibrato: f64) -> Vec<(u32, MidiMessage)> {
    const STEPS_PER_BEAT: f64 = 16.0;
    let mut messages = Vec::new();
    for note in notes {
        for step in 0..(note.beats * STEPS_PER_BEAT) as u32 {
            let into = f64::from(step) / STEPS_PER_BEAT;
            let beat = note.start + into;
            let x = into / note.beats;
            // A long note opens up until past its middle and closes again; a short one hardly has the time.
            let swell = (std::f64::consts::PI * x.powf(1.3)).sin();
            let length = (note.beats / 2.0).min(1.0);
            let dynamics = at(&DYNAMICS, beat);
            let closing = if note.beats > 4.0 { 1.0 - 0.55 * x * x } else { 1.0 };
            let expression = (0.66 + 0.18 * dynamics + 0.16 * length * swell) * closing;
            let depth = vibrato * (0.4 + 0.6 * dynamics) * length * ((x - 0.15) * 1.8).clamp(0.0, 1.0) * closing;
            let tick = ticks(beat, 0);
            messages.push((tick, change(11, expression)));
            messages.push((tick, change(1, depth)));
        }
    }
    messages
}

fn change(number: u8, value: f64) -> MidiMessage {
    MidiMessage::Controller { controller: u7::new(number), value: seven_bits(value) }
}

fn part(index: u8, program: u8, notes: &[Note], messages: Vec<(u32, MidiMessage)>) -> Vec<TrackEvent<'static>> {
    let channel = u4::new(index);
    let midi = |message| TrackEventKind::Midi { channel, message };
    // At the same tick keys come up first and go down last.
    let mut events: Vec<(u32, u8, TrackEventKind)> = vec![
        (0, 0, TrackEventKind::Meta(MetaMessage::TrackName(PARTS[usize::from(index)].as_bytes()))),
        (0, 1, midi(MidiMessage::ProgramChange { program: u7::new(program) })),
    ];
    events.extend(messages.into_iter().map(|(tick, message)| (tick, 2, midi(message))));
    for note in notes {
        let on = ticks(note.start, note.delay_ticks);
        let again = notes.iter().filter(|other| other.key == note.key && other.start > note.start);
        let again = again.map(|other| ticks(other.start, other.delay_ticks)).min().unwrap_or(u32::MAX);
        let off = ticks(note.start + note.beats, 0).min(again).min(end_tick());
        let key = u7::new(note.key);
        events.push((on, 3, midi(MidiMessage::NoteOn { key, vel: seven_bits(note.velocity) })));
        events.push((off, 1, midi(MidiMessage::NoteOff { key, vel: u7::new(64) })));
    }
    track(events)
}

fn conductor() -> Vec<TrackEvent<'static>> {
    let mut events = vec![
        (0, 0, TrackEventKind::Meta(MetaMessage::TrackName(b"First Light"))),
        (0, 0, TrackEventKind::Meta(MetaMessage::TimeSignature(3, 2, 24, 8))),
        (0, 0, TrackEventKind::Meta(MetaMessage::KeySignature(-1, true))),
    ];
    let halves = BARS * BEATS_PER_BAR * 2;
    events.extend((0..halves).map(|half| {
        let beat = half as f64 / 2.0;
        let us_per_quarter = (60e6 / at(&TEMPO, beat)).round() as u32;
        (
            if half == 0 { 0 } else { ticks(beat, 0) },
            1,
            TrackEventKind::Meta(MetaMessage::Tempo(u24::new(us_per_quarter))),
        )
    }));
    track(events)
}

/// Puts events, given as tick, rank within the tick, and what, into a track.
fn track(mut events: Vec<(u32, u8, TrackEventKind<'static>)>) -> Vec<TrackEvent<'static>> {
    events.push((end_tick(), u8::MAX, TrackEventKind::Meta(MetaMessage::EndOfTrack)));
    events.sort_by_key(|&(tick, rank, _)| (tick, rank));
    let mut last = 0;
    let place = |(tick, _, kind)| {
        let delta = u28::new(tick - last);
        last = tick;
        TrackEvent { delta, kind }
    };
    events.into_iter().map(place).collect()
}

fn end_tick() -> u32 {
    ticks((BARS * BEATS_PER_BAR) as f64, 0)
}

fn ticks(beat: f64, delay: i64) -> u32 {
    let tick = (beat * f64::from(TICKS_PER_BEAT)).round() as i64 + LEAD_IN_TICKS + delay;
    tick.max(0) as u32
}

/// A table with one value for the beginning of each bar, at any beat.
fn at(table: &[f64; BARS + 1], beat: f64) -> f64 {
    let bar = (beat / BEATS_PER_BAR as f64).clamp(0.0, BARS as f64);
    let (index, way) = ((bar as usize).min(BARS - 1), bar.fract());
    if bar >= BARS as f64 { table[BARS] } else { table[index] + (table[index + 1] - table[index]) * way }
}

/// The MIDI key of a name such as `C#4` or `Bb2`; C4 is 60.
fn key(name: &str) -> u8 {
    let step = match &name[..1] {
        "C" => 0,
        "D" => 2,
        "E" => 4,
        "F" => 5,
        "G" => 7,
        "A" => 9,
        "B" => 11,
        other => panic!("no note is called {other}"),
    };
    let (accidental, octave) = match name.as_bytes()[1] {
        b'#' => (1, &name[2..]),
        b'b' => (-1, &name[2..]),
        _ => (0, &name[1..]),
    };
    let octave: i32 = octave.parse().expect("a note ends with its octave");
    u8::try_from(12 * (octave + 1) + step + accidental).expect("a note is on the keyboard")
}

fn seven_bits(value: f64) -> u7 {
    u7::new((value.clamp(0.0, 1.0) * 127.0).round() as u8)
}

/// A number within −1 … 1, always the same for the same arguments (the finaliser of splitmix64).
fn random(salt: u64, index: u64) -> f64 {
    let mut z = (salt << 32 | index).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use ondes_engine::instrument::{EventKind, MidiFile, MidiSelection};

    #[test]
    fn bars_are_full() {
        for bars in [BOWED, WIND] {
            let tokens: Vec<_> = bars.iter().flat_map(|bar| bar.split_whitespace()).collect();
            let beats: f64 = tokens.chunks(2).map(|pair| pair[1].parse::<f64>().unwrap()).sum();
            assert_eq!(beats, (BARS * BEATS_PER_BAR) as f64);
            // All but the last two bars, which a long note shares, begin where they should.
            for bar in &bars[..BARS - 2] {
                let tokens: Vec<_> = bar.split_whitespace().collect();
                assert_eq!(tokens.chunks(2).map(|pair| pair[1].parse::<f64>().unwrap()).sum::<f64>(), 3.0);
            }
        }
        assert!(PLUCKED.iter().all(|bar| bar.split_whitespace().count() == 6));
    }

    #[test]
    fn three_parts_within_their_instruments() {
        let midi = MidiFile::parse(&compose()).unwrap();
        assert_eq!(midi.tracks.len(), 4);
        assert!(midi.tracks.iter().all(|track| track.complete));
        let ranges = [("Bowed", "G2", "E6"), ("Wind", "D3", "D6"), ("Plucked", "E2", "C6")];
        for (channel, (name, low, high)) in ranges.into_iter().enumerate() {
            let track = midi.track_named(name).unwrap();
            assert_eq!(midi.tracks[track].channels, 1 << channel);
            let (lowest, highest) = midi.key_range(MidiSelection::Track(track)).unwrap();
            assert!(lowest >= key(low) && highest <= key(high), "{name}: {lowest} to {highest}");
        }
        assert!((35.0..=46.0).contains(&midi.duration_s), "{} s", midi.duration_s);
        assert_eq!(compose(), compose());
    }

    #[test]
    fn dynamics_and_polyphony() {
        let midi = MidiFile::parse(&compose()).unwrap();
        let (mut sounding, mut most) = ([0i32; 3], [0i32; 3]);
        let (mut softest, mut hardest) = (1f32, 0f32);
        for event in &midi.events {
            let part = usize::from(event.kind.channel());
            match event.kind {
                EventKind::NoteOn { velocity, .. } => {
                    sounding[part] += 1;
                    (softest, hardest) = (softest.min(velocity), hardest.max(velocity));
                }
                EventKind::NoteOff { .. } => sounding[part] -= 1,
                _ => {}
            }
            most = [0, 1, 2].map(|i| most[i].max(sounding[i]));
        }
        assert_eq!(sounding, [0; 3]);
        assert!(most[0] <= 2 && most[1] <= 2 && (4..=8).contains(&most[2]), "{most:?}");
        assert!(softest > 0.15 && softest < 0.45 && hardest > 0.8 && hardest < 1.0, "{softest} to {hardest}");
    }
}
