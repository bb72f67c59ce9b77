"""Rows of a job on real nodes: deploy/cluster's, with the operator installed from its chart. Needs
root. Times are those of the chief's own points (events.py): nodes and benchmark share a clock."""

import atexit
import functools
import os
import pathlib
import signal
import sys
import tempfile
import time

import disturbance
import events
import muster
from operators import wait_until

sys.path.append(str(muster.ROOT / "tests/e2e"))
import cluster  # noqa: E402
import jobs  # noqa: E402

JOB = "mnist-mlp"
TOOLS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
         "kubectl", "coredns", "helm"]


@functools.cache
def nodes():
    """Two nodes with Muster on them, for all rows of a run."""
    for words in (["install.sh", "cluster"], ["go.sh", *TOOLS]):
        muster.call([muster.ROOT / "deploy/setup" / words[0], *words[1:]])
    made = cluster.Cluster("bench")
    atexit.register(made, "down")
    made("up", "2")
    cluster.run([muster.ROOT / "docker/build"], timeout=600)
    made("load", *sorted((muster.ROOT / "build/images").glob("*.tar")))
    made.helm("install", "muster", muster.ROOT / "charts/muster", "--create-namespace", "--wait",
              "--timeout", "120s", namespace="muster-system", timeout=180)
    return made


class Training:
    """A job in a namespace of its own, whose storage is a folder of this machine."""

    def __init__(self, **training):
        self._temporary = tempfile.TemporaryDirectory(prefix="muster-bench-")
        self._name = pathlib.Path(self._temporary.name).name.replace("_", "-").lower()
        self.folder = pathlib.Path(self._temporary.name) / "storage"
        self.job = jobs.mnist()
        self.job["spec"]["training"].update(training, summary={"everySteps": 1})
        self.job["spec"]["runPolicy"] = {"backoffLimit": 1000}
        del self.job["spec"]["replicaSpecs"]["evaluator"]
        nodes().kubectl("create", "namespace", self._name)
        jobs.claim_storage(nodes(), self._name, self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        nodes().kubectl("delete", "namespace", self._name, timeout=180)
        nodes().kubectl("delete", "persistentvolume", self._name, "--wait=false")
        self._temporary.cleanup()

    def apply(self):
        """When it was asked for."""
        began = time.time()
        nodes().apply(self.job, namespace=self._name)
        return began

    def commits(self):
        return events.commits(self.folder)

    def await_checkpoint(self):
        wait_until("a checkpoint", (self.folder / "checkpoints/checkpoint").exists, 180)

    def delete_pod(self, role, index):
        pods = jobs.pods(nodes(), self._name, JOB, role)
        name = next(pod["metadata"]["name"] for pod in pods
                    if pod["metadata"]["labels"]["muster.dev/index"] == str(index)
                    and pod["status"]["phase"] == "Running")
        nodes().kubectl("delete", "pod", name, "--wait=false", namespace=self._name)

    def kill_in_container(self, role, index):
        """kill -9 of a replica's trainer, as seen from this machine."""
        names = {f"MUSTER_JOB_UID={self._uid()}", f"MUSTER_ROLE={role}", f"MUSTER_INDEX={index}"}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if ((process / "comm").read_text().strip() == "muster-trainer"
                        and names <= set((process / "environ").read_text().split("\0"))):
                    return os.kill(int(process.name), signal.SIGKILL)
            except OSError:  # it has just ended
                continue
        raise muster.Failed(f"no muster-trainer of {role} {index} of {self._name}")

    def _uid(self):
        return nodes().get("trainingjob", JOB, namespace=self._name)["metadata"]["uid"]


def _job_start():
    with Training(epochs=1000) as one:
        began = one.apply()
        wait_until("a first step", one.commits, 60)
        return one.commits()[0][1] - began


def job_start(samples):
    """Seconds from kubectl apply to the first step, on nodes that have the image; the 95th percentile
    (nearest rank)."""
    _job_start()  # warms
    return disturbance.percentile_95([_job_start() for _ in range(samples)])


def recovery(disturb, samples, quiet):
    """Seconds from a disturbance of a worker to the group's next step; the 95th percentile. `disturb`
    is Training.delete_pod or .kill_in_container; a worker is left alone for `quiet` seconds after."""
    workers = 2
    outages = []
    while len(outages) < samples:
        with Training(epochs=1000, checkpoint={"everySteps": 500}) as one:
            one.job["spec"]["replicaSpecs"]["worker"]["replicas"] = workers
            one.apply()
            one.await_checkpoint()
            at = []
            for index in range(workers):
                at.append(time.time())
                disturb(one, "worker", index)
                time.sleep(quiet)
            outages += [disturbance.outage(one.commits(), when, quiet) for when in at]
    return disturbance.percentile_95(outages)
