"""Trains a LeNet on scikit-learn's digits with MindSpore, in GRAPH_MODE and in PyNative mode.

Run by `./run demo`, or alone: `demo_mindspore.py FOLDER`. In the graph the functions `save` and
`save_grad` write .npy files; in PyNative mode a debugger writes records with statistics.
"""

import argparse
import json
import os
from pathlib import Path

import mindspore as ms
import numpy as np
from dump_tree import print_tree, read_records
from mindspore import nn, ops
from sklearn.datasets import load_digits

from msprobe.mindspore import PrecisionDebugger, save, save_grad, seed_all, step

STEPS = 60
BATCH = 64


class LeNet(nn.Cell):
    """For images of 8x8 pixels. `watch` gets the features that go into the last three layers."""

    def __init__(self, watch):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, pad_mode="same")
        self.conv2 = nn.Conv2d(6, 16, 3, pad_mode="same")
        self.pool = nn.MaxPool2d(2, 2)
        self.classify = nn.SequentialCell(
            nn.Flatten(),
            nn.Dense(64, 120),
            nn.ReLU(),
            nn.Dense(120, 84),
            nn.ReLU(),
            nn.Dense(84, 10),
        )
        self.watch = watch

    def construct(self, images):
        features = self.pool(ops.relu(self.conv1(images)))
        features = self.pool(ops.relu(self.conv2(features)))
        return self.classify(self.watch(features))


def watch_in_graph(folder):
    def watch(features):
        save(folder, "features", {"value": features, "mean": features.mean()})
        return save_grad(folder, "features", features)  # go on with what it returns

    return watch


def watch_in_pynative(features):
    PrecisionDebugger.save(features, "features")  # its gradient too
    return features


def train(watch, end_step):
    seed_all(1234)
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int32)
    network = LeNet(watch)
    optimizer = nn.Adam(network.trainable_params(), 0.003)
    loss_function = nn.CrossEntropyLoss()

    def forward(images, labels):
        return loss_function(network(images), labels)

    value_and_grad = ms.value_and_grad(forward, None, optimizer.parameters)
    random = np.random.default_rng(0)
    for number in range(STEPS):
        chosen = random.integers(len(images), size=BATCH)
        loss, gradients = value_and_grad(ms.Tensor(images[chosen]), ms.Tensor(labels[chosen]))
        optimizer(gradients)
        end_step()
        if number % 20 == 0 or number == STEPS - 1:
            print(f"  step {number:3}  loss {float(loss):.4f}", flush=True)


def show_gradient(graph, pynative):
    gradient = np.load(graph / "step0" / "rank0" / "features_grad_float32_0.npy")
    record = read_records(pynative / "step0")["features_grad.0.debug"]
    print("\nThe gradient of `features` in step 0:")
    print(f"  in the graph     {gradient.dtype}, shape {gradient.shape}", end="")
    print(f", norm {np.linalg.norm(gradient.astype(np.float64)):.9f}")
    print(f"  in PyNative mode {json.dumps(record)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    graph, pynative = folder / "graph", folder / "pynative"
    os.environ.setdefault("RANK_ID", "0")  # as a launcher (msrun) sets it
    ms.set_device("CPU")

    print("Training with MindSpore in GRAPH_MODE, each step saved:", flush=True)
    ms.set_context(mode=ms.GRAPH_MODE)
    train(watch_in_graph(str(graph)), step)

    print("Training with MindSpore in PyNative mode:", flush=True)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    debugger = PrecisionDebugger(dump_path=str(pynative), step=["0-1", STEPS - 1])
    train(watch_in_pynative, debugger.step)

    print()
    print_tree(graph)
    print_tree(pynative)
    show_gradient(graph, pynative)


if __name__ == "__main__":
    main()
