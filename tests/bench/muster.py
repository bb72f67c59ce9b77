"""Muster's side of every row: the real binaries of build/release, a training.yaml or an example's
manifest, and the result.json or summary.json that any user gets."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build/release/bin"
REPORT = ROOT / "docs/internals/performance.md"
MNIST = str(ROOT / "examples/data/mnist")


class Failed(Exception):
    pass


def call(command, cwd=ROOT, **environment):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=1800,
                          cwd=cwd, env={**os.environ, **environment})
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise Failed(f"{' '.join(map(str, command))}: exit {done.returncode}\n{tail}")
    return done.stdout


def standalone(training):
    """result.json of one process training `training`, a dictionary."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        file = pathlib.Path(folder) / "training.yaml"
        file.write_text(json.dumps(training))  # JSON is YAML
        call([BIN / "muster-trainer", "--standalone", file, "--storage", folder])
        return json.loads((pathlib.Path(folder) / "result.json").read_text())


def example(name, folder, *sets):
    """The command that runs examples/<name>.yaml in `folder`."""
    return [BIN / "muster", "run", ROOT / "examples" / (name + ".yaml"), "--directory", folder,
            *(word for change in sets for word in ("--set", change))]


def run_example(name, *sets, **environment):
    """summary.json of `muster run examples/<name>.yaml --set ...`."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        call(example(name, folder, *sets), **environment)
        return json.loads((pathlib.Path(folder) / "summary.json").read_text())


def steps_per_second(training):
    return standalone(training)["stepsPerSecond"]


def idx(part, **selection):
    return {"idx": {"images": f"{MNIST}/{part}-images-idx3-ubyte.gz",
                    "labels": f"{MNIST}/{part}-labels-idx1-ubyte.gz"}, **selection}


def busy_cpus(seconds=1):
    """How many CPUs have been in use on average, by whomever."""

    def used():
        ticks = [int(text) for text in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # idle, iowait

    before, began = used(), time.monotonic()
    time.sleep(seconds)
    return (used() - before) / (time.monotonic() - began)


class Figure:
    """One of the figures that a function measures together, which remembers them (functools.cache)."""

    def __init__(self, measure_all, name):
        self.name, self._measure_all = name, measure_all

    def measure(self):
        return self._measure_all()[self.name]


def probe():
    """The machine's state: how many CPUs others use, nanoseconds of a barrier between two threads and
    GB/s of memcpy."""
    busy = busy_cpus()
    text = call([BIN / "bench_compute", "--probe"])
    barrier = [float(x) for x in re.findall(r"threads (\d+) ns", text)]
    copy = [float(x) for x in re.findall(r"memcpy ([\d.]+) GB/s", text)]
    return {"barrierNanoseconds": min(barrier), "memcpyGBs": max(copy), "busyCpus": busy}
