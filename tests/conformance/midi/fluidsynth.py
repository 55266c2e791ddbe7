#!/usr/bin/env python3
"""Writes the notes that FluidSynth plays, `FILE.fluidsynth.json`, a list of `[start, end, channel, key, velocity]`.

    fluidsynth.py FILES RESULTS

FluidSynth renders faster than real time, and its player hands over each event. A note ends with the first note-off of
its key, or where it is struck again, as FluidSynth's voices do; its end is null if it never does.
"""

import ctypes
import json
import pathlib
import sys

RATE = 96_000
BLOCK = 64
MOST_SECONDS = 10
PLAYING = 1
NOTE_OFF, NOTE_ON = 0x80, 0x90

library = ctypes.CDLL("libfluidsynth.so.3")
for constructor in ["new_fluid_settings", "new_fluid_synth", "new_fluid_player"]:
    getattr(library, constructor).restype = ctypes.c_void_p
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
# Nothing on the terminal for files that are refused.
for level in range(5):
    library.fluid_set_log_function(level, None, None)


def play(path):
    """Returns the notes of a file; `None` if it is refused."""
    settings = ctypes.c_void_p(library.new_fluid_settings())
    library.fluid_settings_setnum(settings, b"synth.sample-rate", ctypes.c_double(RATE))
    synth = ctypes.c_void_p(library.new_fluid_synth(settings))
    player = ctypes.c_void_p(library.new_fluid_player(synth))
    notes, sounding = [], {}
    blocks = 0

    def receive(_, event):
        event = ctypes.c_void_p(event)
        kind = library.fluid_midi_event_get_type(event)
        if kind in (NOTE_OFF, NOTE_ON):
            now = round(blocks * BLOCK / RATE, 6)
            channel, key, velocity = (
                getattr(library, f"fluid_midi_event_get_{field}")(event) for field in ["channel", "key", "velocity"]
            )
            if (channel, key) in sounding:
                sounding.pop((channel, key))[1] = now
            if kind == NOTE_ON and velocity > 0:
                notes.append([now, None, channel + 1, key, velocity])
                sounding[channel, key] = notes[-1]
        return 0

    callback = CALLBACK(receive)
    library.fluid_player_set_playback_callback(player, callback, None)
    library.fluid_player_add(player, str(path).encode())
    library.fluid_player_play(player)
    buffer = (ctypes.c_float * (2 * BLOCK))()
    while library.fluid_player_get_status(player) == PLAYING and blocks * BLOCK < RATE * MOST_SECONDS:
        library.fluid_synth_write_float(synth, BLOCK, buffer, 0, 2, buffer, 1, 2)
        blocks += 1
    library.delete_fluid_player(player)
    library.delete_fluid_synth(synth)
    library.delete_fluid_settings(settings)
    # It plays for two seconds after the last event of a file that it has read.
    refused = blocks <= 1
    return None if refused else sorted(notes, key=lambda note: (note[0], note[2], note[3]))


files, results = map(pathlib.Path, sys.argv[1:])
for file in sorted(files.glob("*.mid")):
    notes = play(file)
    if notes is not None:
        (results / f"{file.name}.fluidsynth.json").write_text(json.dumps(notes))
