"""Rows about what a job's steps feel: a checkpoint, and the loss of a replica. `muster run` with the
real binaries; times are those of the chief's own points (events.py)."""

import json
import math
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import events
import muster

POINTS = "spec.training.summary={everySteps: 1}"
QUIET = 4  # seconds after a kill: longer than any outage should be
NO_EVALUATOR = "spec.replicaSpecs.evaluator.replicas=0"


def _longest(times, begin, end):
    """The longest step that ended within (begin, end]; None where there were fewer than three."""
    steps = [b - a for a, b in zip(times, times[1:]) if begin < b <= end]
    return max(steps) if len(steps) >= 3 else None


def _writing_seconds(folder):
    """By step, what the chief's log says of how long each checkpoint took to be written."""
    text = (pathlib.Path(folder) / "logs/chief-0.log").read_text()
    return {int(step): float(seconds) for step, seconds in
            re.findall(r"checkpoint ckpt-(\d+)\S* was written in ([\d.e-]+) s", text)}


def percentile95(values):
    """By nearest rank: of fewer than twenty the greatest."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def _added(at, took, every):
    """For each checkpoint but the last, what it added to the longest step, or None where it took
    more than half of the time until the next."""
    times = sorted(at.values())
    for step in range(every, max(at) - every + 1, every):
        begin, end = at[step], at[step + every]
        middle = (begin + end) / 2
        written, quiet = _longest(times, begin, middle), _longest(times, middle, end)
        known = written is not None and quiet is not None
        yield written - quiet if known and begin + took.get(step, math.inf) <= middle else None


def checkpoint_stall(every, *sets):
    """Milliseconds that a checkpoint adds to the longest step: the longest one in the half of the
    time between two checkpoints that follows the first of them, in which it is written, less the
    longest one in the other half; the 95th percentile of the checkpoints of a run. One that took
    longer to be written would disturb both halves, and is dropped; more than one in five may not."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        muster.call(muster.example("mnist-mlp", folder, POINTS, NO_EVALUATOR,
                                   f"spec.training.checkpoint={{everySteps: {every}}}", *sets))
        all_added = list(_added(dict(events.commits(folder)), _writing_seconds(folder), every))
    added = sorted(1e3 * one for one in all_added if one is not None)
    dropped = len(all_added) - len(added)
    print("   ", " ".join(f"{one:.2f}" for one in added), f"ms; {dropped} dropped", flush=True)
    if len(added) < 5 or dropped > len(all_added) / 5:
        raise muster.Failed(f"of {len(all_added)} checkpoints {dropped} took longer than half of the "
                            "time until the next: expected five that did not, and four in five")
    return max(0.01, percentile95(added))


def _pid(folder, replica):
    status = json.loads(muster.call([muster.BIN / "muster", "status", folder, "-o", "json"]))
    return next(one["pid"] for one in status["replicas"] if one["name"] == replica)


def _await_checkpoint(folder, process):
    until = time.time() + 60
    while not (pathlib.Path(folder) / "checkpoints/checkpoint").exists():
        if process.poll() is not None or time.time() > until:
            raise muster.Failed("the job has no checkpoint")
        time.sleep(0.01)


def outage(commits, killed, quiet=QUIET):
    """Seconds from the kill to the step that ends the longest of the gaps that begin before the next
    disturbance, `quiet` seconds later, however late it ends."""
    times = [when for _, when in commits]
    if times[-1] < killed + quiet:
        raise muster.Failed(f"a kill that the job had not recovered from {quiet} s later")
    gaps = [(b - a, b) for a, b in zip(times, times[1:]) if a < killed + quiet and b > killed]
    return max(gaps)[1] - killed


def _kill_each(role, count, sets, check):
    """One run in which each of `count` replicas of the role is killed once: an operator starts one
    again at once the first time, so that its back-off is not in the figure."""
    chiefs = role == "chief"
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        sets = [*sets, POINTS, NO_EVALUATOR, "spec.training.epochs=1000",
                "spec.training.checkpoint={everySteps: 500}", "spec.runPolicy.backoffLimit=1000"]
        if not chiefs:
            sets.append(f"spec.replicaSpecs.{role}.replicas={count}")
        run = subprocess.Popen(list(map(str, muster.example("mnist-mlp", folder, *sets))),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=muster.ROOT)
        try:
            _await_checkpoint(folder, run)
            kills = []
            for index in range(count):
                time.sleep(0.5)
                pid = _pid(folder, f"{role}-{index}")
                kills.append(time.time())
                os.kill(pid, signal.SIGKILL)
                time.sleep(QUIET)
            time.sleep(0.5)  # for a step after that
            run.send_signal(signal.SIGINT)
            run.wait(timeout=60)
        finally:
            run.kill()
            run.wait()
        if check:
            check(folder, count)
        commits = events.commits(folder)
    return [outage(commits, killed) for killed in kills]


def stranger(seconds):
    """MiB that a process takes more at most while a stranger without the key sends whatever it can think of to every
    port. That the job ends with the same bits and without a restart is checked on the way."""
    tests = "*HostileTest*/ps:*HostileTest*/collective"
    text = muster.call([muster.BIN / "chaos", "--gtest_filter=" + tests], MUSTER_CHAOS_HOSTILE=str(seconds))
    attacks = re.findall(r"^hostile: (\S+) s, (\d+) MiB more$", text, re.MULTILINE)
    if len(attacks) != 2 or min(float(lasted) for lasted, _ in attacks) < seconds:
        raise muster.Failed(f"expected two attacks of {seconds} s, found {attacks}")
    return max(int(more) for _, more in attacks)


def recovery(role, samples, *sets, check=None):
    """Seconds from `kill -9` to the group's next step: the 95th percentile (nearest rank). `check`
    is called with each run's folder and how many were killed, and raises Failed."""
    count = 1 if role == "chief" else 2
    taken = sorted(one for _ in range(-(-samples // count)) for one in _kill_each(role, count, sets, check))
    print("   ", " ".join(f"{one:.3f}" for one in taken), flush=True)
    return percentile95(taken)
