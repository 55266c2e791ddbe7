#!/usr/bin/env python3
"""Makes the files of this folder and `answers.json`, the right answer for each.

All of them hold the same signal, see `signal`. Files of samples are written here byte by byte, compressed ones with
ffmpeg 5.1, SoX 14.4, FLAC 1.4, LAME 3.100, oggenc 1.4 and opusenc 0.2 (Debian 12). Run it in this folder; files that
exist are kept, because another release of an encoder writes other bytes.
"""

import json
import math
import os
import struct
import subprocess
import tempfile

RATE = 48_000
ANSWERS = []


def signal(frames, channels=1, rate=RATE):
    """Returns frames of channels: in each a swept sine that starts at frame 0, higher and softer channel by channel."""

    def sample(n, channel):
        time = n / rate
        phase = 300 * (1 + channel / 3) * time + 2_000 * time * time
        return 0.6 / (1 + channel / 4) * math.sin(2 * math.pi * phase)

    return [[sample(n, channel) for channel in range(channels)] for n in range(frames)]


def answer(name, what, content=None, error_db=-85.0, frames=500, channels=1, rate=RATE, delay=0, signal=None, refused=None):
    """Notes the answer of a file: frames in all, delay of the signal in them, length of the signal if it is not the rest,
    and the largest error in dB of the signal's level, or a part of the message that refuses it. Writes `content`."""
    if content is not None:
        with open(name, "wb") as file:
            file.write(content)
    entry = {"file": name, "what": what}
    if refused:
        entry["refused"] = refused
    else:
        entry.update(rate=rate, channels=channels, frames=frames, error_db=error_db)
        if delay:
            entry["delay"] = delay
        if signal:
            entry["signal"] = signal
    ANSWERS.append(entry)


def quantized(bits, frames=500, channels=1, rate=RATE):
    top = 1 << (bits - 1)
    values = (x for frame in signal(frames, channels, rate) for x in frame)
    return [max(-top, min(top - 1, round(x * top))) for x in values]


def ints(bits, container=None, order="little", shift=0, offset=0, **kind):
    """Encodes integers of `bits` bits, shifted up, in `container` bytes."""
    length = container or (bits + 7) // 8
    mask = (1 << (8 * length)) - 1
    return b"".join((((v << shift) + offset) & mask).to_bytes(length, order) for v in quantized(bits, **kind))


def floats(code, scale=1.0, **kind):
    return b"".join(struct.pack(code, x * scale) for frame in signal(kind.pop("frames", 500), **kind) for x in frame)


# WAV ------------------------------------------------------------------------------------------------------------------

GUID = bytes.fromhex("000000001000800000aa00389b71")


def fmt(tag=1, channels=1, rate=RATE, align=2, bits=16, extra=b"", order="<"):
    return struct.pack(order + "HHIIHH", tag, channels, rate, rate * align, align, bits) + extra


def extensible(tag, valid, mask, guid_end=GUID, size=22):
    return struct.pack("<HHIH", size, valid, mask, tag) + guid_end


def chunk(name, content, order="<", size=None, pad=True):
    length = len(content) if size is None else size
    return name + struct.pack(order + "I", length) + content + (b"\0" if pad and len(content) % 2 else b"")


def riff(*chunks, name=b"RIFF", order="<", size=None):
    body = b"WAVE" + b"".join(chunks)
    return name + struct.pack(order + "I", len(body) if size is None else size) + body


def wav(format_chunk, data, *before, after=b""):
    return riff(chunk(b"fmt ", format_chunk), *before, chunk(b"data", data), after)


