"""What a cluster loses while a job trains: the job ends all the same, and with the same weights."""

import jobs
import processes
import pytest
from cluster import condition, eventually
from operators import await_operators, leader


def finish(cluster, namespace, storage, summary_of_run):
    job = jobs.await_success(cluster, namespace, jobs.NAME)
    assert jobs.result(storage)["weightsDigest"] == summary_of_run["weightsDigest"]
    return job


def nodes_of_ended(cluster, namespace):
    return {pod["spec"]["nodeName"] for pod in jobs.pods(cluster, namespace, jobs.NAME)
            if pod["status"]["phase"] == "Succeeded"}


def test_a_lost_leader_is_followed_by_another(cluster, muster, namespace, storage, summary_of_run):
    cluster.apply(jobs.mnist(), namespace=namespace)
    jobs.await_step(cluster, namespace, jobs.NAME, 1)
    first = eventually(lambda: leader(cluster, muster))
    uids = {pod["metadata"]["uid"] for pod in jobs.pods(cluster, namespace, jobs.NAME)}
    cluster.kubectl("delete", "pod", first["metadata"]["name"], "--grace-period=0", "--force", namespace=muster)
    eventually(lambda: (leader(cluster, muster) or first)["metadata"]["uid"] != first["metadata"]["uid"])
    job = finish(cluster, namespace, storage, summary_of_run)
    assert job["status"]["restarts"] == 0
    assert {pod["metadata"]["uid"] for pod in jobs.pods(cluster, namespace, jobs.NAME)} <= uids


@pytest.mark.parametrize("lose, mend", [("killnode", "restartnode"),
                                        pytest.param("partition", "heal", marks=pytest.mark.nightly)])
def test_a_node_that_is_lost_is_done_without(
        cluster, muster, namespace, storage, summary_of_run, lose, mend):
    cluster.apply(jobs.mnist(), namespace=namespace)
    jobs.await_step(cluster, namespace, jobs.NAME, 1)
    nodes = {pod["spec"]["nodeName"] for pod in jobs.pods(cluster, namespace, jobs.NAME)}
    assert nodes == {"node1", "node2"}
    cluster(lose, "node2")
    try:
        jobs.await_event(cluster, namespace, jobs.NAME, "NodeLost", "was lost with its node")
        job = finish(cluster, namespace, storage, summary_of_run)
        eventually(lambda: nodes_of_ended(cluster, namespace) == {"node1"})
    finally:
        cluster(mend, "node2")
    eventually(lambda: condition(cluster.get("node", "node2"), "Ready") == "True")
    # What went on there, or would begin again, is ended.
    eventually(lambda: not any(pod["spec"]["nodeName"] == "node2"
                               for pod in jobs.pods(cluster, namespace, jobs.NAME)))
    assert jobs.result(storage)["weightsDigest"] == summary_of_run["weightsDigest"]
    assert cluster.get("trainingjob", jobs.NAME, namespace=namespace)["status"]["conditions"] \
        == job["status"]["conditions"]
    await_operators(cluster, muster)


def test_a_restart_in_place_is_counted_and_told(cluster, muster, namespace, storage):
    cluster.apply(jobs.mnist(epochs=500), namespace=namespace)
    jobs.await_step(cluster, namespace, jobs.NAME, 1)
    [worker] = jobs.running(cluster, namespace, jobs.NAME, "worker")
    processes.send(worker, "muster-trainer", "KILL")
    jobs.await_event(cluster, namespace, jobs.NAME, "RestartedInPlace: worker-0 was restarted in place after exit "
                     "code 137", "training went on")
    status = cluster.get("trainingjob", jobs.NAME, namespace=namespace)["status"]
    assert (status["restarts"], status["replicaStatuses"]["worker"]["restarts"]) == (1, 1)
    assert status["state"] == "Running"


@pytest.fixture
def old_answers(cluster):
    """DNS answers that may be half a minute old."""
    def restart(seconds):
        cluster.environment["MUSTER_CLUSTER_DNS_SECONDS"] = seconds
        cluster("stop", "coredns")
        cluster("start", "coredns")
    restart("30")
    yield
    restart("2")


def test_a_chief_that_returns_is_found_though_dns_says_where_it_was(
        cluster, muster, namespace, storage, summary_of_run, old_answers):
    cluster.apply(jobs.mnist(), namespace=namespace)
    jobs.await_next_step(cluster, namespace, jobs.NAME)
    [chief] = jobs.running(cluster, namespace, jobs.NAME, "chief")
    cluster.kubectl("delete", "pod", chief["metadata"]["name"], "--wait=false", namespace=namespace)
    finish(cluster, namespace, storage, summary_of_run)
