"""The row large-job: one job of as many replicas as a job may have, whose pods KWOK runs."""

import functools
import itertools

import api_server
import muster
import operators
from operator_scale import NODES, Meter

WORKERS, PS = 1000, 200


def _job(kwok):
    nodes = itertools.cycle(kwok.nodes)
    job = operators.lasting(operators.muster_job("large"))
    del job["spec"]["replicaSpecs"]["evaluator"]
    for role, replicas in (("worker", WORKERS), ("ps", PS)):
        job["spec"]["replicaSpecs"][role]["replicas"] = replicas
    for role in job["spec"]["replicaSpecs"].values():
        role["template"]["spec"]["nodeName"] = next(nodes)
    return job


def _is_running(server, path):
    conditions = server.call("GET", path).get("status", {}).get("conditions", [])
    return any((one["type"], one["status"]) == ("Running", "True") for one in conditions)


@functools.cache
def large_job():
    """Figures from the job's creation until its status says that all replicas are ready."""
    server = api_server.ApiServer()  # of its own, where its pods may stay
    try:
        namespace = "large"
        server.make_namespace(namespace)
        collection = operators.MUSTER.collection.format(namespace)
        with api_server.Kwok(server, NODES) as kwok, operators.MUSTER.start(server, namespace) as running:
            calls = running.calls()
            meter = Meter(server, operator=running, KWOK=kwok)
            server.call("POST", collection, _job(kwok))
            api_server.wait_until("all replicas ready", lambda: _is_running(server, f"{collection}/large"), seconds=600,
                                  every=1)
            figures = {**meter.read(), "calls a replica": (running.calls() - calls) / (WORKERS + PS + 1),
                       "peakMegabytes": running.peak_megabytes()}
        pods = server.count(f"/api/v1/namespaces/{namespace}/pods")
    finally:
        server.stop()
    if pods != WORKERS + PS + 1:
        raise muster.Failed(f"expected {WORKERS + PS + 1} pods, found {pods}")
    print("    " + ", ".join(f"{key} {value:.4g}" for key, value in figures.items()), flush=True)
    return figures


Large = functools.partial(muster.Figure, large_job)
