#!/usr/bin/env python3
"""30 numbers, 128-64-1, ReLU, binary cross-entropy, Adam 0.001, batch 256 in PyTorch, from shuffled tensors in memory.
`--make FILE` writes such a table as Parquet."""

import argparse
import pathlib

import common
import numpy as np

COLUMNS = 30


def made(rows, seed=1):
    random = np.random.default_rng(seed)
    numbers = random.standard_normal((rows, COLUMNS))
    return numbers, (numbers[:, 0] + numbers[:, 1] * numbers[:, 2] > 0).astype(np.float32)


def make(file, rows, row_group):
    import pyarrow as pa
    import pyarrow.parquet

    numbers, target = made(rows)
    names = [f"number{i}" for i in range(COLUMNS)] + ["target"]
    table = pa.table([*numbers.T.copy(), target], names=names)
    pa.parquet.write_table(table, file + ".tmp", row_group_size=row_group, use_dictionary=False)
    pathlib.Path(file + ".tmp").rename(file)


def measure(threads):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    torch.set_flush_denormal(True)
    numbers, target = made(51_200)
    order = torch.randperm(len(numbers))
    numbers = torch.from_numpy(numbers.astype(np.float32))[order]
    target = torch.from_numpy(target)[order].unsqueeze(1)
    model = torch.nn.Sequential(torch.nn.Linear(COLUMNS, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64),
                                torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)
    loss = torch.nn.functional.binary_cross_entropy_with_logits

    def step(number):
        begin = number % (len(numbers) // 256) * 256
        optimizer.zero_grad(set_to_none=True)
        loss(model(numbers[begin : begin + 256]), target[begin : begin + 256]).backward()
        optimizer.step()

    common.report(common.steps_per_second(step, common.SECONDS), threads=threads)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--make")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--row-group", type=int)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.make:
        make(arguments.make, arguments.rows, arguments.row_group)
    else:
        measure(arguments.threads)


if __name__ == "__main__":
    main()
