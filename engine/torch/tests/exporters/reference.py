"""Archives of one package with what PyTorch computes with them, for the tests of the crate.

`index.json` lists the archives; `NAME.input.f32` and `NAME.output.f32` hold samples `[channel][frame]`.
"""

import json
import pathlib
import wave

import torch

BLOCKS = 40


class Reference:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.entries = []

    def add(self, name, module, methods, texts=None, sounds=None):
        """Exports a module for nn~ and runs `methods` one after the other, block by block, as nn~ does.

        `texts` are values of attributes; `sounds` are 16-bit samples `[channel][frame]` for buffers.
        """
        path = self.folder / f"{name}.ts"
        module.export_to_ts(str(path))
        script = torch.jit.load(str(path)).eval()
        ratios = [getattr(script, f"{method}_params").tolist() for method in script.get_methods()]
        block = max([256] + [ratio for row in ratios for ratio in (row[1], row[3])])
        for attribute, text in (texts or {}).items():
            getattr(script, f"set_{attribute}")(text)
        files = {}
        for attribute, samples in (sounds or {}).items():
            files[attribute] = self.write_sound(f"{name}.{attribute}.wav", samples)
            script.set_buffer_attribute(f"{attribute}#0", samples.float() / 32_768, 48_000)
        channels = int(getattr(script, f"{methods[0]}_params")[0])
        sound = signal(channels, BLOCKS * block)
        outputs = []
        with torch.inference_mode():
            for part in sound.split(block, dim=-1):
                value = part[None]
                for method in methods:
                    value = getattr(script, method)(value)
                outputs.append(value[0].clone())
        self.record(name, path, sound, torch.cat(outputs, -1), methods, block, texts, files)

    def write_sound(self, name, samples):
        with wave.open(str(self.folder / name), "wb") as file:
            file.setnchannels(samples.shape[0])
            file.setsampwidth(2)
            file.setframerate(48_000)
            file.writeframes(samples.T.contiguous().numpy().astype("<i2").tobytes())
        return name

    def record(self, name, path, sound, output, methods, block, texts=None, sounds=None):
        """Writes input and output, and adds the archive to the index."""
        for side, values in (("input", sound), ("output", output)):
            values.contiguous().float().numpy().tofile(self.folder / f"{name}.{side}.f32")
        self.entries.append({
            "name": name,
            "file": path.name,
            "methods": methods,
            "block": block,
            "inputs": sound.shape[0],
            "outputs": output.shape[0],
            "texts": texts or {},
            "sounds": sounds or {},
            # Controls of Ondes from the beginning, and from the middle on.
            "controls": {},
            "halfway": {},
        })

    def write(self):
        (self.folder / "index.json").write_text(json.dumps(self.entries, indent=1))


def signal(channels, frames):
    """A decaying chord with noise, different in each channel. Channels beyond two are silent, as in Ondes."""
    time = torch.arange(frames) / 48_000
    generator = torch.Generator().manual_seed(7)
    rows = []
    for channel in range(channels):
        chord = sum(torch.sin(2 * torch.pi * pitch * (1 + 0.01 * channel) * time) for pitch in (110, 277, 659))
        noise = torch.rand(frames, generator=generator) * 2 - 1
        rows.append(0.2 * chord * torch.exp(-3 * time) + 0.05 * noise)
    sound = torch.stack(rows).float()
    sound[2:] = 0
    return sound
