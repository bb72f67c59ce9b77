#!/usr/bin/env python3
"""784-256-256-10, ReLU, Adam 0.001, batch 32 in PyTorch, at its best honest setup: everything in memory
as one shuffled float tensor, batches are slices of it, one fused optimizer, nothing logged."""

import argparse

import common


def as_graph(torch, step, images, labels, loss_of, optimizer, batches):
    """The same step as one CUDA graph, which reads its batch from memory of its own."""
    x, y = images[: common.BATCH].clone(), labels[: common.BATCH].clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for number in range(3):
            step(number)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss_of(x, y).backward()
        optimizer.step()

    def replay(number):
        begin = number % batches * common.BATCH
        x.copy_(images[begin : begin + common.BATCH])
        y.copy_(labels[begin : begin + common.BATCH])
        graph.replay()

    return replay


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--mode", choices=["eager", "compile", "compile-step", "graph"], required=True)
    parser.add_argument("--input", choices=["mnist", "dense"], required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=common.SECONDS)
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    torch.set_flush_denormal(True)
    images, labels = common.mnist() if arguments.input == "mnist" else common.dense()
    order = torch.randperm(len(images))
    images = torch.from_numpy(images)[order].to(arguments.device)
    labels = torch.from_numpy(labels).long()[order].to(arguments.device)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 256), torch.nn.ReLU(),
        torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).to(arguments.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True, capturable=arguments.mode == "graph")

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(model(x), y)

    update = optimizer.step
    if arguments.mode.startswith("compile"):
        loss_of = torch.compile(loss_of)
    if arguments.mode == "compile-step":
        update = torch.compile(optimizer.step)
    batches = len(images) // common.BATCH

    def step(number):
        begin = number % batches * common.BATCH
        optimizer.zero_grad(set_to_none=True)
        loss_of(images[begin : begin + common.BATCH], labels[begin : begin + common.BATCH]).backward()
        update()

    if arguments.mode == "graph":
        step = as_graph(torch, step, images, labels, loss_of, optimizer, batches)
    finish = torch.cuda.synchronize if arguments.device == "cuda" else lambda: None
    common.report(common.steps_per_second(step, arguments.seconds, finish=finish), threads=arguments.threads)


if __name__ == "__main__":
    main()
