#!/usr/bin/env python3
"""Makes the files of this folder and `answers.json`, the notes that each plays. Run it in this folder.

A note is its start and end in seconds, its channel from 1, its key and its velocity. It ends where its key is struck
again.
"""

import json
import struct

ANSWERS = []
GROUP = None


def group(name):
    global GROUP
    GROUP = name


def answer(name, what, content, notes=None, refused=None, warning=None, why=None, tracks=None):
    """Writes a file and notes its answer: its notes, or a part of the message that refuses it; a part of the warning;
    the names of its tracks; why other programs read it otherwise."""
    with open(name + ".mid", "wb") as file:
        file.write(content)
    entry = {"file": name + ".mid", "group": GROUP, "what": what}
    optional = {"why": why, "refused": refused, "notes": notes, "warning": warning, "tracks": tracks}
    entry.update({key: value for key, value in optional.items() if value is not None})
    ANSWERS.append(entry)


def number(n):
    """Returns a number of variable length."""
    digits = [n & 127]
    while n := n >> 7:
        digits.insert(0, n & 127 | 128)
    return bytes(digits)


def on(key, pause=0, velocity=100, channel=0):
    return number(pause) + bytes([0x90 | channel, key, velocity])


def off(key, pause=0, channel=0):
    return number(pause) + bytes([0x80 | channel, key, 64])


def note(key, length=480, channel=0, pause=0, velocity=100):
    return on(key, pause, velocity, channel) + off(key, length, channel)


def meta(kind, data, pause=0, length=None):
    return number(pause) + bytes([255, kind]) + number(len(data) if length is None else length) + data


def tempo(us_per_quarter, pause=0):
    return meta(0x51, us_per_quarter.to_bytes(3, "big"), pause)


def header(format=0, tracks=1, division=480, length=6):
    if not isinstance(division, bytes):
        division = struct.pack(">H", division)
    return b"MThd" + struct.pack(">IHH", length, format, tracks) + division


def chunk(content, length=None, name=b"MTrk"):
    return name + struct.pack(">I", len(content) if length is None else length) + content


def smpte(frames, ticks):
    return bytes([256 - frames, ticks])


def riff(*chunks):
    content = b"RMID" + b"".join(
        name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for name, data in chunks
    )
    return b"RIFF" + struct.pack("<I", len(content)) + content


END = b"\0\xff\x2f\0"
# Three notes of half a second, and a track of another channel with one.
THREE = note(60) + note(64) + note(67)
TRACK = chunk(THREE + END)
SECOND = chunk(note(72, channel=1) + END)
PLAIN = header() + TRACK
PLAYED = [[0, 0.5, 1, 60, 100], [0.5, 1, 1, 64, 100], [1, 1.5, 1, 67, 100]]
BOTH = [PLAYED[0], [0, 0.5, 2, 72, 100], *PLAYED[1:]]
NO_SMPTE = "FluidSynth has no SMPTE time"

# Container ------------------------------------------------------------------------------------------------------------

group("File and header")
answer("junk_before_header", "128 bytes of MacBinary before the header",
       bytes([0, 4]) + b"song" + bytes(59) + b"MIDI" + bytes(59) + PLAIN, PLAYED, warning="before the header")
answer("rmid", "RIFF file (RMID), a chunk after the MIDI file", riff((b"data", PLAIN), (b"LIST", b"INFOINAM\2\0\0\0a\0")), PLAYED)
answer("rmid_info_first", "RIFF file (RMID), a chunk before the MIDI file",
       riff((b"LIST", b"INFOINAM\4\0\0\0abc\0"), (b"data", PLAIN)), PLAYED)
answer("rmid_length_0", "RIFF file (RMID) whose lengths are 0", b"RIFF\0\0\0\0RMIDdata\0\0\0\0" + PLAIN, PLAYED)
answer("rmid_sound_bank", "RIFF file (RMID) with a sound bank that contains `MTrk`",
       riff((b"data", PLAIN), (b"RIFF", b"DLS MTrkMThd" + bytes(20))), PLAYED)
