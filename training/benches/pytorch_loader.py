"""Compares the loader with a PyTorch DataLoader: random crops of one second from the same recordings, two workers each.

    cargo build --release -p ondes-training
    pip install torch==2.11.0 soundfile
    python3 training/benches/pytorch_loader.py target/release/ondes-train FOLDER

FOLDER has WAV files. The DataLoader reads the sound of each crop from its file; the loader reads sound, pitch and
loudness from the prepared dataset, with and without decoded rows in memory. Prints the fastest of the rounds.
"""

import argparse
import pathlib
import platform
import re
import subprocess
import tempfile
import time

import numpy
import soundfile
import torch
from torch.utils.data import DataLoader, IterableDataset

RATE = 48_000
BATCH = 8
WORKERS = 2


class Crops(IterableDataset):
    """Random crops, of recordings in proportion to their length."""

    def __init__(self, paths):
        self.paths = [str(path) for path in paths]
        self.lengths = numpy.array([soundfile.info(path).frames for path in self.paths], float)

    def __iter__(self):
        random = numpy.random.default_rng(torch.utils.data.get_worker_info().id)
        share = self.lengths / self.lengths.sum()
        while True:
            index = random.choice(len(self.paths), p=share)
            start = random.integers(0, max(1, int(self.lengths[index]) - RATE))
            sound, _ = soundfile.read(self.paths[index], RATE, start, dtype="float32", fill_value=0.0)
            yield torch.from_numpy(sound if sound.ndim == 1 else sound.mean(1))


def pytorch(paths, seconds):
    """Returns crops per second."""
    batches = iter(DataLoader(Crops(paths), BATCH, num_workers=WORKERS, prefetch_factor=4))
    for _ in range(2 * WORKERS):
        next(batches)
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        next(batches)
        count += BATCH
    return count / (time.perf_counter() - started)


def ondes(program, dataset, seconds, cache):
    """Returns crops per second."""
    command = [program, "data", "bench", dataset, "--batch", str(BATCH), "--workers", str(WORKERS)]
    text = subprocess.run(command + ["--seconds", str(seconds), "--cache", cache], capture_output=True, text=True, check=True)
    row = re.search(rf"^\| {WORKERS} \|[^|]*\| (\d+) \|", text.stdout, re.MULTILINE)
    return float(row.group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    paths = sorted(options.folder.rglob("*.wav"))
    with tempfile.TemporaryDirectory() as folder:
        dataset = f"{folder}/dataset"
        subprocess.run([options.program, "prepare", str(options.folder), "--out", dataset], check=True)
        best = [0.0, 0.0, 0.0]
        for _ in range(options.rounds):
            speeds = [
                pytorch(paths, options.seconds),
                ondes(options.program, dataset, options.seconds, "512M"),
                ondes(options.program, dataset, options.seconds, "1"),
            ]
            best = [max(pair) for pair in zip(best, speeds)]
    print(f"PyTorch {torch.__version__}, Python {platform.python_version()}, {len(paths)} files\n")
    print("| | crops per second | |\n|---|---|---|")
    for name, speed in zip(["PyTorch DataLoader", "ondes-train", "ondes-train, nothing in memory"], best):
        print(f"| {name} | {speed:.0f} | {speed / best[0]:.1f} × |")


if __name__ == "__main__":
    main()
