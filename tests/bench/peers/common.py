"""What every peer shares: MNIST in memory, the clock, the line it answers with."""

import gzip
import json
import pathlib
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
BATCH = 32
SECONDS = 4.0


def _idx(name, header):
    data = gzip.open(ROOT / "examples/data/mnist" / name).read()
    return np.frombuffer(data, np.uint8, offset=header)


def mnist(part="train", take=50000):
    """Images as float32 in [0, 1], [take, 784], and labels as int32: the first `take` of the file."""
    images = _idx(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:take]
    labels = _idx(f"{part}-labels-idx1-ubyte.gz", 8)[:take]
    return images.astype(np.float32) / 255, labels.astype(np.int32)


def dense(samples=50000):
    """Like mnist(), of noise around ten centres: no pixel is zero."""
    random = np.random.default_rng(1)
    labels = random.integers(0, 10, samples).astype(np.int32)
    centres = random.standard_normal((10, 784)).astype(np.float32)
    return centres[labels] + random.standard_normal((samples, 784), dtype=np.float32), labels


def steps_per_second(step, seconds, warm_up=300, block=100, finish=lambda: None):
    """Calls step(0), step(1), ... for about `seconds` after `warm_up` calls that are not timed. The clock is
    read after each `block` of calls, and after finish(), which waits for what they have asked for."""
    for number in range(warm_up):
        step(number)
    finish()
    done, begin = 0, time.perf_counter()
    while True:
        for _ in range(block):
            step(warm_up + done)
            done += 1
        finish()
        elapsed = time.perf_counter() - begin
        if elapsed >= seconds:
            return done / elapsed


def fixed_steps_per_second(step, steps):
    """The same of exactly `steps` calls after a fifth as many: where several processes take them
    together, none may take more than the others."""
    for number in range(steps // 5):
        step(number)
    begin = time.perf_counter()
    for number in range(steps):
        step(steps // 5 + number)
    return steps / (time.perf_counter() - begin)


def report(value, **more):
    print(json.dumps({"stepsPerSecond": value, **more}), flush=True)