answer("long_header", "header of ten bytes", header(length=10) + b"\1\2\3\4" + TRACK, PLAYED)
answer("short_header_length", "length of the header 0", header(length=0) + TRACK, PLAYED)
answer("format_unknown", "format 7: read as format 1", header(7, 2) + TRACK + SECOND, BOTH)
answer("format_2", "format 2: the tracks follow each other, each with its own tempo",
       header(2, 2) + chunk(tempo(1_000_000) + note(60) + END) + chunk(note(64) + END),
       [[0, 1, 1, 60, 100], [1, 1.5, 1, 64, 100]], why="the other two play the tracks at once, or only the first")
answer("format_0_tracks", "format 0 with two tracks: read as format 1", header(0, 2) + TRACK + SECOND, BOTH)
answer("format_1_single", "format 1 with one track", header(1, 1) + TRACK, PLAYED)
answer("fewer_tracks", "header counts more tracks than there are", header(1, 3) + TRACK, PLAYED, warning="missing")
answer("more_tracks", "header counts fewer tracks than there are", header(1, 1) + TRACK + SECOND, BOTH)
answer("tracks_0", "header counts 0 tracks", header(1, 0) + TRACK + SECOND, BOTH)
answer("trailing_bytes", "text and zeros after the last track", PLAIN + b"\r\n\x1a" + bytes(20), PLAYED)
answer("padded_sectors", "file padded with end-of-file characters", PLAIN + b"\x1a" * 70, PLAYED)
answer("mthd_twice", "two files in one: the first plays", PLAIN + header() + chunk(note(72) + END), PLAYED, warning="after the tracks")
answer("cut_in_header", "ends in its header", PLAIN[:11], refused="its header is cut short")
answer("cut_in_length", "ends in the length of its track", PLAIN[:18], refused="contains no notes")
answer("header_only", "header without tracks", header(1, 0), refused="contains no notes")
answer("missing_mtrk", "header, and events without a track", header() + THREE + END, refused="contains no notes")
answer("no_notes", "no notes", header() + chunk(tempo(500_000) + END), refused="contains no notes")
answer("empty", "empty file", b"", refused="no header (MThd)")
answer("text", "text", b"this is a text, not music\n", refused="no header (MThd)")
answer("mus", "`MUS` of old games", b"MUS\x1a\6\0\x10\0\1\0\0\0\0\0\0\0\x90\xbc\x64\x46\0\x3c\x60", refused="no header (MThd)")

group("Tracks")
answer("empty_track", "first track of 0 bytes", header(1, 3) + chunk(b"") + TRACK + SECOND, BOTH)
answer("track_length_zero", "length of the track 0", header() + chunk(THREE + END, 0), PLAYED)
answer("track_length_short", "length of the first track too small", header(1, 2) + chunk(THREE + END, 10) + SECOND, BOTH)
answer("track_length_long", "length of the first track takes in the second one",
       header(1, 2) + chunk(THREE + END, len(THREE + END) + 18) + SECOND, BOTH)
answer("track_length_beyond_file", "length of the track larger than the file, which is whole",
       header() + chunk(THREE + END, 0xFFFF_FFFF), PLAYED)
answer("cut_in_event", "ends inside the last event: the last note ends with the track",
       header() + chunk(THREE[:-3], len(THREE + END)), [*PLAYED[:2], [1, 1, 1, 67, 100]], warning="cut short")
answer("cut_in_track", "ends between two events", header() + chunk(THREE[:-8], len(THREE + END)), PLAYED[:2], warning="cut short")
answer("cut_second_track", "ends inside the second track", (header(1, 2) + TRACK + SECOND)[:-8],
       [PLAYED[0], [0, 0, 2, 72, 100], *PLAYED[1:]], warning="cut short")
answer("no_end_of_track", "no end event", header() + chunk(THREE), PLAYED)
answer("end_cut", "end event without its length", header() + chunk(THREE + END[:-1]), PLAYED, warning="cut short")
answer("end_with_data", "end event with a byte of data", header() + chunk(THREE + END[:-1] + b"\1\0"), PLAYED)
answer("after_the_end", "events after the end event", header() + chunk(THREE + END + note(72)), PLAYED)
answer("junk_between_tracks", "bytes between the tracks that are no chunk", header(1, 2) + TRACK + b"\1\2\3\xff\xfe" + SECOND, BOTH,
       warning="between tracks")
