"""Jobs of which more is asked: a checkpoint while they train; more epochs of one suspended, or that has succeeded."""

import json
import os

import jobs
from cluster import ROOT, condition, eventually, run

MUSTER = ROOT / os.environ.get("BINARIES", "build/release/bin") / "muster"


def give_epochs(cluster, namespace, epochs):
    patch = {"spec": {"training": {"epochs": epochs}}}
    cluster.kubectl("patch", "trainingjob", jobs.NAME, "--type", "merge", "-p", json.dumps(patch), namespace=namespace)


def set_suspend(cluster, namespace, suspend):
    patch = {"spec": {"suspend": suspend}}
    cluster.kubectl("patch", "trainingjob", jobs.NAME, "--type", "merge", "-p", json.dumps(patch), namespace=namespace)


def requested(cluster, namespace):
    status = cluster.get("trainingjob", jobs.NAME, namespace=namespace)["status"]
    return status.get("progress", {}).get("requestedCheckpoint", {})


def test_a_checkpoint_on_demand_is_taken_by_command_and_by_annotation_while_training_goes_on(
        cluster, muster, namespace, storage):
    job = jobs.mnist(100000)
    job["spec"]["training"]["checkpoint"] = {"everySeconds": None}
    cluster.apply(job, namespace=namespace)
    jobs.await_step(cluster, namespace, jobs.NAME, 1)
    pods = {pod["metadata"]["uid"] for pod in jobs.running(cluster, namespace, jobs.NAME)}
    # The kubelet refreshes the file of an annotation about once a minute.
    said = run([MUSTER, "checkpoint", jobs.NAME, "-n", namespace, "--kubeconfig", cluster.kubeconfig,
                "--timeout", "240"], timeout=300)
    first = requested(cluster, namespace)
    assert f"checkpoint of step {first['step']} in {first['checkpoint']}\n" in said
    folder = f"{namespace}-{jobs.NAME}/checkpoints/{first['checkpoint'].rsplit('/', 1)[1]}"
    assert (storage / folder / "manifest.json").is_file()
    cluster.kubectl("annotate", "trainingjob", jobs.NAME, "muster.dev/checkpoint=by hand", "--overwrite",
                    namespace=namespace)
    eventually(lambda: requested(cluster, namespace).get("request") == "by hand", within=240)
    assert requested(cluster, namespace)["step"] > first["step"]
    jobs.await_event(cluster, namespace, jobs.NAME, "CheckpointTaken", "by hand")
    assert {pod["metadata"]["uid"] for pod in jobs.running(cluster, namespace, jobs.NAME)} == pods


def test_more_epochs_are_trained_by_a_suspended_and_by_a_finished_job_to_the_weights_of_a_longer_one(
        cluster, muster, namespace, storage, run_example):
    second, third = jobs.LONGER + 1, jobs.LONGER + 2
    cluster.apply(jobs.mnist(jobs.LONGER), namespace=namespace)
    jobs.await_step(cluster, namespace, jobs.NAME, 1)
    set_suspend(cluster, namespace, True)
    cluster.kubectl("wait", "--for=condition=Suspended", f"trainingjob/{jobs.NAME}", "--timeout=180s",
                    namespace=namespace, timeout=200)
    give_epochs(cluster, namespace, second)
    set_suspend(cluster, namespace, False)
    assert jobs.await_success(cluster, namespace, jobs.NAME)["status"]["trainedTo"] == {"epochs": second}
    before = jobs.result(storage)
    give_epochs(cluster, namespace, third)
    jobs.await_event(cluster, namespace, jobs.NAME, "TrainsOn", f"{second} epochs", f"{third} epochs")
    eventually(lambda: condition(cluster.get("trainingjob", jobs.NAME, namespace=namespace), "Finished") is None)
    job = jobs.await_success(cluster, namespace, jobs.NAME)
    assert job["status"]["trainedTo"] == {"epochs": third}
    after = jobs.result(storage)
    assert after["step"] > before["step"]
    assert after["weightsDigest"] == run_example(jobs.NAME, third)["weightsDigest"]
