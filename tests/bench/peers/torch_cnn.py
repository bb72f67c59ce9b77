#!/usr/bin/env python3
"""mnist-cnn in PyTorch at its best honest setup: two convolutions, pooling, dropout and two dense layers,
Adam 0.001, batch 32; everything in memory as one shuffled float tensor, batches are slices of it, one fused
optimizer, nothing logged. `--layout channels-last` is the layout that convolutions on a CPU are fastest with."""

import argparse

import common


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--mode", choices=["eager", "compile"], required=True)
    parser.add_argument("--layout", choices=["contiguous", "channels-last"], required=True)
    parser.add_argument("--seconds", type=float, default=common.SECONDS)
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    torch.set_flush_denormal(True)
    images, labels = common.mnist()
    order = torch.randperm(len(images))
    images = torch.from_numpy(images)[order].reshape(-1, 1, 28, 28)
    labels = torch.from_numpy(labels).long()[order]
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))
    if arguments.layout == "channels-last":
        images = images.to(memory_format=torch.channels_last)
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)

    def loss_of(x, y):
        return nn.functional.cross_entropy(model(x), y)

    if arguments.mode == "compile":
        loss_of = torch.compile(loss_of)
    batches = len(images) // common.BATCH

    def step(number):
        begin = number % batches * common.BATCH
        optimizer.zero_grad(set_to_none=True)
        loss_of(images[begin : begin + common.BATCH], labels[begin : begin + common.BATCH]).backward()
        optimizer.step()

    common.report(common.steps_per_second(step, arguments.seconds, warm_up=20, block=10),
                  threads=arguments.threads)


if __name__ == "__main__":
    main()