def make_wav():
    s16 = ints(16)
    plain = fmt()
    answer("pcm8.wav", "8 bits, unsigned", wav(fmt(align=1, bits=8), ints(8, offset=128)), -38)
    answer("pcm12.wav", "12 bits in two bytes", wav(fmt(align=2, bits=12), ints(12, shift=4)), -60)
    answer("pcm16.wav", "16 bits", wav(plain, s16))
    answer("pcm20.wav", "20 bits in three bytes", wav(fmt(align=3, bits=20), ints(20, shift=4)), -105)
    answer("pcm24.wav", "24 bits", wav(fmt(align=3, bits=24), ints(24)), -130)
    answer("pcm24_low.wav", "24 bits at the low end of four bytes, sign repeated (arecord)",
           wav(fmt(align=4, bits=24), ints(24, container=4)), -130)
    low = b"".join((v & 0xFFFFFF).to_bytes(4, "little") for v in quantized(24))
    answer("pcm24_low_zero.wav", "24 bits at the low end of four bytes, high byte zero", wav(fmt(align=4, bits=24), low), -130)
    answer("pcm24_high.wav", "24 bits at the high end of four bytes",
           wav(fmt(align=4, bits=24), ints(24, container=4, shift=8)), -130)
    answer("float24_cooledit.wav", "Cool Edit's 24.0 float: floats of ±2²³ declared as 24 bits in four bytes",
           wav(fmt(align=4, bits=24), floats("<f", 8_388_608.0)), -130)
    answer("float16_cooledit.wav", "Cool Edit's 16.8 float: floats of ±2¹⁵ declared as 32 bits",
           wav(fmt(align=4, bits=32, extra=struct.pack("<HH", 2, 1)), floats("<f", 32_768.0)), -130)
    answer("pcm24_wrong_align.wav", "24 bits in three bytes with a frame length of four", wav(fmt(align=4, bits=24), ints(24)), -130)
    answer("pcm16_no_align.wav", "16 bits with a frame length of 0", wav(fmt(align=0), s16))
    answer("pcm32.wav", "32 bits", wav(fmt(align=4, bits=32), ints(32)), -140)
    answer("pcm64.wav", "64 bits", wav(fmt(align=8, bits=64), ints(64)), -140)
    answer("float32.wav", "32-bit floats", wav(fmt(3, align=4, bits=32), floats("<f")), -140)
    answer("float64.wav", "64-bit floats", wav(fmt(3, align=8, bits=64), floats("<d")), -140)
    answer("float32_fact.wav", "32-bit floats with 20 bytes of format and a `fact` chunk",
           wav(fmt(3, align=4, bits=32, extra=struct.pack("<HH", 2, 0)), floats("<f"), chunk(b"fact", struct.pack("<I", 500))), -140)
    answer("fmt18.wav", "format chunk of 18 bytes", wav(fmt(extra=b"\0\0"), s16))
    answer("fmt20.wav", "format chunk of 20 bytes", wav(fmt(extra=b"\2\0\0\0"), s16))
    answer("fmt100.wav", "format chunk of 100 bytes", wav(fmt(extra=bytes(84)), s16))
    answer("fmt17.wav", "format chunk of odd length", wav(fmt(extra=b"\0"), s16))
    answer("ext16.wav", "extensible", wav(fmt(0xFFFE, extra=extensible(1, 16, 4)), s16))
    answer("ext_big.wav", "extensible with 30 bytes of extension",
           wav(fmt(0xFFFE, extra=extensible(1, 16, 4, size=30) + bytes(8)), s16))
    answer("ext20in24.wav", "extensible, 20 valid bits of 24",
           wav(fmt(0xFFFE, align=3, bits=24, extra=extensible(1, 20, 4)), ints(20, shift=4)), -105)
    answer("ext24in32.wav", "extensible, 24 valid bits of 32",
           wav(fmt(0xFFFE, align=4, bits=32, extra=extensible(1, 24, 4)), ints(24, container=4, shift=8)), -130)
    answer("ext_valid0.wav", "extensible, 0 valid bits", wav(fmt(0xFFFE, extra=extensible(1, 0, 4)), s16))
    answer("ext_float.wav", "extensible, floats", wav(fmt(0xFFFE, align=4, bits=32, extra=extensible(3, 32, 4)), floats("<f")), -140)
    answer("ext_mask0.wav", "extensible, two channels without loudspeakers",
           wav(fmt(0xFFFE, channels=2, align=4, extra=extensible(1, 16, 0)), ints(16, channels=2)), channels=2)
    answer("ext_mask_short.wav", "extensible, three channels but one loudspeaker",
           wav(fmt(0xFFFE, channels=3, align=6, extra=extensible(1, 16, 1)), ints(16, channels=3)), channels=3)
    answer("ext_mask_all.wav", "extensible, two channels but all loudspeakers",
           wav(fmt(0xFFFE, channels=2, align=4, extra=extensible(1, 16, 0xFFFFFFFF)), ints(16, channels=2)), channels=2)
    answer("ext_ambisonic.wav", "extensible, ambisonic B-format of four channels",
           wav(fmt(0xFFFE, channels=4, align=8, extra=extensible(1, 16, 0, bytes.fromhex("00002107d3118644c8c1ca000000"))),
               ints(16, channels=4, frames=200)), channels=4, frames=200)
    answer("ext20ch.wav", "20 channels", wav(fmt(0xFFFE, channels=20, align=40, extra=extensible(1, 16, 0xFFFFF)),
                                              ints(16, channels=20, frames=60)), channels=20, frames=60)
    answer("32ch.wav", "32 channels, no extension", wav(fmt(channels=32, align=64), ints(16, channels=32, frames=60)), -80, channels=32, frames=60)
    answer("33ch.wav", "33 channels", wav(fmt(channels=33, align=66), ints(16, channels=33, frames=60)),
           refused="the number of channels is 33; supported: 1 to 32")
    for rate in (8_000, 11_025, 22_050, 192_000, 384_000):
        answer(f"{rate}.wav", f"{rate} Hz", wav(fmt(rate=rate), ints(16, rate=rate)), rate=rate)
    answer("alaw.wav", "A-law, format chunk of 16 bytes", wav(fmt(6, align=1, bits=8), bytes(map(alaw, quantized(16)))), -34)
    answer("ulaw.wav", "µ-law", wav(fmt(7, align=1, bits=8, extra=b"\0\0"), bytes(map(ulaw, quantized(16)))), -34)
    answer("rifx.wav", "RIFX: all numbers big-endian",
           riff(chunk(b"fmt ", fmt(order=">"), ">"), chunk(b"data", ints(16, order="big"), ">"), name=b"RIFX", order=">"))
    answer("rifx_float.wav", "RIFX, floats",
           riff(chunk(b"fmt ", fmt(3, align=4, bits=32, order=">"), ">"), chunk(b"data", floats(">f"), ">"), name=b"RIFX", order=">"), -140)
    answer("list_wrong.wav", "a wrong length inside LIST",
           wav(plain, s16, chunk(b"LIST", b"INFO" + chunk(b"IART", b"name", size=5_000))))
    answer("odd_chunk.wav", "an odd chunk before the sound", wav(plain, s16, chunk(b"note", b"odd")))
    answer("odd_unpadded.wav", "an odd chunk without its byte of padding", wav(plain, s16, chunk(b"note", b"odd", pad=False)))
    answer("chunks.wav", "JUNK, bext, PEAK, cue and others around the sound",
           riff(chunk(b"JUNK", bytes(28)), chunk(b"bext", bytes(602)), chunk(b"fmt ", plain), chunk(b"PEAK", bytes(16)),
                chunk(b"cue ", bytes(4)), chunk(b"data", s16), chunk(b"LIST", b"adtl"), chunk(b"id3 ", b"ID3")))
    answer("data_first.wav", "sound before the format", riff(chunk(b"data", s16), chunk(b"fmt ", plain)))
    answer("data_0.wav", "length of the sound 0 (recorder crashed)", riff(chunk(b"fmt ", plain), chunk(b"data", s16, size=0), size=0))
    answer("data_ffffffff.wav", "lengths 0xffffffff (pipe)",
           riff(chunk(b"fmt ", plain), chunk(b"data", s16, size=0xFFFFFFFF), size=0xFFFFFFFF))
    answer("data_7ffff000.wav", "lengths 0x7ffff000 (pipe of SoX)",
           riff(chunk(b"fmt ", plain), chunk(b"data", s16, size=0x7FFFF000), size=0x7FFFF024))
    answer("truncated.wav", "shorter than declared", riff(chunk(b"fmt ", plain), chunk(b"data", s16, size=4_000), size=4_036))
    answer("id3.wav", "ID3 tag before RIFF", b"ID3\3\0\0\0\0\0\x14" + bytes(20) + wav(plain, s16))
    answer("wav_named.mp3", "WAV named .mp3", wav(plain, s16))
    ds64 = struct.pack("<QQQI", 36 + 28 + 1_008, 1_000, 500, 0)
    for name in (b"RF64", b"BW64"):
        answer(f"{name.decode().lower()}.wav", f"{name.decode()} with 64-bit lengths",
               riff(chunk(b"ds64", ds64), chunk(b"fmt ", plain), chunk(b"data", s16, size=0xFFFFFFFF), name=name, size=0xFFFFFFFF))
    answer("gsm.wav", "GSM 6.10 in WAV", wav(fmt(0x31, align=65, bits=0, extra=b"\2\0\x40\1"), bytes(650)),
           refused="the WAV codec 0x0031 (GSM 6.10) is not supported")
    answer("dts.wav", "DTS frames declared as samples", wav(fmt(channels=2, align=4), bytes(400) + b"\xfe\x7f\x01\x80" + bytes(range(256)) * 4),
           refused="the WAV file holds DTS or S/PDIF frames, not samples; decode it first")
    answer("float16.wav", "16-bit floats", wav(fmt(3, align=2, bits=16), bytes(1_000)), refused="WAV samples of 16 bits are not supported")
    answer("no_data.wav", "no sound", riff(chunk(b"fmt ", plain)), refused="the WAV file has no sound")
    answer("no_fmt.wav", "no format", riff(chunk(b"data", s16)), refused="the WAV file does not describe its sound")


