"""Plays the VST3 in pedalboard, a host made with JUCE, and compares the effect with `ondes render`. The instrument only has
to play: it starts while its model is still loading, and the host does not align it.

Usage: check.py ONDES BUNDLE.vst3 FOLDER

Mono and stereo, at usual and unusual sample rates, in blocks of 1 to 8,192 samples. Ends with status 1 and a line for
each difference.
"""

import math
import struct
import subprocess
import sys
from pathlib import Path

import numpy
from pedalboard import Pedalboard, load_plugin

RATES = [8_000, 11_025, 22_050, 44_100, 48_000, 88_200, 96_000, 192_000]
BLOCKS = [1, 64, 333, 8_192]
SECONDS = 0.4
# One step of a 24-bit file; equal sounds differ by rounding at most.
TOLERANCE = 1e-7

ONDES, BUNDLE, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
failures = []


def write_wav(path, audio, rate):
    """Writes 32-bit floats; `audio` is [channel][frame]."""
    channels = audio.shape[0]
    data = audio.T.astype("<f4").tobytes()
    header = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 3, channels, rate,
                         4 * channels * rate, 4 * channels, 32)
    path.write_bytes(header + struct.pack("<4sI", b"data", len(data)) + data)


def read_wav(path):
    """Returns [channel][frame] of a file of 32-bit floats."""
    content = path.read_bytes()
    channels, place = 1, 12
    while place < len(content):
        name, size = struct.unpack_from("<4sI", content, place)
        if name == b"fmt ":
            channels = struct.unpack_from("<H", content, place + 10)[0]
        elif name == b"data":
            samples = numpy.frombuffer(content[place + 8:place + 8 + size], "<f4")
            return samples.reshape(-1, channels).T
        place += 8 + size + size % 2
    raise ValueError(f"{path} has no data")


def render(*arguments):
    """Returns what `ondes render` writes."""
    out = FOLDER / "rendered.wav"
    subprocess.run([ONDES, "render", *map(str, arguments), "--out", out], check=True, capture_output=True)
    return read_wav(out)


def compare(what, found, expected):
    """Compares as much as both have; notes a difference."""
    if found.shape[0] != expected.shape[0]:
        failures.append(f"{what}: {found.shape[0]} channels, not {expected.shape[0]}")
        return
    frames = min(found.shape[1], expected.shape[1])
    difference = float(numpy.abs(found[:, :frames] - expected[:, :frames]).max())
    level = float(numpy.abs(expected).max())
    if not level > 1e-3:
        failures.append(f"{what}: ondes renders silence")
    elif not difference <= TOLERANCE:
        failures.append(f"{what}: differs by {difference:.2e}")


def tones(channels, rate):
    time = numpy.arange(int(SECONDS * rate)) / rate
    tone = [0.4 * numpy.sin(math.tau * hz * time) for hz in (220.0, 331.0)]
    return numpy.array(tone[:channels], dtype=numpy.float32)


def check_effect():
    for rate in RATES:
        for channels in (1, 2):
            audio = tones(channels, rate)
            source = FOLDER / "input.wav"
            write_wav(source, audio, rate)
            expected = render("Triode", "--input", source)
            for block in BLOCKS:
                # A host loads, plays and goes; then with one that is used again and gets other channels.
                board = Pedalboard([load_plugin(BUNDLE, plugin_name="Ondes FX")])
                compare(f"effect, {channels} channels, {rate} Hz, blocks of {block}",
                        board(audio, rate, buffer_size=block), expected)
    effect = load_plugin(BUNDLE, plugin_name="Ondes FX")
    for channels in (2, 1, 2, 1):
        audio = tones(channels, 48_000)
        source = FOLDER / "input.wav"
        write_wav(source, audio, 48_000)
        compare(f"effect, now with {channels} channels", effect(audio, 48_000.0), render("Triode", "--input", source))
    for channels in (3, 6):
        try:
            effect(numpy.zeros((channels, 4_800), dtype=numpy.float32), 48_000.0)
            failures.append(f"effect: takes {channels} channels")
        except ValueError:
            pass


def check_instrument():
    messages = [(bytes([0x90, 57, 100]), 0.0), (bytes([0x80, 57, 64]), 0.5)]
    for rate in RATES:
        for channels in (1, 2):
            for block in BLOCKS[1:]:
                instrument = load_plugin(BUNDLE, plugin_name="Ondes")
                found = instrument(messages, duration=1.0, sample_rate=rate, num_channels=channels, buffer_size=block)
                what = f"instrument, {channels} channels, {rate} Hz, blocks of {block}"
                if found.shape != (channels, rate):
                    failures.append(f"{what}: {found.shape} samples")
                elif not numpy.isfinite(found).all():
                    failures.append(f"{what}: invalid samples")
                elif not all(numpy.abs(channel).max() > 1e-3 for channel in found):
                    failures.append(f"{what}: silence")


check_effect()
check_instrument()
print("\n".join(failures) or "pedalboard: the effect plays what `ondes render` does, and the instrument plays")
sys.exit(bool(failures))
