#!/usr/bin/env python3
"""784-256-256-10 (or other hidden layers), ReLU, Adam 0.001, batch 32 a process by PyTorch's
DistributedDataParallel over Gloo. Each process has all images in memory as one shuffled float tensor and
takes every second batch; one fused optimizer, nothing logged."""

import argparse

import common
import two_processes


def worker(arguments):
    distributed = two_processes.join(arguments)
    import torch
    from torch import nn

    torch.manual_seed(1)
    torch.set_flush_denormal(True)
    images, labels = common.mnist()
    order = torch.randperm(len(images))
    images = torch.from_numpy(images)[order]
    labels = torch.from_numpy(labels).long()[order]
    units = [784, *arguments.hidden]
    layers = [layer for inputs, outputs in zip(units, units[1:])
              for layer in (nn.Linear(inputs, outputs), nn.ReLU())]
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(*layers, nn.Linear(units[-1], 10)),
        gradient_as_bucket_view=arguments.views, static_graph=arguments.views)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)
    batches = len(images) // common.BATCH

    def step(number):
        batch = number * distributed.get_world_size() + arguments.rank
        begin = batch % batches * common.BATCH
        optimizer.zero_grad(set_to_none=True)
        logits = model(images[begin : begin + common.BATCH])
        nn.functional.cross_entropy(logits, labels[begin : begin + common.BATCH]).backward()
        optimizer.step()

    return {"stepsPerSecond": common.fixed_steps_per_second(step, arguments.steps)}


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--views", action="store_true",
                    help="gradients are views of the buckets, and the graph is declared static")
two_processes.main(parser, __file__, worker)