def alaw(value):
    """Encodes 16 bits as the nearest A-law code."""
    return nearest(value, ALAW)


def ulaw(value):
    return nearest(value, ULAW)


def decode_alaw(code):
    code ^= 0x55
    segment, mantissa = code >> 4 & 7, (code & 15) << 4
    magnitude = mantissa + 8 if segment == 0 else (mantissa + 0x108) << (segment - 1)
    return magnitude if code & 0x80 else -magnitude


def decode_ulaw(code):
    code ^= 0xFF
    magnitude = (((code & 15) << 3) + 0x84 << (code >> 4 & 7)) - 0x84
    return -magnitude if code & 0x80 else magnitude


ALAW = [(decode_alaw(code), code) for code in range(256)]
ULAW = [(decode_ulaw(code), code) for code in range(256)]


def nearest(value, table):
    return min(table, key=lambda entry: abs(entry[0] - value))[1]


# AIFF, AU, CAF, Wave64 ------------------------------------------------------------------------------------------------


def extended(rate):
    exponent = rate.bit_length() - 1
    return struct.pack(">HQ", 16_383 + exponent, rate << (63 - exponent))


def aiff(data, bits=16, channels=1, codec=None, offset=0, block=0, frames=500, order=("COMM", "SSND"), size=None):
    common = struct.pack(">HIH", channels, frames, bits) + extended(RATE)
    if codec:
        common += codec + b"\0\0"
    sound = struct.pack(">II", offset, block) + bytes(offset) + data
    chunks = {"COMM": chunk(b"COMM", common, ">"), "SSND": chunk(b"SSND", sound, ">", size=size)}
    body = (b"AIFC" + chunk(b"FVER", b"\xa2\x80\x51\x40", ">") if codec else b"AIFF") + b"".join(chunks[name] for name in order)
    return chunk(b"FORM", body, ">")


