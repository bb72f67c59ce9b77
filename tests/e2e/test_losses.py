"""What a cluster loses while a job trains: the job ends all the same, and with the same weights."""

import jobs
from cluster import condition, eventually


def leader(cluster, muster):
    """The pod that holds the lease."""
    holder = cluster.get("lease", "muster", namespace=muster)["spec"].get("holderIdentity", "")
    return holder.rsplit("_", 1)[0]


def finish(cluster, namespace, storage, summary_of_run):
    job = jobs.await_end(cluster, namespace, "mnist-mlp")
    assert condition(job, "Succeeded") == "True", job["status"]
    assert jobs.result(storage)["weightsDigest"] == summary_of_run["weightsDigest"]
    return job


def test_a_lost_leader_is_followed_by_another(cluster, muster, namespace, storage, summary_of_run):
    cluster.apply(jobs.mnist(), namespace=namespace)
    jobs.await_step(cluster, namespace, "mnist-mlp", 1)
    first = eventually(lambda: leader(cluster, muster))
    uids = {pod["metadata"]["uid"] for pod in jobs.pods(cluster, namespace, "mnist-mlp")}
    cluster.kubectl("delete", "pod", first, "--grace-period=0", "--force", namespace=muster)
    eventually(lambda: leader(cluster, muster) not in ("", first))
    job = finish(cluster, namespace, storage, summary_of_run)
    assert job["status"]["restarts"] == 0
    assert {pod["metadata"]["uid"] for pod in jobs.pods(cluster, namespace, "mnist-mlp")} <= uids


def test_a_lost_node_is_done_without(cluster, muster, namespace, storage, summary_of_run):
    cluster.apply(jobs.mnist(), namespace=namespace)
    jobs.await_step(cluster, namespace, "mnist-mlp", 1)
    nodes = {pod["spec"]["nodeName"] for pod in jobs.pods(cluster, namespace, "mnist-mlp")}
    assert nodes == {"node1", "node2"}
    cluster("killnode", "node2")
    try:
        finish(cluster, namespace, storage, summary_of_run)
        ended = [pod for pod in jobs.pods(cluster, namespace, "mnist-mlp")
                 if pod["status"]["phase"] == "Succeeded"]
        assert {pod["spec"]["nodeName"] for pod in ended} == {"node1"}
    finally:
        cluster("restartnode", "node2")
    eventually(lambda: condition(cluster.get("node", "node2"), "Ready") == "True")
