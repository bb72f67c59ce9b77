"""MNIST, trained on the cluster by replicas on two nodes: as well as on one machine, and to the same bits."""

import json
import os

import jobs
import pytest
from cluster import ROOT, condition, eventually, run

EPOCHS = 2


@pytest.fixture(scope="module")
def summary_of_run(tmp_path_factory):
    """What `muster run` makes of the same job on this machine."""
    folder = tmp_path_factory.mktemp("run") / "mnist"
    program = ROOT / os.environ.get("BINARIES", "build/release/bin") / "muster"
    run([program, "run", jobs.EXAMPLES / "mnist-mlp.yaml", "--directory", folder,
         "--set", f"spec.training.epochs={EPOCHS}", "--set", "spec.training.threads=1"], timeout=600)
    return json.loads((folder / "summary.json").read_text())


@pytest.fixture
def storage(cluster, namespace, tmp_path):
    folder = tmp_path / "storage"
    jobs.claim_storage(cluster, namespace, folder)
    yield folder
    if "MUSTER_E2E_KEEP" not in os.environ:
        cluster.kubectl("delete", "persistentvolume", namespace, "--wait=false")


def test_operators_are_on_both_nodes_and_one_leads(cluster, muster):
    pods = cluster.get("pods", "-l", "app.kubernetes.io/component=operator", namespace=muster)
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node1", "node2"}
    names = [pod["metadata"]["name"] for pod in pods]
    holder = eventually(lambda: cluster.get("lease", "muster", namespace=muster)["spec"].get("holderIdentity"))
    assert holder.rsplit("_", 1)[0] in names


def test_trains_as_on_one_machine(cluster, muster, namespace, storage, summary_of_run):
    cluster.apply(jobs.mnist(EPOCHS), namespace=namespace)
    job = jobs.await_end(cluster, namespace, "mnist-mlp")
    assert condition(job, "Succeeded") == "True", job["status"]
    assert jobs.result(storage)["weightsDigest"] == summary_of_run["weightsDigest"]
    assert jobs.evaluation(storage)["test"]["accuracy"] > 0.965
    # What has ended by itself stays, to be asked for its log; the ps, which ended on request, does not.
    gone = eventually(lambda: not jobs.pods(cluster, namespace, "mnist-mlp", "ps"))
    assert gone
    for role in ("chief", "worker", "evaluator"):
        phases = [pod["status"]["phase"] for pod in jobs.pods(cluster, namespace, "mnist-mlp", role)]
        assert phases == ["Succeeded"], role
    assert "checkpoint" in cluster.kubectl("logs", "-l", "muster.dev/role=chief", namespace=namespace)


def test_a_deleted_worker_is_replaced_and_the_weights_are_the_same(
        cluster, muster, namespace, storage, summary_of_run):
    cluster.apply(jobs.mnist(EPOCHS), namespace=namespace)
    jobs.await_step(cluster, namespace, "mnist-mlp", 1)
    [before] = jobs.pods(cluster, namespace, "mnist-mlp", "worker")
    cluster.kubectl("delete", "pod", before["metadata"]["name"], namespace=namespace)
    job = jobs.await_end(cluster, namespace, "mnist-mlp")
    assert condition(job, "Succeeded") == "True", job["status"]
    [after] = jobs.pods(cluster, namespace, "mnist-mlp", "worker")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert jobs.result(storage)["weightsDigest"] == summary_of_run["weightsDigest"]
