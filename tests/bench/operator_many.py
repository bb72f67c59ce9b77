"""Rows of an operator that has a hundred thousand jobs in view, or 400 of a megabyte each: its memory, and how soon a
second one takes over."""

import functools
import json
import os
import pathlib
import signal
import time
import uuid

import api_server
import muster
import operators

NAMESPACE = "many"
FINISHED = int(os.environ.get("MUSTER_BENCH_FINISHED", 100_000))
RUNNING = 1_000
LARGE = 400
MEGABYTE = 1 << 20
COLLECTION = operators.MUSTER.collection.format(NAMESPACE)
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
# etcd's own limit is 2 GB, which the objects and their history may need; the API server collects garbage sooner.
LIMITS = {"ETCD_QUOTA_BACKEND_BYTES": str(8 << 30), "GOGC": "50"}


def _jobs_that_are(running, state):
    return running.gauge(f'muster_jobs{{namespace="{NAMESPACE}",state="{state}"}}')


def _run_jobs(server, nodes):
    """A job that the operator has finished, and those that run on."""
    def on_node(i):
        return {"nodeName": nodes[i % len(nodes)]}

    with operators.MUSTER.start(server, NAMESPACE) as running:
        server.create(COLLECTION, [operators.muster_job(_name(0), **on_node(0))])
        server.create(COLLECTION, [operators.lasting(operators.muster_job(f"running-{i}", **on_node(i)))
                                   for i in range(RUNNING)])
        for state, jobs in (("Succeeded", 1), ("Running", RUNNING)):
            api_server.wait_until(f"{jobs} jobs that are {state}",
                                  lambda: _jobs_that_are(running, state) >= jobs, seconds=600)


def _name(i):
    return f"finished-{i:06}"


def _copy(server, numbers):
    """Puts jobs into etcd that are, byte for byte, what the API server has written there of the finished one, and
    Services likewise. Only names and UIDs differ, and they are of the same length."""
    first = server.call("GET", f"{COLLECTION}/{_name(0)}")["metadata"]["uid"]
    service = server.call("GET", f"{SERVICES}/{_name(0)}")["metadata"]["uid"]
    prefixes = [f"/registry/muster.dev/trainingjobs/{NAMESPACE}/", f"/registry/services/specs/{NAMESPACE}/"]
    patterns = [(prefix, server.stored(prefix + _name(0))) for prefix in prefixes]
    for i in numbers:
        job_uid, service_uid = (str(uuid.uuid4()) for _ in range(2))
        for prefix, value in patterns:
            for old, new in ((_name(0), _name(i)), (first, job_uid), (service, service_uid)):
                value = value.replace(old.encode(), new.encode())
            yield prefix + _name(i), value


def _is_calm(running):
    return running.gauge('workqueue_depth{name="trainingjob"}') == 0


def _pods_of(server, name):
    return server.call("GET", f"{PODS}?labelSelector=muster.dev/job%3D{name}")["items"]


def _take_over(server):
    """Figures of two operators, of which the leading one is killed."""
    start = operators.MUSTER.start
    begin = time.monotonic()
    with start(server, NAMESPACE) as leader:
        listed = time.monotonic() - begin
        api_server.wait_until("a leader", lambda: leader.gauge("muster_operator_leads") == 1)
        api_server.wait_until("a leader that has looked at all jobs", lambda: _is_calm(leader), seconds=600, every=0.2)
        looked = time.monotonic() - begin
        with start(server, NAMESPACE) as follower:
            cpu = follower.cpu_seconds()
            leader_peak = leader.peak_megabytes()
            leader.send(signal.SIGKILL)
            begin = time.monotonic()
            server.create(COLLECTION, [operators.muster_job("new")])
            api_server.wait_until("a pod of the new job", lambda: _pods_of(server, "new"), every=0.05)
            seconds = time.monotonic() - begin
            api_server.wait_until("a new leader that has looked at all jobs", lambda: _is_calm(follower), seconds=600)
            return {"seconds to take over": seconds, "seconds to look at all": time.monotonic() - begin,
                    "peakMegabytes": max(leader_peak, follower.peak_megabytes()), "seconds to list": listed,
                    "seconds to list and look": looked, "CPU s of taking over": follower.cpu_seconds() - cpu}


@functools.cache
def many():
    """Figures of FINISHED finished jobs and RUNNING that run; both rows are of the same jobs. They have an API server
    of their own, so that its other rows do not see them."""
    server = api_server.ApiServer(**LIMITS)
    try:
        server.make_namespace(NAMESPACE)
        with api_server.Kwok(server, 10) as kwok:
            _run_jobs(server, kwok.nodes)
        begin = time.monotonic()
        server.store(_copy(server, range(1, FINISHED)))
        # It then reads all of them at once; it would take it minutes, and three times the memory, to follow.
        server.restart()
        api_server.wait_until("an API server that knows them", lambda: server.count(COLLECTION) > FINISHED)
        last = f"{COLLECTION}/{_name(FINISHED - 1)}"
        figures = {"seconds to make them": time.monotonic() - begin,
                   "bytes of a job": len(json.dumps(server.call("GET", last), separators=(",", ":")))}
        figures |= _take_over(server)
        figures |= {f"MB of {name}": api_server.peak_megabytes(server.pid(name)) for name in ("kube-apiserver", "etcd")}
        figures["MB of etcd's file"] = (server.folder / "etcd/member/snap/db").stat().st_size / 1e6
    finally:
        server.stop()
    print("    " + ", ".join(f"{key} {value:.4g}" for key, value in figures.items()), flush=True)
    return figures


Many = functools.partial(muster.Figure, many)


@functools.cache
def _sources():
    """Python's own sources, as an example of programs that people write."""
    return "".join(path.read_text(errors="ignore") for path in sorted(pathlib.Path(os.__file__).parent.glob("*.py")))


def _large_job(i):
    job = operators.muster_job(f"large-{i}")
    job["spec"]["suspend"] = True
    begin = i * 9_973 % (len(_sources()) - MEGABYTE)
    chief = job["spec"]["replicaSpecs"]["chief"]["template"]["spec"]["containers"][0]
    chief["args"] = ["-c", _sources()[begin:begin + MEGABYTE]]
    return job


def large():
    """Peak megabytes of an operator that sees LARGE suspended jobs come, each with a program of a megabyte in its
    template, and of one that finds them when it starts."""
    server = api_server.ApiServer(**LIMITS)
    try:
        server.make_namespace(NAMESPACE)
        peaks = []
        with operators.MUSTER.start(server, NAMESPACE) as first:
            server.create(COLLECTION, [_large_job(i) for i in range(LARGE)])
            api_server.wait_until("jobs that are suspended",
                                  lambda: _jobs_that_are(first, "Suspended") >= LARGE, seconds=600)
            peaks.append(first.peak_megabytes())
        with operators.MUSTER.start(server, NAMESPACE) as second:
            api_server.wait_until("an operator that has looked at all jobs",
                                  lambda: second.gauge("muster_operator_leads") == 1 and _is_calm(second), seconds=600)
            peaks.append(second.peak_megabytes())
        return max(peaks)
    finally:
        server.stop()
