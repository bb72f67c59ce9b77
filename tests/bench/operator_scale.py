"""Rows of thousands of jobs that KWOK runs to their ends: by muster-operator, and by a client that only repeats its
calls."""

import collections
import functools
import itertools
import re
import time

import api_server
import muster
import operator_calls
import operators

NODES = 10
JOBS = 2500
RECORDED = 8
_numbers = itertools.count(1)


def _jobs(kwok, names):
    return [operators.muster_job(name, nodeName=kwok.nodes[i % NODES]) for i, name in enumerate(names)]


def _succeeded(running):
    counts = re.findall(r'(?m)^muster_jobs\{namespace="[^"]*",state="Succeeded"\} (\S+)$', running.metrics())
    return sum(float(count) for count in counts)


def _check_ends(server, namespace, jobs):
    items = server.call("GET", operators.MUSTER.collection.format(namespace))["items"]
    ended = sum(any(condition["type"] == "Finished" and condition["status"] == "True"
                    for condition in item["status"]["conditions"]) for item in items)
    if ended != jobs:
        raise muster.Failed(f"expected {jobs} Finished jobs, found {ended}")


def _say(figures):
    print("    " + ", ".join(f"{key} {value:.4g}" for key, value in figures.items()), flush=True)


class Meter:
    """Seconds and CPU seconds of the processes that take part, from now on."""

    def __init__(self, server, **processes):
        self._clocks = {"API server": lambda: server.cpu_seconds("kube-apiserver"),
                        "etcd": lambda: server.cpu_seconds("etcd"),
                        **{name: process.cpu_seconds for name, process in processes.items()}}
        self._before = {name: clock() for name, clock in self._clocks.items()}
        self._begin = time.monotonic()

    def read(self):
        return {"seconds": time.monotonic() - self._begin,
                **{f"CPU s of {name}": clock() - self._before[name] for name, clock in self._clocks.items()}}


@functools.cache
def scale():
    """Figures of JOBS jobs of four pods each, from the first create to the last that is Finished."""
    server = api_server.shared()
    namespace = f"scale-{next(_numbers)}"
    server.make_namespace(namespace)
    with api_server.Kwok(server, NODES) as kwok, operators.MUSTER.start(server, namespace) as running:
        calls, requests = running.calls(), server.requests()
        meter = Meter(server, operator=running, KWOK=kwok)
        server.create(operators.MUSTER.collection.format(namespace), _jobs(kwok, [f"job-{i}" for i in range(JOBS)]))
        api_server.wait_until(f"the end of {JOBS} jobs", lambda: _succeeded(running) >= JOBS, seconds=1500, every=0.2)
        figures = meter.read()
        figures["calls a job"] = (running.calls() - calls) / JOBS
        requests = server.requests() - requests
        figures["peakMegabytes"] = running.peak_megabytes()
        _check_ends(server, namespace, JOBS)
    _say(figures)
    _say({f"{kind} a job": count / JOBS for kind, count in requests.items() if count >= JOBS / 50})
    return {**figures, "statuses": int(requests["PUT trainingjobs/status"]), "events": int(requests["POST events"])}


@functools.cache
def recorded():
    """A few jobs' lives, and what they are made of."""
    server = api_server.shared()
    with api_server.Kwok(server, NODES) as kwok:
        lives = operator_calls.record(
            server, f"record-{next(_numbers)}", lambda names: _jobs(kwok, names), RECORDED,
            lambda running: _succeeded(running) >= RECORDED)
    kinds = collections.Counter(operator_calls.words(step) for life in lives["lives"] for step in life)
    _say({f"{kind} a recorded job": count / RECORDED for kind, count in kinds.items()})
    return lives


class SameCalls:
    """Seconds of a client that does nothing but make the calls of scale()'s operator, for as many jobs."""
    name = "the same calls alone"

    def measure(self):
        server, lives = api_server.shared(), recorded()
        totals = {name: scale()[name] for name in ("statuses", "events")}
        namespace = f"replay-{next(_numbers)}"
        server.make_namespace(namespace)
        with (api_server.Kwok(server, NODES) as kwok,
              operator_calls.Replay(server, namespace, lives, JOBS, totals) as client):
            meter = Meter(server, client=client, KWOK=kwok)
            server.create(operators.MUSTER.collection.format(namespace),
                          _jobs(kwok, [f"job-{i}" for i in range(JOBS)]))
            done = client.wait()
            figures = {**meter.read(), **done, "calls a job": done["calls"] / JOBS}
            _check_ends(server, namespace, JOBS)
        _say(figures)
        return figures["seconds"]


# All of a run's rows are of the same jobs.
Scale = functools.partial(muster.Figure, scale)