answer("junk_chunks", "chunks of other kinds between the tracks, one padded",
       header(1, 2) + chunk(b"abc", name=b"XFIH") + b"\0" + TRACK + chunk(b"abcd", name=b"XFKM") + SECOND, BOTH)
answer("format_0_channels", "one track with three channels",
       header() + chunk(on(60) + on(64, channel=4) + on(67, channel=15)
                        + off(60, 480) + off(64, channel=4) + off(67, channel=15) + END),
       [[0, 0.5, 1, 60, 100], [0, 0.5, 5, 64, 100], [0, 0.5, 16, 67, 100]])
answer("karaoke", "karaoke (`.kar`): words in a track of their own",
       header(1, 3) + chunk(meta(3, b"Soft Karaoke") + meta(1, b"@KMIDI KARAOKE FILE") + END)
       + chunk(meta(3, b"Words") + meta(1, b"@LENGL") + meta(1, b"\\la") + meta(1, b"/la", 480) + END) + TRACK,
       PLAYED, tracks=["Soft Karaoke", "Words", ""])

group("Time")
answer("smpte", "25 frames of 40 ticks: milliseconds, whatever the tempo",
       header(division=smpte(25, 40)) + chunk(tempo(0x030000) + note(60, 500) + note(64, 250) + END),
       [[0, 0.5, 1, 60, 100], [0.5, 0.75, 1, 64, 100]], why=NO_SMPTE)
for frames, ticks in [(24, 100), (30, 80)]:
    answer(f"smpte_{frames}", f"{frames} frames of {ticks} ticks",
           header(division=smpte(frames, ticks)) + chunk(note(60, 1_200) + note(64, 600) + END),
           [[0, 0.5, 1, 60, 100], [0.5, 0.75, 1, 64, 100]], why=NO_SMPTE + "; TiMidity++ takes the number for ticks")
answer("smpte_29", "29 frames, which is 29.97, of 100 ticks",
       header(division=smpte(29, 100)) + chunk(note(60, 1_500) + note(64, 1_500) + END),
       [[0, 0.5005, 1, 60, 100], [0.5005, 1.001, 1, 64, 100]], why=NO_SMPTE + "; TiMidity++ takes the number for ticks")
answer("smpte_0_ticks", "25 frames of 0 ticks", header(division=smpte(25, 0)) + TRACK, refused="time division is invalid",
       why="there is no time; TiMidity++ gives up later")
answer("division_0", "0 ticks to a quarter", header(division=0) + TRACK, refused="time division is invalid",
       why="there is no tempo; FluidSynth plays at one of its own")
answer("division_1", "1 tick to a quarter", header(division=1) + chunk(note(60, 1) + note(64, 1) + note(67, 1) + END), PLAYED,
       why="FluidSynth is half a tick early")
answer("division_32767", "32,767 ticks to a quarter", header(division=32_767) + chunk(note(60, 32_767) + note(64, 32_767) + END),
       PLAYED[:2], why="TiMidity++ lists wrong times")
answer("tempo_later_track", "tempo in the second track: it is everybody's",
       header(1, 2) + chunk(note(60) + note(64) + END) + chunk(tempo(1_000_000, 480) + note(72, channel=1) + END),
       [PLAYED[0], [0.5, 1.5, 1, 64, 100], [0.5, 1.5, 2, 72, 100]])
answer("tempo_within_note", "tempo changes within a note", header() + chunk(on(60) + tempo(1_000_000, 240) + off(60, 240) + END),
       [[0, 0.75, 1, 60, 100]])
answer("tempo_0", "tempo of 0: ignored", header() + chunk(tempo(0) + THREE + END), PLAYED,
       why="the time of the others stands still")
answer("tempo_2_bytes", "tempo of two bytes: ignored", header() + chunk(meta(0x51, b"\x0f\x42") + THREE + END), PLAYED)
answer("tempo_4_bytes", "tempo of four bytes: the first three count",
       header() + chunk(meta(0x51, b"\x0f\x42\x40\0") + note(60) + END), [[0, 1, 1, 60, 100]])
