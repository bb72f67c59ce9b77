"""Replicas that end, by themselves or by force: each is replaced, and what comes of the job is the same."""

import jobs
import pytest
from cluster import condition, eventually
from processes import processes, run_beside, send

ROLES = ("ps", "chief", "worker", "evaluator")
MEMORY = 320  # MiB that a replica may have


def delete_pod(cluster, namespace, pod):
    cluster.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false", namespace=namespace)
    return "ReplicaDeleted"


def kill_container(cluster, namespace, pod):
    send(pod, "muster-supervisor", "KILL")
    return "ended with exit code 137"


def terminate_container(cluster, namespace, pod):
    send(pod, "muster-supervisor", "TERM")
    return "ended with exit code 143"


def use_up_memory(cluster, namespace, pod):
    """Another program takes what is left of the container's memory, and the kernel ends the trainer."""
    run_beside(pod, "muster-trainer", ["dd", "if=/dev/zero", "of=/dev/null", f"bs={MEMORY - 12}M", "count=1"])
    return "OOMKilled"


@pytest.mark.parametrize("end", [delete_pod, kill_container, pytest.param(terminate_container, marks=pytest.mark.nightly),
                                 pytest.param(use_up_memory, marks=pytest.mark.nightly)])
def test_a_pod_that_ends_is_replaced_and_the_weights_are_the_same(
        cluster, muster, namespace, storage, summary_of_longer_run, end):
    cluster.apply(jobs.mnist(jobs.LONGER, memory=f"{MEMORY}Mi"), namespace=namespace)
    for role in ROLES:
        jobs.await_next_step(cluster, namespace, jobs.NAME)
        [pod] = jobs.running(cluster, namespace, jobs.NAME, role)
        said = end(cluster, namespace, pod)
        jobs.await_event(cluster, namespace, jobs.NAME, f"{role}-0", said)
    job = jobs.await_success(cluster, namespace, jobs.NAME)
    assert jobs.result(storage)["weightsDigest"] == summary_of_longer_run["weightsDigest"]
    counted = 0 if end is delete_pod else 1
    assert {role: job["status"]["replicaStatuses"][role]["restarts"] for role in ROLES} == dict.fromkeys(ROLES, counted)


def test_a_trainer_that_is_killed_is_restarted_in_its_pod_and_the_weights_are_the_same(
        cluster, muster, namespace, storage, summary_of_longer_run):
    cluster.apply(jobs.mnist(jobs.LONGER), namespace=namespace)
    uids = set()
    for role in ROLES:
        jobs.await_next_step(cluster, namespace, jobs.NAME)
        [pod] = jobs.running(cluster, namespace, jobs.NAME, role)
        uids.add(pod["metadata"]["uid"])
        before = processes(pod)["muster-trainer"]
        send(pod, "muster-trainer", "KILL")
        eventually(lambda: processes(pod).get("muster-trainer", before) != before)
    jobs.await_success(cluster, namespace, jobs.NAME)
    assert jobs.result(storage)["weightsDigest"] == summary_of_longer_run["weightsDigest"]
    assert {pod["metadata"]["uid"] for pod in jobs.pods(cluster, namespace, jobs.NAME)} <= uids


def test_any_image_may_end_in_any_way_in_any_role(cluster, muster, namespace):
    job = jobs.shell("ends", roles=ROLES, runPolicy={"backoffLimit": 100})
    cluster.apply(job, namespace=namespace)
    ways = {"exit 1": "exit code 1 ", "exit 143": "exit code 143", "exec dd if=/dev/zero of=/dev/null bs=64M": "OOMKilled"}
    for attempt, (script, said) in enumerate(ways.items()):
        for pod in await_attempt(cluster, namespace, "ends", attempt):
            jobs.tell(cluster, pod, script)
        for role in ROLES:
            jobs.await_event(cluster, namespace, "ends", f"{role}-0", said)
    for pod in await_attempt(cluster, namespace, "ends", len(ways)):
        send(pod, "sh", "KILL")
    await_attempt(cluster, namespace, "ends", len(ways) + 1)
    for role in ("evaluator", "chief"):
        jobs.tell_all(cluster, namespace, "ends", "exit 0", role)
    ended = jobs.await_success(cluster, namespace, "ends")
    counts = ended["status"]["replicaStatuses"]
    assert {role: counts[role]["restarts"] for role in ROLES} == dict.fromkeys(ROLES, len(ways) + 1)


def await_attempt(cluster, namespace, job, attempt):
    """The pods of all roles, when each runs that attempt."""
    def running():
        found = [pod for pod in jobs.running(cluster, namespace, job)
                 if pod["metadata"]["labels"]["muster.dev/attempt"] == str(attempt)]
        return found if len(found) == len(ROLES) else None
    return eventually(running)


def test_a_deletion_never_counts_though_the_program_ignores_sigterm(cluster, muster, namespace):
    stubborn = "trap '' TERM; until [ -e /tmp/end ]; do sleep 0.2; done"
    cluster.apply(jobs.shell("stubborn", stubborn, runPolicy={"backoffLimit": 0}), namespace=namespace)
    for attempt in range(2):
        [pod] = eventually(lambda: [pod for pod in jobs.running(cluster, namespace, "stubborn")
                                    if pod["metadata"]["labels"]["muster.dev/attempt"] == str(attempt)])
        delete_pod(cluster, namespace, pod)
    jobs.await_event(cluster, namespace, "stubborn", "ReplicaDeleted", "worker-0 was deleted", "exit code 137")
    eventually(lambda: [pod for pod in jobs.running(cluster, namespace, "stubborn")
                        if pod["metadata"]["labels"]["muster.dev/attempt"] == "2"])
    jobs.tell_all(cluster, namespace, "stubborn", "")
    assert jobs.await_success(cluster, namespace, "stubborn")["status"]["restarts"] == 0
