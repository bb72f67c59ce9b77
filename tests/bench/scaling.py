"""The row `scaling`: a job whose group grows and shrinks within an epoch."""

import json
import pathlib
import subprocess
import tempfile
import time

import collective
import events
import muster

PATIENCE = 120  # seconds
SETS = [*collective.PAIR, *collective.LARGE, "spec.elastic={minReplicas: 1, maxReplicas: 2}",
        "spec.training.summary={everySteps: 1}"]


def _await(condition, what, run):
    until = time.time() + PATIENCE
    while not condition():
        if run.poll() is not None or time.time() > until:
            raise muster.Failed(f"not seen: {what}")
        time.sleep(0.02)


def _replicas(folder):
    status = json.loads(muster.call([muster.BIN / "muster", "status", folder, "-o", "json"]))
    return {one["name"]: one for one in status["replicas"]}


def _scale(folder, workers, expected, run):
    """Returns when the group of so many members has made steps."""
    before = len(collective.generations(folder))
    muster.call([muster.BIN / "muster", "scale", folder, "--replicas", workers])
    _await(lambda: expected in collective.generations(folder)[before:], f"a group of {expected}", run)
    steps = len(events.commits(folder))
    _await(lambda: len(events.commits(folder)) > steps + 5, "further steps", run)


def _require_same_processes(before, after):
    for name, replica in before.items():
        kept = after[name]["pid"] == replica["pid"] and after[name]["restarts"] == 0
        if not kept:
            raise muster.Failed(f"{name} was restarted")


def _run(folder, scale):
    """Seconds of the longest gap between steps."""
    command = muster.example("mnist-mlp", folder, *SETS)
    run = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, cwd=muster.ROOT)
    try:
        if scale:
            _await(lambda: len(events.commits(folder)) > 5, "steps", run)
            before = _replicas(folder)
            _scale(folder, 2, 3, run)
            _scale(folder, 1, 2, run)
            _require_same_processes(before, _replicas(folder))
        if run.wait(timeout=600) != 0:
            raise muster.Failed("the job has failed")
    finally:
        run.kill()
        run.wait()
    times = [when for _, when in events.commits(folder)]
    return max(b - a for a, b in zip(times, times[1:]))


def _weights(folder):
    return json.loads((folder / "summary.json").read_text())["weightsDigest"]


def samples_seen():
    """Of an epoch in which the group went from 2 members to 3 and back; fails where a process was
    restarted, or where the weights are not those of the same job whose group stayed: a sample that
    was left out or taken twice would change them."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as name:
        scaled, undisturbed = pathlib.Path(name) / "scaled", pathlib.Path(name) / "undisturbed"
        gaps = _run(scaled, True), _run(undisturbed, False)
        print("    longest gap between steps {:.3f} s, where nothing changed {:.3f}".format(*gaps),
              flush=True)
        if _weights(scaled) != _weights(undisturbed):
            raise muster.Failed("the weights are not those of a group that stayed")
        result = json.loads((scaled / "result.json").read_text())
        manifest = scaled / result["checkpoint"] / "manifest.json"
        return json.loads(manifest.read_text())["position"]["sums"][0]["rows"]