answer("tempo_fast", "shortest quarter, 1 µs", header() + chunk(tempo(1) + note(60, 480_000) + END), [[0, 0.001, 1, 60, 100]])
answer("tempo_slow", "longest quarter, 16.8 s", header(division=960) + chunk(tempo(0xFFFFFF) + note(60, 96) + END),
       [[0, 1.677722, 1, 60, 100]], why="FluidSynth is half a tick early, TiMidity++ 17 ms")
answer("long_delta", "times with leading zeros",
       header() + chunk(b"\x80" * 4 + on(60) + b"\x80" * 3 + off(60, 480) + note(64) + note(67) + END), PLAYED)
answer("long_pause", "pause of 78 hours", header() + chunk(note(60) + note(64, pause=(1 << 28) - 1) + END), refused="more than 24 hours",
       why="FluidSynth was stopped after ten seconds")
answer("late_end", "end event long after the last one", header() + chunk(on(60) + END.replace(b"\0\xff", number(960) + b"\xff")),
       [[0, 1, 1, 60, 100]], why="the note has no other end")

group("Events")
answer("running_status", "running status, ends as note-ons of velocity 0",
       header() + chunk(on(60) + b"\x83\x60\x3c\0\0\x40\x64\x83\x60\x40\0\0\x43\x64\x83\x60\x43\0" + END), PLAYED)
answer("running_status_meta", "meta event inside running status",
       header() + chunk(on(69) + b"\x83\x60\xff\6\1A\x83\x60\x45\0\x0a\x48\x64\x87\x36\x48\0\x0a\x4c\x64\x87\x36\x4c\0" + END),
       [[0, 1, 1, 69, 100], [1.010417, 2, 1, 72, 100], [2.010417, 3, 1, 76, 100]])
answer("running_status_sysex", "SysEx event inside running status",
       header() + chunk(on(60) + number(480) + b"\xf0\5\x43\x10\0\1\xf7\0\x3c\0\0\x40\x64\x83\x60\x40\0" + END), PLAYED[:2])
answer("running_status_tracks", "running status of the first track in the second: no status",
       header(1, 2) + TRACK + chunk(b"\0\x48\x64\x83\x60\x48\0" + END), PLAYED, warning="skipped")
answer("no_status", "begins without a status byte", header() + chunk(b"\0\x3c\x64" + THREE + note(69) + END),
       [*PLAYED, [1.5, 2, 1, 69, 100]], warning="skipped")
answer("other_messages", "program, controllers, bends and pressures around a note",
       header() + chunk(b"\0\xc0\5\0\xb0\7\x64\0\xe0\0\x40" + on(60) + b"\x10\xd0\x40\x10\x50\x10\xa0\x3c\x30" + off(60, 432)
                        + note(64) + END), PLAYED[:2])
answer("keys_extreme", "lowest and highest key and velocity",
       header() + chunk(note(0, velocity=1) + note(127, velocity=127) + END), [[0, 0.5, 1, 0, 1], [0.5, 1, 1, 127, 127]])
answer("real_time_bytes", "timing clocks, which do not belong in a file",
       header() + chunk(on(60) + b"\x81\x70\xf8" + off(60, 240) + note(64) + note(67) + END), PLAYED, warning="skipped")
answer("data_byte_velocity", "velocity above 127: read without its eighth bit",
       header() + chunk(note(60) + on(64, velocity=0xE4) + off(64, 480) + note(67) + END), PLAYED, warning="data byte")
answer("data_byte_key", "key above 127, of a note-off: read without its eighth bit",
       header() + chunk(note(60) + on(64) + off(0xC0, 480) + note(67) + END), PLAYED, warning="data byte")
answer("garbage", "bytes that are no events: skipped, up to the next ones that make sense",
       header() + chunk(note(60) + b"\0\xf4" + b"\xff" * 8 + note(64, pause=128) + note(67) + note(69) + END),
       [PLAYED[0], [0.633333, 1.133333, 1, 64, 100], [1.133333, 1.633333, 1, 67, 100], [1.633333, 2.133333, 1, 69, 100]],
       warning="skipped")
answer("meta_unknown", "unknown meta events", header() + chunk(meta(0x60, b"odd") + meta(0x7F, b"\0\0A") + meta(0x20, b"\3") + THREE + END),
       PLAYED)
