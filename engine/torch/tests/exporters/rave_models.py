"""Exports RAVE models with random weights by the package's own script, `scripts/export.py` of acids-rave.

Usage: rave_models.py FOLDER [--full-size]
With --full-size, the networks have the sizes of the package's configurations, to measure speed.
"""

import json
import os
import pathlib
import subprocess
import sys

import torch

# Name, configurations, bindings, and options of the export.
SMALL = ["CAPACITY = 8", "LATENT_SIZE = 16"]
MODELS = [
    ("v1", ["v1"], SMALL, ["--streaming"]),
    ("v2", ["v2"], SMALL, ["--streaming"]),
    ("v2_offline", ["v2"], SMALL, []),
    ("v2_causal", ["v2", "causal"], SMALL, ["--streaming"]),
    ("v2_noise", ["v2", "noise"], SMALL, ["--streaming"]),
    ("v2_small", ["v2_small"], SMALL, ["--streaming"]),
    ("v2_stereo", ["v2"], SMALL + ["RAVE.n_channels = 2"], ["--streaming"]),
    ("v2_mono_to_stereo", ["v2"], SMALL, ["--streaming", "--channels", "2"]),
    ("v2_resampled", ["v2"], SMALL + ["SAMPLING_RATE = 22050"], ["--streaming", "--sr", "44100"]),
    ("v3", ["v3"], SMALL, ["--streaming"]),
    ("raspberry", ["raspberry"], ["CAPACITY = 4"], ["--streaming"]),
    ("discrete", ["discrete"], ["CAPACITY = 8", "LATENT_SIZE = 16", "CODEBOOK_SIZE = 32", "NUM_QUANTIZERS = 4",
                                "NOISE_AUGMENTATION = 8"], ["--streaming"]),
    ("wasserstein", ["v2", "wasserstein"], ["CAPACITY = 8", "NOISE_AUGMENTATION = 4"], ["--streaming"]),
    ("spherical", ["v2", "spherical"], ["CAPACITY = 8"], ["--streaming"]),
]


def train(folder, configurations, bindings):
    """Writes what a training run leaves: the configuration and a checkpoint, here of random weights."""
    import gin
    import rave
    import rave.core
    from rave.quantization import ResidualVectorQuantization

    root = pathlib.Path(rave.__file__).parent
    gin.add_config_file_search_path(str(root))
    files = [str(root / "configs" / f"{name}.gin") for name in configurations]
    gin.parse_config_files_and_bindings(files, bindings)
    torch.manual_seed(2)
    model = rave.RAVE()
    size = model.latent_pca.shape[0]
    with torch.no_grad():
        model.latent_pca.copy_(torch.linalg.qr(torch.randn(size, size))[0])
        model.latent_mean.copy_(0.3 * torch.randn(size))
        model.fidelity.copy_(1 - torch.exp(-0.6 * torch.arange(1.0, size + 1)))
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm1d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 2)
            if isinstance(module, ResidualVectorQuantization):
                for layer in module.layers:
                    layer._codebook.embed.normal_()
                    layer._codebook.inited.fill_(1)
    checkpoints = folder / "version_0" / "checkpoints"
    checkpoints.mkdir(parents=True)
    (folder / "config.gin").write_text(gin.operative_config_str())
    torch.save({"state_dict": model.state_dict(), "callbacks": {}, "global_step": 1}, checkpoints / "last.ckpt")


def full_size(bindings):
    """Returns the bindings that do not make a network small."""
    return [binding for binding in bindings if binding.startswith(("RAVE.", "SAMPLING_RATE"))]


def main(folder, is_full_size):
    folder = pathlib.Path(folder)
    runs = folder / "runs"
    names = []
    for name, configurations, bindings, options in MODELS:
        run = runs / name
        if is_full_size:
            bindings = full_size(bindings)
        if not run.exists():
            # A process each, since the configuration is global.
            command = [sys.executable, __file__, "train", str(run), json.dumps([configurations, bindings])]
            subprocess.run(command, check=True)
        export = [sys.executable, "-m", "scripts.export", "--run", str(run), "--name", name, "--output", str(folder)]
        result = subprocess.run(export + options, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
        file = name + ("_streaming" if "--streaming" in options else "") + ".ts"
        if result.returncode or not (folder / file).exists():
            print(f"{name}: the package itself fails: {result.stderr.strip().splitlines()[-1]}")
            continue
        names.append(file)
        print(file, flush=True)
    (folder / "index.json").write_text(json.dumps(names))


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(pathlib.Path(sys.argv[2]), *json.loads(sys.argv[3]))
    else:
        main(sys.argv[1], "--full-size" in sys.argv)
