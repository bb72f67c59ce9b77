"""Replicas that end, by themselves or by force: each is replaced, and what comes of the job is the same."""

import jobs
import pytest
from cluster import condition
from processes import run_beside, send

ROLES = ("ps", "chief", "worker", "evaluator")
MEMORY = 320  # MiB that a replica may have


def delete_pod(cluster, pod):
    cluster.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false", namespace=pod["metadata"]["namespace"])


def kill_trainer(_, pod):
    send(pod, "muster-trainer", "KILL")


def kill_container(_, pod):
    send(pod, "muster-supervisor", "KILL")


def terminate_container(_, pod):
    send(pod, "muster-supervisor", "TERM")


def use_up_memory(_, pod):
    """Another program takes what is left of the container's memory, and the kernel ends the trainer."""
    run_beside(pod, "muster-trainer", ["dd", "if=/dev/zero", "of=/dev/null", f"bs={MEMORY - 12}M", "count=1"])


@pytest.mark.parametrize("end, said", [
    (delete_pod, "ReplicaDeleted"),
    (kill_trainer, "restarted in place after exit code 137"),
    (kill_container, "ended with exit code 137"),
    (terminate_container, "ended with exit code 143"),
    (use_up_memory, "OOMKilled"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_training_goes_on_to_the_same_weights(
        cluster, muster, namespace, storage, summary_of_longer_run, end, said):
    cluster.apply(jobs.mnist(jobs.LONGER, f"{MEMORY}Mi"), namespace=namespace)
    for role in ROLES:
        jobs.await_next_step(cluster, namespace, jobs.NAME)
        [pod] = jobs.pods(cluster, namespace, jobs.NAME, role)
        end(cluster, pod)
        jobs.await_event(cluster, namespace, jobs.NAME, f"{role}-0", said)
    job = jobs.await_end(cluster, namespace, jobs.NAME)
    assert condition(job, "Succeeded") == "True", job["status"]
    assert jobs.result(storage)["weightsDigest"] == summary_of_longer_run["weightsDigest"]
