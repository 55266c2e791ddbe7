"""Exports small models with the package nn-tilde, each with the sound that PyTorch computes with it.

Usage: nn_tilde_models.py FOLDER
"""

import sys
from typing import List, Tuple

import torch
from nn_tilde import Module

from reference import Reference

VERSIONED = hasattr(Module, "set_sample_rate")
RATE = 48_000


def module(rate=None):
    """Version 1.6 takes the sample rate; earlier ones do not."""
    return {"sr": rate} if VERSIONED and rate else {}


class Gain(Module):
    """An effect with attributes of all types of numbers."""

    def __init__(self):
        super().__init__()
        self.register_attribute("gain", 0.5)
        self.register_attribute("steps", 2)
        self.register_attribute("mute", False)
        self.register_attribute("range", (-1.0, 0.75))
        self.register_method("forward", 1, 1, 1, 1, ["dry"], ["wet"])

    @torch.jit.export
    def get_gain(self) -> float:
        return self.gain[0]

    @torch.jit.export
    def set_gain(self, value: float) -> int:
        self.gain = (value,)
        return 0

    @torch.jit.export
    def get_steps(self) -> int:
        return self.steps[0]

    @torch.jit.export
    def set_steps(self, value: int) -> int:
        self.steps = (value,)
        return 0

    @torch.jit.export
    def get_mute(self) -> bool:
        return self.mute[0]

    @torch.jit.export
    def set_mute(self, value: bool) -> int:
        self.mute = (value,)
        return 0

    @torch.jit.export
    def get_range(self) -> Tuple[float, float]:
        return self.range[0], self.range[1]

    @torch.jit.export
    def set_range(self, low: float, high: float) -> int:
        if high < low:
            return -1
        self.range = (low, high)
        return 0

    @torch.jit.export
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mute[0]:
            return torch.zeros_like(x)
        return torch.clamp(x * self.gain[0] * float(self.steps[0]), self.range[0], self.range[1])


class Generated(Module):
    """An effect whose getters and setters the package writes, where it does."""

    def __init__(self):
        super().__init__(**module(RATE))
        self.register_attribute("drive", 2.0)
        self.register_attribute("mix", (0.25, 0.75))
        self.register_method("forward", 1, 1, 1, 1)

    @torch.jit.export
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * self.drive[0]) * self.mix[1] + x * self.mix[0]


class Codec(Module):
    """Two methods of different ratios, with weights."""

    def __init__(self, channels=1):
        super().__init__(**module(RATE))
        self.down = torch.nn.Conv1d(channels, 8, 256, 256)
        self.up = torch.nn.ConvTranspose1d(8, channels, 256, 256)
        self.register_method("encode", channels, 1, 8, 256)
        self.register_method("decode", 8, 256, channels, 1)
        self.register_method("forward", channels, 1, channels, 1)

    @torch.jit.export
    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.down(x))

    @torch.jit.export
    def decode(self, z: torch.Tensor) -> torch.Tensor:
        return self.up(z)

    @torch.jit.export
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decode(self.encode(x))


class Oscillator(Module):
    """A generator whose pitch follows the host's sample rate, where the package passes it."""

    def __init__(self):
        super().__init__(**module(RATE))
        self.register_buffer("phase", torch.zeros(1))
        self.register_method("forward", 1, 1, 1, 1)

    @torch.jit.export
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rate = self.rate()
        steps = torch.arange(x.shape[-1]) + self.phase
        self.phase = torch.remainder(self.phase + x.shape[-1], rate)
        return torch.sin(steps * (2 * 3.141592653589793 * 441.0 / rate)).reshape(1, 1, -1).expand(x.shape[0], 1, -1)

    def rate(self) -> float:
        return 48_000.0


class Mixer(Module):
    """Three inputs, two outputs."""

    def __init__(self):
        super().__init__()
        self.register_method("forward", 3, 1, 2, 1, ["left", "right", "voice"], ["left", "right"])

    @torch.jit.export
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, :2] + 0.5 * x[:, 2:]


class Texts(Module):
    """Attributes that are no numbers."""

    def __init__(self):
        super().__init__()
        self.register_attribute("name", "soft")
        self.register_method("forward", 1, 1, 1, 1)

    @torch.jit.export
    def get_name(self) -> str:
        return self.name[0]

    @torch.jit.export
    def set_name(self, value: str) -> int:
        self.name = (value,)
        return 0

    @torch.jit.export
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (0.25 if self.name[0] == "soft" else 1.0)


if VERSIONED:
    from nn_tilde import Buffer

    class Sampler(Module):
        """An effect that adds the level of a sound, and takes its first frame for an offset."""

        def __init__(self):
            super().__init__(**module(RATE))
            self.register_attribute("take", Buffer(None, 16, 4_096))
            self.register_attribute("label", ("plain", 2))
            self.register_method("forward", 1, 1, 1, 1)

        @torch.jit.export
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            take = self.take[0]
            if take.has_value:
                x = x + take.value.pow(2).mean().sqrt() + take.value[-1, 0] * float(take.sr) / 48000.0
            return x * float(self.label[1]) if self.label[0] == "plain" else x


def main(folder):
    torch.manual_seed(1)
    reference = Reference(folder)
    reference.add("gain", Gain(), ["forward"])
    if VERSIONED:
        reference.add("generated", Generated(), ["forward"])
    reference.add("codec", Codec(), ["encode", "decode"])
    reference.add("stereo", Codec(2), ["encode", "decode"])
    reference.add("oscillator", Oscillator(), ["forward"])
    reference.add("mixer", Mixer(), ["forward"])
    reference.add("texts", Texts(), ["forward"])
    reference.add("other_text", Texts(), ["forward"], texts={"name": "hard"})
    if VERSIONED:
        noise = torch.randint(-9_000, 9_000, (2, 3_000), generator=torch.Generator().manual_seed(3))
        reference.add("sampler", Sampler(), ["forward"])
        reference.add("sampler_with_sound", Sampler(), ["forward"], sounds={"take": noise})
    reference.write()


if __name__ == "__main__":
    main(sys.argv[1])
