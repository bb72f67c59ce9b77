"""Jobs with `device: cuda` go to nodes with GPUs, which are fakes here (fake_gpus.py), and wait while there is none,
saying why. Nothing computes on one: the trainer finds no GPU, and says so."""

import json
import re

import jobs
import pytest
from cluster import ROOT, Failed, eventually
from fake_gpus import RESOURCE, FakeGpus

NODE = "node2"
VERSION = re.search(r"project\(muster VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


@pytest.fixture
def gpu(cluster):
    """One on one of the nodes."""
    with FakeGpus(cluster, NODE, 1):
        eventually(lambda: allocatable(cluster) == "1")
        yield
    # The node's status goes on to name a resource that is gone, of which there are none then.
    eventually(lambda: allocatable(cluster) == "0")


def allocatable(cluster):
    return cluster.get("node", NODE)["status"]["allocatable"].get(RESOURCE)


def on_gpu(name, **container):
    """A job of a chief that computes on a GPU; with a command it only waits to be told how to end."""
    job = jobs.shell(name, roles=("chief",))
    samples = {"syntheticClasses": {"samples": 64, "shape": [784], "classes": 10}}
    job["spec"]["training"] = {"model": {"name": "mnist-mlp"}, "data": {"train": samples}, "epochs": 1,
                               "device": "cuda"}
    of_template = job["spec"]["replicaSpecs"]["chief"]["template"]["spec"]["containers"][0]
    of_template.update(container)
    return job


def test_a_replica_that_computes_on_gpus_waits_for_a_node_with_one(cluster, muster, namespace, gpu):
    cluster.apply(on_gpu("first"), namespace=namespace)
    [pod] = jobs.await_running(cluster, namespace, "first")
    assert pod["spec"]["nodeName"] == NODE
    assert pod["spec"]["containers"][0]["resources"]["limits"][RESOURCE] == "1"

    cluster.apply(on_gpu("second"), namespace=namespace)
    jobs.await_reason(cluster, namespace, "second", "Running", "chief-0", f"Insufficient {RESOURCE}")

    jobs.tell(cluster, pod, "exit 0")
    jobs.await_success(cluster, namespace, "first")
    [pod] = jobs.await_running(cluster, namespace, "second")
    assert pod["spec"]["nodeName"] == NODE
    jobs.tell(cluster, pod, "exit 0")
    jobs.await_success(cluster, namespace, "second")


def test_devices_auto_is_what_the_template_asks_for(cluster, muster, namespace):
    """No node has so many, so that the pod waits."""
    job = on_gpu("all", resources={"limits": {RESOURCE: 3}})
    job["spec"]["training"]["devices"] = "auto"
    cluster.apply(job, namespace=namespace)
    jobs.await_reason(cluster, namespace, "all", "Running", "chief-0", f"Insufficient {RESOURCE}")
    [pod] = cluster.get("pod", namespace=namespace)
    assert json.loads(pod["metadata"]["annotations"]["muster.dev/training"])["devices"] == 3

    job["spec"]["training"]["devices"] = "all"
    with pytest.raises(Failed, match="devices"):
        cluster.apply(job, namespace=namespace)


def test_a_trainer_that_finds_no_gpu_says_so(cluster, muster, namespace, gpu):
    job = on_gpu("without", image=f"muster-trainer:{VERSION}", resources={})
    del job["spec"]["replicaSpecs"]["chief"]["template"]["spec"]["containers"][0]["command"]
    cluster.apply(job, namespace=namespace)
    ended = jobs.await_end(cluster, namespace, "without")
    [failed] = [condition for condition in ended["status"]["conditions"] if condition["type"] == "Failed"]
    assert "exit code 78" in failed["message"], failed


def test_a_replica_that_has_lost_a_gpu_goes_to_another_node(cluster, muster, namespace):
    """The exit code says so; the job computes on the CPU."""
    job = on_gpu("lost")
    job["spec"]["training"]["device"] = "cpu"
    cluster.apply(job, namespace=namespace)
    [before] = jobs.await_running(cluster, namespace, "lost")
    node = before["spec"]["nodeName"]
    jobs.tell(cluster, before, "exit 71")

    def successor():
        pods = jobs.running(cluster, namespace, "lost")
        return pods[0] if pods and pods[0]["metadata"]["uid"] != before["metadata"]["uid"] else None

    after = eventually(successor)
    assert after["spec"]["nodeName"] != node
    [record] = cluster.get("trainingjob", "lost", namespace=namespace)["status"]["records"]
    assert record["avoidedNodes"] == [node]
    jobs.tell(cluster, after, "exit 0")
    jobs.await_success(cluster, namespace, "lost")