def make_aiff():
    big = ints(16, order="big")
    answer("pcm8.aiff", "8 bits, signed", aiff(ints(8), bits=8), -38)
    answer("pcm12.aiff", "12 bits", aiff(ints(12, shift=4, order="big"), bits=12), -60)
    answer("pcm16.aiff", "16 bits", aiff(big))
    answer("pcm20.aiff", "20 bits", aiff(ints(20, shift=4, order="big"), bits=20), -105)
    answer("pcm24.aiff", "24 bits", aiff(ints(24, order="big"), bits=24), -130)
    answer("pcm32.aiff", "32 bits", aiff(ints(32, order="big"), bits=32), -140)
    answer("offset.aiff", "sound 6 bytes into its chunk", aiff(big, offset=6))
    answer("aligned.aiff", "sound aligned to blocks of 512 bytes, padded", aiff(big + b"\x55" * 24, block=512))
    answer("aligned_offset.aiff", "sound aligned, with an offset", aiff(big + b"\x55" * 8, offset=16, block=512))
    answer("sound_first.aiff", "sound before its description", aiff(big, order=("SSND", "COMM")))
    answer("ssnd_0.aiff", "length of the sound 0", aiff(big, size=0))
    answer("id3.aiff", "ID3 tag before FORM", b"ID3\3\0\0\0\0\0\x14" + bytes(20) + aiff(big))
    for name, data, bits, error_db in [
        (b"NONE", big, 16, -85), (b"twos", big, 16, -85), (b"sowt", ints(16), 16, -85), (b"sowt", ints(24), 24, -130),
        (b"raw ", ints(8, offset=128), 8, -38), (b"in24", ints(24, order="big"), 24, -130),
        (b"in32", ints(32, order="big"), 32, -140), (b"23ni", ints(32), 32, -140), (b"fl32", floats(">f"), 32, -140),
        (b"FL32", floats(">f"), 32, -140), (b"fl64", floats(">d"), 64, -140),
        (b"ulaw", bytes(map(ulaw, quantized(16))), 16, -34), (b"ALAW", bytes(map(alaw, quantized(16))), 16, -34),
    ]:
        codec = name.decode().strip()
        answer(f"{codec}{bits}.aifc", f"AIFC `{codec}`, {bits} bits", aiff(data, bits, codec=name), error_db)
    answer("mac3.aifc", "AIFC `MAC3`", aiff(bytes(100), 8, codec=b"MAC3"), refused="the AIFC codec `MAC3` is not supported")


