"""Compares steps of training with PyTorch's eager mode: same network, batch and threads, in turn on the same machine.

    cargo build --release -p ondes-training
    pip install torch==2.11.0
    python3 training/benches/pytorch_step.py target/release/ondes-train

Prints the fastest of the rounds' median steps, and the ratio, as a Markdown table.
"""

import argparse
import platform
import subprocess
import time

import torch
from torch import nn

SECONDS = 4.0


class Gru(nn.Module):
    """The recurrent network of `ondes-train bench --network gru`."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(64, 256, batch_first=True)
        self.linear = nn.Linear(256, 65)

    def forward(self, x):
        return self.linear(self.gru(x)[0])


class Lstm(nn.Module):
    """The capture `lstm-16`; its state goes on from step to step."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 16, batch_first=True)
        self.linear = nn.Linear(16, 1)
        self.state = None

    def forward(self, x):
        y, state = self.lstm(x, self.state)
        self.state = [part.detach() for part in state]
        return self.linear(y)


class LayerArray(nn.Module):
    """Dilated convolutions without padding, as trainers of captures write them."""

    def __init__(self, inputs, channels, heads, bias):
        super().__init__()
        self.dilations = [1 << layer for layer in range(10)]
        self.first = nn.Conv1d(inputs, channels, 1, bias=False)
        self.convolutions = nn.ModuleList(nn.Conv1d(channels, channels, 3, dilation=d) for d in self.dilations)
        self.conditions = nn.ModuleList(nn.Conv1d(1, channels, 1, bias=False) for _ in self.dilations)
        self.mixers = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in self.dilations)
        self.head = nn.Conv1d(channels, heads, 1, bias=bias)

    def forward(self, x, condition, head, length):
        x = self.first(x)
        for convolution, mixin, mixer in zip(self.convolutions, self.conditions, self.mixers):
            z = convolution(x)
            z = torch.tanh(z + mixin(condition)[:, :, -z.shape[2] :])
            head = z[:, :, -length:] if head is None else head[:, :, -length:] + z[:, :, -length:]
            x = x[:, :, -z.shape[2] :] + mixer(z)
        return self.head(head), x


class WaveNet(nn.Module):
    """The capture `standard`: 16 then 8 channels, ten layers each."""

    LEAD = 2 * 2 * 1023

    def __init__(self):
        super().__init__()
        self.arrays = nn.ModuleList([LayerArray(1, 16, 8, False), LayerArray(16, 8, 1, True)])

    def forward(self, x):
        length = x.shape[2] - self.LEAD
        # The head of the first array starts that of the second, which reads the end of it.
        head, middle = self.arrays[0](x, x, None, length)
        head, _ = self.arrays[1](middle, x, head, length)
        return 0.02 * head


def step_of(name):
    """Returns a function that trains one step."""
    torch.manual_seed(1)
    if name == "gru":
        network, x, y = Gru(), torch.randn(8, 250, 64), torch.randn(8, 250, 65)
    elif name == "lstm-16":
        network, x, y = Lstm(), torch.randn(64, 256, 1), torch.randn(64, 256, 1)
    else:
        network, x, y = WaveNet(), torch.randn(16, 1, 8192 + WaveNet.LEAD), torch.randn(16, 1, 8192)
    power = y.square().mean()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad()
        loss = (network(x) - y).square().mean() / power
        loss.backward()
        if name != "gru":
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def torch_milliseconds(step, seconds):
    times, started = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - started < seconds:
        before = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - before))
    return sorted(times)[len(times) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="ondes-train")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"PyTorch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}\n")
    print("| step | threads | PyTorch, ms | Ondes, ms | PyTorch / Ondes |\n|---|---|---|---|---|")
    for name, threads in [("gru", 1), ("lstm-16", 1), ("wavenet", 1), ("wavenet", 2)]:
        torch.set_num_threads(threads)
        step = step_of(name)
        for _ in range(2):
            step()
        theirs, ours = [], []
        command = [options.program, "bench", "--network", name, "--threads", str(threads), "--seconds", str(SECONDS)]
        for _ in range(options.rounds):
            theirs.append(torch_milliseconds(step, SECONDS))
            ours.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        theirs, ours = min(theirs), min(ours)
        print(f"| {name} | {threads} | {theirs:.1f} | {ours:.1f} | {theirs / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
