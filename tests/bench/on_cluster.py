"""Rows of a job on real nodes: deploy/cluster's, with the operator installed from its chart. Needs
root. Times are those of the chief's own points (events.py): nodes and benchmark share a clock."""

import atexit
import functools
import pathlib
import sys
import tempfile
import time
import uuid

import disturbance
import events
import muster
from api_server import wait_until

sys.path.append(str(muster.ROOT / "tests/e2e"))
import cluster  # noqa: E402
import jobs  # noqa: E402
import processes  # noqa: E402

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
    made.load_images()
    made.install_chart("muster-system")
    return made


class Training:
    """A job in a namespace of its own, whose storage is a folder of this machine."""

    def __init__(self, **training):
        self._temporary = tempfile.TemporaryDirectory(prefix="muster-bench-")
        self._name = f"bench-{uuid.uuid4().hex[:8]}"
        storage = pathlib.Path(self._temporary.name) / "storage"
        self.folder = storage / f"{self._name}-{JOB}"
        self.job = jobs.mnist()
        self.job["spec"]["training"].update(training, summary={"everySteps": 1})
        self.job["spec"]["runPolicy"] = {"backoffLimit": 1000}
        del self.job["spec"]["replicaSpecs"]["evaluator"]
        nodes().kubectl("create", "namespace", self._name)
        jobs.claim_storage(nodes(), self._name, storage)

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

    def pod(self, role, index):
        return next(pod for pod in jobs.pods(nodes(), self._name, JOB, role)
                    if pod["metadata"]["labels"]["muster.dev/index"] == str(index)
                    and pod["metadata"]["labels"]["muster.dev/current"] == "true")

    def delete_pod(self, pod):
        nodes().kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false", namespace=self._name)

    def kill_trainer(self, pod):
        processes.send(pod, "muster-trainer", "KILL")


def _job_start():
    with Training(epochs=1000) as one:
        began = one.apply()
        wait_until("a first step", one.commits, 60)
        return one.commits()[0][1] - began


def _shown(seconds):
    print("   ", " ".join(f"{one:.2f}" for one in sorted(seconds)), flush=True)
    return disturbance.percentile95(sorted(seconds))


def job_start(samples):
    """Seconds from kubectl apply to the first step, on nodes that have the image: the 95th percentile
    (nearest rank)."""
    _job_start()  # warms
    return _shown([_job_start() for _ in range(samples)])


def recovery(disturb, samples, quiet):
    """Seconds from what `disturb` (Training.delete_pod or .kill_trainer) does to a worker until the
    group's next step: the 95th percentile. Each of a job's two workers is disturbed once, and the
    job is left alone for `quiet` seconds after."""
    outages = []
    while len(outages) < samples:
        with Training(epochs=1000, checkpoint={"everySteps": 500}) as one:
            one.job["spec"]["replicaSpecs"]["worker"]["replicas"] = 2
            one.apply()
            one.await_checkpoint()
            at = []
            for index in range(2):
                pod = one.pod("worker", index)
                at.append(time.time())
                disturb(one, pod)
                time.sleep(quiet)
            time.sleep(1)  # for a step after that
            outages += [disturbance.outage(one.commits(), when, quiet) for when in at]
    return _shown(outages)


def _leading_operator():
    """The node of the operator that acts."""
    holder = nodes().get("lease", "muster", namespace="muster-system")["spec"].get("holderIdentity") or ""
    operators = nodes().get("pods", "-l", "app.kubernetes.io/component=operator", namespace="muster-system")
    return next((pod["spec"]["nodeName"] for pod in operators
                 if pod["metadata"]["name"] == holder.rsplit("_", 1)[0]), None)


def _is_ready(node):
    return cluster.condition(nodes().get("node", node), "Ready") == "True"


def _node_loss(quiet):
    with Training(epochs=1000, checkpoint={"everySteps": 500}) as one:
        leading = _leading_operator()
        lost = next(node for node in ("node1", "node2") if node != leading)
        # Its worker is what is lost; whoever else is there needs no image or claim of that node alone.
        template = one.job["spec"]["replicaSpecs"]
        for role, replica in template.items():
            spec = replica.setdefault("template", {}).setdefault("spec", {})
            names = [lost] if role == "worker" else [leading]
            terms = [{"weight": 100, "preference": {"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": names}]}}]
            spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
        one.apply()
        one.await_checkpoint()
        assert one.pod("worker", 0)["spec"]["nodeName"] == lost
        at = time.time()
        nodes()("killnode", lost)
        try:
            time.sleep(quiet)
        finally:
            nodes()("restartnode", lost)
            wait_until("the node again", lambda: _is_ready(lost), 120)
        return disturbance.outage(one.commits(), at, quiet)


def node_loss(samples):
    """Seconds from the death of a worker's node until the group's next step: the longest. The
    operator that acts is on the other node, for the loss of that one is another figure."""
    seconds = [_node_loss(60) for _ in range(samples)]
    _shown(seconds)
    return max(seconds)