answer("meta_beyond_track", "text longer than its track", header() + chunk(THREE + meta(1, b"abc", length=100) + END), PLAYED,
       warning="skipped")
answer("sysex_packets", "SysEx message in two packets, and a note in an escape event",
       header() + chunk(b"\0\xf0\3\x43\x12\0\x60\xf7\3\x43\0\xf7\0\xf7\3" + on(60)[1:] + number(384) + off(60)[1:] + note(64) + END),
       [[0.1, 0.5, 1, 60, 100], [0.5, 1, 1, 64, 100]], why="the others skip escape events")
answer("sysex_unended", "SysEx message without its end byte", header() + chunk(b"\0\xf0\3\x7e\x7f\x09" + THREE + END), PLAYED)
answer("sysex_without_length", "SysEx message without its length",
       header() + chunk(note(60) + b"\0\xf0\x7f\x7f\4\1\0\x7f\xf7" + note(64) + note(67) + END), PLAYED)
answer("sysex_cut", "ends inside a SysEx message", header() + chunk(THREE + b"\0\xf0\x7f\x43\x10"), PLAYED, warning="cut short")

group("Notes")
answer("velocity_0", "note-ons of velocity 0 are note-offs",
       header() + chunk(on(60) + b"\x83\x60\x3c\0\0\x40\x64\x83\x60\x40\0" + END), PLAYED[:2])
answer("no_length", "note-on and note-off at the same time: a note, however short",
       header() + chunk(note(60, 0) + note(64) + END), [[0, 0, 1, 60, 100], [0, 0.5, 1, 64, 100]])
answer("note_off_alone", "note-offs of keys that are not held", header() + chunk(off(62) + THREE + off(62) + END), PLAYED)
answer("hanging_note", "note without a note-off: it ends with its track",
       header() + chunk(on(60) + note(64) + END), [[0, 0.5, 1, 60, 100], [0, 0.5, 1, 64, 100]], why="the note has no other end")
answer("hanging_note_again", "key struck again, and never released: it ends with its track",
       header() + chunk(on(60) + on(60, 480, 80) + END.replace(b"\0\xff", number(480) + b"\xff")),
       [[0, 0.5, 1, 60, 100], [0.5, 1, 1, 60, 80]], why="the note has no other end")
answer("doubled_note", "two note-ons, but one note-off: it ends the key",
       header() + chunk(on(60) + on(60, velocity=80) + off(60, 480) + note(64) + END),
       [[0, 0, 1, 60, 100], [0, 0.5, 1, 60, 80], [0.5, 1, 1, 64, 100]])
answer("overlapping_notes", "two notes of one key overlap: the key ends with the last note-off",
       header() + chunk(on(60) + on(60, 480, 80) + off(60, 480) + off(60, 480) + END),
       [[0, 0.5, 1, 60, 100], [0.5, 1.5, 1, 60, 80]], why="FluidSynth ends the key with the first note-off")
answer("overlapping_tracks", "the same, in two tracks", header(1, 2) + chunk(note(60, 960) + END) + chunk(note(60, 480, 0, 240, 80) + END),
       [[0, 0.25, 1, 60, 100], [0.25, 1, 1, 60, 80]], why="FluidSynth ends the key with the first note-off")
answer("legato", "note-off of a note after the next note-on of its key, at the same time",
       header() + chunk(on(60) + on(60, 480, 80) + off(60) + off(60, 480) + END),
       [[0, 0.5, 1, 60, 100], [0.5, 1, 1, 60, 80]], why="FluidSynth ends the key with the first note-off")

group("Names of tracks")
for name, what, text in [
    ("text_utf8", "UTF-8", "Flöte".encode()),
    ("text_latin1", "Latin-1", "Flöte".encode("latin-1")),
    ("text_utf16", "UTF-16", "Flöte".encode("utf-16")),
]:
    answer(name, what, header() + chunk(meta(3, text) + THREE + END), PLAYED, tracks=["Flöte"])
answer("text_sjis", "Shift-JIS: not recognised, read as Latin-1", header() + chunk(meta(3, "ピアノ".encode("shift-jis")) + THREE + END),
       PLAYED, tracks=["sAm"])

with open("answers.json", "w", encoding="utf-8") as file:
    file.write("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in ANSWERS) + "\n]\n")
