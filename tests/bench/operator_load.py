"""Rows of the operator: how fast it makes many jobs' pods, at which cost, and what a lost leader delays."""

import collections
import itertools
import signal
import time

import api_server
import muster
import operators

_numbers = itertools.count(1)


def _pods(namespace):
    return f"/api/v1/namespaces/{namespace}/pods"


def _settle(running):
    """Calls, when none that writes has been made for a second: pods that nobody runs are asked about for ever."""
    last, since = running.calls(writes=True), time.monotonic()
    while time.monotonic() - since < 1:
        time.sleep(0.1)
        now = running.calls(writes=True)
        if now > last + 2:  # a renewed lease is no work
            last, since = now, time.monotonic()
    return running.calls()


def burst(operator, jobs):
    """Figures of an operator that meets `jobs` jobs of four replicas all at once. It stands still
    while they are created, so that the time is its own and the API server's, not the creator's."""
    server = api_server.shared()
    namespace = f"burst-{next(_numbers)}"
    server.make_namespace(namespace)
    with operator.start(server, namespace) as running:
        before = _settle(running)
        running.send(signal.SIGSTOP)
        server.create(operator.collection.format(namespace),
                      [operator.job(f"job-{i}") for i in range(jobs)])
        running.send(signal.SIGCONT)
        begin, cpu, server_cpu = time.monotonic(), running.cpu_seconds(), server.cpu_seconds()
        api_server.wait_until(f"{4 * jobs} pods of {operator.name}",
                             lambda: server.count(_pods(namespace)) >= 4 * jobs, seconds=300,
                             every=0.05)
        seconds = time.monotonic() - begin
        figures = {"podsPerSecond": 4 * jobs / seconds, "seconds": seconds,
                   "cpu": running.cpu_seconds() - cpu, "serverCpu": server.cpu_seconds() - server_cpu,
                   "callsPerJob": (_settle(running) - before) / jobs,
                   "peakMegabytes": running.peak_megabytes()}
        made = server.count(_pods(namespace))
    if made != 4 * jobs:
        raise muster.Failed(f"{operator.name}: expected {4 * jobs} pods, found {made}")
    return figures


class Burst:
    """One figure of burst(), of either operator."""

    def __init__(self, operator, figure, jobs=250):
        self.name = operator.name
        self._operator, self._figure, self._jobs = operator, figure, jobs

    def measure(self):
        figures = burst(self._operator, self._jobs)
        print("    " + ", ".join(f"{key} {value:.4g}" for key, value in figures.items()), flush=True)
        return figures[self._figure]


def _check_pods(server, namespace, jobs):
    """No pod of a job is missing, made twice or without its job."""
    uids = {one["uid"]: one["name"]
            for one in server.metadata(operators.MUSTER.collection.format(namespace))}
    found = collections.Counter()
    for pod in server.metadata(_pods(namespace)):
        owner = pod["ownerReferences"][0]["uid"]
        found[(uids.get(owner, "no job"), pod["labels"]["muster.dev/role"])] += 1
    expected = {(f"job-{i}", role): 1
                for i in range(jobs) for role in ("ps", "chief", "worker", "evaluator")}
    if found != expected:
        wrong = {key for key in found.keys() | expected if found[key] != expected.get(key, 0)}
        raise muster.Failed(f"duplicate, missing or orphaned pods: {sorted(wrong)[:10]}")


def fairness(jobs=5000):
    """Seconds from the creation of a namespace's only job to its first pod, while another namespace has `jobs` new ones."""
    server = api_server.shared()
    number = next(_numbers)
    crowd, single = f"crowd-{number}", f"single-{number}"
    for namespace in (crowd, single):
        server.make_namespace(namespace)
    with operators.MUSTER.start(server, f"{crowd},{single}"):
        server.create(operators.MUSTER.collection.format(crowd), [operators.muster_job(f"job-{i}") for i in range(jobs)])
        api_server.wait_until("the crowd's first pods", lambda: server.count(_pods(crowd)) >= 100, every=0.05)
        begin = time.monotonic()
        server.create(operators.MUSTER.collection.format(single), [operators.muster_job("alone")])
        api_server.wait_until("a pod of the single job", lambda: server.count(_pods(single)) > 0, every=0.01)
        seconds = time.monotonic() - begin
        if server.count(_pods(crowd)) >= 2 * jobs:
            raise muster.Failed("the crowd was half done before the single job had a pod: it was no crowd")
    return seconds


def leader_loss(jobs=100):
    """Seconds from `kill -9` of the leader, when it has made half of all pods, to the next pod."""
    server = api_server.shared()
    namespace = f"leader-{next(_numbers)}"
    server.make_namespace(namespace)
    start = operators.MUSTER.start
    with start(server, namespace) as leader:
        api_server.wait_until("a leader", lambda: "muster_operator_leads 1" in leader.metrics())
        with start(server, namespace):
            leader.send(signal.SIGSTOP)
            server.create(operators.MUSTER.collection.format(namespace),
                          [operators.muster_job(f"job-{i}") for i in range(jobs)])
            leader.send(signal.SIGCONT)
            api_server.wait_until("half of the pods",
                                 lambda: server.count(_pods(namespace)) >= 2 * jobs, every=0)
            leader.send(signal.SIGKILL)
            begin = time.monotonic()
            time.sleep(0.5)  # what it had sent is done by now
            made = server.count(_pods(namespace))
            if made >= 4 * jobs:
                raise muster.Failed("the leader was done before it could be killed")
            api_server.wait_until("another pod", lambda: server.count(_pods(namespace)) > made)
            seconds = time.monotonic() - begin
            api_server.wait_until("all pods", lambda: server.count(_pods(namespace)) >= 4 * jobs)
            time.sleep(2)  # for one too many
            _check_pods(server, namespace, jobs)
    return seconds
