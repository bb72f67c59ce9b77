#!/usr/bin/env python3
"""An all-reduce of BYTES of floats by torch.distributed's Gloo: two processes of one thread each on
loopback. Answers with GB/s of the buffer: the median call, as the first process sees it."""

import argparse
import statistics
import time

import two_processes


def worker(arguments):
    distributed = two_processes.join(arguments)
    import torch

    buffer = torch.empty(arguments.bytes // 4)
    repeats = max(30, 3_000_000_000 // arguments.bytes)
    times = []
    for number in range(repeats // 5 + repeats):
        buffer.fill_(1)
        begin = time.perf_counter()
        distributed.all_reduce(buffer)
        times.append(time.perf_counter() - begin)
    if buffer[0] != two_processes.WORKERS:
        raise SystemExit("the sum is wrong")
    seconds = statistics.median(times[repeats // 5:])
    return {"gigabytesPerSecond": 1e-9 * arguments.bytes / seconds, "seconds": seconds}


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--bytes", type=int, required=True)
two_processes.main(parser, __file__, worker)