def make_others():
    def au(code, data, rate=RATE, channels=1, size=None, note=bytes(4), order=">", name=b".snd"):
        length = len(data) if size is None else size
        return name + struct.pack(order + "5I", 24 + len(note), length, code, rate, channels) + note + data

    for code, data, name, what, error_db in [
        (1, bytes(map(ulaw, quantized(16))), "ulaw", "µ-law", -34), (2, ints(8), "pcm8", "8 bits", -38),
        (3, ints(16, order="big"), "pcm16", "16 bits", -85), (4, ints(24, order="big"), "pcm24", "24 bits", -130),
        (5, ints(32, order="big"), "pcm32", "32 bits", -140), (6, floats(">f"), "float32", "32-bit floats", -140),
        (7, floats(">d"), "float64", "64-bit floats", -140), (27, bytes(map(alaw, quantized(16))), "alaw", "A-law", -34),
    ]:
        answer(f"{name}.au", f"AU, {what}", au(code, data), error_db)
    answer("unknown.au", "AU of unknown length", au(3, ints(16, order="big"), size=0xFFFFFFFF))
    answer("note0.au", "AU without a note", au(3, ints(16, order="big"), note=b""))
    answer("dec.au", "AU of DEC, little-endian", au(3, ints(16), order="<", name=b"dns."))
    answer("stereo.snd", "AU of two channels", au(3, ints(16, order="big", channels=2), channels=2), channels=2)
    answer("g721.au", "AU, G.721", au(23, bytes(500)), refused="the encoding 23 of AU files is not supported")

    def caf(flags, data, packet, bits, codec=b"lpcm", channels=1, size=None):
        description = struct.pack(">d4s5I", RATE, codec, flags, packet, 1, channels, bits)
        length = len(data) + 4 if size is None else size
        return (b"caff\0\1\0\0" + b"desc" + struct.pack(">q", 32) + description + b"free" + struct.pack(">q", 5) + bytes(5)
                + b"data" + struct.pack(">q", length) + bytes(4) + data)

    answer("pcm16le.caf", "CAF, 16 bits, little-endian", caf(2, ints(16), 2, 16))
    answer("pcm24be.caf", "CAF, 24 bits, big-endian", caf(0, ints(24, order="big"), 3, 24), -130)
    answer("pcm24in32.caf", "CAF, 24 bits at the high end of four bytes", caf(0, ints(24, 4, "big", 8), 4, 24), -130)
    answer("pcm8.caf", "CAF, 8 bits", caf(0, ints(8), 1, 8), -38)
    answer("float32.caf", "CAF, floats", caf(3, floats("<f"), 4, 32), -140)
    answer("float64.caf", "CAF, 64-bit floats", caf(1, floats(">d"), 8, 64), -140)
    answer("ulaw.caf", "CAF, µ-law", caf(0, bytes(map(ulaw, quantized(16))), 1, 8, b"ulaw"), -34)
    answer("unknown.caf", "CAF of unknown length", caf(2, ints(16), 2, 16, size=-1))
    guid = bytes.fromhex("f3acd3118cd100c04f8edb8a")
    chunks = b"fmt " + guid + struct.pack("<Q", 40) + fmt() + b"data" + guid + struct.pack("<Q", 1_024) + ints(16)
    answer("pcm16.w64", "Wave64", b"riff" + bytes.fromhex("2e91cf11a5d628db04c10000") + struct.pack("<Q", 40 + len(chunks))
           + b"wave" + guid + chunks)


