"""The rows build-run and build-all: how long a newcomer waits, from a clone without anything built and without
ccache. Debian packages that are missing would be installed within that time; here they are there already."""

import functools
import os
import pathlib
import resource
import subprocess
import tempfile
import time

import muster


@functools.cache
def _build(target):
    """Seconds that `make TARGET` takes in a fresh clone of the last commit, and the CPU seconds that it uses."""
    with tempfile.TemporaryDirectory(prefix="muster-build-") as folder:
        clone = pathlib.Path(folder) / "muster"
        muster.call(["git", "clone", "--quiet", muster.ROOT, clone])
        environment = {**os.environ, "CCACHE_DISABLE": "1", "MAKEFLAGS": ""}
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(["make", target], cwd=clone, env=environment, capture_output=True, text=True,
                              timeout=3600)
        seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            raise muster.Failed(f"make {target}: exit {done.returncode}\n" +
                                "\n".join((done.stdout + done.stderr).splitlines()[-15:]))
        return {"seconds": seconds,
                "CPU seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


class Build:
    def __init__(self, target, name="seconds"):
        self.target = target
        self.name = name

    def measure(self):
        return _build(self.target)[self.name]
