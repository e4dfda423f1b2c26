"""Two runs of a small model, the second with a mistake of a port; `msprobe compare` finds it.

Usage: python examples/two_runs.py FOLDER      writes FOLDER/golden and FOLDER/port
"""

import argparse
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

from msprobe.pytorch import PrecisionDebugger, seed_all


class Block(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=eps)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x, name):
        normed = self.norm(x)
        PrecisionDebugger.save(normed, f"{name}.norm")
        out = x + self.down(torch.relu(self.up(normed)))
        PrecisionDebugger.save(out, f"{name}.out")
        return out


def train(folder, eps):
    """Three steps; `eps` is that of the second block's norm."""
    debugger = PrecisionDebugger(dump_path=str(folder), task="tensor")
    seed_all(1, mode=True)
    blocks = nn.ModuleList([Block(16, 1e-5), Block(16, eps)])
    head = nn.Linear(16, 4)
    optimizer = torch.optim.SGD([*blocks.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        x, target = 0.1 * torch.randn(8, 16), torch.randint(0, 4, (8,))
        for i, block in enumerate(blocks):
            x = block(x, f"block{i}")
        loss = nn.functional.cross_entropy(head(x), target)
        debugger.save(loss, "loss", save_backward=False)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        debugger.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", choices=("golden", "port"), help="only this one, in this process")
    arguments = parser.parse_args()
    if arguments.run:
        eps = {"golden": 1e-5, "port": 1e-6}[arguments.run]
        train(arguments.folder / arguments.run, eps)
        return
    for run in ("golden", "port"):  # a debugger is one a process
        command = [sys.executable, __file__, str(arguments.folder), "--run", run]
        subprocess.run(command, check=True)
    print(f"try: msprobe compare {arguments.folder}/golden {arguments.folder}/port")


if __name__ == "__main__":
    main()