# Compressed -----------------------------------------------------------------------------------------------------------


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def make_compressed(folder):
    def source(rate, frames, channels=1, bits=16):
        path = os.path.join(folder, f"{rate}_{frames}_{channels}_{bits}.wav")
        with open(path, "wb") as file:
            data = ints(bits, frames=frames, channels=channels, rate=rate)
            file.write(wav(fmt(channels=channels, rate=rate, align=channels * bits // 8, bits=bits), data))
        return path

    def encode(name, what, command, error_db, rate=44_100, frames=11_025, channels=1, bits=16, **more):
        """Runs a command, in which IN and OUT stand for the files."""
        if not os.path.exists(name):
            names = {"IN": source(rate, frames, channels, bits), "OUT": name}
            run(*(names.get(word, word) for word in command.split()))
        frames = more.pop("expected", frames)
        answer(name, what, None, error_db, frames, channels, rate, **more)

    ff = "ffmpeg -y -bitexact -i IN "
    lossless = dict(rate=48_000, frames=2_000)
    encode("pcm16.flac", "FLAC", "flac -s -f --no-padding -o OUT IN", -85, **lossless)
    encode("pcm24.flac", "FLAC, 24 bits", "flac -s -f --no-padding -o OUT IN", -130, bits=24, **lossless)
    encode("pcm20.flac", "FLAC, 20 bits", "sox IN -b 20 -C 8 OUT", -100, bits=24, **lossless)
    encode("stereo.flac", "FLAC, two channels", "flac -s -f --no-padding -o OUT IN", -85, channels=2, **lossless)
    encode("small_blocks.flac", "FLAC, blocks of 192 frames", "flac -s -f --no-padding -b 192 -o OUT IN", -85, **lossless)
    for name, what, patch in [
        ("min0.flac", "FLAC, least block 0", lambda b: b[:8] + b"\0\0" + b[10:]),
        ("total0.flac", "FLAC of unknown length", lambda b: b[:21] + bytes([b[21] & 0xF0]) + bytes(4) + b[26:]),
        ("id3.flac", "ID3 tag before FLAC", lambda b: b"ID3\3\0\0\0\0\0\x14" + bytes(20) + b),
        ("md5_0.flac", "FLAC without checksum", lambda b: b[:26] + bytes(16) + b[42:]),
    ]:
        with open("pcm16.flac", "rb") as file:
            answer(name, what, patch(file.read()), rate=48_000, frames=2_000)
    encode("flac.ogg", "FLAC in Ogg", "flac -s -f --ogg -o OUT IN", -85, **lossless)
    encode("flac.mp4", "FLAC in MP4", ff + "-c:a flac -strict -2 OUT", -85, **lossless)
    encode("flac.mkv", "FLAC in Matroska", ff + "-c:a flac OUT", -85, **lossless)
    encode("alac.m4a", "ALAC in M4A", ff + "-c:a alac OUT", -85, **lossless)
    encode("alac24.m4a", "ALAC, 24 bits", ff + "-c:a alac OUT", -130, bits=24, **lossless)
    encode("alac.caf", "ALAC in CAF", ff + "-c:a alac OUT", -85, **lossless)
    for codec in ("s16le", "s16be", "s24le", "s24be", "s32le", "s32be", "f32le", "f32be", "f64le", "f64be"):
        bits = 16 if "16" in codec else 24
        encode(f"{codec}.mov", f"`pcm_{codec}` in MOV", ff + f"-c:a pcm_{codec} OUT", -85, bits=bits, rate=48_000, frames=500)
    encode("alaw.mov", "A-law in MOV", ff + "-c:a pcm_alaw OUT", 0, rate=48_000, frames=500, refused="there is no audio track")
    for codec, bits in [("pcm_s16le", 16), ("pcm_s24le", 24), ("pcm_f32le", 24)]:
        encode(f"{codec}.mkv", f"`{codec}` in Matroska", ff + f"-c:a {codec} OUT", -85, bits=bits, rate=48_000, frames=500)
    encode("adpcm_ms.wav", "MS ADPCM", ff + "-c:a adpcm_ms OUT", -18, signal=11_025, expected=12_216)
    encode("adpcm_ima.wav", "IMA ADPCM", ff + "-c:a adpcm_ima_wav OUT", -18, signal=11_025, expected=12_246)
    encode("vorbis.ogg", "Vorbis", "oggenc -Q -q 2 -o OUT IN", -15)
    encode("vorbis.webm", "Vorbis in WebM", ff + "-c:a libvorbis OUT", -15, signal=11_025, expected=11_840)
    encode("vorbis.mkv", "Vorbis in Matroska", ff + "-c:a libvorbis OUT", -15, signal=11_025, expected=11_840)
    opus = dict(rate=48_000, frames=12_000)
    encode("opus.opus", "Opus", "opusenc --quiet --bitrate 48 IN OUT", -15, **opus)
    for end in ("webm", "mkv", "mp4"):
        encode(f"opus.{end}", f"Opus in {end}", ff + "-c:a libopus -b:a 48k OUT", -15, **opus)
    encode("lame.mp3", "MP3 with LAME tag", "lame --quiet -b 64 -m m IN OUT", -15)
    encode("lame_vbr.mp3", "MP3 with variable bit rate", "lame --quiet -V 5 IN OUT", -15)
    encode("ffmpeg.mp3", "MP3 of ffmpeg", ff + "-c:a libmp3lame -b:a 64k OUT", -15)
    encode("no_tag.mp3", "MP3 without tag: the encoder's delay stays", "lame --quiet -t -b 64 -m m IN OUT", -15, delay=1_105, signal=11_025, expected=12_672)
    encode("48000.mp3", "MP3 at 48 kHz", "lame --quiet -b 64 -m m IN OUT", -15, rate=48_000, frames=12_000)
    encode("22050.mp3", "MP3 at 22 050 Hz", "lame --quiet -b 64 -m m IN OUT", -15, rate=22_050, frames=5_000)
    with open("lame.mp3", "rb") as file:
        lame = file.read()
    answer("id3.mp3", "MP3 behind two ID3 tags", (b"ID3\3\0\0\0\0\0\x14" + bytes(20)) * 2 + lame, -15, 11_025, rate=44_100)
    answer("mp3.wav", "MP3 in WAV", wav(fmt(0x55, rate=44_100, align=1, bits=0, extra=b"\x0c\0" + bytes(12)), lame), -15, 11_025, rate=44_100)
    encode("mp2.mp2", "MP2", ff + "-c:a mp2 -b:a 64k OUT", -15, delay=481, signal=11_025, expected=11_520)
    encode("mp3.mp4", "MP3 in MP4", ff + "-c:a libmp3lame -b:a 64k OUT", -15)
    encode("mp3.mkv", "MP3 in Matroska without delay: the encoder's stays", ff + "-c:a libmp3lame -b:a 64k OUT", -15, delay=1_105, signal=11_025, expected=12_130)
    encode("aac.mkv", "AAC in Matroska without delay: the encoder's stays", ff + "-c:a aac -b:a 64k OUT", -15, delay=1_024, signal=11_025, expected=12_288)
    for end in ("m4a", "mp4", "mov"):
        encode(f"aac.{end}", f"AAC in {end}", ff + "-c:a aac -b:a 64k OUT", -15)
    encode("aac_stereo.m4a", "AAC, two channels", ff + "-c:a aac -b:a 96k OUT", -15, channels=2)
    encode("aac_22050.m4a", "AAC at 22 050 Hz", ff + "-c:a aac -b:a 48k OUT", -15, rate=22_050)
    encode("aac_fragments.mp4", "AAC in fragmented MP4", ff + "-c:a aac -b:a 64k -movflags frag_keyframe+delay_moov OUT", -15, signal=11_025, expected=11_264)
    encode("aac.aac", "AAC in ADTS: the encoder's delay stays", ff + "-c:a aac -b:a 64k -f adts OUT", -15, delay=1_024, signal=11_025, expected=12_288)
    with open("aac.aac", "rb") as file:
        answer("aac.caf", "AAC in CAF", aac_in_caf(file.read()), -15, 11_025, rate=44_100)
    with open("aac.m4a", "rb") as file:
        m4a = file.read()
    answer("itunes.m4a", "AAC in M4A with the lengths of iTunes instead of an edit list", with_itunes_lengths(m4a), -15, 11_025, rate=44_100)
    answer("no_edits.m4a", "AAC in M4A without edit list: the encoder's delay stays", m4a.replace(b"edts", b"free"), -15, 12_288, rate=44_100, delay=1_024, signal=11_025)
    answer("cut.m4a", "AAC in M4A, cut to 0.1 s by its edit list", with_edit(m4a, 100, 1_024), -15, 4_410, rate=44_100)
    for first, rest in [("first", "-s 1"), ("second", "-s 2")]:
        encode(f"chained_{first}.ogg", "Vorbis, one of the two chained streams", f"oggenc -Q -q 2 {rest} -o OUT IN", -15)
    streams = [open(f"chained_{name}.ogg", "rb").read() for name in ("first", "second")]
    answer("chained.ogg", "two chained Vorbis streams", b"".join(streams), -15, 22_050, rate=44_100)
    ANSWERS[-1]["repeats"] = 2
    encode("surround.m4a", "AAC of six channels", ff + "-c:a aac -b:a 128k OUT", 0, channels=6, frames=4_096, refused="AAC of more than two channels, and HE-AAC, are not supported")
    encode("ac3.ac3", "AC-3", ff + "-c:a ac3 -b:a 64k OUT", 0, rate=48_000, frames=4_096, refused="format")
    encode("wavpack.wv", "WavPack", ff + "-c:a wavpack OUT", 0, rate=48_000, frames=500, refused="format")


def aac_in_caf(adts):
    """Puts the packets of an ADTS stream into CAF with a packet table."""
    packets = []
    while adts:
        length = (adts[3] & 3) << 11 | adts[4] << 3 | adts[5] >> 5
        packets.append(adts[7:length])
        adts = adts[length:]

    def descriptor(tag, content):
        # Lengths of four bytes, as Apple writes them.
        return bytes([tag, 0x80, 0x80, 0x80, len(content)]) + content

    decoder = descriptor(4, b"\x40\x14" + bytes(11) + descriptor(5, b"\x12\x08"))
    cookie = descriptor(3, bytes(3) + decoder + descriptor(6, b"\x02"))
    sizes = b"".join(bytes([len(p) >> 7 | 0x80, len(p) & 0x7F]) if len(p) > 127 else bytes([len(p)]) for p in packets)
    table = struct.pack(">qqii", len(packets), 11_025, 1_024, 1_024 * len(packets) - 1_024 - 11_025) + sizes
    chunks = [(b"desc", struct.pack(">d4s5I", 44_100, b"aac ", 2, 0, 1_024, 1, 0)), (b"kuki", cookie), (b"pakt", table),
              (b"data", bytes(4) + b"".join(packets))]
    return b"caff\0\1\0\0" + b"".join(name + struct.pack(">q", len(content)) + content for name, content in chunks)


def with_edit(m4a, duration, start):
    place = m4a.index(b"elst") + 12
    return m4a[:place] + struct.pack(">Ii", duration, start) + m4a[place + 8:]


def with_itunes_lengths(m4a):
    """Replaces the edit list by what iTunes wrote; the index is at the end, so that nothing else moves."""
    text = b" 00000000 00000400 000001CF 0000000000002B11" + b" 00000000" * 8

    def box(name, content):
        return struct.pack(">I", 8 + len(content)) + name + content

    item = box(b"----", box(b"mean", bytes(4) + b"com.apple.iTunes") + box(b"name", bytes(4) + b"iTunSMPB")
               + box(b"data", struct.pack(">II", 1, 0) + text))
    handler = box(b"hdlr", bytes(8) + b"mdirappl" + bytes(9))
    user = box(b"udta", box(b"meta", bytes(4) + handler + box(b"ilst", item)))
    start = m4a.index(b"moov") - 4
    # ffmpeg's own `udta` comes last.
    index = m4a[start + 8:m4a.rindex(b"udta") - 4].replace(b"edts", b"free") + user
    return m4a[:start] + box(b"moov", index)


if __name__ == "__main__":
    make_wav()
    make_aiff()
    make_others()
    with tempfile.TemporaryDirectory() as temporary:
        make_compressed(temporary)
    with open("answers.json", "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in ANSWERS) + "\n]\n")
