"""Exports priors of the package msprior with random weights, combined with a codec by the package, each with the sound that
PyTorch computes with it: the prior listens to the first half, and goes on by itself.

Usage: msprior_models.py FOLDER
"""

import pathlib
import sys

import torch

RATIO = 1024
TOKENS = 16
QUANTIZERS = 4

# Name and configuration of the package.
MODELS = [("recurrent", "recurrent"), ("attention", "decoder_only")]
SIZES = [
    f"NUM_QUANTIZERS = {QUANTIZERS}", f"NUM_TOKENS = {TOKENS}", "MODEL_DIM = 32", "NUM_LAYERS = 2", "SEQ_LEN = 32",
    "NUM_HEADS = 8", "HEAD_DIM = 4",
]


def export_codes(path):
    """Exports a codec with the methods of a discrete RAVE: codes of a level in bands, and sound of that level."""
    from nn_tilde import Module

    class Codes(Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("down", torch.randn(QUANTIZERS, 1, RATIO) * 0.05)
            self.register_buffer("up", torch.randn(QUANTIZERS, 1, RATIO) * 0.05)
            self.register_method("encode", 1, 1, QUANTIZERS, RATIO)
            self.register_method("decode", QUANTIZERS, RATIO, 1, 1)
            self.register_method("forward", 1, 1, 1, 1)

        @torch.jit.export
        def encode(self, x: torch.Tensor) -> torch.Tensor:
            level = torch.sigmoid(torch.conv1d(x, self.down, stride=1024))
            return torch.floor(level * 15.999)

        @torch.jit.export
        def decode(self, z: torch.Tensor) -> torch.Tensor:
            return torch.conv_transpose1d(z / 16.0, self.up, stride=1024)

        @torch.jit.export
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.decode(self.encode(x))

    Codes().export_to_ts(str(path))


def export_prior(path, configuration):
    """Exports a prior of random weights."""
    import gin
    from msprior.scripted import ScriptedPrior

    gin.clear_config()
    gin.parse_config_files_and_bindings([f"{configuration}.gin"], SIZES)
    prior = ScriptedPrior(temporal_ratio=RATIO)
    prior.apply_full_reset()
    prior.export_to_ts(str(path))


def main(folder):
    import cached_conv
    from msprior_scripts.combine import CombinedModule
    from reference import BLOCKS, Reference, signal

    torch.set_grad_enabled(False)
    torch.manual_seed(4)
    cached_conv.MAX_BATCH_SIZE = 4
    cached_conv.use_cached_conv(True)
    folder = pathlib.Path(folder)
    reference = Reference(folder)
    codes = folder / "codes.ts"
    export_codes(codes)
    for name, configuration in MODELS:
        prior = folder / f"{name}.prior.ts"
        export_prior(prior, configuration)
        path = folder / f"{name}.ts"
        CombinedModule(str(prior), str(codes)).export_to_ts(str(path))
        script = torch.jit.load(str(path)).eval()
        sound = signal(1, BLOCKS * RATIO)
        # The likeliest codes, since chance is not the same elsewhere.
        script.set_temperature(0.0)
        outputs = []
        for block, part in enumerate(sound.split(RATIO, dim=-1)):
            if block == BLOCKS // 2:
                # The prior plays by itself.
                script.set_listen(False)
            made = script.prior(script.encode(part[None]))
            outputs.append(script.decode(made[:, :QUANTIZERS])[0])
        reference.record(name, path, sound, torch.cat(outputs, -1), ["encode", "prior", "decode"], RATIO)
        reference.entries[-1] |= {"controls": {"prior": 1.0, "temperature": 0.0}, "halfway": {"listen": 0.0}}
    reference.write()


if __name__ == "__main__":
    main(sys.argv[1])
