"""Prints the weights that PyTorch's optimisers reach on the problem of tests.rs, in f64. Made with PyTorch 2.11.0."""

import torch

torch.set_default_dtype(torch.float64)

X = torch.tensor([[0.1 * i - 0.2 * j + 0.3 for j in range(2)] for i in range(4)])
Y = torch.tensor([[0.2 * j - 0.15 * i for j in range(3)] for i in range(4)])


def train(build, steps=7):
    a = torch.tensor([[0.3 - 0.1 * i * j + 0.05 * j for j in range(3)] for i in range(2)], requires_grad=True)
    b = torch.tensor([0.1, 0.0, -0.2], requires_grad=True)
    optimizer = build(a, b)
    for _ in range(steps):
        optimizer.zero_grad()
        ((X @ a + b).tanh() - Y).square().mean().backward()
        optimizer.step()
    return [*a.detach().flatten().tolist(), *b.detach().tolist()]


def groups(a, b, decay):
    return [{"params": [a], "weight_decay": decay}, {"params": [b], "weight_decay": 0.0}]


OPTIMIZERS = {
    "sgd": lambda a, b: torch.optim.SGD(groups(a, b, 0.0), lr=0.1),
    "momentum": lambda a, b: torch.optim.SGD(groups(a, b, 0.01), lr=0.1, momentum=0.9),
    "nesterov": lambda a, b: torch.optim.SGD(groups(a, b, 0.01), lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda a, b: torch.optim.Adam(groups(a, b, 0.01), lr=0.01, betas=(0.9, 0.99), eps=1e-8),
    "adamw": lambda a, b: torch.optim.AdamW(groups(a, b, 0.1), lr=0.01, betas=(0.9, 0.99), eps=1e-8),
}

for name, build in OPTIMIZERS.items():
    print(f'("{name}", [{", ".join(f"{value:.12f}" for value in train(build))}]),')
