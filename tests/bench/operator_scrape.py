"""Rows of a scrape of an operator that leads JOBS jobs of REPLICAS replicas each, which KWOK runs."""

import functools
import time

import api_server
import muster
import operators
from operator_scale import NODES

JOBS, REPLICAS = 1_000, 10
SCRAPES = 20


def _job(kwok, i):
    """One of each role, and workers as all the others."""
    job = operators.lasting(operators.muster_job(f"job-{i:04}", nodeName=kwok.nodes[i % NODES]))
    roles = job["spec"]["replicaSpecs"]
    roles["worker"]["replicas"] = REPLICAS + 1 - len(roles)
    return job


def _scrape(running):
    """Milliseconds until the whole answer was read, and the answer."""
    begin = time.monotonic()
    text = running.metrics()
    return (time.monotonic() - begin) * 1e3, text


@functools.cache
def scrape():
    """Figures of scrapes a second apart, after all replicas were ready."""
    server = api_server.ApiServer()  # of its own, where its pods may stay
    namespace = "scrape"
    collection = operators.MUSTER.collection.format(namespace)
    try:
        server.make_namespace(namespace)
        with api_server.Kwok(server, NODES) as kwok, operators.MUSTER.start(server, namespace) as running:
            server.create(collection, [_job(kwok, i) for i in range(JOBS)])
            running_jobs = f'muster_jobs{{namespace="{namespace}",state="Running"}}'
            api_server.wait_until(f"{JOBS} jobs that run", lambda: running.gauge(running_jobs) >= JOBS, seconds=900,
                                  every=1)
            pods = server.count(f"/api/v1/namespaces/{namespace}/pods")
            if pods != JOBS * REPLICAS:
                raise muster.Failed(f"expected {JOBS * REPLICAS} pods, found {pods}")
            milliseconds = []
            cpu = running.cpu_seconds()
            for _ in range(SCRAPES):
                time.sleep(1)
                took, text = _scrape(running)
                milliseconds.append(took)
            figures = {"milliseconds": max(milliseconds), "megabytes": len(text.encode()) / 1e6,
                       "series": sum(not line.startswith("#") for line in text.splitlines()),
                       "CPU ms of a scrape": (running.cpu_seconds() - cpu) / SCRAPES * 1e3,
                       "peakMegabytes": running.peak_megabytes()}
    finally:
        server.stop()
    print("    " + ", ".join(f"{key} {value:.4g}" for key, value in figures.items()), flush=True)
    return figures


Scrape = functools.partial(muster.Figure, scrape)
